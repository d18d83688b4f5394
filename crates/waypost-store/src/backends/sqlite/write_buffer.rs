//! Writes what a transaction has buffered besides the log: plan summaries and index tables.

use rusqlite::Connection;

use super::rows;
use crate::backends::write_buffer::PendingPlans;
use crate::error::Result;

/// Writes everything that is buffered.
pub(super) fn flush(pending: &mut PendingPlans, connection: &Connection) -> Result<()> {
    for (_, plan) in pending.0.drain() {
        let key = plan.key;
        rows::put_head(connection, &plan.head, plan.hash, plan.replay_bytes)?;
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
