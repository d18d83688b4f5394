//! The rows of workers, of what they have, and of the logs that they leave. Knows the columns, not who is alive.

use rusqlite::{Connection, params};
use waypost_core::{PlanId, TaskId, Timestamp};

use super::rows;
use crate::backends::in_memory_query;
use crate::error::StoreError;
use crate::rows::Page;
use crate::workers::{AttemptLog, Worker};

pub(super) fn one(connection: &Connection, name: &str) -> Result<Option<Worker>, StoreError> {
    let sql = "SELECT name, record FROM workers WHERE name = ?1";
    Ok(rows::query(connection, sql, [name], |row| rows::worker(row))?.pop())
}

pub(super) fn page(
    connection: &Connection,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<Worker>, StoreError> {
    let total: i64 = connection.query_row("SELECT count(*) FROM workers", [], |row| row.get(0))?;
    let sql = "SELECT name, record FROM workers WHERE name > ?1 ORDER BY name LIMIT ?2";
    let params = params![after.unwrap_or_default(), limit as i64 + 1];
    let items = rows::query(connection, sql, params, |row| rows::worker(row))?;
    Ok(in_memory_query::page_of_workers(items, total as u64, limit))
}

pub(super) fn put(connection: &Connection, worker: &Worker) -> Result<(), StoreError> {
    let mut statement = connection
        .prepare_cached("INSERT OR REPLACE INTO workers (name, until, record) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![worker.name, worker.until.as_micros(), rows::json(worker)?])?;
    Ok(())
}

pub(super) fn remove(connection: &Connection, name: &str) -> Result<(), StoreError> {
    connection.prepare_cached("DELETE FROM workers WHERE name = ?1")?.execute([name])?;
    Ok(())
}

pub(super) fn slots(
    connection: &Connection,
    queue: &str,
    now: Timestamp,
) -> Result<Vec<(String, u32)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT worker, count(*) FROM leases WHERE queue = ?1 AND (until IS NULL OR until >= ?2)
         GROUP BY worker ORDER BY worker",
    )?;
    let found = statement.query_map(params![queue, now.as_micros()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// The logs of one plan by task and attempt, after the one of `after`.
pub(super) fn logs(
    connection: &Connection,
    key: i64,
    plan: &PlanId,
    after: Option<(&TaskId, u32)>,
    limit: usize,
) -> Result<Vec<AttemptLog>, StoreError> {
    let sql = "SELECT task, attempt, worker, at, ended, bytes, text FROM attempt_logs
         WHERE plan = ?1 AND (task, attempt) > (?2, ?3) ORDER BY task, attempt LIMIT ?4";
    let (task, attempt) = after.map_or(("", 0), |(task, attempt)| (task.as_str(), attempt));
    rows::query(connection, sql, params![key, task, attempt, limit as i64], |row| {
        rows::attempt_log(row, plan)
    })
}

pub(super) fn put_log(connection: &Connection, key: i64, log: &AttemptLog) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO attempt_logs (plan, task, attempt, worker, at, ended, bytes, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let (task, at) = (log.task.as_str(), log.at.as_micros());
    statement.execute(params![
        key,
        task,
        log.attempt,
        log.worker,
        at,
        log.ended,
        log.bytes as i64,
        log.text
    ])?;
    Ok(())
}
