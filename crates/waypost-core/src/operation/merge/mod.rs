//! Merges a set of records by meaning: the plan is a function of the set alone.
//!
//! Facts are the writes that no other write names. They are collected first; then the structural ones are added, oldest
//! first, and what would break the plan is set aside. It is not a replay: states between do not matter. Nothing here may
//! depend on trust, configuration or time, or clones would come to different plans.

mod pending;
mod reading;
mod register;
mod result;
mod structure;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

pub(crate) use self::result::VersionValue;
pub use self::result::{
    ActionDisposition, AnswerKind, Claim, Conflict, ConflictKind, ConflictVersion, Disposition, Merged,
    OpenQuestion, ProposedAnswer, Renamed, SharedApproval, SharedStop,
};

use self::pending::{Pending, Side, SideAct};
use self::reading::{At, Inclusion, Item, OutcomeWrite, Reading};
use self::register::{Write, merged, replaced_by};
use self::structure::{Candidate, Edge, build};
use super::action::{ListField, OutcomeKind, StopKind, TaskStart};
use super::causality::Causality;
use super::field::{Contest, Field};
use super::ids::{RecordId, TaskRef};
use super::set::{OperationSet, TaskKey};
use crate::{
    Actor, ActorKind, Dependency, Digest, Draft, FORMAT, Hold, Lock, LockMode, Phase, PlannerNotes, Status,
    Task, TaskExtras, TaskId, TaskSpec, TaskState, Timestamp, Work, limits,
};

/// The name of the system actor that holds tasks while a question about them is open.
const MERGE_ACTOR: &str = "merge";

/// Whether a hold is nobody's, but the sign of an open question of a merge.
pub fn is_dispute(hold: &Hold) -> bool {
    hold.by.kind == ActorKind::System && hold.by.name == MERGE_ACTOR
}

/// The reason of tasks that were open when the author of the plan ended it.
pub(crate) const PLAN_ENDED: &str = "the plan was ended";

/// Merges the records of a plan.
pub fn merge(set: &OperationSet) -> Merged {
    let reading = Reading::of(set);
    let count = reading.tasks.len();
    let keys =
        reading.tasks.iter().map(|task| TaskKey { record: task.record, name: task.start.task.clone() });
    let keys = keys.collect();
    let specs = reading.tasks.iter().map(|task| spec_of(task.start)).collect();
    let merge = Merge {
        set,
        reading,
        keys,
        specs,
        states: vec![TaskState::default(); count],
        held: vec![None; count],
        annotations: HashMap::new(),
        moved: HashMap::new(),
        places: vec![Vec::new(); count],
        gone: vec![None; count],
        disputed: HashSet::new(),
        pending: Vec::new(),
        causality: None,
    };
    merge.run()
}

/// The dependencies of each task, with the place of each in the total order.
type Dependencies = HashMap<u32, Vec<((u32, u32, u32), u32)>>;

/// One value that a task's place can have, and where it comes from: `None` is the place with which the task was added.
#[derive(Clone)]
struct PlaceOfTask {
    at: At,
    parent: Option<u32>,
    is_fact: bool,
    is_set: bool,
}

struct Merge<'a> {
    set: &'a OperationSet,
    reading: Reading<'a>,
    keys: Vec<TaskKey>,
    specs: Vec<TaskSpec>,
    states: Vec<TaskState>,
    held: Vec<Option<Hold>>,
    /// The keys of the places of tasks that were moved among their siblings.
    moved: HashMap<u32, (&'a str, At)>,
    /// The labels, assignees and comments of the tasks that have any.
    annotations: HashMap<u32, TaskExtras>,
    /// The possible parents of each task, best first.
    places: Vec<Vec<PlaceOfTask>>,
    /// The removal by which each task is gone.
    gone: Vec<Option<RecordId>>,
    /// Tasks that must not start before a question is answered.
    disputed: HashSet<u32>,
    pending: Vec<Pending<'a>>,
    causality: Option<Causality>,
}

impl<'a> Merge<'a> {
    fn run(mut self) -> Merged {
        let removals_set_aside = self.remove();
        self.set_fields();
        let mut plan = self.plan_fields();
        self.end_tasks();
        let (parents, dependencies) = self.structure();
        self.lists(&dependencies);
        self.comment();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.specs.len()];
        let mut roots = Vec::new();
        for task in (0..self.specs.len() as u32).filter(|&task| self.is_here(task)) {
            match parents[task as usize] {
                Some(parent) => children[parent as usize].push(task),
                None => roots.push(task),
            }
        }
        self.keep_groups_without_work(&children);
        let removed = |merge: &Self, tasks: &[u32]| {
            let (mut family, mut at) = (tasks.to_vec(), 0);
            let mut seen: HashSet<u32> = family.iter().copied().collect();
            while at < family.len() {
                family.extend(children[family[at] as usize].iter().filter(|&&child| seen.insert(child)));
                at += 1;
            }
            family.retain(|&task| merge.is_here(task));
            family
        };
        for (at, named, by) in removals_set_aside {
            let tasks = removed(&self, &named);
            let action = self.reading.action_ref(at);
            let record = self.reading.record(at);
            let unseen = self.act_on(by, &named);
            let named: Vec<u32> = named.into_iter().filter(|&task| self.is_here(task)).collect();
            let words = format!("removed {}", vec!["{}"; named.len()].join(", "));
            let by_record = self.reading.records[by as usize];
            self.pending.push(Pending {
                task: tasks.first().copied(),
                kind: ConflictKind::Removal,
                sides: vec![
                    Side { record, to: VersionValue::Shown, act: Some(SideAct::new(words, named)) },
                    Side { record: by_record, to: VersionValue::Shown, act: Some(unseen) },
                ],
                shown: None,
                answers: &[AnswerKind::Keep, AnswerKind::Remove],
                tasks,
                item: None,
                actions: vec![action],
                by: Some(self.reading.records[by as usize]),
            });
        }
        let names = self.names();
        let order = self.order(roots, &children);
        self.finish(&mut plan, &parents, &dependencies, &children, &order, &names)
    }

    fn is_here(&self, task: u32) -> bool {
        self.gone[task as usize].is_none()
    }

    fn saw_each(&mut self, record: u32, others: &[u32]) -> Vec<bool> {
        let reading = &self.reading;
        let causality = self.causality.get_or_insert_with(|| {
            let numbers: HashMap<RecordId, u32> = reading
                .records
                .iter()
                .enumerate()
                .map(|(number, record)| (record.id(), number as u32))
                .collect();
            let parents = reading.records.iter().map(|record| {
                record.parents().iter().filter_map(|parent| numbers.get(parent)).copied().collect()
            });
            Causality::of(parents.collect())
        });
        causality.saw_each(record, others)
    }

    /// Decides which removals hold: those whose authors had seen everything that touches their tasks. Returns the others,
    /// with a record that they had not seen.
    fn remove(&mut self) -> Vec<(At, Vec<u32>, u32)> {
        let mut set_aside = Vec::new();
        for (at, tasks, over) in std::mem::take(&mut self.reading.removals) {
            if let Some(by) = self.reading.dismissed.get(&self.reading.action_ref(at)) {
                let by = *by;
                self.reading.disposition(at, Disposition::Dismissed { by });
                continue;
            }
            let mut touches: Vec<u32> =
                tasks.iter().filter_map(|task| self.reading.touches.get(task)).flatten().copied().collect();
            touches.sort_unstable();
            touches.dedup();
            touches.retain(|&touch| !over.contains(&self.reading.records[touch as usize].id()));
            let saw = self.saw_each(at.0, &touches);
            match touches.iter().zip(saw).find(|(_, saw)| !saw) {
                Some((by, _)) => set_aside.push((at, tasks, *by)),
                None => {
                    let by = self.reading.record(at).id();
                    tasks.iter().for_each(|&task| self.gone[task as usize] = Some(by));
                }
            }
        }
        set_aside.retain(|(at, tasks, by)| {
            let removals: Vec<Option<RecordId>> =
                tasks.iter().map(|&task| self.gone[task as usize]).collect();
            // Others removed all of it, having seen everything.
            if let Some(Some(by)) =
                removals.iter().all(Option::is_some).then(|| removals.last().copied().flatten())
            {
                self.reading.disposition(*at, Disposition::Superseded { by });
                return false;
            }
            let (why, by) = (
                "it would remove what its author had not seen".to_owned(),
                self.reading.records[*by as usize].id(),
            );
            self.reading.disposition(*at, Disposition::SetAside { why, by: Some(by) });
            true
        });
        set_aside
    }

    /// Says what a record did to one of these tasks.
    fn act_on(&self, number: u32, tasks: &[u32]) -> SideAct {
        use super::action::Action;
        let record = self.reading.records[number as usize];
        let resolve = |task: &TaskRef| self.reading.resolve(self.set, task, record);
        let meant =
            |value: &Value| resolve(&value.as_str()?.parse().ok()?).filter(|task| tasks.contains(task));
        for (index, action) in record.actions().iter().enumerate() {
            if let Action::Add(start) = action {
                let at = (number, index as u32);
                let Some(added) = self.reading.tasks.iter().position(|task| task.at == at) else { continue };
                let parent = start.parent.as_ref().and_then(resolve).filter(|task| tasks.contains(task));
                let act = match (parent, start.depends_on.iter().find_map(meant)) {
                    (Some(parent), _) => ("added {} below {}", parent),
                    (None, Some(on)) => ("added {}, which depends on {}", on),
                    (None, None) => continue,
                };
                return SideAct::new(act.0, [added as u32, act.1]);
            }
            if let Action::Dismiss { .. } = action {
                return SideAct::new("wanted to keep {}", tasks.first().copied());
            }
            let Some(task) = super::set::tasks_of(action).next().and_then(resolve) else { continue };
            let pointed = if let Action::Set { field: Field::Parent, to, .. } = action {
                meant(to).map(|to| ("moved {} below {}", to))
            } else if let Action::Include { list: ListField::DependsOn, item, .. } = action {
                meant(item).map(|on| ("made {} depend on {}", on))
            } else {
                None
            };
            if let Some((words, other)) = pointed {
                return SideAct::new(words, [task, other]);
            }
            if !tasks.contains(&task) {
                continue;
            }
            let words = match action {
                Action::Set { field: Field::Parent | Field::Place, .. } => "moved {}".to_owned(),
                Action::Set { field, .. } => format!("set {field} of {{}}"),
                Action::Include { list, .. } | Action::Exclude { list, .. } => {
                    format!("changed {} of {{}}", list.as_str())
                }
                Action::Report { outcome, .. } => format!("reported {{}} as {}", outcome.as_str()),
                Action::Retry { .. } => "wanted {} done again".to_owned(),
                Action::Claim { .. } => "began {}".to_owned(),
                Action::Ask { .. } => "asked a question about {}".to_owned(),
                Action::Answer { .. } => "answered a question about {}".to_owned(),
                Action::Comment { .. } => "commented on {}".to_owned(),
                Action::Create(_)
                | Action::Add(_)
                | Action::Remove { .. }
                | Action::Charge { .. }
                | Action::Stop { .. }
                | Action::Resume { .. }
                | Action::Approve { .. }
                | Action::Delete {}
                | Action::Dismiss { .. } => continue,
            };
            return SideAct::new(words, [task]);
        }
        SideAct::new("changed {}", tasks.first().copied())
    }

    /// Sets the fields of tasks.
    fn set_fields(&mut self) {
        let mut sets: Vec<(u32, _)> = std::mem::take(&mut self.reading.sets).into_iter().collect();
        sets.sort_unstable_by_key(|(task, _)| *task);
        for task in 0..self.specs.len() {
            let start = &self.reading.tasks[task];
            let record = self.reading.record(start.at);
            let parent =
                start.start.parent.as_ref().and_then(|parent| self.reading.resolve(self.set, parent, record));
            self.places[task].push(PlaceOfTask { at: start.at, parent, is_fact: true, is_set: false });
            self.held[task].clone_from(&start.start.held);
            if let Some(assignee) = &start.start.assignee {
                self.annotations.entry(task as u32).or_default().assignee = Some(assignee.clone());
            }
        }
        for (task, fields) in sets {
            if let Some(by) = self.gone[task as usize] {
                for write in fields.values().flatten() {
                    self.reading.disposition(write.at, Disposition::Gone { by });
                }
                continue;
            }
            for (field, writes) in fields {
                self.set_field(task, &field, &writes);
            }
        }
    }

    fn set_field(&mut self, task: u32, field: &Field, writes: &[Write<'a, &'a Value>]) {
        let replaced = replaced_by(writes);
        let facts = self.facts(writes, &replaced);
        if *field == Field::Parent {
            return self.set_parent(task, writes, &facts);
        }
        if *field == Field::Held {
            return self.set_hold(task, writes, &facts);
        }
        if *field == Field::Place {
            return self.set_place(task, writes, &facts);
        }
        if *field == Field::Assignee {
            let start = self.reading.tasks[task as usize].start.assignee.as_deref();
            let initial = start.map_or(Value::Null, Value::from);
            if let Some((to, _)) = self.chosen(Some(task), field, Some(&initial), writes, &facts) {
                self.annotations.entry(task).or_default().assignee = to.as_str().map(str::to_owned);
            }
            return;
        }
        let initial = field.of_task(&self.specs[task as usize]);
        let shown = self.chosen(Some(task), field, Some(&initial), writes, &facts);
        let disputed = shown.as_ref().is_none_or(|(_, is_disputed)| *is_disputed);
        if let Some((to, _)) = shown {
            // The value was checked when the record was read.
            let _checked = field.set_on_task(&mut self.specs[task as usize], &to);
        }
        if disputed && matches!(field, Field::Work | Field::Check) {
            self.specs[task as usize].work = None;
            self.disputed.insert(task);
        }
    }

    /// Of the places among the siblings that nothing replaced, the last one holds.
    fn set_place(&mut self, task: u32, writes: &[Write<'a, &'a Value>], facts: &[usize]) {
        let Some((&last, others)) = facts.split_last() else { return };
        for &other in others {
            self.reading.disposition(writes[other].at, Disposition::Superseded { by: writes[last].id });
        }
        if let Some(key) = writes[last].value.as_str() {
            self.moved.insert(task, (key, writes[last].at));
        }
    }

    /// A hold beats its lifting, as any stop does.
    fn set_hold(&mut self, task: u32, writes: &[Write<'a, &'a Value>], facts: &[usize]) {
        let is_hold = |fact: &&usize| !writes[**fact].value.is_null();
        let Some(&last) = facts.iter().rfind(is_hold) else {
            self.held[task as usize] = None;
            return;
        };
        self.held[task as usize] = serde_json::from_value(writes[last].value.clone()).ok();
        let by = writes[last].id;
        for &fact in facts.iter().filter(|&&fact| writes[fact].value.is_null()) {
            self.reading.disposition(writes[fact].at, Disposition::Superseded { by });
        }
    }

    /// Returns the places of the writes that hold, and records what became of the others.
    fn facts<T>(&mut self, writes: &[Write<'a, T>], replaced: &[Option<usize>]) -> Vec<usize> {
        for (write, by) in writes.iter().zip(replaced) {
            if let Some(by) = by {
                self.reading.disposition(write.at, Disposition::Superseded { by: writes[*by].id });
            }
        }
        (0..writes.len()).filter(|&place| replaced[place].is_none()).collect()
    }

    /// Returns the value to show, and whether it is disputed. Asks a question if the facts contradict each other.
    fn chosen(
        &mut self,
        task: Option<u32>,
        field: &Field,
        initial: Option<&Value>,
        writes: &[Write<'a, &'a Value>],
        facts: &[usize],
    ) -> Option<(Value, bool)> {
        let last = *facts.last()?;
        let shown = writes[last].value.clone();
        if facts.iter().all(|&fact| *writes[fact].value == shown) || field.contest() == Contest::LastHolds {
            return Some((shown, false));
        }
        if field.contest() == Contest::Text {
            let texts: Vec<Write<'a, &str>> = writes
                .iter()
                .map(|write| Write {
                    at: write.at,
                    id: write.id,
                    over: write.over,
                    value: write.value.as_str().unwrap_or_default(),
                })
                .collect();
            let text = merged(initial.and_then(Value::as_str), &texts, facts);
            if let Some(text) = text.filter(|text| field.check_bytes(text.len()).is_ok()) {
                for &fact in facts {
                    self.reading.disposition(writes[fact].at, Disposition::MergedText);
                }
                return Some((Value::from(text), false));
            }
        }
        let is_text = shown.is_string()
            && !matches!(
                field,
                Field::Parent
                    | Field::Digest
                    | Field::Foreign(_)
                    | Field::When
                    | Field::Refinement
                    | Field::Complexity
            );
        self.ask_about_field(task, field, writes, facts, is_text);
        Some((shown, true))
    }

    fn ask_about_field(
        &mut self,
        task: Option<u32>,
        field: &Field,
        writes: &[Write<'a, &'a Value>],
        facts: &[usize],
        is_text: bool,
    ) {
        let mut sides = Vec::new();
        for &fact in facts {
            self.reading.disposition(writes[fact].at, Disposition::Disputed);
            let record = self.reading.record(writes[fact].at);
            sides.push(Side { record, to: VersionValue::Field(writes[fact].value.clone()), act: None });
        }
        let actions = facts.iter().map(|&fact| self.reading.action_ref(writes[fact].at)).collect();
        self.pending.push(Pending {
            task,
            kind: ConflictKind::Field(field.clone()),
            shown: Some(sides.len() - 1),
            sides,
            answers: if is_text { &[AnswerKind::Take, AnswerKind::Text] } else { &[AnswerKind::Take] },
            tasks: Vec::new(),
            item: None,
            actions,
            by: None,
        });
    }

    /// Collects the places that a task could have: what holds, newest first, then what held before.
    fn set_parent(&mut self, task: u32, writes: &[Write<'a, &'a Value>], facts: &[usize]) {
        let reading = &self.reading;
        let parent = |write: &Write<'a, &'a Value>| {
            let text = write.value.as_str()?;
            reading.resolve(self.set, &text.parse::<TaskRef>().ok()?, reading.record(write.at))
        };
        let place = |place: usize, is_fact: bool| PlaceOfTask {
            at: writes[place].at,
            parent: parent(&writes[place]),
            is_fact,
            is_set: true,
        };
        let mut places: Vec<PlaceOfTask> = facts.iter().rev().map(|&fact| place(fact, true)).collect();
        let older = (0..writes.len()).rev().filter(|place| !facts.contains(place));
        places.extend(older.map(|older| place(older, false)));
        let first = self.places[task as usize].pop();
        places.extend(first.map(|first| PlaceOfTask { is_fact: false, ..first }));
        let is_disputed = facts.iter().any(|&fact| parent(&writes[fact]) != parent(&writes[facts[0]]));
        self.places[task as usize] = places;
        if is_disputed {
            self.ask_about_field(Some(task), &Field::Parent, writes, facts, false);
        }
    }

    /// Merges the fields of the plan.
    fn plan_fields(&mut self) -> Draft {
        let mut draft =
            Draft { format: FORMAT.to_owned(), id: Some(self.set.plan().clone()), ..Draft::default() };
        let creates = self.reading.creates.clone();
        let starts: Vec<crate::PlanSpec> = creates
            .iter()
            .map(|(_, start)| crate::PlanSpec {
                title: start.title.clone(),
                goal: start.goal.clone(),
                status: start.status.clone(),
                owner: start.owner.clone(),
                queue: start.queue.clone(),
                token_budget: start.token_budget,
                body: start.body.clone(),
                foreign: start.foreign.clone(),
            })
            .collect();
        if let Some((at, start)) = creates.first() {
            let record = self.reading.record(*at);
            draft.state.created_at = Some(record.at());
            draft.state.created_by = Some(start.created_by.clone().unwrap_or_else(|| record.by().clone()));
        }
        for (_, start) in &creates {
            draft.state.tokens_used = draft.state.tokens_used.saturating_add(start.tokens);
        }
        let mut sets = std::mem::take(&mut self.reading.plan_sets);
        let formats = starts
            .iter()
            .flat_map(|start| start.foreign.0.keys())
            .map(|format| Field::Foreign(format.clone()));
        for field in Field::OF_PLAN.into_iter().chain(formats) {
            sets.entry(field).or_default();
        }
        for (field, sets) in sets {
            // The records live as long as the set; the values with which plans began live here.
            let begun: Vec<(At, RecordId, Value)> = creates
                .iter()
                .zip(&starts)
                .map(|((at, start), spec)| {
                    let value = if field == Field::Archived {
                        Value::from(start.archived)
                    } else {
                        field.of_plan(spec)
                    };
                    (*at, self.reading.record(*at).id(), value)
                })
                .collect();
            let to = self.plan_field(&field, &begun, sets);
            match (&field, to) {
                (Field::Archived, Some(to)) => draft.state.archived = to.as_bool().unwrap_or_default(),
                (field, Some(to)) => {
                    // The value was checked when the record was read.
                    let _checked = field.set_on_plan(&mut draft.spec, &to);
                }
                (_, None) => {}
            }
        }
        draft
    }

    /// Merges one field of the plan, whose first values are those with which it began.
    fn plan_field(
        &mut self,
        field: &Field,
        begun: &[(At, RecordId, Value)],
        sets: Vec<Write<'a, &'a Value>>,
    ) -> Option<Value> {
        // What a set replaces, it names; so do the values with which the plan began count as writes that may be named.
        let mut writes: Vec<Write<'_, &Value>> = begun
            .iter()
            .map(|(at, id, value)| Write { at: *at, id: *id, over: &[], value })
            .chain(sets.iter().map(|write| Write {
                at: write.at,
                id: write.id,
                over: write.over,
                value: write.value,
            }))
            .collect();
        writes.sort_by_key(|write| write.at);
        let replaced = replaced_by(&writes);
        let facts: Vec<usize> = (0..writes.len()).filter(|&place| replaced[place].is_none()).collect();
        let is_begun = |at: At| begun.iter().any(|(other, _, _)| *other == at);
        for (write, by) in writes.iter().zip(&replaced) {
            if let Some(by) = by.filter(|_| !is_begun(write.at)) {
                self.reading.disposition(write.at, Disposition::Superseded { by: writes[by].id });
            }
        }
        let shown = writes[*facts.last()?].value.clone();
        if facts.iter().all(|&fact| *writes[fact].value == shown) {
            return Some(shown);
        }
        if field.contest() == Contest::Text {
            let texts: Vec<Write<'_, &str>> = writes
                .iter()
                .map(|write| Write {
                    at: write.at,
                    id: write.id,
                    over: write.over,
                    value: write.value.as_str().unwrap_or_default(),
                })
                .collect();
            if let Some(text) =
                merged(None, &texts, &facts).filter(|text| field.check_bytes(text.len()).is_ok())
            {
                for &fact in facts.iter().filter(|&&fact| !is_begun(writes[fact].at)) {
                    self.reading.disposition(writes[fact].at, Disposition::MergedText);
                }
                return Some(Value::from(text));
            }
        }
        let mut sides = Vec::new();
        for &fact in &facts {
            if !is_begun(writes[fact].at) {
                self.reading.disposition(writes[fact].at, Disposition::Disputed);
            }
            let record = self.reading.record(writes[fact].at);
            sides.push(Side { record, to: VersionValue::Field(writes[fact].value.clone()), act: None });
        }
        let actions = facts.iter().map(|&fact| self.reading.action_ref(writes[fact].at)).collect();
        let is_text = shown.is_string() && !matches!(field, Field::Foreign(_));
        self.pending.push(Pending {
            task: None,
            kind: ConflictKind::Field(field.clone()),
            shown: Some(sides.len() - 1),
            sides,
            answers: if is_text { &[AnswerKind::Take, AnswerKind::Text] } else { &[AnswerKind::Take] },
            tasks: Vec::new(),
            item: None,
            actions,
            by: None,
        });
        Some(shown)
    }

    /// Decides how tasks ended.
    fn end_tasks(&mut self) {
        for task in 0..self.specs.len() as u32 {
            let Added { at, start } = Added::of(&self.reading, task);
            if let Some(state) = start.state.as_ref().filter(|_| !self.reading.outcomes.contains_key(&task)) {
                let record = self.reading.record(at);
                let state = state_of(
                    state.outcome,
                    state.text.as_ref(),
                    state.output.as_ref(),
                    record.at(),
                    record.by(),
                );
                self.states[task as usize] = state;
            }
        }
        let mut outcomes: Vec<(u32, Vec<Write<'a, OutcomeWrite<'a>>>)> =
            std::mem::take(&mut self.reading.outcomes).into_iter().collect();
        outcomes.sort_unstable_by_key(|(task, _)| *task);
        for (task, writes) in outcomes {
            if let Some(by) = self.gone[task as usize] {
                writes.iter().for_each(|write| self.reading.disposition(write.at, Disposition::Gone { by }));
                continue;
            }
            self.end_task(task, &writes);
        }
    }

    fn end_task(&mut self, task: u32, writes: &[Write<'a, OutcomeWrite<'a>>]) {
        let replaced = replaced_by(writes);
        let facts = self.facts(writes, &replaced);
        let kind = |fact: usize| match &writes[fact].value {
            OutcomeWrite::Report { outcome, .. } => Some(*outcome),
            OutcomeWrite::Retry => None,
        };
        let mut ends: Vec<usize> = facts.iter().copied().filter(|&fact| kind(fact).is_some()).collect();
        let Some(&last) = ends.last() else { return };
        // An outcome beats a retry that did not see it.
        for &retry in facts.iter().filter(|&&fact| kind(fact).is_none()) {
            self.reading.disposition(writes[retry].at, Disposition::Superseded { by: writes[last].id });
        }
        // Where the check has passed somewhere, the report is done.
        if let Some(&done) = ends.iter().rfind(|&&end| kind(end) == Some(OutcomeKind::Done)) {
            for &end in ends.iter().filter(|&&end| kind(end) == Some(OutcomeKind::Reported)) {
                self.reading.disposition(writes[end].at, Disposition::Superseded { by: writes[done].id });
            }
            ends.retain(|&end| kind(end) != Some(OutcomeKind::Reported));
        }
        let Some(&last) = ends.last() else { return };
        if ends.iter().any(|&end| kind(end) != kind(last)) {
            let mut sides = Vec::new();
            for &end in &ends {
                self.reading.disposition(writes[end].at, Disposition::Disputed);
                let OutcomeWrite::Report { outcome, text, output } = writes[end].value.clone() else {
                    continue;
                };
                let to = VersionValue::Outcome { outcome, text: text.cloned(), output: output.cloned() };
                sides.push(Side { record: self.reading.record(writes[end].at), to, act: None });
            }
            self.disputed.insert(task);
            self.pending.push(Pending {
                task: Some(task),
                kind: ConflictKind::Outcome,
                sides,
                shown: None,
                answers: &[AnswerKind::Take, AnswerKind::Dismiss],
                tasks: Vec::new(),
                item: None,
                actions: ends.iter().map(|&end| self.reading.action_ref(writes[end].at)).collect(),
                by: None,
            });
            return;
        }
        let OutcomeWrite::Report { outcome, text, output } = &writes[last].value else { return };
        let record = self.reading.record(writes[last].at);
        // All results are kept, as far as there is room.
        let mut texts: Vec<&String> = Vec::new();
        for &end in &ends {
            if let OutcomeWrite::Report { text: Some(text), .. } = &writes[end].value
                && !texts.contains(text)
            {
                texts.push(text);
            }
        }
        let all = texts.iter().map(|text| text.as_str()).collect::<Vec<&str>>().join("\n\n");
        let all = (!texts.is_empty() && all.len() <= limits::TEXT_BYTES_MAX).then_some(all);
        let text = all.as_ref().or(*text);
        let mut state = state_of(*outcome, text, *output, record.at(), record.by());
        // What a person stopped, no agent opens again in any clone.
        if *outcome == OutcomeKind::Cancelled && record.by().kind == ActorKind::Person {
            state.change_aside(|aside| aside.stopped_by = Some(record.by().clone()));
        }
        self.states[task as usize] = state;
    }

    /// Chooses parents and dependencies. The dependencies are the numbers of tasks, each with its place in the total order.
    fn structure(&mut self) -> (Vec<Option<u32>>, Dependencies) {
        let count = self.specs.len();
        let mut candidates: Vec<Vec<Candidate>> = Vec::with_capacity(count);
        for (task, places) in self.places.iter().enumerate() {
            let here = |parent: Option<u32>| parent.filter(|&parent| self.gone[parent as usize].is_none());
            let usable = places
                .iter()
                .map(|place| Candidate { order: (place.at.0, place.at.1, 0), parent: here(place.parent) });
            candidates.push(if self.gone[task].is_some() { Vec::new() } else { usable.collect() });
        }
        let mut edges: Vec<Edge> = Vec::new();
        let mut edge_items: Vec<Item> = Vec::new();
        let mut tasks: Vec<u32> = self.reading.lists.keys().copied().collect();
        tasks.sort_unstable();
        for task in tasks {
            for ((list, item), inclusions) in &self.reading.lists[&task] {
                let (ListField::DependsOn, Item::Task(on)) = (list, item) else { continue };
                if !self.is_here(task) || !self.is_here(*on) {
                    continue;
                }
                let holds = |inclusion: &&Inclusion| inclusion.excluded_by.is_none();
                if let Some(first) = inclusions.iter().filter(holds).min_by_key(|one| (one.at, one.place)) {
                    let order = (first.at.0, first.at.1, first.place + 1);
                    edges.push(Edge { order, task, on: *on });
                    edge_items.push(item.clone());
                }
            }
        }
        let built = build(count, &candidates, &edges);
        for (task, place, rejected) in built.passed_over {
            self.pass_over(task, place, rejected.path, rejected.by);
        }
        let mut rejected_edges: HashSet<usize> = HashSet::new();
        for (edge, rejected) in built.rejected {
            rejected_edges.insert(edge);
            self.set_dependency_aside(&edges[edge], &edge_items[edge], rejected.path, rejected.by);
        }
        let mut dependencies = Dependencies::new();
        for (number, edge) in edges.iter().enumerate().filter(|(number, _)| !rejected_edges.contains(number))
        {
            let _kept = number;
            dependencies.entry(edge.task).or_default().push((edge.order, edge.on));
        }
        let mut parents = built.parent;
        for (task, parent) in parents.iter_mut().enumerate() {
            if self.gone[task].is_some() {
                *parent = None;
            }
        }
        (parents, dependencies)
    }

    fn pass_over(&mut self, task: u32, place: usize, path: Vec<u32>, by: Option<u32>) {
        // A tree that is too deep loses whichever place was chosen.
        let places = &self.places[task as usize];
        let Some(place) = places.get(place).cloned() else { return };
        if !place.is_fact && !path.is_empty() {
            return;
        }
        let record = self.reading.record(place.at);
        let by = by.map(|by| self.reading.records[by as usize]);
        if place.is_set && place.is_fact {
            let why = "tasks would wait for each other, or lie too deep".to_owned();
            self.reading.disposition(place.at, Disposition::SetAside { why, by: by.map(|by| by.id()) });
        }
        let facts = self.places[task as usize].iter().filter(|place| place.is_fact && place.is_set);
        let actions = facts.map(|place| self.reading.action_ref(place.at)).collect();
        let act = match place.parent {
            Some(parent) => SideAct::new("moved {} below {}", [task, parent]),
            None => SideAct::new("made {} a root", [task]),
        };
        let side = Side { record, to: VersionValue::Shown, act: Some(act) };
        let is_asked =
            |pending: &&mut Pending<'_>| pending.task == Some(task) && pending.kind == ConflictKind::Parent;
        if let Some(asked) = self.pending.iter_mut().find(is_asked) {
            asked.sides.push(side);
            return;
        }
        self.pending.push(Pending {
            task: Some(task),
            kind: ConflictKind::Parent,
            sides: vec![side],
            shown: None,
            answers: &[AnswerKind::Dismiss],
            tasks: path,
            item: None,
            actions,
            by,
        });
    }

    fn set_dependency_aside(&mut self, edge: &Edge, item: &Item, path: Vec<u32>, by: Option<u32>) {
        let by = by.map(|by| self.reading.records[by as usize]);
        let by_id = by.map(|by| by.id());
        let key = (ListField::DependsOn, item.clone());
        let (mut sides, mut actions, mut ats) = (Vec::new(), Vec::new(), Vec::new());
        let inclusions = self.reading.lists.get(&edge.task).and_then(|lists| lists.get(&key));
        for inclusion in inclusions.into_iter().flatten().filter(|one| one.excluded_by.is_none()) {
            let act = Some(SideAct::new("{} depends on {}", [edge.task, edge.on]));
            sides.push(Side { record: self.reading.record(inclusion.at), to: VersionValue::Shown, act });
            actions.push(self.reading.action_ref(inclusion.at));
            if !inclusion.is_start {
                ats.push(inclusion.at);
            }
        }
        for at in ats {
            let why = "tasks would wait for each other".to_owned();
            self.reading.disposition(at, Disposition::SetAside { why, by: by_id });
        }
        let on = self.set.reference(&self.keys[edge.on as usize]);
        self.pending.push(Pending {
            task: Some(edge.task),
            kind: ConflictKind::Dependency,
            sides,
            shown: None,
            answers: &[AnswerKind::Dismiss],
            tasks: path,
            item: Some(Value::from(on.to_string())),
            actions,
            by,
        });
    }

    /// Fills the lists of all tasks but the dependencies on tasks of the plan, which become names later.
    fn lists(&mut self, dependencies: &Dependencies) {
        let lists = std::mem::take(&mut self.reading.lists);
        let mut tasks: Vec<(u32, _)> = lists.into_iter().collect();
        tasks.sort_unstable_by_key(|(task, _)| *task);
        for (task, elements) in tasks {
            let gone = self.gone[task as usize];
            let mut here: Vec<((u32, u32, u32), Item)> = Vec::new();
            for ((_, item), inclusions) in elements {
                let on_gone = if let Item::Task(on) = &item { self.gone[*on as usize] } else { None };
                for inclusion in inclusions.iter().filter(|inclusion| !inclusion.is_start) {
                    if let Some(by) = inclusion.excluded_by {
                        self.reading.disposition(inclusion.at, Disposition::Superseded { by });
                    } else if let Some(by) = gone.or(on_gone) {
                        self.reading.disposition(inclusion.at, Disposition::Gone { by });
                    }
                }
                let holding = inclusions.iter().filter(|inclusion| inclusion.excluded_by.is_none());
                let Some(first) = holding.map(|one| (one.at.0, one.at.1, one.place + 1)).min() else {
                    continue;
                };
                if gone.is_none() && !matches!(item, Item::Task(_)) {
                    here.push((first, item));
                }
            }
            here.sort_by_key(|(order, _)| *order);
            let here_count = dependencies.get(&task).map_or(0, Vec::len);
            let spec = &mut self.specs[task as usize];
            for (_, item) in here {
                match item {
                    Item::OtherPlan(there) => {
                        if here_count + spec.depends_on.len() < limits::DEPENDENCIES_MAX {
                            spec.depends_on.push(Dependency::External(Box::new(there)));
                        }
                    }
                    Item::Lock(key, mode) => {
                        let known = spec.locks.iter().position(|lock| lock.key == key);
                        match known {
                            // Who wants it alone gets it alone.
                            Some(known) if mode == LockMode::Exclusive => spec.locks[known].mode = mode,
                            Some(_) => {}
                            None if spec.locks.len() < limits::LOCKS_MAX => {
                                spec.locks.push(Lock { key, mode })
                            }
                            None => {}
                        }
                    }
                    Item::Tool(tool) => spec.tools.get_or_insert_default().push(tool),
                    Item::Label(label) => {
                        let labels = &mut self.annotations.entry(task).or_default().labels;
                        if labels.len() < limits::LABELS_MAX {
                            labels.push(label);
                            labels.sort();
                        }
                    }
                    Item::Task(_) => {}
                }
            }
        }
    }

    /// Collects the comments of all tasks, in the total order.
    fn comment(&mut self) {
        for (task, start) in self.reading.tasks.iter().enumerate() {
            for comment in &start.start.comments {
                self.annotations.entry(task as u32).or_default().add_comment(comment.clone());
            }
        }
        for (_, task, comment) in &self.reading.comments {
            self.annotations.entry(*task).or_default().add_comment(comment.clone());
        }
    }

    /// A task with children has no work of its own.
    fn keep_groups_without_work(&mut self, children: &[Vec<u32>]) {
        for task in 0..self.specs.len() as u32 {
            if children[task as usize].is_empty() || self.specs[task as usize].work.is_none() {
                continue;
            }
            self.specs[task as usize].work = None;
            let about: Vec<(At, RecordId)> = self
                .set
                .about(&self.keys[task as usize])
                .into_iter()
                .filter_map(|(record, action)| {
                    let index = record.actions().iter().position(|other| std::ptr::eq(other, action))?;
                    let is_work = matches!(action, super::action::Action::Set { field: Field::Work, .. });
                    let number = self.reading.records.iter().position(|other| other.id() == record.id())?;
                    is_work.then_some(((number as u32, index as u32), record.id()))
                })
                .collect();
            let applied: Vec<At> = about
                .iter()
                .map(|(at, _)| *at)
                .filter(|at| self.reading.dispositions[at.0 as usize][at.1 as usize] == Disposition::Applied)
                .collect();
            for at in &applied {
                let why = "the task has children".to_owned();
                self.reading.disposition(*at, Disposition::SetAside { why, by: None });
            }
            let record = applied.last().copied().unwrap_or(self.reading.tasks[task as usize].at);
            self.pending.push(Pending {
                task: Some(task),
                kind: ConflictKind::WorkOfGroup,
                sides: vec![Side { record: self.reading.record(record), to: VersionValue::Shown, act: None }],
                shown: None,
                answers: &[AnswerKind::Dismiss],
                tasks: Vec::new(),
                item: None,
                actions: applied.iter().map(|at| self.reading.action_ref(*at)).collect(),
                by: None,
            });
        }
    }

    /// Gives each task its name, or the name with the beginning of its record if another task has it.
    fn names(&self) -> Vec<Option<TaskId>> {
        let mut names: Vec<Option<TaskId>> = vec![None; self.specs.len()];
        let mut used: HashSet<TaskId> = HashSet::with_capacity(self.specs.len());
        for (task, key) in self.keys.iter().enumerate() {
            if self.gone[task].is_none() && used.insert(key.name.clone()) {
                names[task] = Some(key.name.clone());
            }
        }
        for (task, key) in self.keys.iter().enumerate() {
            if self.gone[task].is_some() || names[task].is_some() {
                continue;
            }
            let suffixed = |chars: usize| {
                let suffix = format!("~{}", key.record.prefix(chars));
                let mut stem = key.name.as_str();
                while stem.len() + suffix.len() > limits::TASK_ID_BYTES_MAX {
                    stem = &stem[..stem.char_indices().last().map_or(0, |(at, _)| at)];
                }
                TaskId::new(format!("{stem}{suffix}")).ok()
            };
            let free = (RecordId::SHORT_CHARS..=RecordId::CHARS)
                .filter_map(suffixed)
                .chain((2..).filter_map(|number| TaskId::new(format!("task~{}~{number}", key.record)).ok()));
            if let Some(name) = free.into_iter().find(|name| !used.contains(name)) {
                used.insert(name.clone());
                names[task] = Some(name);
            }
        }
        names
    }

    /// Returns the tasks in order, parents before their children.
    fn order(&self, mut roots: Vec<u32>, children: &[Vec<u32>]) -> Vec<u32> {
        let key = |task: &u32| {
            let added = &self.reading.tasks[*task as usize];
            self.moved.get(task).copied().unwrap_or((added.start.place.as_str(), added.at))
        };
        roots.sort_by_key(key);
        let mut order = Vec::with_capacity(self.specs.len());
        let mut stack: Vec<u32> = roots.into_iter().rev().collect();
        while let Some(task) = stack.pop() {
            order.push(task);
            let mut below = children[task as usize].clone();
            below.sort_by_key(key);
            stack.extend(below.into_iter().rev());
        }
        order
    }

    fn finish(
        mut self,
        plan: &mut Draft,
        parents: &[Option<u32>],
        dependencies: &Dependencies,
        children: &[Vec<u32>],
        order: &[u32],
        names: &[Option<TaskId>],
    ) -> Merged {
        let mut draft = std::mem::take(plan);
        self.charge(&mut draft);
        let stop = self.stop();
        let deleted = self.delete();
        let end = stop.as_ref().filter(|stop| stop.kind.is_end()).map(|stop| (stop.kind, stop.at));
        let is_group = |task: u32| !children[task as usize].is_empty();
        for &task in order {
            if is_group(task) {
                self.states[task as usize] = TaskState::default();
                continue;
            }
            if let Some((_, at)) = end.filter(|_| !self.states[task as usize].status.is_finished()) {
                let state = &mut self.states[task as usize];
                *state = TaskState::default();
                (state.status, state.finished_at) = (Status::Cancelled, Some(at));
                state.reason = Some(PLAN_ENDED.to_owned());
            }
        }
        draft.state.phase = self.phase(end.map(|(kind, _)| kind), order, &is_group);
        let conflicts = self.conflicts(order, names, &is_group);
        let mut tasks = Vec::with_capacity(order.len());
        for &task in order {
            tasks.push(self.task(task, parents, dependencies, names, is_group(task)));
        }
        draft.tasks = tasks;
        let renamed = order.iter().filter_map(|&task| {
            let (name, shown) = (&self.keys[task as usize].name, names[task as usize].clone()?);
            (shown != *name).then(|| Renamed { task: shown, name: name.clone() })
        });
        let renamed = renamed.collect();
        let claims = self.claims(names);
        let questions = self.questions(names);
        let approvals = self.reading.approvals.iter().map(|(at, approval)| SharedApproval {
            record: self.reading.record(*at).id(),
            approval: (*approval).clone(),
        });
        Merged {
            archived: draft.state.archived,
            conflicts,
            claims,
            questions,
            approvals: approvals.collect(),
            renamed,
            stop,
            deleted,
            newer: self.set.newer(),
            keys: order.iter().map(|&task| self.keys[task as usize].clone()).collect(),
            dispositions: self.dispositions(),
            draft,
        }
    }

    fn charge(&mut self, draft: &mut Draft) {
        for (task, start) in self.reading.tasks.iter().enumerate() {
            add_tokens(&mut self.specs[task], start.start.tokens);
        }
        for (task, tokens, moved) in &self.reading.charges {
            if !moved {
                draft.state.tokens_used = draft.state.tokens_used.saturating_add(*tokens);
            }
            if let Some(task) = task {
                add_tokens(&mut self.specs[*task as usize], *tokens);
            }
        }
    }

    /// Returns the stop that holds: an end before a pause, a pause before a rejection, and of equal ones the last.
    fn stop(&mut self) -> Option<SharedStop> {
        let mut holding: Option<usize> = None;
        for place in 0..self.reading.stops.len() {
            let at = self.reading.stops[place].at;
            if let Some(by) = self.reading.resumed.get(&self.reading.record(at).id()).copied() {
                self.reading.disposition(at, Disposition::Superseded { by });
                continue;
            }
            let rank = |place: usize| match self.reading.stops[place].kind {
                StopKind::Completed | StopKind::Failed | StopKind::Cancelled => 2,
                StopKind::Paused => 1,
                StopKind::Rejected => 0,
            };
            if holding.is_none_or(|known| rank(place) >= rank(known)) {
                holding = Some(place);
            }
        }
        let stop = &self.reading.stops[holding?];
        let record = self.reading.record(stop.at);
        Some(SharedStop {
            kind: stop.kind,
            reason: stop.reason.to_owned(),
            by: stop.by.cloned(),
            actor: record.by().clone(),
            at: record.at(),
        })
    }

    /// Whether somebody deleted the plan who had seen everything else.
    fn delete(&mut self) -> bool {
        let deletes = self.reading.deletes.clone();
        let others: Vec<u32> = (0..self.reading.records.len() as u32)
            .filter(|&number| {
                let actions = self.reading.records[number as usize].actions();
                let only_deletes = |action: &super::action::Action| {
                    matches!(action, super::action::Action::Delete {} | super::action::Action::Dismiss { .. })
                };
                !actions.iter().all(only_deletes)
            })
            .collect();
        let mut unseen: Vec<(At, u32)> = Vec::new();
        let mut by = None;
        for at in deletes {
            if let Some(by) = self.reading.dismissed.get(&self.reading.action_ref(at)).copied() {
                self.reading.disposition(at, Disposition::Dismissed { by });
                continue;
            }
            let saw = self.saw_each(at.0, &others);
            match others.iter().zip(saw).find(|(_, saw)| !saw) {
                Some((other, _)) => unseen.push((at, *other)),
                None => by = Some(self.reading.record(at).id()),
            }
        }
        for (at, other) in unseen {
            if let Some(by) = by {
                self.reading.disposition(at, Disposition::Superseded { by });
                continue;
            }
            let (record, other) = (self.reading.record(at), self.reading.records[other as usize]);
            let why = "it would delete what its author had not seen".to_owned();
            self.reading.disposition(at, Disposition::SetAside { why, by: Some(other.id()) });
            let actions = vec![self.reading.action_ref(at)];
            self.pending.push(Pending {
                task: None,
                kind: ConflictKind::Delete,
                sides: vec![Side { record, to: VersionValue::Shown, act: None }],
                shown: None,
                answers: &[AnswerKind::Keep, AnswerKind::Remove],
                tasks: Vec::new(),
                item: None,
                actions,
                by: Some(other),
            });
        }
        by.is_some()
    }

    /// A plan arrives as a draft, or as ended if its author ended it or all its tasks have.
    fn phase(&self, end: Option<StopKind>, order: &[u32], is_group: &dyn Fn(u32) -> bool) -> Phase {
        match end {
            Some(StopKind::Completed) => return Phase::Completed,
            Some(StopKind::Failed) => return Phase::Failed,
            Some(StopKind::Cancelled) => return Phase::Cancelled,
            Some(StopKind::Paused | StopKind::Rejected) | None => {}
        }
        let mut leaves =
            order.iter().filter(|&&task| !is_group(task)).map(|&task| &self.states[task as usize]).peekable();
        if leaves.peek().is_none() {
            return Phase::Draft;
        }
        let mut phase = Phase::Completed;
        for state in leaves {
            phase = match (state.status, phase) {
                (Status::Pending | Status::Running, _) => return Phase::Draft,
                (Status::Failed, _) => Phase::Failed,
                (Status::Cancelled, Phase::Completed) => Phase::Cancelled,
                (Status::Cancelled | Status::Done | Status::Skipped, phase) => phase,
            };
        }
        phase
    }

    fn conflicts(
        &mut self,
        order: &[u32],
        names: &[Option<TaskId>],
        is_group: &dyn Fn(u32) -> bool,
    ) -> Vec<Conflict> {
        let places: HashMap<u32, usize> =
            order.iter().enumerate().map(|(place, &task)| (task, place)).collect();
        let pending = std::mem::take(&mut self.pending);
        let mut conflicts: Vec<(Option<usize>, Conflict)> = Vec::with_capacity(pending.len());
        for question in pending {
            // Its end follows from its children: nothing is open about it.
            let group =
                question.task.filter(|&task| question.kind == ConflictKind::Outcome && is_group(task));
            if let Some(group) = group {
                self.disputed.remove(&group);
                for action in &question.actions {
                    let number = self.reading.records.iter().position(|record| record.id() == action.record);
                    if let Some(number) = number {
                        self.reading.disposition((number as u32, action.index), Disposition::Applied);
                    }
                }
                continue;
            }
            let place = question.task.and_then(|task| places.get(&task).copied());
            conflicts.push((place, question.named(names, &self.keys)));
        }
        conflicts.sort_by(|(a, one), (b, other)| {
            let rest = |conflict: &Conflict| (conflict.subject.clone(), conflict.actions.clone());
            a.cmp(b).then_with(|| rest(one).cmp(&rest(other)))
        });
        conflicts.into_iter().map(|(_, conflict)| conflict).collect()
    }

    fn task(
        &mut self,
        task: u32,
        parents: &[Option<u32>],
        dependencies: &Dependencies,
        names: &[Option<TaskId>],
        is_group: bool,
    ) -> Task {
        let number = task as usize;
        let mut spec = std::mem::replace(&mut self.specs[number], TaskSpec::new(TaskId::trusted("-"), ""));
        let mut state = std::mem::take(&mut self.states[number]);
        let name =
            |task: u32| names[task as usize].clone().unwrap_or_else(|| self.keys[task as usize].name.clone());
        spec.id = name(task);
        spec.parent = parents[number].map(name);
        let elsewhere = std::mem::take(&mut spec.depends_on);
        let mut here = dependencies.get(&task).cloned().unwrap_or_default();
        here.sort_unstable();
        spec.depends_on = here.into_iter().map(|(_, on)| Dependency::Task(name(on))).collect();
        spec.depends_on.truncate(limits::DEPENDENCIES_MAX);
        spec.depends_on.extend(elsewhere);
        state.created_at = Some(self.reading.record(self.reading.tasks[number].at).at());
        let question = self.disputed.contains(&task) && !is_group && !state.status.is_finished();
        let hold = self.held[number].take().or_else(|| {
            let reason = "clones did what does not go together; a question about it is open".to_owned();
            question.then(|| Hold { by: Actor::system(MERGE_ACTOR), reason })
        });
        if let Some(hold) = hold {
            state.change_aside(|aside| aside.held = Some(hold));
        }
        if let Some(TaskExtras { labels, assignee, comments, .. }) = self.annotations.remove(&task) {
            state.change_aside(|aside| {
                (aside.labels, aside.assignee, aside.comments) = (labels, assignee, comments);
            });
        }
        Task { spec, state }
    }

    fn claims(&self, names: &[Option<TaskId>]) -> Vec<Claim> {
        let mut last: BTreeMap<u32, Claim> = BTreeMap::new();
        for &(at, task, worker) in &self.reading.claims {
            let is_open = !self.states[task as usize].status.is_finished();
            if let Some(name) = names[task as usize].clone().filter(|_| is_open) {
                let record = self.reading.record(at);
                let (by, from, at) = (record.by().clone(), record.from().clone(), record.at());
                last.insert(task, Claim { task: name, worker: worker.to_owned(), by, from, at });
            }
        }
        last.into_values().collect()
    }

    fn questions(&self, names: &[Option<TaskId>]) -> Vec<OpenQuestion> {
        let mut questions = Vec::new();
        for &(at, task, question, choices) in &self.reading.asks {
            let Some(name) = names[task as usize].clone() else { continue };
            let record = self.reading.record(at);
            let answers = self
                .reading
                .answers
                .iter()
                .filter(|(_, other, _, over)| *other == task && over.contains(&record.id()));
            let answers = answers.map(|(at, _, answer, _)| {
                let record = self.reading.record(*at);
                let (by, at) = (record.by().clone(), record.at());
                ProposedAnswer { answer: (*answer).to_owned(), by, at, record: record.id() }
            });
            questions.push(OpenQuestion {
                task: name,
                question: question.to_owned(),
                choices: choices.to_vec(),
                by: record.by().clone(),
                at: record.at(),
                record: record.id(),
                answers: answers.collect(),
            });
        }
        questions
    }

    fn dispositions(&mut self) -> Vec<ActionDisposition> {
        let gone = std::mem::take(&mut self.gone);
        for (task, by) in gone.iter().enumerate() {
            if let Some(by) = by {
                let at = self.reading.tasks[task].at;
                self.reading.disposition(at, Disposition::Gone { by: *by });
            }
        }
        let about = self.reading.claims.iter().map(|(at, task, _)| (*at, *task));
        let about = about.chain(self.reading.asks.iter().map(|(at, task, _, _)| (*at, *task)));
        let about = about.chain(self.reading.answers.iter().map(|(at, task, _, _)| (*at, *task)));
        let about = about.chain(self.reading.comments.iter().map(|(at, task, _)| (*at, *task)));
        for (at, task) in about.collect::<Vec<(At, u32)>>() {
            if let Some(by) = gone[task as usize] {
                self.reading.disposition(at, Disposition::Gone { by });
            }
        }
        let dispositions = std::mem::take(&mut self.reading.dispositions);
        let records = self.reading.records.iter().zip(dispositions);
        let dispositions = records.flat_map(|(record, dispositions)| {
            dispositions.into_iter().enumerate().map(|(index, disposition)| ActionDisposition {
                record: record.id(),
                index: index as u32,
                disposition,
            })
        });
        dispositions.collect()
    }
}

/// What a task was added with.
struct Added<'a> {
    at: At,
    start: &'a TaskStart,
}

impl<'a> Added<'a> {
    fn of(reading: &Reading<'a>, task: u32) -> Self {
        let added = &reading.tasks[task as usize];
        Self { at: added.at, start: added.start }
    }
}

fn add_tokens(spec: &mut TaskSpec, tokens: i64) {
    if tokens != 0 {
        let notes = spec.thinking.get_or_insert_default();
        notes.tokens = notes.tokens.saturating_add(tokens);
    }
}

/// Returns the author's part with which a task was added, without its name, place and lists.
fn spec_of(start: &TaskStart) -> TaskSpec {
    let mut spec = TaskSpec::new(start.task.clone(), start.description.clone());
    spec.when = start.when;
    spec.complexity = start.complexity;
    spec.notes.clone_from(&start.notes);
    spec.skip = start.skip;
    let work = |work: &super::travelling_work::TravellingWork| Box::new(Work::from(work.clone()));
    spec.work = start.work.as_ref().map(work);
    spec.check = start.check.as_ref().map(work);
    spec.retry = start.retry.map(Box::new);
    spec.timeout_seconds = start.timeout_seconds;
    spec.priority = start.priority;
    spec.provides.clone_from(&start.provides);
    spec.foreign = start.foreign.clone();
    let notes = PlannerNotes {
        refinement: start.refinement,
        reasoning: start.reasoning.clone(),
        tokens: 0,
        graph_node_id: start.graph_node_id.clone(),
        digest: start.digest.as_ref().and_then(|digest| digest.to::<Digest>().ok()),
    };
    spec.thinking = (notes != PlannerNotes::default()).then(|| Box::new(notes));
    spec
}

/// Returns the state of a task that ended, or that is reported as done.
fn state_of(
    outcome: OutcomeKind,
    text: Option<&String>,
    output: Option<&crate::Json>,
    at: Timestamp,
    by: &Actor,
) -> TaskState {
    let mut state = TaskState::default();
    let (text, output) = (text.cloned(), output.cloned());
    match outcome {
        OutcomeKind::Reported => {
            let report = crate::Report { result: text, output, at, by: by.clone() };
            state.change_aside(|aside| aside.reported = Some(report));
            return state;
        }
        OutcomeKind::Done => (state.status, state.result, state.output) = (Status::Done, text, output),
        OutcomeKind::Failed => (state.status, state.error) = (Status::Failed, text),
        OutcomeKind::Skipped => (state.status, state.reason) = (Status::Skipped, text),
        OutcomeKind::Cancelled => (state.status, state.reason) = (Status::Cancelled, text),
    }
    state.finished_at = Some(at);
    state
}
