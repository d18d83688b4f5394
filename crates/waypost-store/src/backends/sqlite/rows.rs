//! From rows to values and back. Knows the columns, not when to read or write them.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Params, Row, params, params_from_iter};
use waypost_core::{Counts, ExternalTaskRef, LockMode, Phase, PlanId, TaskId, Timestamp};

use crate::backends::list_query::{self, Dialect, ListQuery};
use crate::error::StoreError;
use crate::rows::{HeldLock, IndexRows, Lease, Page, PlanSummary, Query, TaskProgress, VersionRecord, Wait};

fn corrupt(what: String, detail: impl ToString) -> StoreError {
    StoreError::Corrupt { what, detail: detail.to_string() }
}

/// All rows that a statement finds.
pub(super) fn query<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut from_row: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(params)?;
    let mut items = Vec::new();
    while let Some(row) = found.next()? {
        items.push(from_row(row)?);
    }
    Ok(items)
}

pub(super) fn plan_id(text: String) -> Result<PlanId, StoreError> {
    PlanId::new(text.clone()).map_err(|error| corrupt(format!("the row of plan {text:?}"), error))
}

pub(super) fn task_id(text: String) -> Result<TaskId, StoreError> {
    TaskId::new(text.clone()).map_err(|error| corrupt(format!("a row of task {text:?}"), error))
}

fn phase(id: &str, word: &str) -> Result<Phase, StoreError> {
    let found = Phase::ALL.into_iter().find(|phase| phase.as_str() == word);
    found.ok_or_else(|| corrupt(format!("the row of plan {id}"), format!("{word:?} is no phase")))
}

pub(super) fn head(row: &Row<'_>) -> Result<PlanSummary, StoreError> {
    let id: String = row.get(0)?;
    let created_by: Option<String> = row.get(7)?;
    let created_by = created_by.map(|actor| actor.parse()).transpose();
    Ok(PlanSummary {
        version: row.get::<_, i64>(1)? as u64,
        title: row.get(2)?,
        status: row.get(3)?,
        phase: phase(&id, &row.get::<_, String>(4)?)?,
        owner: row.get(5)?,
        queue: row.get(6)?,
        created_by: created_by.map_err(|error| corrupt(format!("the row of plan {id}"), error))?,
        created_at: row.get::<_, Option<i64>>(8)?.map(Timestamp::from_micros),
        updated_at: row.get::<_, Option<i64>>(9)?.map(Timestamp::from_micros),
        archived: row.get(10)?,
        awaits_approval: row.get(11)?,
        counts: Counts {
            total: row.get(12)?,
            ready: row.get(13)?,
            blocked: row.get(14)?,
            running: row.get(15)?,
            done: row.get(16)?,
            failed: row.get(17)?,
            skipped: row.get(18)?,
            cancelled: row.get(19)?,
            ..Counts::default()
        }
        .with_queued(),
        urgency: row.get(20)?,
        asking: row.get(21)?,
        goals: row.get(22)?,
        atomic: row.get(23)?,
        id: plan_id(id)?,
    })
}

/// The number of a plan's rows, and what a reader has to replay; a plan that is new gets its row.
pub(super) fn take_up(connection: &Connection, plan: &PlanId) -> Result<(i64, u64), StoreError> {
    let mut statement = connection.prepare_cached("SELECT key, replay_bytes FROM plans WHERE id = ?1")?;
    let found = statement.query_row([plan.as_str()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)));
    if let Some(found) = found.optional()? {
        return Ok(found);
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO plans (id, version, title, status, phase, owner, queue, archived, awaits_approval,
            total, ready, blocked, running, done, failed, skipped, cancelled)
         VALUES (?1, 0, '', '', 'draft', '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) RETURNING key",
    )?;
    Ok((insert.query_row([plan.as_str()], |row| row.get(0))?, 0))
}

/// Writes a head into its row.
pub(super) fn put_head(
    connection: &Connection,
    head: &PlanSummary,
    replay_bytes: u64,
) -> Result<(), StoreError> {
    let counts = &head.counts;
    let mut update = connection.prepare_cached(
        "UPDATE plans SET version = ?2, title = ?3, status = ?4, phase = ?5, owner = ?6, queue = ?7, created_by = ?8,
            created_at = ?9, updated_at = ?10, archived = ?11, awaits_approval = ?12, total = ?13, ready = ?14,
            blocked = ?15, running = ?16, done = ?17, failed = ?18, skipped = ?19, cancelled = ?20, replay_bytes = ?21, urgency = ?22,
            asking = ?23, goals = ?24, atomic = ?25
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
    ])?;
    Ok(())
}

pub(super) fn entry(row: &Row<'_>, plan: PlanId) -> Result<VersionRecord, StoreError> {
    let version = row.get::<_, i64>(1)? as u64;
    let what = || format!("version {version} of plan {plan}");
    let actor: String = row.get(3)?;
    let events: String = row.get(5)?;
    Ok(VersionRecord {
        sequence: row.get::<_, i64>(0)? as u64,
        version,
        at: Timestamp::from_micros(row.get(2)?),
        actor: actor.parse().map_err(|error| corrupt(what(), error))?,
        command: row.get(4)?,
        events: serde_json::from_str(&events).map_err(|error| corrupt(what(), error))?,
        plan,
    })
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

/// One page of heads.
pub(super) fn heads(connection: &Connection, query: &Query) -> Result<Page<PlanSummary>, StoreError> {
    let list = ListQuery::new(query, &DIALECT);
    let value = |value: &list_query::Value| match value {
        list_query::Value::Text(text) => Value::from(text.clone()),
        list_query::Value::Number(number) => Value::from(*number),
    };
    let values: Vec<Value> = list.values.iter().map(value).collect();
    let total: i64 = connection
        .prepare_cached(&list.count)?
        .query_row(params_from_iter(&values[..list.counted_by]), |row| row.get(0))?;
    let items = self::query(connection, &list.page, params_from_iter(&values), head)?;
    Ok(list_query::page(query, items, total as u64))
}

/// The columns of a lease `l` of a plan `p`, in the order of [`lease`].
pub(super) const LEASE: &str = "p.id, l.task, l.attempt, l.worker, l.until, l.since, l.queue, l.seconds,
    l.progress, l.progressed_at";

pub(super) fn lease(row: &Row<'_>) -> Result<Lease, StoreError> {
    Ok(Lease {
        plan: plan_id(row.get(0)?)?,
        task: task_id(row.get(1)?)?,
        attempt: row.get(2)?,
        worker: row.get(3)?,
        until: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_micros),
        since: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_micros),
        queue: row.get(6)?,
        seconds: row.get(7)?,
        progress: match (row.get(8)?, row.get(9)?) {
            (Some(text), Some(at)) => Some(TaskProgress { text, at: Timestamp::from_micros(at) }),
            (Some(_) | None, _) => None,
        },
    })
}

pub(super) fn held_lock(row: &Row<'_>) -> Result<HeldLock, StoreError> {
    Ok(HeldLock {
        lock: waypost_core::Lock { key: row.get(0)?, mode: mode(row.get(1)?) },
        plan: plan_id(row.get(2)?)?,
        task: task_id(row.get(3)?)?,
    })
}

pub(super) fn wait(row: &Row<'_>) -> Result<Wait, StoreError> {
    Ok(Wait {
        plan: plan_id(row.get(0)?)?,
        task: task_id(row.get(1)?)?,
        on: external_ref(row.get(2)?, row.get(3)?, task_id(row.get(4)?)?)?,
    })
}

pub(super) fn drop_lease(connection: &Connection, key: i64, task: &TaskId) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("DELETE FROM leases WHERE plan = ?1 AND task = ?2")?;
    statement.execute(params![key, task.as_str()])?;
    Ok(())
}

/// Whether any task of a plan holds a lock.
pub(super) fn holds_locks(connection: &Connection, key: i64) -> Result<bool, StoreError> {
    Ok(connection.prepare_cached("SELECT 1 FROM locks WHERE plan = ?1 LIMIT 1")?.exists([key])?)
}

pub(super) fn drop_locks(connection: &Connection, key: i64, task: &TaskId) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("DELETE FROM locks WHERE plan = ?1 AND task = ?2")?;
    statement.execute(params![key, task.as_str()])?;
    Ok(())
}

pub(super) fn drop_waits(connection: &Connection, key: i64, task: &TaskId) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("DELETE FROM waits WHERE plan = ?1 AND task = ?2")?;
    statement.execute(params![key, task.as_str()])?;
    Ok(())
}

pub(super) fn put_lease(connection: &Connection, key: i64, lease: &Lease) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO leases (plan, task, attempt, worker, until, since, queue, seconds, progress, progressed_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    let (until, since) = (lease.until.map(Timestamp::as_micros), lease.since.map(Timestamp::as_micros));
    let (task, attempt) = (lease.task.as_str(), lease.attempt);
    let progress = lease.progress.as_ref().map(|progress| (&progress.text, progress.at.as_micros()));
    let (text, at) = progress.unzip();
    statement.execute(params![
        key,
        task,
        attempt,
        lease.worker,
        until,
        since,
        lease.queue,
        lease.seconds,
        text,
        at
    ])?;
    Ok(())
}

pub(super) fn put_lock(
    connection: &Connection,
    key: i64,
    task: &TaskId,
    lock: &waypost_core::Lock,
) -> Result<(), StoreError> {
    let mut statement = connection
        .prepare_cached("INSERT OR REPLACE INTO locks (key, plan, task, shared) VALUES (?1, ?2, ?3, ?4)")?;
    let shared = lock.mode == waypost_core::LockMode::Shared;
    statement.execute(params![lock.key, key, task.as_str(), shared])?;
    Ok(())
}

pub(super) fn put_wait(
    connection: &Connection,
    key: i64,
    task: &TaskId,
    on: &ExternalTaskRef,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO waits (plan, task, on_agent, on_plan, on_task) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let plan = on.plan.as_ref().map(PlanId::as_str);
    statement.execute(params![key, task.as_str(), on.agent, plan, on.task.as_str()])?;
    Ok(())
}

/// All rows beside one plan, sorted.
pub(super) fn index(connection: &Connection, key: i64) -> Result<IndexRows, StoreError> {
    let sql = format!("SELECT {LEASE} FROM leases l JOIN plans p ON p.key = l.plan WHERE l.plan = ?1");
    let leases = query(connection, &sql, [key], lease)?;
    let sql =
        "SELECT l.key, l.shared, p.id, l.task FROM locks l JOIN plans p ON p.key = l.plan WHERE l.plan = ?1";
    let locks = query(connection, sql, [key], held_lock)?;
    let sql =
        "SELECT p.id, w.task, w.on_agent, w.on_plan, w.on_task FROM waits w JOIN plans p ON p.key = w.plan
         WHERE w.plan = ?1";
    let mut rows = IndexRows { leases, locks, waits: query(connection, sql, [key], wait)? };
    rows.sort();
    Ok(rows)
}

pub(super) fn replace_index(connection: &Connection, key: i64, index: &IndexRows) -> Result<(), StoreError> {
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

/// A lock's mode as it is stored.
fn mode(shared: bool) -> LockMode {
    if shared { LockMode::Shared } else { LockMode::Exclusive }
}

/// A row that names a task elsewhere.
fn external_ref(
    agent: Option<String>,
    plan: Option<String>,
    task: TaskId,
) -> Result<ExternalTaskRef, StoreError> {
    Ok(ExternalTaskRef { agent, plan: plan.map(plan_id).transpose()?, task })
}
