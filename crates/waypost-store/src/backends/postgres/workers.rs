//! The rows of workers, their leases and their logs. Knows the columns, but not which workers are alive.

use tokio_postgres::Row;
use waypost_core::{PlanId, TaskId, Timestamp};

use super::connection::Call;
use super::rows::{get, json, number, text};
use crate::backends::columns;
use crate::error::Result;
use crate::rows::LeaseUpdate;
use crate::workers::{AttemptLog, Worker};

/// The columns of a worker: what it has registered, and its last heartbeat.
pub(super) const WORKER: &str = "i.name, i.record, w.until, w.seen
     FROM waypost_worker_info i JOIN waypost_workers w ON w.name = i.name";

/// Returns what a worker has registered as JSON, without its heartbeat: that has a narrow row of its own.
pub(super) fn record(worker: &Worker) -> Result<String> {
    let never = Timestamp::from_micros(0);
    json(&Worker { seen: never, until: never, ..worker.clone() })
}

/// Reads the columns of [`WORKER`].
pub(super) fn worker(row: &Row) -> Result<Worker> {
    let stored = columns::worker(row)?;
    let (until, seen) = (get(row, 2)?, get(row, 3)?);
    Ok(Worker { until: Timestamp::from_micros(until), seen: Timestamp::from_micros(seen), ..stored })
}

/// Stores what a worker has registered, and its heartbeat.
pub(super) fn put(worker: &Worker, record: String) -> Vec<Call> {
    let info = "INSERT INTO waypost_worker_info (name, record) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET record = excluded.record";
    let heartbeat = "INSERT INTO waypost_workers (name, until, seen) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET until = excluded.until, seen = excluded.seen";
    vec![
        Call::new(info).with(text(&worker.name)).with(record),
        Call::new(heartbeat)
            .with(text(&worker.name))
            .with(worker.until.as_micros())
            .with(worker.seen.as_micros()),
    ]
}

/// Stores the heartbeat of a worker that has registered the same before.
pub(super) fn renew(worker: &Worker) -> Call {
    Call::new("UPDATE waypost_workers SET until = $2, seen = $3 WHERE name = $1")
        .with(text(&worker.name))
        .with(worker.until.as_micros())
        .with(worker.seen.as_micros())
}

/// Removes a worker; one that was listed, only if it has sent no heartbeat since.
pub(super) fn remove(name: &str, listed: Option<i64>) -> Vec<Call> {
    let heartbeat = "DELETE FROM waypost_workers WHERE name = $1 AND ($2::bigint IS NULL OR until = $2)";
    let info = "DELETE FROM waypost_worker_info WHERE name = $1
         AND NOT EXISTS (SELECT 1 FROM waypost_workers w WHERE w.name = $1)";
    vec![Call::new(heartbeat).with(text(name)).with(listed), Call::new(info).with(text(name))]
}

/// Reads the logs of one plan, sorted by task and attempt, after the one of `after`.
pub(super) fn find_logs(plan: &PlanId, after: Option<(&TaskId, u32)>, limit: i64) -> Call {
    let (task, attempt) = after.map_or(("", 0), |(task, attempt)| (task.as_str(), attempt));
    Call::new(
        "SELECT l.task, l.attempt, l.worker, l.at, l.ended, l.bytes, l.text
         FROM waypost_plans p JOIN waypost_attempt_logs l ON l.plan = p.key
         WHERE p.id = $1 AND p.purged_at IS NULL AND (l.task, l.attempt) > ($2, $3)
         ORDER BY l.task, l.attempt LIMIT $4",
    )
    .with(plan.to_string())
    .with(task.to_owned())
    .with(i64::from(attempt))
    .with(limit)
}

/// Stores the copy of a log, unless the plan was purged. A purge is alone, so it cannot happen meanwhile.
pub(super) fn put_log(log: &AttemptLog) -> Call {
    Call::new(
        "INSERT INTO waypost_attempt_logs (plan, task, attempt, worker, at, ended, bytes, text)
         SELECT key, $2, $3, $4, $5, $6, $7, $8 FROM waypost_plans WHERE id = $1 AND purged_at IS NULL
         ON CONFLICT (plan, task, attempt) DO UPDATE SET worker = excluded.worker, at = excluded.at,
             ended = excluded.ended, bytes = excluded.bytes, text = excluded.text",
    )
    .with(log.plan.to_string())
    .with(log.task.to_string())
    .with(i64::from(log.attempt))
    .with(text(&log.worker))
    .with(log.at.as_micros())
    .with(log.ended)
    .with(i64::try_from(log.bytes).unwrap_or(i64::MAX))
    .with(text(&log.text))
}

/// Updates leases. Returns the positions, from 1 on, of those that still exist.
pub(super) fn update(updates: &[LeaseUpdate]) -> Call {
    let progress = |update: &LeaseUpdate| update.progress.as_ref().map(|progress| text(&progress.text));
    let at = |update: &LeaseUpdate| update.progress.as_ref().map(|progress| progress.at.as_micros());
    Call::new(
        // The rows are locked in one order, so that writers do not wait for each other's rows crosswise.
        "WITH wanted AS (
             SELECT l.plan, l.task, w.until, w.progress, w.at, w.seconds, w.place
             FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[])
                 WITH ORDINALITY AS w (plan, task, attempt, until, progress, at, seconds, place)
             JOIN waypost_plans p ON p.id = w.plan
             JOIN waypost_leases l ON l.plan = p.key AND l.task = w.task AND l.attempt = w.attempt
             WHERE p.purged_at IS NULL ORDER BY l.plan, l.task FOR UPDATE OF l
         )
         UPDATE waypost_leases l SET until = coalesce(wanted.until, l.until),
             progress = coalesce(wanted.progress, l.progress), progressed_at = coalesce(wanted.at, l.progressed_at),
             seconds = coalesce(wanted.seconds, l.seconds)
         FROM wanted WHERE l.plan = wanted.plan AND l.task = wanted.task
         RETURNING wanted.place",
    )
    .column(updates, |update| update.plan.to_string())
    .column(updates, |update| update.task.to_string())
    .column(updates, |update| i64::from(update.attempt))
    .column(updates, |update| update.until.map(Timestamp::as_micros))
    .column(updates, progress)
    .column(updates, at)
    .column(updates, |update| update.seconds.map(i64::from))
}

/// Returns which of `total` leases the answer to [`update`] contains.
pub(super) fn updated(found: &[Row], total: usize) -> Result<Vec<bool>> {
    let mut renewed = vec![false; total];
    for row in found {
        let place: usize = number::<u64>(row, 0)? as usize;
        if let Some(there) = place.checked_sub(1).and_then(|place| renewed.get_mut(place)) {
            *there = true;
        }
    }
    Ok(renewed)
}
