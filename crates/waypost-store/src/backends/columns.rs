//! Converts database rows to values, for SQLite and PostgreSQL. Knows the columns, but not how a database returns them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use waypost_core::canonical::Hash;
use waypost_core::{Counts, ExternalTaskRef, Lock, LockMode, Phase, PlanId, TaskId, Timestamp};

use crate::error::{Result, StoreError};
use crate::log::subscription::Subscription;
use crate::rows::{
    HeldLock, Lease, PlanState, PlanSummary, Pruned, TaskProgress, Totals, VersionRecord, Wait,
};
use crate::stored_version::StoredVersion;
use crate::workers::{AttemptLog, Worker};

/// The columns of one row. A NULL column is `None`.
pub(super) trait Columns {
    /// Returns a text as the database stores it.
    fn stored_text(&self, column: usize) -> Result<Option<&str>>;

    /// Returns a text as it was written.
    fn text(&self, column: usize) -> Result<Option<String>> {
        Ok(self.stored_text(column)?.map(str::to_owned))
    }

    fn number(&self, column: usize) -> Result<Option<i64>>;

    fn bytes(&self, column: usize) -> Result<Option<Vec<u8>>>;

    fn flag(&self, column: usize) -> Result<bool>;
}

pub(super) fn corrupt(what: String, detail: impl ToString) -> StoreError {
    StoreError::Corrupt { what, detail: detail.to_string() }
}

/// Serializes a value as JSON.
pub(super) fn json(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Database(error.to_string()))
}

fn filled<T>(column: Option<T>) -> Result<T> {
    column.ok_or_else(|| StoreError::Database("a row is not as expected: a column is empty".to_owned()))
}

fn text(row: &impl Columns, column: usize) -> Result<String> {
    filled(row.text(column)?)
}

pub(super) fn number<T: TryFrom<i64> + Default>(row: &impl Columns, column: usize) -> Result<T> {
    Ok(T::try_from(filled(row.number(column)?)?).unwrap_or_default())
}

fn time(row: &impl Columns, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.number(column)?.map(Timestamp::from_micros))
}

/// Reads a value that is stored as JSON.
fn from_json<T: DeserializeOwned>(
    row: &impl Columns,
    column: usize,
    what: impl FnOnce() -> String,
) -> Result<T> {
    serde_json::from_str(filled(row.stored_text(column)?)?).map_err(|error| corrupt(what(), error))
}

pub(super) fn plan_id(text: String) -> Result<PlanId> {
    PlanId::new(text.clone()).map_err(|error| corrupt(format!("the row of plan {text:?}"), error))
}

pub(super) fn task_id(text: String) -> Result<TaskId> {
    TaskId::new(text.clone()).map_err(|error| corrupt(format!("a row of task {text:?}"), error))
}

fn counts(row: &impl Columns, from: usize) -> Result<Counts> {
    let counts = Counts {
        total: number(row, from)?,
        ready: number(row, from + 1)?,
        blocked: number(row, from + 2)?,
        running: number(row, from + 3)?,
        done: number(row, from + 4)?,
        failed: number(row, from + 5)?,
        skipped: number(row, from + 6)?,
        cancelled: number(row, from + 7)?,
        ..Counts::default()
    };
    Ok(counts.with_queued())
}

/// Reads the columns of [`super::list_query::HEAD`].
pub(super) fn head(row: &impl Columns) -> Result<PlanSummary> {
    let id = text(row, 0)?;
    let what = || format!("the row of plan {id}");
    let created_by = row.text(7)?.map(|actor| actor.parse()).transpose();
    let word = text(row, 4)?;
    let phase = word.parse::<Phase>().map_err(|_| corrupt(what(), format!("{word:?} is not a phase")))?;
    Ok(PlanSummary {
        version: number(row, 1)?,
        title: text(row, 2)?,
        status: text(row, 3)?,
        phase,
        owner: text(row, 5)?,
        queue: text(row, 6)?,
        created_by: created_by.map_err(|error| corrupt(what(), error))?,
        created_at: time(row, 8)?,
        updated_at: time(row, 9)?,
        archived: row.flag(10)?,
        awaits_approval: row.flag(11)?,
        counts: counts(row, 12)?,
        urgency: number(row, 20)?,
        asking: number(row, 21)?,
        goals: number(row, 22)?,
        atomic: number(row, 23)?,
        id: plan_id(id)?,
    })
}

/// Reads the columns `sequence, version, at, actor, command, events` from `from` on.
pub(super) fn entry(row: &impl Columns, from: usize, plan: PlanId) -> Result<VersionRecord> {
    let version = number(row, from + 1)?;
    let what = || format!("version {version} of plan {plan}");
    Ok(VersionRecord {
        sequence: number(row, from)?,
        version,
        at: Timestamp::from_micros(number(row, from + 2)?),
        actor: text(row, from + 3)?.parse().map_err(|error| corrupt(what(), error))?,
        command: text(row, from + 4)?,
        events: from_json(row, from + 5, what)?,
        plan,
    })
}

/// Reads a hash. Versions without one have NULL or no bytes.
pub(super) fn hash(row: &impl Columns, column: usize) -> Result<Option<Hash>> {
    Ok(row.bytes(column)?.and_then(|bytes| Hash::try_from(bytes).ok()))
}

/// Reads the columns `version, purged, hash` of a plan's row.
pub(super) fn plan_state(row: &impl Columns) -> Result<PlanState> {
    if row.flag(1)? {
        return Ok(PlanState::Purged);
    }
    Ok(PlanState::Stored { version: number(row, 0)?, hash: hash(row, 2)? })
}

/// Reads the columns `sequence, version, at, actor, command, events, hash, chained_from`.
pub(super) fn stored_version(row: &impl Columns, plan: &PlanId) -> Result<StoredVersion> {
    Ok(StoredVersion {
        sequence: number(row, 0)?,
        plan: plan.clone(),
        version: number(row, 1)?,
        at: Timestamp::from_micros(number(row, 2)?),
        actor: text(row, 3)?,
        command: text(row, 4)?,
        events: filled(row.stored_text(5)?)?.to_owned(),
        hash: hash(row, 6)?,
        chained_from: row.number(7)?.map(|version| version as u64),
    })
}

/// Reads the columns `key, shared, plan, task`.
pub(super) fn held_lock(row: &impl Columns) -> Result<HeldLock> {
    let mode = if row.flag(1)? { LockMode::Shared } else { LockMode::Exclusive };
    let lock = Lock { key: text(row, 0)?, mode };
    Ok(HeldLock { lock, plan: plan_id(text(row, 2)?)?, task: task_id(text(row, 3)?)? })
}

/// Reads the columns `plan, task, on_agent, on_plan, on_task`.
pub(super) fn wait(row: &impl Columns) -> Result<Wait> {
    let on = ExternalTaskRef {
        agent: row.text(2)?,
        plan: row.text(3)?.map(plan_id).transpose()?,
        task: task_id(text(row, 4)?)?,
    };
    Ok(Wait { plan: plan_id(text(row, 0)?)?, task: task_id(text(row, 1)?)?, on })
}

/// The columns of a lease `l` of a plan `p`, in the order of [`lease`].
pub(super) const LEASE: &str = "p.id, l.task, l.attempt, l.worker, l.until, l.since, l.queue, l.seconds,
    l.progress, l.progressed_at";

pub(super) fn lease(row: &impl Columns) -> Result<Lease> {
    let progress = row.text(8)?.zip(time(row, 9)?);
    Ok(Lease {
        plan: plan_id(text(row, 0)?)?,
        task: task_id(text(row, 1)?)?,
        attempt: number(row, 2)?,
        worker: text(row, 3)?,
        until: time(row, 4)?,
        since: time(row, 5)?,
        queue: row.text(6)?,
        seconds: row.number(7)?.and_then(|seconds| u32::try_from(seconds).ok()),
        progress: progress.map(|(text, at)| TaskProgress { text, at }),
    })
}

/// The columns of [`subscription`].
pub(super) const SUBSCRIPTION: &str = "id, owner, filter, cursor, created_at, trouble";

pub(super) fn subscription(row: &impl Columns) -> Result<Subscription> {
    let id = text(row, 0)?;
    let what = || format!("the row of subscription {id:?}");
    let trouble = row.stored_text(5)?.map(|_| from_json(row, 5, what)).transpose()?;
    Ok(Subscription {
        owner: text(row, 1)?,
        filter: from_json(row, 2, what)?,
        cursor: text(row, 3)?.parse().map_err(|error| corrupt(what(), error))?,
        created_at: Timestamp::from_micros(number(row, 4)?),
        trouble,
        id,
    })
}

/// Reads the columns `name, record`.
pub(super) fn worker(row: &impl Columns) -> Result<Worker> {
    let name = text(row, 0)?;
    from_json(row, 1, || format!("the row of worker {name:?}"))
}

/// Reads the columns `task, attempt, worker, at, ended, bytes, text`.
pub(super) fn attempt_log(row: &impl Columns, plan: &PlanId) -> Result<AttemptLog> {
    Ok(AttemptLog {
        plan: plan.clone(),
        task: task_id(text(row, 0)?)?,
        attempt: number(row, 1)?,
        worker: text(row, 2)?,
        at: Timestamp::from_micros(number(row, 3)?),
        ended: row.flag(4)?,
        bytes: number(row, 5)?,
        text: text(row, 6)?,
    })
}

/// Reads the columns `up_to, at, by`.
pub(super) fn pruned(row: &impl Columns) -> Result<Pruned> {
    let by = text(row, 2)?.parse();
    let by = by.map_err(|error: waypost_core::BadActor| {
        corrupt("a row of the table of pruned versions".to_owned(), error)
    })?;
    Ok(Pruned::new(number(row, 0)?, Timestamp::from_micros(number(row, 1)?), by))
}

/// Adds the plans of one phase: its name, their number, the sums of their counts, and the earliest last change of one
/// with ready tasks.
pub(super) fn add_plans(totals: &mut Totals, row: &impl Columns) -> Result<()> {
    let (phase, queue, ready_since) = (text(row, 0)?, text(row, 1)?, time(row, 11)?);
    let phase = Phase::ALL.into_iter().find(|one| one.as_str() == phase).unwrap_or(Phase::Draft);
    totals.add_plans(phase, &queue, number(row, 2)?, &counts(row, 3)?, ready_since);
    Ok(())
}
