//! Tools, called by a client that speaks the protocol.

mod native;
mod session;
