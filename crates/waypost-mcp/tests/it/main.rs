//! Tools, called by a client that speaks the protocol.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod committed;
mod documents;
mod native;
mod orchestrator;
mod reference;
mod session;
