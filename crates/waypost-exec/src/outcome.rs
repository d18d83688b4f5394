//! One start of one task, and how it ended.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use waypost_core::{Evidence, Json, PlanId, QuestionRequest, TaskId};

/// What one start of one task is known by.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Start {
    /// The task. It comes first because it differs more often than the plan.
    pub task: TaskId,
    /// The number of the start.
    pub attempt: u32,
    pub plan: PlanId,
}

/// One start of one task, for all who have to do with it: a copy costs nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptKey(Arc<Start>);

impl AttemptKey {
    /// The key of this attempt.
    pub fn new(plan: &PlanId, task: &TaskId, attempt: u32) -> Self {
        Self(Arc::new(Start { plan: plan.clone(), task: task.clone(), attempt }))
    }
}

impl Deref for AttemptKey {
    type Target = Start;

    fn deref(&self) -> &Start {
        &self.0
    }
}

/// How an attempt ended, as its executor says.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptOutcome {
    Done {
        result: Option<String>,
        output: Option<Json>,
    },
    Failed {
        error: String,
    },
    /// Not accomplished, and worth another try.
    TryAgain {
        error: String,
    },
    /// A person has to be asked before it can go on.
    Asked(Box<QuestionRequest>),
    /// The task's check was made, and says whether it is accomplished.
    Checked {
        /// What the work came to, in words.
        result: Option<String>,
        output: Option<Json>,
        /// Why it is not accomplished, when the check failed.
        error: Option<String>,
        /// What the check has found.
        evidence: Box<Evidence>,
    },
}

impl AttemptOutcome {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done { .. } | Self::Checked { error: None, .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Checked { error: Some(_), .. } => "check_failed",
            Self::TryAgain { .. } => "try_again",
            Self::Asked(_) => "asked",
        }
    }
}

/// How an attempt is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It is asked to.
    Ask,
    /// It is killed.
    Kill,
}

/// What happens to attempts while they run.
#[derive(Debug)]
pub enum AttemptEvent {
    /// The work of an attempt begins.
    Began {
        key: AttemptKey,
        /// The attempt that has just ended and whose slot it took without asking the scheduler. Its end comes after this,
        /// so that nobody else is given the slot in between.
        predecessor: Option<AttemptKey>,
        at: Instant,
    },
    /// An attempt has ended. One that was stopped before it began never began.
    Ended { key: AttemptKey, ending: AttemptOutcome, at: Instant },
    /// An attempt reported its progress.
    Progressed(AttemptKey, String),
}

/// Receives the events of attempts, on whatever thread they happen.
pub type AttemptEvents = Arc<dyn Fn(AttemptEvent) + Send + Sync>;
