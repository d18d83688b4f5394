//! What a transaction has yet to write beside the log: heads and the tables of tasks. Versions that are committed together
//! move them once, to where the last one leaves them.

use std::collections::HashMap;

use rusqlite::Connection;
use waypost_core::PlanId;

use super::rows;
use crate::backends::write_buffer::PendingPlan;
use crate::error::StoreError;
use crate::rows::PlanSummary;

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
        self.plans.values().any(PendingPlan::has_waits)
    }

    /// Takes a plan up whose row has this number.
    pub(super) fn begin(&mut self, key: i64, head: &PlanSummary, replay_bytes: u64) -> &mut PendingPlan {
        self.plans.entry(head.id.clone()).or_insert_with(|| PendingPlan::new(key, head, replay_bytes))
    }

    /// Writes everything.
    pub(super) fn flush(&mut self, connection: &Connection) -> Result<(), StoreError> {
        for (_, plan) in self.plans.drain() {
            let key = plan.key;
            rows::put_head(connection, &plan.head, plan.replay_bytes)?;
            let had_locks = !plan.running.is_empty() && rows::holds_locks(connection, key)?;
            for (task, running) in &plan.running {
                if had_locks {
                    rows::drop_rows(connection, "locks", key, task)?;
                }
                let Some((lease, locks)) = running else {
                    rows::drop_rows(connection, "leases", key, task)?;
                    continue;
                };
                rows::put_lease(connection, key, lease)?;
                for lock in locks {
                    rows::put_lock(connection, key, task, lock)?;
                }
            }
            for (task, waits) in &plan.waits {
                rows::drop_rows(connection, "waits", key, task)?;
                for on in waits {
                    rows::put_wait(connection, key, task, on)?;
                }
            }
        }
        Ok(())
    }
}
