//! The trait that every backend has. Its contract suite (`tests/it/contract.rs`) is its definition.
//!
//! A backend stores rows and makes them durable together; it decides nothing about plans. Blocking on purpose: asynchronous
//! callers use threads that may block.

use waypost_core::{PlanId, TaskId, Timestamp};

use crate::error::{Result, StoreError};
use crate::log::change_watch::Watch;
use crate::log::subscription::Subscription;
use crate::named_lock::NamedLock;
use crate::rows::{
    HeldLock, IndexChanges, IndexRows, Lease, LeaseFilter, LeaseUpdate, LogFilter, Page, PlanSummary, Pruned,
    Query, Totals, VersionRecord, Wait, WrittenSince,
};
use crate::workers::{AttemptLog, Worker};

/// Only the latest snapshot of this many versions in a row is kept. It bounds the replay when an old version is read.
pub const SNAPSHOT_MILESTONE: u64 = 10_000;

/// What a reader or writer will need. A remote backend fetches it with the first query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadHints {
    /// Plans, each with the version after which its versions will be wanted; without one, only the version that it is at.
    pub plans: Vec<(PlanId, Option<u64>)>,
    /// Keys whose holders will be asked for.
    pub locks: Vec<String>,
    /// Queues whose slots will be counted.
    pub queues: Vec<String>,
}

/// What can be read, inside a transaction or outside.
pub trait Read {
    /// Announces what will be read. Changes no result.
    fn expect(&mut self, _expected: &ReadHints) {}

    /// The head of a plan; nothing if it was purged.
    fn head(&mut self, plan: &PlanId) -> Result<Option<PlanSummary>>;

    /// The version of a plan, without the rest of its head; nothing if it was purged.
    fn version(&mut self, plan: &PlanId) -> Result<Option<u64>> {
        Ok(self.head(plan)?.map(|head| head.version))
    }

    /// What is wrong with the files of a plan, for stores whose files people and programs can damage.
    fn damage(&mut self, _plan: &PlanId) -> Result<Option<String>> {
        Ok(None)
    }

    /// Whether the id was ever used, also by a plan that was purged.
    fn was_used(&mut self, plan: &PlanId) -> Result<bool>;

    /// Heads of plans, one page of them. Reads no plan.
    fn heads(&mut self, query: &Query) -> Result<Page<PlanSummary>>;

    /// Ids that begin with `prefix`, in their order, at most `limit`.
    fn ids(&mut self, prefix: &str, limit: usize) -> Result<Vec<PlanId>>;

    /// The versions of a plan after `after`, in their order, at most `limit`.
    fn versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<VersionRecord>>;

    /// The latest snapshot of a plan at `at_most` or before: its version and its bytes. The state that is kept in
    /// place of pruned events counts as one.
    fn snapshot(&mut self, plan: &PlanId, at_most: u64) -> Result<Option<(u64, Vec<u8>)>>;

    /// Which events of a plan were pruned, if any.
    fn pruned(&mut self, plan: &PlanId) -> Result<Option<Pruned>>;

    /// Versions of all plans after `after` in the order of commits, at most `limit`.
    fn log(&mut self, after: u64, filter: &LogFilter, limit: usize) -> Result<Vec<VersionRecord>>;

    /// The number of the latest version in the log; 0 when there is none.
    fn latest(&mut self) -> Result<u64>;

    /// The plans that the versions after `after`, at most `limit` of them, belong to.
    fn written_since(&mut self, after: u64, limit: usize) -> Result<WrittenSince>;

    /// Leases, at most `limit`: those that never end first, then the earliest end.
    fn leases(&mut self, filter: &LeaseFilter<'_>, limit: usize) -> Result<Vec<Lease>>;

    /// The holders of `keys`.
    fn locks(&mut self, keys: &[&str]) -> Result<Vec<HeldLock>>;

    /// The tasks that wait for a task of `plan`, or of any plan that `agent` owns, sorted; with `task`, only for the one
    /// called that. Cheap where no task waits at all.
    fn waits(&mut self, plan: &PlanId, agent: &str, task: Option<&str>) -> Result<Vec<Wait>>;

    /// All rows of the tables beside one plan, sorted.
    fn index(&mut self, plan: &PlanId) -> Result<IndexRows>;

    /// The subscription of this id.
    fn subscription(&mut self, id: &str) -> Result<Option<Subscription>>;

    /// The subscriptions of an owner, or of all: the oldest first, at most `limit`.
    fn subscriptions(&mut self, owner: Option<&str>, limit: usize) -> Result<Vec<Subscription>>;

    /// The worker of this name.
    fn worker(&mut self, name: &str) -> Result<Option<Worker>>;

    /// Workers by their names, at most `limit` after `after`.
    fn workers(&mut self, after: Option<&str>, limit: usize) -> Result<Page<Worker>>;

    /// The workers that hold slots of a queue, sorted, and how many: their leases that name it and have not ended.
    fn slots(&mut self, queue: &str) -> Result<Vec<(String, u32)>>;

    /// The copies of a plan's logs by task and attempt, at most `limit` after the one of `after`. Stores whose users all
    /// share the log files keep none.
    fn attempt_logs(
        &mut self,
        _plan: &PlanId,
        _after: Option<(&TaskId, u32)>,
        _limit: usize,
    ) -> Result<Vec<AttemptLog>> {
        Ok(Vec::new())
    }

    /// The time by the clock of the store.
    fn now(&mut self) -> Timestamp;
}

/// One version, ready to be appended.
#[derive(Debug)]
pub struct Append<'a> {
    /// The plan's head after it.
    pub head: &'a PlanSummary,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: &'a waypost_core::Actor,
    /// The name of the command.
    pub command: &'a str,
    /// The events.
    pub events: &'a [waypost_core::Event],
    /// The changes of the index tables.
    pub index: &'a IndexChanges,
    /// The whole plan, for backends that keep it readable beside its history.
    pub plan: &'a waypost_core::Plan,
}

impl Append<'_> {
    /// The version as the log keeps it, with these events.
    pub(crate) fn entry(&self, sequence: u64, events: Vec<waypost_core::Event>) -> VersionRecord {
        VersionRecord {
            sequence,
            plan: self.head.id.clone(),
            version: self.head.version,
            at: self.at,
            actor: self.actor.clone(),
            command: self.command.to_owned(),
            events,
        }
    }
}

/// Events to prune, and the state that is kept in their place.
#[derive(Debug)]
pub struct Pruning<'a> {
    /// Which.
    pub pruned: &'a Pruned,
    /// The plan as the last of these versions left it.
    pub plan: &'a waypost_core::Plan,
    /// The same as a snapshot.
    pub snapshot: &'a [u8],
}

/// What maintenance does inside a transaction: stored rows are rewritten or removed, not appended.
pub trait Rewrite: Read {
    /// Replaces a plan's head and the tables beside it.
    fn replace_index(
        &mut self,
        plan: &waypost_core::Plan,
        head: &PlanSummary,
        rows: &IndexRows,
    ) -> Result<()>;

    /// Removes a plan with its history and its logs; its id stays used.
    fn purge(&mut self, plan: &PlanId) -> Result<()>;

    /// Removes the events of a plan up to a version, and keeps the state that they led to. Their rows in the log stay, with
    /// number, actor, time and command. Snapshots of those versions are removed, and copies of attempts' logs. Wakes nobody.
    fn prune(&mut self, pruning: &Pruning<'_>) -> Result<()>;

    /// Takes over versions of one plan as another store has them, with their numbers in its log. They come in their order,
    /// from version 1 on, and in the same transaction follows [`Rewrite::replace_index`] with the plan that they lead to, or
    /// [`Rewrite::purge`], so that only their numbers are used.
    fn import_versions(&mut self, entries: &[VersionRecord]) -> Result<()>;
}

/// Writes inside a transaction.
pub trait Transaction: Rewrite {
    /// Appends one version of a plan and moves its head and tables along. Returns the version's number in the log.
    fn append(&mut self, append: &Append<'_>) -> Result<u64>;

    /// Bytes of versions appended since the latest snapshot, which a reader has to replay.
    fn bytes_since_snapshot(&mut self, plan: &PlanId) -> Result<u64>;

    /// Stores a snapshot of a plan at a version, and removes earlier ones of the same [`SNAPSHOT_MILESTONE`].
    fn put_snapshot(&mut self, plan: &PlanId, version: u64, bytes: &[u8]) -> Result<()>;

    /// Moves the ends of leases, or stores the progress of their attempts. Returns for each whether that attempt still has it.
    /// Progress wakes watchers; a renewal wakes nobody.
    fn update_leases(&mut self, updates: &[LeaseUpdate]) -> Result<Vec<bool>>;

    /// Stores a subscription under its id, or removes it. Wakes nobody.
    fn set_subscription(&mut self, id: &str, subscription: Option<&Subscription>) -> Result<()>;

    /// Stores the record of a worker under its name, or removes it. Wakes nobody.
    fn set_worker(&mut self, name: &str, worker: Option<&Worker>) -> Result<()>;

    /// Removes the workers whose time ended before `before`. Returns how many. Wakes nobody.
    fn forget_workers(&mut self, before: Timestamp) -> Result<u64>;

    /// Stores a copy of an attempt's log in place of an earlier one; nothing if the plan was purged. Wakes nobody.
    fn put_attempt_log(&mut self, _log: &AttemptLog) -> Result<()> {
        Ok(())
    }
}

impl dyn Transaction + '_ {
    /// Moves the end of a lease, if that attempt still has it.
    pub fn renew_lease(&mut self, plan: &PlanId, task: &str, attempt: u32, until: Timestamp) -> Result<bool> {
        let Ok(task) = TaskId::new(task) else { return Ok(false) };
        let renewed = self.update_leases(&[LeaseUpdate::renewal(plan.clone(), task, attempt, until)])?;
        Ok(renewed == [true])
    }
}

/// Work done inside a transaction. It may be run again when the backend has to start over.
pub type Work<'a> = &'a mut dyn FnMut(&mut dyn Transaction) -> Result<()>;

/// Work done on one consistent state of the store. It may be run again when the backend has to start over.
pub type Look<'a> = &'a mut dyn FnMut(&mut dyn Read) -> Result<()>;

/// How far a store is shared: who has to agree on what only one may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingScope {
    /// One process.
    Process,
    /// Processes of one machine, which share files.
    Machine,
    /// Any number of machines, which share nothing but the store.
    Machines,
}

/// Maintenance of a whole store.
pub trait Maintenance {
    /// Looks for damage below the level of plans; one line for each.
    fn check(&self) -> Result<Vec<String>>;

    /// Repairs damaged files from what is intact, and says of each plan, or of the store itself, what became of it.
    fn repair(&self) -> Result<Vec<(Option<PlanId>, String)>> {
        Ok(Vec::new())
    }

    /// Facts for an operator, such as the schema and the durability: name and value.
    fn about(&self) -> Result<Vec<(&'static str, String)>> {
        Ok(Vec::new())
    }

    /// Gives unused space back to the file system, where that takes an order: it may last, and needs room for a copy.
    /// Returns the bytes that were freed.
    fn compact(&self) -> Result<u64> {
        Ok(0)
    }

    /// Counts of plans, tasks and leases. Reads no plan.
    fn totals(&self) -> Result<Totals>;
}

/// A place where plans live.
pub trait Store: Maintenance + Send + Sync {
    /// The location, as users write it.
    fn location(&self) -> String;

    /// Runs `work` alone among all writers of all processes; what it did is durable when this returns `Ok`, and undone
    /// when `work` or the backend fails.
    fn write(&self, work: Work<'_>) -> Result<()>;

    /// Runs `look` on one state of the store, at the same time as others read and write.
    fn read(&self, look: Look<'_>) -> Result<()>;

    /// Begins to watch for new versions and progress by any process. Renewed leases wake nobody.
    fn watch(&self) -> Result<Box<dyn Watch>>;

    /// Takes a lock that one process at a time may hold; nothing when another holds it.
    fn try_lock(&self, name: &str) -> Result<Option<Box<dyn NamedLock>>>;

    /// How far it is shared.
    fn reach(&self) -> SharingScope {
        SharingScope::Machine
    }
}

impl dyn Store + '_ {
    /// Reads a value from one state of the store. May be run again, as [`Store::read`].
    pub fn query<R>(&self, mut query: impl FnMut(&mut dyn Read) -> Result<R>) -> Result<R> {
        let mut found = None;
        self.read(&mut |read| {
            found = Some(query(read)?);
            Ok(())
        })?;
        found.ok_or_else(|| StoreError::Database("the store did not read".to_owned()))
    }
}
