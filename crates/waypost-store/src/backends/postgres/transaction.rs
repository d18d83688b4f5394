//! One open transaction: prefetched rows, pending writes, and the failure of the connection, if any.
//!
//! Round trips dominate the cost. So the transaction begins with its first query rather than before it, fetches
//! everything that will be needed in the same round trip, and buffers writes until the end.

use std::collections::HashMap;
use std::time::Instant;

use tokio_postgres::Row;
use waypost_core::canonical::Hash;
use waypost_core::{PlanId, Timestamp};

use super::connection::{Answers, Call, Failure, Link};
use super::listen::NOTIFY;
use super::rows;
use super::schema;
use super::write_buffer::{Pending, Slot};
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
/// The clock is read after the lock was taken: in a statement of its own, after it.
const STATE: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
     EXISTS (SELECT 1 FROM waypost_waits), (SELECT readable_by FROM waypost_store), (SELECT id FROM waypost_store)";
const HOLD: &str = "SELECT schema, sequence, plans, purges FROM waypost_control WHERE id = 1 FOR UPDATE";
/// The rows of plans, and of each the versions after the known one.
const AHEAD: &str = "SELECT p.id, p.key, p.version, p.replay_bytes, p.purged_at IS NOT NULL, p.hash,
         l.sequence, l.version, l.at, l.actor, l.command, l.events
     FROM unnest($1::text[], $2::bigint[]) AS wanted (id, after)
     JOIN waypost_plans p ON p.id = wanted.id
     LEFT JOIN LATERAL (
         SELECT sequence, version, at, actor, command, events FROM waypost_log
         WHERE plan = p.key AND version > wanted.after ORDER BY version LIMIT $3
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
const COMMITTED: &str = "SELECT EXISTS (SELECT 1 FROM waypost_log WHERE sequence = $1 AND nonce = $2)
     OR EXISTS (SELECT 1 FROM waypost_commits WHERE nonce = $2)";

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

/// A commit of which it is unknown whether it happened.
#[derive(Clone, Copy)]
pub(super) struct UncertainCommit {
    /// The sequence number of its last version; 0 when it had none.
    pub(super) sequence: u64,
}

/// The content of the control row when this writer locked it, updated by its own writes since.
#[derive(Default)]
pub(super) struct Control {
    /// The id of the store.
    pub(super) store: String,
    pub(super) schema: u32,
    pub(super) sequence: u64,
    pub(super) plans: i64,
    pub(super) purges: i64,
    /// The sequence number of the last version that this transaction wrote; 0 when it wrote none.
    pub(super) written: u64,
}

/// The state that only a writer has.
pub(super) struct Writing {
    /// The same for all tries of one write.
    pub(super) nonce: i64,
    pub(super) doubt: Option<UncertainCommit>,
    /// Whether the commit in doubt turned out to have happened.
    pub(super) was_committed: bool,
    pub(super) notifies: bool,
    pub(super) control: Control,
    /// Whether a version was appended or imported, or a plan purged.
    pub(super) is_news: bool,
    /// Whether anything was written or is pending.
    pub(super) wrote: bool,
    pub(super) pending: Pending,
    /// Statements that are sent after the pending rows.
    pub(super) queued: Vec<Call>,
}

/// One transaction.
pub(super) struct Session<'a> {
    link: &'a mut Link,
    pub(super) writing: Option<Writing>,
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
    pub(super) fn reading(link: &'a mut Link) -> Self {
        Self {
            link,
            writing: None,
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

    pub(super) fn writing(
        link: &'a mut Link,
        nonce: i64,
        doubt: Option<UncertainCommit>,
        notifies: bool,
    ) -> Self {
        let writing = Writing {
            nonce,
            doubt,
            was_committed: false,
            notifies,
            control: Control::default(),
            is_news: false,
            wrote: false,
            pending: Pending::default(),
            queued: Vec::new(),
        };
        Self { writing: Some(writing), ..Self::reading(link) }
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
        let mut all = self.beginning();
        let beginning = all.len();
        let ReadHints { plans, locks, queues } = std::mem::take(&mut self.expected);
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
        self.begun = true;
        let mut answers = match answers {
            Ok(answers) => answers.into_iter(),
            Err(failure) => {
                let error = StoreError::Database(describe(&failure));
                self.failure = Some(failure);
                return Err(error);
            }
        };
        if let Err(error) = self.take_beginning(&answers.by_ref().take(beginning).collect::<Vec<_>>()) {
            self.failure = Some(Failure::Store(error.clone()));
            return Err(error);
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
        if self.begun && self.expected == ReadHints::default() {
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

    fn beginning(&self) -> Vec<Call> {
        if self.begun {
            return Vec::new();
        }
        let Some(writing) = &self.writing else {
            return vec![Call::new("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")];
        };
        // Statements after the lock see what its last holder committed.
        let mut calls =
            vec![Call::new("BEGIN ISOLATION LEVEL READ COMMITTED"), Call::new(HOLD), Call::new(STATE)];
        if let Some(doubt) = writing.doubt {
            calls.push(Call::new(COMMITTED).with(doubt.sequence as i64).with(writing.nonce));
        }
        calls
    }

    fn take_beginning(&mut self, answers: &[Vec<Row>]) -> Result<()> {
        let (Some(writing), [_, hold, state, rest @ ..]) = (self.writing.as_mut(), answers) else {
            return Ok(());
        };
        let (Some(hold), Some(state)) = (hold.first(), state.first()) else {
            let detail = "it has no row".to_owned();
            return Err(StoreError::Corrupt { what: "table waypost_control".to_owned(), detail });
        };
        let found = u32::try_from(rows::get::<i32>(hold, 0)?).unwrap_or(0);
        let is_readable = schema::is_known(rows::get(state, 2)?);
        if found < schema::KNOWN || found > schema::KNOWN && !is_readable {
            // Another process has migrated the database while this one had it open.
            let what = "the database".to_owned();
            return Err(StoreError::TooNew { what, found, known: schema::KNOWN });
        }
        writing.control = Control {
            store: rows::get(state, 3)?,
            schema: found,
            sequence: rows::number(hold, 1)?,
            plans: rows::get(hold, 2)?,
            purges: rows::get(hold, 3)?,
            written: 0,
        };
        self.clock = Some((Timestamp::from_micros(rows::get(state, 0)?), Instant::now()));
        self.has_waits = Some(rows::get(state, 1)?);
        if let Some(committed) = rest.first().and_then(|found| found.first()) {
            writing.was_committed = rows::get(committed, 0)?;
        }
        Ok(())
    }

    fn take_ahead(&mut self, wanted: &[(PlanId, Option<u64>)], found: Vec<Row>) -> Result<()> {
        for (plan, _) in wanted {
            self.plans.insert(plan.clone(), None);
        }
        for row in found {
            let id = rows::plan_id(rows::get(&row, 0)?)?;
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
        let (mut calls, written) = writing.pending.take(writing.nonce);
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
    pub(super) fn commit(mut self) -> Result<(), (Failure, UncertainCommit)> {
        let mut calls = self.writes();
        let sequence = self.writing.as_ref().map_or(0, |writing| writing.control.written);
        let doubt = UncertainCommit { sequence };
        if let Some(failure) = self.failure.take() {
            return Err((failure, doubt));
        }
        let Some(writing) = self.writing.as_ref().filter(|writing| writing.wrote) else {
            self.end();
            return Ok(());
        };
        let control = &writing.control;
        if writing.is_news {
            calls.push(
                Call::new("UPDATE waypost_control SET sequence = $1, plans = $2, purges = $3 WHERE id = 1")
                    .with(control.sequence as i64)
                    .with(control.plans)
                    .with(control.purges),
            );
            if writing.notifies {
                calls.push(Call::new(NOTIFY));
            }
        }
        if control.written == 0 {
            let now = self.clock.map_or(0, |(then, _)| then.as_micros());
            calls.push(
                Call::new("INSERT INTO waypost_commits (nonce, at) VALUES ($1, $2)")
                    .with(writing.nonce)
                    .with(now),
            );
            if writing.nonce % COMMITS_CLEARED_EVERY == 0 {
                let old = now - COMMITS_KEPT_MICROS;
                calls.push(Call::new("DELETE FROM waypost_commits WHERE at < $1").with(old));
            }
        }
        calls.push(Call::new("COMMIT"));
        match self.link.run(&calls) {
            Ok(_) => Ok(()),
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

/// Returns the text of a failure.
pub(super) fn describe(failure: &Failure) -> String {
    match failure {
        Failure::Lost(text) | Failure::Again(text) => text.clone(),
        Failure::Locked => "another writer was not done in time".to_owned(),
        Failure::Store(error) => error.to_string(),
        Failure::Refused { code, text } if code.is_empty() => text.clone(),
        Failure::Refused { code, text } => format!("{text} ({code})"),
    }
}
