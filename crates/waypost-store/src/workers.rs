//! Workers of a store and their registrations. A dead worker is detected by missing heartbeats; leases alone decide
//! what happens to its tasks.

use serde::{Deserialize, Serialize};
use waypost_core::{Json, PlanId, TaskId, Timestamp};

/// Seconds after which the record of a worker without heartbeats is removed.
pub const WORKER_KEPT_SECONDS: u64 = 24 * 60 * 60;

/// Maximum number of workers on one page of a list.
pub const WORKERS_PAGE_MAX: usize = 500;

/// Maximum bytes of the end of an attempt's log that a store keeps as a copy.
pub const ATTEMPT_LOG_BYTES_MAX: usize = 64 * 1024;

/// The kind of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerKind {
    /// The worker runs all active plans of its queues.
    Worker,
    /// The worker runs the plans that it was started for.
    Run,
}

/// A worker as it has registered itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// The name of the worker, as its leases contain it.
    pub name: String,
    /// The machine that it runs on.
    pub host: String,
    /// The kind of the worker.
    pub kind: WorkerKind,
    /// The queues whose plans it runs.
    pub queues: Vec<String>,
    /// The plans that it was started for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanId>,
    /// The executors whose tasks it takes.
    pub executors: Vec<String>,
    /// Maximum number of programs that it runs at the same time; `None` if only its queues limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// The version of Waypost that it runs.
    pub version: String,
    /// When it registered.
    pub began: Timestamp,
    /// When it sent its last heartbeat.
    pub seen: Timestamp,
    /// When it counts as dead, unless it sends another heartbeat.
    pub until: Timestamp,
    /// Whether it takes no new tasks: it exits when its running tasks have ended.
    #[serde(default)]
    pub draining: bool,
    /// What its executors and checks stand for, as JSON without secrets: approvers see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions: Option<Json>,
    /// Queues of which it needs a slot and has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// The state of a worker at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// Its last heartbeat is recent.
    Alive,
    /// Its last heartbeat is recent, and it takes no new tasks.
    Draining,
    /// A heartbeat is overdue, but its leases have not expired yet.
    Silent,
    /// Its leases have expired: other workers take its tasks.
    Dead,
}

impl WorkerState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Alive, Self::Draining, Self::Silent, Self::Dead];

    /// Returns the name of the state, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Draining => "draining",
            Self::Silent => "silent",
            Self::Dead => "dead",
        }
    }
}

impl Worker {
    /// Creates the record of a worker that has not registered yet: without executors, and with no time set.
    pub fn new(name: &str, host: &str, kind: WorkerKind, queues: Vec<String>) -> Self {
        let never = Timestamp::from_micros(0);
        Self {
            name: name.to_owned(),
            host: host.to_owned(),
            kind,
            queues,
            plans: Vec::new(),
            executors: Vec::new(),
            capacity: None,
            version: String::new(),
            began: never,
            seen: never,
            until: never,
            draining: false,
            definitions: None,
            waits_for: Vec::new(),
        }
    }

    /// Returns the state of the worker at `now`, by the clock of its store.
    pub fn state(&self, now: Timestamp) -> WorkerState {
        let believed = self.until.as_micros() - self.seen.as_micros();
        // At least three heartbeats come in the time for which one is valid, so one is overdue after two thirds.
        let silent = now.as_micros() - self.seen.as_micros() > believed * 2 / 3;
        match () {
            () if now > self.until => WorkerState::Dead,
            () if silent => WorkerState::Silent,
            () if self.draining => WorkerState::Draining,
            () => WorkerState::Alive,
        }
    }

    /// Returns whether a live worker of this record takes tasks of the queue.
    pub fn serves(&self, queue: &str) -> bool {
        self.kind == WorkerKind::Worker && self.queues.iter().any(|served| served == queue)
    }
}

/// Slots of a queue for the tasks that a request starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The name of the queue.
    pub queue: String,
    /// The slots that the worker already holds, without those that the request needs.
    pub own: u32,
    /// The number of slots for all workers of the store together; `None` where the store does not count them.
    pub concurrency: Option<u32>,
}

/// A copy of the end of an attempt's log, for readers that cannot access the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLog {
    /// The id of the plan.
    pub plan: PlanId,
    /// The id of the task.
    pub task: TaskId,
    /// The number of the attempt.
    pub attempt: u32,
    /// The worker that made the attempt and has the whole log.
    pub worker: String,
    /// When the copy was made.
    pub at: Timestamp,
    /// Whether the attempt had ended by then.
    pub ended: bool,
    /// The size of the whole log in bytes.
    pub bytes: u64,
    /// The end of the log, at most [`ATTEMPT_LOG_BYTES_MAX`] bytes.
    pub text: String,
}
