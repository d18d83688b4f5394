//! Asking models over the network: a question in, an answer out, whatever happens on the way.
//!
//! [`Model`] is what a driver of sessions knows. Behind it are the client of a server ([`Client`]), models in order
//! ([`InOrder`]), a model for each role ([`ByRole`]), and the journal of everything that was asked ([`Recorded`],
//! [`Replayed`]). Knows nothing of plans.

mod choose;
mod client;
mod error;
mod journal;
mod patience;
mod probe;
mod recorded;
mod redact;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use waypost_planner::{Answer, Ask};

pub use choose::{ByRole, InOrder, secrets_of};
pub use client::Client;
pub use error::ModelError;
pub use journal::{
    Entry, JOURNAL_BYTES_MAX, Journal, JournalError, JournalLine, Spent, Totals, read_journal,
};
pub use probe::{Finding, Probed, Verdict};
pub use recorded::{Recorded, Replayed};
pub use redact::Redactor;

/// Somebody who answers questions.
pub trait Model: Send + Sync {
    /// Asks, and waits for the whole answer, for an error, or until it is told to stop.
    fn ask(&self, ask: &Ask, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn ask(&self, ask: &Ask, progress: &dyn Progress, stop: &Stop) -> Result<Reply, ModelError> {
        (**self).ask(ask, progress, stop)
    }
}

/// An answer, with what is known of how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    /// The name of the model in the configuration.
    pub from: String,
    /// What it cost; nothing where the configuration has no price.
    pub cost: Option<Cost>,
    /// Whether it was in a journal already, so that nobody was asked and nothing is to be paid now.
    pub recalled: bool,
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
    fn told(&self, ask: &Ask, moment: &Moment<'_>);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn told(&self, _ask: &Ask, _moment: &Moment<'_>) {}
}

/// What can happen to a question on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment<'a> {
    /// A model is being asked, for the so-and-so-manieth time.
    Asked {
        /// Its name in the configuration.
        model: &'a str,
        /// From 1.
        attempt: u32,
    },
    /// More of the answer has come.
    Heard {
        /// Its characters so far.
        characters: u64,
        /// Its tokens so far, estimated.
        tokens: u64,
    },
    /// It did not work, and will be tried again.
    Waits {
        /// Its name in the configuration.
        model: &'a str,
        /// For so long.
        milliseconds: u64,
        /// What happened.
        why: &'a ModelError,
    },
    /// The server refuses what makes answers well-formed; it is asked for less from now on.
    TurnedDown {
        /// Its name in the configuration.
        model: &'a str,
        /// What it is asked for now: `json` or `none`.
        to: &'a str,
        /// What the server said.
        said: &'a str,
    },
    /// A model is given up, and the next one asked.
    FellBack {
        /// The one that is given up.
        from: &'a str,
        /// The one that is asked now.
        to: &'a str,
        /// What happened.
        why: &'a ModelError,
    },
    /// The answer is there.
    Answered {
        /// All of it.
        reply: &'a Reply,
    },
}

/// By which somebody who asks is told to stop asking. Clones are one.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Nobody is told so far.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Stop: calls that are under way are given up.
    pub fn now(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was said.
    pub fn is_said(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when it is said.
    pub(crate) async fn said(&self) {
        // The sender is ours, so the wait can end in no other way.
        let mut told = self.0.subscribe();
        let _said = told.wait_for(|said| *said).await;
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
