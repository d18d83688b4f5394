//! Calls models over the network: a request in, an answer or an error out.
//!
//! Sessions are driven through [`Model`]. Its implementations are the client of a server ([`Client`]), models in order
//! ([`InOrder`]), a model for each role ([`ByRole`]), and the journal of all requests ([`Recorded`], [`Replayed`]).
//! Knows nothing of plans.

#![warn(clippy::wildcard_enum_match_arm)]

mod backoff;
mod cancellation;
mod client;
mod error;
mod journal;
mod model;
mod model_request;
mod price;
mod probe;
mod record_replay;
mod routing;
pub mod token_estimate;
pub mod wire;

pub use cancellation::{CancelToken, Stop};
pub use client::Client;
pub use error::ModelError;
pub use journal::{
    Entry, JOURNAL_BYTES_MAX, Journal, JournalError, JournalLine, Spent, Totals, read_journal,
};
pub use model::*;
pub use model_request::{Answer, Ended, ModelRequest, Purpose, Schema, Speaker, Turn};
pub use price::Price;
pub use probe::{Finding, Probed, Verdict};
pub use record_replay::{Recorded, Replayed};
pub use routing::{ByRole, InOrder, secrets_of};
pub use waypost_config::Role;
pub use waypost_text::Redactor;
