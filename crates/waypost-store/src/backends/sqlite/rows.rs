//! From rows to values and back. Knows the columns, not when to read or write them.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use waypost_core::{Counts, Elsewhere, Phase, PlanId, TaskId, Timestamp};

use super::{elsewhere, mode};
use crate::rows::{ATTENTION, Entry, Head, HeldLock, IndexRows, Lease, Page, Query, Shelf, Sort, Wait};
use crate::store::StoreError;

/// The columns of a head, in the order of [`head`].
pub(super) const HEAD: &str = "id, version, title, status, phase, owner, queue, created_by, created_at, updated_at, \
     archived, awaits_approval, total, ready, blocked, running, done, failed, skipped, cancelled, urgency, asking, goals, atomic";

fn corrupt(what: String, detail: impl ToString) -> StoreError {
    StoreError::Corrupt { what, detail: detail.to_string() }
}

pub(super) fn plan_id(text: String) -> Result<PlanId, StoreError> {
    PlanId::new(text.clone()).map_err(|error| corrupt(format!("the row of plan {text:?}"), error))
}

pub(super) fn task_id(text: String) -> Result<TaskId, StoreError> {
    TaskId::new(text.clone()).map_err(|error| corrupt(format!("a row of task {text:?}"), error))
}

fn phase(id: &str, word: &str) -> Result<Phase, StoreError> {
    let found = Phase::ALL.into_iter().find(|phase| phase.word() == word);
    found.ok_or_else(|| corrupt(format!("the row of plan {id}"), format!("{word:?} is no phase")))
}

pub(super) fn head(row: &Row<'_>) -> Result<Head, StoreError> {
    let id: String = row.get(0)?;
    let created_by: Option<String> = row.get(7)?;
    let created_by = created_by.map(|actor| actor.parse()).transpose();
    Ok(Head {
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
pub(super) fn put_head(connection: &Connection, head: &Head, replay_bytes: u64) -> Result<(), StoreError> {
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
        head.phase.word(),
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

pub(super) fn entry(row: &Row<'_>, plan: PlanId) -> Result<Entry, StoreError> {
    let version = row.get::<_, i64>(1)? as u64;
    let what = || format!("version {version} of plan {plan}");
    let actor: String = row.get(3)?;
    let events: String = row.get(5)?;
    Ok(Entry {
        sequence: row.get::<_, i64>(0)? as u64,
        version,
        at: Timestamp::from_micros(row.get(2)?),
        actor: actor.parse().map_err(|error| corrupt(what(), error))?,
        command: row.get(4)?,
        events: serde_json::from_str(&events).map_err(|error| corrupt(what(), error))?,
        plan,
    })
}

/// One page of heads. The cursor is the sort value and the id of the last one, so that nothing is missed or shown twice
/// when others write in between.
pub(super) fn heads(connection: &Connection, query: &Query) -> Result<Page<Head>, StoreError> {
    let mut conditions = vec!["purged_at IS NULL".to_owned()];
    let mut values: Vec<Value> = Vec::new();
    match query.shelf {
        Shelf::Current => conditions.push("archived = 0".to_owned()),
        Shelf::Archived => conditions.push("archived = 1".to_owned()),
        Shelf::All => {}
    }
    if !query.phases.is_empty() {
        let words: Vec<String> = query.phases.iter().map(|phase| format!("'{}'", phase.word())).collect();
        conditions.push(format!("phase IN ({})", words.join(", ")));
    }
    for (column, wanted) in [("status", &query.status), ("owner", &query.owner), ("queue", &query.queue)] {
        if let Some(wanted) = wanted {
            values.push(wanted.clone().into());
            conditions.push(format!("{column} = ?{}", values.len()));
        }
    }
    if let Some(text) = &query.text {
        let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        values.push(format!("%{escaped}%").into());
        let at = values.len();
        conditions.push(format!("(id LIKE ?{at} ESCAPE '\\' OR title LIKE ?{at} ESCAPE '\\')"));
    }
    if query.offers_work {
        let may_run = "(phase = 'active' OR phase = 'draft' AND awaits_approval = 0)";
        conditions.push(format!("archived = 0 AND ready > 0 AND {may_run}"));
    }
    let filter = conditions.join(" AND ");
    let sql = format!("SELECT count(*) FROM plans WHERE {filter}");
    let total: i64 =
        connection.prepare_cached(&sql)?.query_row(params_from_iter(&values), |row| row.get(0))?;

    let (by, order, compare) = match query.sort {
        Sort::Updated => ("updated_at", "DESC", "<"),
        Sort::Created => ("created_at", "DESC", "<"),
        Sort::Title => ("title", "ASC", ">"),
        Sort::Id => ("id", "ASC", ">"),
        Sort::Urgency => ("urgency", "DESC", "<"),
        Sort::Attention => (ATTENTION, "DESC", "<"),
    };
    let mut page_filter = filter;
    // The id stands first: it cannot hold the sign between the two, a title can.
    if let Some((id, value)) = query.after.as_deref().and_then(|after| after.split_once('|')) {
        match query.sort {
            Sort::Updated | Sort::Created | Sort::Urgency | Sort::Attention => {
                values.push(value.parse::<i64>().unwrap_or(i64::MIN).into())
            }
            Sort::Title | Sort::Id => values.push(value.to_owned().into()),
        }
        values.push(id.to_owned().into());
        let (value, id) = (values.len() - 1, values.len());
        page_filter.push_str(&format!(" AND ({by} {compare} ?{value} OR {by} = ?{value} AND id > ?{id})"));
    }
    values.push((query.limit as i64 + 1).into());
    let sql = format!(
        "SELECT {HEAD} FROM plans WHERE {page_filter} ORDER BY {by} {order}, id LIMIT ?{}",
        values.len()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query(params_from_iter(&values))?;
    let mut items = Vec::new();
    while let Some(row) = found.next()? {
        items.push(head(row)?);
    }
    let more = items.len() > query.limit;
    items.truncate(query.limit);
    let next = items.last().filter(|_| more).map(|last| {
        let value = match query.sort {
            Sort::Updated => last.updated_at.map_or(i64::MIN, Timestamp::as_micros).to_string(),
            Sort::Created => last.created_at.map_or(i64::MIN, Timestamp::as_micros).to_string(),
            Sort::Title => last.title.clone(),
            Sort::Id => last.id.to_string(),
            Sort::Urgency => last.urgency.to_string(),
            Sort::Attention => last.attention().to_string(),
        };
        format!("{}|{value}", last.id)
    });
    Ok(Page { items, total: total as u64, next, ..Page::default() })
}

/// The columns of a lease `l` of a plan `p`, in the order of [`lease`].
pub(super) const LEASE: &str = "p.id, l.task, l.attempt, l.worker, l.until, l.since, l.queue, l.seconds";

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
        on: elsewhere(row.get(2)?, row.get(3)?, task_id(row.get(4)?)?)?,
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
        "INSERT OR REPLACE INTO leases (plan, task, attempt, worker, until, since, queue, seconds)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let (until, since) = (lease.until.map(Timestamp::as_micros), lease.since.map(Timestamp::as_micros));
    let (task, attempt) = (lease.task.as_str(), lease.attempt);
    statement.execute(params![key, task, attempt, lease.worker, until, since, lease.queue, lease.seconds])?;
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
    on: &Elsewhere,
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
    let mut rows = IndexRows::default();
    let sql = format!("SELECT {LEASE} FROM leases l JOIN plans p ON p.key = l.plan WHERE l.plan = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query([key])?;
    while let Some(row) = found.next()? {
        rows.leases.push(lease(row)?);
    }
    let mut statement = connection.prepare_cached(
        "SELECT l.key, l.shared, p.id, l.task FROM locks l JOIN plans p ON p.key = l.plan WHERE l.plan = ?1",
    )?;
    let mut found = statement.query([key])?;
    while let Some(row) = found.next()? {
        rows.locks.push(held_lock(row)?);
    }
    let mut statement = connection.prepare_cached(
        "SELECT p.id, w.task, w.on_agent, w.on_plan, w.on_task FROM waits w JOIN plans p ON p.key = w.plan
         WHERE w.plan = ?1",
    )?;
    let mut found = statement.query([key])?;
    while let Some(row) = found.next()? {
        rows.waits.push(wait(row)?);
    }
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
