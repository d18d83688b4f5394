//! One open transaction: its locks, prefetched rows, pending writes, and the failure of the connection, if any.
//!
//! Round trips dominate the cost. So the transaction begins with its first query rather than before it, locks and fetches
//! everything that will be needed in the same round trip, and buffers writes until the end.
//!
//! A writer locks the row of each plan before it reads it, and a mutex before it reads the holders of a lock, the slots of
//! a queue, a subscription or a worker. Whatever it reads besides could be changed by others: then it needs to be the only
//! writer of the store, and its work is run again as such.

use std::collections::HashMap;
use std::time::Instant;

use tokio_postgres::Row;
use waypost_core::canonical::Hash;
use waypost_core::{PlanId, Timestamp};

use super::connection::{Answers, Call, Failure, Link};
use super::footprint::{Mutex, OnConflict};
use super::rows;
use super::schema;
use super::sequencer::News;
use super::write_buffer::Slot;
use super::write_state::{Access, Control, UncertainCommit, Weight, WriteTries, Writing};
use crate::backends::columns::Columns;
use crate::error::{Result, StoreError};
use crate::rows::{HeldLock, Wait};
use crate::store::ReadHints;

/// Maximum number of versions of one plan that are prefetched.
const VERSIONS_AHEAD_MAX: i64 = 256;
/// Maximum number of waits for other plans that are read at once; if there are more, they are queried one by one.
const WAITS_AHEAD_MAX: i64 = 1_000;
/// How long the record of a commit without a version is kept: longer than any writer retries.
const COMMITS_KEPT_MICROS: i64 = 3_600_000_000;
/// One in this many such commits removes old records.
const COMMITS_CLEARED_EVERY: i64 = 64;

pub(super) const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
/// The state of the store. The clock is read after the locks were taken: in a statement of its own, after them.
const STATE: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
         EXISTS (SELECT 1 FROM waypost_waits), s.readable_by, s.id, c.schema, c.sequence,
         (SELECT min(ticket) FROM waypost_inbox) IS NOT NULL
     FROM waypost_control c, waypost_store s WHERE c.id = 1";
/// Excludes writers that must be alone, and no others. Nothing is ever stored in this table.
const SHARE_STORE: &str = "LOCK TABLE waypost_gate IN ROW EXCLUSIVE MODE";
/// Excludes all other writers, and no readers.
const HOLD_STORE: &str = "LOCK TABLE waypost_gate IN SHARE ROW EXCLUSIVE MODE";
const NEXT_KEY: &str = "SELECT nextval('waypost_plan_keys')";
/// The ticket is drawn here: after the last lock of the transaction, in the statement before the commit.
const PUT_INBOX: &str = "INSERT INTO waypost_inbox (ticket, plan, version)
     SELECT nextval('waypost_tickets'), plan, version FROM (
         SELECT plan, version FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS v (plan, version, place)
         ORDER BY place
     ) v";
/// The rows of plans, and of each the versions after the known one.
const AHEAD: &str = "SELECT p.id, p.key, p.version, p.replay_bytes, p.purged_at IS NOT NULL, p.hash,
         l.sequence, l.version, l.at, l.actor, l.command, l.events
     FROM unnest($1::text[], $2::bigint[]) AS wanted (id, after)
     JOIN waypost_plans p ON p.id = wanted.id
     LEFT JOIN LATERAL (
         SELECT coalesce(o.sequence, 9223372036854775807) AS sequence, v.version, v.at, v.actor, v.command, v.events
         FROM waypost_log v LEFT JOIN waypost_order o ON o.plan = v.plan AND o.version = v.version
         WHERE v.plan = p.key AND v.version > wanted.after ORDER BY v.version LIMIT $3
     ) l ON true
     ORDER BY p.key, l.version";
const LOCKS: &str = "SELECT l.key, l.shared, p.id, l.task
     FROM waypost_locks l JOIN waypost_plans p ON p.key = l.plan WHERE l.key = ANY($1)";
const SLOTS: &str = "SELECT l.queue, l.worker, p.id, l.task
     FROM waypost_leases l JOIN waypost_plans p ON p.key = l.plan
     WHERE l.queue = ANY($1)
         AND (l.until IS NULL OR l.until >= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)";
const WAITS: &str = "SELECT p.id, w.task, w.on_agent, w.on_plan, w.on_task
     FROM waypost_waits w JOIN waypost_plans p ON p.key = w.plan LIMIT $1";
const COMMITTED: &str = "SELECT EXISTS (
         SELECT 1 FROM waypost_plans p JOIN waypost_log l ON l.plan = p.key
         WHERE p.id = $1 AND l.version = $2 AND l.nonce = $3
     ) OR EXISTS (SELECT 1 FROM waypost_commits WHERE nonce = $3)";

/// The columns of a plan's row that are needed here.
pub(super) struct PlanRow {
    pub(super) key: i64,
    pub(super) version: u64,
    /// The hash of that version.
    pub(super) hash: Option<Hash>,
    pub(super) replay_bytes: u64,
    pub(super) purged: bool,
    /// The versions after this one were prefetched, as raw rows: a damaged one affects only readers that need it.
    pub(super) after: Option<u64>,
    pub(super) ahead: Vec<Row>,
}

/// The column of [`AHEAD`] from which on it contains a version.
pub(super) const VERSION_AHEAD: usize = 6;

/// One transaction.
pub(super) struct Session<'a> {
    link: &'a mut Link,
    pub(super) writing: Option<Writing<'a>>,
    /// How often versions were numbered for this transaction.
    pub(super) numbered: u32,
    begun: bool,
    /// Once set, no answer counts.
    pub(super) failure: Option<Failure>,
    clock: Option<(Timestamp, Instant)>,
    expected: ReadHints,
    pub(super) plans: HashMap<PlanId, Option<PlanRow>>,
    pub(super) has_waits: Option<bool>,
    /// All waits, or `None` if they are too many; unset until they were read.
    waits: Option<Option<Vec<Wait>>>,
    locks: HashMap<String, Vec<HeldLock>>,
    slots: HashMap<String, Vec<Slot>>,
}

impl<'a> Session<'a> {
    pub(super) fn reading(link: &'a mut Link, numbered: u32) -> Self {
        Self {
            link,
            writing: None,
            numbered,
            begun: false,
            failure: None,
            clock: None,
            expected: ReadHints::default(),
            plans: HashMap::new(),
            has_waits: None,
            waits: None,
            locks: HashMap::new(),
            slots: HashMap::new(),
        }
    }

    pub(super) fn writing(link: &'a mut Link, tries: &'a mut WriteTries) -> Self {
        let numbered = tries.numbered;
        let writing = Writing::new(tries);
        Self { writing: Some(writing), ..Self::reading(link, numbered) }
    }

    /// Fails unless this is the only writer: the work is then run again as such.
    pub(super) fn be_alone(&mut self) -> Result<()> {
        match &self.writing {
            Some(writing) if writing.tries.access == Access::Shared => self.fail(Failure::Exclusive),
            Some(_) | None => Ok(()),
        }
    }

    /// Fails if versions have no number yet: the work is then run again after they were numbered. Those of this process
    /// are among them, so one round is enough.
    pub(super) fn be_numbered(&mut self, is_unnumbered: bool) -> Result<()> {
        if is_unnumbered && self.numbered == 0 { self.fail(Failure::Unnumbered) } else { Ok(()) }
    }

    /// Ends the transaction with this failure.
    pub(super) fn fail<T>(&mut self, failure: Failure) -> Result<T> {
        let error = StoreError::Database(failure.describe());
        self.failure = Some(failure);
        Err(error)
    }

    /// Locks a mutex before anything that it guards is read.
    pub(super) fn lock(&mut self, mutex: Mutex<'_>) {
        if let Some(writing) = &mut self.writing {
            writing.tries.footprint.add(mutex);
        }
    }

    /// Reads these with the next round trip.
    pub(super) fn expect(&mut self, expected: &ReadHints) {
        self.expected.plans.extend(expected.plans.iter().cloned());
        self.expected.locks.extend(expected.locks.iter().cloned());
        self.expected.queues.extend(expected.queues.iter().cloned());
    }

    /// Runs calls in one round trip, together with the beginning of the transaction if it has not begun, and with the
    /// prefetch.
    pub(super) fn ask(&mut self, calls: Vec<Call>) -> Result<Answers> {
        if self.failure.is_some() {
            return Err(StoreError::Database("the transaction has failed already".to_owned()));
        }
        let ReadHints { plans, locks, queues, .. } = std::mem::take(&mut self.expected);
        let (mut all, beginning) = self.beginning(&plans, &locks, &queues);
        let needs_key = self.writing.as_ref().is_some_and(|writing| writing.spare_key.is_none())
            && plans.iter().any(|(_, known)| known.is_none());
        if needs_key {
            all.push(Call::new(NEXT_KEY));
        }
        if !plans.is_empty() {
            all.push(ahead(&plans));
        }
        if !locks.is_empty() {
            all.push(Call::new(LOCKS).with(locks.iter().map(|key| rows::text(key)).collect::<Vec<_>>()));
        }
        if !queues.is_empty() {
            all.push(Call::new(SLOTS).with(queues.iter().map(|queue| rows::text(queue)).collect::<Vec<_>>()));
        }
        all.extend(calls);
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let answers = self.link.run(&all);
        let was_begun = std::mem::replace(&mut self.begun, true);
        let mut answers = match answers {
            Ok(answers) => answers.into_iter(),
            Err(failure) => {
                let error = StoreError::Database(failure.describe());
                self.failure = Some(failure);
                return Err(error);
            }
        };
        let begun = answers.by_ref().take(beginning).collect::<Vec<_>>();
        if !was_begun && let Err(error) = self.take_beginning(&begun) {
            self.failure = Some(Failure::Store(error.clone()));
            return Err(error);
        }
        if needs_key {
            self.take_key(&answers.next().unwrap_or_default())?;
        }
        if !plans.is_empty() {
            self.take_ahead(&plans, answers.next().unwrap_or_default())?;
        }
        if !locks.is_empty() {
            self.take_locks(&locks, &answers.next().unwrap_or_default())?;
        }
        if !queues.is_empty() {
            self.take_slots(&queues, &answers.next().unwrap_or_default())?;
        }
        Ok(answers.collect())
    }

    /// Begins the transaction if it has not begun, and fetches what is expected.
    pub(super) fn begin(&mut self) -> Result<()> {
        let is_missing = |writing: &Writing<'_>| !writing.tries.footprint.is_within(&writing.held);
        if self.begun
            && self.expected == ReadHints::default()
            && !self.writing.as_ref().is_some_and(is_missing)
        {
            return match self.failure {
                Some(_) => Err(StoreError::Database("the transaction has failed already".to_owned())),
                None => Ok(()),
            };
        }
        self.ask(Vec::new()).map(drop)
    }

    /// Runs one call after all pending writes.
    pub(super) fn query(&mut self, call: Call) -> Result<Vec<Row>> {
        self.query_all(vec![call]).map(|mut answers| answers.pop().unwrap_or_default())
    }

    /// Runs several calls after all pending writes, in one round trip.
    pub(super) fn query_all(&mut self, calls: Vec<Call>) -> Result<Answers> {
        let mut all = self.writes();
        let before = all.len();
        all.extend(calls);
        let mut answers = self.ask(all)?;
        Ok(answers.split_off(before))
    }

    /// Returns the statements that begin the transaction, if it has not begun, and lock what is read for the first time;
    /// and how many they are.
    fn beginning(
        &mut self,
        plans: &[(PlanId, Option<u64>)],
        locks: &[String],
        queues: &[String],
    ) -> (Vec<Call>, usize) {
        let Some(writing) = &mut self.writing else {
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            let calls = if self.begun { Vec::new() } else { self.link.begin(begin) };
            let count = calls.len();
            return (calls, count);
        };
        let WriteTries { footprint, access, doubt, nonce, .. } = &mut *writing.tries;
        plans.iter().for_each(|(plan, _)| footprint.add_plan(plan));
        locks.iter().for_each(|key| footprint.add(Mutex::Lock(key)));
        queues.iter().for_each(|queue| footprint.add(Mutex::Queue(queue)));
        let missing = footprint.beyond(&writing.held);
        writing.held.clone_from(footprint);
        if self.begun {
            // Whoever is alone needs no locks.
            let calls = match access {
                Access::Shared => missing.calls(OnConflict::Fail),
                Access::Exclusive => Vec::new(),
            };
            let count = calls.len();
            return (calls, count);
        }
        // Each statement sees what was committed while the one before it waited for a lock.
        let mut calls = self.link.begin("BEGIN ISOLATION LEVEL READ COMMITTED");
        match access {
            Access::Shared => {
                calls.push(Call::new(SHARE_STORE));
                calls.extend(missing.calls(OnConflict::Wait));
            }
            Access::Exclusive => calls.push(Call::new(HOLD_STORE)),
        }
        if let Some(UncertainCommit { version }) = doubt {
            let (plan, version) =
                version.clone().map_or((String::new(), 0), |(plan, version)| (plan.to_string(), version));
            calls.push(Call::new(COMMITTED).with(plan).with(version as i64).with(*nonce));
        }
        calls.push(Call::new(STATE));
        let count = calls.len();
        (calls, count)
    }

    /// Reads the answers to the statements that began the transaction.
    fn take_beginning(&mut self, answers: &[Vec<Row>]) -> Result<()> {
        let (Some(writing), [rest @ .., state]) = (self.writing.as_mut(), answers) else { return Ok(()) };
        let Some(state) = state.first() else {
            let detail = "it has no row".to_owned();
            return Err(StoreError::Corrupt { what: "table waypost_control".to_owned(), detail });
        };
        let found = u32::try_from(rows::get::<i32>(state, 4)?).unwrap_or(0);
        let is_readable = schema::is_known(rows::get(state, 2)?);
        if found < schema::KNOWN || found > schema::KNOWN && !is_readable {
            // Another process has migrated the database while this one had it open.
            let what = "the database".to_owned();
            return Err(StoreError::TooNew { what, found, known: schema::KNOWN });
        }
        writing.control = Control {
            store: rows::get(state, 3)?,
            schema: found,
            sequence: rows::number(state, 5)?,
            is_unnumbered: rows::get(state, 6)?,
        };
        self.clock = Some((Timestamp::from_micros(rows::get(state, 0)?), Instant::now()));
        self.has_waits = Some(rows::get(state, 1)?);
        if writing.tries.doubt.is_some()
            && let Some(committed) = rest.last().and_then(|found| found.first())
        {
            writing.was_committed = rows::get(committed, 0)?;
        }
        Ok(())
    }

    /// Returns the state of the store when this writer began. The end of the log covers all earlier commits.
    pub(super) fn control(&mut self) -> Result<Option<&Control>> {
        if self.writing.is_none() {
            return Ok(None);
        }
        self.begin()?;
        let is_unnumbered = self.writing.as_ref().is_some_and(|writing| writing.control.is_unnumbered);
        self.be_numbered(is_unnumbered)?;
        Ok(self.writing.as_ref().map(|writing| &writing.control))
    }

    fn take_key(&mut self, found: &[Row]) -> Result<()> {
        if let (Some(writing), Some(row)) = (&mut self.writing, found.first()) {
            writing.spare_key = Some(rows::get(row, 0)?);
        }
        Ok(())
    }

    /// Returns a key for the row of a new plan.
    pub(super) fn new_key(&mut self) -> Result<i64> {
        if self.writing.as_ref().is_some_and(|writing| writing.spare_key.is_none()) {
            let found = self.ask(vec![Call::new(NEXT_KEY)])?;
            self.take_key(found.first().map_or(&[], Vec::as_slice))?;
        }
        let key = self.writing.as_mut().and_then(|writing| writing.spare_key.take());
        key.ok_or_else(|| StoreError::Database("there is no key for a new plan".to_owned()))
    }

    fn take_ahead(&mut self, wanted: &[(PlanId, Option<u64>)], found: Vec<Row>) -> Result<()> {
        for (plan, _) in wanted {
            self.plans.insert(plan.clone(), None);
            if let Some(writing) = &mut self.writing {
                writing.absent.insert(plan.clone());
            }
        }
        for row in found {
            let id = rows::plan_id(rows::get(&row, 0)?)?;
            if let Some(writing) = &mut self.writing {
                writing.absent.remove(&id);
            }
            let after = wanted.iter().find(|(plan, _)| *plan == id).and_then(|(_, after)| *after);
            let known = self.plans.entry(id).or_default();
            if known.is_none() {
                *known = Some(PlanRow {
                    key: rows::get(&row, 1)?,
                    version: rows::number(&row, 2)?,
                    hash: rows::hash(&row, 5)?,
                    replay_bytes: rows::number(&row, 3)?,
                    purged: rows::get(&row, 4)?,
                    after,
                    ahead: Vec::new(),
                });
            }
            if let Some(known) = known
                && rows::get::<Option<i64>>(&row, VERSION_AHEAD)?.is_some()
            {
                known.ahead.push(row);
            }
        }
        Ok(())
    }

    fn take_locks(&mut self, keys: &[String], found: &[Row]) -> Result<()> {
        for key in keys {
            self.locks.insert(key.clone(), Vec::new());
        }
        for row in found {
            let held = rows::held_lock(row)?;
            self.locks.entry(held.lock.key.clone()).or_default().push(held);
        }
        Ok(())
    }

    fn take_slots(&mut self, queues: &[String], found: &[Row]) -> Result<()> {
        for queue in queues {
            self.slots.insert(queue.clone(), Vec::new());
        }
        for row in found {
            let (queue, worker) = (row.text(0)?.unwrap_or_default(), row.text(1)?.unwrap_or_default());
            let (plan, task) = (rows::plan_id(rows::get(row, 2)?)?, rows::task_id(rows::get(row, 3)?)?);
            self.slots.entry(queue).or_default().push(Slot { worker, plan, task });
        }
        Ok(())
    }

    /// Returns the stored row of a plan. Pending writes take precedence over it and are not included.
    pub(super) fn known(&mut self, plan: &PlanId) -> Result<Option<&PlanRow>> {
        let is_expected = self.expected.plans.iter().any(|(expected, _)| expected == plan);
        if !is_expected && !self.plans.contains_key(plan) {
            self.expected.plans.push((plan.clone(), None));
        }
        self.begin()?;
        Ok(self.plans.get(plan).and_then(Option::as_ref))
    }

    /// Returns the holders of these locks, as the tables have them.
    pub(super) fn held(&mut self, keys: &[&str]) -> Result<&HashMap<String, Vec<HeldLock>>> {
        for key in keys {
            if !self.locks.contains_key(*key) && !self.expected.locks.iter().any(|expected| expected == key) {
                self.expected.locks.push((*key).to_owned());
            }
        }
        self.begin()?;
        Ok(&self.locks)
    }

    /// Returns the tasks that hold slots of a queue, as the tables have them.
    pub(super) fn slots_of(&mut self, queue: &str) -> Result<Vec<Slot>> {
        if !self.slots.contains_key(queue) && !self.expected.queues.iter().any(|expected| expected == queue) {
            self.expected.queues.push(queue.to_owned());
        }
        self.begin()?;
        Ok(self.slots.get(queue).cloned().unwrap_or_default())
    }

    /// Returns all waits, as the tables have them; `None` if they are too many.
    pub(super) fn all_waits(&mut self) -> Result<Option<&[Wait]>> {
        if self.waits.is_none() {
            let found = self.ask(vec![Call::new(WAITS).with(WAITS_AHEAD_MAX + 1)])?;
            let found = found.first().filter(|found| found.len() as i64 <= WAITS_AHEAD_MAX);
            let waits = found.map(|found| found.iter().map(rows::wait).collect::<Result<Vec<_>, _>>());
            self.waits = Some(waits.transpose()?);
        }
        Ok(self.waits.as_ref().and_then(Option::as_deref))
    }

    /// Returns the time of the server.
    pub(super) fn clock(&mut self) -> Result<Timestamp> {
        if self.writing.is_some() {
            self.begin()?;
        }
        if self.clock.is_none() {
            let found = self.ask(vec![Call::new(CLOCK)])?;
            let row = found.first().and_then(|rows| rows.first());
            let micros = row.map_or(Ok(0), |row| rows::get(row, 0))?;
            self.clock = Some((Timestamp::from_micros(micros), Instant::now()));
        }
        let (then, since) = self.clock.unwrap_or((Timestamp::from_micros(0), Instant::now()));
        let passed = i64::try_from(since.elapsed().as_micros()).unwrap_or(0);
        Ok(Timestamp::from_micros(then.as_micros().saturating_add(passed)))
    }

    /// Returns the statements that write everything pending. Prefetched locks, slots and waits are then outdated and
    /// dropped.
    fn writes(&mut self) -> Vec<Call> {
        let Some(writing) = self.writing.as_mut() else { return Vec::new() };
        let (mut calls, written) = writing.pending.take(writing.tries.nonce);
        calls.append(&mut writing.queued);
        for plan in written {
            let known = PlanRow {
                key: plan.key,
                version: plan.head.version,
                hash: plan.hash,
                replay_bytes: plan.replay_bytes,
                purged: false,
                after: None,
                ahead: Vec::new(),
            };
            self.plans.insert(plan.head.id, Some(known));
        }
        if !calls.is_empty() {
            (self.waits, self.has_waits) = (None, None);
            self.locks.clear();
            self.slots.clear();
        }
        calls
    }

    /// Makes everything durable, in one round trip. A transaction that only read is simply rolled back.
    pub(super) fn commit(mut self) -> Result<Option<News>, (Failure, UncertainCommit)> {
        let mut calls = self.writes();
        let doubt =
            UncertainCommit { version: self.writing.as_ref().and_then(|writing| writing.last.clone()) };
        if let Some(failure) = self.failure.take() {
            return Err((failure, doubt));
        }
        let Some(writing) = self.writing.as_ref().filter(|writing| writing.weight > Weight::Empty) else {
            self.end();
            return Ok(None);
        };
        let is_created = |plan: &PlanId| self.plans.get(plan).is_some_and(Option::is_some);
        if writing.tries.access == Access::Shared && !writing.absent.iter().all(is_created) {
            // Nothing can be locked that would keep others from creating such a plan.
            self.end();
            return Err((Failure::Exclusive, doubt));
        }
        if writing.weight == Weight::Once && writing.last.is_none() {
            let now = self.clock.map_or(0, |(then, _)| then.as_micros());
            calls.push(
                Call::new("INSERT INTO waypost_commits (nonce, at) VALUES ($1, $2)")
                    .with(writing.tries.nonce)
                    .with(now),
            );
            if writing.tries.nonce % COMMITS_CLEARED_EVERY == 0 {
                let old = now - COMMITS_KEPT_MICROS;
                calls.push(Call::new("DELETE FROM waypost_commits WHERE at < $1").with(old));
            }
        }
        if writing.weight == Weight::Heartbeat {
            calls.push(Call::new("SET LOCAL synchronous_commit = off"));
        }
        if !writing.appended.is_empty() {
            let appended = &writing.appended[..];
            let inbox = Call::new(PUT_INBOX).column(appended, |(plan, _)| *plan);
            calls.push(inbox.column(appended, |(_, version)| *version as i64));
        }
        calls.push(Call::new("COMMIT"));
        let news = writing.news;
        match self.link.run(&calls) {
            Ok(_) => Ok(news),
            Err(failure) => {
                self.end();
                Err((failure, doubt))
            }
        }
    }

    /// Rolls back without waiting for the answer.
    pub(super) fn end(&mut self) {
        if self.begun {
            self.begun = false;
            self.link.send("ROLLBACK");
        }
    }
}

/// Returns the call that prefetches these plans.
fn ahead(plans: &[(PlanId, Option<u64>)]) -> Call {
    Call::new(AHEAD)
        .with(plans.iter().map(|(plan, _)| plan.to_string()).collect::<Vec<_>>())
        .with(plans.iter().map(|(_, after)| after.map(|after| after as i64)).collect::<Vec<_>>())
        .with(VERSIONS_AHEAD_MAX)
}
