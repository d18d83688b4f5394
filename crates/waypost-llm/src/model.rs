//! The interface of a model: one request in, one reply or error out, with progress and cost.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cancellation::Stop;
use crate::error::ModelError;
use crate::model_request::{Answer, ModelRequest};

/// Answers requests.
pub trait Model: Send + Sync {
    /// Sends a request and waits for the whole answer, an error or a cancellation.
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError> {
        (**self).ask(ask, progress, stop)
    }
}

/// An answer and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub answer: Answer,
    pub from: String,
    /// `None` if the configuration has no price.
    pub cost: Option<Cost>,
    /// Whether the answer was already in a journal, so that no model was called and nothing is to be paid now.
    pub recalled: bool,
}

/// The cost of a call that ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    pub from: String,
    /// Tokens of the request.
    pub tokens_in: u64,
    /// Tokens of the part of an answer that arrived.
    pub tokens_out: u64,
    /// Whether they are estimated, because the server had not reported them yet.
    pub estimated: bool,
    /// The cost in millionths; `None` if the configuration has no price.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "cost_millionths")]
    pub cost: Option<Cost>,
}

impl Lost {
    /// Tokens in both directions.
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }
}

/// Money, in millionths of the currency of the configured prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl Cost {
    /// The sum of both; saturates.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Receives the progress of requests. Called from several threads when there are several requests at once.
pub trait Progress: Send + Sync {
    fn on_event(&self, ask: &ModelRequest, moment: &CallEvent<'_>);
}

/// Ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn on_event(&self, _ask: &ModelRequest, _moment: &CallEvent<'_>) {}
}

/// Events of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEvent<'a> {
    /// A request is sent to a model.
    Asked {
        model: &'a str,
        /// The number of the try, from 1.
        attempt: u32,
    },
    /// More of the answer has arrived.
    Received {
        /// Characters of the answer so far.
        characters: u64,
        /// Tokens of the answer so far, estimated.
        tokens: u64,
    },
    /// A call has ended without an answer. The next event shows whether another follows.
    Failed {
        why: &'a ModelError,
        /// The cost of the call; `None` if the server never accepted the request.
        lost: Option<&'a Lost>,
    },
    /// The call failed and will be retried after a wait.
    Waits {
        model: &'a str,
        /// The wait, requested by the server or chosen by the backoff.
        milliseconds: u64,
        why: &'a ModelError,
    },
    /// The server refused an optional property of the request, and is asked without it from now on.
    TurnedDown {
        model: &'a str,
        /// What it is asked for now, such as `json`, `none` or `no stream`.
        to: &'a str,
        said: &'a str,
    },
    /// A model failed for good, and the next one is asked.
    FellBack {
        /// The name of the failed model in the configuration.
        from: &'a str,
        to: &'a str,
        why: &'a ModelError,
    },
    /// The answer is complete.
    Answered { reply: &'a Reply },
}
