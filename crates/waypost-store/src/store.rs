//! The trait that every backend implements. Its contract suite (`tests/it/contract.rs`) is its definition.
//!
//! A backend stores rows and makes them durable together; it decides nothing about plans. The trait is blocking on
//! purpose: asynchronous callers use threads that may block.

use std::path::PathBuf;

use waypost_core::{PlanId, TaskId, Timestamp};

use crate::error::{Result, StoreError};
use crate::log::change_watch::Watch;
use crate::log::subscription::Subscription;
use crate::named_lock::NamedLock;
use crate::rows::{
    HeldLock, IndexChanges, IndexRows, Lease, LeaseFilter, LeaseUpdate, LockFilter, LogFilter, LogPage, Page,
    PlanState, PlanSummary, Pruned, Query, SharedKeys, SharedScope, StoreState, SubscriptionFilter, Totals,
    VersionRecord, Wait, WaitFilter, WorkerFilter, WrittenSince,
};
use crate::stored_version::{Predecessor, StoredVersion};
use crate::workers::{AttemptLog, WORKERS_PAGE_MAX, Worker};

/// Only the latest snapshot of this many versions in a row is kept. It bounds the replay when an old version is read.
pub const SNAPSHOT_MILESTONE: u64 = 10_000;

/// What a reader or writer will need. A remote backend fetches it with the first query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadHints {
    /// Plans, each with the version after which its versions will be read; `None` if only the current version will be
    /// read.
    pub plans: Vec<(PlanId, Option<u64>)>,
    /// Keys of locks whose holders will be read.
    pub locks: Vec<String>,
    /// Queues whose slots will be counted.
    pub queues: Vec<String>,
    /// Whether the numbers of versions in the log do not matter. Versions that were just committed and have none yet are
    /// then missing in the log, and come without it from the history of their plan.
    pub without_numbers: bool,
}

/// Reads for maintenance, inside a transaction or outside: the history of a plan exactly as it is stored.
pub trait Inspect {
    /// Returns the versions of a plan after `after` exactly as the log stores them, at most `limit`; also those of a
    /// purged plan.
    fn stored_versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<StoredVersion>>;

    /// Returns the range of a plan's versions whose events were pruned or lost, if any.
    fn pruned(&mut self, plan: &PlanId) -> Result<Option<Pruned>>;
}

/// Reads, inside a transaction or outside.
pub trait Read: Inspect {
    /// Announces what will be read. Ignoring it only costs round trips.
    fn expect(&mut self, _expected: &ReadHints) {}

    /// Returns the summary of a plan; `None` if there is no such plan or it was purged.
    fn head(&mut self, plan: &PlanId) -> Result<Option<PlanSummary>>;

    /// Returns whether an id is used, and the latest version of its plan, without the rest of its summary.
    fn plan_state(&mut self, plan: &PlanId) -> Result<PlanState>;

    /// Returns one page of plan summaries. Reads no plan.
    fn heads(&mut self, query: &Query) -> Result<Page<PlanSummary>>;

    /// Returns plan ids that begin with `prefix`, sorted, at most `limit`.
    fn ids(&mut self, prefix: &str, limit: usize) -> Result<Vec<PlanId>>;

    /// Returns the versions of a plan after `after`, in their order, at most `limit`.
    fn versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<VersionRecord>>;

    /// Returns the latest snapshot of a plan at version `at_most` or before: its version and its bytes. The state that
    /// is kept in place of pruned events counts as a snapshot.
    fn snapshot(&mut self, plan: &PlanId, at_most: u64) -> Result<Option<(u64, Vec<u8>)>>;

    /// Returns versions of all plans after sequence number `after` in commit order, at most `limit`. Of a damaged plan,
    /// returns the versions before the damage, which the page names.
    fn log(&mut self, after: u64, filter: &LogFilter, limit: usize) -> Result<LogPage>;

    /// Returns the plans that the next versions after `after` belong to, reading at most `limit` versions.
    fn written_since(&mut self, after: u64, limit: usize) -> Result<WrittenSince>;

    /// Returns leases, at most `limit`: those that never expire first, then by the earliest end.
    fn leases(&mut self, filter: &LeaseFilter<'_>, limit: usize) -> Result<Vec<Lease>>;

    /// Returns the holders of locks.
    fn locks(&mut self, filter: LockFilter<'_>) -> Result<Vec<HeldLock>>;

    /// Returns the waits of tasks for tasks of other plans, sorted. Cheap if no task waits at all.
    fn waits(&mut self, filter: WaitFilter<'_>) -> Result<Vec<Wait>>;

    /// Returns subscriptions: the oldest first, at most `limit`.
    fn subscriptions(&mut self, filter: SubscriptionFilter<'_>, limit: usize) -> Result<Vec<Subscription>>;

    /// Returns workers sorted by name, at most `limit`.
    fn workers(&mut self, filter: WorkerFilter<'_>, limit: usize) -> Result<Page<Worker>>;

    /// Returns the workers that hold slots of a queue, sorted, with the number of slots each: their leases that name
    /// the queue and have not expired.
    fn slots(&mut self, queue: &str) -> Result<Vec<(String, u32)>>;

    /// Returns the copies of a plan's attempt logs, sorted by task and attempt, at most `limit` after the one of `after`.
    /// The default returns none, for stores whose users all share the log files.
    fn attempt_logs(
        &mut self,
        _plan: &PlanId,
        _after: Option<(&TaskId, u32)>,
        _limit: usize,
    ) -> Result<Vec<AttemptLog>> {
        Ok(Vec::new())
    }

    /// Returns rows about shared plans, as key and value, sorted by key, at most `limit`.
    fn shared(
        &mut self,
        scope: SharedScope<'_>,
        keys: SharedKeys<'_>,
        limit: usize,
    ) -> Result<Vec<(String, String)>>;

    /// Returns the id of the store and the end of its log.
    fn store_state(&mut self) -> Result<StoreState>;

    /// Returns the time by the clock of the store.
    fn now(&mut self) -> Timestamp;
}

impl dyn Read + '_ {
    /// Returns all rows of the index tables of one plan, sorted.
    pub fn index(&mut self, plan: &PlanId) -> Result<IndexRows> {
        let mut rows = IndexRows {
            leases: self.leases(&LeaseFilter::Plan(plan), usize::MAX >> 1)?,
            locks: self.locks(LockFilter::Plan(plan))?,
            waits: self.waits(WaitFilter::Of(plan))?,
        };
        rows.sort();
        Ok(rows)
    }
}

/// One version, ready to be appended.
#[derive(Debug)]
pub struct Append<'a> {
    /// The summary of the plan after the version.
    pub head: &'a PlanSummary,
    /// When the version is written.
    pub at: Timestamp,
    /// The actor that writes it.
    pub actor: &'a waypost_core::Actor,
    /// The name of the command; several are joined with `+`.
    pub command: &'a str,
    /// The events of the version.
    pub events: &'a [waypost_core::Event],
    /// The changes of the index tables.
    pub index: &'a IndexChanges,
    /// The whole plan, for backends that store it readable next to its history.
    pub plan: &'a waypost_core::Plan,
}

impl Append<'_> {
    /// Returns the version as the log stores it, with its hash.
    pub(crate) fn stored(&self, sequence: u64, predecessor: Predecessor) -> Result<StoredVersion> {
        let events = serde_json::to_string(self.events);
        let version = StoredVersion {
            sequence,
            plan: self.head.id.clone(),
            version: self.head.version,
            at: self.at,
            actor: self.actor.to_string(),
            command: self.command.to_owned(),
            events: events.map_err(|error| StoreError::Database(error.to_string()))?,
            hash: None,
            chained_from: None,
        };
        Ok(version.after(predecessor))
    }
}

/// A record that is stored beside the log and is not versioned.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A subscription under its id; `None` removes it.
    Subscription(&'a str, Option<&'a Subscription>),
    /// A worker under its name; `None` removes it.
    Worker(&'a str, Option<&'a Worker>),
    /// A row about shared plans under its key; `None` removes it.
    Shared(SharedScope<'a>, &'a str, Option<&'a str>),
    /// A copy of an attempt's log. Ignored if the plan was purged, and by stores whose users all share the log files.
    AttemptLog(&'a AttemptLog),
    /// A snapshot of a plan at a version, as bytes. Earlier ones of the same [`SNAPSHOT_MILESTONE`] are removed.
    Snapshot(&'a PlanId, u64, &'a [u8]),
}

/// The place of an appended version.
#[derive(Clone, Copy, Debug)]
pub struct Appended {
    /// Its sequence number in the log; [`crate::UNNUMBERED`] in a store that numbers versions after their commit.
    pub sequence: u64,
    /// The bytes of versions since the latest snapshot, which a reader has to replay.
    pub replay_bytes: u64,
}

/// Events to prune, and the state that is kept in their place.
#[derive(Debug)]
pub struct Pruning<'a> {
    /// The range of versions to prune.
    pub pruned: &'a Pruned,
    /// The plan at the last of these versions.
    pub plan: &'a waypost_core::Plan,
    /// The same state as a snapshot.
    pub snapshot: &'a [u8],
}

/// Writes for maintenance inside a transaction: they rewrite or remove stored rows instead of appending.
pub trait Rewrite: Read {
    /// Replaces the summary and the index tables of a plan.
    fn replace_index(
        &mut self,
        plan: &waypost_core::Plan,
        head: &PlanSummary,
        rows: &IndexRows,
    ) -> Result<()>;

    /// Removes a plan with its history, its logs and the rows of its records; its id stays used.
    fn purge(&mut self, plan: &PlanId) -> Result<()>;

    /// Removes the events of a plan up to a version, and keeps the state that they led to. Their rows in the log stay,
    /// with sequence number, actor, time and command. Snapshots of those versions are removed, and copies of attempt
    /// logs. Does not wake watchers.
    fn prune(&mut self, pruning: &Pruning<'_>) -> Result<()>;

    /// Imports versions of one plan from another store, with their sequence numbers and hashes. They arrive in their order, from
    /// version 1 on. The same transaction must then call [`Rewrite::replace_index`] with the plan that they lead to, or
    /// [`Rewrite::purge`], so that only their sequence numbers are used.
    fn import_versions(&mut self, entries: &[StoredVersion]) -> Result<()>;
}

/// Writes inside a transaction.
pub trait Transaction: Rewrite {
    /// Appends one version of a plan with its hash, and updates its summary and index tables.
    fn append(&mut self, append: &Append<'_>) -> Result<Appended>;

    /// Renews leases, or stores the progress of their attempts. Returns for each whether that attempt still holds its
    /// lease. Progress wakes watchers; a renewal does not.
    fn update_leases(&mut self, updates: &[LeaseUpdate]) -> Result<Vec<bool>>;

    /// Stores a record in place of an earlier one, or removes it. Does not wake watchers, unless it asks a worker to drain: then
    /// it may.
    fn put(&mut self, record: Record<'_>) -> Result<()>;
}

impl dyn Transaction + '_ {
    /// Removes the workers whose records expired before `before`. Returns how many. Does not wake watchers.
    pub fn forget_workers(&mut self, before: Timestamp) -> Result<u64> {
        let (mut gone, mut after) = (0, None);
        loop {
            let page = self.workers(WorkerFilter::After(after.as_deref()), WORKERS_PAGE_MAX)?;
            for worker in page.items.iter().filter(|worker| worker.until < before) {
                self.put(Record::Worker(&worker.name, None))?;
                gone += 1;
            }
            after = page.next;
            if after.is_none() {
                return Ok(gone);
            }
        }
    }

    /// Renews a lease if that attempt still holds it. Returns whether it does.
    pub fn renew_lease(&mut self, plan: &PlanId, task: &str, attempt: u32, until: Timestamp) -> Result<bool> {
        let Ok(task) = TaskId::new(task) else { return Ok(false) };
        let renewed = self.update_leases(&[LeaseUpdate::renewal(plan.clone(), task, attempt, until)])?;
        Ok(renewed == [true])
    }
}

/// Work inside a transaction. It may be run again when the backend retries the transaction.
pub type Work<'a> = &'a mut dyn FnMut(&mut dyn Transaction) -> Result<()>;

/// Work on one consistent state of the store. It may be run again when the backend retries the read.
pub type Look<'a> = &'a mut dyn FnMut(&mut dyn Read) -> Result<()>;

/// How far a store is shared: which processes must agree on what only one may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingScope {
    /// The store is used by one process.
    Process,
    /// The store is shared by processes of one machine, which also share files.
    Machine,
    /// The store is shared by any number of machines, which share nothing else.
    Machines,
}

/// Where a store is, and how far it is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    /// The location, as users write it.
    pub location: String,
    /// Which processes share the store.
    pub reach: SharingScope,
}

/// Maintenance of a whole store.
pub trait Maintenance {
    /// Looks for damage below the level of plans. Returns one line for each problem.
    fn check(&self) -> Result<Vec<String>>;

    /// Returns the damage to the files of a plan, for stores whose files people and programs can damage.
    fn damage(&self, _plan: &PlanId) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns what is intact of a damaged plan, as a repair would restore it, and where it comes from.
    fn intact(&self, _plan: &PlanId) -> Result<Option<(waypost_core::Plan, String)>> {
        Ok(None)
    }

    /// Repairs damaged files from what is intact. Returns the outcome for each plan, or for the store itself.
    fn repair(&self) -> Result<Vec<(Option<PlanId>, String)>> {
        Ok(Vec::new())
    }

    /// Returns facts for an operator, such as the schema and the durability, as name and value.
    fn about(&self) -> Result<Vec<(&'static str, String)>> {
        Ok(Vec::new())
    }

    /// Returns unused space to the file system, where that takes an explicit command. It may take long, and needs space
    /// for a copy. Returns the number of bytes freed.
    fn compact(&self) -> Result<u64> {
        Ok(0)
    }

    /// Writes what this process still has of a store whose files were removed into a new file. Returns its path; `None`
    /// if nothing is left.
    fn rescue(&self) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// Returns counts of plans, tasks and leases. Reads no plan.
    fn totals(&self) -> Result<Totals>;
}

/// A backend that stores plans.
pub trait Store: Maintenance + Send + Sync {
    /// Returns where the store is, and how far it is shared. Reads nothing.
    fn place(&self) -> StorePlace;

    /// Runs `work` as if it were alone among all writers of all processes. Its writes are durable when this returns `Ok`,
    /// and rolled back when `work` or the backend fails.
    fn write(&self, work: Work<'_>) -> Result<()>;

    /// Runs `look` on one state of the store, concurrently with other readers and writers.
    fn read(&self, look: Look<'_>) -> Result<()>;

    /// Starts to watch for new versions and progress by any process. Lease renewals do not wake a watch.
    fn watch(&self) -> Result<Box<dyn Watch>>;

    /// Takes a lock that one process at a time may hold; returns `None` when another holds it.
    fn try_lock(&self, name: &str) -> Result<Option<Box<dyn NamedLock>>>;
}

impl dyn Store + '_ {
    /// Returns the location of the store, as users write it.
    pub fn location(&self) -> String {
        self.place().location
    }

    /// Returns how far the store is shared.
    pub fn reach(&self) -> SharingScope {
        self.place().reach
    }

    /// Reads a value from one state of the store. `query` may be run again, as in [`Store::read`].
    pub fn query<R>(&self, mut query: impl FnMut(&mut dyn Read) -> Result<R>) -> Result<R> {
        let mut found = None;
        self.read(&mut |read| {
            found = Some(query(read)?);
            Ok(())
        })?;
        found.ok_or_else(|| StoreError::Database("the store did not read".to_owned()))
    }
}
