//! Tools, called by a client that speaks the protocol.

mod jaato;
mod native;
mod session;
