//! Read-only queries on a plan.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use strum::{EnumString, IntoStaticStr};
use waypost_text::StatusSign;

use super::Plan;
use super::slot::{NONE, Verdict};
use crate::{
    Actor, Command, Dependency, Hold, Phase, PlanId, PlanSpec, PlanState, Status, Task, TaskId, Timestamp,
};

/// The number of tasks by status. Parents are not counted: they end as their children end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All tasks without children.
    pub total: u32,
    /// Ready to start.
    pub ready: u32,
    /// Waiting for something.
    pub blocked: u32,
    /// Reported as done; their checks can start. Summaries of plans count them as ready.
    #[serde(skip_serializing_if = "is_zero")]
    pub reported: u32,
    /// Waiting for a person's answer. Summaries of plans count them as blocked.
    #[serde(skip_serializing_if = "is_zero")]
    pub asking: u32,
    /// Held until somebody releases them. Summaries of plans count them as blocked.
    #[serde(skip_serializing_if = "is_zero")]
    pub held: u32,
    /// Waiting for a person, because clones disagree about them. Summaries of plans count them as blocked.
    #[serde(skip_serializing_if = "is_zero")]
    pub disputed: u32,
    /// Reserved by a worker; not known to have begun.
    pub queued: u32,
    /// Being worked on.
    pub running: u32,
    /// Done.
    pub done: u32,
    /// Failed for good.
    pub failed: u32,
    /// Skipped.
    pub skipped: u32,
    /// Cancelled on request.
    pub cancelled: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Counts {
    /// Fills in `queued` where queued tasks were not counted separately: they are the rest of the total.
    pub fn with_queued(self) -> Self {
        let others = self.ready + self.blocked + self.running + self.finished();
        Self { queued: self.total.saturating_sub(others), ..self }
    }

    /// Returns the number of tasks held by a worker: queued or running.
    pub fn in_progress(&self) -> u32 {
        self.queued + self.running
    }

    /// Returns the number of tasks that have finished.
    pub fn finished(&self) -> u32 {
        self.done + self.failed + self.skipped + self.cancelled
    }

    /// Returns the sign of a plan in this phase. An active plan is shown as running only while a task runs.
    pub fn sign(&self, phase: Phase) -> StatusSign {
        match phase {
            Phase::Draft => StatusSign::Draft,
            Phase::AwaitingApproval => StatusSign::Approval,
            // A worker queues only tasks that it starts at once or next, so something runs.
            Phase::Active if self.in_progress() > 0 => StatusSign::Running,
            Phase::Active if self.ready + self.reported > 0 => StatusSign::Idle,
            Phase::Active => StatusSign::Blocked,
            Phase::Paused => StatusSign::Paused,
            Phase::Completed => StatusSign::Done,
            Phase::Failed => StatusSign::Failed,
            Phase::Cancelled => StatusSign::Cancelled,
        }
    }
}

/// The status of a task, including what is derived from the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EffectiveStatus {
    /// Waiting for something.
    Blocked,
    /// Ready to start.
    Ready,
    /// Reported as done; its check can start.
    Reported,
    /// Waiting for a person's answer.
    Asking,
    /// Held until somebody releases it.
    Held,
    /// Waiting for a person, because clones disagree about it.
    Disputed,
    /// Reserved by a worker; not known to have begun.
    Queued,
    /// Being worked on.
    Running,
    /// Done.
    Done,
    /// Failed for good.
    Failed,
    /// Skipped.
    Skipped,
    /// Cancelled on request.
    Cancelled,
}

impl EffectiveStatus {
    /// All statuses.
    pub const ALL: [Self; 12] = [
        Self::Blocked,
        Self::Ready,
        Self::Reported,
        Self::Asking,
        Self::Held,
        Self::Disputed,
        Self::Queued,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Skipped,
        Self::Cancelled,
    ];

    /// Returns the name of the status.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the sign shown before the name.
    pub fn sign(self) -> StatusSign {
        match self {
            Self::Blocked => StatusSign::Blocked,
            Self::Ready => StatusSign::Ready,
            Self::Reported => StatusSign::Reported,
            Self::Asking => StatusSign::Asking,
            Self::Held => StatusSign::Held,
            Self::Disputed => StatusSign::Disputed,
            Self::Queued => StatusSign::Queued,
            Self::Running => StatusSign::Running,
            Self::Done => StatusSign::Done,
            Self::Failed => StatusSign::Failed,
            Self::Skipped => StatusSign::Skipped,
            Self::Cancelled => StatusSign::Cancelled,
        }
    }
}

/// What keeps a pending task from starting, as far as its plan knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockReason {
    /// The plan has not been approved.
    Approval,
    /// The plan is in this phase.
    Phase(Phase),
    /// These dependencies of the task, or of one of its parents, are not satisfied.
    Dependencies(Vec<String>),
    /// The next attempt must not start before this time.
    Until(Timestamp),
    /// This question waits for a person's answer.
    Answer(String),
    /// The task is reported as done and waits for its check.
    Check,
    /// The task, or a task above it, is held.
    Held {
        /// The id of the held task.
        task: String,
        /// The actor that holds it.
        by: String,
        /// Why it is held.
        #[serde(skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// Clones disagree about the task, or about a task above it; a person decides.
    Disputed {
        /// The id of that task.
        task: String,
    },
    /// The author skips the task, or a task above it: it never starts.
    Skip {
        /// The id of the task that is to be skipped.
        task: String,
    },
}

impl Plan {
    /// Returns the ids of all tasks that wait, directly or not, for one of these tasks.
    pub fn tasks_behind(&self, tasks: &[TaskId]) -> HashSet<TaskId> {
        let mut behind: HashSet<u32> = HashSet::new();
        let mut stack: Vec<u32> = tasks.iter().filter_map(|task| self.find(task.as_str())).collect();
        while let Some(number) = stack.pop() {
            // A task that depends on a group waits for all its members, and a group's dependants are all its members.
            let mut at = number;
            while at != NONE {
                let dependants = self.slot(at).after.iter().flat_map(|&next| self.family(next));
                stack.extend(dependants.filter(|&next| behind.insert(next)));
                at = self.slot(at).parent;
            }
        }
        behind.into_iter().map(|number| self.task_id(number)).collect()
    }

    /// Returns tasks with everything below them.
    pub fn with_members(&self, tasks: &[TaskId]) -> Vec<TaskId> {
        self.families(tasks).map(|number| self.task_id(number)).collect()
    }

    /// Returns the plan as it would be after commands of an actor, up to the first that is refused.
    pub fn after(&self, by: &Actor, at: Timestamp, commands: &[Command]) -> Cow<'_, Self> {
        let mut plan = Cow::Borrowed(self);
        for command in commands {
            let Ok(events) = plan.decide(by, at, command) else { break };
            plan.to_mut().advance(&events, at);
        }
        plan
    }

    /// Returns the plan as it will be once it has started: what its author skips then keeps nothing waiting. Only a draft that may
    /// start and has such tasks differs from what is stored; starting a task starts it.
    pub fn as_started(&self) -> Cow<'_, Self> {
        let state = &self.state;
        let awaits_approval = state.approval_required && state.approval.is_none();
        let is_startable =
            state.phase == Phase::Draft && !state.archived && !awaits_approval && state.stopped_by.is_none();
        // Counted, because every write of a draft asks.
        if self.skips == 0 || !is_startable {
            return Cow::Borrowed(self);
        }
        let by = state.created_by.clone().unwrap_or_else(|| Actor::system("start"));
        let at = state.updated_at.unwrap_or(Timestamp::from_micros(0));
        self.after(&by, at, &[Command::Activate])
    }

    /// Returns the id of the plan.
    pub fn id(&self) -> &PlanId {
        &self.id
    }

    /// Returns the version: the number of writes so far.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the author's part.
    pub fn spec(&self) -> &PlanSpec {
        &self.spec
    }

    /// Returns the execution state.
    pub fn state(&self) -> &PlanState {
        &self.state
    }

    /// Returns a task by its id.
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.find(id).map(|number| self.at(number))
    }

    /// Iterates over all tasks in order, each with its depth (0 for roots).
    pub fn tasks(&self) -> impl Iterator<Item = (&Task, usize)> {
        let mut stack: Vec<(u32, usize)> = self.roots.iter().rev().map(|&number| (number, 0)).collect();
        std::iter::from_fn(move || {
            let (number, depth) = stack.pop()?;
            stack.extend(self.slot(number).children.iter().rev().map(|&child| (child, depth + 1)));
            Some((self.at(number), depth))
        })
    }

    /// Iterates over the tasks that have begun or ended, without reading the others.
    pub fn tasks_begun(&self) -> impl Iterator<Item = &Task> {
        let begun = |number: &u32| self.slot(*number).status != Status::Pending;
        self.order().into_iter().filter(begun).map(|number| self.at(number))
    }

    /// Iterates over the tasks that are ready to start, by priority.
    pub fn ready(&self) -> impl Iterator<Item = &Task> {
        self.ready.iter().map(|&(_, number)| self.at(number))
    }

    /// Iterates over the running tasks, without the queued ones.
    pub fn running(&self) -> impl Iterator<Item = &Task> {
        let begun = self.running.iter().filter(|&&number| !self.slot(number).queued);
        begun.map(|&number| self.at(number))
    }

    /// Iterates over the tasks held by a worker, queued or running: they have leases and hold locks.
    pub fn in_progress(&self) -> impl Iterator<Item = &Task> {
        self.running.iter().map(|&number| self.at(number))
    }

    /// Iterates over the tasks that wait for a person's answer.
    pub fn asking(&self) -> impl Iterator<Item = &Task> {
        self.asking.iter().map(|&number| self.at(number))
    }

    /// Returns the number of tasks that planning marked as atomic.
    pub fn atomic(&self) -> u32 {
        self.atomic
    }

    /// Iterates over the tasks that agents and people may claim now, by priority: not those that wait for their check.
    pub fn claimable(&self) -> impl Iterator<Item = &Task> {
        let offered = self.ready.iter().filter(|(_, number)| !self.slot(*number).reported);
        offered.map(|&(_, number)| self.at(number))
    }

    /// Returns the number of claimable tasks.
    pub fn claimable_total(&self) -> usize {
        self.ready.iter().filter(|(_, number)| !self.slot(*number).reported).count()
    }

    /// Returns the children of a task, in order.
    pub fn children(&self, id: &str) -> Vec<&Task> {
        let number = self.find(id);
        number.map_or_else(Vec::new, |number| {
            self.slot(number).children.iter().map(|&child| self.at(child)).collect()
        })
    }

    /// Returns the ids of the children of a task, or of the roots, in order. Reads no task.
    pub fn sibling_ids(&self, parent: Option<&str>) -> Vec<&str> {
        let numbers = match parent {
            None => Some(&self.roots),
            Some(parent) => self.find(parent).map(|number| &self.slot(number).children),
        };
        numbers.into_iter().flatten().map(|&number| self.id_of(number)).collect()
    }

    /// Returns the tasks of this plan that depend on a task.
    pub fn dependants(&self, id: &str) -> Vec<&Task> {
        let number = self.find(id);
        number.map_or_else(Vec::new, |number| {
            self.slot(number).after.iter().map(|&after| self.at(after)).collect()
        })
    }

    /// Returns the number of tasks by effective status, as the rows of a list of them show it. Reads all tasks.
    pub fn effective_counts(&self) -> Counts {
        let mut counts = self.counts();
        let live = (0..).zip(&self.slots).filter(|(_, slot)| slot.alive);
        for (number, slot) in live.filter(|(_, slot)| slot.status == Status::Pending && !slot.is_parent()) {
            let (of, from) = match slot {
                _ if self.is_disputed(number) => (&mut counts.disputed, &mut counts.blocked),
                slot if slot.held => (&mut counts.held, &mut counts.blocked),
                slot if slot.asking => (&mut counts.asking, &mut counts.blocked),
                slot if slot.ready && slot.reported => (&mut counts.reported, &mut counts.ready),
                _ => continue,
            };
            *of += 1;
            *from = from.saturating_sub(1);
        }
        counts
    }

    /// Returns the person who rejected the work of the plan as it is now, also if it was changed meanwhile and changed back.
    pub fn rejected_by(&self) -> Option<&Actor> {
        let state = &self.state;
        let is_draft = matches!(state.phase, Phase::Draft | Phase::AwaitingApproval);
        if state.rejections.is_empty() || !is_draft || !self.has_machine_work() {
            return None;
        }
        let now = self.work_digest_text();
        state.rejections.iter().find(|rejection| rejection.work == now).map(|rejection| &rejection.by)
    }

    /// Whether the person who stopped a draft cancelled the plan, and another clone opened it again: nobody rejected it.
    pub fn is_reopened_draft(&self) -> bool {
        let state = &self.state;
        let has_rejected = |by: &Actor| state.rejections.iter().any(|rejection| rejection.by == *by);
        state.stopped_by.as_ref().is_some_and(|by| !has_rejected(by))
    }

    /// Says who rejected the plan as it is now, and why; empty if nobody did.
    pub fn rejection(&self) -> String {
        let state = &self.state;
        if state.phase != Phase::Draft {
            return String::new();
        }
        match (&state.stopped_by, state.reason.as_str()) {
            (Some(by), _) if self.is_reopened_draft() => {
                format!("{by} cancelled it, and it was opened again in another clone")
            }
            (Some(by), "") => format!("{by} rejected it"),
            (Some(by), reason) => format!("{by} rejected it ({reason:?})"),
            // It was changed, and changed back: the reason of then is gone.
            (None, _) => self.rejected_by().map(|by| format!("{by} rejected it")).unwrap_or_default(),
        }
    }

    /// Returns the number of tasks by status. Counts reported tasks as ready, and asking and held ones as blocked, so
    /// that it need not read them.
    pub fn counts(&self) -> Counts {
        let count = |status: Status| self.counts[status as usize];
        let ready = self.ready.len() as u32;
        let queued = self.running.iter().filter(|&&number| self.slot(number).queued).count() as u32;
        Counts {
            total: self.counts.iter().sum(),
            ready,
            blocked: count(Status::Pending).saturating_sub(ready),
            queued,
            running: count(Status::Running).saturating_sub(queued),
            done: count(Status::Done),
            failed: count(Status::Failed),
            skipped: count(Status::Skipped),
            cancelled: count(Status::Cancelled),
            ..Counts::default()
        }
    }

    /// Returns the number of tasks, including parents.
    pub fn len(&self) -> usize {
        self.live as usize
    }

    /// Whether the plan has no tasks.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Whether any task waits for a task of another plan.
    pub fn waits_for_external(&self) -> bool {
        self.live().any(|slot| slot.elsewhere > slot.elsewhere_met)
    }

    /// Returns the effective status of a task. An open parent has that of the task below it that says most about what
    /// happens now: it is running only while one of them runs.
    pub fn effective_status(&self, id: &str) -> Option<EffectiveStatus> {
        self.find(id).map(|number| self.effective_status_of(number))
    }

    fn effective_status_of(&self, number: u32) -> EffectiveStatus {
        let slot = self.slot(number);
        match slot.status {
            Status::Pending if self.is_disputed(number) => EffectiveStatus::Disputed,
            Status::Pending if slot.held => EffectiveStatus::Held,
            Status::Pending if slot.is_parent() => self.status_below(number),
            Status::Pending if slot.asking => EffectiveStatus::Asking,
            Status::Pending if slot.ready && slot.reported => EffectiveStatus::Reported,
            Status::Pending if slot.ready => EffectiveStatus::Ready,
            Status::Pending => EffectiveStatus::Blocked,
            Status::Running if slot.queued => EffectiveStatus::Queued,
            Status::Running => EffectiveStatus::Running,
            Status::Done => EffectiveStatus::Done,
            Status::Failed => EffectiveStatus::Failed,
            Status::Skipped => EffectiveStatus::Skipped,
            Status::Cancelled => EffectiveStatus::Cancelled,
        }
    }

    /// Whether clones disagree about a task, so that a person has to decide. Reads only tasks that are held.
    fn is_disputed(&self, number: u32) -> bool {
        self.slot(number).held && self.at(number).state.held().is_some_and(Hold::is_dispute)
    }

    /// Returns the status of an open parent: the first of these that a task below it has, else blocked.
    fn status_below(&self, number: u32) -> EffectiveStatus {
        const SHOWN: [EffectiveStatus; 6] = [
            EffectiveStatus::Running,
            EffectiveStatus::Asking,
            EffectiveStatus::Disputed,
            EffectiveStatus::Reported,
            EffectiveStatus::Queued,
            EffectiveStatus::Ready,
        ];
        let mut first = SHOWN.len();
        let mut stack = vec![number];
        while let Some(number) = stack.pop().filter(|_| first > 0) {
            let slot = self.slot(number);
            if slot.is_parent() {
                stack.extend(&slot.children);
                continue;
            }
            let status = self.effective_status_of(number);
            first = SHOWN.iter().take(first).position(|shown| *shown == status).unwrap_or(first);
        }
        SHOWN.get(first).copied().unwrap_or(EffectiveStatus::Blocked)
    }

    /// Returns everything that keeps a pending task from starting at `at`; empty if nothing in its plan does.
    pub fn waiting(&self, id: &str, at: Timestamp) -> Vec<BlockReason> {
        const NAMES_MAX: usize = 20;
        let Some(number) = self.find(id) else { return Vec::new() };
        let slot = self.slot(number);
        if slot.status != Status::Pending {
            return Vec::new();
        }
        let mut waiting = Vec::new();
        match self.state.phase {
            Phase::Active => {}
            Phase::Draft if !self.state.approval_required && self.state.stopped_by.is_some() => {
                waiting.push(BlockReason::Phase(Phase::Draft));
            }
            Phase::Draft if !self.state.approval_required => {}
            Phase::Draft | Phase::AwaitingApproval => waiting.push(BlockReason::Approval),
            phase @ (Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled) => {
                waiting.push(BlockReason::Phase(phase));
            }
        }
        let mut at_number = number;
        while at_number != NONE {
            if self.slot(at_number).skip {
                waiting.push(BlockReason::Skip { task: self.name(at_number) });
            }
            if self.slot(at_number).verdict() != Verdict::Clear {
                waiting.push(BlockReason::Dependencies(self.unmet_names(at_number, NAMES_MAX)));
            }
            if let Some(hold) = self.hold_of(at_number) {
                let (task, by, reason) = (self.name(at_number), hold.by.to_string(), hold.reason.clone());
                waiting.push(match hold.is_dispute() {
                    true => BlockReason::Disputed { task },
                    false => BlockReason::Held { task, by, reason },
                });
            }
            at_number = self.slot(at_number).parent;
        }
        if let Some(until) = self.at(number).state.not_before.filter(|&until| until > at) {
            waiting.push(BlockReason::Until(until));
        }
        if let Some(question) = self.at(number).state.question() {
            waiting.push(BlockReason::Answer(question.text.clone()));
        }
        if slot.reported {
            waiting.push(BlockReason::Check);
        }
        waiting
    }

    /// Returns the outputs that a task gets from its dependencies, by the name they are provided under, else by the
    /// task's id. No name occurs twice: tasks with work keep theirs, then tasks of this plan. Others are given by their id, or not
    /// at all if that is the name of another one. Approved work gets what machines and people made under the name that was approved.
    pub fn outputs_for(&self, id: &str) -> Vec<(String, crate::Json)> {
        let Some(number) = self.find(id) else { return Vec::new() };
        let task = self.at(number);
        let mut found: Vec<GivenOutput<'_>> = Vec::new();
        for (place, dependency) in task.spec.depends_on.iter().enumerate() {
            match dependency {
                Dependency::Task(on) => {
                    let Some(on) = self.task(on.as_str()) else { continue };
                    let rank = u8::from(on.spec.work.is_none() && on.spec.check.is_none());
                    let (id, name) = (on.spec.id.to_string(), on.spec.provides.as_ref());
                    found.push(GivenOutput { rank, id, name, place, output: on.state.output.as_ref() });
                }
                Dependency::External(there) => {
                    let id = there.key();
                    let received = task.state.received.get(&id);
                    let name = received.and_then(|received| received.provides.as_ref());
                    let output = received.and_then(|received| received.output.as_ref());
                    found.push(GivenOutput { rank: 2, id, name, place, output });
                }
            }
        }
        // Not in the order in which the task names them, which no approval covers.
        found.sort_by(|a, b| (a.rank, &a.id).cmp(&(b.rank, &b.id)));
        found.dedup_by(|a, b| a.id == b.id);
        let mut names: HashSet<String> = HashSet::new();
        let mut outputs: Vec<(usize, String, crate::Json)> = Vec::new();
        for GivenOutput { id, name, place, output, .. } in found {
            let name = [name.unwrap_or(&id), &id].into_iter().find(|name| !names.contains(*name)).cloned();
            let Some(name) = name else { continue };
            names.insert(name.clone());
            outputs.extend(output.map(|output| (place, name, output.clone())));
        }
        outputs.sort_by_key(|(place, _, _)| *place);
        outputs.into_iter().map(|(_, name, output)| (name, output)).collect()
    }

    /// Resolves an id or an unambiguous prefix of one. A number is not cut short: `t1` does not stand for `t10`. On failure
    /// returns up to 11 candidates, so that a caller that shows ten knows whether there are more.
    pub fn resolve(&self, text: &str) -> Result<TaskId, Vec<TaskId>> {
        if let Some(number) = self.find(text) {
            return Ok(self.task_id(number));
        }
        let mut found: Vec<TaskId> =
            self.live_ids().filter(|id| is_prefix(text, id)).take(11).map(TaskId::trusted).collect();
        if found.len() == 1 { Ok(found.remove(0)) } else { Err(found) }
    }
}

/// What a task gets from one of its dependencies.
struct GivenOutput<'a> {
    /// Who keeps a name that several want: 0 for tasks with work or a check, 1 for other tasks of the plan, 2 for other plans.
    rank: u8,
    id: String,
    /// The name under which it is provided, if it is not the id.
    name: Option<&'a String>,
    /// Its place among the dependencies.
    place: usize,
    /// There is none yet, or none at all; the name is taken all the same.
    output: Option<&'a crate::Json>,
}

/// Whether the id begins with the text, and no number is cut short.
fn is_prefix(text: &str, id: &str) -> bool {
    let is_number_cut = |rest: &str| rest.starts_with(|next: char| next.is_ascii_digit());
    let ends_in_digit = text.ends_with(|last: char| last.is_ascii_digit());
    !text.is_empty() && id.strip_prefix(text).is_some_and(|rest| !(ends_in_digit && is_number_cut(rest)))
}
