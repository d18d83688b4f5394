//! What a transaction has yet to write. Versions that are committed together are sent together, and move heads and the
//! tables of tasks once, to where the last one leaves them: however many there are, they are a few statements.

use std::collections::HashMap;

use waypost_core::{ExternalTaskRef, Lock, LockMode, PlanId, TaskId, Timestamp};

use super::connection::Call;
use super::rows::text;
use crate::backends::write_buffer::PendingPlan;
use crate::error::StoreError;
use crate::rows::{HeldLock, IndexRows, Lease, PlanSummary, VersionRecord, Wait};
use crate::store::Append;

/// A slot of a queue that a running task takes.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) worker: String,
    pub(super) plan: PlanId,
    pub(super) task: TaskId,
}

/// Versions, column by column.
#[derive(Default)]
struct Versions {
    sequence: Vec<i64>,
    plan: Vec<i64>,
    version: Vec<i64>,
    at: Vec<i64>,
    actor: Vec<String>,
    command: Vec<String>,
    nonce: Vec<i64>,
    events: Vec<String>,
}

/// All plans' shares.
#[derive(Default)]
pub(super) struct Pending {
    plans: HashMap<PlanId, PendingPlan>,
    versions: Versions,
}

impl Pending {
    pub(super) fn get(&self, plan: &PlanId) -> Option<&PendingPlan> {
        self.plans.get(plan)
    }

    pub(super) fn get_mut(&mut self, plan: &PlanId) -> Option<&mut PendingPlan> {
        self.plans.get_mut(plan)
    }

    /// Whether any of them changes who waits for tasks elsewhere.
    pub(super) fn has_waits(&self) -> bool {
        self.plans.values().any(PendingPlan::has_waits)
    }

    /// Takes a plan up whose row has this number.
    pub(super) fn begin(&mut self, key: i64, head: &PlanSummary, replay_bytes: u64) -> &mut PendingPlan {
        self.plans.entry(head.id.clone()).or_insert_with(|| PendingPlan::new(key, head, replay_bytes))
    }

    /// Adds a version of a plan that was taken up.
    pub(super) fn add(&mut self, key: i64, sequence: u64, nonce: i64, append: &Append<'_>, events: String) {
        let head = append.head;
        if let Some(plan) = self.plans.get_mut(&head.id) {
            plan.add(head, events.len() as u64, append.index);
        }
        let versions = &mut self.versions;
        versions.sequence.push(sequence as i64);
        versions.plan.push(key);
        versions.version.push(head.version as i64);
        versions.at.push(append.at.as_micros());
        versions.actor.push(text(&append.actor.to_string()));
        versions.command.push(append.command.to_owned());
        versions.nonce.push(nonce);
        versions.events.push(events);
    }

    /// Who holds `key`, given who the tables say does.
    pub(super) fn locks(&self, key: &str, stored: &[HeldLock]) -> Vec<HeldLock> {
        let moved = |held: &&HeldLock| {
            self.plans.get(&held.plan).is_some_and(|plan| plan.running.contains_key(&held.task))
        };
        let mut found: Vec<HeldLock> = stored.iter().filter(|held| !moved(held)).cloned().collect();
        for plan in self.plans.values() {
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

    /// Who has slots of `queue`, by tasks, given who the tables say does.
    pub(super) fn slots(&self, queue: &str, stored: &[Slot]) -> Vec<String> {
        let moved = |slot: &&Slot| {
            self.plans.get(&slot.plan).is_some_and(|plan| plan.running.contains_key(&slot.task))
        };
        let mut found: Vec<String> =
            stored.iter().filter(|slot| !moved(slot)).map(|slot| slot.worker.clone()).collect();
        for plan in self.plans.values() {
            let started = plan.running.values().flatten().map(|(lease, _)| lease);
            let here = started.filter(|lease| lease.queue.as_deref() == Some(queue));
            found.extend(here.map(|lease| lease.worker.clone()));
        }
        found
    }

    /// Who waits for what, given what the tables say.
    pub(super) fn waits(&self, stored: &[Wait]) -> Vec<Wait> {
        let moved =
            |wait: &&Wait| self.plans.get(&wait.plan).is_some_and(|plan| plan.waits.contains_key(&wait.task));
        let mut found: Vec<Wait> = stored.iter().filter(|wait| !moved(wait)).cloned().collect();
        for plan in self.plans.values() {
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

    /// The statements that write everything, and the plans that they write.
    pub(super) fn take(&mut self) -> (Vec<Call>, Vec<PendingPlan>) {
        let plans: Vec<PendingPlan> = self.plans.drain().map(|(_, plan)| plan).collect();
        let mut calls = Vec::new();
        if !plans.is_empty() {
            calls.push(put_heads(plans.iter().map(|plan| (plan.key, &plan.head, plan.replay_bytes))));
        }
        let versions = std::mem::take(&mut self.versions);
        if !versions.sequence.is_empty() {
            calls.push(versions.put());
        }
        let (mut leases, mut locks, mut waits) = (Leases::default(), Locks::default(), Waits::default());
        for plan in &plans {
            if !plan.running.is_empty() {
                let tasks = plan.running.keys().map(ToString::to_string).collect::<Vec<_>>();
                calls.push(Call::new(STOP).with(plan.key).with(tasks));
            }
            for (lease, held) in plan.running.values().flatten() {
                leases.add(plan.key, lease);
                held.iter().for_each(|lock| locks.add(plan.key, &lease.task, lock));
            }
            if !plan.waits.is_empty() {
                let tasks = plan.waits.keys().map(ToString::to_string).collect::<Vec<_>>();
                calls.push(
                    Call::new("DELETE FROM waypost_waits WHERE plan = $1 AND task = ANY($2)")
                        .with(plan.key)
                        .with(tasks),
                );
            }
            for (task, on) in &plan.waits {
                on.iter().for_each(|on| waits.add(plan.key, task, on));
            }
        }
        calls.extend([leases.put(), locks.put(), waits.put()].into_iter().flatten());
        (calls, plans)
    }
}

/// Takes leases and locks away from tasks of one plan.
const STOP: &str = "WITH unlocked AS (DELETE FROM waypost_locks WHERE plan = $1 AND task = ANY($2))
     DELETE FROM waypost_leases WHERE plan = $1 AND task = ANY($2)";

impl Versions {
    fn put(self) -> Call {
        let call = Call::new(
            "INSERT INTO waypost_log (sequence, plan, version, at, actor, command, nonce, events)
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[],
                 $7::bigint[], $8::text[])",
        );
        call.with(self.sequence)
            .with(self.plan)
            .with(self.version)
            .with(self.at)
            .with(self.actor)
            .with(self.command)
            .with(self.nonce)
            .with(self.events)
    }
}

/// Writes versions as another store has them, with their numbers; also says how many bytes of events they hold.
pub(super) fn put_entries(
    key: i64,
    nonce: i64,
    entries: &[VersionRecord],
) -> Result<(Call, u64), StoreError> {
    let mut versions = Versions::default();
    let mut bytes = 0;
    for entry in entries {
        let events =
            serde_json::to_string(&entry.events).map_err(|error| StoreError::Database(error.to_string()))?;
        bytes += events.len() as u64;
        versions.sequence.push(entry.sequence as i64);
        versions.plan.push(key);
        versions.version.push(entry.version as i64);
        versions.at.push(entry.at.as_micros());
        versions.actor.push(text(&entry.actor.to_string()));
        versions.command.push(entry.command.clone());
        versions.nonce.push(nonce);
        versions.events.push(events);
    }
    Ok((versions.put(), bytes))
}

/// Writes heads into their rows; plans that are new get theirs.
pub(super) fn put_heads<'a>(heads: impl Iterator<Item = (i64, &'a PlanSummary, u64)>) -> Call {
    let heads: Vec<(i64, &PlanSummary, u64)> = heads.collect();
    fn column<T>(heads: &[(i64, &PlanSummary, u64)], of: impl Fn(&PlanSummary) -> T) -> Vec<T> {
        heads.iter().map(|(_, head, _)| of(head)).collect()
    }
    let count = |of: fn(&PlanSummary) -> i64| column(&heads, of);
    let time =
        |of: fn(&PlanSummary) -> Option<Timestamp>| column(&heads, |head| of(head).map(Timestamp::as_micros));
    Call::new(
        "INSERT INTO waypost_plans (key, id, version, title, status, phase, owner, queue, created_by, created_at,
             updated_at, archived, awaits_approval, total, ready, blocked, running, done, failed, skipped, cancelled,
             urgency, replay_bytes, asking, goals, atomic)
         SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
             $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::boolean[], $13::boolean[], $14::bigint[],
             $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
             $22::integer[], $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[])
         ON CONFLICT (key) DO UPDATE SET version = excluded.version, title = excluded.title, status = excluded.status,
             phase = excluded.phase, owner = excluded.owner, queue = excluded.queue, created_by = excluded.created_by,
             created_at = excluded.created_at, updated_at = excluded.updated_at, archived = excluded.archived,
             awaits_approval = excluded.awaits_approval, total = excluded.total, ready = excluded.ready,
             blocked = excluded.blocked, running = excluded.running, done = excluded.done, failed = excluded.failed,
             skipped = excluded.skipped, cancelled = excluded.cancelled, urgency = excluded.urgency,
             replay_bytes = excluded.replay_bytes, asking = excluded.asking, goals = excluded.goals,
             atomic = excluded.atomic",
    )
    .with(heads.iter().map(|(key, _, _)| *key).collect::<Vec<_>>())
    .with(column(&heads, |head| head.id.to_string()))
    .with(count(|head| head.version as i64))
    .with(column(&heads, |head| text(&head.title)))
    .with(column(&heads, |head| text(&head.status)))
    .with(column(&heads, |head| head.phase.as_str().to_owned()))
    .with(column(&heads, |head| text(&head.owner)))
    .with(column(&heads, |head| text(&head.queue)))
    .with(column(&heads, |head| head.created_by.as_ref().map(|actor| text(&actor.to_string()))))
    .with(time(|head| head.created_at))
    .with(time(|head| head.updated_at))
    .with(column(&heads, |head| head.archived))
    .with(column(&heads, |head| head.awaits_approval))
    .with(count(|head| i64::from(head.counts.total)))
    .with(count(|head| i64::from(head.counts.ready)))
    .with(count(|head| i64::from(head.counts.blocked)))
    .with(count(|head| i64::from(head.counts.running)))
    .with(count(|head| i64::from(head.counts.done)))
    .with(count(|head| i64::from(head.counts.failed)))
    .with(count(|head| i64::from(head.counts.skipped)))
    .with(count(|head| i64::from(head.counts.cancelled)))
    .with(column(&heads, |head| head.urgency))
    .with(heads.iter().map(|(_, _, bytes)| *bytes as i64).collect::<Vec<_>>())
    .with(count(|head| i64::from(head.asking)))
    .with(count(|head| i64::from(head.goals)))
    .with(count(|head| i64::from(head.atomic)))
}

#[derive(Default)]
struct Leases {
    plan: Vec<i64>,
    task: Vec<String>,
    attempt: Vec<i64>,
    worker: Vec<String>,
    until: Vec<Option<i64>>,
    since: Vec<Option<i64>>,
    queue: Vec<Option<String>>,
    seconds: Vec<Option<i64>>,
    progress: Vec<Option<String>>,
    progressed_at: Vec<Option<i64>>,
}

impl Leases {
    fn add(&mut self, plan: i64, lease: &Lease) {
        self.plan.push(plan);
        self.task.push(lease.task.to_string());
        self.attempt.push(i64::from(lease.attempt));
        self.worker.push(text(&lease.worker));
        self.until.push(lease.until.map(Timestamp::as_micros));
        self.since.push(lease.since.map(Timestamp::as_micros));
        self.queue.push(lease.queue.as_deref().map(text));
        self.seconds.push(lease.seconds.map(i64::from));
        self.progress.push(lease.progress.as_ref().map(|progress| text(&progress.text)));
        self.progressed_at.push(lease.progress.as_ref().map(|progress| progress.at.as_micros()));
    }

    fn put(self) -> Option<Call> {
        let call = Call::new(
            "INSERT INTO waypost_leases (plan, task, attempt, worker, until, since, queue, seconds, progress,
                 progressed_at)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[],
                 $7::text[], $8::bigint[], $9::text[], $10::bigint[])",
        );
        let some = !self.plan.is_empty();
        some.then(|| {
            call.with(self.plan)
                .with(self.task)
                .with(self.attempt)
                .with(self.worker)
                .with(self.until)
                .with(self.since)
                .with(self.queue)
                .with(self.seconds)
                .with(self.progress)
                .with(self.progressed_at)
        })
    }
}

#[derive(Default)]
struct Locks {
    plan: Vec<i64>,
    task: Vec<String>,
    key: Vec<String>,
    shared: Vec<bool>,
}

impl Locks {
    fn add(&mut self, plan: i64, task: &TaskId, lock: &Lock) {
        self.plan.push(plan);
        self.task.push(task.to_string());
        self.key.push(text(&lock.key));
        self.shared.push(lock.mode == LockMode::Shared);
    }

    fn put(self) -> Option<Call> {
        let call = Call::new(
            "INSERT INTO waypost_locks (plan, task, key, shared)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[])
             ON CONFLICT (plan, task, key) DO NOTHING",
        );
        let some = !self.plan.is_empty();
        some.then(|| call.with(self.plan).with(self.task).with(self.key).with(self.shared))
    }
}

#[derive(Default)]
struct Waits {
    plan: Vec<i64>,
    task: Vec<String>,
    on_agent: Vec<Option<String>>,
    on_plan: Vec<Option<String>>,
    on_task: Vec<String>,
}

impl Waits {
    fn add(&mut self, plan: i64, task: &TaskId, on: &ExternalTaskRef) {
        self.plan.push(plan);
        self.task.push(task.to_string());
        self.on_agent.push(on.agent.as_deref().map(text));
        self.on_plan.push(on.plan.as_ref().map(ToString::to_string));
        self.on_task.push(on.task.to_string());
    }

    fn put(self) -> Option<Call> {
        let call = Call::new(
            "INSERT INTO waypost_waits (plan, task, on_agent, on_plan, on_task)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[])",
        );
        let some = !self.plan.is_empty();
        some.then(|| {
            call.with(self.plan).with(self.task).with(self.on_agent).with(self.on_plan).with(self.on_task)
        })
    }
}

/// The statements that put these rows in the place of all that the tables have beside a plan.
pub(super) fn replace_index(key: i64, index: &IndexRows) -> Vec<Call> {
    let (mut leases, mut locks, mut waits) = (Leases::default(), Locks::default(), Waits::default());
    index.leases.iter().for_each(|lease| leases.add(key, lease));
    index.locks.iter().for_each(|held| locks.add(key, &held.task, &held.lock));
    index.waits.iter().for_each(|wait| waits.add(key, &wait.task, &wait.on));
    let mut calls = vec![
        Call::new("DELETE FROM waypost_leases WHERE plan = $1").with(key),
        Call::new("DELETE FROM waypost_locks WHERE plan = $1").with(key),
        Call::new("DELETE FROM waypost_waits WHERE plan = $1").with(key),
    ];
    calls.extend([leases.put(), locks.put(), waits.put()].into_iter().flatten());
    calls
}
