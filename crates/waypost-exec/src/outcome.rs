//! The key, the events and the outcome of an attempt.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use waypost_core::{Evidence, Json, PlanId, QuestionRequest, TaskId};

/// Identifies one attempt of one task.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Start {
    /// First because it differs more often than the plan, which makes comparisons cheap.
    pub task: TaskId,
    pub attempt: u32,
    pub plan: PlanId,
}

/// The shared key of an attempt: a clone only counts a reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptKey(Arc<Start>);

impl AttemptKey {
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

/// How an attempt ended, as its executor reports it.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptOutcome {
    Done {
        result: Option<String>,
        output: Option<Json>,
    },
    Failed {
        error: String,
    },
    /// Failed, and worth another attempt.
    TryAgain {
        error: String,
    },
    /// A person has to answer before the task can continue.
    Asked(Box<QuestionRequest>),
    /// The task's check ran and decided whether the task is done.
    Checked {
        /// The result of the work, in words.
        result: Option<String>,
        output: Option<Json>,
        /// Why the check failed; `None` if it passed.
        error: Option<String>,
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

/// How an attempt is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// With a request to end, such as SIGTERM.
    Ask,
    /// At once, such as with SIGKILL.
    Kill,
}

/// Events of running attempts.
#[derive(Debug)]
pub enum AttemptEvent {
    /// The work of an attempt begins.
    Began {
        key: AttemptKey,
        /// The attempt that has just ended and whose slot this one took without asking the scheduler. The end of that
        /// attempt is reported after this event, so that the slot is not assigned to another in between.
        predecessor: Option<AttemptKey>,
        at: Instant,
    },
    /// An attempt has ended. If it was stopped before it began, no `Began` precedes this event.
    Ended { key: AttemptKey, ending: AttemptOutcome, at: Instant },
    /// An attempt reported its progress.
    Progressed(AttemptKey, String),
}

/// Receives the events of attempts, on any thread.
pub type AttemptEvents = Arc<dyn Fn(AttemptEvent) + Send + Sync>;
