//! What a merged plan asks of the plan of one clone.

use std::collections::BTreeSet;

use super::ids::RecordId;
use super::merge::{Merged, SharedStop};
use super::set::OperationSet;
use crate::Draft;

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
}

impl MergeRequest {
    /// Returns the request to turn the plan into what `set` says, with `new` records.
    pub fn of(set: &OperationSet, merged: &Merged, new: &[RecordId]) -> Self {
        let known = new.iter().filter_map(|id| set.get(*id)?.known());
        let from: BTreeSet<String> = known.map(|record| record.from().to_string()).collect();
        Self {
            draft: merged.draft.clone(),
            stop: merged.stop.clone(),
            operations: new.len() as u64,
            from: from.into_iter().collect(),
            state: set.state_hash(),
            questions: merged.conflicts.len() as u32,
        }
    }
}
