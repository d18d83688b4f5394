//! The front of a store: turns commands into versions. Decides inside the store's transaction, appends the events as
//! one version (`transaction.rs`), and caches the plans that this process works on at a known version (`cache.rs`).

pub(crate) mod cache;
mod external;
pub(crate) mod group_commit;
mod prefetch;
mod recent_versions;
pub(crate) mod request;
mod slot_quota;
pub(crate) mod transaction;
mod workers;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

use waypost_core::{Actor, Command, Draft, Plan, PlanId, TaskId};

use self::cache::{Cache, PLANS_CACHED_MAX, VERSIONS_READ_MAX, catch_up, load};
use self::request::{
    Answer, AppendCommands, BatchError, BuildCommands, Done, Job, NewPlan, OnRefusal, Purge, SharedWrite,
    Write, WriteError, WriteRequest,
};
use self::transaction::{create, purge, random_name, write, write_shared};
use crate::cross_plan::deliver::{and_tell, deliver};
use crate::error::{Result, StoreError};
use crate::log::change_watch::Watch;
use crate::log::commit_hook;
use crate::log::replay_cache::Follower;
use crate::metrics::meters;
use crate::plans::group_commit::Group;
use crate::rows::{
    LogFilter, LogPage, Page, PlanSummary, Query, ReadyTask, Sort, VersionRecord, WrittenSince,
};
use crate::store::{Read, ReadHints, Store, Transaction};
use crate::workers::Slots;

/// Maximum number of ids that an ambiguous prefix lists.
const CANDIDATES_MAX: usize = 10;

/// The place of a ready task among those of all plans: its priority, when its plan was created, and the plan.
type Place = (Reverse<i32>, i64, PlanId);

/// Calls the commit hook for each version that is now durable.
fn tell_of_all(jobs: &[Job], answers: &[Answer], cache: &Cache, took: Duration) {
    for (job, answer) in jobs.iter().zip(answers) {
        let Ok(done) = answer else { continue };
        match job {
            Job::Create(_, by, command) => {
                commit_hook::tell_of(&[command], by, done, cache.get(&done.plan), took)
            }
            Job::Write(write) => commit_hook::tell(&write.request, done, cache.get(&done.plan), took),
            Job::Shared(shared) => {
                let commands: Vec<&Command> = shared.commands.iter().collect();
                commit_hook::tell_of(&commands, &shared.by, done, cache.get(&done.plan), took);
            }
            Job::Purge(..) => {}
        }
    }
}

fn written(request: WriteRequest, slots: Option<Slots>, on_refusal: OnRefusal) -> Job {
    Job::Write(Box::new(Write { request, slots, build: None, append: None, on_refusal }))
}

/// Executes one job inside a transaction, and delivers its consequences to other plans.
fn carry_out(transaction: &mut dyn Transaction, cache: &mut Cache, job: &Job) -> Done {
    let (by, done) = match job {
        Job::Create(id, by, command) => (by, create(transaction, cache, id.as_ref(), by, command)),
        Job::Write(job) => (&job.request.by, write(transaction, cache, job)),
        Job::Shared(job) => (&job.by, write_shared(transaction, cache, job)),
        Job::Purge(job) => {
            let (done, news) = purge(transaction, cache, job)?;
            deliver(transaction, cache, &job.by, &job.plan, news)?;
            return Ok(done);
        }
    };
    and_tell(transaction, cache, by, done?)
}

/// All plans of one store: reads them, and commits concurrent writes of this process together.
pub struct PlanStore {
    store: Arc<dyn Store>,
    cache: RwLock<Cache>,
    /// Plans as readers of the event log have replayed them.
    follower: Mutex<Follower>,
    group: Group<Vec<Job>, Vec<Answer>>,
    for_one_command: bool,
}

impl Drop for PlanStore {
    fn drop(&mut self) {
        if self.for_one_command {
            // The process is about to exit: freeing a large plan piece by piece would take longer than the command
            // itself.
            let cache = self.cache.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(cache));
        }
    }
}

impl PlanStore {
    /// Creates a front with an empty cache.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            cache: RwLock::default(),
            follower: Mutex::default(),
            group: Group::new(),
            for_one_command: false,
        }
    }

    /// Creates a front for a process that exits after one command: dropping it does not free the cached plans.
    pub fn for_one_command(store: Arc<dyn Store>) -> Self {
        let mut plans = Self::new(store);
        plans.for_one_command = true;
        plans
    }

    /// Returns the store behind this front.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn follower(&self) -> &Mutex<Follower> {
        &self.follower
    }

    /// Starts to watch for writes by any process.
    pub fn watch(&self) -> Result<Box<dyn Watch>> {
        self.store.watch()
    }

    /// Returns a random id for a plan that is to be created later.
    pub fn reserve_id(&self) -> Result<PlanId> {
        PlanId::new(random_name()?).map_err(|error| StoreError::Database(error.to_string()))
    }

    /// Creates a plan. Durable when this returns.
    pub fn create(&self, new: NewPlan) -> Answer {
        let NewPlan { id, by, draft, approval_required } = new;
        self.create_shared(id, by, Arc::new(draft), approval_required)
    }

    /// Creates a plan from a draft that its caller compares with the stored plan if there is one already. Durable when this
    /// returns.
    pub fn create_shared(
        &self,
        id: Option<PlanId>,
        by: Actor,
        draft: Arc<Draft>,
        approval_required: Option<bool>,
    ) -> Answer {
        self.queue_one(Job::Create(id, by, Command::Create { draft, approval_required }))
    }

    /// Writes one version. Durable when this returns.
    pub fn write(&self, request: WriteRequest) -> Answer {
        self.queue_one(written(request, None, OnRefusal::Fail))
    }

    /// Writes one version with the commands that `build` derives from the plan inside the transaction, and then `append`
    /// from the plan as they leave it. The commands of the request are ignored.
    pub fn write_built(
        &self,
        request: WriteRequest,
        build: BuildCommands,
        append: Option<AppendCommands>,
    ) -> Answer {
        let (build, on_refusal) = (Some(build), OnRefusal::Fail);
        self.queue_one(Job::Write(Box::new(Write { request, slots: None, build, append, on_refusal })))
    }

    /// Writes one version with the commands that are not refused; the answer lists the rejected ones. For workers that
    /// share a plan: another worker may have been faster with one task, and the other commands are still worth writing.
    /// With `slots`, the started tasks take slots of a queue.
    pub fn write_partial(&self, request: WriteRequest, slots: Option<Slots>) -> Answer {
        self.queue_one(written(request, slots, OnRefusal::Skip))
    }

    /// Writes like [`PlanStore::write`], for a worker whose tasks take slots of a queue.
    pub fn write_with_slots(&self, request: WriteRequest, slots: Slots) -> Answer {
        self.queue_one(written(request, Some(slots), OnRefusal::Fail))
    }

    /// Writes for many callers at once: each request is a version of its own and has an answer of its own. For front
    /// ends that serve many callers from one thread: all pending requests are committed together.
    pub fn write_each(&self, requests: Vec<WriteRequest>) -> Vec<Answer> {
        self.queue(requests.into_iter().map(|request| written(request, None, OnRefusal::Fail)).collect())
    }

    /// Writes what a plan shares with other clones: commands, and rows that go with their version. The version that the
    /// caller has read must still be the newest one.
    pub fn write_shared(&self, write: SharedWrite) -> Answer {
        self.queue_one(Job::Shared(Box::new(write)))
    }

    /// Removes a plan and its history for good. Only a person may purge; the id is never used again.
    pub fn purge(&self, plan: &PlanId, by: &Actor) -> Result<(), WriteError> {
        self.purge_shared(Purge { plan: plan.clone(), by: by.clone(), known_version: None, rows: Vec::new() })
    }

    /// Removes a plan like [`Self::purge`], and leaves rows for other clones in the same transaction.
    pub fn purge_shared(&self, purge: Purge) -> Result<(), WriteError> {
        self.queue_one(Job::Purge(purge)).map(drop)
    }

    /// Executes a job, together with others that are waiting.
    fn queue_one(&self, job: Job) -> Answer {
        let broken = || StoreError::Database("the store gave no answer".into()).into();
        self.queue(vec![job]).pop().unwrap_or_else(|| Err(broken()))
    }

    fn queue(&self, jobs: Vec<Job>) -> Vec<Answer> {
        let count = jobs.len();
        let broken = || StoreError::Database("another writer of this process broke down".into()).into();
        let asked = Instant::now();
        let answers = self.group.run(jobs, |groups| {
            let counts: Vec<usize> = groups.iter().map(Vec::len).collect();
            let mut answers = self.commit(groups.into_iter().flatten().collect()).into_iter();
            counts.into_iter().map(|count| answers.by_ref().take(count).collect()).collect()
        });
        meters().store_waits.took(asked.elapsed());
        answers.unwrap_or_else(|| (0..count).map(|_| Err(broken())).collect())
    }

    /// Commits a group of jobs in one transaction and returns an answer for each. A job that panics fails alone: the
    /// transaction is rolled back, and the others are committed without it.
    fn commit(&self, jobs: Vec<Job>) -> Vec<Answer> {
        // Held until the commit is durable, so that no thread reads a version that may be rolled back.
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        let mut answers: Vec<Answer> = Vec::new();
        let mut panicked: BTreeSet<usize> = BTreeSet::new();
        let broken = || StoreError::Database("the write panicked".into());
        let begun = Instant::now();
        let mut is_again = false;
        let outcome = loop {
            let panicked_before = panicked.len();
            let outcome = self.store.write(&mut |transaction| {
                // The backend may retry the transaction; then the jobs start again too, from the stored state.
                if std::mem::replace(&mut is_again, true) {
                    answers.clear();
                    cache.plans.clear();
                }
                transaction.expect(&prefetch::of_jobs(&jobs, &cache));
                for (number, job) in jobs.iter().enumerate() {
                    if panicked.contains(&number) {
                        answers.push(Err(broken().into()));
                        continue;
                    }
                    let Ok(answer) =
                        catch_unwind(AssertUnwindSafe(|| carry_out(transaction, &mut cache, job)))
                    else {
                        panicked.insert(number);
                        return Err(broken());
                    };
                    answers.push(match answer {
                        Ok(committed) => Ok(committed),
                        // Found before anything was written for this job: the others of the group are not affected.
                        Err(BatchError::OfTheJob(error)) => Err(error),
                        // No write of this group can be relied on.
                        Err(BatchError::OfTheStore(error)) => return Err(error),
                    });
                }
                Ok(())
            });
            if panicked.len() == panicked_before {
                break outcome;
            }
        };
        let took = begun.elapsed();
        meters().commits.took(took);
        meters().group_sizes.had(jobs.len());
        match outcome {
            Ok(()) => {
                tell_of_all(&jobs, &answers, &cache, took);
                cache.make_room();
                answers
            }
            // The group may have been written or not: a caller that retries must read the stored state first.
            Err(error) => {
                meters().store_errors.with([error.as_str()], |errors| errors.add(1));
                cache.plans.clear();
                jobs.iter().map(|_| Err(error.clone().into())).collect()
            }
        }
    }

    /// Calls `look` with the current state of a plan, including writes of other processes.
    pub fn with_plan<R>(&self, id: &PlanId, look: impl FnOnce(&Plan) -> R) -> Result<R, WriteError> {
        let (mut look, mut seen) = (Some(look), None);
        self.look_at(id, &mut |plan| seen = look.take().map(|look| look(plan)))?;
        seen.ok_or_else(|| WriteError::NotFound(id.to_string()))
    }

    /// Does what [`Self::with_plan`] says, and is compiled once for all its callers.
    pub(crate) fn look_at(&self, id: &PlanId, look: &mut dyn FnMut(&Plan)) -> Result<(), WriteError> {
        // Read only the version first; it determines whether anything else is needed.
        let stored = self.store.query(|read| Ok(read.plan_state(id)?.version()))?;
        let stored = stored.ok_or_else(|| WriteError::NotFound(id.to_string()))?;
        {
            let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
            let cached = cache.plans.get(id).filter(|cached| cached.plan.version() >= stored);
            if let Some(cached) = cached {
                look(&cached.plan);
                return Ok(());
            }
        }
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        cache.make_room();
        self.store.read(&mut |read| {
            read.expect(&ReadHints { without_numbers: true, ..prefetch::of_plan(id, &cache) });
            match read.plan_state(id)?.version() {
                Some(version) => catch_up(read, &mut cache, id, version),
                None => Ok(()),
            }
        })?;
        let cached = cache.plans.get(id).ok_or_else(|| WriteError::NotFound(id.to_string()))?;
        look(&cached.plan);
        Ok(())
    }

    /// Calls `look` with a plan that is in memory at this version. Reads nothing, for a caller that has just read the version.
    pub fn with_cached<R>(&self, id: &PlanId, version: u64, look: impl FnOnce(&Plan) -> R) -> Option<R> {
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        cache.get(id).filter(|plan| plan.version() == version).map(look)
    }

    /// Returns the number of tasks of a plan that is in memory.
    pub fn cached_size(&self, id: &PlanId) -> Option<usize> {
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        cache.plans.get(id).map(|cached| cached.plan.len())
    }

    /// Returns the same without waiting; `None` also while a write is applied.
    pub fn cached_size_now(&self, id: &PlanId) -> Option<usize> {
        let cache = match self.cache.try_read() {
            Ok(cache) => cache,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        cache.plans.get(id).map(|cached| cached.plan.len())
    }

    /// Returns the versions of a plan after `known`, at most `limit` if they have to be read. For a caller that follows
    /// the plan: versions that this process has seen since the last call are returned from memory.
    pub fn versions_since(&self, id: &PlanId, known: u64, limit: usize) -> Result<Vec<VersionRecord>> {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        self.store.query(|read| {
            read.expect(&ReadHints { without_numbers: true, ..prefetch::of_plan(id, &cache) });
            let Some(version) = read.plan_state(id)?.version().filter(|&version| version > known) else {
                return Ok(Vec::new());
            };
            catch_up(read, &mut cache, id, version)?;
            match cache.take_kept(id, known, version) {
                Some(kept) => Ok(kept),
                None => read.versions(id, known, limit),
            }
        })
    }

    /// Returns the same without reading the store, for a caller that has just written `version`. Returns `None` when
    /// some versions would have to be read.
    pub fn cached_versions(&self, id: &PlanId, known: u64, version: u64) -> Option<Vec<VersionRecord>> {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        cache.take_kept(id, known, version)
    }

    /// Reads several plans in one state of the store. `look` may be called again.
    pub(crate) fn looking(
        &self,
        look: &mut dyn FnMut(&mut dyn Read, &mut Cache) -> Result<()>,
    ) -> Result<()> {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        self.store.read(&mut |read| look(read, &mut cache))
    }

    /// Returns a plan as it was at a version. Of a damaged plan, the versions before the damage can be read, and the one
    /// that a repair would restore.
    pub fn at_version(&self, id: &PlanId, version: u64) -> Result<Plan, WriteError> {
        match self.stored_version(id, version) {
            Err(damage @ WriteError::Store(StoreError::Corrupt { .. })) => {
                let intact = self.store.intact(id)?.map(|(plan, _)| plan);
                intact.filter(|plan| plan.version() == version).ok_or(damage)
            }
            plan => plan,
        }
    }

    fn stored_version(&self, id: &PlanId, version: u64) -> Result<Plan, WriteError> {
        let (mut found, mut current) = (None, None);
        self.store.read(&mut |read| {
            current = match read.plan_state(id) {
                Err(damage @ StoreError::Corrupt { .. }) if version > 0 => {
                    found = Some(load(read, id, version).map_err(|_| damage)?);
                    return Ok(());
                }
                current => current?.version(),
            };
            if current.is_some_and(|current| (1..=current).contains(&version)) {
                found = Some(load(read, id, version)?);
            }
            Ok(())
        })?;
        match (found, current) {
            (Some(plan), _) => Ok(plan),
            (None, Some(current)) => {
                Err(WriteError::NoSuchVersion { plan: id.clone(), wanted: version, current })
            }
            (None, None) => Err(WriteError::NotFound(id.to_string())),
        }
    }

    /// Returns one page of plan summaries.
    pub fn heads(&self, query: &Query) -> Result<Page<PlanSummary>> {
        match query.bad_cursor() {
            Some(cursor) => Err(StoreError::BadCursor(cursor.to_owned())),
            None => self.store.query(|read| read.heads(query)),
        }
    }

    /// Returns the versions of a plan after `after`, at most `limit`.
    pub fn history(&self, id: &PlanId, after: u64, limit: usize) -> Result<Vec<VersionRecord>> {
        self.store.query(|read| read.versions(id, after, limit))
    }

    /// Returns the number of a plan's version among all versions of all plans. The events, which may be many, are not parsed.
    pub fn sequence_of(&self, id: &PlanId, version: u64) -> Result<Option<u64>> {
        let found = self.store.query(|read| read.stored_versions(id, version.saturating_sub(1), 1))?;
        Ok(found.first().map(|version| version.sequence))
    }

    /// Returns the last version up to which a plan's history can be read, and a description of the damage to its files,
    /// if any.
    pub fn readable_versions(&self, id: &PlanId) -> Result<(u64, Option<String>)> {
        let damage = self.store.damage(id)?;
        self.store.query(|read| {
            let Some(damage) = damage.clone() else {
                return Ok((read.plan_state(id)?.version().unwrap_or(0), None));
            };
            let mut last = 0;
            while let Ok(entries) = read.versions(id, last, VERSIONS_READ_MAX)
                && let Some(entry) = entries.last()
            {
                last = entry.version;
            }
            Ok((last, Some(damage)))
        })
    }

    /// Returns versions of all plans after sequence number `after` in commit order, at most `limit`, and what of them
    /// cannot be read.
    pub fn log(&self, after: u64, filter: &LogFilter, limit: usize) -> Result<LogPage> {
        self.store.query(|read| read.log(after, filter, limit))
    }

    /// Returns the sequence number of the latest version in the log; 0 when there is none.
    pub fn latest(&self) -> Result<u64> {
        self.store.query(|read| Ok(read.store_state()?.latest))
    }

    /// Returns the plans that the next versions after `after` belong to, reading at most `limit` versions.
    pub fn written_since(&self, after: u64, limit: usize) -> Result<WrittenSince> {
        self.store.query(|read| read.written_since(after, limit))
    }

    /// Returns the same without versions that were just committed and have no number yet. Watchers are notified when they
    /// have one.
    pub fn numbered_since(&self, after: u64, limit: usize) -> Result<WrittenSince> {
        self.store.query(|read| {
            read.expect(&ReadHints { without_numbers: true, ..ReadHints::default() });
            read.written_since(after, limit)
        })
    }

    /// Returns tasks that agents and persons could claim now on `queue` in plans that are active or may start, at most
    /// `limit`: by descending priority, then by the age of the plan. Damaged plans are left out, with a warning.
    pub fn claimable(&self, queue: Option<&str>, limit: usize) -> Result<Page<ReadyTask>, WriteError> {
        let mut query = Query {
            offers_work: true,
            queue: queue.map(str::to_owned),
            sort: Sort::Urgency,
            limit: limit.clamp(1, PLANS_CACHED_MAX),
            ..Query::default()
        };
        let mut found: Vec<(Place, TaskId)> = Vec::new();
        let warnings = loop {
            let (mut page, mut is_enough) = (Page::default(), false);
            let before = found.clone();
            self.looking(&mut |read, cache| {
                found.clone_from(&before);
                page = read.heads(&query)?;
                is_enough = page.next.is_none();
                for head in &page.items {
                    // Plans come in the same order as tasks, so all tasks of this plan and of the next ones come later.
                    let first = (Reverse(head.urgency), head.created_micros(), head.id.clone());
                    if found.len() >= limit && found.last().is_none_or(|(last, _)| *last < first) {
                        is_enough = true;
                        break;
                    }
                    read.expect(&prefetch::of_plan(&head.id, cache));
                    match catch_up(read, cache, &head.id, head.version) {
                        // The page warns of it.
                        Err(StoreError::Corrupt { .. }) => continue,
                        caught_up => caught_up?,
                    }
                    let Some(plan) = cache.get(&head.id) else { continue };
                    found.extend(plan.as_started().claimable().take(limit).map(|task| {
                        let place = (Reverse(task.spec.priority), first.1, head.id.clone());
                        (place, task.spec.id.clone())
                    }));
                    // The sort is stable: tasks of one plan keep the order of the plan.
                    found.sort_by(|(a, _), (b, _)| a.cmp(b));
                    found.truncate(limit);
                }
                Ok(())
            })?;
            if is_enough {
                break page.warnings;
            }
            query.after = page.next;
        };
        let ready =
            |((Reverse(priority), _, plan), task): (Place, TaskId)| ReadyTask { plan, task, priority };
        let items: Vec<ReadyTask> = found.into_iter().map(ready).collect();
        Ok(Page { total: items.len() as u64, items, next: None, warnings })
    }

    /// Returns the plan that an id or an unambiguous prefix of one names.
    pub fn resolve(&self, prefix: &str) -> Result<PlanId, WriteError> {
        // A plan that this process works on need not be looked up.
        if let Ok(id) = PlanId::new(prefix)
            && self.cache.read().unwrap_or_else(PoisonError::into_inner).plans.contains_key(&id)
        {
            return Ok(id);
        }
        let mut ids = self.store.query(|read| read.ids(prefix, CANDIDATES_MAX + 1))?;
        if let Some(exact) = ids.iter().position(|id| id.as_str() == prefix) {
            return Ok(ids.swap_remove(exact));
        }
        match ids.len() {
            0 => Err(WriteError::NotFound(prefix.to_owned())),
            1 if !prefix.is_empty() => Ok(ids.remove(0)),
            found => {
                ids.truncate(CANDIDATES_MAX);
                let (prefix, more) = (prefix.to_owned(), found > CANDIDATES_MAX);
                Err(WriteError::Ambiguous { prefix, candidates: ids, more })
            }
        }
    }
}
