//! Plans in memory: for tests, and for work that nobody needs to find again. Knows no files.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Deref};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use waypost_core::{PlanId, TaskId, Timestamp};

use crate::error::StoreError;
use crate::log::change_watch::{MemorySignal, Watch};
use crate::log::subscription::Subscription;
use crate::named_lock::NamedLock;
use crate::rows::{
    HeldLock, IndexChanges, IndexRows, Lease, LeaseUpdate, LogFilter, Page, PlanSummary, Pruned, Query,
    Totals, VersionRecord, Wait, WrittenSince,
};
use crate::store::{
    Append, ImportedPlan, Look, Maintenance, Pruning, Read, Rewrite, SNAPSHOT_MILESTONE, SharingScope, Store,
    Transaction, Work,
};
use crate::workers::{AttemptLog, Worker};
use crate::{backends::in_memory_query, clock};

/// Says what time it is.
type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A store that lives as long as it is held.
pub struct MemoryStore {
    tables: RwLock<Tables>,
    clock: Clock,
    bell: MemorySignal,
    held: Arc<Mutex<BTreeSet<String>>>,
}

/// What somebody in this process has.
struct Has {
    name: String,
    all: Arc<Mutex<BTreeSet<String>>>,
}

impl NamedLock for Has {
    fn holds(&self) -> bool {
        true
    }
}

impl Drop for Has {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store that goes by the machine's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(clock::now))
    }

    /// An empty store that goes by this clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self { tables: RwLock::default(), clock, bell: MemorySignal::default(), held: Arc::default() }
    }
}

impl Store for MemoryStore {
    fn location(&self) -> String {
        "memory:".to_owned()
    }

    fn write(&self, work: Work<'_>) -> Result<(), StoreError> {
        // A writer that panicked has undone its changes on the way out, so the tables behind a poisoned lock are whole.
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let undo = Undo(&mut tables);
        work(&mut Session { tables: &mut *undo.0, clock: &self.clock })?;
        let wrote = undo.0.has_news();
        undo.0.keep();
        drop(undo);
        drop(tables);
        if wrote {
            self.bell.ring();
        }
        Ok(())
    }

    fn read(&self, look: Look<'_>) -> Result<(), StoreError> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        look(&mut Session { tables: &*tables, clock: &self.clock })
    }

    fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        Ok(self.bell.watch())
    }

    fn try_lock(&self, name: &str) -> Result<Option<Box<dyn NamedLock>>, StoreError> {
        let is_new = self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        let has =
            || Box::new(Has { name: name.to_owned(), all: Arc::clone(&self.held) }) as Box<dyn NamedLock>;
        Ok(is_new.then(has))
    }

    fn reach(&self) -> SharingScope {
        SharingScope::Process
    }
}

impl Maintenance for MemoryStore {
    fn check(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn totals(&self) -> Result<Totals, StoreError> {
        (self as &dyn Store).query(in_memory_query::totals)
    }
}

/// Takes back all changes that were not kept, also when the work panicked.
struct Undo<'a>(&'a mut Tables);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        self.0.undo();
    }
}

/// Rows by key, with what they were before the changes of the running transaction.
struct Table<K, V> {
    rows: BTreeMap<K, V>,
    before: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), before: Vec::new() }
    }
}

impl<K: Ord + Clone, V> Table<K, V> {
    fn put(&mut self, key: K, row: V) {
        let old = self.rows.insert(key.clone(), row);
        self.before.push((key, old));
    }

    fn take(&mut self, key: &K) {
        if let Some(old) = self.rows.remove(key) {
            self.before.push((key.clone(), Some(old)));
        }
    }

    fn keep(&mut self) {
        self.before.clear();
    }

    fn undo(&mut self) {
        while let Some((key, old)) = self.before.pop() {
            match old {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
    }
}

/// A plan, and the name of one of its tasks.
type Place = (PlanId, String);

impl<V> Table<Place, V> {
    /// The rows of one plan.
    fn of<'a>(&'a self, plan: &'a PlanId) -> impl Iterator<Item = &'a V> {
        let from = (Bound::Included((plan.clone(), String::new())), Bound::Unbounded);
        self.rows.range(from).take_while(move |((of, _), _)| of == plan).map(|(_, row)| row)
    }

    fn take_all_of(&mut self, plan: &PlanId) {
        let from = (Bound::Included((plan.clone(), String::new())), Bound::Unbounded);
        let rows = self.rows.range(from).take_while(|((of, _), _)| of == plan);
        let places: Vec<Place> = rows.map(|(place, _)| place.clone()).collect();
        for place in &places {
            self.take(place);
        }
    }
}

/// What is kept of a plan besides its rows by task.
#[derive(Clone)]
struct PlanRow {
    /// Nothing after a purge: the row stays because the id stays used.
    head: Option<PlanSummary>,
    replay_bytes: u64,
}

#[derive(Default)]
struct Tables {
    plans: Table<PlanId, PlanRow>,
    log: Table<u64, VersionRecord>,
    /// Where a version of a plan stands in the log.
    versions: Table<(PlanId, u64), u64>,
    snapshots: Table<(PlanId, u64), Vec<u8>>,
    /// What is kept in the place of events that were forgotten.
    pruned: Table<PlanId, (Pruned, Vec<u8>)>,
    leases: Table<Place, Lease>,
    locks: Table<Place, Vec<HeldLock>>,
    waits: Table<Place, Vec<Wait>>,
    subscriptions: Table<String, Subscription>,
    workers: Table<String, Worker>,
    attempt_logs: Table<(PlanId, String, u32), AttemptLog>,
    /// Whether the running transaction has stored progress.
    progressed: bool,
}

impl Tables {
    /// Whether watchers are to be woken: the running transaction has appended a version, purged a plan or stored progress.
    fn has_news(&self) -> bool {
        !self.log.before.is_empty() || !self.plans.before.is_empty() || self.progressed
    }

    fn keep(&mut self) {
        self.plans.keep();
        self.log.keep();
        self.versions.keep();
        self.snapshots.keep();
        self.pruned.keep();
        self.leases.keep();
        self.locks.keep();
        self.waits.keep();
        self.subscriptions.keep();
        self.workers.keep();
        self.attempt_logs.keep();
        self.progressed = false;
    }

    fn undo(&mut self) {
        self.plans.undo();
        self.log.undo();
        self.versions.undo();
        self.snapshots.undo();
        self.pruned.undo();
        self.leases.undo();
        self.locks.undo();
        self.waits.undo();
        self.subscriptions.undo();
        self.workers.undo();
        self.attempt_logs.undo();
        self.progressed = false;
    }

    fn heads(&self) -> impl Iterator<Item = &PlanSummary> {
        self.plans.rows.values().filter_map(|plan| plan.head.as_ref())
    }

    fn head(&self, plan: &PlanId) -> Option<&PlanSummary> {
        self.plans.rows.get(plan).and_then(|plan| plan.head.as_ref())
    }

    fn forget_attempt_logs(&mut self, plan: &PlanId) {
        let logs = self.attempt_logs.rows.keys().filter(|(of, _, _)| of == plan);
        for log in logs.cloned().collect::<Vec<_>>() {
            self.attempt_logs.take(&log);
        }
    }

    fn known(&self, plan: &PlanId) -> Result<PlanRow, StoreError> {
        let row = self.plans.rows.get(plan).filter(|row| row.head.is_some()).cloned();
        row.ok_or_else(|| StoreError::Database(format!("plan {plan} has no row")))
    }

    fn change_index(&mut self, plan: &PlanId, changes: &IndexChanges) {
        let place = |task: &TaskId| (plan.clone(), task.to_string());
        for task in &changes.stopped {
            self.leases.take(&place(task));
            self.locks.take(&place(task));
        }
        for (lease, locks) in &changes.started {
            let held = |lock: &waypost_core::Lock| HeldLock {
                lock: lock.clone(),
                plan: plan.clone(),
                task: lease.task.clone(),
            };
            self.leases.put(place(&lease.task), lease.clone());
            self.locks.put(place(&lease.task), locks.iter().map(held).collect());
        }
        for (task, on) in &changes.waits {
            let wait = |on: &waypost_core::ExternalTaskRef| Wait {
                plan: plan.clone(),
                task: task.clone(),
                on: on.clone(),
            };
            self.waits.put(place(task), on.iter().map(wait).collect());
        }
    }

    /// Leaves of a plan's versions up to one what `left` leaves of them, and no snapshots.
    fn forget(&mut self, plan: &PlanId, up_to: u64, left: impl Fn(VersionRecord) -> VersionRecord) {
        let those = (plan.clone(), 0)..=(plan.clone(), up_to);
        let snapshots: Vec<_> =
            self.snapshots.rows.range(those.clone()).map(|(key, _)| key.clone()).collect();
        for snapshot in &snapshots {
            self.snapshots.take(snapshot);
        }
        let numbers: Vec<u64> = self.versions.rows.range(those).map(|(_, &sequence)| sequence).collect();
        for sequence in numbers {
            if let Some(entry) = self.log.rows.get(&sequence).cloned() {
                self.log.put(sequence, left(entry));
            }
        }
    }

    fn replace_index(&mut self, plan: &PlanId, rows: &IndexRows) {
        self.leases.take_all_of(plan);
        self.locks.take_all_of(plan);
        self.waits.take_all_of(plan);
        let place = |task: &TaskId| (plan.clone(), task.to_string());
        for row in &rows.leases {
            self.leases.put(place(&row.task), row.clone());
        }
        let mut locks: BTreeMap<Place, Vec<HeldLock>> = BTreeMap::new();
        for row in &rows.locks {
            locks.entry(place(&row.task)).or_default().push(row.clone());
        }
        for (place, rows) in locks {
            self.locks.put(place, rows);
        }
        let mut waits: BTreeMap<Place, Vec<Wait>> = BTreeMap::new();
        for row in &rows.waits {
            waits.entry(place(&row.task)).or_default().push(row.clone());
        }
        for (place, rows) in waits {
            self.waits.put(place, rows);
        }
    }
}

/// A version that was taken over stands in the way of another one.
fn taken(entry: &VersionRecord) -> StoreError {
    let VersionRecord { sequence, plan, version, .. } = entry;
    StoreError::Database(format!(
        "number {sequence} of the log, or version {version} of plan {plan}, is taken"
    ))
}

/// The tables during one read or one transaction.
struct Session<'a, T> {
    tables: T,
    clock: &'a Clock,
}

impl<T: Deref<Target = Tables>> Read for Session<'_, T> {
    fn head(&mut self, plan: &PlanId) -> Result<Option<PlanSummary>, StoreError> {
        Ok(self.tables.head(plan).cloned())
    }

    fn was_used(&mut self, plan: &PlanId) -> Result<bool, StoreError> {
        Ok(self.tables.plans.rows.contains_key(plan))
    }

    fn heads(&mut self, query: &Query) -> Result<Page<PlanSummary>, StoreError> {
        Ok(in_memory_query::page(self.tables.heads(), query))
    }

    fn ids(&mut self, prefix: &str, limit: usize) -> Result<Vec<PlanId>, StoreError> {
        Ok(in_memory_query::ids(self.tables.heads().map(|head| &head.id), prefix, limit))
    }

    fn versions(
        &mut self,
        plan: &PlanId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<VersionRecord>, StoreError> {
        if self.tables.head(plan).is_none() {
            return Ok(Vec::new());
        }
        let later = (Bound::Excluded((plan.clone(), after)), Bound::Included((plan.clone(), u64::MAX)));
        let numbers = self.tables.versions.rows.range(later).take(limit);
        Ok(numbers.filter_map(|(_, sequence)| self.tables.log.rows.get(sequence)).cloned().collect())
    }

    fn snapshot(&mut self, plan: &PlanId, at_most: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let earlier = (plan.clone(), 0)..=(plan.clone(), at_most);
        let latest = self.tables.snapshots.rows.range(earlier).next_back();
        let latest = latest.map(|((_, version), bytes)| (*version, bytes));
        let kept = self.tables.pruned.rows.get(plan).map(|(pruned, bytes)| (pruned.up_to, bytes));
        let found = latest.or(kept.filter(|(version, _)| *version <= at_most));
        Ok(found.map(|(version, bytes)| (version, bytes.clone())))
    }

    fn pruned(&mut self, plan: &PlanId) -> Result<Option<Pruned>, StoreError> {
        Ok(self.tables.pruned.rows.get(plan).map(|(pruned, _)| pruned.clone()))
    }

    fn log(
        &mut self,
        after: u64,
        filter: &LogFilter,
        limit: usize,
    ) -> Result<Vec<VersionRecord>, StoreError> {
        let later =
            self.tables.log.rows.range((Bound::Excluded(after), Bound::Unbounded)).map(|(_, entry)| entry);
        Ok(later.filter(|entry| filter.admits(entry)).take(limit).cloned().collect())
    }

    fn latest(&mut self) -> Result<u64, StoreError> {
        Ok(self.tables.log.rows.last_key_value().map_or(0, |(last, _)| *last))
    }

    fn written_since(&mut self, after: u64, limit: usize) -> Result<WrittenSince, StoreError> {
        Ok(WrittenSince::of(self.log(after, &LogFilter::default(), limit)?, after, limit))
    }

    fn leases(&mut self, before: Option<Timestamp>, limit: usize) -> Result<Vec<Lease>, StoreError> {
        Ok(in_memory_query::leases(self.tables.leases.rows.values(), before, limit))
    }

    fn locks(&mut self, keys: &[&str]) -> Result<Vec<HeldLock>, StoreError> {
        Ok(in_memory_query::locks(self.tables.locks.rows.values().flatten(), keys))
    }

    fn waits(&mut self, plan: &PlanId, agent: &str, task: Option<&str>) -> Result<Vec<Wait>, StoreError> {
        Ok(in_memory_query::waits(self.tables.waits.rows.values().flatten(), plan, agent, task))
    }

    fn index(&mut self, plan: &PlanId) -> Result<IndexRows, StoreError> {
        let mut rows = IndexRows {
            leases: self.tables.leases.of(plan).cloned().collect(),
            locks: self.tables.locks.of(plan).flatten().cloned().collect(),
            waits: self.tables.waits.of(plan).flatten().cloned().collect(),
        };
        rows.sort();
        Ok(rows)
    }

    fn subscription(&mut self, id: &str) -> Result<Option<Subscription>, StoreError> {
        Ok(self.tables.subscriptions.rows.get(id).cloned())
    }

    fn subscriptions(&mut self, owner: Option<&str>, limit: usize) -> Result<Vec<Subscription>, StoreError> {
        Ok(in_memory_query::subscriptions(self.tables.subscriptions.rows.values(), owner, limit))
    }

    fn worker(&mut self, name: &str) -> Result<Option<Worker>, StoreError> {
        Ok(self.tables.workers.rows.get(name).cloned())
    }

    fn workers(&mut self, after: Option<&str>, limit: usize) -> Result<Page<Worker>, StoreError> {
        Ok(in_memory_query::workers(self.tables.workers.rows.values(), after, limit))
    }

    fn leases_of(&mut self, worker: &str, limit: usize) -> Result<Vec<Lease>, StoreError> {
        Ok(in_memory_query::leases_of(self.tables.leases.rows.values(), worker, limit))
    }

    fn slots(&mut self, queue: &str) -> Result<Vec<(String, u32)>, StoreError> {
        Ok(in_memory_query::slots(self.tables.leases.rows.values(), queue, (self.clock)()))
    }

    fn attempt_logs(
        &mut self,
        plan: &PlanId,
        after: Option<(&TaskId, u32)>,
        limit: usize,
    ) -> Result<Vec<AttemptLog>, StoreError> {
        let after = match after {
            Some((task, attempt)) => Bound::Excluded((plan.clone(), task.to_string(), attempt)),
            None => Bound::Included((plan.clone(), String::new(), 0)),
        };
        let logs = self.tables.attempt_logs.rows.range((after, Bound::Unbounded)).map(|(_, log)| log);
        Ok(logs.take_while(|log| log.plan == *plan).take(limit).cloned().collect())
    }

    fn now(&mut self) -> Timestamp {
        (self.clock)()
    }
}

impl Transaction for Session<'_, &mut Tables> {
    fn append(&mut self, append: &Append<'_>) -> Result<u64, StoreError> {
        let head = append.head;
        let events =
            serde_json::to_vec(append.events).map_err(|error| StoreError::Database(error.to_string()))?;
        let place = (head.id.clone(), head.version);
        if self.tables.versions.rows.contains_key(&place) {
            return Err(StoreError::Database(format!(
                "plan {} has a version {} already",
                head.id, head.version
            )));
        }
        let sequence = self.tables.log.rows.last_key_value().map_or(1, |(last, _)| last + 1);
        let replayed = self.tables.plans.rows.get(&head.id).map_or(0, |plan| plan.replay_bytes);
        let row = PlanRow { head: Some(head.clone()), replay_bytes: replayed + events.len() as u64 };
        self.tables.plans.put(head.id.clone(), row);
        self.tables.versions.put(place, sequence);
        self.tables.log.put(sequence, append.entry(sequence));
        self.tables.change_index(&head.id, append.index);
        Ok(sequence)
    }

    fn bytes_since_snapshot(&mut self, plan: &PlanId) -> Result<u64, StoreError> {
        Ok(self.tables.known(plan)?.replay_bytes)
    }

    fn put_snapshot(&mut self, plan: &PlanId, version: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let row = self.tables.known(plan)?;
        self.tables.plans.put(plan.clone(), PlanRow { replay_bytes: 0, ..row });
        let milestone = version - version % SNAPSHOT_MILESTONE;
        let earlier = self.tables.snapshots.rows.range((plan.clone(), milestone)..(plan.clone(), version));
        let earlier: Vec<_> = earlier.map(|(key, _)| key.clone()).collect();
        for key in &earlier {
            self.tables.snapshots.take(key);
        }
        self.tables.snapshots.put((plan.clone(), version), bytes.to_vec());
        Ok(())
    }

    fn update_leases(&mut self, updates: &[LeaseUpdate]) -> Result<Vec<bool>, StoreError> {
        let mut updated = Vec::new();
        for LeaseUpdate { plan, task, attempt, until, progress } in updates {
            let place = (plan.clone(), task.to_string());
            let lease =
                self.tables.leases.rows.get(&place).filter(|lease| lease.attempt == *attempt).cloned();
            updated.push(lease.is_some());
            if let Some(mut lease) = lease {
                lease.until = until.or(lease.until);
                if progress.is_some() {
                    lease.progress.clone_from(progress);
                    self.tables.progressed = true;
                }
                self.tables.leases.put(place, lease);
            }
        }
        Ok(updated)
    }

    fn set_subscription(&mut self, id: &str, subscription: Option<&Subscription>) -> Result<(), StoreError> {
        match subscription {
            Some(subscription) => {
                self.tables.subscriptions.put(id.to_owned(), subscription.clone());
            }
            None => {
                self.tables.subscriptions.take(&id.to_owned());
            }
        }
        Ok(())
    }

    fn put_worker(&mut self, worker: &Worker) -> Result<(), StoreError> {
        self.tables.workers.put(worker.name.clone(), worker.clone());
        Ok(())
    }

    fn drop_worker(&mut self, name: &str) -> Result<(), StoreError> {
        self.tables.workers.take(&name.to_owned());
        Ok(())
    }

    fn forget_workers(&mut self, before: Timestamp) -> Result<u64, StoreError> {
        let gone = self.tables.workers.rows.values().filter(|worker| worker.until < before);
        let gone: Vec<String> = gone.map(|worker| worker.name.clone()).collect();
        for name in &gone {
            self.tables.workers.take(name);
        }
        Ok(gone.len() as u64)
    }

    fn put_attempt_log(&mut self, log: &AttemptLog) -> Result<(), StoreError> {
        if self.tables.head(&log.plan).is_some() {
            let key = (log.plan.clone(), log.task.to_string(), log.attempt);
            self.tables.attempt_logs.put(key, log.clone());
        }
        Ok(())
    }
}

impl Rewrite for Session<'_, &mut Tables> {
    fn replace_index(
        &mut self,
        plan: &PlanId,
        head: &PlanSummary,
        rows: &IndexRows,
    ) -> Result<(), StoreError> {
        let row = self.tables.known(plan)?;
        self.tables.plans.put(plan.clone(), PlanRow { head: Some(head.clone()), ..row });
        self.tables.replace_index(plan, rows);
        Ok(())
    }

    fn purge(&mut self, plan: &PlanId) -> Result<(), StoreError> {
        self.tables.known(plan)?;
        self.tables.forget_attempt_logs(plan);
        self.tables.plans.put(plan.clone(), PlanRow { head: None, replay_bytes: 0 });
        self.tables.replace_index(plan, &IndexRows::default());
        self.tables.pruned.take(plan);
        // The rows of the log stay, empty: their numbers are never used again, and readers of the log miss nothing.
        self.tables.forget(plan, u64::MAX, VersionRecord::purged);
        Ok(())
    }

    fn prune(&mut self, pruning: &Pruning<'_>) -> Result<(), StoreError> {
        let plan = pruning.plan.id();
        let row = self.tables.known(plan)?;
        self.tables.plans.put(plan.clone(), PlanRow { replay_bytes: 0, ..row });
        self.tables.forget(plan, pruning.pruned.up_to, VersionRecord::pruned);
        self.tables.forget_attempt_logs(plan);
        self.tables.pruned.put(plan.clone(), (pruning.pruned.clone(), pruning.snapshot.to_vec()));
        Ok(())
    }

    fn adopt(&mut self, entries: &[VersionRecord]) -> Result<(), StoreError> {
        for entry in entries {
            let place = (entry.plan.clone(), entry.version);
            if self.tables.log.rows.contains_key(&entry.sequence)
                || self.tables.versions.rows.contains_key(&place)
            {
                return Err(taken(entry));
            }
            self.tables.versions.put(place, entry.sequence);
            self.tables.log.put(entry.sequence, entry.clone());
        }
        Ok(())
    }

    fn settle(&mut self, plan: &PlanId, adopted: Option<&ImportedPlan<'_>>) -> Result<(), StoreError> {
        let head = adopted.map(|adopted| PlanSummary::of(adopted.plan));
        self.tables.plans.put(plan.clone(), PlanRow { head, replay_bytes: 0 });
        let Some(ImportedPlan { rows, pruning, .. }) = adopted else { return Ok(()) };
        self.tables.replace_index(plan, rows);
        match pruning {
            Some(pruning) => self.prune(pruning),
            None => Ok(()),
        }
    }
}
