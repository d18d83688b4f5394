//! Why plans could not be shared or synced.

use waypost_core::PlanId;
use waypost_git::GitError;
use waypost_store::{StoreError, WriteError};

use crate::error::ServiceError;

/// Why plans could not be shared or synced.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// An operation on a plan failed.
    #[error("{0}")]
    Service(#[from] ServiceError),
    /// Git failed.
    #[error("{0}")]
    Git(#[from] GitError),
    /// Another process syncs the same store.
    #[error("another process is syncing these plans")]
    Busy,
    /// Only a person may do this.
    #[error("only a person can {what}")]
    NeedsPerson {
        /// The act.
        what: &'static str,
    },
    /// The plan is not shared.
    #[error("plan {0} is not shared")]
    NotShared(PlanId),
    /// Another clone shares a plan under this id.
    #[error("another clone shares a plan called {0}")]
    Taken(PlanId),
    /// A newer Waypost wrote records of the plan, which this build cannot merge.
    #[error("plan {0} has records of a newer Waypost, so it is read-only here")]
    Newer(PlanId),
    /// The versions of the plan could not become records.
    #[error("plan {plan}: {problem}")]
    Records {
        /// The plan.
        plan: PlanId,
        /// What is wrong.
        problem: String,
    },
    /// Nobody asks that.
    #[error("plan {plan} has no open question {about}")]
    NoSuchQuestion {
        /// The plan.
        plan: PlanId,
        /// What was named.
        about: String,
    },
    /// What was read is not asked any more.
    #[error(
        "the question of plan {0} was answered or has changed since it was read, so nothing was answered"
    )]
    QuestionChanged(PlanId),
    /// The branch of the plans cannot be used.
    #[error("{problem}")]
    NoBranch {
        /// Why.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// Several questions are open there.
    #[error("several questions of plan {plan} are open there: {}", candidates.join(", "))]
    WhichQuestion {
        /// The plan.
        plan: PlanId,
        /// The questions, as `resolve` takes them.
        candidates: Vec<String>,
    },
    /// The question cannot be answered in this way.
    #[error("{0}")]
    BadAnswer(String),
}

impl From<StoreError> for SharingError {
    fn from(error: StoreError) -> Self {
        Self::Service(error.into())
    }
}

impl From<WriteError> for SharingError {
    fn from(error: WriteError) -> Self {
        Self::Service(error.into())
    }
}

impl SharingError {
    /// Returns a stable code for programs.
    pub fn code(&self) -> String {
        let code = match self {
            Self::Service(error) => return error.code(),
            Self::Git(GitError::CheckedOut { .. }) => "checked_out",
            Self::Git(GitError::TooNew { .. }) | Self::Newer(_) => "too_new",
            Self::Git(_) => "git",
            Self::Busy => "busy",
            Self::NeedsPerson { .. } => "needs_person",
            Self::NotShared(_) => "not_shared",
            Self::Taken(_) => "taken",
            Self::Records { .. } => "records",
            Self::NoSuchQuestion { .. } => "no_such_question",
            Self::QuestionChanged(_) => "question_changed",
            Self::NoBranch { .. } => "no_branch",
            Self::WhichQuestion { .. } => "ambiguous",
            Self::BadAnswer(_) => "bad_answer",
        };
        code.to_owned()
    }
}
