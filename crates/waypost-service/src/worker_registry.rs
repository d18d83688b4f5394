//! The rows of a worker: its registry entry, the leases that each heartbeat renews, and copies of its logs. Each call
//! is one transaction.

use waypost_core::{ActorKind, PlanId, Refusal, TaskId, Timestamp};
use waypost_store::{AttemptLog, LeaseUpdate, Record, StoreError, WORKER_KEPT_SECONDS, Worker, WorkerFilter};

use crate::caller::Caller;
use crate::error::ServiceError;
use crate::service::Service;

/// What a worker learns from its heartbeat.
#[derive(Debug, Default)]
pub struct Heartbeat {
    /// For each attempt, whether the worker still holds it.
    pub renewed: Vec<bool>,
    /// The schema of the store if a newer build has migrated it.
    pub newer_schema: Option<u32>,
}

impl Service {
    /// Registers a worker, which counts as alive for `seconds` unless a heartbeat renews that. Removes the rows of
    /// workers that have been dead for 24 hours.
    pub fn register_worker(&self, row: &mut Worker, seconds: u32) -> Result<(), StoreError> {
        self.plans().store().write(&mut |transaction| {
            let now = transaction.now();
            (row.began, row.seen, row.until) = (now, now, now.plus_seconds(u64::from(seconds)));
            let kept = i64::try_from(WORKER_KEPT_SECONDS).unwrap_or(i64::MAX).saturating_mul(1_000_000);
            let long_ago = Timestamp::from_micros(now.as_micros().saturating_sub(kept));
            transaction.forget_workers(long_ago)?;
            transaction.put(Record::Worker(&row.name, Some(row)))
        })
    }

    /// Renews a worker's row and the leases of these attempts for `seconds`, and stores the copies of logs. A worker of an
    /// older build than the one that has migrated the store drains.
    pub fn heartbeat(
        &self,
        row: &mut Worker,
        seconds: u32,
        attempts: &[(PlanId, TaskId, u32)],
        logs: &[AttemptLog],
    ) -> Result<Heartbeat, StoreError> {
        let mut heartbeat = Heartbeat::default();
        self.plans().store().write(&mut |transaction| {
            let now = transaction.now();
            (row.seen, row.until) = (now, now.plus_seconds(u64::from(seconds)));
            let renewal = |(plan, task, attempt): &(PlanId, TaskId, u32)| {
                LeaseUpdate::renewal(plan.clone(), task.clone(), *attempt, row.until)
            };
            let renewals: Vec<LeaseUpdate> = attempts.iter().map(renewal).collect();
            let renewed = transaction.update_leases(&renewals)?;
            heartbeat = Heartbeat { renewed, newer_schema: transaction.store_state()?.newer_schema };
            let stored = transaction.workers(WorkerFilter::Name(&row.name), 1)?.items.pop();
            row.draining |= stored.is_some_and(|stored| stored.draining);
            row.draining |= heartbeat.newer_schema.is_some();
            for log in logs {
                transaction.put(Record::AttemptLog(log))?;
            }
            transaction.put(Record::Worker(&row.name, Some(row)))
        })?;
        Ok(heartbeat)
    }

    /// Asks a worker to claim nothing new and to exit when its running tasks have ended. Only a person can. Returns
    /// `false` if no such worker is known.
    pub fn drain_worker(&self, by: &Caller, name: &str) -> Result<bool, ServiceError> {
        if by.actor.kind != ActorKind::Person {
            return Err(Refusal::OnlyAPerson { what: "drain a worker", by: by.actor.clone() }.into());
        }
        Ok(self.plans().drain(name)?)
    }

    /// Removes a worker's row, and stores its last copies of logs.
    pub fn unregister_worker(&self, name: &str, logs: &[AttemptLog]) -> Result<(), StoreError> {
        self.plans().store().write(&mut |transaction| {
            for log in logs {
                transaction.put(Record::AttemptLog(log))?;
            }
            transaction.put(Record::Worker(name, None))
        })
    }
}
