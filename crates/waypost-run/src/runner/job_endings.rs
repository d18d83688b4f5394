//! Remote jobs that are being ended, each on a thread of its own.

use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::Instant;

use waypost_config::ExecutionEnv;
use waypost_core::{PlanId, TaskId};
use waypost_exec::remove_remote_notes;

/// A task, by which notes are grouped.
pub(super) type TaskKey = (PlanId, TaskId);

/// Jobs that are being ended, and when those that could not be are tried again.
#[derive(Debug, Default)]
pub(super) struct Endings {
    pub(super) threads: BTreeMap<TaskKey, JoinHandle<Result<(), String>>>,
    pub(super) again_at: BTreeMap<TaskKey, Instant>,
    /// Jobs that could not be ended and were reported: once is enough.
    pub(super) reported: Vec<TaskKey>,
}

impl Endings {
    /// Waits for the jobs that are being ended; each takes a few seconds at most.
    pub(super) fn finish(&mut self, around: &ExecutionEnv) {
        for (_, thread) in std::mem::take(&mut self.threads) {
            let _panicked = thread.join();
        }
        remove_remote_notes(around);
    }
}
