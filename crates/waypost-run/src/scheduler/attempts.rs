//! Attempts that run in this process, as the scheduler sees them.

use std::sync::Arc;

use waypost_core::{Lock, Plan, Status, Timestamp};
use waypost_exec::{AttemptKey, AttemptOutcome};

/// Why an attempt is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    TimedOut,
    NoLongerWanted,
    RunStopped,
}

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptStage {
    /// Its reservation is being written.
    Reserving,
    /// It is durably queued, and waits for a slot.
    Queued,
    /// Its work was handed to its executor.
    Running,
    /// Its work has ended, and that is to be written.
    Ended,
}

#[derive(Clone, Debug)]
pub(super) struct ActiveAttempt {
    pub(super) locks: Vec<Lock>,
    pub(super) queue: Arc<str>,
    pub(super) timeout_seconds: Option<u32>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) stage: AttemptStage,
    /// Whether a slot of its queue is taken by it.
    pub(super) has_slot: bool,
    /// When its executor began; nothing: not as far as is known.
    pub(super) started_at: Option<Timestamp>,
    /// The attempt whose slot it took. While that one's end is not written, its own start is not either: no version says that
    /// more run than have slots.
    pub(super) predecessor: Option<AttemptKey>,
    /// When its program ended.
    pub(super) ended_at: Option<Timestamp>,
    /// Why it is made to end, since when, and whether by force.
    pub(super) stop: Option<(StopReason, Timestamp, bool)>,
    pub(super) ending: Option<AttemptOutcome>,
    /// Whether its lease is gone: the task is somebody else's, and nothing more is said of it.
    pub(super) lost: bool,
}

impl ActiveAttempt {
    pub(super) fn reserving(
        locks: Vec<Lock>,
        queue: Arc<str>,
        timeout_seconds: Option<u32>,
        has_slot: bool,
    ) -> Self {
        Self {
            locks,
            queue,
            timeout_seconds,
            deadline: None,
            stage: AttemptStage::Reserving,
            has_slot,
            started_at: None,
            predecessor: None,
            ended_at: None,
            stop: None,
            ending: None,
            lost: false,
        }
    }

    /// It has a slot and is handed to its executor: from now on its time counts.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.stage = AttemptStage::Running;
        self.deadline = self.timeout_seconds.map(|seconds| now.plus_seconds(u64::from(seconds)));
    }
}

/// Whether a plan says that somebody has this attempt, and, if it is asked, this worker.
pub(super) fn is_in_progress(plan: &Plan, key: &AttemptKey, worker: Option<&str>) -> bool {
    plan.task(key.task.as_str()).is_some_and(|task| {
        task.state.status == Status::Running
            && task.state.attempt == key.attempt
            && worker.is_none_or(|worker| task.state.worker.as_deref() == Some(worker))
    })
}
