//! Packs actions into as few records as the limits allow, and names the tasks that these records add.

use std::collections::HashMap;

use serde_json::Value;

use crate::action::{Action, ListField};
use crate::ids::{CloneTag, RecordId, TaskRef};
use crate::record::{Record, RecordError, RecordHeader};
use crate::set::OperationSet;
use waypost_core::{Actor, TaskId, Timestamp, limits};

/// Who made a version, when, and in which clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The time of the version.
    pub at: Timestamp,
    /// The actor.
    pub by: Actor,
    /// The tag of the clone.
    pub from: CloneTag,
}

/// Bytes of actions in one record. References grow when their records are known.
const BYTES_MAX: usize = limits::RECORD_BYTES_MAX / 3 * 2;

/// Makes records of actions. A task that one of them adds is referred to as one of the same record.
pub(super) fn pack(
    known: &OperationSet,
    stamp: &Stamp,
    actions: Vec<Action>,
) -> Result<Vec<Record>, RecordError> {
    let chunk_of_action = chunks(&actions);
    let is_single = chunk_of_action.last().is_none_or(|&chunk| chunk == 0);
    let mut chunk_of_task: HashMap<TaskId, usize> = HashMap::new();
    if !is_single {
        for (action, &chunk) in actions.iter().zip(&chunk_of_action) {
            if let Action::Add(start) = action {
                chunk_of_task.insert(start.task.clone(), chunk);
            }
        }
    }
    let mut records: Vec<Record> = Vec::new();
    let mut deferred: Vec<Action> = Vec::new();
    let mut open: Vec<Action> = Vec::new();
    let mut count = 0;
    for (mut action, chunk) in actions.into_iter().zip(chunk_of_action) {
        if chunk != count {
            records.push(next(known, stamp, &records, std::mem::take(&mut open))?);
            count = chunk;
        }
        if !is_single {
            defer(&mut action, chunk, &chunk_of_task, &mut deferred);
            name(&mut action, chunk, &chunk_of_task, &records);
        }
        open.push(action);
    }
    if !open.is_empty() {
        records.push(next(known, stamp, &records, open)?);
    }
    let places = chunks(&deferred);
    let (mut open, mut count) = (Vec::new(), 0);
    for (mut action, chunk) in deferred.into_iter().zip(places) {
        if chunk != count {
            records.push(next(known, stamp, &records, std::mem::take(&mut open))?);
            count = chunk;
        }
        name(&mut action, usize::MAX, &chunk_of_task, &records);
        open.push(action);
    }
    if !open.is_empty() {
        records.push(next(known, stamp, &records, open)?);
    }
    Ok(records)
}

/// Returns the number of the record to which each action goes.
fn chunks(actions: &[Action]) -> Vec<usize> {
    let (mut chunk, mut count, mut bytes) = (0, 0, 0);
    let place = |action: &Action| {
        let size = serde_json::to_string(action).map_or(0, |text| text.len() + 1);
        if count > 0 && (count == limits::RECORD_ACTIONS_MAX || bytes + size > BYTES_MAX) {
            (chunk, count, bytes) = (chunk + 1, 0, 0);
        }
        count += 1;
        bytes += size;
        chunk
    };
    actions.iter().map(place).collect()
}

fn next(
    known: &OperationSet,
    stamp: &Stamp,
    records: &[Record],
    actions: Vec<Action>,
) -> Result<Record, RecordError> {
    let Stamp { at, by, from } = stamp.clone();
    match records.last() {
        None => known.record(at, by, from, actions),
        Some(last) => {
            let (plan, clock, parents) = (known.plan().clone(), last.clock() + 1, vec![last.id()]);
            Record::new(RecordHeader { plan, clock, parents, at, by, from }, actions)
        }
    }
}

/// Takes the dependencies on tasks of later records out of an addition: they follow as actions of their own.
fn defer(
    action: &mut Action,
    chunk: usize,
    chunk_of_task: &HashMap<TaskId, usize>,
    deferred: &mut Vec<Action>,
) {
    let Action::Add(start) = action else { return };
    let is_later = |value: &Value| {
        let task = value.as_str().and_then(|text| text.parse::<TaskRef>().ok());
        let task = task.filter(|task| task.record.is_empty());
        task.and_then(|task| chunk_of_task.get(&task.name)).is_some_and(|&other| other > chunk)
    };
    for item in start.depends_on.iter().filter(|value| is_later(value)) {
        let task = TaskRef::in_same_record(start.task.clone());
        deferred.push(Action::Include { task, list: ListField::DependsOn, item: item.clone() });
    }
    start.depends_on.retain(|value| !is_later(value));
}

/// Names the records of tasks that were added by earlier ones.
fn name(action: &mut Action, chunk: usize, chunk_of_task: &HashMap<TaskId, usize>, records: &[Record]) {
    let rename = |task: &mut TaskRef| {
        let added = task.record.is_empty().then(|| chunk_of_task.get(&task.name)).flatten();
        if let Some(record) = added.filter(|&&other| other != chunk).and_then(|&other| records.get(other)) {
            task.record = record.id().prefix(RecordId::SHORT_CHARS);
        }
    };
    let rename_value = |value: &mut Value| {
        if let Some(mut task) = value.as_str().and_then(|text| text.parse::<TaskRef>().ok()) {
            rename(&mut task);
            *value = Value::from(task.to_string());
        }
    };
    match action {
        Action::Add(start) => {
            start.parent.iter_mut().for_each(rename);
            start.depends_on.iter_mut().for_each(rename_value);
        }
        Action::Set { task, field, to, .. } => {
            task.iter_mut().for_each(rename);
            if *field == crate::field::Field::Parent {
                rename_value(to);
            }
        }
        Action::Include { task, list, item } | Action::Exclude { task, list, item, .. } => {
            rename(task);
            if *list == ListField::DependsOn {
                rename_value(item);
            }
        }
        Action::Charge { task, .. } => task.iter_mut().for_each(rename),
        Action::Remove { tasks, .. } => tasks.iter_mut().for_each(rename),
        Action::Report { task, .. }
        | Action::Retry { task, .. }
        | Action::Claim { task, .. }
        | Action::Ask { task, .. }
        | Action::Answer { task, .. }
        | Action::Comment { task, .. } => rename(task),
        Action::Create(_)
        | Action::Stop { .. }
        | Action::Resume { .. }
        | Action::Approve { .. }
        | Action::Delete {}
        | Action::Dismiss { .. } => {}
    }
}
