//! The trait that every backend has. Its contract suite (`tests/it/contract.rs`) is its definition.
//!
//! A backend keeps rows and makes them durable together; it decides nothing about plans. Blocking on purpose: doors that
//! are asynchronous call it from threads that may wait.

use std::path::PathBuf;

use waypost_core::{PlanId, TaskId, Timestamp};

use crate::log::change_watch::Watch;
use crate::log::subscriptions::Subscription;
use crate::named_lock::{self, Held};
use crate::rows::{
    Entry, Head, HeldLock, IndexChanges, IndexRows, Lease, LogFilter, Page, Pruned, Query, Shelf, Sort,
    Totals, Wait, WrittenSince,
};
use crate::workers::{AttemptLog, Worker};

/// Seconds that a writer waits for other processes before it gives up.
pub const BUSY_SECONDS_MAX: u64 = 60;

/// Of so many versions in a row only the latest snapshot is kept: it bounds what a look at an old version replays.
pub const SNAPSHOT_MILESTONE: u64 = 10_000;

/// Heads that are read at a time by whoever goes through all plans.
const HEADS_PAGE: usize = 1_000;

/// What can go wrong below a plan.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or row cannot be what Waypost wrote. It is left as it is.
    #[error("{what} is damaged: {detail}")]
    Corrupt {
        /// Which file or row.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A newer Waypost wrote this store.
    #[error("{what} has schema {found}, and this build knows schemas up to {known}")]
    TooNew {
        /// Which store.
        what: String,
        /// Its schema.
        found: u32,
        /// The newest schema that this build knows.
        known: u32,
    },
    /// Others wrote for longer than [`BUSY_SECONDS_MAX`].
    #[error("the store stayed busy for {BUSY_SECONDS_MAX} seconds")]
    Busy,
    /// The file system said no.
    #[error("{}: {source}", path.display())]
    Files {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// The database said no.
    #[error("{0}")]
    Database(String),
    /// The events of these versions were forgotten ([`Transaction::prune`]).
    #[error("versions 1 to {up_to} of plan {plan} were pruned on {}", day(*.at))]
    Pruned {
        /// The plan.
        plan: PlanId,
        /// The last of them.
        up_to: u64,
        /// When they were forgotten.
        at: Timestamp,
    },
    /// A text that names no store.
    #[error("{0:?} names no store: write sqlite:PATH, postgres://USER@HOST/DATABASE, file:DIR or memory:")]
    BadLocation(String),
}

/// The day of a moment, as people write it.
pub(crate) fn day(at: Timestamp) -> String {
    at.to_string().chars().take_while(|&sign| sign != 'T').collect()
}

impl StoreError {
    /// The word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Corrupt { .. } => "corrupt",
            Self::TooNew { .. } => "too_new",
            Self::Busy => "busy",
            Self::Files { .. } => "files",
            Self::Database(_) => "database",
            Self::Pruned { .. } => "pruned",
            Self::BadLocation(_) => "bad_location",
        }
    }

    /// The same error for another who waited for the same thing.
    pub(crate) fn told_again(&self) -> Self {
        match self {
            Self::Corrupt { what, detail } => Self::Corrupt { what: what.clone(), detail: detail.clone() },
            Self::TooNew { what, found, known } => {
                Self::TooNew { what: what.clone(), found: *found, known: *known }
            }
            Self::Busy => Self::Busy,
            Self::Files { path, source } => Self::Files {
                path: path.clone(),
                source: std::io::Error::new(source.kind(), source.to_string()),
            },
            Self::Database(detail) => Self::Database(detail.clone()),
            Self::Pruned { plan, up_to, at } => Self::Pruned { plan: plan.clone(), up_to: *up_to, at: *at },
            Self::BadLocation(text) => Self::BadLocation(text.clone()),
        }
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Corrupt { .. } => "nothing was changed; `waypost doctor` says more",
            Self::TooNew { .. } => "update Waypost",
            Self::Busy => "try again; if it lasts, see which process holds the store",
            Self::Files { .. } => "see that the path exists and may be read and written",
            Self::Database(_) => "`waypost doctor` checks the store",
            Self::Pruned { .. } => "its latest state is kept: `waypost show` shows it",
            Self::BadLocation(_) => "for example --store sqlite:.waypost/waypost.db",
        }
    }
}

/// What a reader or writer is about to ask for. A backend that is far away reads it along with the first question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Plans, each with the version after which its versions will be wanted; without one, only the version that it is at.
    pub plans: Vec<(PlanId, Option<u64>)>,
    /// Keys whose holders will be asked for.
    pub locks: Vec<String>,
    /// Queues whose slots will be counted.
    pub queues: Vec<String>,
}

/// What can be read, inside a transaction or outside.
pub trait Read {
    /// Says what will be asked for. Changes no answer.
    fn expect(&mut self, _expected: &Expected) {}

    /// The head of a plan; of a purged one nothing.
    fn head(&mut self, plan: &PlanId) -> Result<Option<Head>, StoreError>;

    /// The version of a plan, without the rest of its head; of a purged one nothing.
    fn version(&mut self, plan: &PlanId) -> Result<Option<u64>, StoreError> {
        Ok(self.head(plan)?.map(|head| head.version))
    }

    /// Whether the id was ever used, by a plan that was purged included.
    fn was_used(&mut self, plan: &PlanId) -> Result<bool, StoreError>;

    /// Heads of plans, one page of them. Reads no plan.
    fn heads(&mut self, query: &Query) -> Result<Page<Head>, StoreError>;

    /// Ids that begin with `prefix`, in their order, at most `limit`.
    fn ids(&mut self, prefix: &str, limit: usize) -> Result<Vec<PlanId>, StoreError>;

    /// The versions of a plan after `after`, in their order, at most `limit`.
    fn versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// The latest snapshot of a plan at `at_most` or before: its version and its bytes. What is kept in the place of
    /// forgotten events is one, too.
    fn snapshot(&mut self, plan: &PlanId, at_most: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError>;

    /// Which events of a plan were forgotten, if any were.
    fn pruned(&mut self, _plan: &PlanId) -> Result<Option<Pruned>, StoreError> {
        Ok(None)
    }

    /// Versions of all plans after `after` in the order of commits, at most `limit`.
    fn log(&mut self, after: u64, filter: &LogFilter, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// The number of the latest version in the log; 0 when there is none. Numbers have no gaps, so it can be searched for.
    fn latest(&mut self) -> Result<u64, StoreError> {
        let (mut known, mut beyond) = (0u64, 1u64);
        let mut is_there =
            |number: u64| self.log(number - 1, &LogFilter::default(), 1).map(|found| !found.is_empty());
        while is_there(beyond)? {
            (known, beyond) = (beyond, beyond.saturating_mul(2));
        }
        while beyond - known > 1 {
            let middle = known + (beyond - known) / 2;
            if is_there(middle)? { known = middle } else { beyond = middle }
        }
        Ok(known)
    }

    /// The plans that the versions after `after`, at most `limit` of them, belong to.
    fn written_since(&mut self, after: u64, limit: usize) -> Result<WrittenSince, StoreError> {
        let entries = self.log(after, &LogFilter::default(), limit)?;
        let mut written = WrittenSince { up_to: after, more: entries.len() == limit, plans: Vec::new() };
        for entry in entries {
            written.up_to = entry.sequence;
            match written.plans.iter_mut().find(|(plan, _)| *plan == entry.plan) {
                Some((_, version)) => *version = entry.version,
                None => written.plans.push((entry.plan, entry.version)),
            }
        }
        Ok(written)
    }

    /// Whether anybody waits for a task elsewhere at all, as far as that is known without much ado.
    fn has_waits(&mut self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Leases that ended before `before`; all of them when that is not given.
    fn leases(&mut self, before: Option<Timestamp>, limit: usize) -> Result<Vec<Lease>, StoreError>;

    /// Who holds any of `keys`.
    fn locks(&mut self, keys: &[&str]) -> Result<Vec<HeldLock>, StoreError>;

    /// Who waits for a task called `task` elsewhere, be it of `plan` or of `agent`'s plans.
    fn waits(&mut self, plan: &PlanId, agent: &str, task: &str) -> Result<Vec<Wait>, StoreError>;

    /// Who waits for any task of `plan`, or of whatever plan `agent` owns. Backends that have a table of waits need not go
    /// through all plans for it.
    fn waits_on(&mut self, plan: &PlanId, agent: &str) -> Result<Vec<Wait>, StoreError> {
        let mut query = Query { shelf: Shelf::All, sort: Sort::Id, limit: HEADS_PAGE, ..Query::default() };
        let mut found = Vec::new();
        loop {
            let page = self.heads(&query)?;
            for head in page.items {
                let waits = self.index(&head.id)?.waits;
                found.extend(waits.into_iter().filter(|wait| wait.is_on(plan, agent)));
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        found.sort();
        Ok(found)
    }

    /// All rows of the tables beside one plan, sorted.
    fn index(&mut self, plan: &PlanId) -> Result<IndexRows, StoreError>;

    /// The subscription of this id.
    fn subscription(&mut self, id: &str) -> Result<Option<Subscription>, StoreError>;

    /// The subscriptions of an owner, or of all: the oldest first, at most `limit`.
    fn subscriptions(&mut self, owner: Option<&str>, limit: usize) -> Result<Vec<Subscription>, StoreError>;

    /// The worker of this name.
    fn worker(&mut self, name: &str) -> Result<Option<Worker>, StoreError>;

    /// Workers by their names, at most `limit` after `after`.
    fn workers(&mut self, after: Option<&str>, limit: usize) -> Result<Page<Worker>, StoreError>;

    /// The leases of one worker, at most `limit`: those that never end first, then the earliest end.
    fn leases_of(&mut self, worker: &str, limit: usize) -> Result<Vec<Lease>, StoreError>;

    /// Who has slots of a queue, and how many: the leases that name it and have not ended, by worker, in the order of names.
    fn slots(&mut self, queue: &str) -> Result<Vec<(String, u32)>, StoreError>;

    /// The copy of an attempt's log. Stores whose users all have the files at hand keep none.
    fn attempt_log(
        &mut self,
        _plan: &PlanId,
        _task: &TaskId,
        _attempt: u32,
    ) -> Result<Option<AttemptLog>, StoreError> {
        Ok(None)
    }

    /// The copies of a plan's logs by task and attempt, at most `limit` after the one of `after`.
    fn attempt_logs(
        &mut self,
        _plan: &PlanId,
        _after: Option<(&TaskId, u32)>,
        _limit: usize,
    ) -> Result<Vec<AttemptLog>, StoreError> {
        Ok(Vec::new())
    }

    /// How much there is. Reads no plan; backends that can let their tables add up.
    fn totals(&mut self) -> Result<Totals, StoreError> {
        const HEADS_READ_MAX: usize = 500;
        let mut totals = Totals::default();
        let (shelf, sort, limit) = (Shelf::All, Sort::Id, HEADS_READ_MAX);
        let mut query = Query { shelf, sort, limit, ..Query::default() };
        loop {
            let page = self.heads(&query)?;
            page.items.iter().for_each(|head| totals.add(head));
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        let now = self.now();
        totals.leases = self.leases(None, usize::MAX >> 1)?.len() as u64;
        totals.leases_overdue = self.leases(Some(now), usize::MAX >> 1)?.len() as u64;
        Ok(totals)
    }

    /// What time it is, as this store sees it.
    fn now(&mut self) -> Timestamp;
}

/// One version, ready to be appended.
#[derive(Debug)]
pub struct Append<'a> {
    /// The plan's head after it.
    pub head: &'a Head,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: &'a waypost_core::Actor,
    /// The name of the command.
    pub command: &'a str,
    /// What happened.
    pub events: &'a [waypost_core::Event],
    /// How the tables beside the plan change.
    pub index: &'a IndexChanges,
    /// The whole plan, for backends that keep it readable beside its history.
    pub plan: &'a waypost_core::Plan,
}

impl Append<'_> {
    /// The version as the log keeps it.
    pub(crate) fn entry(&self, sequence: u64) -> Entry {
        Entry {
            sequence,
            plan: self.head.id.clone(),
            version: self.head.version,
            at: self.at,
            actor: self.actor.clone(),
            command: self.command.to_owned(),
            events: self.events.to_vec(),
        }
    }
}

/// Events that are to be forgotten, and what is kept in their place.
#[derive(Debug)]
pub struct Pruning<'a> {
    /// Which.
    pub pruned: &'a Pruned,
    /// The plan as the last of these versions left it.
    pub plan: &'a waypost_core::Plan,
    /// The same as a snapshot.
    pub snapshot: &'a [u8],
}

/// What versions that were taken over from another store lead to.
#[derive(Debug)]
pub struct Adopted<'a> {
    /// The plan after the last of them.
    pub plan: &'a waypost_core::Plan,
    /// The tables beside it, with the ends of leases.
    pub rows: &'a IndexRows,
    /// What was forgotten there.
    pub pruning: Option<Pruning<'a>>,
}

fn not_here(what: &str) -> StoreError {
    StoreError::Database(format!("this kind of store cannot {what}"))
}

/// What can be done inside a transaction.
pub trait Transaction: Read {
    /// Appends one version of a plan and moves its head and tables along. Returns the version's number in the log.
    fn append(&mut self, append: &Append<'_>) -> Result<u64, StoreError>;

    /// Bytes of versions appended since the latest snapshot: what a reader has to replay.
    fn bytes_since_snapshot(&mut self, plan: &PlanId) -> Result<u64, StoreError>;

    /// Keeps a snapshot of a plan at a version, in the place of earlier ones of the same [`SNAPSHOT_MILESTONE`].
    fn put_snapshot(&mut self, plan: &PlanId, version: u64, bytes: &[u8]) -> Result<(), StoreError>;

    /// Moves the end of a lease, if that attempt still has it.
    fn renew_lease(
        &mut self,
        plan: &PlanId,
        task: &str,
        attempt: u32,
        until: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Moves the ends of several leases. Returns for each whether that attempt still has it.
    fn renew_leases(
        &mut self,
        attempts: &[(PlanId, TaskId, u32)],
        until: Timestamp,
    ) -> Result<Vec<bool>, StoreError> {
        let renew = |(plan, task, attempt): &(PlanId, TaskId, u32)| {
            self.renew_lease(plan, task.as_str(), *attempt, until)
        };
        attempts.iter().map(renew).collect()
    }

    /// Puts the tables beside a plan right.
    fn replace_index(&mut self, plan: &PlanId, head: &Head, rows: &IndexRows) -> Result<(), StoreError>;

    /// Keeps a subscription, in the place of an earlier one of the same id. Wakes nobody.
    fn put_subscription(&mut self, subscription: &Subscription) -> Result<(), StoreError>;

    /// Forgets a subscription. Wakes nobody.
    fn drop_subscription(&mut self, id: &str) -> Result<(), StoreError>;

    /// Keeps what a worker says of itself, in the place of what it said before. Wakes nobody.
    fn put_worker(&mut self, worker: &Worker) -> Result<(), StoreError>;

    /// Forgets a worker. Wakes nobody.
    fn drop_worker(&mut self, name: &str) -> Result<(), StoreError>;

    /// Forgets the workers that were believed to be alive until before `before`. Returns how many. Wakes nobody.
    fn forget_workers(&mut self, before: Timestamp) -> Result<u64, StoreError>;

    /// Keeps a copy of an attempt's log, in the place of an earlier one; of a plan that is gone, nothing. See
    /// [`Read::attempt_log`]. Wakes nobody.
    fn put_attempt_log(&mut self, _log: &AttemptLog) -> Result<(), StoreError> {
        Ok(())
    }

    /// Forgets a plan with its history and its logs; its id stays used.
    fn purge(&mut self, plan: &PlanId) -> Result<(), StoreError>;

    /// Forgets the events of a plan up to a version, and keeps what they led to. Their rows in the log stay, without events:
    /// numbers, who, when and the commands' names. Snapshots of those versions go, and copies of attempts' logs where the store
    /// keeps any. Wakes nobody.
    fn prune(&mut self, _pruning: &Pruning<'_>) -> Result<(), StoreError> {
        Err(not_here("forget events"))
    }

    /// Takes over versions of one plan as another store has them, with their numbers in its log. They come in their order,
    /// from version 1 on, and [`Transaction::settle`] follows in the same transaction.
    fn adopt(&mut self, _entries: &[Entry]) -> Result<(), StoreError> {
        Err(not_here("take over versions"))
    }

    /// Ends the taking over of a plan: this is what it is now. Nothing if it was purged, so that only its numbers are used.
    fn settle(&mut self, _plan: &PlanId, _adopted: Option<&Adopted<'_>>) -> Result<(), StoreError> {
        Err(not_here("take over versions"))
    }
}

/// Work done inside a transaction. It may be run again when the backend has to start over.
pub type Work<'a> = &'a mut dyn FnMut(&mut dyn Transaction) -> Result<(), StoreError>;

/// Work done on one consistent state of the store. It may be run again when the backend has to start over.
pub type Look<'a> = &'a mut dyn FnMut(&mut dyn Read) -> Result<(), StoreError>;

/// Who shares a store, and so has to agree on what only one may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One process.
    Process,
    /// Processes of one machine, which see the same files.
    Machine,
    /// Any number of machines, which see nothing in common but the store.
    Machines,
}

/// A place where plans live.
pub trait Store: Send + Sync {
    /// The place, as a user would name it.
    fn location(&self) -> String;

    /// Runs `work` alone among all writers of all processes; what it did is durable when this returns `Ok`, and undone
    /// when `work` or the backend fails.
    fn write(&self, work: Work<'_>) -> Result<(), StoreError>;

    /// Runs `look` on one state of the store, at the same time as others read and write.
    fn read(&self, look: Look<'_>) -> Result<(), StoreError>;

    /// Begins to watch for writes by anybody. Only versions count: a lease that is renewed wakes nobody.
    fn watch(&self) -> Result<Box<dyn Watch>, StoreError>;

    /// A file beside the store, by which processes that share it can agree; nothing where there is no disk.
    fn beside(&self, _name: &str) -> Option<PathBuf> {
        None
    }

    /// Takes what only one of all who share the store may have at a time; nothing when another has it.
    fn hold(&self, name: &str) -> Result<Option<Box<dyn Held>>, StoreError> {
        Ok(match self.beside(name) {
            Some(path) => named_lock::by_file(&path),
            None => Some(Box::new(named_lock::Unshared)),
        })
    }

    /// Who shares it.
    fn reach(&self) -> Reach {
        Reach::Machine
    }

    /// Gives space that is not needed any more back to the file system, where that takes an order: it may last, and needs
    /// room for a copy. Returns the bytes that were won.
    fn compact(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// What an operator should know of this store and how it keeps its promises: name and value.
    fn about(&self) -> Result<Vec<(&'static str, String)>, StoreError> {
        Ok(Vec::new())
    }

    /// Looks for damage below the level of plans; one line for each.
    fn check(&self) -> Result<Vec<String>, StoreError>;

    /// Repairs plans whose files or rows are damaged from what is intact, and says of each what became of it.
    fn repair(&self) -> Result<Vec<(PlanId, String)>, StoreError> {
        Ok(Vec::new())
    }
}
