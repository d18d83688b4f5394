//! What concerns the store as a whole: versions that are forgotten, versions that are taken over from another store, and
//! how much there is. Knows the columns, not when.

use rusqlite::{Connection, OptionalExtension, params};
use waypost_core::Timestamp;

use super::rows;
use crate::error::StoreError;
use crate::rows::{Pruned, Totals, VersionRecord};
use crate::store::Pruning;

/// What was forgotten of the plan with this number.
pub(super) fn pruned(connection: &Connection, key: i64) -> Result<Option<Pruned>, StoreError> {
    let sql = "SELECT up_to, at, by FROM pruned WHERE plan = ?1";
    Ok(rows::query(connection, sql, [key], |row| rows::pruned(row))?.pop())
}

/// What is kept in the place of forgotten events, if that is not of a later version than `at_most`.
pub(super) fn snapshot(
    connection: &Connection,
    key: i64,
    at_most: u64,
) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT up_to, bytes FROM pruned WHERE plan = ?1 AND up_to <= ?2")?;
    let found = statement
        .query_row(params![key, at_most as i64], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)));
    Ok(found.optional()?)
}

/// Empties the rows of these versions, and keeps what they led to.
pub(super) fn prune(connection: &Connection, key: i64, pruning: &Pruning<'_>) -> Result<(), StoreError> {
    let Pruned { up_to, at, by, .. } = pruning.pruned;
    let up_to = *up_to as i64;
    connection.execute(
        "UPDATE log SET events = '[]' WHERE plan = ?1 AND version <= ?2 AND events <> '[]'",
        params![key, up_to],
    )?;
    connection.execute("DELETE FROM snapshots WHERE plan = ?1 AND version <= ?2", params![key, up_to])?;
    connection.execute("DELETE FROM attempt_logs WHERE plan = ?1", [key])?;
    connection.execute(
        "INSERT OR REPLACE INTO pruned (plan, up_to, at, by, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![key, up_to, at.as_micros(), by.to_string(), pruning.snapshot],
    )?;
    connection
        .execute("UPDATE plans SET replay_bytes = 0 WHERE key = ?1 AND version = ?2", params![key, up_to])?;
    Ok(())
}

/// Writes versions into the log under the numbers that they have elsewhere.
pub(super) fn import_versions(connection: &Connection, entries: &[VersionRecord]) -> Result<(), StoreError> {
    let Some(first) = entries.first() else { return Ok(()) };
    let (key, mut bytes) = rows::take_up(connection, &first.plan)?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO log (sequence, plan, version, at, actor, command, events) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for entry in entries {
        let events = rows::json(&entry.events)?;
        bytes += events.len() as u64;
        let (sequence, version, at) = (entry.sequence as i64, entry.version as i64, entry.at.as_micros());
        statement.execute(params![
            sequence,
            key,
            version,
            at,
            entry.actor.to_string(),
            entry.command,
            events
        ])?;
    }
    let mut statement = connection.prepare_cached("UPDATE plans SET replay_bytes = ?2 WHERE key = ?1")?;
    statement.execute(params![key, bytes as i64])?;
    Ok(())
}

/// How much there is, by the columns of the heads.
pub(in crate::backends) fn totals(connection: &Connection, now: Timestamp) -> Result<Totals, StoreError> {
    let mut totals = Totals::default();
    let sql =
        "SELECT phase, count(*), sum(total), sum(ready), sum(blocked), sum(running), sum(done), sum(failed),
            sum(skipped), sum(cancelled), min(CASE WHEN phase = 'active' AND ready > 0 THEN updated_at END)
         FROM plans WHERE purged_at IS NULL AND archived = 0 GROUP BY phase";
    rows::query(connection, sql, [], |row| rows::add_phase(&mut totals, row))?;
    let one = |sql: &str| connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
    totals.archived = one("SELECT count(*) FROM plans WHERE purged_at IS NULL AND archived = 1")? as u64;
    totals.leases = one("SELECT count(*) FROM leases")? as u64;
    let mut statement = connection.prepare_cached("SELECT count(*) FROM leases WHERE until < ?1")?;
    totals.leases_overdue = statement.query_row([now.as_micros()], |row| row.get::<_, i64>(0))? as u64;
    Ok(totals)
}
