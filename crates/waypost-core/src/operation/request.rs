//! What a merged plan asks of the plan of one clone.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::ids::RecordId;
use super::merge::{Merged, SharedStop, merge};
use super::set::{OperationSet, TaskKey};
use crate::{Draft, TaskId};

/// A merged plan, with which records it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeRequest {
    /// The merged plan.
    pub draft: Draft,
    /// The stop that holds, if the plan is stopped.
    pub stop: Option<SharedStop>,
    /// How many records are new.
    pub operations: u64,
    /// The tags of the clones that they are from.
    pub from: Vec<String>,
    /// The state that they lead to, as [`OperationSet::state_hash`] names it.
    pub state: String,
    /// How many questions are open.
    pub questions: u32,
    /// Ids that mean another task since these records arrived.
    pub renamed: Vec<TaskId>,
}

impl MergeRequest {
    /// Returns the request to turn the plan into what `set` says, with `new` records.
    pub fn of(set: &OperationSet, merged: &Merged, new: &[RecordId]) -> Self {
        let known = new.iter().filter_map(|id| set.get(*id)?.known());
        let from: BTreeSet<String> = known.map(|record| record.from().to_string()).collect();
        Self {
            renamed: renamed_by(set, merged, new),
            draft: merged.draft.clone(),
            stop: merged.stop.clone(),
            operations: new.len() as u64,
            from: from.into_iter().collect(),
            state: set.state_hash(),
            questions: merged.conflicts.len() as u32,
        }
    }
}

/// Returns the ids that meant another task before these records arrived. Only where two tasks have one name is there
/// anything to compare.
fn renamed_by(set: &OperationSet, merged: &Merged, new: &[RecordId]) -> Vec<TaskId> {
    if merged.renamed.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let new: HashSet<RecordId> = new.iter().copied().collect();
    let mut earlier = OperationSet::new(set.plan().clone());
    for record in set.records().filter(|record| !new.contains(&record.id())) {
        earlier.insert(record.clone());
    }
    let before = merge(&earlier);
    let named = |merged: &Merged| -> HashMap<TaskId, TaskKey> {
        let ids = merged.draft.tasks.iter().map(|task| task.spec.id.clone());
        ids.zip(merged.keys.iter().cloned()).collect()
    };
    let after = named(merged);
    let mut renamed: Vec<TaskId> = named(&before)
        .into_iter()
        .filter(|(id, key)| after.get(id).is_some_and(|now| now != key))
        .map(|(id, _)| id)
        .collect();
    renamed.sort();
    renamed
}
