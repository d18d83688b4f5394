//! What came of planning with a model, and why it ended.

use waypost_llm::ModelError;
use waypost_store::WriteError;

use crate::{Broken, Repair};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// There is nothing left to ask.
    #[default]
    Over,
    /// One step was wanted, and was made.
    Stepped,
    /// Somebody asked to end it.
    Halted,
    /// The plan was paused.
    Paused,
    /// The plan was put away, has ended, or is gone.
    Gone,
    /// The next question would go over a bound.
    Bound(Broken),
    /// No model answered.
    Trouble(ModelError),
    /// The same answer was of no use again and again.
    Circles {
        /// To which question.
        slot: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanningResult {
    pub ending: StopReason,
    /// Answers that models gave now.
    pub asked: u64,
    /// Answers that were in the journal already.
    pub recalled: u64,
    /// Tokens of the answers that were given now.
    pub tokens: u64,
    /// What had to be put right in answers, each as often as it happened.
    pub repairs: Vec<Repair>,
    /// Answers that were returned to the model.
    pub returned: u64,
}

/// Why nothing can be thought.
#[derive(Debug, thiserror::Error)]
pub enum PlanningError {
    /// The store, or the plan in it.
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
