//! The body of the store's transaction: decides commands on the current plan and appends their events as one version.
//! It runs as if there were no concurrent writers.

use std::borrow::Cow;

use waypost_core::{
    Actor, ActorKind, Command, Event, LockMode, Plan, PlanId, Refusal, TaskId, Timestamp, differences,
};

use super::cache::{Cache, Cached, News, Purged, VERSIONS_READ_MAX, catch_up, load};
use super::recent_versions::keep;
use super::request::{
    BatchError, Committed, Conflict, Done, OnRefusal, Purge, SharedRow, SharedWrite, Write, WriteError,
    WriteRequest,
};
use super::slot_quota::SlotQuota;
use crate::cross_plan::locate::check_waits;
use crate::cross_plan::resolve::no_ring;
use crate::error::{Result, StoreError};
use crate::rows::{
    HeldLock, IndexChanges, LeaseTerms, LockFilter, PlanState, PlanSummary, VersionRecord, WaitFilter,
};
use crate::store::{Append, Appended, Record, Transaction};

/// Bytes of versions after which even a small plan gets a snapshot.
const SNAPSHOT_BYTES_MIN: u64 = 64 * 1024;
/// Number of versions replayed to load a plan after which a snapshot is due at a sixth of the usual bytes per task.
const REPLAYED_MAX: u64 = 500;
/// Maximum number of tasks of a plan whose start is replayed rather than stored as a snapshot.
const TASKS_BEGUN_MAX: usize = 1_000;
/// Maximum number of differences that a conflict lists.
const CONFLICT_DIFFERENCES_MAX: usize = 50;

pub(super) fn create(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    id: Option<&PlanId>,
    by: &Actor,
    command: &Command,
) -> Done {
    let id = match id {
        Some(id) if transaction.head(id)?.is_some() => return Err(Refusal::AlreadyExists {}.into()),
        Some(id) if transaction.plan_state(id)? != PlanState::Unused => {
            return Err(WriteError::IdUsed(id.clone()).into());
        }
        Some(id) => id.clone(),
        None => fresh_id(transaction)?,
    };
    let at = transaction.now();
    let mut plan = Plan::blank(id);
    let events = plan.decide(by, at, command)?;
    plan.advance(&events, at);
    no_ring(transaction, &plan, &events)?;
    let unresolved = check_waits(transaction, &plan, &events)?;
    let mut cached = Cached { plan, used: 0, replayed: 0, news: None, kept: None };
    let (committed, _) =
        append(transaction, &mut cached, by, command.name(), &events, LeaseTerms::default(), at)?;
    let (id, news) = (cached.plan.id().clone(), cached.news.take());
    cache.put(cached.plan, cached.replayed);
    if let Some(made) = cache.plans.get_mut(&id) {
        made.news = news;
    }
    Ok(Committed { unresolved, ..committed })
}

/// Joins the names of commands; each appears once, however many small edits there are.
fn joined(all: Vec<&str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("+")
}

/// Decides all commands in turn on the current plan, and appends their events as one version.
pub(crate) fn write(transaction: &mut dyn Transaction, cache: &mut Cache, write: &Write) -> Done {
    let Write { request, slots, build, append: then, on_refusal } = write;
    let (id, slots) = (&request.plan, slots.as_ref());
    let not_found = || WriteError::NotFound(id.to_string());
    let version = transaction.plan_state(id)?.version().ok_or_else(not_found)?;
    catch_up(transaction, cache, id, version)?;
    let known = request.known_version.filter(|&known| known != version && *on_refusal == OnRefusal::Fail);
    if let Some(known) = known {
        return Err(conflict(transaction, cache, id, version, known)?.into());
    }
    let cached = cache.plans.get_mut(id).ok_or_else(not_found)?;
    let plan = &mut cached.plan;
    let given_up = || WriteError::Store(StoreError::Database("the caller gave the write up".into()));
    let mut commands = match build {
        None => Cow::Borrowed(&request.commands),
        Some(build) => Cow::Owned(build(plan).ok_or_else(given_up)?),
    };
    // A clock that was set back must not make the history of a plan run backwards.
    let at = transaction.now().max(plan.state().updated_at.unwrap_or(Timestamp::from_micros(0)));
    let (mut all, mut names, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
    let mut room = SlotQuota::of(request, slots);
    let (mut place, mut then) = (0, then.as_ref());
    loop {
        let Some(command) = commands.get(place) else {
            let Some(then) = then.take() else { break };
            plan.refresh_work();
            match then(plan, transaction) {
                Some(more) => commands.to_mut().extend(more),
                None => {
                    cache.plans.remove(id);
                    return Err(given_up().into());
                }
            }
            continue;
        };
        let decided = plan.decide(&request.by, at, command).map_err(WriteError::Refused);
        let possible = decided.and_then(|events| {
            locks_are_free(transaction, plan, &events)?;
            room.take(transaction, place, command)?;
            Ok(events)
        });
        match possible {
            Ok(events) => {
                for event in &events {
                    plan.evolve(event, at);
                }
                all.extend(events);
                names.push(command.name());
            }
            Err(WriteError::Refused(refusal)) if *on_refusal == OnRefusal::Skip => {
                rejected.push((place, refusal));
            }
            Err(error) => {
                // The events of the earlier commands changed the cached copy but are not written.
                if !all.is_empty() {
                    cache.plans.remove(id);
                }
                return Err(error.into());
            }
        }
        place += 1;
    }
    if all.is_empty() {
        plan.take_touched();
        return Ok(Committed { rejected, ..Committed::unchanged(id.clone(), version) });
    }
    let checked = no_ring(transaction, plan, &all).and_then(|()| check_waits(transaction, plan, &all));
    let unresolved = match checked {
        Ok(unresolved) => unresolved,
        Err(error) => {
            cache.plans.remove(id);
            return Err(error.into());
        }
    };
    plan.finish_version(at);
    let command = joined(names);
    let terms = LeaseTerms { seconds: request.lease_seconds, queue: slots.map(|slots| slots.queue.as_str()) };
    let (committed, sequence) = append(transaction, cached, &request.by, &command, &all, terms, at)?;
    let version = committed.version;
    let (plan, actor) = (id.clone(), request.by.clone());
    let entry = || VersionRecord { sequence, plan, version, at, actor, command, events: all };
    keep(&mut cached.kept, entry);
    Ok(Committed { rejected, unresolved, ..committed })
}

/// Writes commands and the rows that go with their version. Fails before anything is written if the plan is not at the
/// version that the caller has read.
pub(super) fn write_shared(transaction: &mut dyn Transaction, cache: &mut Cache, job: &SharedWrite) -> Done {
    let SharedWrite { plan, by, known_version, commands, rows } = job;
    let done = match (known_version, commands.first()) {
        (Some(_), _) => {
            let request = WriteRequest {
                plan: plan.clone(),
                by: by.clone(),
                commands: commands.clone(),
                known_version: *known_version,
                lease_seconds: None,
            };
            let write =
                Write { request, slots: None, build: None, append: None, on_refusal: OnRefusal::Fail };
            self::write(transaction, cache, &write)?
        }
        (None, Some(command)) => create(transaction, cache, Some(plan), by, command)?,
        (None, None) if transaction.plan_state(plan)? == PlanState::Unused => {
            Committed::unchanged(plan.clone(), 0)
        }
        (None, None) => return Err(WriteError::IdUsed(plan.clone()).into()),
    };
    put_shared(transaction, plan, &rows(done.version))?;
    Ok(done)
}

fn put_shared(
    transaction: &mut dyn Transaction,
    plan: &PlanId,
    rows: &[SharedRow],
) -> Result<(), BatchError> {
    for SharedRow { group, key, value } in rows {
        let record = Record::Shared(group.of(plan), key, value.as_deref());
        transaction.put(record).map_err(BatchError::OfTheStore)?;
    }
    Ok(())
}

/// Checks that the locks of started tasks are free. Locks are global, so no single plan can decide about them.
fn locks_are_free(
    transaction: &mut dyn Transaction,
    plan: &Plan,
    events: &[Event],
) -> Result<(), WriteError> {
    for event in events {
        // A start that is recorded later holds its locks since the task was queued.
        let (Event::TaskStarted { task, started_at: None, .. } | Event::TaskQueued { task, .. }) = event
        else {
            continue;
        };
        let Some(found) = plan.task(task.as_str()).filter(|found| !found.spec.locks.is_empty()) else {
            continue;
        };
        let keys: Vec<&str> = found.spec.locks.iter().map(|lock| lock.key.as_str()).collect();
        // The plan knows the locks of its own tasks better: earlier commands of the same request have changed it, and
        // the tables do not contain that yet.
        let elsewhere =
            transaction.locks(LockFilter::Keys(&keys))?.into_iter().filter(|held| held.plan != *plan.id());
        let here = plan.in_progress().flat_map(|task| {
            let held = task.spec.locks.iter().filter(|lock| keys.contains(&lock.key.as_str()));
            held.map(|lock| HeldLock {
                lock: lock.clone(),
                plan: plan.id().clone(),
                task: task.spec.id.clone(),
            })
        });
        for held in elsewhere.chain(here) {
            let wanted = found.spec.locks.iter().find(|lock| lock.key == held.lock.key);
            let both_shared = wanted.is_some_and(|lock| lock.mode == LockMode::Shared)
                && held.lock.mode == LockMode::Shared;
            if !both_shared {
                return Err(WriteError::Refused(Refusal::LockHeld {
                    task: task.to_string(),
                    key: held.lock.key,
                    holder: format!("{}/{}", held.plan, held.task),
                }));
            }
        }
    }
    Ok(())
}

/// Appends a version. Also returns its sequence number.
fn append(
    transaction: &mut dyn Transaction,
    cached: &mut Cached,
    by: &Actor,
    command: &str,
    events: &[Event],
    terms: LeaseTerms<'_>,
    at: Timestamp,
) -> Result<(Committed, u64), BatchError> {
    let plan = &mut cached.plan;
    let mut touched = plan.take_touched();
    let (outcomes, whole) = (std::mem::take(&mut touched.outcomes), touched.whole);
    let index = IndexChanges::of(plan, touched, terms, at);
    let waits = index.waits.iter().filter(|(_, waits)| !waits.is_empty()).cloned().collect();
    let former_owner = former_owner(transaction, plan, events).map_err(BatchError::OfTheStore)?;
    cached.news = Some(News { outcomes, whole, waits, purged: None, former_owner });
    let head = PlanSummary::of(plan);
    let append = Append { head: &head, at, actor: by, command, events, index: &index, plan };
    let Appended { sequence, replay_bytes } = transaction.append(&append).map_err(BatchError::OfTheStore)?;
    // A snapshot costs as much as the plan is large, so it waits until replaying costs as much. A process that only
    // writes plans from its cache can wait longer than processes that load the plan for every command.
    let often_loaded = cached.replayed > REPLAYED_MAX || plan.state().phase.is_finished();
    let worthwhile = plan.len() as u64 * if often_loaded { 8 } else { 48 };
    // The start of a plan is a small event that visits every task, so replaying it should be avoided.
    let begins =
        events.iter().any(|event| matches!(event, Event::PlanActivated {} | Event::PlanApproved { .. }));
    if replay_bytes > SNAPSHOT_BYTES_MIN.max(worthwhile) || begins && plan.len() > TASKS_BEGUN_MAX {
        let bytes = plan.snapshot();
        let snapshot = Record::Snapshot(plan.id(), plan.version(), &bytes);
        transaction.put(snapshot).map_err(BatchError::OfTheStore)?;
        cached.replayed = 0;
    }
    let (id, version) = (plan.id().clone(), plan.version());
    Ok((Committed { changed: true, ..Committed::unchanged(id, version) }, sequence))
}

/// Returns the owner of a plan before the events, if they change it.
fn former_owner(transaction: &mut dyn Transaction, plan: &Plan, events: &[Event]) -> Result<Option<String>> {
    if !events.iter().any(|event| matches!(event, Event::PlanRevised { owner: Some(_), .. })) {
        return Ok(None);
    }
    let before = transaction.head(plan.id())?.map(|head| head.owner);
    Ok(before.filter(|owner| !owner.is_empty() && *owner != plan.spec().owner))
}

fn conflict(
    transaction: &mut dyn Transaction,
    cache: &Cache,
    id: &PlanId,
    version: u64,
    known: u64,
) -> Result<WriteError, WriteError> {
    let current = cache.plans.get(id).map(|cached| cached.plan.to_draft());
    let mut found = Vec::new();
    if let Some(current) = current.filter(|_| (1..version).contains(&known)) {
        match load(transaction, id, known) {
            Ok(plan) => found = differences(&plan.to_draft(), &current),
            // The differences are lost, but the conflict is certain.
            Err(StoreError::Pruned { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut writers: Vec<Actor> = Vec::new();
    for entry in transaction.versions(id, known, VERSIONS_READ_MAX)? {
        if !writers.contains(&entry.actor) {
            writers.push(entry.actor);
        }
    }
    let differences_total = found.len();
    found.truncate(CONFLICT_DIFFERENCES_MAX);
    Ok(WriteError::Conflict(Box::new(Conflict {
        plan: id.clone(),
        known,
        current: version,
        differences: found,
        differences_total,
        writers,
    })))
}

/// Removes a plan. Also returns the news for plans that wait for it.
pub(super) fn purge(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    job: &Purge,
) -> Result<(Committed, News), BatchError> {
    let Purge { plan, by, known_version, rows } = job;
    if by.kind != ActorKind::Person {
        return Err(Refusal::OnlyAPerson { what: "purge a plan", by: by.clone() }.into());
    }
    let head = transaction.head(plan)?.ok_or_else(|| WriteError::NotFound(plan.to_string()))?;
    if let Some(known) = known_version.filter(|&known| known != head.version) {
        return Err(conflict(transaction, cache, plan, head.version, known)?.into());
    }
    let purged = purged(transaction, cache, &head)?;
    transaction.purge(plan).map_err(BatchError::OfTheStore)?;
    put_shared(transaction, plan, rows)?;
    cache.plans.remove(plan);
    let done = Committed { changed: true, ..Committed::unchanged(plan.clone(), head.version) };
    Ok((done, News { purged: Some(purged), ..News::default() }))
}

/// Returns the tasks that wait for a plan that is to be purged.
fn purged(transaction: &mut dyn Transaction, cache: &mut Cache, head: &PlanSummary) -> Result<Purged> {
    let on = WaitFilter::On { plan: &head.id, owner: &head.owner, task: None };
    let mut waits = transaction.waits(on)?;
    waits.retain(|wait| wait.plan != head.id);
    let mut tasks: Vec<TaskId> = waits.iter().map(|wait| wait.on.task.clone()).collect();
    // An unreadable plan can be purged all the same.
    let is_known = !tasks.is_empty() && catch_up(transaction, cache, &head.id, head.version).is_ok();
    let plan = cache.get(&head.id).filter(|_| is_known);
    tasks.retain(|task| plan.is_some_and(|plan| plan.task(task.as_str()).is_some()));
    Ok(Purged { waits, tasks })
}

/// Returns ten random characters that are easy to read aloud.
pub(crate) fn random_name() -> Result<String> {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bytes = [0u8; 10];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
    // The first character is a letter, so that shells and spreadsheets do not take an id for a number.
    let first = ALPHABET[10 + usize::from(bytes[0]) % 22] as char;
    let rest = bytes[1..].iter().map(|byte| ALPHABET[usize::from(byte % 32)] as char);
    Ok(std::iter::once(first).chain(rest).collect())
}

/// Returns an id that no plan has ever had.
fn fresh_id(transaction: &mut dyn Transaction) -> Result<PlanId, WriteError> {
    for _ in 0..100 {
        let id = PlanId::new(random_name()?).map_err(|error| StoreError::Database(error.to_string()))?;
        if transaction.plan_state(&id)? == PlanState::Unused {
            return Ok(id);
        }
    }
    Err(StoreError::Database("a hundred random ids in a row were taken".into()).into())
}
