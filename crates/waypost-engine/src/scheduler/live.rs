//! Attempts that run in this process, as the scheduler sees them.

use std::ops::Deref;
use std::sync::Arc;

use waypost_core::{Ask, Evidence, Json, Lock, Plan, PlanId, Status, TaskId, Timestamp};

/// What one start of one task is known by.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Start {
    /// The task. It comes first because it differs more often than the plan.
    pub task: TaskId,
    /// The number of the start.
    pub attempt: u32,
    /// The plan.
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
pub enum Ending {
    /// Accomplished.
    Done {
        /// In words.
        result: Option<String>,
        /// For those who depend on it.
        output: Option<Json>,
    },
    /// Not accomplished.
    Failed {
        /// Why.
        error: String,
    },
    /// Not accomplished, and worth another try.
    TryAgain {
        /// Why.
        error: String,
    },
    /// A person has to be asked before it can go on.
    Asked(Box<Ask>),
    /// The task's check was made, and says whether it is accomplished.
    Checked {
        /// What the work came to, in words.
        result: Option<String>,
        /// For those who depend on it.
        output: Option<Json>,
        /// Why it is not accomplished, when the check failed.
        error: Option<String>,
        /// What the check has found.
        evidence: Box<Evidence>,
    },
}

impl Ending {
    /// The word for it.
    pub fn word(&self) -> &'static str {
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

/// Why an attempt is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    TimedOut,
    NoLongerWanted,
    RunStopped,
}

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its start is being written.
    Starting,
    /// Its start is durable, and it waits for a slot.
    Waiting,
    /// Its work was started.
    Running,
    /// Its work has ended, and that is to be written.
    Ended,
}

#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) locks: Vec<Lock>,
    pub(super) queue: Arc<str>,
    pub(super) since: Timestamp,
    pub(super) timeout_seconds: Option<u32>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) stage: Stage,
    /// Whether it was started ahead and has no slot yet.
    pub(super) ahead: bool,
    /// When its program ended.
    pub(super) ended_at: Option<Timestamp>,
    /// Why it is made to end, since when, and whether by force.
    pub(super) stop: Option<(StopReason, Timestamp, bool)>,
    pub(super) ending: Option<Ending>,
    pub(super) progress: Option<String>,
    /// Whether its work was started.
    pub(super) began: bool,
    /// Whether its lease is gone: the task is somebody else's, and nothing more is said of it.
    pub(super) lost: bool,
}

impl Live {
    pub(super) fn starting(
        locks: Vec<Lock>,
        queue: Arc<str>,
        timeout_seconds: Option<u32>,
        now: Timestamp,
    ) -> Self {
        Self {
            locks,
            queue,
            since: now,
            timeout_seconds,
            deadline: None,
            stage: Stage::Starting,
            ahead: false,
            ended_at: None,
            stop: None,
            ending: None,
            progress: None,
            began: false,
            lost: false,
        }
    }

    /// Whether a slot of its queue is taken by it.
    pub(super) fn has_slot(&self) -> bool {
        !self.ahead && self.stage != Stage::Ended
    }

    /// Its start is durable: from now on its time counts.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.stage = Stage::Running;
        self.began = true;
        self.since = now;
        self.deadline = self.timeout_seconds.map(|seconds| now.plus_seconds(u64::from(seconds)));
    }
}

/// Whether a plan says that this attempt runs, and, if it is asked, by this worker.
pub(super) fn is_running(plan: &Plan, key: &AttemptKey, worker: Option<&str>) -> bool {
    plan.task(key.task.as_str()).is_some_and(|task| {
        task.state.status == Status::Running
            && task.state.attempt == key.attempt
            && worker.is_none_or(|worker| task.state.worker.as_deref() == Some(worker))
    })
}
