//! Copies all plans of one store into another that is empty: ids, versions, sequence numbers of the log, history,
//! leases, subscriptions, the copies of attempt logs, and which plans are archived, pruned or purged. Reads one plan,
//! or one page of the log, at a time, and does not change the source. Workers are not copied: they register where they
//! work.
//!
//! Each plan is copied in one transaction, so it is complete or absent. An interrupted copy resumes where it stopped:
//! until the copy has been verified, a subscription in the target records its source and how far it reaches.

use ring::digest::{Context, SHA256};
use waypost_core::{Plan, PlanId, TaskId};

use crate::error::{Result, StoreError};
use crate::log::event::{Cursor, EventFilter};
use crate::log::subscription::Subscription;
use crate::maintenance::integrity::keep_leases;
use crate::plans::cache::load;
use crate::rows::{
    ArchiveFilter, IndexRows, Lease, LeaseFilter, LogFilter, PlanState, PlanSummary, Pruned, Query,
    SharedKeys, SharedScope, Sort, SubscriptionFilter, VersionRecord,
};
use crate::store::{Pruning, Read, Record, Store, Transaction};

/// The id of the subscription that marks an unfinished copy. Random ids are longer.
const MARK: &str = "copying";
/// The owner of the mark, followed by the location of the source.
const MARK_OWNER: &str = "copy:";
/// Maximum number of versions that are read at a time.
const VERSIONS_READ_MAX: usize = 1_000;
/// Maximum number of plan summaries that are read at a time.
const PLANS_READ_MAX: usize = 500;
/// Maximum number of attempt logs that are read at a time.
const LOGS_READ_MAX: usize = 50;
/// Maximum number of records of a shared plan that are read at a time.
const SHARED_READ_MAX: usize = 100;
/// Maximum number of subscriptions that can be copied.
pub const SUBSCRIPTIONS_COPIED_MAX: usize = 100_000;
/// Bytes of versions after which a copied plan gets a snapshot.
const SNAPSHOT_BYTES_MIN: u64 = 64 * 1024;
/// Maximum number of leases that a refusal lists.
const LEASES_NAMED_MAX: usize = 5;

/// Whether a store may be copied while its tasks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Running {
    /// Refuse the copy while a lease in the source has yet to expire.
    #[default]
    Refuse,
    /// Copy anyway: running tasks continue in the source, and run again in the copy once their leases expire.
    Allow,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Whether the second pass, which only compares, has begun.
    pub verifying: bool,
    /// The number of versions that this pass has processed.
    pub versions: u64,
    /// The number of versions to process.
    pub versions_total: u64,
}

/// The result of a copy.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Copied {
    /// The number of plans, archived ones included.
    pub plans: u64,
    /// The number of purged plans, of which only the id is left.
    pub purged: u64,
    /// The number of versions: the sequence number of the last one in the log.
    pub versions: u64,
    /// The number of subscriptions.
    pub subscriptions: usize,
    /// A fingerprint (SHA-256, in hex) of all versions in the order of the log, the same for both stores.
    pub digest: String,
    /// Whether this call resumed an interrupted copy.
    pub resumed: bool,
    /// The number of versions that were written to the source since the copy began and are not in the copy.
    pub written_since: u64,
}

/// The reason why a store was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Source and target are the same store.
    #[error("{0} cannot be copied into itself")]
    Same(String),
    /// The target already has versions or subscriptions.
    #[error("{location} is not empty: it has {versions} versions and {subscriptions} subscriptions")]
    NotEmpty {
        /// The location of the target.
        location: String,
        /// The number of versions that it has.
        versions: u64,
        /// The number of subscriptions that it has, counted up to 2.
        subscriptions: usize,
    },
    /// The target contains an unfinished copy of another store.
    #[error("{location} holds an unfinished copy of {other}")]
    OfAnother {
        /// The location of the target.
        location: String,
        /// The location of the store that it is a copy of.
        other: String,
    },
    /// A newer build has migrated the source, and this build can only read it.
    #[error("{location} has schema {schema}, which this build can read but not copy")]
    Newer {
        /// The location of the source.
        location: String,
        /// The schema of the source.
        schema: u32,
    },
    /// Tasks are running in the source.
    #[error("tasks are worked on in {location}: {}", leases.iter().map(|lease| format!("{} of plan {} by {}", lease.task, lease.plan, lease.worker)).collect::<Vec<_>>().join(", "))]
    WorkGoesOn {
        /// The location of the source.
        location: String,
        /// The first live leases, at most five.
        leases: Vec<Lease>,
    },
    /// The verification found that the copy differs from the source.
    #[error("the copy differs: {0}")]
    Differs(String),
    /// One of the stores failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl CopyError {
    /// Returns what the user can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Same(_) => "name another store with --to",
            Self::NotEmpty { .. } => "copy into a new place",
            Self::Newer { .. } => "update Waypost",
            Self::OfAnother { .. } => "finish that copy, or copy into a new place",
            Self::WorkGoesOn { .. } => {
                "stop the workers and wait for them; with --while-running these tasks may be run a second time"
            }
            Self::Differs(_) => {
                "the target stays marked as unfinished; stop all writers, remove the target and copy again"
            }
            Self::Store(error) => error.hint(),
        }
    }
}

/// Copies all of `from` into `to`, and verifies the copy. Resumes an interrupted copy of the same source.
pub fn copy(
    from: &dyn Store,
    to: &dyn Store,
    running: Running,
    progress: &mut dyn FnMut(Progress),
) -> Result<Copied, CopyError> {
    if from.location() == to.location() {
        return Err(CopyError::Same(from.location()));
    }
    // This build would lose what a newer build has added.
    if let Some(schema) = from.query(|read| Ok(read.store_state()?.newer_schema))? {
        return Err(CopyError::Newer { location: from.location(), schema });
    }
    if running == Running::Refuse {
        no_live_leases(from)?;
    }
    let (up_to, resumed) = begin(from, to)?;
    let copying = Copying { from, to, up_to };
    copying.plans(progress)?;
    let (plans, purged, digest) = copying.verify(progress)?;
    let subscriptions = copying.finish()?;
    let written_since = latest(from)?.saturating_sub(up_to);
    Ok(Copied { plans, purged, versions: up_to, subscriptions, digest, resumed, written_since })
}

fn latest(store: &dyn Store) -> Result<u64> {
    store.query(|read| Ok(read.store_state()?.latest))
}

/// Refuses while there are live leases that workers renew. A lease without an end is a claim of a person or an agent,
/// and is copied.
fn no_live_leases(from: &dyn Store) -> Result<(), CopyError> {
    let (now, mut leases) =
        from.query(|read| Ok((read.now(), read.leases(&LeaseFilter::All, usize::MAX >> 1)?)))?;
    leases.retain(|lease| lease.until.is_some_and(|until| until >= now));
    leases.truncate(LEASES_NAMED_MAX);
    if leases.is_empty() { Ok(()) } else { Err(CopyError::WorkGoesOn { location: from.location(), leases }) }
}

/// Marks an empty target as the copy of `from`, or finds the mark of an earlier try. Returns the last sequence number
/// that belongs to the copy, and whether the copy is resumed.
fn begin(from: &dyn Store, to: &dyn Store) -> Result<(u64, bool), CopyError> {
    let (up_to, owner) = (latest(from)?, format!("{MARK_OWNER}{}", from.location()));
    let mut outcome = Err(StoreError::Database("the store gave no answer".to_owned()).into());
    to.write(&mut |transaction| {
        let mark = transaction.subscriptions(SubscriptionFilter::Id(MARK), 1)?.pop();
        let (versions, subscriptions) =
            (transaction.store_state()?.latest, transaction.subscriptions(SubscriptionFilter::All, 2)?.len());
        outcome = match mark {
            Some(mark) if mark.owner == owner => Ok((mark.cursor.sequence, true)),
            Some(mark) => {
                let other = mark.owner.trim_start_matches(MARK_OWNER).to_owned();
                Err(CopyError::OfAnother { location: to.location(), other })
            }
            None if versions > 0 || subscriptions > 0 => {
                Err(CopyError::NotEmpty { location: to.location(), versions, subscriptions })
            }
            None => {
                let (cursor, created_at) = (Cursor::after(up_to), transaction.now());
                let (id, owner, filter) = (MARK.to_owned(), owner.clone(), EventFilter::default());
                let mark = Subscription { id, owner, filter, cursor, created_at, trouble: None };
                transaction.put(Record::Subscription(&mark.id, Some(&mark)))?;
                Ok((up_to, false))
            }
        };
        Ok(())
    })?;
    outcome
}

/// Returns the location of the source if the subscription marks an unfinished copy.
pub(crate) fn unfinished(subscription: &Subscription) -> Option<&str> {
    let owner = Some(&subscription.owner).filter(|_| subscription.id == MARK);
    owner.and_then(|owner| owner.strip_prefix(MARK_OWNER))
}

struct Copying<'a> {
    from: &'a dyn Store,
    to: &'a dyn Store,
    /// The last sequence number that belongs to the copy: later versions do not.
    up_to: u64,
}

/// A plan that was replayed from its history.
struct ReplayedPlan {
    plan: Plan,
    rows: IndexRows,
    /// The range of pruned versions, and the plan at the end of that range.
    kept: Option<(Pruned, Plan)>,
    /// The bytes of its versions.
    replay_bytes: u64,
}

impl Copying<'_> {
    fn plans(&self, progress: &mut dyn FnMut(Progress)) -> Result<(), CopyError> {
        let mut after = 0;
        while after < self.up_to {
            let written = self.from.query(|read| read.written_since(after, VERSIONS_READ_MAX))?;
            let unreadable = &written.unreadable;
            if unreadable.from.is_some() {
                // A copy without these versions would pass for a whole one.
                return Err(StoreError::Database(unreadable.warnings.join("; ")).into());
            }
            for (plan, _) in &written.plans {
                self.plan(plan)?;
            }
            if written.up_to == after {
                break;
            }
            after = written.up_to;
            let versions = after.min(self.up_to);
            progress(Progress { verifying: false, versions, versions_total: self.up_to });
        }
        Ok(())
    }

    /// Copies one plan, unless the target already has it.
    fn plan(&self, id: &PlanId) -> Result<(), CopyError> {
        let is_there = self.to.query(|read| read.plan_state(id))? != PlanState::Unused;
        if is_there {
            return Ok(());
        }
        self.to.write(&mut |transaction| {
            self.from.read(&mut |read| {
                let Some(told) = self.import_versions(read, transaction, id)? else {
                    return Ok(());
                };
                let Some(ReplayedPlan { mut plan, rows, kept, replay_bytes }) = told else {
                    return transaction.purge(id);
                };
                transaction.replace_index(&plan, &PlanSummary::of(&plan), &rows)?;
                if let Some((pruned, mut plan)) = kept {
                    let snapshot = plan.snapshot();
                    transaction.prune(&Pruning { pruned: &pruned, plan: &plan, snapshot: &snapshot })?;
                }
                if replay_bytes > SNAPSHOT_BYTES_MIN {
                    let bytes = plan.snapshot();
                    transaction.put(Record::Snapshot(id, plan.version(), &bytes))?;
                }
                shared_rows(read, transaction, SharedScope::Records(id))?;
                shared_rows(read, transaction, SharedScope::Unpublished(id))?;
                attempt_logs(read, transaction, id)
            })
        })?;
        Ok(())
    }

    /// Imports the versions of a plan, page by page. Returns the replayed plan: the inner option is `None` if the plan
    /// was purged, the outer one if all its versions are later than the copy.
    fn import_versions(
        &self,
        read: &mut dyn Read,
        transaction: &mut dyn Transaction,
        id: &PlanId,
    ) -> Result<Option<Option<ReplayedPlan>>> {
        let is_there = read.head(id)?.is_some();
        let kept = match read.pruned(id)?.filter(|_| is_there) {
            Some(pruned) => Some((pruned.clone(), load(read, id, pruned.up_to)?)),
            None => None,
        };
        let mut plan = kept.as_ref().map_or_else(|| Plan::blank(id.clone()), |(_, plan)| plan.clone());
        let (mut last, mut replay_bytes) = (0, 0);
        loop {
            let mut page = read.stored_versions(id, last, VERSIONS_READ_MAX)?;
            page.retain(|entry| entry.sequence <= self.up_to);
            let Some(end) = page.last() else { break };
            last = end.version;
            replay_bytes += page.iter().map(|entry| entry.events.len() as u64).sum::<u64>();
            for entry in page.iter().filter(|_| is_there) {
                if entry.version == plan.version() + 1 {
                    plan.advance(&entry.record()?.events, entry.at);
                }
            }
            transaction.import_versions(&page)?;
        }
        if last == 0 {
            return Ok(None);
        }
        if !is_there {
            return Ok(Some(None));
        }
        if plan.version() != last {
            let what = format!("the history of plan {id}");
            let detail =
                format!("version {} is missing, or was pruned since the copy began", plan.version() + 1);
            return Err(StoreError::Corrupt { what, detail });
        }
        plan.take_touched();
        let mut rows = IndexRows::of(&plan);
        keep_leases(&mut rows, &read.leases(&LeaseFilter::Plan(id), usize::MAX >> 1)?);
        Ok(Some(Some(ReplayedPlan { plan, rows, kept, replay_bytes })))
    }

    /// Compares everything: each version, each summary, and each plan as its history and its snapshots yield it.
    /// Returns the number of plans, the number of purged plans, and the fingerprint.
    fn verify(&self, progress: &mut dyn FnMut(Progress)) -> Result<(u64, u64, String), CopyError> {
        let end = latest(self.to)?;
        if end != self.up_to {
            return Err(CopyError::Differs(format!("its log ends at {end}, and should at {}", self.up_to)));
        }
        let (mut after, mut digest, mut purged) = (0, Context::new(&SHA256), 0);
        while after < self.up_to {
            let (mut ours, theirs) = (page(self.from, after)?, page(self.to, after)?);
            ours.retain(|entry| entry.sequence <= self.up_to);
            if ours != theirs || ours.is_empty() {
                let first = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
                let number = first.map_or(after + 1, |(ours, _)| ours.sequence);
                return Err(CopyError::Differs(format!("number {number} of the log is not the same")));
            }
            for entry in &ours {
                let bytes =
                    serde_json::to_vec(entry).map_err(|error| StoreError::Database(error.to_string()))?;
                digest.update(&bytes);
                digest.update(b"\n");
                if entry.version == 1 {
                    purged += u64::from(!self.same_presence(&entry.plan)?);
                }
                after = entry.sequence;
            }
            progress(Progress { verifying: true, versions: after, versions_total: self.up_to });
        }
        let digest = waypost_text::hex(digest.finish().as_ref());
        Ok((self.verify_plans()?, purged, digest))
    }

    /// Returns whether a plan is present in both stores; `false` if it was purged in both.
    fn same_presence(&self, id: &PlanId) -> Result<bool, CopyError> {
        let of = |store: &dyn Store| store.query(|read| read.plan_state(id));
        match (of(self.from)?, of(self.to)?) {
            (PlanState::Stored { .. }, PlanState::Stored { .. }) => Ok(true),
            (PlanState::Purged, PlanState::Purged) => Ok(false),
            _ => Err(CopyError::Differs(format!("plan {id} is in one store only"))),
        }
    }

    fn verify_plans(&self) -> Result<u64, CopyError> {
        let mut query =
            Query { shelf: ArchiveFilter::All, sort: Sort::Id, limit: PLANS_READ_MAX, ..Query::default() };
        let mut plans = 0;
        loop {
            let page = self.to.query(|read| read.heads(&query))?;
            for head in &page.items {
                self.verify_plan(head)?;
                plans += 1;
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(plans),
            }
        }
    }

    fn verify_plan(&self, head: &PlanSummary) -> Result<(), CopyError> {
        let id = &head.id;
        let told = |store: &dyn Store| -> Result<_> {
            store.query(|read| {
                let plan = load(read, id, head.version)?;
                Ok((plan, read.index(id)?, read.head(id)?, read.pruned(id)?, read.plan_state(id)?.hash()))
            })
        };
        let (ours, theirs) = (told(self.from)?, told(self.to)?);
        let what = if ours.0.to_draft() != theirs.0.to_draft() {
            "is not the same plan"
        } else if PlanSummary::of(&ours.0) != *head {
            "has another line in the list than its history says"
        } else if ours.2.as_ref().is_some_and(|head| head.version == theirs.0.version())
            && (ours.2 != theirs.2
                || ours.3 != theirs.3
                || ours.4 != theirs.4
                || ours.1.locks != theirs.1.locks
                || ours.1.waits != theirs.1.waits)
        {
            "has another line in the list, another hash, or other locks or waits"
        } else {
            return Ok(());
        };
        Err(CopyError::Differs(format!("plan {id} {what}")))
    }

    /// Copies the subscriptions and removes the mark: from here on the copy is a complete store.
    fn finish(&self) -> Result<usize, CopyError> {
        let mut all = self
            .from
            .query(|read| read.subscriptions(SubscriptionFilter::All, SUBSCRIPTIONS_COPIED_MAX + 1))?;
        all.retain(|subscription| subscription.id != MARK);
        if all.len() > SUBSCRIPTIONS_COPIED_MAX {
            let what = format!("there are more than {SUBSCRIPTIONS_COPIED_MAX} subscriptions");
            return Err(CopyError::Differs(what));
        }
        self.to.write(&mut |transaction| {
            for subscription in &all {
                let cursor = subscription.cursor.min(Cursor::after(self.up_to));
                let copied = Subscription { cursor, ..subscription.clone() };
                transaction.put(Record::Subscription(&copied.id, Some(&copied)))?;
            }
            self.from.read(&mut |read| {
                shared_rows(read, transaction, SharedScope::Plans)?;
                shared_rows(read, transaction, SharedScope::Withheld)
            })?;
            transaction.put(Record::Subscription(MARK, None))
        })?;
        Ok(all.len())
    }
}

/// Copies a group of rows about shared plans. What is known of the clone is not copied: the target draws a tag of its
/// own.
fn shared_rows(read: &mut dyn Read, transaction: &mut dyn Transaction, scope: SharedScope<'_>) -> Result<()> {
    let mut after = String::new();
    loop {
        let rows = read.shared(scope, SharedKeys::After(&after), SHARED_READ_MAX)?;
        for (key, value) in &rows {
            transaction.put(Record::Shared(scope, key, Some(value)))?;
        }
        match rows.into_iter().last() {
            Some((key, _)) => after = key,
            None => return Ok(()),
        }
    }
}

/// Copies a plan's attempt logs, where both stores keep any.
fn attempt_logs(read: &mut dyn Read, transaction: &mut dyn Transaction, id: &PlanId) -> Result<()> {
    let mut after: Option<(TaskId, u32)> = None;
    loop {
        let last = after.as_ref().map(|(task, attempt)| (task, *attempt));
        let logs = read.attempt_logs(id, last, LOGS_READ_MAX)?;
        for log in &logs {
            transaction.put(Record::AttemptLog(log))?;
        }
        match logs.into_iter().last() {
            Some(log) => after = Some((log.task, log.attempt)),
            None => return Ok(()),
        }
    }
}

fn page(store: &dyn Store, after: u64) -> Result<Vec<VersionRecord>> {
    store.query(|read| Ok(read.log(after, &LogFilter::default(), VERSIONS_READ_MAX)?.versions))
}
