//! Tools, called by a client that speaks the protocol.

mod committed;
mod native;
mod session;
