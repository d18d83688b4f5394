//! Tools, called by a client that speaks the protocol.

mod committed;
mod documents;
mod native;
mod orchestrator;
mod reference;
mod session;
