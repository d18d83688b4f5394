//! The pending writes of a transaction. Versions that are committed together are sent together, and update summaries
//! and index tables once, to the state after the last version: a few statements, regardless of the number of versions.

use waypost_core::canonical::Hash;
use waypost_core::{ExternalTaskRef, Lock, LockMode, PlanId, TaskId, Timestamp};

use super::connection::Call;
use super::rows::text;
use crate::backends::write_buffer::{PendingPlan, PendingPlans};
use crate::rows::{HeldLock, IndexRows, Lease, PlanSummary, Wait};
use crate::store::Append;
use crate::stored_version::StoredVersion;

/// A slot of a queue that a running task takes.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) worker: String,
    pub(super) plan: PlanId,
    pub(super) task: TaskId,
}

/// The pending writes of all plans.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) plans: PendingPlans,
    /// The versions, each with the key of its plan's row.
    versions: Vec<(i64, StoredVersion)>,
}

impl Pending {
    /// Adds a version of a plan that [`PendingPlans::begin`] has added.
    pub(super) fn add(&mut self, append: &Append<'_>, version: StoredVersion) {
        if let Some(plan) = self.plans.get_mut(&append.head.id) {
            plan.add(append.head, &version, append.index);
            self.versions.push((plan.key, version));
        }
    }

    /// Returns the holders of `key`, given those that the tables contain.
    pub(super) fn locks(&self, key: &str, stored: &[HeldLock]) -> Vec<HeldLock> {
        let moved = |held: &&HeldLock| {
            self.plans.get(&held.plan).is_some_and(|plan| plan.running.contains_key(&held.task))
        };
        let mut found: Vec<HeldLock> = stored.iter().filter(|held| !moved(held)).cloned().collect();
        for plan in self.plans.0.values() {
            for (lease, locks) in plan.running.values().flatten() {
                let held = locks.iter().filter(|lock| lock.key == key);
                found.extend(held.map(|lock| HeldLock {
                    lock: lock.clone(),
                    plan: plan.head.id.clone(),
                    task: lease.task.clone(),
                }));
            }
        }
        found
    }

    /// Returns the worker of each task that holds a slot of `queue`, given those that the tables contain.
    pub(super) fn slots(&self, queue: &str, stored: &[Slot]) -> Vec<String> {
        let moved = |slot: &&Slot| {
            self.plans.get(&slot.plan).is_some_and(|plan| plan.running.contains_key(&slot.task))
        };
        let mut found: Vec<String> =
            stored.iter().filter(|slot| !moved(slot)).map(|slot| slot.worker.clone()).collect();
        for plan in self.plans.0.values() {
            let started = plan.running.values().flatten().map(|(lease, _)| lease);
            let here = started.filter(|lease| lease.queue.as_deref() == Some(queue));
            found.extend(here.map(|lease| lease.worker.clone()));
        }
        found
    }

    /// Returns all waits, given those that the tables contain.
    pub(super) fn waits(&self, stored: &[Wait]) -> Vec<Wait> {
        let moved =
            |wait: &&Wait| self.plans.get(&wait.plan).is_some_and(|plan| plan.waits.contains_key(&wait.task));
        let mut found: Vec<Wait> = stored.iter().filter(|wait| !moved(wait)).cloned().collect();
        for plan in self.plans.0.values() {
            for (task, waits) in &plan.waits {
                let id = &plan.head.id;
                found.extend(waits.iter().map(|on| Wait {
                    plan: id.clone(),
                    task: task.clone(),
                    on: on.clone(),
                }));
            }
        }
        found
    }

    /// Returns the statements that write everything under this nonce, and the plans that they write.
    pub(super) fn take(&mut self, nonce: i64) -> (Vec<Call>, Vec<PendingPlan>) {
        let mut plans: Vec<PendingPlan> = self.plans.0.drain().map(|(_, plan)| plan).collect();
        // In one order, so that writers do not wait for each other's rows crosswise.
        plans.sort_by_key(|plan| plan.key);
        let mut calls = Vec::new();
        if !plans.is_empty() {
            let heads = plans.iter().map(|plan| (plan.key, &plan.head, plan.hash, plan.replay_bytes));
            calls.push(put_heads(&heads.collect::<Vec<_>>()));
        }
        let versions = std::mem::take(&mut self.versions);
        if !versions.is_empty() {
            calls.push(put_versions(nonce, versions));
        }
        let (mut leases, mut locks, mut waits) = (Vec::new(), Vec::new(), Vec::new());
        for plan in &plans {
            let key = plan.key;
            if !plan.running.is_empty() {
                let tasks = plan.running.keys().map(ToString::to_string).collect::<Vec<_>>();
                calls.push(Call::new(STOP).with(key).with(tasks));
            }
            for (lease, held) in plan.running.values().flatten() {
                leases.push((key, lease));
                locks.extend(held.iter().map(|lock| (key, &lease.task, lock)));
            }
            if !plan.waits.is_empty() {
                let tasks = plan.waits.keys().map(ToString::to_string).collect::<Vec<_>>();
                let sql = "DELETE FROM waypost_waits WHERE plan = $1 AND task = ANY($2)";
                calls.push(Call::new(sql).with(key).with(tasks));
            }
            for (task, on) in &plan.waits {
                waits.extend(on.iter().map(|on| (key, task, on)));
            }
        }
        calls.extend(put_index(&leases, &locks, &waits));
        (calls, plans)
    }
}

/// Removes the leases and locks of tasks of one plan.
const STOP: &str = "WITH unlocked AS (DELETE FROM waypost_locks WHERE plan = $1 AND task = ANY($2))
     DELETE FROM waypost_leases WHERE plan = $1 AND task = ANY($2)";

/// Writes versions, each with the key of its plan's row.
pub(super) fn put_versions(nonce: i64, mut rows: Vec<(i64, StoredVersion)>) -> Call {
    let events: Vec<String> = rows.iter_mut().map(|(_, entry)| std::mem::take(&mut entry.events)).collect();
    let rows = &rows[..];
    let sql = "INSERT INTO waypost_log (plan, version, at, actor, command, nonce, events, hash, chained_from)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[],
             $7::text[], $8::bytea[], $9::bigint[])";
    Call::new(sql)
        .column(rows, |(key, _)| *key)
        .column(rows, |(_, entry)| entry.version as i64)
        .column(rows, |(_, entry)| entry.at.as_micros())
        .column(rows, |(_, entry)| text(&entry.actor))
        .column(rows, |(_, entry)| text(&entry.command))
        .column(rows, |_| nonce)
        .with(events)
        .column(rows, |(_, entry)| entry.hash.map(|hash| hash.to_vec()))
        .column(rows, |(_, entry)| entry.chained_from.map(|version| version as i64))
}

/// Writes summaries into their rows; inserts rows for new plans. A summary without a hash leaves the stored hash as it
/// is.
pub(super) fn put_heads(heads: &[(i64, &PlanSummary, Option<Hash>, u64)]) -> Call {
    Call::new(
        "INSERT INTO waypost_plans (key, id, version, title, status, phase, owner, queue, created_by, created_at,
             updated_at, archived, awaits_approval, total, ready, blocked, running, done, failed, skipped, cancelled,
             urgency, replay_bytes, asking, goals, atomic, hash)
         SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
             $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::boolean[], $13::boolean[], $14::bigint[],
             $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
             $22::integer[], $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[],
             $27::bytea[])
         ON CONFLICT (key) DO UPDATE SET version = excluded.version, title = excluded.title, status = excluded.status,
             phase = excluded.phase, owner = excluded.owner, queue = excluded.queue, created_by = excluded.created_by,
             created_at = excluded.created_at, updated_at = excluded.updated_at, archived = excluded.archived,
             awaits_approval = excluded.awaits_approval, total = excluded.total, ready = excluded.ready,
             blocked = excluded.blocked, running = excluded.running, done = excluded.done, failed = excluded.failed,
             skipped = excluded.skipped, cancelled = excluded.cancelled, urgency = excluded.urgency,
             replay_bytes = excluded.replay_bytes, asking = excluded.asking, goals = excluded.goals,
             atomic = excluded.atomic, hash = coalesce(excluded.hash, waypost_plans.hash)",
    )
    .column(heads, |(key, ..)| *key)
    .column(heads, |(_, head, ..)| head.id.to_string())
    .column(heads, |(_, head, ..)| head.version as i64)
    .column(heads, |(_, head, ..)| text(&head.title))
    .column(heads, |(_, head, ..)| text(&head.status))
    .column(heads, |(_, head, ..)| head.phase.as_str().to_owned())
    .column(heads, |(_, head, ..)| text(&head.owner))
    .column(heads, |(_, head, ..)| text(&head.queue))
    .column(heads, |(_, head, ..)| head.created_by.as_ref().map(|actor| text(&actor.to_string())))
    .column(heads, |(_, head, ..)| head.created_at.map(Timestamp::as_micros))
    .column(heads, |(_, head, ..)| head.updated_at.map(Timestamp::as_micros))
    .column(heads, |(_, head, ..)| head.archived)
    .column(heads, |(_, head, ..)| head.awaits_approval)
    .column(heads, |(_, head, ..)| i64::from(head.counts.total))
    .column(heads, |(_, head, ..)| i64::from(head.counts.ready))
    .column(heads, |(_, head, ..)| i64::from(head.counts.blocked))
    .column(heads, |(_, head, ..)| i64::from(head.counts.running))
    .column(heads, |(_, head, ..)| i64::from(head.counts.done))
    .column(heads, |(_, head, ..)| i64::from(head.counts.failed))
    .column(heads, |(_, head, ..)| i64::from(head.counts.skipped))
    .column(heads, |(_, head, ..)| i64::from(head.counts.cancelled))
    .column(heads, |(_, head, ..)| head.urgency)
    .column(heads, |(.., bytes)| *bytes as i64)
    .column(heads, |(_, head, ..)| i64::from(head.asking))
    .column(heads, |(_, head, ..)| i64::from(head.goals))
    .column(heads, |(_, head, ..)| i64::from(head.atomic))
    .column(heads, |(_, _, hash, _)| hash.map(|hash| hash.to_vec()))
}

fn put_index(
    leases: &[(i64, &Lease)],
    locks: &[(i64, &TaskId, &Lock)],
    waits: &[(i64, &TaskId, &ExternalTaskRef)],
) -> Vec<Call> {
    let mut calls = Vec::new();
    if !leases.is_empty() {
        let sql = "INSERT INTO waypost_leases (plan, task, attempt, worker, until, since, queue, seconds, progress,
                 progressed_at)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[],
                 $7::text[], $8::bigint[], $9::text[], $10::bigint[])";
        calls.push(
            Call::new(sql)
                .column(leases, |(plan, _)| *plan)
                .column(leases, |(_, lease)| lease.task.to_string())
                .column(leases, |(_, lease)| i64::from(lease.attempt))
                .column(leases, |(_, lease)| text(&lease.worker))
                .column(leases, |(_, lease)| lease.until.map(Timestamp::as_micros))
                .column(leases, |(_, lease)| lease.since.map(Timestamp::as_micros))
                .column(leases, |(_, lease)| lease.queue.as_deref().map(text))
                .column(leases, |(_, lease)| lease.seconds.map(i64::from))
                .column(leases, |(_, lease)| lease.progress.as_ref().map(|progress| text(&progress.text)))
                .column(leases, |(_, lease)| lease.progress.as_ref().map(|progress| progress.at.as_micros())),
        );
    }
    if !locks.is_empty() {
        let sql = "INSERT INTO waypost_locks (plan, task, key, shared)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[])
             ON CONFLICT (plan, task, key) DO NOTHING";
        calls.push(
            Call::new(sql)
                .column(locks, |(plan, _, _)| *plan)
                .column(locks, |(_, task, _)| task.to_string())
                .column(locks, |(_, _, lock)| text(&lock.key))
                .column(locks, |(_, _, lock)| lock.mode == LockMode::Shared),
        );
    }
    if !waits.is_empty() {
        let sql = "INSERT INTO waypost_waits (plan, task, on_agent, on_plan, on_task)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[])";
        calls.push(
            Call::new(sql)
                .column(waits, |(plan, _, _)| *plan)
                .column(waits, |(_, task, _)| task.to_string())
                .column(waits, |(_, _, on)| on.agent.as_deref().map(text))
                .column(waits, |(_, _, on)| on.plan.as_ref().map(ToString::to_string))
                .column(waits, |(_, _, on)| on.task.to_string()),
        );
    }
    calls
}

/// Returns the statements that replace all rows of a plan in the index tables.
pub(super) fn replace_index(key: i64, index: &IndexRows) -> Vec<Call> {
    let leases: Vec<_> = index.leases.iter().map(|lease| (key, lease)).collect();
    let locks: Vec<_> = index.locks.iter().map(|held| (key, &held.task, &held.lock)).collect();
    let waits: Vec<_> = index.waits.iter().map(|wait| (key, &wait.task, &wait.on)).collect();
    let mut calls = vec![
        Call::new("DELETE FROM waypost_leases WHERE plan = $1").with(key),
        Call::new("DELETE FROM waypost_locks WHERE plan = $1").with(key),
        Call::new("DELETE FROM waypost_waits WHERE plan = $1").with(key),
    ];
    calls.extend(put_index(&leases, &locks, &waits));
    calls
}
