//! The set of records that a clone has of one plan: the truth from which the plan is made.
//!
//! Records are inserted in any order. What the set says depends on its content alone.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use crate::action::Action;
use crate::field::Field;
use crate::ids::{CloneTag, RecordId, TaskRef};
use crate::record::{ParsedRecord, Record, RecordError, RecordHeader};
use waypost_core::canonical::sha256;
use waypost_core::{Actor, PlanId, TaskId, Timestamp, limits};

/// A task, by the record that added it and the name that it was given there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    /// The record.
    pub record: RecordId,
    /// The name.
    pub name: TaskId,
}

/// The place of an action in the total order: clock, record, index.
pub(crate) type ActionPlace = (u64, RecordId, u32);

/// What became of a record that was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is new.
    New,
    /// The set has it already.
    Known,
    /// It is about another plan.
    OtherPlan,
    /// The set has [`limits::RECORDS_MAX`] records.
    TooMany,
}

/// Why a record of the set does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedRecord {
    /// Its clock is not what follows from its parents.
    #[error("its clock is {found}; after its parents it must be {expected}")]
    WrongClock {
        /// Its clock.
        found: u64,
        /// What follows from its parents, or the least that may.
        expected: u64,
    },
}

/// Whether a record counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Completeness {
    /// It does, and all its ancestors are here.
    Complete,
    /// It does, although some of its ancestors are missing. New records do not name it as a parent.
    Waiting,
    /// It, or an ancestor of it, is of a newer version of Waypost: nobody here has seen it, so that new records do not name
    /// it as a parent either. It counts if this version can read it.
    Unread,
    /// It does not.
    Refused,
}

/// The records of one plan.
#[derive(Clone, Debug)]
pub struct OperationSet {
    plan: PlanId,
    records: BTreeMap<(u64, RecordId), (ParsedRecord, Completeness)>,
    clocks: HashMap<RecordId, u64>,
    /// Records that name this one as a parent; it may be missing.
    children: HashMap<RecordId, Vec<RecordId>>,
    heads: BTreeSet<RecordId>,
    newer: usize,
    /// The records that add a task of this name.
    adds: HashMap<TaskId, Vec<ActionPlace>>,
    /// The actions about tasks of this name.
    about: HashMap<TaskId, Vec<ActionPlace>>,
    about_plan: Vec<ActionPlace>,
}

impl OperationSet {
    /// Creates the set of a plan without records.
    pub fn new(plan: PlanId) -> Self {
        Self {
            plan,
            records: BTreeMap::new(),
            clocks: HashMap::new(),
            children: HashMap::new(),
            heads: BTreeSet::new(),
            newer: 0,
            adds: HashMap::new(),
            about: HashMap::new(),
            about_plan: Vec::new(),
        }
    }

    /// Returns the plan.
    pub fn plan(&self) -> &PlanId {
        &self.plan
    }

    /// Inserts a record. A record that is here already is ignored.
    pub fn insert(&mut self, record: ParsedRecord) -> Inserted {
        let (id, clock) = (record.id(), record.clock());
        if *record.plan() != self.plan {
            return Inserted::OtherPlan;
        }
        if self.clocks.contains_key(&id) {
            return Inserted::Known;
        }
        if self.records.len() >= limits::RECORDS_MAX {
            return Inserted::TooMany;
        }
        for parent in record.parents() {
            self.children.entry(*parent).or_default().push(id);
        }
        self.newer += usize::from(record.known().is_none());
        self.clocks.insert(id, clock);
        self.index(&record);
        self.records.insert((clock, id), (record, Completeness::Waiting));
        // Its children may have waited for it.
        let mut look_at = vec![id];
        while let Some(changed) = look_at.pop() {
            let (is_first, id) = (changed == id, changed);
            let Some(&clock) = self.clocks.get(&id) else { continue };
            let now = self.completeness(clock, id);
            let Some((record, completeness)) = self.records.get_mut(&(clock, id)) else { continue };
            let before = std::mem::replace(completeness, now);
            if now == Completeness::Complete {
                for parent in record.parents() {
                    self.heads.remove(parent);
                }
                self.heads.insert(id);
            }
            if is_first || before != now {
                look_at.extend(self.children.get(&id).into_iter().flatten());
            }
        }
        Inserted::New
    }

    fn completeness(&self, clock: u64, id: RecordId) -> Completeness {
        let Some((record, _)) = self.records.get(&(clock, id)) else { return Completeness::Waiting };
        let (mut is_exact, mut is_read, mut least) = (true, record.known().is_some(), 1);
        for parent in record.parents() {
            let known = self.clocks.get(parent).and_then(|&clock| self.records.get(&(clock, *parent)));
            match known {
                Some((above, completeness)) => {
                    is_exact &= matches!(completeness, Completeness::Complete | Completeness::Unread);
                    is_read &= *completeness == Completeness::Complete;
                    least = least.max(above.clock() + 1);
                }
                None => is_exact = false,
            }
        }
        match clock {
            clock if clock < least || is_exact && clock != least => Completeness::Refused,
            _ if is_exact && is_read => Completeness::Complete,
            _ if is_exact => Completeness::Unread,
            _ => Completeness::Waiting,
        }
    }

    fn index(&mut self, record: &ParsedRecord) {
        let Some(known) = record.known() else { return };
        for (index, action) in known.actions().iter().enumerate() {
            let place = (known.clock(), known.id(), index as u32);
            if let Action::Add(start) = action {
                self.adds.entry(start.task.clone()).or_default().push(place);
            }
            let mut is_about_task = false;
            for task in tasks_of(action) {
                is_about_task = true;
                self.about.entry(task.name.clone()).or_default().push(place);
            }
            if !is_about_task && !matches!(action, Action::Add(_)) {
                self.about_plan.push(place);
            }
        }
    }

    /// Whether the set has a record.
    pub fn contains(&self, id: RecordId) -> bool {
        self.clocks.contains_key(&id)
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns a record.
    pub fn get(&self, id: RecordId) -> Option<&ParsedRecord> {
        let clock = *self.clocks.get(&id)?;
        self.records.get(&(clock, id)).map(|(record, _)| record)
    }

    /// Returns an action of a record.
    pub(crate) fn action(&self, of: crate::action::ActionRef) -> Option<&Action> {
        self.get(of.record)?.known()?.actions().get(of.index as usize)
    }

    /// Iterates over all records, in the total order of clock and id.
    pub fn records(&self) -> impl Iterator<Item = &ParsedRecord> {
        self.records.values().map(|(record, _)| record)
    }

    /// Returns the records that no other one names as a parent, of those whose ancestors are all here.
    pub fn heads(&self) -> Vec<RecordId> {
        self.heads.iter().copied().collect()
    }

    /// Names what the set says, in all clones alike: the hash of the heads.
    pub fn state_hash(&self) -> String {
        let heads: Vec<String> = self.heads.iter().map(ToString::to_string).collect();
        waypost_text::hex(&sha256(heads.join("\n").as_bytes()))
    }

    /// Returns the records that do not count, with the reason.
    pub fn refused(&self) -> Vec<(RecordId, RefusedRecord)> {
        let refused =
            self.records.values().filter(|(_, completeness)| *completeness == Completeness::Refused);
        let why = |record: &ParsedRecord| {
            let above = record.parents().iter().filter_map(|parent| self.clocks.get(parent));
            let expected = above.max().map_or(1, |clock| clock.saturating_add(1));
            RefusedRecord::WrongClock { found: record.clock(), expected }
        };
        refused.map(|(record, _)| (record.id(), why(record))).collect()
    }

    /// Returns the records some of whose parents are missing or refused, with those parents.
    pub fn waiting(&self) -> Vec<(RecordId, Vec<RecordId>)> {
        let is_counted = |parent: &RecordId| {
            let known = self.clocks.get(parent).and_then(|&clock| self.records.get(&(clock, *parent)));
            known.is_some_and(|(_, completeness)| *completeness != Completeness::Refused)
        };
        let waiting =
            self.records.values().filter(|(_, completeness)| *completeness == Completeness::Waiting);
        let missing = waiting.map(|(record, _)| {
            let missing = record.parents().iter().copied().filter(|parent| !is_counted(parent));
            (record.id(), missing.collect::<Vec<RecordId>>())
        });
        missing.filter(|(_, missing)| !missing.is_empty()).collect()
    }

    /// Returns the number of records of a newer version of Waypost. They are passed on, and do not count here.
    pub fn newer(&self) -> usize {
        self.newer
    }

    /// Makes the next record of this clone, which has seen the whole set. It is not inserted.
    pub fn record(
        &self,
        at: Timestamp,
        by: Actor,
        from: CloneTag,
        actions: Vec<Action>,
    ) -> Result<Record, RecordError> {
        let clock_of = |parent: &RecordId| self.clocks.get(parent).copied().unwrap_or_default();
        let mut parents = self.heads();
        // What it does not name, it has not seen. The next records name the rest.
        parents.sort_by_key(|parent| std::cmp::Reverse((clock_of(parent), *parent)));
        parents.truncate(limits::RECORD_PARENTS_MAX);
        let clock = parents.first().map_or(0, clock_of).saturating_add(1);
        parents.sort_unstable();
        Record::new(RecordHeader { plan: self.plan.clone(), clock, parents, at, by, from }, actions)
    }

    /// Iterates over the records that count and that this version knows, in the total order.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Record> {
        let counted =
            self.records.values().filter(|(_, completeness)| *completeness != Completeness::Refused);
        counted.filter_map(|(record, _)| record.known())
    }

    /// Returns the records that name one of these tasks and that new records do not name as ancestors.
    pub(crate) fn waiting_about(&self, tasks: &[TaskKey]) -> Vec<RecordId> {
        let names: HashSet<&str> = tasks.iter().map(|key| key.name.as_str()).collect();
        let is_about = |record: &Record| {
            record
                .actions()
                .iter()
                .any(|action| names_of(action).iter().any(|name| names.contains(name.as_str())))
        };
        let waiting = self
            .records
            .values()
            .filter(|(_, completeness)| matches!(completeness, Completeness::Waiting | Completeness::Unread));
        let known = waiting.filter_map(|(record, _)| record.known());
        known.filter(|record| is_about(record)).map(Record::id).collect()
    }

    fn counted_action(&self, (clock, id, index): ActionPlace) -> Option<(&Record, &Action)> {
        let (record, completeness) = self.records.get(&(clock, id))?;
        let record = record.known().filter(|_| *completeness != Completeness::Refused)?;
        record.actions().get(index as usize).map(|action| (record, action))
    }

    /// Returns the tasks that were added under a name, in the total order.
    pub(crate) fn added_as(&self, name: &str) -> Vec<TaskKey> {
        let mut places: Vec<ActionPlace> = self.adds.get(name).cloned().unwrap_or_default();
        places.retain(|place| self.counted_action(*place).is_some());
        places.sort_unstable();
        let key = |(_, record, _): ActionPlace| {
            self.adds.get_key_value(name).map(|(name, _)| TaskKey { record, name: name.clone() })
        };
        places.into_iter().filter_map(key).collect()
    }

    /// Whether several tasks were added under one name.
    pub(crate) fn has_name_twice(&self) -> bool {
        self.adds.values().any(|places| places.len() > 1)
    }

    /// Returns the actions about a task, in the total order. The action that adds it is not among them.
    pub(crate) fn about(&self, task: &TaskKey) -> Vec<(&Record, &Action)> {
        let actions = self.sorted(self.about.get(&task.name));
        let is_meant = |record: &Record, action: &Action| {
            tasks_of(action)
                .any(|named| named.name == task.name && self.resolve(named, record).as_ref() == Some(task))
        };
        actions.into_iter().filter(|(record, action)| is_meant(record, action)).collect()
    }

    /// Returns the actions about the plan itself, in the total order.
    pub(crate) fn about_plan(&self) -> Vec<(&Record, &Action)> {
        self.sorted(Some(&self.about_plan))
    }

    fn sorted(&self, places: Option<&Vec<ActionPlace>>) -> Vec<(&Record, &Action)> {
        let mut places: Vec<ActionPlace> = places.cloned().unwrap_or_default();
        places.sort_unstable();
        places.dedup();
        places.into_iter().filter_map(|place| self.counted_action(place)).collect()
    }

    /// Returns the task that a record means. Of several whose records begin alike, it is one that its author had seen, and
    /// of those the first.
    pub(crate) fn resolve(&self, task: &TaskRef, by: &Record) -> Option<TaskKey> {
        let added = self.added_as(task.name.as_str());
        if task.record.is_empty() {
            return added.into_iter().find(|key| key.record == by.id());
        }
        let mut fitting: Vec<TaskKey> =
            added.into_iter().filter(|key| key.record.starts_with(&task.record)).collect();
        if fitting.len() > 1 {
            let seen = self.seen_by(by);
            if let Some(place) = fitting.iter().position(|key| seen.contains(&key.record)) {
                return Some(fitting.swap_remove(place));
            }
        }
        fitting.into_iter().next()
    }

    /// Returns the records that a record's author had seen.
    fn seen_by(&self, record: &Record) -> HashSet<RecordId> {
        let (mut seen, mut stack) = (HashSet::new(), record.parents().to_vec());
        while let Some(id) = stack.pop() {
            if seen.insert(id) {
                stack.extend(self.get(id).into_iter().flat_map(|record| record.parents()));
            }
        }
        seen
    }

    /// Returns a value of a record as another record must write it: references to tasks name their records.
    pub(crate) fn reread(&self, field: &Field, to: &Value, by: RecordId) -> Value {
        if *field != Field::Parent {
            return to.clone();
        }
        let task = to.as_str().and_then(|text| text.parse::<TaskRef>().ok());
        let record = self.get(by).and_then(ParsedRecord::known);
        let meant = task.zip(record).and_then(|(task, record)| self.resolve(&task, record));
        meant.map_or(Value::Null, |key| Value::from(self.reference(&key).to_string()))
    }

    /// Returns the shortest reference to a task that means no other one here.
    pub(crate) fn reference(&self, task: &TaskKey) -> TaskRef {
        let others: Vec<RecordId> = self
            .added_as(task.name.as_str())
            .into_iter()
            .map(|key| key.record)
            .filter(|record| *record != task.record)
            .collect();
        let is_clear =
            |chars: &usize| !others.iter().any(|other| other.starts_with(&task.record.prefix(*chars)));
        let chars = (RecordId::SHORT_CHARS..RecordId::CHARS).find(is_clear).unwrap_or(RecordId::CHARS);
        TaskRef { name: task.name.clone(), record: task.record.prefix(chars) }
    }
}

/// Returns the names of all tasks that an action is about, adds or names.
fn names_of(action: &Action) -> Vec<TaskId> {
    let mut names: Vec<TaskId> = tasks_of(action).map(|task| task.name.clone()).collect();
    let mut named = |value: &Value| {
        let task = value.as_str().and_then(|text| text.parse::<TaskRef>().ok());
        names.extend(task.map(|task| task.name));
    };
    if let Action::Set { field: Field::Parent, to: value, .. } | Action::Include { item: value, .. } = action
    {
        named(value);
    }
    if let Action::Add(start) = action {
        start.depends_on.iter().for_each(named);
        names.extend(start.parent.iter().map(|parent| parent.name.clone()));
        names.push(start.task.clone());
    }
    names
}

/// Iterates over the tasks that an action is about. The task that it adds, and those that it only names, are not among them.
pub(crate) fn tasks_of(action: &Action) -> impl Iterator<Item = &TaskRef> {
    let (one, several): (Option<&TaskRef>, &[TaskRef]) = match action {
        Action::Set { task, .. } | Action::Charge { task, .. } => (task.as_ref(), &[]),
        Action::Include { task, .. }
        | Action::Exclude { task, .. }
        | Action::Report { task, .. }
        | Action::Retry { task, .. }
        | Action::Claim { task, .. }
        | Action::Ask { task, .. }
        | Action::Answer { task, .. }
        | Action::Comment { task, .. } => (Some(task), &[]),
        Action::Remove { tasks, .. } => (None, tasks),
        Action::Create(_)
        | Action::Add(_)
        | Action::Stop { .. }
        | Action::Resume { .. }
        | Action::Approve { .. }
        | Action::Delete {}
        | Action::Dismiss { .. } => (None, &[]),
    };
    one.into_iter().chain(several)
}
