//! The pending writes of a transaction besides the log. Versions that are committed together update a plan's summary
//! and index tables once, to the state after the last version. Knows no database.

use std::collections::HashMap;

use waypost_core::canonical::Hash;
use waypost_core::{ExternalTaskRef, Lock, PlanId, TaskId};

use crate::rows::{IndexChanges, Lease, PlanSummary};
use crate::stored_version::StoredVersion;

/// The pending writes of all plans.
#[derive(Default)]
pub(crate) struct PendingPlans(pub(crate) HashMap<PlanId, PendingPlan>);

impl PendingPlans {
    pub(crate) fn get(&self, plan: &PlanId) -> Option<&PendingPlan> {
        self.0.get(plan)
    }

    pub(crate) fn get_mut(&mut self, plan: &PlanId) -> Option<&mut PendingPlan> {
        self.0.get_mut(plan)
    }

    /// Returns whether any pending task waits for a task of another plan.
    pub(crate) fn has_waits(&self) -> bool {
        self.0.values().any(|plan| plan.waits.values().any(|waits| !waits.is_empty()))
    }

    /// Adds a plan with the key of its row, or returns the one that was added before.
    pub(crate) fn begin(&mut self, key: i64, head: &PlanSummary, replay_bytes: u64) -> &mut PendingPlan {
        let (running, waits) = (HashMap::new(), HashMap::new());
        let new = || PendingPlan { key, head: head.clone(), hash: None, replay_bytes, running, waits };
        self.0.entry(head.id.clone()).or_insert_with(new)
    }
}

/// The pending writes of one plan.
pub(crate) struct PendingPlan {
    /// The key of its row.
    pub(crate) key: i64,
    /// Its summary after the last version.
    pub(crate) head: PlanSummary,
    /// The hash of its last version.
    pub(crate) hash: Option<Hash>,
    /// The bytes that a reader has to replay since the latest snapshot.
    pub(crate) replay_bytes: u64,
    /// Tasks that started or were queued, with their leases and locks, and tasks that no longer run (`None`).
    pub(crate) running: HashMap<TaskId, Option<(Lease, Vec<Lock>)>>,
    /// Tasks with changed waits for other plans, each with all its current ones.
    pub(crate) waits: HashMap<TaskId, Vec<ExternalTaskRef>>,
}

impl PendingPlan {
    /// Adds the changes of one version.
    pub(crate) fn add(&mut self, head: &PlanSummary, version: &StoredVersion, changes: &IndexChanges) {
        self.head.clone_from(head);
        self.hash = version.hash;
        self.replay_bytes += version.events.len() as u64;
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
