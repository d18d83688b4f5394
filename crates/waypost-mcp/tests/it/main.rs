//! Tools, called by a client that speaks the protocol.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod approval;
mod bounds;
mod committed;
#[path = "../../../waypost-run/tests/it/direct_writes.rs"]
mod direct_writes;
mod documents;
mod files;
mod jaato;
mod line;
mod lines;
mod native;
mod orchestrator;
mod places;
mod progress;
mod reading;
mod reference;
mod sampling;
mod session;
