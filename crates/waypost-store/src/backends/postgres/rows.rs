//! From rows to values and back. Knows the columns, not when to read or write them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use waypost_core::{Counts, ExternalTaskRef, Lock, LockMode, Phase, PlanId, TaskId, Timestamp};

use super::connection::Call;
use crate::backends::list_query::{self, Dialect, ListQuery, Value};
use crate::error::StoreError;
use crate::log::event::Cursor;
use crate::log::subscription::Subscription;
use crate::rows::{HeldLock, Lease, Page, PlanSummary, Query, TaskProgress, VersionRecord, Wait};

/// Stands for NUL, which a text of PostgreSQL cannot hold. No text has it: it is not a character.
const NUL: &str = "\u{10FFFF}";

pub(super) fn corrupt(what: String, detail: impl ToString) -> StoreError {
    StoreError::Corrupt { what, detail: detail.to_string() }
}

/// A text as it is stored.
pub(super) fn text(text: &str) -> String {
    if text.contains('\0') { text.replace('\0', NUL) } else { text.to_owned() }
}

pub(super) fn from_text(text: String) -> String {
    if text.contains(NUL) { text.replace(NUL, "\0") } else { text }
}

/// A column that must be there.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| StoreError::Database(format!("a row is not as expected: {error}")))
}

pub(super) fn number(row: &Row, column: usize) -> Result<u64, StoreError> {
    get::<i64>(row, column).map(|found| u64::try_from(found).unwrap_or(0))
}

pub(super) fn plan_id(text: String) -> Result<PlanId, StoreError> {
    PlanId::new(text.clone()).map_err(|error| corrupt(format!("the row of plan {text:?}"), error))
}

pub(super) fn task_id(text: String) -> Result<TaskId, StoreError> {
    TaskId::new(text.clone()).map_err(|error| corrupt(format!("a row of task {text:?}"), error))
}

pub(super) fn count<T: TryFrom<i64> + Default>(row: &Row, column: usize) -> Result<T, StoreError> {
    get::<i64>(row, column).map(|found| T::try_from(found).unwrap_or_default())
}

pub(super) fn head(row: &Row) -> Result<PlanSummary, StoreError> {
    let id: String = get(row, 0)?;
    let what = || format!("the row of plan {id}");
    let created_by: Option<String> = get(row, 7)?;
    let created_by = created_by.map(|actor| from_text(actor).parse()).transpose();
    let word: String = get(row, 4)?;
    let phase = Phase::ALL.into_iter().find(|phase| phase.as_str() == word);
    let time = |column| get::<Option<i64>>(row, column).map(|at| at.map(Timestamp::from_micros));
    Ok(PlanSummary {
        version: number(row, 1)?,
        title: from_text(get(row, 2)?),
        status: from_text(get(row, 3)?),
        phase: phase.ok_or_else(|| corrupt(what(), format!("{word:?} is no phase")))?,
        owner: from_text(get(row, 5)?),
        queue: from_text(get(row, 6)?),
        created_by: created_by.map_err(|error| corrupt(what(), error))?,
        created_at: time(8)?,
        updated_at: time(9)?,
        archived: get(row, 10)?,
        awaits_approval: get(row, 11)?,
        counts: Counts {
            total: count(row, 12)?,
            ready: count(row, 13)?,
            blocked: count(row, 14)?,
            running: count(row, 15)?,
            done: count(row, 16)?,
            failed: count(row, 17)?,
            skipped: count(row, 18)?,
            cancelled: count(row, 19)?,
            ..Counts::default()
        }
        .with_queued(),
        urgency: get(row, 20)?,
        asking: count(row, 21)?,
        goals: count(row, 22)?,
        atomic: count(row, 23)?,
        id: plan_id(id)?,
    })
}

/// The columns `sequence, version, at, actor, command, events` from `from` on.
pub(super) fn entry(row: &Row, from: usize, plan: PlanId) -> Result<VersionRecord, StoreError> {
    let version = number(row, from + 1)?;
    let what = || format!("version {version} of plan {plan}");
    let (actor, events): (String, &str) = (get(row, from + 3)?, get(row, from + 5)?);
    Ok(VersionRecord {
        sequence: number(row, from)?,
        version,
        at: Timestamp::from_micros(get(row, from + 2)?),
        actor: from_text(actor).parse().map_err(|error| corrupt(what(), error))?,
        command: get(row, from + 4)?,
        events: serde_json::from_str(events).map_err(|error| corrupt(what(), error))?,
        plan,
    })
}

/// `key, shared, plan, task`
pub(super) fn held_lock(row: &Row) -> Result<HeldLock, StoreError> {
    let mode = if get(row, 1)? { LockMode::Shared } else { LockMode::Exclusive };
    Ok(HeldLock {
        lock: Lock { key: from_text(get(row, 0)?), mode },
        plan: plan_id(get(row, 2)?)?,
        task: task_id(get(row, 3)?)?,
    })
}

/// `plan, task, on_agent, on_plan, on_task`
pub(super) fn wait(row: &Row) -> Result<Wait, StoreError> {
    let on_plan: Option<String> = get(row, 3)?;
    let on = ExternalTaskRef {
        agent: get::<Option<String>>(row, 2)?.map(from_text),
        plan: on_plan.map(plan_id).transpose()?,
        task: task_id(get(row, 4)?)?,
    };
    Ok(Wait { plan: plan_id(get(row, 0)?)?, task: task_id(get(row, 1)?)?, on })
}

/// `plan, task, attempt, worker, until, since, queue, seconds, progress, progressed_at`
pub(super) fn lease(row: &Row) -> Result<Lease, StoreError> {
    Ok(Lease {
        plan: plan_id(get(row, 0)?)?,
        task: task_id(get(row, 1)?)?,
        attempt: count(row, 2)?,
        worker: from_text(get(row, 3)?),
        until: get::<Option<i64>>(row, 4)?.map(Timestamp::from_micros),
        since: get::<Option<i64>>(row, 5)?.map(Timestamp::from_micros),
        queue: get::<Option<String>>(row, 6)?.map(from_text),
        seconds: get::<Option<i64>>(row, 7)?.and_then(|seconds| u32::try_from(seconds).ok()),
        progress: match (get::<Option<String>>(row, 8)?, get::<Option<i64>>(row, 9)?) {
            (Some(text), Some(at)) => {
                Some(TaskProgress { text: from_text(text), at: Timestamp::from_micros(at) })
            }
            (Some(_) | None, _) => None,
        },
    })
}

/// `id, owner, filter, cursor, created_at, trouble`
pub(super) fn subscription(row: &Row) -> Result<Subscription, StoreError> {
    fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
    let id: String = get(row, 0)?;
    let corrupt = |detail: String| corrupt(format!("the row of subscription {id:?}"), detail);
    let (cursor, trouble): (String, Option<String>) = (get(row, 3)?, get(row, 5)?);
    Ok(Subscription {
        owner: from_text(get(row, 1)?),
        filter: from_json(get(row, 2)?).map_err(corrupt)?,
        cursor: cursor.parse::<Cursor>().map_err(|error| corrupt(error.to_string()))?,
        created_at: Timestamp::from_micros(get(row, 4)?),
        trouble: trouble.map(|text| from_json(&text)).transpose().map_err(corrupt)?,
        id,
    })
}

pub(super) fn put_subscription(subscription: &Subscription) -> Result<Call, StoreError> {
    fn json(value: &impl Serialize) -> Result<String, StoreError> {
        serde_json::to_string(value).map_err(|error| StoreError::Database(error.to_string()))
    }
    let call = Call::new(
        "INSERT INTO waypost_subscriptions (id, owner, filter, cursor, created_at, trouble)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, filter = excluded.filter, cursor = excluded.cursor,
             created_at = excluded.created_at, trouble = excluded.trouble",
    );
    Ok(call
        .with(subscription.id.clone())
        .with(text(&subscription.owner))
        .with(json(&subscription.filter)?)
        .with(subscription.cursor.to_string())
        .with(subscription.created_at.as_micros())
        .with(subscription.trouble.as_ref().map(json).transpose()?))
}

const DIALECT: Dialect = Dialect {
    table: "waypost_plans",
    parameter: '$',
    flag: |column, set| if set { column.to_owned() } else { format!("NOT {column}") },
    latest_first: "DESC NULLS LAST",
    text,
    search: text,
    contains: |column, parameter| {
        format!(
            "position(lower({parameter}::text COLLATE \"default\") IN lower({column} COLLATE \"default\")) > 0"
        )
    },
};

/// How many plans a list has, and one page of them.
pub(super) fn heads(query: &Query) -> [Call; 2] {
    let ListQuery { count, page, values, counted_by } = ListQuery::new(query, &DIALECT);
    let with = |call: Call, value: &Value| match value {
        Value::Text(text) => call.with(text.clone()),
        Value::Number(number) => call.with(*number),
    };
    let count = values[..counted_by].iter().fold(Call::once(count), with);
    [count, values.iter().fold(Call::once(page), with)]
}

/// The page that the answers to [`heads`] make.
pub(super) fn page(query: &Query, total: &[Row], found: &[Row]) -> Result<Page<PlanSummary>, StoreError> {
    let total = total.first().map_or(Ok(0), |row| number(row, 0))?;
    let items = found.iter().map(head).collect::<Result<Vec<_>, _>>()?;
    Ok(list_query::page(query, items, total))
}
