//! What the known records say about single tasks and fields, as far as new actions must name it.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::pack::Stamp;
use crate::action::{Action, ActionRef, ListField};
use crate::field::Field;
use crate::ids::{RecordId, TaskRef};
use crate::merge::{Conflict, ConflictKind, Merged, merge};
use crate::record::{ParsedRecord, Prerequisite, Record};
use crate::set::{OperationSet, TaskKey};
use waypost_core::{ActorKind, TaskId};

/// A write of a field, or an outcome: its record, and the writes that it names.
pub(super) type KnownWrite<'a> = (&'a Record, &'a [RecordId]);

/// The records that are known, asked about single tasks. Only what is contested costs a merge.
pub(super) struct KnownFacts<'a> {
    pub(super) set: &'a OperationSet,
    merged: OnceCell<Merged>,
}

impl<'a> KnownFacts<'a> {
    pub(super) fn new(set: &'a OperationSet) -> Self {
        Self { set, merged: OnceCell::new() }
    }

    /// Returns the task that the plan shows under an id.
    pub(super) fn key(&self, id: &TaskId) -> Option<TaskKey> {
        let mut named = self.set.added_as(id.as_str());
        if named.len() == 1 {
            return named.pop();
        }
        if named.is_empty() {
            let (stem, record) = id.as_str().rsplit_once('~')?;
            named = self.set.added_as(stem);
            named.retain(|key| key.record.starts_with(record));
            if named.len() == 1 {
                return named.pop();
            }
        }
        let merged = self.merged();
        let place = merged.draft.tasks.iter().position(|task| task.spec.id == *id)?;
        merged.keys.get(place).cloned()
    }

    fn merged(&self) -> &Merged {
        self.merged.get_or_init(|| merge(self.set))
    }

    /// Returns which writes another one replaces, of those that nothing replaced. What clones disagree about, only a person
    /// decides: an agent or a worker replaces what it wrote itself, and the question stays open.
    pub(super) fn replaced(
        &self,
        stamp: &Stamp,
        task: Option<&TaskKey>,
        kind: &ConflictKind,
        writes: Vec<KnownWrite<'a>>,
    ) -> Vec<RecordId> {
        let is_person = stamp.by.kind == ActorKind::Person;
        let mut facts = facts(&writes);
        // Where an agent named several writes, these may be facts all the same.
        let names_several =
            |write: &KnownWrite<'_>| write.1.len() > 1 && write.0.by().kind != ActorKind::Person;
        if facts.len() < 2 && !(is_person && writes.iter().any(names_several)) {
            return facts;
        }
        let is_asked = |conflict: &&Conflict| conflict.key.as_ref() == task && conflict.kind == *kind;
        let Some(conflict) = self.merged().conflicts.iter().find(is_asked) else { return facts };
        if is_person {
            facts.extend(conflict.actions.iter().map(|action| action.record));
            facts.sort_unstable();
            facts.dedup();
            return facts;
        }
        facts.retain(|id| {
            let record = self.set.get(*id).and_then(ParsedRecord::known);
            record.is_some_and(|record| (record.by(), record.from()) == (&stamp.by, &stamp.from))
        });
        facts
    }

    pub(super) fn reference(&self, key: &TaskKey) -> TaskRef {
        self.set.reference(key)
    }

    /// Returns the writes of a field of a task, or of the plan, that nothing replaced.
    pub(super) fn facts(&self, task: Option<&TaskKey>, field: &Field) -> Vec<RecordId> {
        facts(&self.writes(task, field))
    }

    /// Returns the writes of a field of a task, or of the plan.
    pub(super) fn writes(&self, task: Option<&TaskKey>, field: &Field) -> Vec<KnownWrite<'a>> {
        let about = match task {
            Some(task) => self.set.about(task),
            None => self.set.about_plan(),
        };
        let writes = about.into_iter().filter_map(|(record, action)| {
            if let Action::Set { field: set, over, .. } = action
                && set == field
            {
                return Some((record, over.as_slice()));
            }
            let is_create = matches!(action, Action::Create(_)) && task.is_none();
            is_create.then_some((record, [].as_slice()))
        });
        writes.collect()
    }

    /// Returns the outcomes and retries of a task, and whether an outcome is among what is known.
    pub(super) fn outcomes(&self, task: &TaskKey) -> (Vec<KnownWrite<'a>>, bool) {
        let about = self.set.about(task);
        let mut has_outcome =
            self.set.get(task.record).and_then(|record| record.known()).is_some_and(|record| {
                record.actions().iter().any(|action| {
                matches!(action, Action::Add(start) if start.task == task.name && start.state.is_some())
            })
            });
        has_outcome |= about.iter().any(|(_, action)| matches!(action, Action::Report { .. }));
        let writes = about.into_iter().filter_map(|(record, action)| {
            if let Action::Report { over, .. } | Action::Retry { over, .. } = action {
                Some((record, over.as_slice()))
            } else {
                None
            }
        });
        (writes.collect(), has_outcome)
    }

    /// Returns the records that ask this on behalf of a task and have no answer: an answer counts only for what was read.
    pub(super) fn questions(&self, task: &TaskKey, text: &str) -> Vec<RecordId> {
        let about = self.set.about(task);
        let answered: HashSet<RecordId> = about
            .iter()
            .filter_map(
                |(_, action)| if let Action::Answer { over, .. } = action { Some(over) } else { None },
            )
            .flatten()
            .copied()
            .collect();
        let is_asked = |action: &Action| matches!(action, Action::Ask { question, .. } if question == text);
        let asks = about.iter().filter(|(_, action)| is_asked(action));
        asks.map(|(record, _)| record.id()).filter(|id| !answered.contains(id)).collect()
    }

    /// Returns the deletions of the plan.
    pub(super) fn deletes(&self) -> Vec<ActionRef> {
        let records = self.set.records().filter_map(ParsedRecord::known);
        let found = records.flat_map(|record| {
            let actions = record.actions().iter().zip(0..);
            let deletes = actions.filter(|(action, _)| matches!(action, Action::Delete {}));
            deletes.map(|(_, index)| ActionRef { record: record.id(), index })
        });
        found.collect()
    }

    /// Returns the stops that nothing lifted.
    pub(super) fn stops(&self) -> Vec<RecordId> {
        let about = self.set.about_plan();
        let lifted: HashSet<RecordId> = about
            .iter()
            .filter_map(|(_, action)| if let Action::Resume { over } = action { Some(over) } else { None })
            .flatten()
            .copied()
            .collect();
        let stops = about.iter().filter(|(_, action)| matches!(action, Action::Stop { .. }));
        let found: BTreeSet<RecordId> = stops.map(|(record, _)| record.id()).collect();
        found.into_iter().filter(|id| !lifted.contains(id)).collect()
    }

    /// Returns the records that gave an element to a list of a task.
    pub(super) fn inclusions(&self, task: &TaskKey, list: ListField, item: &Value) -> Vec<RecordId> {
        let wanted = self.meaning(list, item, None);
        let about = self.set.about(task);
        let same = about.iter().filter_map(|(record, action)| {
            let Action::Include { list: other, item, .. } = action else { return None };
            let is_same = *other == list && self.meaning(list, item, Some(record)) == wanted;
            is_same.then(|| record.id())
        });
        let mut found: Vec<RecordId> = std::iter::once(task.record).chain(same).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns an element in a form that is equal if it means the same.
    fn meaning(&self, list: ListField, item: &Value, by: Option<&Record>) -> (Option<TaskKey>, Value) {
        if list == ListField::DependsOn
            && let Some(Prerequisite::Here(task)) = Prerequisite::read(item)
        {
            let key = match by {
                Some(record) => self.set.resolve(&task, record),
                None => {
                    let mut named = self.set.added_as(task.name.as_str());
                    named.retain(|key| key.record.starts_with(&task.record));
                    named.pop()
                }
            };
            return (key, Value::Null);
        }
        (None, item.clone())
    }

    /// Returns the key of a task's place.
    pub(super) fn place(&self, task: &TaskKey) -> Option<String> {
        let about = self.set.about(task);
        let last = about.iter().rev().find_map(|(_, action)| {
            let Action::Set { field: Field::Place, to, .. } = action else { return None };
            to.as_str().map(str::to_owned)
        });
        last.or_else(|| {
            let record = self.set.get(task.record)?.known()?;
            record.actions().iter().find_map(|action| {
                let Action::Add(start) = action else { return None };
                (start.task == task.name).then(|| start.place.clone())
            })
        })
    }
}

/// Returns the writes that no other one names.
fn facts(writes: &[KnownWrite<'_>]) -> Vec<RecordId> {
    let replaced: HashSet<RecordId> = writes
        .iter()
        .flat_map(|(by, over)| over.iter().filter(|older| **older != by.id()))
        .copied()
        .collect();
    let found: BTreeSet<RecordId> =
        writes.iter().map(|(record, _)| record.id()).filter(|id| !replaced.contains(id)).collect();
    found.into_iter().collect()
}
