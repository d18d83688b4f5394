//! The front of a store: turns commands into versions. Decides inside the store's transaction, appends the events as one
//! version, and keeps the plans that this process works on in memory at a known version.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use waypost_core::{
    Actor, ActorKind, Command, Difference, Draft, Elsewhere, Event, LockMode, Plan, PlanId, Refusal, TaskId,
    Timestamp, differences,
};

use crate::across::no_ring;
use crate::deliver::deliver;
use crate::follow::Follower;
use crate::group::Group;
use crate::record::{
    Entry, Head, HeldLock, IndexChanges, LogFilter, Page, Query, ReadyTask, Sort, WrittenSince,
};
use crate::store::{Append, Read, Store, StoreError, Transaction};
use crate::watch::Watch;

/// Plans that a process keeps in memory at the most.
const PLANS_CACHED_MAX: usize = 64;
/// Versions that one read takes from the store at the most.
const VERSIONS_READ_MAX: usize = 1_000;
/// Bytes of versions after which a snapshot is worth its while even for a small plan.
const SNAPSHOT_BYTES_MIN: u64 = 64 * 1024;
/// Versions that a process may have had to replay to load a plan before it makes a snapshot as soon as it writes.
const REPLAYED_MAX: u64 = 500;
/// Tasks that a plan may have for its start to be replayed rather than kept in a snapshot.
const TASKS_BEGUN_MAX: usize = 1_000;
/// Differences that a conflict lists.
const CONFLICT_DIFFERENCES_MAX: usize = 50;
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

enum Job {
    Create(Option<PlanId>, Actor, Command),
    Write(Box<WriteRequest>),
    WritePossible(Box<WriteRequest>),
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

/// Plans in memory, each at the version that this process has seen.
#[derive(Default)]
pub(crate) struct Cache {
    plans: HashMap<PlanId, Cached>,
    uses: u64,
}

struct Cached {
    plan: Plan,
    /// When it was last used, as a count of uses.
    used: u64,
    /// How many versions had to be replayed to load it. Whoever had to replay many spares the next one that.
    replayed: u64,
    /// What its latest version means to other plans.
    news: Option<News>,
}

/// What a version means to tasks that wait for tasks of other plans.
#[derive(Debug)]
pub(crate) struct News {
    /// Tasks that ended.
    pub(crate) finished: Vec<TaskId>,
    /// Tasks that now wait for something elsewhere.
    pub(crate) waits: Vec<(TaskId, Vec<Elsewhere>)>,
}

impl Cache {
    pub(crate) fn get(&self, plan: &PlanId) -> Option<&Plan> {
        self.plans.get(plan).map(|cached| &cached.plan)
    }

    pub(crate) fn take_news(&mut self, plan: &PlanId) -> Option<News> {
        self.plans.get_mut(plan)?.news.take()
    }

    fn put(&mut self, plan: Plan, replayed: u64) {
        self.uses += 1;
        self.plans.insert(plan.id().clone(), Cached { plan, used: self.uses, replayed, news: None });
        if self.plans.len() > PLANS_CACHED_MAX {
            let oldest = self.plans.iter().min_by_key(|(_, cached)| cached.used).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                self.plans.remove(&oldest);
            }
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

    /// Makes a plan. Durable when this returns.
    pub fn create(&self, new: NewPlan) -> Answer {
        let NewPlan { id, by, draft, approval_required } = new;
        self.queue_one(Job::Create(id, by, Command::Create { draft: Box::new(draft), approval_required }))
    }

    /// Writes one version. Durable when this returns.
    pub fn write(&self, request: WriteRequest) -> Answer {
        self.queue_one(Job::Write(Box::new(request)))
    }

    /// Writes one version of those commands that are not refused; the answer says which were. For workers that share a
    /// plan: another one may have been faster with one task, and the rest is worth writing.
    pub fn write_what_can_be(&self, request: WriteRequest) -> Answer {
        self.queue_one(Job::WritePossible(Box::new(request)))
    }

    /// Writes for many callers at once, each request a version of its own with an answer of its own. For doors that serve
    /// many callers from one thread: what has come in meanwhile is committed in one go.
    pub fn write_each(&self, requests: Vec<WriteRequest>) -> Vec<Answer> {
        self.queue(requests.into_iter().map(|request| Job::Write(Box::new(request))).collect())
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
        let outcome = self.store.write(&mut |transaction| {
            // The backend may start over; then so do we, from what is stored.
            if !answers.is_empty() {
                answers.clear();
                cache.plans.clear();
            }
            for job in &jobs {
                let answer = match job {
                    Job::Create(id, by, command) => create(transaction, &mut cache, id.as_ref(), by, command)
                        .and_then(|done| and_tell(transaction, &mut cache, by, done)),
                    Job::Write(request) => write(transaction, &mut cache, request)
                        .and_then(|done| and_tell(transaction, &mut cache, &request.by, done)),
                    Job::WritePossible(request) => write_possible(transaction, &mut cache, request)
                        .and_then(|done| and_tell(transaction, &mut cache, &request.by, done)),
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
        match outcome {
            Ok(()) => answers,
            // It may have been written, or not: who tries again must not do so unseen.
            Err(error) => {
                cache.plans.clear();
                jobs.iter().map(|_| Err(error.told_again().into())).collect()
            }
        }
    }

    /// Looks at a plan as it is now, other processes' writes included.
    pub fn look<R>(&self, id: &PlanId, look: impl FnOnce(&Plan) -> R) -> Result<R, WriteError> {
        let mut stored = None;
        self.store.read(&mut |read| {
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
        self.store.read(&mut |read| match read.version(id)? {
            Some(version) => catch_up(read, &mut cache, id, version),
            None => Ok(()),
        })?;
        match cache.plans.get(id) {
            Some(cached) => Ok(look(&cached.plan)),
            None => Err(WriteError::NotFound(id.to_string())),
        }
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
        let mut page = Page { items: Vec::new(), total: 0, next: None };
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

/// Brings a plan in the cache to the version that is stored.
pub(crate) fn catch_up(
    read: &mut dyn Read,
    cache: &mut Cache,
    id: &PlanId,
    version: u64,
) -> Result<(), StoreError> {
    cache.uses += 1;
    let uses = cache.uses;
    match cache.plans.get_mut(id) {
        Some(cached) if cached.plan.version() <= version => {
            cached.used = uses;
            let caught_up = replay(read, &mut cached.plan, version);
            cached.plan.take_touched();
            if caught_up.is_err() {
                cache.plans.remove(id);
            }
            caught_up
        }
        Some(_) | None => {
            let (plan, replayed) = load_counting(read, id, version)?;
            cache.put(plan, replayed);
            Ok(())
        }
    }
}

/// Reads a plan as it was at `version`: from the latest snapshot that can be read, then version by version.
pub(crate) fn load(read: &mut dyn Read, id: &PlanId, version: u64) -> Result<Plan, StoreError> {
    load_counting(read, id, version).map(|(plan, _)| plan)
}

/// Also says how many versions were replayed.
fn load_counting(read: &mut dyn Read, id: &PlanId, version: u64) -> Result<(Plan, u64), StoreError> {
    let mut at_most = version;
    let mut plan = loop {
        match read.snapshot(id, at_most)? {
            None => break Plan::blank(id.clone()),
            Some((at, bytes)) => match Plan::from_snapshot(bytes) {
                Ok(plan) if plan.version() == at && plan.id() == id => break plan,
                // A snapshot is only a shortcut: an unreadable one is left aside and the events tell the same.
                Ok(_) | Err(_) if at > 1 => at_most = at - 1,
                Ok(_) | Err(_) => break Plan::blank(id.clone()),
            },
        }
    };
    let replayed = version.saturating_sub(plan.version());
    replay(read, &mut plan, version)?;
    plan.take_touched();
    Ok((plan, replayed))
}

/// Brings a plan to a later version.
pub(crate) fn replay(read: &mut dyn Read, plan: &mut Plan, version: u64) -> Result<(), StoreError> {
    while plan.version() < version {
        let missing = usize::try_from(version - plan.version()).unwrap_or(usize::MAX);
        let entries = read.versions(plan.id(), plan.version(), missing.min(VERSIONS_READ_MAX))?;
        for entry in &entries {
            if entry.version != plan.version() + 1 {
                break;
            }
            plan.advance(&entry.events, entry.at);
        }
        if entries.first().is_none_or(|entry| entry.version > plan.version()) {
            return Err(StoreError::Corrupt {
                what: format!("the history of plan {}", plan.id()),
                detail: format!("version {} is missing", plan.version() + 1),
            });
        }
    }
    Ok(())
}

fn create(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    id: Option<&PlanId>,
    by: &Actor,
    command: &Command,
) -> Done {
    let id = match id {
        Some(id) if transaction.head(id)?.is_some() => return Err(Refusal::AlreadyExists {}.into()),
        Some(id) if transaction.was_used(id)? => return Err(WriteError::IdUsed(id.clone()).into()),
        Some(id) => id.clone(),
        None => fresh_id(transaction)?,
    };
    let at = transaction.now();
    let mut plan = Plan::blank(id);
    let events = plan.decide(by, at, command)?;
    plan.advance(&events, at);
    no_ring(transaction, &plan, &events)?;
    let mut cached = Cached { plan, used: 0, replayed: 0, news: None };
    let committed = append(transaction, &mut cached, by, command.name(), &events, None, at)?;
    let (id, news) = (cached.plan.id().clone(), cached.news.take());
    cache.put(cached.plan, cached.replayed);
    if let Some(made) = cache.plans.get_mut(&id) {
        made.news = news;
    }
    Ok(committed)
}

/// Lets other plans hear of what was written.
fn and_tell(transaction: &mut dyn Transaction, cache: &mut Cache, by: &Actor, mut done: Committed) -> Done {
    if let Some(news) = cache.take_news(&done.plan) {
        deliver(transaction, cache, by, &done.plan, news)?;
        // It may have heard something itself.
        if let Some(plan) = cache.get(&done.plan) {
            done.version = plan.version();
        }
    }
    Ok(done)
}

/// The same as [`write`] for each command by itself: what is refused is left out.
pub(crate) fn write_possible(
    transaction: &mut dyn Transaction,
    cache: &mut Cache,
    request: &WriteRequest,
) -> Done {
    let not_found = || WriteError::NotFound(request.plan.to_string());
    let version = transaction.version(&request.plan)?.ok_or_else(not_found)?;
    catch_up(transaction, cache, &request.plan, version)?;
    let cached = cache.plans.get_mut(&request.plan).ok_or_else(not_found)?;
    let plan = &mut cached.plan;
    let at = transaction.now().max(plan.state().updated_at.unwrap_or(Timestamp::from_micros(0)));
    let (mut all, mut names, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for (place, command) in request.commands.iter().enumerate() {
        let decided = plan.decide(&request.by, at, command).map_err(WriteError::Refused);
        let possible = decided.and_then(|events| {
            locks_are_free(transaction, plan, &events)?;
            Ok(events)
        });
        match possible {
            Ok(events) => {
                for event in &events {
                    plan.evolve(event, at);
                }
                all.extend(events);
                names.push(command.name());
            }
            Err(WriteError::Refused(refusal)) => left_out.push((place, refusal)),
            Err(error) => {
                // What the commands before it did to this copy never happened.
                cache.plans.remove(&request.plan);
                return Err(error.into());
            }
        }
    }
    if all.is_empty() {
        plan.take_touched();
        let plan = request.plan.clone();
        return Ok(Committed { plan, version, sequence: 0, changed: false, left_out });
    }
    if let Err(error) = no_ring(transaction, plan, &all) {
        cache.plans.remove(&request.plan);
        return Err(error.into());
    }
    plan.seal(at);
    let name = joined(names);
    let committed = append(transaction, cached, &request.by, &name, &all, request.lease_seconds, at)?;
    Ok(Committed { left_out, ..committed })
}

/// A long list of small edits is named once each.
fn joined(all: Vec<&str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("+")
}

fn write(transaction: &mut dyn Transaction, cache: &mut Cache, request: &WriteRequest) -> Done {
    let not_found = || WriteError::NotFound(request.plan.to_string());
    let version = transaction.version(&request.plan)?.ok_or_else(not_found)?;
    catch_up(transaction, cache, &request.plan, version)?;
    if let Some(known) = request.known_version.filter(|&known| known != version) {
        return Err(conflict(transaction, cache, &request.plan, version, known)?.into());
    }
    let cached = cache.plans.get_mut(&request.plan).ok_or_else(not_found)?;
    let plan = &mut cached.plan;
    // A clock that was set back does not turn a plan's history around.
    let at = transaction.now().max(plan.state().updated_at.unwrap_or(Timestamp::from_micros(0)));
    let decided = decide(transaction, plan, request, at);
    let events = match decided {
        Ok(events) => events,
        Err((evolved, error)) => {
            if evolved {
                // A command after the first was refused: what the first did to this copy never happened.
                cache.plans.remove(&request.plan);
            }
            return Err(error.into());
        }
    };
    if events.is_empty() {
        plan.take_touched();
        let plan = request.plan.clone();
        return Ok(Committed { plan, version, sequence: 0, changed: false, left_out: Vec::new() });
    }
    plan.seal(at);
    let name = joined(request.commands.iter().map(Command::name).collect());
    append(transaction, cached, &request.by, &name, &events, request.lease_seconds, at)
}

/// Decides all commands in turn, moving the plan along. On refusal: whether the plan has been moved already.
fn decide(
    transaction: &mut dyn Transaction,
    plan: &mut Plan,
    request: &WriteRequest,
    at: Timestamp,
) -> Result<Vec<Event>, (bool, WriteError)> {
    let mut all = Vec::new();
    for command in &request.commands {
        let events =
            plan.decide(&request.by, at, command).map_err(|refusal| (!all.is_empty(), refusal.into()))?;
        locks_are_free(transaction, plan, &events).map_err(|error| (!all.is_empty(), error))?;
        for event in &events {
            plan.evolve(event, at);
        }
        all.extend(events);
    }
    no_ring(transaction, plan, &all).map_err(|error| (true, error))?;
    Ok(all)
}

/// Locks are global, so that no single plan can decide about them.
fn locks_are_free(
    transaction: &mut dyn Transaction,
    plan: &Plan,
    events: &[Event],
) -> Result<(), WriteError> {
    for event in events {
        let Event::TaskStarted { task, .. } = event else { continue };
        let Some(found) = plan.task(task.as_str()).filter(|found| !found.spec.locks.is_empty()) else {
            continue;
        };
        let keys: Vec<&str> = found.spec.locks.iter().map(|lock| lock.key.as_str()).collect();
        // What this plan's own tasks hold is known better from the plan: earlier commands of the same request have moved it
        // on, and the tables have not heard of that yet.
        let elsewhere = transaction.locks(&keys)?.into_iter().filter(|held| held.plan != *plan.id());
        let here = plan.running().flat_map(|task| {
            let held = task.spec.locks.iter().filter(|lock| keys.contains(&lock.key.as_str()));
            held.map(|lock| HeldLock {
                lock: lock.clone(),
                plan: plan.id().clone(),
                task: task.spec.id.clone(),
            })
        });
        for held in elsewhere.chain(here) {
            let wanted = found.spec.locks.iter().find(|lock| lock.key == held.lock.key);
            let both_shared = wanted.is_some_and(|lock| lock.mode == LockMode::Shared)
                && held.lock.mode == LockMode::Shared;
            if !both_shared {
                return Err(WriteError::Refused(Refusal::LockHeld {
                    task: task.to_string(),
                    key: held.lock.key,
                    holder: format!("{}/{}", held.plan, held.task),
                }));
            }
        }
    }
    Ok(())
}

fn append(
    transaction: &mut dyn Transaction,
    cached: &mut Cached,
    by: &Actor,
    command: &str,
    events: &[Event],
    lease_seconds: Option<u32>,
    at: Timestamp,
) -> Done {
    let plan = &mut cached.plan;
    let mut touched = plan.take_touched();
    let finished = std::mem::take(&mut touched.finished);
    let index = IndexChanges::of(plan, touched, lease_seconds, at);
    let waits = index.waits.iter().filter(|(_, waits)| !waits.is_empty()).cloned().collect();
    cached.news = Some(News { finished, waits });
    let head = Head::of(plan);
    let append = Append { head: &head, at, actor: by, command, events, index: &index, plan };
    let sequence = transaction.append(&append).map_err(Trouble::OfTheStore)?;
    let replay = transaction.bytes_since_snapshot(plan.id()).map_err(Trouble::OfTheStore)?;
    // A snapshot costs as much as the plan is large, so it waits until replaying would cost as much. A process that only
    // writes what it has in memory can wait longer than those that load the plan for every command.
    let often_loaded = cached.replayed > REPLAYED_MAX || plan.state().phase.is_finished();
    let worthwhile = plan.len() as u64 * if often_loaded { 8 } else { 48 };
    // The start of a plan is a small event that looks at every task, so that nobody should have to replay it.
    let begins =
        events.iter().any(|event| matches!(event, Event::PlanActivated {} | Event::PlanApproved { .. }));
    if replay > SNAPSHOT_BYTES_MIN.max(worthwhile) || begins && plan.len() > TASKS_BEGUN_MAX {
        let bytes = plan.snapshot();
        transaction.put_snapshot(plan.id(), plan.version(), &bytes).map_err(Trouble::OfTheStore)?;
        cached.replayed = 0;
    }
    let (id, version) = (plan.id().clone(), plan.version());
    Ok(Committed { plan: id, version, sequence, changed: true, left_out: Vec::new() })
}

fn conflict(
    transaction: &mut dyn Transaction,
    cache: &Cache,
    id: &PlanId,
    version: u64,
    known: u64,
) -> Result<WriteError, WriteError> {
    let current = cache.plans.get(id).map(|cached| cached.plan.to_draft());
    let mut found = Vec::new();
    if let Some(current) = current.filter(|_| (1..version).contains(&known)) {
        found = differences(&load(transaction, id, known)?.to_draft(), &current);
    }
    let mut writers: Vec<Actor> = Vec::new();
    for entry in transaction.versions(id, known, VERSIONS_READ_MAX)? {
        if !writers.contains(&entry.actor) {
            writers.push(entry.actor);
        }
    }
    let differences_total = found.len();
    found.truncate(CONFLICT_DIFFERENCES_MAX);
    Ok(WriteError::Conflict(Box::new(Conflict {
        plan: id.clone(),
        known,
        current: version,
        differences: found,
        differences_total,
        writers,
    })))
}

fn purge(transaction: &mut dyn Transaction, cache: &mut Cache, plan: &PlanId, by: &Actor) -> Done {
    if by.kind != ActorKind::Person {
        return Err(Refusal::OnlyAPerson { what: "purge a plan", by: by.kind }.into());
    }
    let head = transaction.head(plan)?.ok_or_else(|| WriteError::NotFound(plan.to_string()))?;
    transaction.purge(plan).map_err(Trouble::OfTheStore)?;
    cache.plans.remove(plan);
    let (plan, version) = (plan.clone(), head.version);
    Ok(Committed { plan, version, sequence: 0, changed: true, left_out: Vec::new() })
}

/// Ten random characters that are easy to read aloud.
pub(crate) fn random_name() -> Result<String, StoreError> {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bytes = [0u8; 10];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
    // The first is a letter, so that nobody's shell or spreadsheet takes an id for a number.
    let first = ALPHABET[10 + usize::from(bytes[0]) % 22] as char;
    let rest = bytes[1..].iter().map(|byte| ALPHABET[usize::from(byte % 32)] as char);
    Ok(std::iter::once(first).chain(rest).collect())
}

/// An id that no plan has had.
fn fresh_id(transaction: &mut dyn Transaction) -> Result<PlanId, WriteError> {
    for _ in 0..100 {
        let id = PlanId::new(random_name()?).map_err(|error| StoreError::Database(error.to_string()))?;
        if !transaction.was_used(&id)? {
            return Ok(id);
        }
    }
    Err(StoreError::Database("a hundred random ids in a row were taken".into()).into())
}
