//! Maintenance of the store as a whole: pruned versions, versions imported from another store, and totals. Knows the
//! columns, but not when to use them.

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use waypost_core::Timestamp;

use super::rows;
use crate::error::Result;
use crate::rows::{Pruned, Totals};
use crate::store::Pruning;
use crate::stored_version::StoredVersion;

/// Returns which versions of the plan with this key were pruned.
pub(super) fn pruned(connection: &Connection, key: i64) -> Result<Option<Pruned>> {
    let sql = "SELECT up_to, at, by FROM pruned WHERE plan = ?1";
    Ok(rows::query(connection, sql, [key], |row| rows::pruned(row))?.pop())
}

/// Returns the state kept in place of pruned events, unless its version is later than `at_most`.
pub(super) fn snapshot(connection: &Connection, key: i64, at_most: u64) -> Result<Option<(u64, Vec<u8>)>> {
    let mut statement =
        connection.prepare_cached("SELECT up_to, bytes FROM pruned WHERE plan = ?1 AND up_to <= ?2")?;
    let found = statement
        .query_row(params![key, at_most as i64], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)));
    Ok(found.optional()?)
}

/// Empties the rows of these versions, and keeps the state that they led to.
pub(super) fn prune(connection: &Connection, key: i64, pruning: &Pruning<'_>) -> Result<()> {
    let Pruned { up_to, at, by, .. } = pruning.pruned;
    let up_to = *up_to as i64;
    let there = params![key, up_to];
    let sql = "UPDATE log SET events = '[]' WHERE plan = ?1 AND version <= ?2 AND events <> '[]'";
    connection.execute(sql, there)?;
    connection.execute("DELETE FROM snapshots WHERE plan = ?1 AND version <= ?2", there)?;
    connection.execute("DELETE FROM attempt_logs WHERE plan = ?1", [key])?;
    let sql = "INSERT OR REPLACE INTO pruned (plan, up_to, at, by, bytes) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![key, up_to, at.as_micros(), by.to_string(), pruning.snapshot])?;
    connection.execute("UPDATE plans SET replay_bytes = 0 WHERE key = ?1 AND version = ?2", there)?;
    Ok(())
}

/// Writes versions of another store into the log with their sequence numbers.
pub(super) fn import_versions(connection: &Connection, entries: &[StoredVersion]) -> Result<()> {
    let Some(last) = entries.last() else { return Ok(()) };
    let rows::PlanRow { key, replay_bytes, .. } = rows::take_up(connection, &last.plan)?;
    for entry in entries {
        rows::put_version(connection, key, entry)?;
    }
    let bytes = replay_bytes + entries.iter().map(|entry| entry.events.len() as u64).sum::<u64>();
    let sql = "UPDATE plans SET replay_bytes = ?2, hash = ?3 WHERE key = ?1";
    rows::execute(connection, sql, params![key, bytes as i64, last.hash]).map(drop)
}

/// Computes the totals from the columns of the plan summaries.
pub(in crate::backends) fn totals(connection: &Connection, now: Timestamp) -> Result<Totals> {
    let mut totals = Totals::default();
    let sql =
        "SELECT phase, queue, count(*), sum(total), sum(ready), sum(blocked), sum(running), sum(done), sum(failed),
            sum(skipped), sum(cancelled), min(CASE WHEN ready > 0 THEN updated_at END)
         FROM plans WHERE purged_at IS NULL AND archived = 0 GROUP BY phase, queue";
    rows::query(connection, sql, [], |row| rows::add_plans(&mut totals, row))?;
    let count = |sql: &str, params: &[i64]| {
        rows::value::<i64>(connection, sql, params_from_iter(params)).map(|count| count.unwrap_or(0) as u64)
    };
    totals.archived = count("SELECT count(*) FROM plans WHERE purged_at IS NULL AND archived = 1", &[])?;
    totals.leases = count("SELECT count(*) FROM leases", &[])?;
    totals.leases_overdue = count("SELECT count(*) FROM leases WHERE until < ?1", &[now.as_micros()])?;
    Ok(totals)
}
