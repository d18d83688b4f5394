//! Model clients against a scripted server, and the journal of their calls.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails a test")]

mod journal;
mod models;
mod wire;
