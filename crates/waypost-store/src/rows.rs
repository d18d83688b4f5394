//! What a store keeps, as plain values. Knows nothing of how or where.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use waypost_core::{
    Actor, Counts, DEFAULT_QUEUE, Dependency, Event, ExternalTaskRef, IndexDelta, Lock, Phase, Plan, PlanId,
    Status, TaskId, Timestamp,
};

/// Between two ranks of [`PlanSummary::attention`]: more microseconds than any time has.
const ATTENTION_STEP: i64 = 1_000_000_000_000_000_000;

/// [`PlanSummary::attention`] in the words of SQL.
pub(crate) const ATTENTION: &str = "((CASE WHEN phase = 'awaiting_approval' THEN 3 WHEN asking > 0 THEN 2 \
     WHEN phase = 'active' THEN 1 ELSE 0 END) * 1000000000000000000 + coalesce(updated_at, 0))";

/// The head of a plan: all that a list shows, without its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanSummary {
    /// Its id.
    pub id: PlanId,
    /// How often it was written.
    pub version: u64,
    /// The line for lists.
    pub title: String,
    /// The author's free words.
    pub status: String,
    /// Where it stands.
    pub phase: Phase,
    /// The agent that it belongs to.
    pub owner: String,
    /// The queue that its work is placed on.
    pub queue: String,
    /// Who made it.
    pub created_by: Option<Actor>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Option<Timestamp>,
    /// Whether it is archived.
    pub archived: bool,
    /// Whether a person has yet to approve before machines run it.
    pub awaits_approval: bool,
    /// How many tasks stand where.
    pub counts: Counts,
    /// The priority of its most urgent task that could start now; 0 when there is none.
    pub urgency: i32,
    /// Tasks that wait for a person's answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub asking: u32,
    /// All its tasks, those with parts included.
    pub goals: u32,
    /// Tasks that were judged small enough to be done as they are.
    #[serde(skip_serializing_if = "is_zero")]
    pub atomic: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl PlanSummary {
    /// The head of this plan.
    pub fn of(plan: &Plan) -> Self {
        let (spec, state) = (plan.spec(), plan.state());
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
            awaits_approval: state.approval_required && state.approval.is_none(),
            counts: plan.counts(),
            urgency: plan.ready().next().map_or(0, |task| task.spec.priority),
            asking: u32::try_from(plan.asking().count()).unwrap_or(u32::MAX),
            goals: u32::try_from(plan.len()).unwrap_or(u32::MAX),
            atomic: plan.atomic(),
        }
    }

    /// How much a person is needed, and then when it last changed, as one number: what waits for approval stands above what
    /// has a question, that above what runs, and that above the rest.
    pub fn attention(&self) -> i64 {
        let rank = match (self.phase, self.asking) {
            (Phase::AwaitingApproval, _) => 3,
            (_, 1..) => 2,
            (Phase::Active, 0) => 1,
            (Phase::Draft | Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled, 0) => 0,
        };
        rank * ATTENTION_STEP + self.updated_at.map_or(0, Timestamp::as_micros)
    }

    /// Whether somebody who looks for work finds some here: a task could start now, and the plan runs or may.
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

/// One version of a plan: who did what, when, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// Its number among all versions of all plans, without gaps, in the order of commits.
    pub sequence: u64,
    /// The plan.
    pub plan: PlanId,
    /// The version that it made.
    pub version: u64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: Actor,
    /// The name of the command; several are joined with `+`.
    pub command: String,
    /// The events.
    pub events: Vec<Event>,
}

impl VersionRecord {
    /// What stays of it when its events are pruned: its number, who, when and the name of the command.
    pub(crate) fn pruned(self) -> Self {
        Self { events: Vec::new(), ..self }
    }

    /// Whether only its row is left: no version is written without an event.
    pub fn is_forgotten(&self) -> bool {
        self.events.is_empty()
    }

    /// What became of its events, if they are gone.
    pub fn forgotten(&self) -> Option<String> {
        match self.command.as_str() {
            _ if !self.is_forgotten() => None,
            LOST => Some(LOST.to_owned()),
            command => Some(format!("{command} (pruned)")),
        }
    }

    /// What stays of it in the log when its plan is purged: its number, who and when.
    pub(crate) fn purged(self) -> Self {
        Self { command: PURGED.to_owned(), events: Vec::new(), ..self }
    }
}

/// Events that were forgotten: the plan as the last of these versions left it is kept in their place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// The first version without its events: 1, unless a repair kept the versions before a lost one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub from: u64,
    /// This version and those before it, back to `from`, cannot be replayed any more.
    pub up_to: u64,
    /// When they were pruned.
    pub at: Timestamp,
    /// By whom.
    pub by: Actor,
}

fn one() -> u64 {
    1
}

fn is_one(number: &u64) -> bool {
    *number == 1
}

/// A task that somebody works on, and until when that is believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The plan.
    pub plan: PlanId,
    /// The task.
    pub task: TaskId,
    /// The start that it belongs to.
    pub attempt: u32,
    /// Who.
    pub worker: String,
    /// Until when; nothing for work that is never taken away.
    pub until: Option<Timestamp>,
    /// For how many seconds it was taken, and is renewed by a report of progress; nothing where that was not noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// Since when, where it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The queue of which it takes a slot; nothing for the work of agents and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The latest progress that the attempt reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<TaskProgress>,
}

/// The latest progress of an attempt. It is stored beside the log: a report is no version, and the next one replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProgress {
    /// What was reported.
    pub text: String,
    /// When.
    pub at: Timestamp,
}

/// The latest progress of the tasks of one plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanProgress(BTreeMap<TaskId, (u32, TaskProgress)>);

impl PlanProgress {
    /// Of a plan with these leases.
    pub fn of(leases: Vec<Lease>) -> Self {
        let reported = |lease: Lease| Some((lease.task, (lease.attempt, lease.progress?)));
        Self(leases.into_iter().filter_map(reported).collect())
    }

    /// What the current attempt of a task last reported.
    pub fn latest(&self, task: &TaskId, attempt: u32) -> Option<&TaskProgress> {
        self.0.get(task).filter(|(of, _)| *of == attempt).map(|(_, progress)| progress)
    }

    /// Whether no task has reported any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Shows it in a copy of the plan.
    pub fn show_in(&self, plan: &mut Plan) {
        for (task, (attempt, progress)) in &self.0 {
            plan.show_progress(task, *attempt, &progress.text);
        }
    }
}

/// Which leases to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseFilter<'a> {
    /// Only those that ended before this.
    pub ended_before: Option<Timestamp>,
    /// Only those of this worker.
    pub worker: Option<&'a str>,
}

impl LeaseFilter<'_> {
    /// Those that ended before `before`.
    pub fn ended(before: Timestamp) -> Self {
        Self { ended_before: Some(before), worker: None }
    }

    /// Whether this lease is one of them.
    pub(crate) fn admits(&self, lease: &Lease) -> bool {
        self.ended_before.is_none_or(|before| lease.until.is_some_and(|until| until < before))
            && self.worker.is_none_or(|worker| worker == lease.worker)
    }
}

/// A change of the lease that an attempt has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseUpdate {
    /// The plan.
    pub plan: PlanId,
    /// The task.
    pub task: TaskId,
    /// The attempt: where another has the lease, nothing changes.
    pub attempt: u32,
    /// The new end; nothing leaves it as it is.
    pub until: Option<Timestamp>,
    /// The progress; nothing leaves it as it is.
    pub progress: Option<TaskProgress>,
}

impl LeaseUpdate {
    /// Moves the end of a lease.
    pub fn renewal(plan: PlanId, task: TaskId, attempt: u32, until: Timestamp) -> Self {
        Self { plan, task, attempt, until: Some(until), progress: None }
    }
}

/// What leases of tasks that are started now say.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseTerms<'a> {
    /// For how long the worker is believed to work without a word; nothing is for ever.
    pub seconds: Option<u32>,
    /// The queue of which they take slots.
    pub queue: Option<&'a str>,
}

/// A key that a running task holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeldLock {
    /// The key, and how it is held.
    pub lock: Lock,
    /// The plan.
    pub plan: PlanId,
    /// The task.
    pub task: TaskId,
}

/// A task that waits for a task elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wait {
    /// The plan of the task that waits.
    pub plan: PlanId,
    /// The task that waits.
    pub task: TaskId,
    /// What it waits for.
    pub on: ExternalTaskRef,
}

impl Wait {
    /// Whether it is for a task of `plan`, or of any plan that `agent` owns.
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
    /// The plan.
    pub plan: PlanId,
    /// The task.
    pub task: TaskId,
    /// Higher goes first.
    pub priority: i32,
}

/// How the tables beside a plan change with one version. They can be rebuilt from the events at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexChanges {
    /// Tasks that were queued or started: their leases, and the locks that they now hold.
    pub started: Vec<(Lease, Vec<Lock>)>,
    /// Tasks that no longer run: their leases and locks are gone.
    pub stopped: Vec<TaskId>,
    /// Tasks whose waits elsewhere are now these.
    pub waits: Vec<(TaskId, Vec<ExternalTaskRef>)>,
}

impl IndexChanges {
    /// What `touched` means for the tables, given the plan as it is now.
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

/// All rows of the tables beside one plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexRows {
    /// Tasks that somebody works on.
    pub leases: Vec<Lease>,
    /// Keys that they hold.
    pub locks: Vec<HeldLock>,
    /// Tasks that wait for tasks elsewhere.
    pub waits: Vec<Wait>,
}

impl IndexRows {
    /// The rows that this plan should have. The end of a lease and its slot are not known to the plan: they are left open.
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

    /// Puts the rows in one order, so that two sets of them can be compared.
    pub fn sort(&mut self) {
        self.leases.sort_by(|a, b| a.task.cmp(&b.task));
        self.locks.sort();
        self.waits.sort();
    }
}

/// The tasks elsewhere that a task which has not begun hears of: as long as it has not, every end of them may yet be another.
pub(crate) fn open_waits(plan: &Plan, task: &TaskId) -> Vec<ExternalTaskRef> {
    let Some(task) = plan.task(task.as_str()) else { return Vec::new() };
    let waits = match task.state.status {
        Status::Pending => task.state.reported().is_none(),
        // It comes back when what it was skipped for is done after all.
        Status::Skipped => task.state.because_of.is_some(),
        Status::Running | Status::Done | Status::Failed | Status::Cancelled => false,
    };
    task.spec.depends_on.iter().filter_map(Dependency::external).filter(|_| waits).cloned().collect()
}

/// Which plans to list with regard to the archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveFilter {
    /// Plans that are not archived.
    #[default]
    Current,
    /// Those that are.
    Archived,
    /// Both.
    All,
}

/// By what a list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Sort {
    /// The latest change first.
    #[default]
    Updated,
    /// The newest first.
    Created,
    /// By title.
    Title,
    /// By id.
    Id,
    /// The plan with the most urgent task first.
    Urgency,
    /// What a person is needed for first ([`PlanSummary::attention`]).
    Attention,
}

/// Which plans to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// With regard to the archive.
    pub shelf: ArchiveFilter,
    /// Only plans in one of these phases; empty: in any.
    pub phases: Vec<Phase>,
    /// Only plans with these free words of the author.
    pub status: Option<String>,
    /// Only plans of this agent.
    pub owner: Option<String>,
    /// Only plans of this queue; plans that name none are of the default queue.
    pub queue: Option<String>,
    /// Only plans in which a task could start now ([`PlanSummary::offers_work`]).
    pub offers_work: bool,
    /// Only plans with this text in their id or title, ignoring case.
    pub text: Option<String>,
    /// The order.
    pub sort: Sort,
    /// Maximum number of results.
    pub limit: usize,
    /// Go on after the plan that the last page ended with.
    pub after: Option<String>,
}

impl Query {
    /// Whether plans that name no queue are wanted with those that name the default queue.
    pub(crate) fn is_of_default_queue(&self) -> bool {
        self.queue.as_deref() == Some(DEFAULT_QUEUE)
    }

    /// `after`, if no page of a list in this order can have ended with it.
    pub(crate) fn bad_cursor(&self) -> Option<&str> {
        let after = self.after.as_deref()?;
        let fits = |value: &str| match self.sort {
            Sort::Updated | Sort::Created | Sort::Urgency | Sort::Attention => value.parse::<i64>().is_ok(),
            Sort::Title | Sort::Id => true,
        };
        (!after.split_once('|').is_some_and(|(_, value)| fits(value))).then_some(after)
    }
}

/// A bounded part of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// How many there are in all.
    pub total: u64,
    /// What to ask for to see more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Damaged files, a line each: their plans are missing from the list, or cannot be opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { items: Vec::new(), total: 0, next: None, warnings: Vec::new() }
    }
}

/// Which plans were written after a number of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenSince {
    /// Each with its latest version.
    pub plans: Vec<(PlanId, u64)>,
    /// The number of the log up to which this is all.
    pub up_to: u64,
    /// Whether there are more behind that number.
    pub more: bool,
}

impl WrittenSince {
    /// The same from the versions of the log after `after`, of which at most `limit` were read.
    pub(crate) fn of(entries: Vec<VersionRecord>, after: u64, limit: usize) -> Self {
        let mut written = Self { up_to: after, more: entries.len() == limit, plans: Vec::new() };
        for entry in entries {
            written.up_to = entry.sequence;
            match written.plans.iter_mut().find(|(plan, _)| *plan == entry.plan) {
                Some((_, version)) => *version = entry.version,
                None => written.plans.push((entry.plan, entry.version)),
            }
        }
        written
    }
}

/// How much there is in a store, without reading any plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Plans that are not archived, by phase, in the order of [`Phase::ALL`].
    pub plans: [u64; Phase::ALL.len()],
    /// Plans that are.
    pub archived: u64,
    /// Tasks of plans that are not archived.
    pub tasks: Counts,
    /// Of active plans with a task that could start now: when the one that has been left alone longest last changed.
    pub ready_since: Option<Timestamp>,
    /// Tasks that somebody works on.
    pub leases: u64,
    /// Those of which nobody has heard for too long.
    pub leases_overdue: u64,
}

impl Totals {
    /// Adds what a head says.
    pub(crate) fn add(&mut self, head: &PlanSummary) {
        if head.archived {
            self.archived += 1;
            return;
        }
        if let Some(place) = Phase::ALL.iter().position(|phase| *phase == head.phase) {
            self.plans[place] += 1;
        }
        self.add_tasks(&head.counts);
        if head.phase == Phase::Active && head.counts.ready > 0 {
            self.ready_since = [self.ready_since, head.updated_at].into_iter().flatten().min();
        }
    }

    /// Adds the tasks of a plan, or of several.
    pub(crate) fn add_tasks(&mut self, counts: &Counts) {
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

/// Which versions of which plans to read from the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Only of this plan.
    pub plan: Option<PlanId>,
    /// Only by this actor.
    pub actor: Option<Actor>,
}

impl LogFilter {
    /// Whether this version is one of them.
    pub(crate) fn admits(&self, entry: &VersionRecord) -> bool {
        self.plan.as_ref().is_none_or(|plan| *plan == entry.plan)
            && self.actor.as_ref().is_none_or(|actor| *actor == entry.actor)
    }
}
