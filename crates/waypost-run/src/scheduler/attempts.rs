//! Attempts that run in this process, as the scheduler sees them.

use std::sync::Arc;

use waypost_core::{Lock, Plan, Status, Timestamp};
use waypost_exec::{AttemptKey, Ending};

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
