//! The front of a store: turns commands into versions. Decides inside the store's transaction, appends the events as one
//! version (`inside.rs`), and keeps the plans that this process works on in memory at a known version (`cache.rs`).

mod cache;
pub(crate) mod group_commit;
mod prefetch;
mod recent_versions;
mod slot_quota;
mod transaction;

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use waypost_core::{Actor, Command, Difference, Draft, Plan, PlanId, Refusal, TaskId, Timestamp};

use self::cache::PLANS_CACHED_MAX;
pub(crate) use self::cache::{Cache, News, catch_up, load, replay};
use self::transaction::{and_tell, create, purge, write, write_built};
pub(crate) use self::transaction::{random_name, write_possible};
use crate::cross_plan::target_status::Whereabouts;
use crate::log::change_watch::Watch;
use crate::log::commit_hook;
use crate::log::replay_cache::Follower;
use crate::metrics::meters;
use crate::plans::group_commit::Group;
use crate::rows::{Entry, Head, LogFilter, Page, Query, ReadyTask, Sort, Wait, WrittenSince};
use crate::store::{Read, Store, StoreError};
use crate::workers::Slots;

/// Ids that an ambiguous beginning lists.
const CANDIDATES_MAX: usize = 10;

/// A plan that is to be made.
#[derive(Clone, Debug)]
pub struct NewPlan {
    /// The id that it should have; without one it gets a new one.
    pub id: Option<PlanId>,
    /// Who makes it.
    pub by: Actor,
    /// What it is to be.
    pub draft: Draft,
    /// Whether machines may run it only after a person has approved; see [`Command::Create`].
    pub approval_required: Option<bool>,
}

/// Commands for one plan that become one version, all or none.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// The plan.
    pub plan: PlanId,
    /// Who asks.
    pub by: Actor,
    /// What for; each is decided on the plan as the ones before it leave it.
    pub commands: Vec<Command>,
    /// The version that the caller knew, when it matters: then nothing is written if the plan has moved on.
    pub known_version: Option<u64>,
    /// For how long a started task is believed to be worked on.
    pub lease_seconds: Option<u32>,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The plan.
    pub plan: PlanId,
    /// Its version now.
    pub version: u64,
    /// The number of that version in the log; 0 when nothing was written.
    pub sequence: u64,
    /// Whether anything was written: what is as asked already makes no version.
    pub changed: bool,
    /// Of [`Plans::write_what_can_be`]: the commands that were refused, by their place in the request.
    pub left_out: Vec<(usize, Refusal)>,
    /// What tasks now wait for elsewhere that is not there so far: the first [`crate::WARNINGS_MAX`].
    pub missing: Vec<(Wait, Whereabouts)>,
}

impl Committed {
    /// Nothing was written: the plan is at this version.
    pub fn unchanged(plan: PlanId, version: u64) -> Self {
        Self { plan, version, sequence: 0, changed: false, left_out: Vec::new(), missing: Vec::new() }
    }
}

/// The plan has moved on since the caller looked.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The plan.
    pub plan: PlanId,
    /// The version that the caller knew.
    pub known: u64,
    /// The version that stands.
    pub current: u64,
    /// What differs between the two, up to a bound.
    pub differences: Vec<Difference>,
    /// How many differences there are.
    pub differences_total: usize,
    /// Who wrote since.
    pub writers: Vec<Actor>,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The plan does not do that.
    #[error("{0}")]
    Refused(Refusal),
    /// Somebody else wrote meanwhile.
    #[error("plan {} is at version {}, not {}", .0.plan, .0.current, .0.known)]
    Conflict(Box<Conflict>),
    /// No plan has that id.
    #[error("no plan is called {0}")]
    NotFound(String),
    /// Several plans begin like that.
    #[error("{prefix} could be any of {}", candidates.iter().map(PlanId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The beginning that was given.
        prefix: String,
        /// Ids that begin so.
        candidates: Vec<PlanId>,
    },
    /// The plan has no such version.
    #[error("plan {plan} has versions 1 to {current}, and no version {wanted}")]
    NoSuchVersion {
        /// The plan.
        plan: PlanId,
        /// The version that was asked for.
        wanted: u64,
        /// The version that stands.
        current: u64,
    },
    /// The id was used before, and ids are never used twice.
    #[error("the id {0} was used before")]
    IdUsed(PlanId),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl From<Refusal> for WriteError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl WriteError {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.hint(),
            Self::Conflict(_) => {
                "look at what changed since, then write again with the current version".into()
            }
            Self::NotFound(_) => "`waypost list` shows the plans".into(),
            Self::Ambiguous { .. } => "write more of the id".into(),
            Self::NoSuchVersion { .. } => "`waypost history` shows the versions".into(),
            Self::IdUsed(_) => "choose another id, or leave it out to get a new one".into(),
            Self::Store(error) => error.hint().into(),
        }
    }
}

/// Makes the commands of a write from the plan as it is inside the transaction, so that nothing can come between what was
/// read and what is written. It may be called again when the backend has to start over. Nothing: the write is given up, for a reason that
/// the caller knows.
pub type BuildCommands = Arc<dyn Fn(&Plan) -> Option<Vec<Command>> + Send + Sync>;

enum Job {
    Create(Option<PlanId>, Actor, Command),
    Write(Box<WriteRequest>, Option<Slots>),
    WriteBuilt(Box<WriteRequest>, BuildCommands),
    WritePossible(Box<WriteRequest>, Option<Slots>),
    Purge(PlanId, Actor),
}

/// What was written, or why nothing was.
pub type Answer = Result<Committed, WriteError>;

/// Why a job of a group was not done.
pub(crate) enum Trouble {
    /// It concerns this job alone.
    OfTheJob(WriteError),
    /// It happened while something was written: it concerns all.
    OfTheStore(StoreError),
}

impl<E: Into<WriteError>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::OfTheJob(error.into())
    }
}

pub(crate) type Done = Result<Committed, Trouble>;

/// Lets whoever wants to hear of it know what a commit has made durable.
fn tell_of_all(jobs: &[Job], answers: &[Answer], cache: &Cache, took: Duration) {
    for (job, answer) in jobs.iter().zip(answers) {
        let Ok(done) = answer else { continue };
        match job {
            Job::Create(_, by, command) => {
                commit_hook::tell_of(&[command], by, done, cache.get(&done.plan), took)
            }
            Job::Write(request, _) | Job::WritePossible(request, _) | Job::WriteBuilt(request, _) => {
                commit_hook::tell(request, done, cache.get(&done.plan), took);
            }
            Job::Purge(..) => {}
        }
    }
}

/// All plans of one store.
pub struct Plans {
    store: Arc<dyn Store>,
    cache: RwLock<Cache>,
    /// Plans as readers of events have come to know them.
    follower: Mutex<Follower>,
    group: Group<Vec<Job>, Vec<Answer>>,
    for_one_command: bool,
}

impl Drop for Plans {
    fn drop(&mut self) {
        if self.for_one_command {
            // The process ends now: giving back the memory of a large plan piece by piece would take longer than the
            // command itself.
            let cache = self.cache.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(cache));
        }
    }
}

fn of_plan(task: &waypost_core::Task) -> (TaskId, i32) {
    (task.spec.id.clone(), task.spec.priority)
}

impl Plans {
    /// The plans of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            cache: RwLock::default(),
            follower: Mutex::default(),
            group: Group::new(),
            for_one_command: false,
        }
    }

    /// The same for a process that ends when it has done one thing.
    pub fn for_one_command(store: Arc<dyn Store>) -> Self {
        let mut plans = Self::new(store);
        plans.for_one_command = true;
        plans
    }

    /// The store itself.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn follower(&self) -> &Mutex<Follower> {
        &self.follower
    }

    /// Begins to watch for writes by anybody.
    pub fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.store.watch()
    }

    /// An id for a plan that is to be made later.
    pub fn id_for_later(&self) -> Result<PlanId, StoreError> {
        PlanId::new(random_name()?).map_err(|error| StoreError::Database(error.to_string()))
    }

    /// Makes a plan. Durable when this returns.
    pub fn create(&self, new: NewPlan) -> Answer {
        let NewPlan { id, by, draft, approval_required } = new;
        self.queue_one(Job::Create(id, by, Command::Create { draft: Box::new(draft), approval_required }))
    }

    /// Writes one version. Durable when this returns.
    pub fn write(&self, request: WriteRequest) -> Answer {
        self.queue_one(Job::Write(Box::new(request), None))
    }

    /// Writes one version of the commands that `build` makes of the plan as it is inside the transaction; those of the
    /// request are not looked at.
    pub fn write_built(&self, request: WriteRequest, build: BuildCommands) -> Answer {
        self.queue_one(Job::WriteBuilt(Box::new(request), build))
    }

    /// Writes one version of those commands that are not refused; the answer says which were. For workers that share a
    /// plan: another one may have been faster with one task, and the rest is worth writing.
    pub fn write_what_can_be(&self, request: WriteRequest) -> Answer {
        self.queue_one(Job::WritePossible(Box::new(request), None))
    }

    /// The same as [`Plans::write`] for a worker whose tasks take slots of a queue.
    pub fn write_within(&self, request: WriteRequest, slots: Slots) -> Answer {
        self.queue_one(Job::Write(Box::new(request), Some(slots)))
    }

    /// The same as [`Plans::write_what_can_be`] for a worker whose tasks take slots of a queue.
    pub fn write_what_can_be_within(&self, request: WriteRequest, slots: Slots) -> Answer {
        self.queue_one(Job::WritePossible(Box::new(request), Some(slots)))
    }

    /// Writes for many callers at once, each request a version of its own with an answer of its own. For doors that serve
    /// many callers from one thread: what has come in meanwhile is committed in one go.
    pub fn write_each(&self, requests: Vec<WriteRequest>) -> Vec<Answer> {
        self.queue(requests.into_iter().map(|request| Job::Write(Box::new(request), None)).collect())
    }

    /// Forgets a plan and its history for good. Only a person can; its id stays used.
    pub fn purge(&self, plan: &PlanId, by: &Actor) -> Result<(), WriteError> {
        self.queue_one(Job::Purge(plan.clone(), by.clone())).map(drop)
    }

    /// Has a job done, together with others that wait.
    fn queue_one(&self, job: Job) -> Answer {
        let broken = || StoreError::Database("the store gave no answer".into()).into();
        self.queue(vec![job]).pop().unwrap_or_else(|| Err(broken()))
    }

    fn queue(&self, jobs: Vec<Job>) -> Vec<Answer> {
        let count = jobs.len();
        let broken = || StoreError::Database("another writer of this process broke down".into()).into();
        let answers = self.group.run(jobs, |groups| {
            let counts: Vec<usize> = groups.iter().map(Vec::len).collect();
            let mut answers = self.commit(groups.into_iter().flatten().collect()).into_iter();
            counts.into_iter().map(|count| answers.by_ref().take(count).collect()).collect()
        });
        answers.unwrap_or_else(|| (0..count).map(|_| Err(broken())).collect())
    }

    /// Commits a group of jobs in one transaction and answers each.
    fn commit(&self, jobs: Vec<Job>) -> Vec<Answer> {
        // Held until the commit is durable, so that nobody reads what may yet be undone.
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        let mut answers: Vec<Answer> = Vec::new();
        let begun = Instant::now();
        let mut is_again = false;
        let outcome = self.store.write(&mut |transaction| {
            // The backend may start over; then so do we, from what is stored.
            if std::mem::replace(&mut is_again, true) {
                answers.clear();
                cache.plans.clear();
            }
            transaction.expect(&prefetch::of_jobs(&jobs, &cache));
            for job in &jobs {
                let answer = match job {
                    Job::Create(id, by, command) => create(transaction, &mut cache, id.as_ref(), by, command)
                        .and_then(|done| and_tell(transaction, &mut cache, by, done)),
                    Job::Write(request, slots) => write(transaction, &mut cache, request, slots.as_ref())
                        .and_then(|done| and_tell(transaction, &mut cache, &request.by, done)),
                    Job::WriteBuilt(request, build) => write_built(transaction, &mut cache, request, build)
                        .and_then(|done| and_tell(transaction, &mut cache, &request.by, done)),
                    Job::WritePossible(request, slots) => {
                        write_possible(transaction, &mut cache, request, slots.as_ref())
                            .and_then(|done| and_tell(transaction, &mut cache, &request.by, done))
                    }
                    Job::Purge(plan, by) => purge(transaction, &mut cache, plan, by),
                };
                answers.push(match answer {
                    Ok(committed) => Ok(committed),
                    // Found before anything was written for this job: the others of the group are not concerned.
                    Err(Trouble::OfTheJob(error)) => Err(error),
                    // Nothing of this group can be trusted to be written.
                    Err(Trouble::OfTheStore(error)) => return Err(error),
                });
            }
            Ok(())
        });
        let took = begun.elapsed();
        meters().commits.took(took);
        meters().group_sizes.had(jobs.len());
        match outcome {
            Ok(()) => {
                tell_of_all(&jobs, &answers, &cache, took);
                answers
            }
            // It may have been written, or not: who tries again must not do so unseen.
            Err(error) => {
                meters().store_errors.with([error.word()], |errors| errors.add(1));
                cache.plans.clear();
                jobs.iter().map(|_| Err(error.told_again().into())).collect()
            }
        }
    }

    /// Looks at a plan as it is now, other processes' writes included.
    pub fn look<R>(&self, id: &PlanId, look: impl FnOnce(&Plan) -> R) -> Result<R, WriteError> {
        let mut stored = None;
        self.store.read(&mut |read| {
            // Only the version: whether anything else is wanted is known after that.
            stored = read.version(id)?;
            Ok(())
        })?;
        let stored = stored.ok_or_else(|| WriteError::NotFound(id.to_string()))?;
        {
            let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
            let cached = cache.plans.get(id).filter(|cached| cached.plan.version() >= stored);
            if let Some(cached) = cached {
                return Ok(look(&cached.plan));
            }
        }
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        self.store.read(&mut |read| {
            read.expect(&prefetch::of_plan(id, &cache));
            match read.version(id)? {
                Some(version) => catch_up(read, &mut cache, id, version),
                None => Ok(()),
            }
        })?;
        match cache.plans.get(id) {
            Some(cached) => Ok(look(&cached.plan)),
            None => Err(WriteError::NotFound(id.to_string())),
        }
    }

    /// Looks at several plans in one state of the store. May be run again.
    pub(crate) fn looking(
        &self,
        look: &mut dyn FnMut(&mut dyn Read, &mut Cache) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        self.store.read(&mut |read| look(read, &mut cache))
    }

    /// A plan as it was at a version.
    pub fn at_version(&self, id: &PlanId, version: u64) -> Result<Plan, WriteError> {
        let (mut found, mut current) = (None, None);
        self.store.read(&mut |read| {
            current = read.version(id)?;
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

    /// Heads of plans, one page of them.
    pub fn heads(&self, query: &Query) -> Result<Page<Head>, StoreError> {
        let mut page = Page::default();
        self.store.read(&mut |read| {
            page = read.heads(query)?;
            Ok(())
        })?;
        Ok(page)
    }

    /// The versions of a plan after `after`, at most `limit`.
    pub fn history(&self, id: &PlanId, after: u64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        self.store.read(&mut |read| {
            entries = read.versions(id, after, limit)?;
            Ok(())
        })?;
        Ok(entries)
    }

    /// Versions of all plans after `after` in the order of commits, at most `limit`.
    pub fn log(&self, after: u64, filter: &LogFilter, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        self.store.read(&mut |read| {
            entries = read.log(after, filter, limit)?;
            Ok(())
        })?;
        Ok(entries)
    }

    /// The number of the latest version in the log; 0 when there is none.
    pub fn latest(&self) -> Result<u64, StoreError> {
        let mut latest = 0;
        self.store.read(&mut |read| {
            latest = read.latest()?;
            Ok(())
        })?;
        Ok(latest)
    }

    /// The plans that the versions after `after`, at most `limit` of them, belong to.
    pub fn written_since(&self, after: u64, limit: usize) -> Result<WrittenSince, StoreError> {
        let mut written = WrittenSince::default();
        self.store.read(&mut |read| {
            written = read.written_since(after, limit)?;
            Ok(())
        })?;
        Ok(written)
    }

    /// Tasks that could start now on `queue` in plans that run or may, at most `limit`: the most urgent first, then those
    /// of the oldest plan.
    pub fn ready(&self, queue: Option<&str>, limit: usize) -> Result<Vec<ReadyTask>, WriteError> {
        self.most_urgent(queue, limit, |plan, limit| plan.ready().take(limit).map(of_plan).collect())
    }

    /// The same without those that only wait for their check: what agents and persons may take.
    pub fn on_offer(&self, queue: Option<&str>, limit: usize) -> Result<Vec<ReadyTask>, WriteError> {
        self.most_urgent(queue, limit, |plan, limit| plan.on_offer().take(limit).map(of_plan).collect())
    }

    fn most_urgent(
        &self,
        queue: Option<&str>,
        limit: usize,
        first: impl Fn(&Plan, usize) -> Vec<(TaskId, i32)>,
    ) -> Result<Vec<ReadyTask>, WriteError> {
        let mut query = Query {
            offers_work: true,
            queue: queue.map(str::to_owned),
            sort: Sort::Urgency,
            limit: limit.clamp(1, PLANS_CACHED_MAX),
            ..Query::default()
        };
        let mut found: Vec<(Option<Timestamp>, ReadyTask)> = Vec::new();
        loop {
            let page = self.heads(&query)?;
            let mut enough = page.next.is_none();
            for head in page.items {
                // What comes now is less urgent than what is there already.
                if found.get(limit.saturating_sub(1)).is_some_and(|(_, last)| last.priority > head.urgency) {
                    enough = true;
                    break;
                }
                let tasks = self.look(&head.id, |plan| first(plan, limit))?;
                found.extend(tasks.into_iter().map(|(task, priority)| {
                    (head.created_at, ReadyTask { plan: head.id.clone(), task, priority })
                }));
                // Stable: tasks of one plan stay in the order in which the plan has them.
                found.sort_by(|(a, x), (b, y)| {
                    y.priority.cmp(&x.priority).then_with(|| a.cmp(b)).then_with(|| x.plan.cmp(&y.plan))
                });
            }
            if enough {
                break;
            }
            query.after = page.next;
        }
        found.truncate(limit);
        Ok(found.into_iter().map(|(_, task)| task).collect())
    }

    /// The plan that an id or an unambiguous beginning of one names.
    pub fn resolve(&self, prefix: &str) -> Result<PlanId, WriteError> {
        let mut ids = Vec::new();
        self.store.read(&mut |read| {
            ids = read.ids(prefix, CANDIDATES_MAX)?;
            Ok(())
        })?;
        if let Some(exact) = ids.iter().position(|id| id.as_str() == prefix) {
            return Ok(ids.swap_remove(exact));
        }
        match ids.len() {
            0 => Err(WriteError::NotFound(prefix.to_owned())),
            1 if !prefix.is_empty() => Ok(ids.remove(0)),
            _ => Err(WriteError::Ambiguous { prefix: prefix.to_owned(), candidates: ids }),
        }
    }
}
