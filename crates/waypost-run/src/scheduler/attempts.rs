//! The attempts of this process, as the scheduler sees them.

use std::sync::Arc;

use waypost_core::{Lock, Plan, Status, Timestamp};
use waypost_exec::{AttemptKey, AttemptOutcome};

/// Why an attempt is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    TimedOut,
    NoLongerWanted,
    RunStopped,
    /// It has not begun, and nothing new begins.
    Withdrawn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptStage {
    /// The reservation is being written.
    Reserving,
    /// Durably queued, and waiting for a slot.
    Queued,
    /// Passed to the executor.
    Running,
    /// The work has ended, and the end is to be written.
    Ended,
}

#[derive(Clone, Debug)]
pub(super) struct ActiveAttempt {
    pub(super) locks: Vec<Lock>,
    pub(super) queue: Arc<str>,
    pub(super) timeout_seconds: Option<u32>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) stage: AttemptStage,
    /// Whether it occupies a slot of its queue.
    pub(super) has_slot: bool,
    /// When its executor began; `None` if that has not been reported.
    pub(super) started_at: Option<Timestamp>,
    /// The attempt whose slot it took. While that attempt's end is not written, the start of this one is not either, so
    /// that no version shows more running attempts than slots.
    pub(super) predecessor: Option<AttemptKey>,
    pub(super) ended_at: Option<Timestamp>,
    /// Why it is being stopped, since when, and whether by force.
    pub(super) stop: Option<(StopReason, Timestamp, bool)>,
    pub(super) ending: Option<AttemptOutcome>,
    /// Whether its lease is lost: another worker has the task, and nothing more is reported.
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

    /// Marks that it has a slot and was passed to its executor. Its time limit counts from now on.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.stage = AttemptStage::Running;
        self.deadline = self.timeout_seconds.map(|seconds| now.plus_seconds(u64::from(seconds)));
    }
}

/// Whether this attempt is in progress according to the plan and, if given, held by this worker.
pub(super) fn is_in_progress(plan: &Plan, key: &AttemptKey, worker: Option<&str>) -> bool {
    plan.task(key.task.as_str()).is_some_and(|task| {
        task.state.status == Status::Running
            && task.state.attempt == key.attempt
            && worker.is_none_or(|worker| task.state.worker.as_deref() == Some(worker))
    })
}
