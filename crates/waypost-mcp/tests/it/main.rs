//! Tools, called by a client that speaks the protocol.

mod documents;
mod native;
mod orchestrator;
mod reference;
mod session;
