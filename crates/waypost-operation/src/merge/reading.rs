//! Reads the actions of all records into what they are about, with every reference resolved.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;

use super::register::{At, Write};
use super::result::Disposition;
use crate::action::{Action, ActionRef, ListField, OutcomeKind, PlanStart, TaskStart};
use crate::field::Field;
use crate::ids::{RecordId, TaskRef};
use crate::record::{Prerequisite, Record};
use crate::set::OperationSet;
use waypost_core::{Actor, ActorKind, Comment, ExternalTaskRef, Json, Lock, LockMode, StopKind};

/// A task that somebody added.
pub(super) struct Added<'a> {
    pub(super) at: At,
    pub(super) record: RecordId,
    pub(super) start: &'a TaskStart,
}

/// An element of a list of a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Item {
    Task(u32),
    OtherPlan(ExternalTaskRef),
    Lock(String, LockMode),
    Tool(String),
    Label(String),
}

/// An addition of an element to a list.
pub(super) struct Inclusion {
    pub(super) at: At,
    /// The place among the elements with which the task was added.
    pub(super) place: u32,
    pub(super) record: RecordId,
    /// Whether the task was added with it.
    pub(super) is_start: bool,
    pub(super) excluded_by: Option<RecordId>,
}

/// The end of a task, or that it is to be done again.
#[derive(Clone)]
pub(super) enum OutcomeWrite<'a> {
    Report { outcome: OutcomeKind, text: Option<&'a String>, output: Option<&'a Json> },
    Retry,
}

pub(super) struct StopWrite<'a> {
    pub(super) at: At,
    pub(super) kind: StopKind,
    pub(super) reason: &'a str,
    pub(super) by: Option<&'a Actor>,
}

/// All actions, by what they are about.
pub(super) struct Reading<'a> {
    pub(super) records: Vec<&'a Record>,
    pub(super) dispositions: Vec<Vec<Disposition>>,
    pub(super) tasks: Vec<Added<'a>>,
    by_name: HashMap<&'a str, Vec<u32>>,
    pub(super) creates: Vec<(At, &'a PlanStart)>,
    pub(super) plan_sets: BTreeMap<Field, Vec<Write<'a, &'a Value>>>,
    pub(super) sets: HashMap<u32, BTreeMap<Field, Vec<Write<'a, &'a Value>>>>,
    pub(super) lists: HashMap<u32, BTreeMap<(ListField, Item), Vec<Inclusion>>>,
    /// With the records that their authors had seen besides the ancestors.
    pub(super) removals: Vec<(At, Vec<u32>, &'a [RecordId])>,
    /// The records that touch a task which somebody removed.
    pub(super) touches: HashMap<u32, Vec<u32>>,
    pub(super) outcomes: HashMap<u32, Vec<Write<'a, OutcomeWrite<'a>>>>,
    pub(super) claims: Vec<(At, u32, &'a str)>,
    pub(super) asks: Vec<(At, u32, &'a str, &'a [String])>,
    pub(super) answers: Vec<(At, u32, &'a str, &'a [RecordId])>,
    pub(super) comments: Vec<(At, u32, Comment)>,
    pub(super) charges: Vec<(Option<u32>, i64, bool)>,
    pub(super) stops: Vec<StopWrite<'a>>,
    pub(super) resumed: HashMap<RecordId, Vec<RecordId>>,
    pub(super) approvals: Vec<(At, &'a Json)>,
    pub(super) deletes: Vec<At>,
    /// What was dismissed, and by which record.
    pub(super) dismissed: HashMap<ActionRef, RecordId>,
}

impl<'a> Reading<'a> {
    pub(super) fn of(set: &'a OperationSet) -> Self {
        let records: Vec<&Record> = set.counted().collect();
        let dispositions =
            records.iter().map(|record| vec![Disposition::Applied; record.actions().len()]).collect();
        let mut reading = Self {
            records,
            dispositions,
            tasks: Vec::new(),
            by_name: HashMap::new(),
            creates: Vec::new(),
            plan_sets: BTreeMap::new(),
            sets: HashMap::new(),
            lists: HashMap::new(),
            removals: Vec::new(),
            touches: HashMap::new(),
            outcomes: HashMap::new(),
            claims: Vec::new(),
            asks: Vec::new(),
            answers: Vec::new(),
            comments: Vec::new(),
            charges: Vec::new(),
            stops: Vec::new(),
            resumed: HashMap::new(),
            approvals: Vec::new(),
            deletes: Vec::new(),
            dismissed: HashMap::new(),
        };
        reading.read_tasks();
        reading.read_removals(set);
        reading.read_starts(set);
        reading.read_actions(set);
        reading.apply_exclusions(set);
        reading
    }

    /// The records as they are, so that reading them does not hold on to `self`.
    fn actions(&self) -> impl Iterator<Item = (At, &'a Record, &'a Action)> + use<'a> {
        let records = self.records.clone();
        records.into_iter().enumerate().flat_map(|(number, record)| {
            let actions = record.actions().iter().enumerate();
            actions.map(move |(index, action)| ((number as u32, index as u32), record, action))
        })
    }

    fn read_tasks(&mut self) {
        for (at, record, action) in self.actions() {
            if let Action::Add(start) = action {
                self.by_name.entry(start.task.as_str()).or_default().push(self.tasks.len() as u32);
                self.tasks.push(Added { at, record: record.id(), start });
            }
        }
    }

    pub(super) fn disposition(&mut self, (record, index): At, disposition: Disposition) {
        self.dispositions[record as usize][index as usize] = disposition;
    }

    /// Returns the number of the task that a record means.
    pub(super) fn resolve(&self, set: &OperationSet, task: &TaskRef, by: &Record) -> Option<u32> {
        let named = self.by_name.get(task.name.as_str())?;
        let is_fitting = |number: &&u32| {
            let record = self.tasks[**number as usize].record;
            if task.record.is_empty() { record == by.id() } else { record.starts_with(&task.record) }
        };
        let mut fitting = named.iter().filter(is_fitting);
        let (first, second) = (fitting.next().copied(), fitting.next());
        if second.is_none() {
            return first;
        }
        let meant = set.resolve(task, by)?;
        named.iter().copied().find(|number| self.tasks[*number as usize].record == meant.record)
    }

    fn read_removals(&mut self, set: &OperationSet) {
        for (at, record, action) in self.actions() {
            let Action::Remove { tasks, over } = action else { continue };
            let mut removed: Vec<u32> =
                tasks.iter().filter_map(|task| self.resolve(set, task, record)).collect();
            removed.sort_unstable();
            removed.dedup();
            if removed.is_empty() {
                self.disposition(at, Disposition::Unresolved);
                continue;
            }
            for task in &removed {
                self.touches.entry(*task).or_default();
            }
            self.removals.push((at, removed, over));
        }
    }

    fn touch(&mut self, task: u32, at: At) {
        if let Some(touches) = self.touches.get_mut(&task) {
            touches.push(at.0);
        }
    }

    /// Reads the lists and parents with which tasks were added.
    fn read_starts(&mut self, set: &OperationSet) {
        for number in 0..self.tasks.len() as u32 {
            let Added { at, record: id, start } = self.tasks[number as usize];
            let record = self.records[at.0 as usize];
            if let Some(parent) = start.parent.as_ref().and_then(|parent| self.resolve(set, parent, record)) {
                self.touch(parent, at);
            }
            let dependencies = start.depends_on.iter().map(|value| (ListField::DependsOn, value.clone()));
            let locks = start
                .locks
                .iter()
                .map(|lock| (ListField::Locks, serde_json::to_value(lock).unwrap_or_default()));
            let tools = start.tools.iter().map(|tool| (ListField::Tools, Value::from(tool.as_str())));
            let labels = start.labels.iter().map(|label| (ListField::Labels, Value::from(label.as_str())));
            let all = dependencies.chain(locks).chain(tools).chain(labels);
            for (place, (list, value)) in all.enumerate() {
                let Some(item) = self.item(set, list, &value, record) else { continue };
                if let Item::Task(on) = item {
                    self.touch(on, at);
                }
                let inclusion =
                    Inclusion { at, place: place as u32, record: id, is_start: true, excluded_by: None };
                self.lists.entry(number).or_default().entry((list, item)).or_default().push(inclusion);
            }
        }
    }

    pub(super) fn item(
        &self,
        set: &OperationSet,
        list: ListField,
        value: &Value,
        by: &Record,
    ) -> Option<Item> {
        match list {
            ListField::DependsOn => match Prerequisite::read(value)? {
                Prerequisite::Here(task) => self.resolve(set, &task, by).map(Item::Task),
                Prerequisite::OtherPlan(there) => Some(Item::OtherPlan(there)),
            },
            ListField::Locks => {
                let Lock { key, mode } = Lock::deserialize(value).ok()?;
                Some(Item::Lock(key, mode))
            }
            ListField::Tools => value.as_str().map(|tool| Item::Tool(tool.to_owned())),
            ListField::Labels => value.as_str().map(|label| Item::Label(label.to_owned())),
        }
    }

    fn read_actions(&mut self, set: &OperationSet) {
        let removals: HashMap<ActionRef, Vec<u32>> =
            self.removals.iter().map(|(at, tasks, _)| (self.action_ref(*at), tasks.clone())).collect();
        for (at, record, action) in self.actions() {
            let id = record.id();
            let task = crate::set::tasks_of(action).next();
            let number = task.and_then(|task| self.resolve(set, task, record));
            if task.is_some() && number.is_none() && !matches!(action, Action::Remove { .. }) {
                self.disposition(at, Disposition::Unresolved);
                continue;
            }
            if let Some(number) = number
                && !matches!(action, Action::Remove { .. } | Action::Charge { .. })
            {
                self.touch(number, at);
            }
            match (action, number) {
                (Action::Create(start), _) => self.creates.push((at, start)),
                (Action::Set { field, to, over, .. }, None) => {
                    let write = Write { at, id, over, value: to };
                    self.plan_sets.entry(field.clone()).or_default().push(write);
                }
                (Action::Set { field, to, over, .. }, Some(number)) => {
                    if *field == Field::Parent
                        && let Some(parent) = to.as_str().and_then(|text| text.parse::<TaskRef>().ok())
                        && let Some(parent) = self.resolve(set, &parent, record)
                    {
                        self.touch(parent, at);
                    }
                    let write = Write { at, id, over, value: to };
                    self.sets.entry(number).or_default().entry(field.clone()).or_default().push(write);
                }
                (Action::Include { list, item, .. }, Some(number)) => {
                    let Some(element) = self.item(set, *list, item, record) else {
                        self.disposition(at, Disposition::Unresolved);
                        continue;
                    };
                    if let Item::Task(on) = element {
                        self.touch(on, at);
                    }
                    let inclusion =
                        Inclusion { at, place: 0, record: id, is_start: false, excluded_by: None };
                    let lists = self.lists.entry(number).or_default();
                    lists.entry((*list, element)).or_default().push(inclusion);
                }
                (Action::Report { outcome, text, output, over, .. }, Some(number)) => {
                    let value = OutcomeWrite::Report {
                        outcome: *outcome,
                        text: text.as_ref(),
                        output: output.as_ref(),
                    };
                    self.outcomes.entry(number).or_default().push(Write { at, id, over, value });
                }
                (Action::Retry { over, .. }, Some(number)) => {
                    let write = Write { at, id, over, value: OutcomeWrite::Retry };
                    self.outcomes.entry(number).or_default().push(write);
                }
                (Action::Claim { worker, .. }, Some(number)) => self.claims.push((at, number, worker)),
                (Action::Ask { question, choices, .. }, Some(number)) => {
                    self.asks.push((at, number, question, choices));
                }
                (Action::Answer { answer, over, .. }, Some(number)) => {
                    self.answers.push((at, number, answer, over));
                }
                (Action::Comment { text, by, at: written, .. }, Some(number)) => {
                    let by = by.clone().unwrap_or_else(|| record.by().clone());
                    let written = written.unwrap_or_else(|| record.at());
                    self.comments.push((at, number, Comment { by, at: written, text: text.clone() }));
                }
                (Action::Charge { tokens, moved, .. }, number) => {
                    self.charges.push((number, *tokens, *moved))
                }
                (Action::Stop { kind, reason, by }, _) => {
                    self.stops.push(StopWrite { at, kind: *kind, reason, by: by.as_ref() });
                }
                (Action::Resume { over }, _) => {
                    over.iter().for_each(|stop| self.resumed.entry(*stop).or_default().push(id));
                }
                (Action::Approve { approval }, _) => self.approvals.push((at, approval)),
                (Action::Delete {}, _) => self.deletes.push(at),
                // Only a person answers a question.
                (Action::Dismiss { .. }, _) if record.by().kind != ActorKind::Person => {}
                (Action::Dismiss { over }, _) => {
                    // Who keeps a task that was to be removed wants it: a removal has to have seen that.
                    let kept = over.iter().filter_map(|what| removals.get(what)).flatten().copied();
                    kept.for_each(|task| self.touch(task, at));
                    self.dismissed.extend(over.iter().map(|what| (*what, id)));
                }
                (Action::Add(_) | Action::Exclude { .. } | Action::Remove { .. }, _)
                | (
                    Action::Include { .. }
                    | Action::Report { .. }
                    | Action::Retry { .. }
                    | Action::Claim { .. }
                    | Action::Ask { .. }
                    | Action::Answer { .. }
                    | Action::Comment { .. },
                    None,
                ) => {}
            }
        }
    }

    /// Takes out the elements whose additions a later removal names.
    fn apply_exclusions(&mut self, set: &OperationSet) {
        for (at, record, action) in self.actions() {
            let Action::Exclude { task, list, item, over } = action else { continue };
            let Some(number) = self.resolve(set, task, record) else { continue };
            let Some(element) = self.item(set, *list, item, record) else {
                self.disposition(at, Disposition::Unresolved);
                continue;
            };
            let over: HashSet<RecordId> = over.iter().copied().collect();
            let inclusions = self.lists.get_mut(&number).and_then(|lists| lists.get_mut(&(*list, element)));
            for inclusion in inclusions.into_iter().flatten() {
                if over.contains(&inclusion.record) {
                    inclusion.excluded_by = Some(record.id());
                }
            }
        }
    }

    /// Returns the record of an action.
    pub(super) fn record(&self, at: At) -> &'a Record {
        self.records[at.0 as usize]
    }

    pub(super) fn action_ref(&self, at: At) -> ActionRef {
        ActionRef { record: self.record(at).id(), index: at.1 }
    }
}
