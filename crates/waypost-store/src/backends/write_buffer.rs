//! One plan's share of what a transaction has yet to write beside the log. Versions that are committed together move its head
//! and the tables of its tasks once, to where the last one leaves them. Knows no database.

use std::collections::HashMap;

use waypost_core::{ExternalTaskRef, Lock, TaskId};

use crate::rows::{IndexChanges, Lease, PlanSummary};

/// One plan's share.
pub(crate) struct PendingPlan {
    /// The number of its row.
    pub(crate) key: i64,
    /// Its head after the last version.
    pub(crate) head: PlanSummary,
    /// What a reader has to replay since the latest snapshot.
    pub(crate) replay_bytes: u64,
    /// Tasks that began to run, with their leases and locks, and tasks that no longer do.
    pub(crate) running: HashMap<TaskId, Option<(Lease, Vec<Lock>)>>,
    /// Tasks whose waits elsewhere are now these.
    pub(crate) waits: HashMap<TaskId, Vec<ExternalTaskRef>>,
}

impl PendingPlan {
    /// Of a plan whose row has this number.
    pub(crate) fn new(key: i64, head: &PlanSummary, replay_bytes: u64) -> Self {
        Self { key, head: head.clone(), replay_bytes, running: HashMap::new(), waits: HashMap::new() }
    }

    /// Whether any task of it waits for tasks elsewhere from now on.
    pub(crate) fn has_waits(&self) -> bool {
        self.waits.values().any(|waits| !waits.is_empty())
    }

    /// Adds what one version changes.
    pub(crate) fn add(&mut self, head: &PlanSummary, bytes: u64, changes: &IndexChanges) {
        self.head.clone_from(head);
        self.replay_bytes += bytes;
        for task in &changes.stopped {
            self.running.insert(task.clone(), None);
        }
        for (lease, locks) in &changes.started {
            self.running.insert(lease.task.clone(), Some((lease.clone(), locks.clone())));
        }
        for (task, waits) in &changes.waits {
            self.waits.insert(task.clone(), waits.clone());
        }
    }
}
