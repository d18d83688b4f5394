//! What a driver knows of a model: one request in, one reply or error out, progress on the way, and what it cost.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cancellation::Stop;
use crate::error::ModelError;
use crate::model_request::{Answer, ModelRequest};

/// Somebody who answers questions.
pub trait Model: Send + Sync {
    /// Asks, and waits for the whole answer, for an error, or until it is told to stop.
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn ask(&self, ask: &ModelRequest, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError> {
        (**self).ask(ask, progress, stop)
    }
}

/// An answer, with what is known of how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub answer: Answer,
    pub from: String,
    /// What it cost; nothing where the configuration has no price.
    pub cost: Option<Cost>,
    /// Whether it was in a journal already, so that nobody was asked and nothing is to be paid now.
    pub recalled: bool,
}

/// What a call has cost that ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    pub from: String,
    /// Tokens of the question.
    pub tokens_in: u64,
    /// Tokens of what came of an answer.
    pub tokens_out: u64,
    /// Whether they are estimated, because the server had not said yet.
    pub estimated: bool,
    /// What it cost, in millionths; nothing where the configuration has no price.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "cost_millionths")]
    pub cost: Option<Cost>,
}

impl Lost {
    /// Tokens both ways.
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }
}

/// Money, in millionths of whatever the prices of the configuration are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl Cost {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Who is told how a question goes. Called from several threads when several questions are asked at once.
pub trait Progress: Send + Sync {
    /// Something has happened to this question.
    fn on_event(&self, ask: &ModelRequest, moment: &CallEvent<'_>);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn on_event(&self, _ask: &ModelRequest, _moment: &CallEvent<'_>) {}
}

/// What can happen to a question on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEvent<'a> {
    /// A model is being asked, for the so-and-so-manieth time.
    Asked {
        model: &'a str,
        /// From 1.
        attempt: u32,
    },
    /// More of the answer has come.
    Received {
        /// Its characters so far.
        characters: u64,
        /// Its tokens so far, estimated.
        tokens: u64,
    },
    /// A call has ended without an answer. Whether another follows is told next.
    Failed {
        why: &'a ModelError,
        /// What it has cost all the same; nothing where the question was never taken.
        lost: Option<&'a Lost>,
    },
    /// It did not work, and will be tried again.
    Waits {
        model: &'a str,
        /// For so long.
        milliseconds: u64,
        why: &'a ModelError,
    },
    /// The server refuses what makes answers well-formed; it is asked for less from now on.
    TurnedDown {
        model: &'a str,
        /// What it is asked for now: `json` or `none`.
        to: &'a str,
        said: &'a str,
    },
    /// A model is given up, and the next one asked.
    FellBack {
        /// The one that is given up.
        from: &'a str,
        /// The one that is asked now.
        to: &'a str,
        why: &'a ModelError,
    },
    /// The answer is there.
    Answered { reply: &'a Reply },
}
