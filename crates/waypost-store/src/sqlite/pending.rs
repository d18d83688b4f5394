//! What a transaction has yet to write beside the log: heads and the tables of tasks. Versions that are committed together
//! move them once, to where the last one leaves them.

use std::collections::HashMap;

use rusqlite::Connection;
use waypost_core::{Elsewhere, Lock, PlanId, TaskId};

use super::rows;
use crate::record::{Head, IndexChanges, Lease};
use crate::store::StoreError;

/// One plan's share.
pub(super) struct PendingPlan {
    pub(super) key: i64,
    pub(super) head: Head,
    /// What a reader has to replay since the latest snapshot.
    pub(super) replay_bytes: u64,
    running: HashMap<TaskId, Option<(Lease, Vec<Lock>)>>,
    waits: HashMap<TaskId, Vec<Elsewhere>>,
}

/// All plans' shares.
#[derive(Default)]
pub(super) struct Pending {
    plans: HashMap<PlanId, PendingPlan>,
}

impl Pending {
    pub(super) fn get(&self, plan: &PlanId) -> Option<&PendingPlan> {
        self.plans.get(plan)
    }

    pub(super) fn get_mut(&mut self, plan: &PlanId) -> Option<&mut PendingPlan> {
        self.plans.get_mut(plan)
    }

    /// Whether any of them changes who waits for tasks elsewhere.
    pub(super) fn has_waits(&self) -> bool {
        self.plans.values().any(|plan| plan.waits.values().any(|waits| !waits.is_empty()))
    }

    /// Takes a plan up whose row has this number.
    pub(super) fn begin(&mut self, key: i64, head: &Head, replay_bytes: u64) -> &mut PendingPlan {
        self.plans.entry(head.id.clone()).or_insert_with(|| PendingPlan {
            key,
            head: head.clone(),
            replay_bytes,
            running: HashMap::new(),
            waits: HashMap::new(),
        })
    }

    /// Writes everything.
    pub(super) fn flush(&mut self, connection: &Connection) -> Result<(), StoreError> {
        for (_, plan) in self.plans.drain() {
            let key = plan.key;
            rows::put_head(connection, &plan.head, plan.replay_bytes)?;
            let had_locks = !plan.running.is_empty() && rows::holds_locks(connection, key)?;
            for (task, running) in &plan.running {
                if had_locks {
                    rows::drop_locks(connection, key, task)?;
                }
                let Some((lease, locks)) = running else {
                    rows::drop_lease(connection, key, task)?;
                    continue;
                };
                rows::put_lease(connection, key, lease)?;
                for lock in locks {
                    rows::put_lock(connection, key, task, lock)?;
                }
            }
            for (task, waits) in &plan.waits {
                rows::drop_waits(connection, key, task)?;
                for on in waits {
                    rows::put_wait(connection, key, task, on)?;
                }
            }
        }
        Ok(())
    }
}

impl PendingPlan {
    /// Adds what one version changes.
    pub(super) fn add(&mut self, head: &Head, bytes: u64, changes: &IndexChanges) {
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
