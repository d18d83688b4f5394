//! A store around another: with a clock that is set by hand, and with faults at chosen moments.

use std::sync::Arc;

use waypost_core::{Plan, PlanId, TaskId, Timestamp};
use waypost_store::{
    Append, Appended, AttemptLog, HeldLock, IndexRows, Inspect, Lease, LeaseFilter, LeaseUpdate, LockFilter,
    LogFilter, LogPage, Look, Maintenance, Page, PlanState, PlanSummary, Pruned, Pruning, Query, Read,
    ReadHints, Record, Rewrite, SharedKeys, SharedScope, SharingScope, Store, StoreError, StorePlace,
    StoreState, StoredVersion, Subscription, SubscriptionFilter, Totals, Transaction, VersionRecord, Wait,
    WaitFilter, Work, Worker, WorkerFilter, WrittenSince,
};

/// A moment at which a fault can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before a version is appended.
    Append,
    /// After the work of a transaction, before its commit.
    Commit,
    /// After the commit, before anybody hears of it.
    Answer,
    /// Before anything is read outside of transactions.
    Read,
}

type Fault = dyn Fn(Moment) -> Result<(), StoreError> + Send + Sync;
type Clock = dyn Fn() -> Timestamp + Send + Sync;

pub(crate) struct Wrapped {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) fault: Box<Fault>,
    pub(crate) clock: Option<Box<Clock>>,
    pub(crate) reach: Option<SharingScope>,
}

impl Wrapped {
    /// Around `inner`, with this clock and no faults.
    pub(crate) fn with_clock(
        inner: Arc<dyn Store>,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Arc<dyn Store> {
        Arc::new(Self { inner, fault: Box::new(|_| Ok(())), clock: Some(Box::new(clock)), reach: None })
    }

    /// Around `inner`, asking `fault` at each moment whether it should fail.
    pub(crate) fn with_faults(
        inner: Arc<dyn Store>,
        fault: impl Fn(Moment) -> Result<(), StoreError> + Send + Sync + 'static,
    ) -> Arc<dyn Store> {
        Arc::new(Self { inner, fault: Box::new(fault), clock: None, reach: None })
    }
}

impl Store for Wrapped {
    fn place(&self) -> StorePlace {
        let StorePlace { location, reach } = self.inner.place();
        StorePlace { location, reach: self.reach.unwrap_or(reach) }
    }

    fn write(&self, work: Work<'_>) -> Result<(), StoreError> {
        self.inner.write(&mut |transaction| {
            work(&mut Within { inner: transaction, around: self })?;
            (self.fault)(Moment::Commit)
        })?;
        (self.fault)(Moment::Answer)
    }

    fn read(&self, look: Look<'_>) -> Result<(), StoreError> {
        (self.fault)(Moment::Read)?;
        self.inner.read(look)
    }

    fn watch(&self) -> Result<Box<dyn waypost_store::Watch>, StoreError> {
        self.inner.watch()
    }

    fn try_lock(&self, name: &str) -> Result<Option<Box<dyn waypost_store::NamedLock>>, StoreError> {
        self.inner.try_lock(name)
    }
}

impl Maintenance for Wrapped {
    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check()
    }
    fn damage(&self, plan: &PlanId) -> Result<Option<String>, StoreError> {
        self.inner.damage(plan)
    }
    fn intact(&self, plan: &PlanId) -> Result<Option<(Plan, String)>, StoreError> {
        self.inner.intact(plan)
    }
    fn repair(&self) -> Result<Vec<(Option<PlanId>, String)>, StoreError> {
        self.inner.repair()
    }
    fn totals(&self) -> Result<Totals, StoreError> {
        self.inner.totals()
    }
}

struct Within<'a> {
    inner: &'a mut dyn Transaction,
    around: &'a Wrapped,
}

impl Inspect for Within<'_> {
    fn stored_versions(
        &mut self,
        plan: &PlanId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredVersion>, StoreError> {
        self.inner.stored_versions(plan, after, limit)
    }
    fn pruned(&mut self, plan: &PlanId) -> Result<Option<Pruned>, StoreError> {
        self.inner.pruned(plan)
    }
}

impl Read for Within<'_> {
    fn expect(&mut self, expected: &ReadHints) {
        self.inner.expect(expected);
    }
    fn head(&mut self, plan: &PlanId) -> Result<Option<PlanSummary>, StoreError> {
        self.inner.head(plan)
    }
    fn heads(&mut self, query: &Query) -> Result<Page<PlanSummary>, StoreError> {
        self.inner.heads(query)
    }
    fn ids(&mut self, prefix: &str, limit: usize) -> Result<Vec<PlanId>, StoreError> {
        self.inner.ids(prefix, limit)
    }
    fn versions(
        &mut self,
        plan: &PlanId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<VersionRecord>, StoreError> {
        self.inner.versions(plan, after, limit)
    }
    fn snapshot(&mut self, plan: &PlanId, at_most: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.inner.snapshot(plan, at_most)
    }
    fn log(&mut self, after: u64, filter: &LogFilter, limit: usize) -> Result<LogPage, StoreError> {
        self.inner.log(after, filter, limit)
    }
    fn leases(&mut self, filter: &LeaseFilter<'_>, limit: usize) -> Result<Vec<Lease>, StoreError> {
        self.inner.leases(filter, limit)
    }
    fn locks(&mut self, filter: LockFilter<'_>) -> Result<Vec<HeldLock>, StoreError> {
        self.inner.locks(filter)
    }
    fn waits(&mut self, filter: WaitFilter<'_>) -> Result<Vec<Wait>, StoreError> {
        self.inner.waits(filter)
    }
    fn plan_state(&mut self, plan: &PlanId) -> Result<PlanState, StoreError> {
        self.inner.plan_state(plan)
    }
    fn store_state(&mut self) -> Result<StoreState, StoreError> {
        self.inner.store_state()
    }
    fn subscriptions(
        &mut self,
        filter: SubscriptionFilter<'_>,
        limit: usize,
    ) -> Result<Vec<Subscription>, StoreError> {
        self.inner.subscriptions(filter, limit)
    }
    fn workers(&mut self, filter: WorkerFilter<'_>, limit: usize) -> Result<Page<Worker>, StoreError> {
        self.inner.workers(filter, limit)
    }
    fn slots(&mut self, queue: &str) -> Result<Vec<(String, u32)>, StoreError> {
        self.inner.slots(queue)
    }
    fn written_since(&mut self, after: u64, limit: usize) -> Result<WrittenSince, StoreError> {
        self.inner.written_since(after, limit)
    }
    fn attempt_logs(
        &mut self,
        plan: &PlanId,
        after: Option<(&TaskId, u32)>,
        limit: usize,
    ) -> Result<Vec<AttemptLog>, StoreError> {
        self.inner.attempt_logs(plan, after, limit)
    }
    fn shared(
        &mut self,
        scope: SharedScope<'_>,
        keys: SharedKeys<'_>,
        limit: usize,
    ) -> Result<Vec<(String, String)>, StoreError> {
        self.inner.shared(scope, keys, limit)
    }
    fn now(&mut self) -> Timestamp {
        match &self.around.clock {
            Some(clock) => clock(),
            None => self.inner.now(),
        }
    }
}

impl Transaction for Within<'_> {
    fn append(&mut self, append: &Append<'_>) -> Result<Appended, StoreError> {
        (self.around.fault)(Moment::Append)?;
        self.inner.append(append)
    }
    fn update_leases(&mut self, updates: &[LeaseUpdate]) -> Result<Vec<bool>, StoreError> {
        self.inner.update_leases(updates)
    }
    fn put(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.inner.put(record)
    }
}

impl Rewrite for Within<'_> {
    fn replace_index(&mut self, plan: &Plan, head: &PlanSummary, rows: &IndexRows) -> Result<(), StoreError> {
        self.inner.replace_index(plan, head, rows)
    }
    fn purge(&mut self, plan: &PlanId) -> Result<(), StoreError> {
        self.inner.purge(plan)
    }
    fn prune(&mut self, pruning: &Pruning<'_>) -> Result<(), StoreError> {
        self.inner.prune(pruning)
    }
    fn import_versions(&mut self, entries: &[StoredVersion]) -> Result<(), StoreError> {
        (self.around.fault)(Moment::Append)?;
        self.inner.import_versions(entries)
    }
}
