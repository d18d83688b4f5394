//! Turns what one clone did into records: one version of its log, or a whole plan that is shared.
//!
//! The same version with the same known records gives the same bytes, so that records can be made whenever they are
//! needed, from the log. Only the tasks that the events name are read: the cost follows the change, not the plan.

mod facts;
mod pack;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

pub use self::pack::Stamp;

use self::facts::KnownFacts;
use self::pack::pack;
use crate::action::{Action, ListField, OutcomeKind, PlanStart, StartState, TaskStart};
use crate::field::Field;
use crate::ids::{RecordId, TaskRef};
use crate::merge::ConflictKind;
use crate::place::several_between;
use crate::record::{ParsedRecord, Record, RecordError};
use crate::set::{OperationSet, TaskKey};
use crate::travelling_work::TravellingWork;
use waypost_core::{
    Actor, ActorKind, Answer, Comment, Dependency, Event, Hold, Json, PLAN_ENDED, Phase, Plan, PlannerNotes,
    Status, StopKind, Task, TaskId, TaskState, Timestamp,
};

/// Above this number of new tasks the order of the whole plan is read.
const MANY: usize = 100;

/// Why a version cannot be written as records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeriveError {
    /// A record would break a limit.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Returns the records of one version, which led from `before` to `after` by these events. `known` is what its author had
/// seen: the records of the last import and those of the versions since. Without events the plans are compared. An import
/// has no records.
pub fn derive(
    known: &OperationSet,
    before: &Plan,
    after: &Plan,
    events: &[Event],
    stamp: &Stamp,
) -> Result<Vec<Record>, DeriveError> {
    if events.iter().any(|event| matches!(event, Event::PlanMerged { .. })) {
        return Ok(Vec::new());
    }
    if events.iter().any(|event| matches!(event, Event::PlanCreated { .. })) {
        return share(known, after, stamp);
    }
    let mut change = Change::new(known, before, after, stamp);
    change.read(events);
    change.tasks();
    change.outcomes(events);
    change.plan(events);
    Ok(pack(known, stamp, change.actions)?)
}

/// Returns the records of a whole plan with the statuses of its tasks: a large plan takes several.
pub fn share(known: &OperationSet, plan: &Plan, stamp: &Stamp) -> Result<Vec<Record>, DeriveError> {
    let blank = Plan::blank(plan.id().clone());
    let mut change = Change::new(known, &blank, plan, stamp);
    let (spec, state) = (plan.spec().clone(), plan.state());
    let tokens: i64 = state.tokens_used;
    change.actions.push(Action::Create(Box::new(PlanStart {
        title: spec.title,
        goal: spec.goal,
        status: spec.status,
        owner: spec.owner,
        queue: spec.queue,
        token_budget: spec.token_budget,
        body: spec.body,
        foreign: spec.foreign,
        archived: state.archived,
        tokens,
        created_by: state.created_by.clone().filter(|by| *by != stamp.by),
    })));
    change.touched.extend(plan.tasks().map(|(task, _)| task.spec.id.clone()));
    change.tasks();
    if let Some(kind) = stop_of(plan) {
        let reason = if kind.is_end() { state.summary.clone() } else { state.reason.clone() };
        change.actions.push(Action::Stop { kind, reason, by: state.stopped_by.clone() });
    }
    change.approval();
    let mut records = pack(known, stamp, change.actions)?;
    let mut set = known.clone();
    for record in &records {
        set.insert(ParsedRecord::Known(Box::new(record.clone())));
    }
    for (task, _) in plan.tasks().filter(|(task, _)| !task.state.status.is_finished()) {
        records.extend(ask_again(&mut set, task, stamp)?);
    }
    Ok(records)
}

/// Returns the records of the questions that workers asked about a task, and of their answers: one each, because an answer
/// names the record of its question.
fn ask_again(set: &mut OperationSet, task: &Task, stamp: &Stamp) -> Result<Vec<Record>, RecordError> {
    let mut made = Vec::new();
    let Some(key) = KnownFacts::new(set).key(&task.spec.id) else { return Ok(made) };
    let task_ref = set.reference(&key);
    let mut add = |at: Timestamp, by: Actor, action: Action| {
        let record = set.record(at, by, stamp.from.clone(), vec![action])?;
        set.insert(ParsedRecord::Known(Box::new(record.clone())));
        let id = record.id();
        made.push(record);
        Ok::<RecordId, RecordError>(id)
    };
    let ask = |question: &str, choices: &[String]| Action::Ask {
        task: task_ref.clone(),
        question: question.to_owned(),
        choices: choices.to_vec(),
    };
    let counts = |given: &&Answer| given.by.kind == ActorKind::Person && !given.was_about_report();
    for given in task.state.answers().iter().filter(counts) {
        let asked = add(given.at, stamp.by.clone(), ask(&given.question, &[]))?;
        let (task, answer, over) = (task_ref.clone(), given.answer.clone(), vec![asked]);
        add(given.at, given.by.clone(), Action::Answer { task, answer, over })?;
    }
    if let Some(open) = task.state.question().filter(|open| !open.is_about_report()) {
        let by = Actor::of_worker(&open.by).unwrap_or_else(|| stamp.by.clone());
        add(open.asked_at, by, ask(&open.text, &open.choices))?;
    }
    Ok(made)
}

/// Returns the outcomes of a version whose author has not seen how the tasks ended in other clones. They stand beside those
/// outcomes. What its author has reported already is left out.
pub fn late_report(
    known: &OperationSet,
    before: &Plan,
    after: &Plan,
    events: &[Event],
    stamp: &Stamp,
) -> Vec<Action> {
    let mut change = Change::new(known, before, after, stamp);
    change.read(events);
    change.outcomes(events);
    let late = |action: Action| {
        let Action::Report { task, outcome, text, output, evidence, over } = action else { return None };
        let is_own = |id: &RecordId| {
            let record = known.get(*id).and_then(ParsedRecord::known);
            record.is_some_and(|record| (record.by(), record.from()) == (&stamp.by, &stamp.from))
        };
        let is_known = over.iter().any(is_own);
        (!is_known).then_some(Action::Report { task, outcome, text, output, evidence, over: Vec::new() })
    };
    change.actions.into_iter().filter_map(late).collect()
}

/// Returns how a plan is stopped by somebody.
fn stop_of(plan: &Plan) -> Option<StopKind> {
    let state = plan.state();
    match state.phase {
        Phase::Paused => Some(StopKind::Paused),
        Phase::Draft => state.stopped_by.is_some().then_some(StopKind::Rejected),
        Phase::Completed if state.closed => Some(StopKind::Completed),
        Phase::Failed if state.closed => Some(StopKind::Failed),
        Phase::Cancelled if state.closed => Some(StopKind::Cancelled),
        Phase::AwaitingApproval | Phase::Active | Phase::Completed | Phase::Failed | Phase::Cancelled => None,
    }
}

/// One version while it is read.
struct Change<'a> {
    known: KnownFacts<'a>,
    before: &'a Plan,
    after: &'a Plan,
    stamp: &'a Stamp,
    /// Tasks whose author's part, place or planning may have changed.
    touched: BTreeSet<TaskId>,
    removed: Vec<TaskId>,
    /// Tasks that need a new key of their place.
    moved: HashSet<TaskId>,
    /// Tasks that may have been opened again.
    reopened: BTreeSet<TaskId>,
    held: BTreeSet<TaskId>,
    /// Tasks whose labels or assignee may have changed.
    annotated: BTreeSet<TaskId>,
    actions: Vec<Action>,
}

impl<'a> Change<'a> {
    fn new(known: &'a OperationSet, before: &'a Plan, after: &'a Plan, stamp: &'a Stamp) -> Self {
        Self {
            known: KnownFacts::new(known),
            before,
            after,
            stamp,
            touched: BTreeSet::new(),
            removed: Vec::new(),
            moved: HashSet::new(),
            reopened: BTreeSet::new(),
            held: BTreeSet::new(),
            annotated: BTreeSet::new(),
            actions: Vec::new(),
        }
    }

    /// Finds out which tasks changed in which way.
    fn read(&mut self, events: &[Event]) {
        if events.is_empty() {
            self.compare_all();
        }
        for event in events {
            match event {
                Event::TasksAdded { tasks, .. } => {
                    self.touched.extend(tasks.iter().map(|task| task.id.clone()));
                    self.reopened.extend(tasks.iter().filter_map(|task| task.parent.clone()));
                }
                Event::TaskRevised { task } => {
                    self.touched.insert(task.id.clone());
                    self.reopened.insert(task.id.clone());
                    let was_skipped = self.before.task(task.id.as_str()).is_some_and(|old| old.spec.skip);
                    if was_skipped && !task.skip {
                        self.reopened.extend(self.before.with_members(std::slice::from_ref(&task.id)));
                    }
                }
                Event::TasksRemoved { tasks } => self.removed.extend(self.before.with_members(tasks)),
                Event::TaskMoved { task, .. } => {
                    self.touched.insert(task.clone());
                    self.moved.insert(task.clone());
                }
                Event::TasksReordered { parent, .. } => self.reordered(parent.as_ref()),
                Event::TasksReset { tasks } | Event::TasksRetried { tasks } => {
                    self.reopened.extend(tasks.iter().cloned());
                }
                Event::TaskFailed { task, .. } => {
                    self.reopened.insert(task.clone());
                }
                Event::TaskRefined { task, .. }
                | Event::DigestAttached { task, .. }
                | Event::TaskRolledBack { task, .. } => {
                    self.touched.insert(task.clone());
                }
                Event::TaskHeld { task, .. } | Event::TaskUnheld { task } => {
                    self.held.insert(task.clone());
                }
                Event::TaskLabeled { task, .. } | Event::TaskAssigned { task, .. } => {
                    self.annotated.insert(task.clone());
                }
                Event::PlanCreated { .. }
                | Event::PlanRevised { .. }
                | Event::PlanRestored { .. }
                | Event::PlanMerged { .. }
                | Event::ApprovalRequested { .. }
                | Event::PlanApproved { .. }
                | Event::StartRefused { .. }
                | Event::PlanRejected { .. }
                | Event::ApprovalVoided {}
                | Event::PlanActivated {}
                | Event::PlanPaused { .. }
                | Event::PlanResumed { .. }
                | Event::PlanFinished { .. }
                | Event::PlanArchived { .. }
                | Event::PlanUnarchived {}
                | Event::TaskQueued { .. }
                | Event::TaskStarted { .. }
                | Event::TaskProgressed { .. }
                | Event::TaskDone { .. }
                | Event::TaskReported { .. }
                | Event::TaskReleased { .. }
                | Event::QuestionAsked { .. }
                | Event::QuestionAnswered { .. }
                | Event::GateRecorded { .. }
                | Event::TaskSkipped { .. }
                | Event::TasksCancelled { .. }
                | Event::TokensCharged { .. }
                | Event::OutputReceived { .. }
                | Event::OutputWithdrawn { .. }
                | Event::TaskCommented { .. } => {}
            }
        }
        self.removed.retain(|task| self.after.task(task.as_str()).is_none());
        self.removed.sort();
        self.removed.dedup();
    }

    /// The events of the version are not known any more.
    fn compare_all(&mut self) {
        let mut parents: BTreeSet<Option<TaskId>> = BTreeSet::from([None]);
        for (task, _) in self.before.tasks() {
            if self.after.task(task.spec.id.as_str()).is_none() {
                self.removed.push(task.spec.id.clone());
            }
        }
        for (task, _) in self.after.tasks() {
            let id = &task.spec.id;
            match self.before.task(id.as_str()) {
                Some(old) if old == task => {}
                Some(old) => {
                    self.touched.insert(id.clone());
                    self.held.insert(id.clone());
                    self.annotated.insert(id.clone());
                    self.reopened.insert(id.clone());
                    if old.spec.parent != task.spec.parent {
                        self.moved.insert(id.clone());
                    }
                }
                None => {
                    self.touched.insert(id.clone());
                }
            }
            parents.extend(task.spec.parent.clone().map(Some));
        }
        parents.iter().for_each(|parent| self.reordered(parent.as_ref()));
    }

    /// Finds the fewest siblings that must get other places: those outside the longest part that kept its order.
    fn reordered(&mut self, parent: Option<&TaskId>) {
        let parent = parent.map(TaskId::as_str);
        let before: HashMap<&str, usize> =
            self.before.sibling_ids(parent).into_iter().enumerate().map(|(place, id)| (id, place)).collect();
        let after: Vec<(&str, usize)> = self
            .after
            .sibling_ids(parent)
            .into_iter()
            .filter_map(|id| before.get(id).map(|&place| (id, place)))
            .collect();
        let places: Vec<usize> = after.iter().map(|(_, place)| *place).collect();
        let stays = longest_increase(&places);
        for (number, (id, _)) in after.iter().enumerate() {
            if !stays[number] {
                self.moved.extend(TaskId::new(*id));
                self.touched.extend(TaskId::new(*id));
            }
        }
    }

    /// Returns how records refer to a task of the plan as it is now.
    fn reference(&self, task: &TaskId) -> TaskRef {
        let is_new = self.before.task(task.as_str()).is_none() && self.touched.contains(task);
        let key = if is_new { None } else { self.known.key(task) };
        key.map_or_else(|| TaskRef::in_same_record(task.clone()), |key| self.known.reference(&key))
    }

    fn dependency(&self, dependency: &Dependency) -> Value {
        match dependency {
            Dependency::Task(task) => Value::from(self.reference(task).to_string()),
            Dependency::External(there) => serde_json::to_value(there).unwrap_or_default(),
        }
    }

    /// Writes what changed in the author's part of tasks, additions first, parents before their children.
    fn tasks(&mut self) {
        let mut added: Vec<TaskId> = Vec::new();
        let mut changed: Vec<TaskId> = Vec::new();
        for id in &self.touched {
            match (self.before.task(id.as_str()), self.after.task(id.as_str())) {
                (None, Some(_)) => added.push(id.clone()),
                (Some(_), Some(_)) => changed.push(id.clone()),
                (_, None) => {}
            }
        }
        self.moved.extend(added.iter().cloned());
        let places = self.places();
        for id in self.parents_first(added) {
            let Some(task) = self.after.task(id.as_str()) else { continue };
            let place = places.get(&id).cloned().unwrap_or_else(|| "a0".to_owned());
            let start = self.start(task, place);
            self.actions.push(Action::Add(Box::new(start)));
        }
        for id in changed {
            self.revise(&id);
        }
        let moved: BTreeMap<&TaskId, &String> = places.iter().collect();
        let mut sets = Vec::new();
        for (id, place) in moved {
            if self.before.task(id.as_str()).is_none() {
                continue;
            }
            let Some(key) = self.known.key(id) else { continue };
            let over = self.known.facts(Some(&key), &Field::Place);
            let task = Some(self.known.reference(&key));
            sets.push(Action::Set { task, field: Field::Place, to: Value::from(place.as_str()), over });
        }
        self.actions.extend(sets);
        let removed: Vec<TaskKey> = self.removed.iter().filter_map(|task| self.known.key(task)).collect();
        if !removed.is_empty() {
            let tasks = removed.iter().map(|key| self.known.reference(key)).collect();
            self.actions.push(Action::Remove { tasks, over: self.known.set.waiting_about(&removed) });
        }
        for task in std::mem::take(&mut self.held) {
            self.set_hold(&task);
        }
        for task in std::mem::take(&mut self.annotated) {
            self.annotate(&task);
        }
    }

    /// Returns the writes of a field that the author of the version replaces.
    fn over(&self, task: Option<&TaskKey>, field: &Field) -> Vec<RecordId> {
        let kind = ConflictKind::Field(field.clone());
        self.known.replaced(self.stamp, task, &kind, self.known.writes(task, field))
    }

    /// Returns the outcomes and retries that the author of the version replaces, and whether an outcome is among those that
    /// are known.
    fn ends(&self, task: &TaskKey) -> (Vec<RecordId>, bool) {
        let (writes, has_outcome) = self.known.outcomes(task);
        (self.known.replaced(self.stamp, Some(task), &ConflictKind::Outcome, writes), has_outcome)
    }

    /// Returns tasks in an order that depends on the plan alone, parents before their children.
    fn parents_first(&self, tasks: Vec<TaskId>) -> Vec<TaskId> {
        if tasks.len() > MANY {
            let wanted: HashSet<TaskId> = tasks.into_iter().collect();
            let order = self.after.tasks().map(|(task, _)| task.spec.id.clone());
            return order.filter(|id| wanted.contains(id)).collect();
        }
        let above = |id: &TaskId| self.after.task(id.as_str())?.spec.parent.clone();
        let depth = |id: &TaskId| std::iter::successors(Some(id.clone()), above).count();
        let mut tasks: Vec<(usize, TaskId)> = tasks.into_iter().map(|id| (depth(&id), id)).collect();
        tasks.sort();
        tasks.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns new keys for the places of all moved tasks.
    fn places(&self) -> HashMap<TaskId, String> {
        let mut parents: BTreeSet<Option<TaskId>> = BTreeSet::new();
        for task in &self.moved {
            if let Some(task) = self.after.task(task.as_str()) {
                parents.insert(task.spec.parent.clone());
            }
        }
        let mut places: HashMap<TaskId, String> = HashMap::new();
        for parent in parents {
            let siblings = self.after.sibling_ids(parent.as_ref().map(TaskId::as_str));
            let is_moved = |id: &str| self.moved.contains(id);
            let key = |id: &str| {
                TaskId::new(id).ok().and_then(|id| self.known.key(&id)).and_then(|key| self.known.place(&key))
            };
            let mut left: Option<String> = None;
            let mut at = 0;
            while at < siblings.len() {
                if !is_moved(siblings[at]) {
                    at += 1;
                    continue;
                }
                if at > 0 && (left.is_none() || !is_moved(siblings[at - 1])) {
                    let known = TaskId::new(siblings[at - 1]).ok().and_then(|id| places.get(&id).cloned());
                    left = known.or_else(|| key(siblings[at - 1]));
                }
                let mut end = at;
                // Neighbours with one key leave no room between them: then they get new keys, too.
                let keys = loop {
                    while end < siblings.len() && is_moved(siblings[end]) {
                        end += 1;
                    }
                    let right = siblings.get(end).and_then(|id| key(id));
                    if let Some(keys) = several_between(left.as_deref(), right.as_deref(), end - at) {
                        break keys;
                    }
                    if end == siblings.len() {
                        break Vec::new();
                    }
                    end += 1;
                };
                left = keys.last().cloned().or(left);
                for (id, key) in siblings[at..end].iter().zip(keys) {
                    places.extend(TaskId::new(*id).ok().map(|id| (id, key)));
                }
                at = end;
            }
        }
        places
    }

    /// Returns what a task is added with.
    fn start(&self, task: &Task, place: String) -> TaskStart {
        let (spec, state) = (&task.spec, &task.state);
        let notes = spec.thinking.as_deref().cloned().unwrap_or_default();
        let PlannerNotes { refinement, reasoning, tokens, graph_node_id, digest } = notes;
        TaskStart {
            task: spec.id.clone(),
            place,
            parent: spec.parent.as_ref().map(|parent| self.reference(parent)),
            description: spec.description.clone(),
            depends_on: distinct(spec.depends_on.iter().map(|on| self.dependency(on))),
            when: spec.when,
            complexity: spec.complexity,
            notes: spec.notes.clone(),
            tools: spec.tools.clone().unwrap_or_default(),
            skip: spec.skip,
            locks: spec.locks.clone(),
            work: spec.work.as_deref().map(TravellingWork::of),
            check: spec.check.as_deref().map(TravellingWork::of),
            retry: spec.retry.as_deref().copied(),
            timeout_seconds: spec.timeout_seconds,
            priority: spec.priority,
            provides: spec.provides.clone(),
            refinement,
            reasoning,
            graph_node_id,
            digest: digest.as_ref().map(Json::of),
            tokens,
            foreign: spec.foreign.clone(),
            held: state.held().filter(|hold| travels(hold)).cloned(),
            state: self.start_state(task),
            labels: state.labels().to_vec(),
            assignee: state.assignee().map(str::to_owned),
            comments: state.comments().to_vec(),
        }
    }

    /// Returns how a task had ended, if that does not follow from others.
    fn start_state(&self, task: &Task) -> Option<StartState> {
        let state = &task.state;
        let start = |outcome, text: &Option<String>| {
            let by = state.stopped_by().cloned();
            Some(StartState { outcome, text: text.clone(), output: state.output.clone(), by })
        };
        if !self.after.sibling_ids(Some(task.spec.id.as_str())).is_empty() {
            return None;
        }
        if let Some(report) = state.reported() {
            let (text, output) = (report.result.clone(), report.output.clone());
            return Some(StartState { outcome: OutcomeKind::Reported, text, output, by: None });
        }
        match state.status {
            Status::Pending | Status::Running => None,
            Status::Done => start(OutcomeKind::Done, &state.result),
            Status::Failed => start(OutcomeKind::Failed, &state.error),
            Status::Skipped if state.because_of.is_some() || self.is_in_skipped(task) => None,
            Status::Skipped => start(OutcomeKind::Skipped, &state.reason),
            Status::Cancelled => start(OutcomeKind::Cancelled, &state.reason),
        }
    }

    /// Whether the author skips a task, or one above it.
    fn is_in_skipped(&self, task: &Task) -> bool {
        let above = |task: &&'a Task| self.after.task(task.spec.parent.as_ref()?.as_str());
        let first = self.after.task(task.spec.id.as_str());
        std::iter::successors(first, above).any(|task| task.spec.skip)
    }

    /// Writes the fields and elements of a task that differ.
    fn revise(&mut self, id: &TaskId) {
        let (Some(old), Some(new)) = (self.before.task(id.as_str()), self.after.task(id.as_str())) else {
            return;
        };
        let (old, new) = (&old.spec, &new.spec);
        if old == new {
            return;
        }
        let Some(key) = self.known.key(id) else { return };
        let task = self.known.reference(&key);
        let mut actions = Vec::new();
        if old.parent != new.parent {
            let to = new
                .parent
                .as_ref()
                .map_or(Value::Null, |parent| Value::from(self.reference(parent).to_string()));
            let over = self.over(Some(&key), &Field::Parent);
            actions.push(Action::Set { task: Some(task.clone()), field: Field::Parent, to, over });
        }
        let formats: BTreeSet<&String> = old.foreign.0.keys().chain(new.foreign.0.keys()).collect();
        let foreign = formats.into_iter().map(|format| Field::Foreign(format.clone()));
        for field in Field::OF_TASK.into_iter().chain(foreign) {
            let to = field.of_task(new);
            if field.of_task(old) != to {
                let over = self.over(Some(&key), &field);
                actions.push(Action::Set { task: Some(task.clone()), field, to, over });
            }
        }
        let dependencies = |list: &[Dependency]| distinct(list.iter().map(|on| self.dependency(on)));
        let locks = |spec: &waypost_core::TaskSpec| {
            let locks = spec.locks.iter().map(|lock| serde_json::to_value(lock).unwrap_or_default());
            distinct(locks)
        };
        let tools = |spec: &waypost_core::TaskSpec| {
            distinct(spec.tools.iter().flatten().map(|tool| Value::from(tool.as_str())))
        };
        let gone = |on: &&Dependency| on.here().is_some_and(|on| self.after.task(on.as_str()).is_none());
        // Dependencies on tasks that are removed go with them.
        let old_dependencies: Vec<Dependency> =
            old.depends_on.iter().filter(|on| !gone(on)).cloned().collect();
        for (list, before, after) in [
            (ListField::DependsOn, dependencies(&old_dependencies), dependencies(&new.depends_on)),
            (ListField::Locks, locks(old), locks(new)),
            (ListField::Tools, tools(old), tools(new)),
        ] {
            for item in before.iter().filter(|item| !after.contains(item)) {
                let over = self.known.inclusions(&key, list, item);
                actions.push(Action::Exclude { task: task.clone(), list, item: item.clone(), over });
            }
            for item in after.into_iter().filter(|item| !before.contains(item)) {
                actions.push(Action::Include { task: task.clone(), list, item });
            }
        }
        self.actions.extend(actions);
    }

    fn set_hold(&mut self, id: &TaskId) {
        let held = |plan: &'a Plan| {
            let hold = plan.task(id.as_str()).and_then(|task| task.state.held());
            hold.filter(|hold| travels(hold))
        };
        let (old, new) = (held(self.before), held(self.after));
        let Some(key) = self.known.key(id).filter(|_| old != new && self.before.task(id.as_str()).is_some())
        else {
            return;
        };
        let over = self.known.facts(Some(&key), &Field::Held);
        let to = serde_json::to_value(new).unwrap_or_default();
        self.actions.push(Action::Set {
            task: Some(self.known.reference(&key)),
            field: Field::Held,
            to,
            over,
        });
    }

    /// Writes which labels a task got and lost, and who is to take care of it now.
    fn annotate(&mut self, id: &TaskId) {
        let (Some(old), Some(new)) = (self.before.task(id.as_str()), self.after.task(id.as_str())) else {
            return;
        };
        let Some(key) = self.known.key(id) else { return };
        let (old, new, task) = (&old.state, &new.state, self.known.reference(&key));
        let list = ListField::Labels;
        for label in old.labels().iter().filter(|label| !new.labels().contains(label)) {
            let item = Value::from(label.as_str());
            let over = self.known.inclusions(&key, list, &item);
            self.actions.push(Action::Exclude { task: task.clone(), list, item, over });
        }
        for label in new.labels().iter().filter(|label| !old.labels().contains(label)) {
            let item = Value::from(label.as_str());
            self.actions.push(Action::Include { task: task.clone(), list, item });
        }
        if old.assignee() != new.assignee() {
            let (field, to) = (Field::Assignee, new.assignee().map_or(Value::Null, Value::from));
            let over = self.over(Some(&key), &field);
            self.actions.push(Action::Set { task: Some(task), field, to, over });
        }
    }

    /// Writes a comment. A task that is new is added with its comments.
    fn comment(&mut self, task: &TaskId, comment: Comment) {
        let is_here = |plan: &Plan| plan.task(task.as_str()).is_some();
        if !is_here(self.before) || !is_here(self.after) {
            return;
        }
        let Comment { by, at, text } = comment;
        let (by, at) =
            (Some(by).filter(|by| *by != self.stamp.by), Some(at).filter(|at| *at != self.stamp.at));
        let task = self.reference(task);
        self.actions.push(Action::Comment { task, text, by, at });
    }

    /// Writes how tasks ended, that they are to be done again, who works on them and what they cost.
    fn outcomes(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::TaskDone { task, result, output, evidence } => {
                    let evidence = evidence.as_deref().map(Json::of);
                    self.report(task, OutcomeKind::Done, (result.clone(), output.clone()), evidence);
                }
                Event::TaskReported { task, result, output, .. } => {
                    self.report(task, OutcomeKind::Reported, (result.clone(), output.clone()), None);
                }
                Event::TaskFailed { task, error, again_at: None, evidence } => {
                    let evidence = evidence.as_deref().map(Json::of);
                    self.report(task, OutcomeKind::Failed, (Some(error.clone()), None), evidence);
                }
                Event::TaskSkipped { task, reason, .. } => {
                    self.report(task, OutcomeKind::Skipped, (reason.clone(), None), None);
                }
                Event::TasksCancelled { tasks, reason, .. } => {
                    for task in tasks {
                        self.report(task, OutcomeKind::Cancelled, (Some(reason.clone()), None), None);
                    }
                }
                Event::TaskQueued { task, worker, .. } | Event::TaskStarted { task, worker, .. } => {
                    let was_taken = self
                        .before
                        .task(task.as_str())
                        .is_some_and(|old| old.state.status == Status::Running);
                    if !was_taken {
                        let (task, worker) = (self.reference(task), worker.clone());
                        self.actions.push(Action::Claim { task, worker });
                    }
                }
                // What a run asks about a report, it asks here.
                Event::QuestionAsked { question, .. } if question.is_about_report() => {}
                Event::QuestionAsked { task, question } => {
                    let (task, choices) = (self.reference(task), question.choices.clone());
                    self.actions.push(Action::Ask { task, question: question.text.clone(), choices });
                }
                Event::QuestionAnswered { task, answer, .. } => {
                    let asked = self.before.task(task.as_str()).and_then(|old| old.state.question());
                    let (Some(asked), Some(key)) = (asked, self.known.key(task)) else { continue };
                    let over = self.known.questions(&key, &asked.text);
                    if over.is_empty() {
                        continue;
                    }
                    let (task, answer) = (self.reference(task), answer.clone());
                    self.actions.push(Action::Answer { task, answer, over });
                }
                Event::TaskCommented { task, by, text, at, .. } => {
                    let at = at.unwrap_or(self.stamp.at);
                    self.comment(task, Comment { by: by.clone(), at, text: text.clone() });
                }
                Event::TaskRefined { task, tokens, .. } | Event::DigestAttached { task, tokens, .. } => {
                    self.charge(Some(task), *tokens, false);
                }
                Event::TokensCharged { task, tokens, .. } => self.charge(task.as_ref(), *tokens, false),
                Event::TaskRolledBack { task, tokens } => self.charge(Some(task), *tokens, true),
                Event::PlanCreated { .. }
                | Event::PlanRevised { .. }
                | Event::PlanRestored { .. }
                | Event::PlanMerged { .. }
                | Event::TasksAdded { .. }
                | Event::TaskRevised { .. }
                | Event::TasksRemoved { .. }
                | Event::TaskMoved { .. }
                | Event::TasksReordered { .. }
                | Event::TasksReset { .. }
                | Event::ApprovalRequested { .. }
                | Event::PlanApproved { .. }
                | Event::StartRefused { .. }
                | Event::PlanRejected { .. }
                | Event::ApprovalVoided {}
                | Event::PlanActivated {}
                | Event::PlanPaused { .. }
                | Event::PlanResumed { .. }
                | Event::PlanFinished { .. }
                | Event::PlanArchived { .. }
                | Event::PlanUnarchived {}
                | Event::TaskProgressed { .. }
                | Event::TaskFailed { .. }
                | Event::TaskReleased { .. }
                | Event::GateRecorded { .. }
                | Event::TasksRetried { .. }
                | Event::OutputReceived { .. }
                | Event::OutputWithdrawn { .. }
                | Event::TaskHeld { .. }
                | Event::TaskUnheld { .. }
                | Event::TaskLabeled { .. }
                | Event::TaskAssigned { .. } => {}
            }
        }
        if events.is_empty() {
            self.compare_outcomes();
            self.compare_comments();
        }
        self.settle_tokens();
        for task in self.left_alone() {
            // Its end was that of its children; now it is its own.
            let state = self.after.task(task.as_str()).and_then(|task| self.start_state(task));
            match state {
                Some(StartState { outcome, text, output, .. }) => {
                    self.report(&task, outcome, (text, output), None)
                }
                None => self.forget_outcome(&task),
            }
        }
        for task in std::mem::take(&mut self.reopened) {
            self.reopen(&task);
        }
    }

    /// Returns the tasks that had children and have none.
    fn left_alone(&self) -> BTreeSet<TaskId> {
        let parent = |task: &TaskId| self.before.task(task.as_str())?.spec.parent.clone();
        let left = self.removed.iter().chain(&self.moved).filter_map(parent);
        let is_alone = |task: &TaskId| {
            self.after.task(task.as_str()).is_some() && self.after.sibling_ids(Some(task.as_str())).is_empty()
        };
        left.filter(is_alone).collect()
    }

    fn compare_outcomes(&mut self) {
        let mut ended = Vec::new();
        for (task, _) in self.after.tasks() {
            let old = self.before.task(task.spec.id.as_str());
            let is_same = |old: &Task| outcome_of(&old.state) == outcome_of(&task.state);
            if old.is_some_and(|old| !is_same(old))
                && let Some(start) = self.start_state(task)
            {
                ended.push((task.spec.id.clone(), start));
            }
        }
        for (task, StartState { outcome, text, output, .. }) in ended {
            self.report(&task, outcome, (text, output), None);
        }
    }

    fn compare_comments(&mut self) {
        let mut written = Vec::new();
        for (task, _) in self.after.tasks() {
            let Some(old) = self.before.task(task.spec.id.as_str()) else { continue };
            let new = task.state.comments().iter().filter(|new| !old.state.comments().contains(new));
            written.extend(new.map(|comment| (task.spec.id.clone(), comment.clone())));
        }
        for (task, comment) in written {
            self.comment(&task, comment);
        }
    }

    fn report(
        &mut self,
        task: &TaskId,
        outcome: OutcomeKind,
        (text, output): (Option<String>, Option<Json>),
        evidence: Option<Json>,
    ) {
        self.reopened.remove(task);
        if self.after.task(task.as_str()).is_none() {
            return;
        }
        let key = self.known.key(task);
        let over = key.map(|key| self.ends(&key).0).unwrap_or_default();
        let task = self.reference(task);
        self.actions.push(Action::Report { task, outcome, text, output, evidence, over });
    }

    /// Writes that a task is to be done again, if it had an outcome and has none now.
    fn reopen(&mut self, task: &TaskId) {
        let has_outcome = |state: &TaskState| state.status.is_finished() || state.reported().is_some();
        let (Some(old), Some(new)) = (self.before.task(task.as_str()), self.after.task(task.as_str())) else {
            return;
        };
        let is_group = !self.after.sibling_ids(Some(task.as_str())).is_empty();
        // A skip that follows from others, or from the author's wish, is no outcome.
        let follows = new.state.status == Status::Skipped
            && old.state.status != Status::Skipped
            && (new.state.because_of.is_some() || self.is_in_skipped(new));
        if !is_group && has_outcome(&old.state) && (follows || !has_outcome(&new.state)) {
            self.forget_outcome(task);
        }
    }

    /// Writes that the outcome of a task does not count any more, if it has one.
    fn forget_outcome(&mut self, task: &TaskId) {
        self.reopened.remove(task);
        let Some(key) = self.known.key(task) else { return };
        let (over, has_outcome) = self.ends(&key);
        if has_outcome {
            self.actions.push(Action::Retry { task: self.known.reference(&key), over });
        }
    }

    fn charge(&mut self, task: Option<&TaskId>, tokens: i64, moved: bool) {
        if tokens != 0 {
            let task = task.filter(|task| self.after.task(task.as_str()).is_some());
            let task = task.map(|task| self.reference(task));
            self.actions.push(Action::Charge { task, tokens, moved });
        }
    }

    /// Writes what an edit did to the tokens of tasks: a text that replaces a task has none of them.
    fn settle_tokens(&mut self) {
        let mut charged: HashMap<TaskId, i64> = HashMap::new();
        for action in &self.actions {
            if let Action::Charge { task: Some(task), tokens, .. } = action {
                *charged.entry(task.name.clone()).or_default() += tokens;
            }
        }
        let tokens = |plan: &Plan, task: &TaskId| {
            plan.task(task.as_str()).map(|task| task.spec.thinking.as_ref().map_or(0, |notes| notes.tokens))
        };
        for task in self.touched.clone() {
            let (Some(old), Some(new)) = (tokens(self.before, &task), tokens(self.after, &task)) else {
                continue;
            };
            let name = self.reference(&task).name;
            let left = new - old - charged.get(&name).copied().unwrap_or_default();
            self.charge(Some(&task), left, true);
        }
    }

    /// Writes what changed of the plan itself.
    fn plan(&mut self, events: &[Event]) {
        let is_revised = |event: &Event| matches!(event, Event::PlanRevised { .. });
        if events.is_empty() || events.iter().any(is_revised) {
            let (old, new) = (self.before.spec(), self.after.spec());
            let formats: BTreeSet<&String> = old.foreign.0.keys().chain(new.foreign.0.keys()).collect();
            let foreign = formats.into_iter().map(|format| Field::Foreign(format.clone()));
            for field in Field::OF_PLAN.into_iter().chain(foreign) {
                let to = field.of_plan(new);
                if field.of_plan(old) != to {
                    let over = self.over(None, &field);
                    self.actions.push(Action::Set { task: None, field, to, over });
                }
            }
        }
        let (old, new) = (self.before.state(), self.after.state());
        if old.archived != new.archived {
            let over = self.known.facts(None, &Field::Archived);
            let to = Value::from(new.archived);
            self.actions.push(Action::Set { task: None, field: Field::Archived, to, over });
            let over = self.known.deletes();
            if old.archived && !over.is_empty() {
                self.actions.push(Action::Dismiss { over });
            }
        }
        let (was, is) = (stop_of(self.before), stop_of(self.after));
        let is_opened = self.before.state().phase.is_finished() && !self.after.state().phase.is_finished();
        if was.is_some() && was != is || is_opened {
            let over = self.known.stops();
            let is_resumed = !over.is_empty();
            if is_resumed {
                self.actions.push(Action::Resume { over });
            }
            if is_opened || is_resumed {
                self.keep_cancelled();
            }
        }
        if let Some(kind) = is
            && (was != is || (&old.stopped_by, &old.summary) != (&new.stopped_by, &new.summary))
        {
            let reason = if kind.is_end() { new.summary.clone() } else { new.reason.clone() };
            self.actions.push(Action::Stop { kind, reason, by: new.stopped_by.clone() });
        }
        if old.approval != new.approval {
            self.approval();
        }
    }

    /// Writes what stays cancelled although the end of the plan does not hold any more.
    fn keep_cancelled(&mut self) {
        let mut cancelled = Vec::new();
        for (task, _) in self.after.tasks() {
            let by_end =
                task.state.status == Status::Cancelled && task.state.reason.as_deref() == Some(PLAN_ENDED);
            let is_group = || !self.after.sibling_ids(Some(task.spec.id.as_str())).is_empty();
            if by_end && !is_group() {
                cancelled.push(task.spec.id.clone());
            }
        }
        for task in cancelled {
            self.report(&task, OutcomeKind::Cancelled, (Some(PLAN_ENDED.to_owned()), None), None);
        }
    }

    /// Writes an approval that counts in every clone.
    fn approval(&mut self) {
        let Some(approval) = &self.after.state().approval else { return };
        let attestation = approval.work.as_ref().and_then(|work| work.attestation.as_ref());
        if attestation.and_then(|one| one.signature.as_ref()).is_some_and(|signature| signature.portable) {
            self.actions.push(Action::Approve { approval: Json::of(approval) });
        }
    }
}

/// Whether a hold is somebody's, and not the sign of an open question of a merge.
fn travels(hold: &Hold) -> bool {
    !hold.is_dispute()
}

fn outcome_of(state: &TaskState) -> (Status, Option<&String>, Option<&Json>, bool) {
    (
        state.status,
        state.result.as_ref().or(state.error.as_ref()),
        state.output.as_ref(),
        state.reported().is_some(),
    )
}

fn distinct(items: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut known: HashSet<String> = HashSet::new();
    items.filter(|item| known.insert(item.to_string())).collect()
}

/// Returns which numbers belong to a longest increasing part of a list.
fn longest_increase(list: &[usize]) -> Vec<bool> {
    // `ends[n]` is the place of the smallest number at which an increasing part of length n + 1 can end.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), vec![None; list.len()]);
    for (place, number) in list.iter().enumerate() {
        let length = ends.partition_point(|&end| list[end] < *number);
        before[place] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(place);
        } else {
            ends[length] = place;
        }
    }
    let mut kept = vec![false; list.len()];
    let mut at = ends.last().copied();
    while let Some(place) = at {
        kept[place] = true;
        at = before[place];
    }
    kept
}
