//! The rows of workers, their leases and their logs. Knows the columns, but not which workers are alive.

use tokio_postgres::Row;
use waypost_core::{PlanId, TaskId, Timestamp};

use super::connection::Call;
use super::rows::{json, number, text};
use crate::error::Result;
use crate::rows::LeaseUpdate;
use crate::workers::{AttemptLog, Worker};

pub(super) fn put(worker: &Worker) -> Result<Call> {
    let call = Call::new(
        "INSERT INTO waypost_workers (name, until, record) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET until = excluded.until, record = excluded.record",
    );
    Ok(call.with(text(&worker.name)).with(worker.until.as_micros()).with(json(worker)?))
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

pub(super) fn put_log(key: i64, log: &AttemptLog) -> Call {
    Call::new(
        "INSERT INTO waypost_attempt_logs (plan, task, attempt, worker, at, ended, bytes, text)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (plan, task, attempt) DO UPDATE SET worker = excluded.worker, at = excluded.at,
             ended = excluded.ended, bytes = excluded.bytes, text = excluded.text",
    )
    .with(key)
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
        "UPDATE waypost_leases l SET until = coalesce(wanted.until, l.until),
             progress = coalesce(wanted.progress, l.progress), progressed_at = coalesce(wanted.at, l.progressed_at),
             seconds = coalesce(wanted.seconds, l.seconds)
         FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[])
             WITH ORDINALITY AS wanted (plan, task, attempt, until, progress, at, seconds, place)
         JOIN waypost_plans p ON p.id = wanted.plan
         WHERE p.purged_at IS NULL AND l.plan = p.key AND l.task = wanted.task AND l.attempt = wanted.attempt
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
