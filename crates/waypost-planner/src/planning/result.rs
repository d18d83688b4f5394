//! The result of planning, and why it ended.

use waypost_llm::ModelError;
use waypost_store::WriteError;

use crate::{Broken, Repair};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// Nothing is left to ask.
    #[default]
    Over,
    /// A single step was requested and made.
    Stepped,
    /// An end was requested.
    Halted,
    /// The plan was paused.
    Paused,
    /// The plan was archived or deleted.
    Gone,
    /// The next request would exceed a limit.
    Bound(Broken),
    /// No model answered.
    Trouble(ModelError),
    /// The same request was answered several times without effect.
    Circles {
        /// The slot of the request.
        slot: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanningResult {
    pub ending: StopReason,
    /// New answers from models.
    pub asked: u64,
    /// Answers from the journal.
    pub recalled: u64,
    /// Tokens of the new answers.
    pub tokens: u64,
    /// All repairs of answers, repeated as often as they occurred.
    pub repairs: Vec<Repair>,
    /// Answers that were rejected and returned to the model.
    pub returned: u64,
}

/// Why planning failed.
#[derive(Debug, thiserror::Error)]
pub enum PlanningError {
    /// The store failed, or refused a write.
    #[error(transparent)]
    Store(#[from] WriteError),
    #[error(transparent)]
    Journal(#[from] waypost_llm::JournalError),
}

impl From<waypost_store::StoreError> for PlanningError {
    fn from(error: waypost_store::StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl PlanningError {
    pub fn hint(&self) -> String {
        match self {
            Self::Store(error) => error.hint(),
            Self::Journal(error) => error.hint(),
        }
    }
}
