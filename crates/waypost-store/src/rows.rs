//! The rows of a store, as plain values. Knows no backend.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use waypost_core::canonical::Hash;
use waypost_core::{
    Actor, Counts, DEFAULT_QUEUE, Dependency, Event, ExternalTaskRef, IndexDelta, Lock, Phase, Plan, PlanId,
    Status, TaskId, Timestamp,
};

/// The distance between two ranks of [`PlanSummary::attention`]: more microseconds than any timestamp has.
const ATTENTION_STEP: i64 = 1_000_000_000_000_000_000;

/// [`PlanSummary::attention`] as an SQL expression.
pub(crate) const ATTENTION: &str = "((CASE WHEN phase = 'active' AND awaits_approval THEN 6 \
     WHEN phase = 'awaiting_approval' THEN 5 WHEN asking > 0 THEN 4 \
     WHEN phase = 'failed' OR phase IN ('active', 'paused') AND failed > 0 THEN 3 \
     WHEN phase = 'active' AND running > 0 THEN 2 \
     WHEN phase = 'active' THEN 1 ELSE 0 END) * 1000000000000000000 + coalesce(updated_at, 0))";

/// The summary of a plan: all that a list shows, without its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanSummary {
    /// The id of the plan.
    pub id: PlanId,
    /// The version of the plan: the number of its writes.
    pub version: u64,
    /// The title; the goal for a plan without one.
    pub title: String,
    /// The author's free-text status.
    pub status: String,
    /// The phase of the plan.
    pub phase: Phase,
    /// The agent that owns the plan; empty for none.
    pub owner: String,
    /// The queue that runs its tasks; empty for the default queue.
    pub queue: String,
    /// The actor that created the plan.
    pub created_by: Option<Actor>,
    /// When the plan was created.
    pub created_at: Option<Timestamp>,
    /// When the plan last changed.
    pub updated_at: Option<Timestamp>,
    /// Whether the plan is archived.
    pub archived: bool,
    /// Whether a person has yet to approve the plan before machines run it; for an active plan, because a worker refused to
    /// start it.
    pub awaits_approval: bool,
    /// The number of tasks by status.
    pub counts: Counts,
    /// The priority of its most urgent task that could start now; 0 when there is none.
    pub urgency: i32,
    /// The number of tasks that wait for a person's answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub asking: u32,
    /// The number of all its tasks, including tasks with subtasks.
    pub goals: u32,
    /// The number of tasks that were judged small enough to be done as they are.
    #[serde(skip_serializing_if = "is_zero")]
    pub atomic: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl PlanSummary {
    /// Returns the summary of a plan with the counts of its tasks by effective status. Reads all tasks.
    pub fn detailed(plan: &Plan) -> Self {
        Self { counts: plan.as_started().effective_counts(), ..Self::of(plan) }
    }

    /// Whether the plan has no tasks: a text that is read and written, with nothing to run.
    pub fn is_document(&self) -> bool {
        self.goals == 0
    }

    /// Returns the summary as JSON, in which `document` tells a plan without tasks apart.
    pub fn to_json(&self) -> serde_json::Value {
        let mut value = serde_json::json!(self);
        if self.is_document() {
            value["document"] = true.into();
        }
        value
    }

    /// Returns the summary of a plan. Before the start, it counts what its author skips as it will be then.
    pub fn of(plan: &Plan) -> Self {
        let (spec, state, started) = (plan.spec(), plan.state(), plan.as_started());
        Self {
            id: plan.id().clone(),
            version: plan.version(),
            title: if spec.title.is_empty() { spec.goal.clone() } else { spec.title.clone() },
            status: spec.status.clone(),
            phase: state.phase,
            owner: spec.owner.clone(),
            queue: spec.queue.clone(),
            created_by: state.created_by.clone(),
            created_at: state.created_at,
            updated_at: state.updated_at,
            archived: state.archived,
            awaits_approval: state.approval_required && state.approval.is_none()
                || !state.start_refusals.is_empty(),
            counts: started.counts(),
            urgency: started.ready().next().map_or(0, |task| task.spec.priority),
            asking: u32::try_from(plan.asking().count()).unwrap_or(u32::MAX),
            goals: u32::try_from(plan.len()).unwrap_or(u32::MAX),
            atomic: plan.atomic(),
        }
    }

    /// Returns when the plan was created, in microseconds, as [`Sort::Urgency`] compares it.
    pub fn created_micros(&self) -> i64 {
        self.created_at.map_or(0, Timestamp::as_micros)
    }

    pub(crate) fn urgency_cursor(&self) -> String {
        format!("{}|{}", self.urgency, self.created_micros())
    }

    /// Whether the plan is active, and a worker refused to start its tasks until a person approves it again.
    pub fn is_refused(&self) -> bool {
        self.phase == Phase::Active && self.awaits_approval
    }

    /// Returns how urgently a person is needed, combined with the last change, as one number to sort by: plans whose
    /// start a worker refused rank above plans that await approval, those above plans with a question, those above plans
    /// in which something failed, those above plans in which a task runs, those above other active plans, and those
    /// above the rest.
    pub fn attention(&self) -> i64 {
        let rank = match (self.phase, self.asking) {
            _ if self.is_refused() => 6,
            (Phase::AwaitingApproval, _) => 5,
            (_, 1..) => 4,
            (Phase::Failed, 0) => 3,
            (Phase::Active | Phase::Paused, 0) if self.counts.failed > 0 => 3,
            (Phase::Active, 0) if self.counts.running > 0 => 2,
            (Phase::Active, 0) => 1,
            (Phase::Draft | Phase::Paused | Phase::Completed | Phase::Cancelled, 0) => 0,
        };
        rank * ATTENTION_STEP + self.updated_at.map_or(0, Timestamp::as_micros)
    }

    /// Returns whether a worker finds work here: a task could start now, and the plan is active, or a draft that needs
    /// no approval.
    pub fn offers_work(&self) -> bool {
        let may_run = match self.phase {
            Phase::Active => true,
            Phase::Draft => !self.awaits_approval,
            Phase::AwaitingApproval | Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled => {
                false
            }
        };
        may_run && !self.archived && self.counts.ready > 0
    }
}

/// The command that the log shows for the versions of a purged plan.
pub(crate) const PURGED: &str = "purged";
/// The command that the log shows for a version whose line in a file was lost.
pub(crate) const LOST: &str = "lost";

/// The name of the system actor that repairs damaged files.
pub(crate) const DOCTOR: &str = "doctor";

/// The number of a version that has none yet: some stores number versions after their commit.
pub const UNNUMBERED: u64 = i64::MAX as u64;

/// One version of a plan: its actor, time, command and events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// Its number among all versions of all plans, without gaps, in commit order. A version that this process has just
    /// written, or has read together with its plan, may be [`UNNUMBERED`].
    pub sequence: u64,
    /// The id of the plan.
    pub plan: PlanId,
    /// The number of the version in its plan, from 1.
    pub version: u64,
    /// When the version was written.
    pub at: Timestamp,
    /// The actor that wrote it.
    pub actor: Actor,
    /// The name of the command; several are joined with `+`.
    pub command: String,
    /// The events; empty once they were pruned, purged or lost.
    pub events: Vec<Event>,
}

impl VersionRecord {
    /// Returns whether the events are gone: no version is written without an event.
    pub fn is_forgotten(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns what happened to the events, if they are gone.
    pub fn forgotten(&self) -> Option<String> {
        match self.command.as_str() {
            _ if !self.is_forgotten() => None,
            LOST | PURGED => Some(self.command.clone()),
            command => Some(format!("{command} (pruned)")),
        }
    }
}

/// A range of versions whose events were removed or lost: the plan at the last of them is kept in their place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// The first version without its events: 1, unless a repair kept the versions before a lost one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub from: u64,
    /// The last version without its events. Versions from `from` to this one cannot be replayed any more, but the state
    /// at this one is kept.
    pub up_to: u64,
    /// When the events were pruned, or the loss was repaired.
    pub at: Timestamp,
    /// The actor that pruned or repaired them.
    pub by: Actor,
    /// The versions whose events were lost, as ranges; empty if they were pruned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<(u64, u64)>,
    /// The version that left the kept state, if nothing later could be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_by: Option<u64>,
}

impl Pruned {
    /// Returns the range of versions that were pruned from the first one on.
    pub(crate) fn new(up_to: u64, at: Timestamp, by: Actor) -> Self {
        Self { from: 1, up_to, at, by, lost: Vec::new(), left_by: None }
    }

    /// Returns whether the events were lost when a file was damaged, and not pruned.
    pub fn is_lost(&self) -> bool {
        self.by == Actor::system(DOCTOR)
    }

    /// Returns the versions whose events were lost. Earlier builds recorded only the range.
    pub(crate) fn lost_versions(&self) -> Vec<(u64, u64)> {
        match self.lost.is_empty() && self.is_lost() {
            true => vec![(self.from, self.up_to)],
            false => self.lost.clone(),
        }
    }

    /// Describes what is missing, since when, and because of whom.
    pub fn describe(&self) -> String {
        let (at, by) = (self.at.to_the_second(), &self.by);
        if !self.is_lost() {
            return format!(
                "the events of {} were pruned on {at} by {by}",
                version_words(&[(self.from, self.up_to)])
            );
        }
        let mut words = format!("the events of {} were lost", version_words(&self.lost_versions()));
        if self.from < self.up_to {
            let hidden = version_words(&[(self.from, self.up_to - 1)]);
            words.push_str(&format!("; {hidden} cannot be shown"));
        }
        if let Some(version) = self.left_by {
            words.push_str(&format!("; version {} is as version {version} left it", self.up_to));
        }
        format!("{words}; the plan was repaired on {at}")
    }
}

/// Returns ascending numbers as ranges.
pub(crate) fn ranges(numbers: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            Some(_) | None => ranges.push((number, number)),
        }
    }
    ranges
}

/// Names versions: `version 3`, `versions 1 to 3, 5`.
pub(crate) fn version_words(ranges: &[(u64, u64)]) -> String {
    let words = |&(first, last): &(u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    };
    let noun = if matches!(ranges, [(first, last)] if first == last) { "version" } else { "versions" };
    format!("{noun} {}", ranges.iter().map(words).collect::<Vec<_>>().join(", "))
}

/// Versions of the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogPage {
    /// The versions in commit order.
    pub versions: Vec<VersionRecord>,
    /// What this call, and earlier ones on the same state of the store, could not read.
    pub unreadable: Unreadable,
}

/// The part of the log that cannot be read because files that people and programs can change are damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreadable {
    /// The first sequence number that cannot be read; `None` if the damage hides no version.
    pub from: Option<u64>,
    /// The damage: each file and line.
    pub warnings: Vec<String>,
}

fn one() -> u64 {
    1
}

fn is_one(number: &u64) -> bool {
    *number == 1
}

/// A task that a worker, an agent or a person works on, and when the claim expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The id of the plan.
    pub plan: PlanId,
    /// The id of the task.
    pub task: TaskId,
    /// The number of the attempt that holds the lease.
    pub attempt: u32,
    /// The worker that holds the lease.
    pub worker: String,
    /// When the lease expires; `None` for a claim that never expires.
    pub until: Option<Timestamp>,
    /// The duration of the lease in seconds, by which a progress report renews it; `None` if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// When the attempt was queued or started, if it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The queue of which the attempt takes a slot; `None` for the work of agents and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The latest progress that the attempt reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<TaskProgress>,
}

/// The latest progress of an attempt. It is not part of the log: a report makes no version, and the next one replaces
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProgress {
    /// The reported text.
    pub text: String,
    /// When it was reported.
    pub at: Timestamp,
}

/// The latest progress of the tasks of one plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanProgress(BTreeMap<TaskId, (u32, TaskProgress)>);

impl PlanProgress {
    /// Collects the progress from the leases of one plan.
    pub fn of(leases: Vec<Lease>) -> Self {
        let reported = |lease: Lease| Some((lease.task, (lease.attempt, lease.progress?)));
        Self(leases.into_iter().filter_map(reported).collect())
    }

    /// Returns the latest report of this attempt of a task; reports of other attempts do not count.
    pub fn latest(&self, task: &TaskId, attempt: u32) -> Option<&TaskProgress> {
        self.0.get(task).filter(|(of, _)| *of == attempt).map(|(_, progress)| progress)
    }

    /// Returns whether no task has reported any progress.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the progress in a copy of the plan.
    pub fn show_in(&self, plan: &mut Plan) {
        for (task, (attempt, progress)) in &self.0 {
            plan.show_progress(task, *attempt, &progress.text);
        }
    }
}

/// Selects leases.
#[derive(Clone, Copy, Debug, Default)]
pub enum LeaseFilter<'a> {
    /// All of them.
    #[default]
    All,
    /// Those that expired before this time; leases that never expire are left out.
    EndedBefore(Timestamp),
    /// Those of this worker.
    Worker(&'a str),
    /// Those of the tasks of this plan.
    Plan(&'a PlanId),
}

/// Selects locks that running tasks hold.
#[derive(Clone, Copy, Debug)]
pub enum LockFilter<'a> {
    /// Those with these keys.
    Keys(&'a [&'a str]),
    /// Those that the tasks of this plan hold.
    Plan(&'a PlanId),
}

/// Selects waits of tasks for tasks of other plans.
#[derive(Clone, Copy, Debug)]
pub enum WaitFilter<'a> {
    /// Those of the tasks of this plan.
    Of(&'a PlanId),
    /// Those for a task of a plan.
    On {
        /// The plan of the awaited tasks.
        plan: &'a PlanId,
        /// The owner of the plan: waits that name only an owner are for any plan of that owner.
        owner: &'a str,
        /// Only waits for the task of this id.
        task: Option<&'a str>,
    },
}

/// The use of a plan's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanState {
    /// No plan ever had it.
    Unused,
    /// Its plan was purged.
    Purged,
    /// Its plan is stored.
    Stored {
        /// The latest version.
        version: u64,
        /// The hash of that version, from which the next one follows, if it has one.
        hash: Option<Hash>,
    },
}

impl PlanState {
    /// Returns the latest version of a stored plan.
    pub fn version(self) -> Option<u64> {
        match self {
            Self::Stored { version, .. } => Some(version),
            Self::Unused | Self::Purged => None,
        }
    }

    /// Returns the hash of the latest version of a stored plan.
    pub fn hash(self) -> Option<Hash> {
        match self {
            Self::Stored { hash, .. } => hash,
            Self::Unused | Self::Purged => None,
        }
    }
}

/// The state of a store as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// The id of the store: 32 random hexadecimal digits, assigned when the store is created. A copy of its files has
    /// the same id.
    pub id: String,
    /// The sequence number of the latest version in the log; 0 when there is none.
    pub latest: u64,
    /// The schema of the store if it is newer than the schemas that this build knows: a newer build has migrated the
    /// store, and allows this one to read it and to finish what it has begun.
    pub newer_schema: Option<u32>,
}

/// Selects subscriptions.
#[derive(Clone, Copy, Debug)]
pub enum SubscriptionFilter<'a> {
    /// All of them.
    All,
    /// Those of one owner.
    Owner(&'a str),
    /// The one of this id.
    Id(&'a str),
}

/// Selects workers.
#[derive(Clone, Copy, Debug)]
pub enum WorkerFilter<'a> {
    /// Those whose names come after this one, or all of them.
    After(Option<&'a str>),
    /// The one of this name.
    Name(&'a str),
}

/// A change of the lease of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseUpdate {
    /// The id of the plan.
    pub plan: PlanId,
    /// The id of the task.
    pub task: TaskId,
    /// The number of the attempt: if another attempt holds the lease, nothing changes.
    pub attempt: u32,
    /// The new end of the lease; `None` leaves it unchanged.
    pub until: Option<Timestamp>,
    /// The new duration by which progress renews the lease; `None` leaves it unchanged.
    pub seconds: Option<u32>,
    /// The new progress; `None` leaves it unchanged.
    pub progress: Option<TaskProgress>,
}

impl LeaseUpdate {
    /// Returns an update that moves the end of a lease to `until`.
    pub fn renewal(plan: PlanId, task: TaskId, attempt: u32, until: Timestamp) -> Self {
        Self { plan, task, attempt, until: Some(until), seconds: None, progress: None }
    }
}

/// The terms of the leases of tasks that a write starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseTerms<'a> {
    /// The duration of a lease in seconds; without a renewal in that time other workers may take the task. `None` never
    /// expires.
    pub seconds: Option<u32>,
    /// The queue of which the tasks take slots.
    pub queue: Option<&'a str>,
}

/// A lock that a running task holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeldLock {
    /// The key of the lock, and its mode.
    pub lock: Lock,
    /// The plan of the task.
    pub plan: PlanId,
    /// The task that holds the lock.
    pub task: TaskId,
}

/// A task that waits for a task of another plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wait {
    /// The plan of the waiting task.
    pub plan: PlanId,
    /// The id of the waiting task.
    pub task: TaskId,
    /// The task that it waits for.
    pub on: ExternalTaskRef,
}

impl Wait {
    /// Returns whether the wait is for a task of `plan`: the plan is named, or only its owner `agent` is.
    pub fn is_on(&self, plan: &PlanId, agent: &str) -> bool {
        match &self.on.plan {
            Some(on) => on == plan,
            None => self.on.agent.as_deref() == Some(agent),
        }
    }
}

/// A task that could start now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReadyTask {
    /// The id of the plan.
    pub plan: PlanId,
    /// The id of the task.
    pub task: TaskId,
    /// The priority of the task; higher values start first.
    pub priority: i32,
}

/// The changes that one version makes to the index tables of a plan. The tables can be rebuilt from the events, except
/// for the terms and progress of leases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexChanges {
    /// Tasks that were queued or started: their leases, and the locks that they now hold.
    pub started: Vec<(Lease, Vec<Lock>)>,
    /// Tasks that no longer run: their leases and locks are removed.
    pub stopped: Vec<TaskId>,
    /// Tasks with changed waits for other plans, each with all its current ones.
    pub waits: Vec<(TaskId, Vec<ExternalTaskRef>)>,
}

impl IndexChanges {
    /// Returns the table changes for `touched`, given the plan after the version.
    pub fn of(plan: &Plan, touched: IndexDelta, terms: LeaseTerms<'_>, at: Timestamp) -> Self {
        Self {
            started: touched
                .started
                .into_iter()
                .map(|(task, attempt)| {
                    let found = plan.task(task.as_str());
                    let worker = found.and_then(|task| task.state.worker.clone()).unwrap_or_default();
                    let locks = found.map(|task| task.spec.locks.clone()).unwrap_or_default();
                    let until = terms.seconds.map(|seconds| at.plus_seconds(u64::from(seconds)));
                    let (since, queue) = (Some(at), terms.queue.map(str::to_owned));
                    let (plan, seconds) = (plan.id().clone(), terms.seconds);
                    let progress = None;
                    (Lease { plan, task, attempt, worker, until, seconds, since, queue, progress }, locks)
                })
                .collect(),
            stopped: touched.stopped,
            waits: touched
                .waits_changed
                .into_iter()
                .map(|task| (task.clone(), open_waits(plan, &task)))
                .collect(),
        }
    }
}

/// All rows of the index tables of one plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexRows {
    /// The leases of its running and queued tasks.
    pub leases: Vec<Lease>,
    /// The locks that these tasks hold.
    pub locks: Vec<HeldLock>,
    /// The waits of its tasks for other plans.
    pub waits: Vec<Wait>,
}

impl IndexRows {
    /// Returns the rows that a plan should have. The plan does not know the end, the queue and the progress of a lease:
    /// they stay empty.
    pub fn of(plan: &Plan) -> Self {
        let id = || plan.id().clone();
        let mut rows = Self::default();
        for task in plan.in_progress() {
            let worker = task.state.worker.clone().unwrap_or_default();
            let (attempt, name) = (task.state.attempt, task.spec.id.clone());
            let held = task.spec.locks.iter();
            rows.locks.extend(held.map(|lock| HeldLock {
                lock: lock.clone(),
                plan: id(),
                task: name.clone(),
            }));
            let since = task.state.started_at.or(task.state.updated_at);
            rows.leases.push(Lease {
                plan: id(),
                task: name,
                attempt,
                worker,
                until: None,
                seconds: None,
                since,
                queue: None,
                progress: None,
            });
        }
        for (task, _) in plan.tasks() {
            let task = &task.spec.id;
            let waits = open_waits(plan, task).into_iter();
            rows.waits.extend(waits.map(|on| Wait { plan: id(), task: task.clone(), on }));
        }
        rows.sort();
        rows
    }

    /// Sorts the rows, so that two sets can be compared.
    pub fn sort(&mut self) {
        self.leases.sort_by(|a, b| a.task.cmp(&b.task));
        self.locks.sort();
        self.waits.sort();
    }
}

/// Returns the tasks of other plans whose outcome a task that has not started receives: until it starts, every outcome
/// may change.
pub(crate) fn open_waits(plan: &Plan, task: &TaskId) -> Vec<ExternalTaskRef> {
    let Some(task) = plan.task(task.as_str()) else { return Vec::new() };
    let waits = match task.state.status {
        Status::Pending => task.state.reported().is_none(),
        // The task is reopened when the task it was skipped for is done after all.
        Status::Skipped => task.state.because_of.is_some(),
        Status::Running | Status::Done | Status::Failed | Status::Cancelled => false,
    };
    task.spec.depends_on.iter().filter_map(Dependency::external).filter(|_| waits).cloned().collect()
}

/// Selects plans by whether they are archived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveFilter {
    /// Plans that are not archived.
    #[default]
    Current,
    /// Archived plans.
    Archived,
    /// All plans.
    All,
}

/// The order of a list of plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Sort {
    /// By the time of the last change, latest first.
    #[default]
    Updated,
    /// By the time of creation, newest first.
    Created,
    /// By title.
    Title,
    /// By id.
    Id,
    /// By the priority of the most urgent ready task, highest first; of those as urgent, the oldest plan first.
    Urgency,
    /// By how much a person is needed, most first ([`PlanSummary::attention`]).
    Attention,
}

/// Selects and sorts plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Selects plans by whether they are archived.
    pub shelf: ArchiveFilter,
    /// Only plans in one of these phases; empty for any phase.
    pub phases: Vec<Phase>,
    /// Only plans with this free-text status.
    pub status: Option<String>,
    /// Only plans that this agent owns.
    pub owner: Option<String>,
    /// Only plans of this queue; plans that name no queue belong to the default queue.
    pub queue: Option<String>,
    /// Only plans in which a task could start now ([`PlanSummary::offers_work`]).
    pub offers_work: bool,
    /// Only plans with this text in their id or title, ignoring case.
    pub text: Option<String>,
    /// The order of the results.
    pub sort: Sort,
    /// Maximum number of results.
    pub limit: usize,
    /// The cursor [`Page::next`] of the previous page. It fits only the same order.
    pub after: Option<String>,
}

impl Query {
    /// Returns whether the query is for the default queue, which includes plans that name no queue.
    pub(crate) fn is_of_default_queue(&self) -> bool {
        self.queue.as_deref() == Some(DEFAULT_QUEUE)
    }

    /// Returns `after` if it cannot be a cursor of a list in this order.
    pub(crate) fn bad_cursor(&self) -> Option<&str> {
        let after = self.after.as_deref()?;
        let fits = |value: &str| match self.sort {
            Sort::Updated | Sort::Created | Sort::Attention => value.parse::<i64>().is_ok(),
            Sort::Urgency => parse_urgency(value).is_some(),
            Sort::Title | Sort::Id => true,
        };
        (!after.split_once('|').is_some_and(|(_, value)| fits(value))).then_some(after)
    }
}

/// Parses the part of a cursor that [`PlanSummary::urgency_cursor`] wrote: the urgency and the time of creation.
pub(crate) fn parse_urgency(text: &str) -> Option<(i64, i64)> {
    let (urgency, created) = text.split_once('|')?;
    Some((urgency.parse().ok()?, created.parse().ok()?))
}

/// A bounded part of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Page<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// The number of items on all pages.
    pub total: u64,
    /// The cursor of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Damaged files, a line each: their plans are missing from the list, or cannot be opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl<T: Serialize> Page<T> {
    /// Returns the page as JSON, with its items under a name of their own.
    pub fn to_json(&self, items: &str) -> serde_json::Value {
        let mut page = serde_json::json!({ items: self.items, "total": self.total, "next": self.next });
        if !self.warnings.is_empty() {
            page["warnings"] = serde_json::json!(self.warnings);
        }
        page
    }
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { items: Vec::new(), total: 0, next: None, warnings: Vec::new() }
    }
}

/// The plans that were written after a sequence number of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenSince {
    /// The ids of the plans, each with its latest version in this range.
    pub plans: Vec<(PlanId, u64)>,
    /// The sequence number up to which the list is complete.
    pub up_to: u64,
    /// Whether there may be versions after that number.
    pub more: bool,
    /// What could not be read of the log.
    pub unreadable: Unreadable,
}

impl WrittenSince {
    /// Collects the plans of the versions of the log after `after`, of which at most `limit` were read.
    pub(crate) fn of(page: LogPage, after: u64, limit: usize) -> Self {
        let LogPage { versions, unreadable } = page;
        let more = versions.len() == limit;
        let mut written = Self { up_to: after, more, plans: Vec::new(), unreadable };
        for entry in versions {
            written.up_to = entry.sequence;
            match written.plans.iter_mut().find(|(plan, _)| *plan == entry.plan) {
                Some((_, version)) => *version = entry.version,
                None => written.plans.push((entry.plan, entry.version)),
            }
        }
        written
    }
}

/// Counts of plans, tasks and leases, taken without reading any plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of plans that are not archived, by phase, in the order of [`Phase::ALL`].
    pub plans: [u64; Phase::ALL.len()],
    /// The number of archived plans.
    pub archived: u64,
    /// The number of tasks by status, of plans that are not archived. Tasks count as ready only in active plans; in others
    /// they wait for their plan and count as blocked.
    pub tasks: Counts,
    /// The tasks of active plans by queue; the name of the default queue is empty.
    pub queues: BTreeMap<String, QueueTotals>,
    /// The earliest last change among active plans with a task that could start now: how long the most neglected plan
    /// has waited.
    pub ready_since: Option<Timestamp>,
    /// The number of leases.
    pub leases: u64,
    /// The number of leases that have expired.
    pub leases_overdue: u64,
}

/// The tasks of active plans in one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTotals {
    /// Tasks that could start now.
    pub ready: u64,
    /// Tasks that a worker holds.
    pub in_progress: u64,
    /// The earliest last change among plans with a ready task.
    pub ready_since: Option<Timestamp>,
}

impl Totals {
    /// Adds the counts of a plan summary.
    pub(crate) fn add(&mut self, head: &PlanSummary) {
        if head.archived {
            self.archived += 1;
            return;
        }
        let since = head.updated_at.filter(|_| head.counts.ready > 0);
        self.add_plans(head.phase, &head.queue, 1, &head.counts, since);
    }

    /// Adds plans of the same phase and queue that are not archived. `ready_since` is the earliest last change among those
    /// with ready tasks.
    pub(crate) fn add_plans(
        &mut self,
        phase: Phase,
        queue: &str,
        plans: u64,
        counts: &Counts,
        ready_since: Option<Timestamp>,
    ) {
        if let Some(place) = Phase::ALL.iter().position(|one| *one == phase) {
            self.plans[place] += plans;
        }
        let mut counts = *counts;
        if phase == Phase::Active {
            let of_queue = self.queues.entry(queue.to_owned()).or_default();
            of_queue.ready += u64::from(counts.ready);
            of_queue.in_progress += u64::from(counts.in_progress());
            of_queue.ready_since = [of_queue.ready_since, ready_since].into_iter().flatten().min();
            self.ready_since = [self.ready_since, ready_since].into_iter().flatten().min();
        } else {
            counts.blocked = counts.blocked.saturating_add(std::mem::take(&mut counts.ready));
        }
        self.add_tasks(&counts);
    }

    /// Adds the task counts of one or more plans.
    fn add_tasks(&mut self, counts: &Counts) {
        let sums = &mut self.tasks;
        for (sum, count) in [
            (&mut sums.total, counts.total),
            (&mut sums.ready, counts.ready),
            (&mut sums.blocked, counts.blocked),
            (&mut sums.queued, counts.queued),
            (&mut sums.running, counts.running),
            (&mut sums.done, counts.done),
            (&mut sums.failed, counts.failed),
            (&mut sums.skipped, counts.skipped),
            (&mut sums.cancelled, counts.cancelled),
        ] {
            *sum = sum.saturating_add(count);
        }
    }
}

/// Selects versions of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Only versions of this plan.
    pub plan: Option<PlanId>,
    /// Only versions by this actor.
    pub actor: Option<Actor>,
}

impl LogFilter {
    /// Returns whether the filter selects a version.
    pub(crate) fn admits(&self, entry: &VersionRecord) -> bool {
        self.plan.as_ref().is_none_or(|plan| *plan == entry.plan)
            && self.actor.as_ref().is_none_or(|actor| *actor == entry.actor)
    }
}

/// Which rows of a group are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedKeys<'a> {
    /// Those after this key.
    After(&'a str),
    /// The one with this key.
    Only(&'a str),
}

/// The name of the system actor that writes what other clones did.
pub const SYNC_ACTOR: &str = "sync";

/// A group of rows about plans that are shared with other clones. The store knows nothing of their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedScope<'a> {
    /// What is known of this clone, by name.
    Clone,
    /// What is known of each shared plan, by its id.
    Plans,
    /// The records of a plan, by their ids.
    Records(&'a PlanId),
    /// The records of a plan that the branch does not hold yet.
    Unpublished(&'a PlanId),
    /// The plans that are offered to no agent, because nobody has trusted where they came from.
    Withheld,
}

impl SharedScope<'_> {
    /// The name of the group in a table.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Clone => "clone".to_owned(),
            Self::Plans => "plans".to_owned(),
            Self::Records(plan) => format!("records:{plan}"),
            Self::Unpublished(plan) => format!("unpublished:{plan}"),
            Self::Withheld => "withheld".to_owned(),
        }
    }
}
