//! Fencing numbers: the sequence number of the write that gave a task its locks. A later holder of the same lock was written
//! later, so that its number is higher.

use std::collections::BTreeMap;

use waypost_core::{PlanId, TaskId};
use waypost_exec::AttemptKey;
use waypost_store::PlanStore;

/// The writes that gave tasks their locks.
#[derive(Debug, Default)]
pub(super) struct Fences {
    /// The version of the plan, by task.
    versions: BTreeMap<(PlanId, TaskId), u64>,
    /// The plan and version that were looked up last: one write starts many tasks.
    last: Option<(PlanId, u64, u64)>,
}

impl Fences {
    /// Notes the version that gave these tasks their locks.
    pub(super) fn note(&mut self, plan: &PlanId, started: Vec<TaskId>, version: u64) {
        self.versions.extend(started.into_iter().map(|task| ((plan.clone(), task), version)));
    }

    pub(super) fn forget(&mut self, key: &AttemptKey) {
        self.versions.remove(&(key.plan.clone(), key.task.clone()));
    }

    /// Returns the fencing number of an attempt that has its locks.
    pub(super) fn of(&mut self, plans: &PlanStore, key: &AttemptKey) -> Option<u64> {
        let Some(&version) = self.versions.get(&(key.plan.clone(), key.task.clone())) else {
            // After a write without an answer. While the attempt has its locks, the end of the log serves as well: it
            // comes after all earlier holders, and before all later ones.
            return plans.latest().ok();
        };
        if let Some((plan, known, sequence)) = &self.last
            && (plan, *known) == (&key.plan, version)
        {
            return Some(*sequence);
        }
        let sequence = plans.sequence_of(&key.plan, version).ok()??;
        self.last = Some((key.plan.clone(), version, sequence));
        Some(sequence)
    }
}
