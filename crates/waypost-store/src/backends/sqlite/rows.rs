//! Converts rows to values and back. Knows the columns, but not when to read or write them.

use rusqlite::types::{FromSql, Value};
use rusqlite::{Connection, OptionalExtension, Params, Row, params, params_from_iter};
use waypost_core::canonical::Hash;
use waypost_core::{ExternalTaskRef, PlanId, TaskId, Timestamp};

use crate::backends::columns::Columns;
pub(super) use crate::backends::columns::{
    LEASE, SUBSCRIPTION, add_plans, attempt_log, entry, hash, head, held_lock, json, lease, number, plan_id,
    plan_state, pruned, stored_version, subscription, wait, worker,
};
use crate::backends::list_query::{self, Dialect, ListQuery};
use crate::error::{Result, StoreError};
use crate::rows::{IndexRows, Lease, Page, PlanSummary, Query};
use crate::stored_version::StoredVersion;

impl Columns for Row<'_> {
    fn stored_text(&self, column: usize) -> Result<Option<&str>> {
        let text = self.get_ref(column)?.as_str_or_null();
        text.map_err(|error| StoreError::Database(error.to_string()))
    }

    fn number(&self, column: usize) -> Result<Option<i64>> {
        Ok(self.get(column)?)
    }

    fn bytes(&self, column: usize) -> Result<Option<Vec<u8>>> {
        Ok(self.get(column)?)
    }

    fn flag(&self, column: usize) -> Result<bool> {
        Ok(self.get(column)?)
    }
}

/// Returns all rows that a statement finds.
pub(super) fn query<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut from_row: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(params)?;
    let mut items = Vec::new();
    while let Some(row) = found.next()? {
        items.push(from_row(row)?);
    }
    Ok(items)
}

/// Returns the first column of the first row that a statement finds.
pub(super) fn value<T: FromSql>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> Result<Option<T>> {
    Ok(connection.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?)
}

/// Runs a statement. Returns how many rows it changed.
pub(super) fn execute(connection: &Connection, sql: &str, params: impl Params) -> Result<usize> {
    Ok(connection.prepare_cached(sql)?.execute(params)?)
}

/// The columns of a plan's row that an append continues from.
pub(super) struct PlanRow {
    pub(super) key: i64,
    /// The bytes that a reader has to replay.
    pub(super) replay_bytes: u64,
    pub(super) version: u64,
    /// The hash of that version.
    pub(super) hash: Option<Hash>,
}

/// Returns what a plan's row contains; inserts a row for a new plan.
pub(super) fn take_up(connection: &Connection, plan: &PlanId) -> Result<PlanRow> {
    let sql = "SELECT key, replay_bytes, version, hash FROM plans WHERE id = ?1";
    let found = query(connection, sql, [plan.as_str()], |row| {
        let (key, replay_bytes, version) = (number(row, 0)?, number(row, 1)?, number(row, 2)?);
        Ok(PlanRow { key, replay_bytes, version, hash: hash(row, 3)? })
    })?;
    if let Some(found) = found.into_iter().next() {
        return Ok(found);
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO plans (id, version, title, status, phase, owner, queue, archived, awaits_approval,
            total, ready, blocked, running, done, failed, skipped, cancelled)
         VALUES (?1, 0, '', '', 'draft', '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) RETURNING key",
    )?;
    let key = insert.query_row([plan.as_str()], |row| row.get(0))?;
    Ok(PlanRow { key, replay_bytes: 0, version: 0, hash: None })
}

/// Writes a summary into its row; `None` leaves the hash as it is.
pub(super) fn put_head(
    connection: &Connection,
    head: &PlanSummary,
    hash: Option<Hash>,
    replay_bytes: u64,
) -> Result<()> {
    let counts = &head.counts;
    let mut update = connection.prepare_cached(
        "UPDATE plans SET version = ?2, title = ?3, status = ?4, phase = ?5, owner = ?6, queue = ?7, created_by = ?8,
            created_at = ?9, updated_at = ?10, archived = ?11, awaits_approval = ?12, total = ?13, ready = ?14,
            blocked = ?15, running = ?16, done = ?17, failed = ?18, skipped = ?19, cancelled = ?20, replay_bytes = ?21, urgency = ?22,
            asking = ?23, goals = ?24, atomic = ?25, hash = coalesce(?26, hash)
         WHERE id = ?1",
    )?;
    update.execute(params![
        head.id.as_str(),
        head.version as i64,
        head.title,
        head.status,
        head.phase.as_str(),
        head.owner,
        head.queue,
        head.created_by.as_ref().map(ToString::to_string),
        head.created_at.map(Timestamp::as_micros),
        head.updated_at.map(Timestamp::as_micros),
        head.archived,
        head.awaits_approval,
        counts.total,
        counts.ready,
        counts.blocked,
        counts.running,
        counts.done,
        counts.failed,
        counts.skipped,
        counts.cancelled,
        replay_bytes as i64,
        head.urgency,
        head.asking,
        head.goals,
        head.atomic,
        hash,
    ])?;
    Ok(())
}

/// Writes a version into the log.
pub(super) fn put_version(connection: &Connection, key: i64, version: &StoredVersion) -> Result<()> {
    let sql = "INSERT INTO log (sequence, plan, version, at, actor, command, events, hash, chained_from)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let StoredVersion { sequence, version, at, actor, command, events, hash, chained_from, .. } = version;
    // A version of an older store has no hash. Only processes that do not know of hashes insert NULL, and are refused.
    let hash = hash.as_ref().map_or(&[][..], |hash| &hash[..]);
    let (sequence, version, at) = (*sequence as i64, *version as i64, at.as_micros());
    let chained_from = chained_from.map(|version| version as i64);
    let params = params![sequence, key, version, at, actor, command, events, hash, chained_from];
    execute(connection, sql, params).map(drop)
}

const DIALECT: Dialect = Dialect {
    table: "plans",
    parameter: '?',
    flag: |column, set| format!("{column} = {}", u8::from(set)),
    latest_first: "DESC",
    text: str::to_owned,
    search: |text| format!("%{}%", text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")),
    contains: |column, parameter| format!("{column} LIKE {parameter} ESCAPE '\\'"),
};

/// Returns one page of plan summaries.
pub(super) fn heads(connection: &Connection, query: &Query) -> Result<Page<PlanSummary>> {
    let list = ListQuery::new(query, &DIALECT);
    let value = |value: &list_query::Value| match value {
        list_query::Value::Text(text) => Value::from(text.clone()),
        list_query::Value::Number(number) => Value::from(*number),
    };
    let values: Vec<Value> = list.values.iter().map(value).collect();
    let total: i64 = connection
        .prepare_cached(&list.count)?
        .query_row(params_from_iter(&values[..list.counted_by]), |row| row.get(0))?;
    let items = self::query(connection, &list.page, params_from_iter(&values), |row| head(row))?;
    Ok(list_query::page(query, items, total as u64))
}

/// Removes the rows of one task from an index table: `leases`, `locks` or `waits`.
pub(super) fn drop_rows(connection: &Connection, table: &str, key: i64, task: &TaskId) -> Result<()> {
    let sql = format!("DELETE FROM {table} WHERE plan = ?1 AND task = ?2");
    execute(connection, &sql, params![key, task.as_str()]).map(drop)
}

/// Returns whether any task of a plan holds a lock.
pub(super) fn holds_locks(connection: &Connection, key: i64) -> Result<bool> {
    Ok(connection.prepare_cached("SELECT 1 FROM locks WHERE plan = ?1 LIMIT 1")?.exists([key])?)
}

pub(super) fn put_lease(connection: &Connection, key: i64, lease: &Lease) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO leases
            (plan, task, attempt, worker, until, since, queue, seconds, progress, progressed_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let Lease { task, attempt, worker, until, seconds, since, queue, progress, .. } = lease;
    let (until, since) = (until.map(Timestamp::as_micros), since.map(Timestamp::as_micros));
    let (text, at) = progress.as_ref().map(|progress| (&progress.text, progress.at.as_micros())).unzip();
    let params = params![key, task.as_str(), attempt, worker, until, since, queue, seconds, text, at];
    execute(connection, sql, params).map(drop)
}

pub(super) fn put_lock(
    connection: &Connection,
    key: i64,
    task: &TaskId,
    lock: &waypost_core::Lock,
) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO locks (key, plan, task, shared) VALUES (?1, ?2, ?3, ?4)";
    let shared = lock.mode == waypost_core::LockMode::Shared;
    execute(connection, sql, params![lock.key, key, task.as_str(), shared]).map(drop)
}

pub(super) fn put_wait(connection: &Connection, key: i64, task: &TaskId, on: &ExternalTaskRef) -> Result<()> {
    let sql = "INSERT INTO waits (plan, task, on_agent, on_plan, on_task) VALUES (?1, ?2, ?3, ?4, ?5)";
    let plan = on.plan.as_ref().map(PlanId::as_str);
    let params = params![key, task.as_str(), on.agent, plan, on.task.as_str()];
    execute(connection, sql, params).map(drop)
}

pub(super) fn replace_index(connection: &Connection, key: i64, index: &IndexRows) -> Result<()> {
    for table in ["leases", "locks", "waits"] {
        connection.execute(&format!("DELETE FROM {table} WHERE plan = ?1"), [key])?;
    }
    for lease in &index.leases {
        put_lease(connection, key, lease)?;
    }
    for held in &index.locks {
        put_lock(connection, key, &held.task, &held.lock)?;
    }
    for wait in &index.waits {
        put_wait(connection, key, &wait.task, &wait.on)?;
    }
    Ok(())
}
