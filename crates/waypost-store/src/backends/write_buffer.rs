//! What a transaction has yet to write beside the log. Versions that are committed together move a plan's head and the tables
//! of its tasks once, to where the last one leaves them. Knows no database.

use std::collections::HashMap;

use waypost_core::{ExternalTaskRef, Lock, PlanId, TaskId};

use crate::rows::{IndexChanges, Lease, PlanSummary};

/// All plans' shares.
#[derive(Default)]
pub(crate) struct PendingPlans(pub(crate) HashMap<PlanId, PendingPlan>);

impl PendingPlans {
    pub(crate) fn get(&self, plan: &PlanId) -> Option<&PendingPlan> {
        self.0.get(plan)
    }

    pub(crate) fn get_mut(&mut self, plan: &PlanId) -> Option<&mut PendingPlan> {
        self.0.get_mut(plan)
    }

    /// Whether any task of them waits for tasks elsewhere from now on.
    pub(crate) fn has_waits(&self) -> bool {
        self.0.values().any(|plan| plan.waits.values().any(|waits| !waits.is_empty()))
    }

    /// Takes a plan up whose row has this number.
    pub(crate) fn begin(&mut self, key: i64, head: &PlanSummary, replay_bytes: u64) -> &mut PendingPlan {
        let (running, waits) = (HashMap::new(), HashMap::new());
        let new = || PendingPlan { key, head: head.clone(), replay_bytes, running, waits };
        self.0.entry(head.id.clone()).or_insert_with(new)
    }
}

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
