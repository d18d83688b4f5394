//! What a merged plan asks of the plan of one clone.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::ids::RecordId;
use crate::merge::{Merged, merge};
use crate::set::{OperationSet, TaskKey};
use waypost_core::{MergeRequest, TaskId};

/// Returns the request to turn the plan into what `set` says, with `new` records.
pub fn merge_request(set: &OperationSet, merged: &Merged, new: &[RecordId]) -> MergeRequest {
    let known = new.iter().filter_map(|id| set.get(*id)?.known());
    let from: BTreeSet<String> = known.map(|record| record.from().to_string()).collect();
    MergeRequest {
        renamed: renamed_by(set, merged, new),
        draft: merged.draft.clone(),
        stop: merged.stop.clone(),
        archived_by: merged.draft.state.archived_by.clone(),
        begun: merged.begun,
        operations: new.len() as u64,
        from: from.into_iter().collect(),
        state: set.state_hash(),
        questions: merged.conflicts.len() as u32,
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
