//! Who works on a store, and what they last said of themselves. A worker that died is found out by its silence; what it
//! worked on is decided by leases alone.

use serde::{Deserialize, Serialize};
use waypost_core::{PlanId, TaskId, Timestamp};

/// Seconds after which a worker that was not heard of any more is forgotten.
pub const WORKER_KEPT_SECONDS: u64 = 24 * 60 * 60;

/// Workers on one page of a list.
pub const WORKERS_PAGE_MAX: usize = 500;

/// Bytes of the end of an attempt's log of which a store keeps a copy.
pub const ATTEMPT_LOG_BYTES_MAX: usize = 64 * 1024;

/// What sort of worker it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerKind {
    /// It runs all active plans of its queues.
    Worker,
    /// It runs the plans that it was told to.
    Run,
}

/// A worker as it has registered itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its name, by which it stands in leases.
    pub name: String,
    /// The machine that it runs on.
    pub host: String,
    /// What sort of worker it is.
    pub kind: WorkerKind,
    /// The queues whose plans it runs.
    pub queues: Vec<String>,
    /// The plans that it was told to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanId>,
    /// The executors whose tasks it takes.
    pub executors: Vec<String>,
    /// Programs that it runs at the same time at most; nothing where only its queues bound it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// Its Waypost.
    pub version: String,
    /// When it registered.
    pub began: Timestamp,
    /// When it was last heard of.
    pub seen: Timestamp,
    /// Until when it is believed to be alive without another word.
    pub until: Timestamp,
    /// Whether it takes nothing new: it ends when what it runs has ended.
    #[serde(default)]
    pub draining: bool,
    /// Queues of which it wants a slot and has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// What is known of a worker at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// It was heard of in time.
    Alive,
    /// It was heard of in time, and takes nothing new.
    Draining,
    /// It should have been heard of, and its leases have not ended yet.
    Silent,
    /// Its leases have ended: other workers take its tasks.
    Dead,
}

impl WorkerState {
    /// In one word.
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
    /// What is known of it now, by the clock of its store.
    pub fn state(&self, now: Timestamp) -> WorkerState {
        let believed = self.until.as_micros() - self.seen.as_micros();
        // Signs of life come at least three times while one of them counts.
        let silent = now.as_micros() - self.seen.as_micros() > believed * 2 / 3;
        match () {
            () if now > self.until => WorkerState::Dead,
            () if silent => WorkerState::Silent,
            () if self.draining => WorkerState::Draining,
            () => WorkerState::Alive,
        }
    }

    /// Whether it takes up tasks of this queue, if it is alive.
    pub fn serves(&self, queue: &str) -> bool {
        self.kind == WorkerKind::Worker && self.queues.iter().any(|served| served == queue)
    }
}

/// Slots of a queue, for tasks that a request starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The queue.
    pub queue: String,
    /// Slots that the worker has besides those that the request asks for.
    pub own: u32,
    /// How many there are for all workers of the store together; nothing where the store does not count them.
    pub concurrency: Option<u32>,
}

/// A copy of the end of an attempt's log, for those who cannot reach the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLog {
    /// The plan.
    pub plan: PlanId,
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: u32,
    /// Who made it and has the whole log.
    pub worker: String,
    /// When the copy was made.
    pub at: Timestamp,
    /// Whether the attempt had ended by then.
    pub ended: bool,
    /// Bytes of the whole log.
    pub bytes: u64,
    /// Its end, at most [`ATTEMPT_LOG_BYTES_MAX`].
    pub text: String,
}
