//! What a merged plan asks of the plan of one clone.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::action::Action;
use crate::field::Field;
use crate::ids::RecordId;
use crate::merge::{Merged, hold_of, merge};
use crate::record::Record;
use crate::set::{OperationSet, TaskKey};
use waypost_core::{ActorKind, Hold, MergeRequest, SharedStop, StopKind, TaskId};

/// Returns the request to turn the plan into what `set` says, with `new` records.
pub fn merge_request(set: &OperationSet, merged: &Merged, new: &[RecordId]) -> MergeRequest {
    let known = new.iter().filter_map(|id| set.get(*id)?.known());
    let from: BTreeSet<String> = known.map(|record| record.from().to_string()).collect();
    let renamed = renamed_by(set, merged, new).into_iter().map(|(id, _)| id).collect();
    MergeRequest {
        renamed,
        lifted_stop: lifted_stop(set, merged, new),
        lifted_holds: lifted_holds(set, merged, new),
        operations: new.len() as u64,
        from: from.into_iter().collect(),
        ..of(set, merged)
    }
}

/// Returns the request to turn the plan into what `set` says after its own changes, which `made` is about.
pub fn settle_request(set: &OperationSet, merged: &Merged, made: &[RecordId]) -> MergeRequest {
    let renamed = renamed_by(set, merged, made).into_iter();
    // What was added here is in the plan under its new id already.
    let renamed = renamed.filter(|(_, now)| !made.contains(&now.record)).map(|(id, _)| id).collect();
    MergeRequest { renamed, ..of(set, merged) }
}

fn of(set: &OperationSet, merged: &Merged) -> MergeRequest {
    MergeRequest {
        renamed: Vec::new(),
        draft: merged.draft.clone(),
        stop: merged.stop.clone(),
        lifted_stop: None,
        lifted_holds: Vec::new(),
        archived_by: merged.draft.state.archived_by.clone(),
        begun: merged.begun,
        untrusted: false,
        operations: 0,
        from: Vec::new(),
        state: set.state_hash(),
        questions: merged.conflicts.len() as u32,
        removals: tasks_asked(merged),
    }
}

/// Returns the tasks about whose removal, order or place a person is asked.
fn tasks_asked(merged: &Merged) -> Vec<TaskId> {
    let asked: HashSet<&TaskKey> = merged.conflicts.iter().flat_map(|conflict| &conflict.guarded).collect();
    let tasks = merged.keys.iter().zip(&merged.draft.tasks).filter(|(key, _)| asked.contains(key));
    tasks.map(|(_, task)| task.spec.id.clone()).collect()
}

/// Returns the last stop of these records, if nothing holds any more. What a person ended and somebody opened again
/// elsewhere is rejected here: agents do not go on with it.
fn lifted_stop(set: &OperationSet, merged: &Merged, new: &[RecordId]) -> Option<SharedStop> {
    if merged.stop.is_some() {
        return None;
    }
    let mut records: Vec<&Record> = new.iter().filter_map(|id| set.get(*id)?.known()).collect();
    records.sort_by_key(|record| (record.clock(), record.id()));
    let stops = records.into_iter().flat_map(|record| {
        record.actions().iter().filter_map(move |action| {
            let Action::Stop { kind, reason, by } = action else { return None };
            let (actor, at) = (record.by().clone(), record.at());
            let is_held = !kind.is_end() || by.is_some();
            let kind = if kind.is_end() { StopKind::Rejected } else { *kind };
            is_held.then(|| SharedStop { kind, reason: reason.clone(), by: by.clone(), actor, at })
        })
    });
    stops.last()
}

/// Returns the last hold of a person on each open task that these records hold and lift.
fn lifted_holds(set: &OperationSet, merged: &Merged, new: &[RecordId]) -> Vec<(TaskId, Hold)> {
    let mut records: Vec<&Record> = new.iter().filter_map(|id| set.get(*id)?.known()).collect();
    records.retain(|record| record.by().kind == ActorKind::Person);
    records.sort_by_key(|record| (record.clock(), record.id()));
    let mut holds = HashMap::new();
    for record in records {
        for action in record.actions() {
            let Action::Set { task: Some(task), field: Field::Held, to, .. } = action else { continue };
            if let (Some(key), Some(hold)) = (set.resolve(task, record), hold_of(to, record.by())) {
                holds.insert(key, hold);
            }
        }
    }
    if holds.is_empty() {
        return Vec::new();
    }
    let tasks = merged.keys.iter().zip(&merged.draft.tasks);
    let open = tasks.filter(|(_, task)| task.state.held().is_none() && !task.state.status.is_finished());
    open.filter_map(|(key, task)| Some((task.spec.id.clone(), holds.remove(key)?))).collect()
}

/// Returns the ids that meant another task before these records arrived, with the task that each means now. Only where
/// one name was given twice is there anything to compare.
fn renamed_by(set: &OperationSet, merged: &Merged, new: &[RecordId]) -> Vec<(TaskId, TaskKey)> {
    if new.is_empty() || !set.has_name_twice() {
        return Vec::new();
    }
    let new: HashSet<RecordId> = new.iter().copied().collect();
    let mut earlier = OperationSet::new(set.plan().clone());
    for record in set.records().filter(|record| !new.contains(&record.id())) {
        earlier.insert(record.clone());
    }
    let before = merge(&earlier);
    let named = |merged: &Merged| -> BTreeMap<TaskId, TaskKey> {
        let ids = merged.draft.tasks.iter().map(|task| task.spec.id.clone());
        ids.zip(merged.keys.iter().cloned()).collect()
    };
    let before = named(&before);
    let is_other = |(id, now): &(TaskId, TaskKey)| before.get(id).is_some_and(|key| key != now);
    named(merged).into_iter().filter(is_other).collect()
}
