//! Notices of claims: who works on a task in another clone.

use serde::{Deserialize, Serialize};
use waypost_core::{TaskId, Timestamp};
use waypost_operation::{Claim, CloneTag, Merged};

/// Number of notices that are kept of a plan.
const NOTICES_MAX: usize = 500;

/// Somebody works on a task in another clone. It is a notice and no lease: others may take the task, and are offered it last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimNotice {
    /// The task.
    pub task: TaskId,
    /// Who works on it.
    pub worker: String,
    /// The tag of the clone.
    pub from: CloneTag,
    /// When that began.
    pub at: Timestamp,
}

impl std::fmt::Display for ClaimNotice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { worker, from, at, .. } = self;
        // The session of an agent means nothing in another clone.
        let worker = worker.split('#').next().unwrap_or_default();
        write!(
            formatter,
            "claimed by {} in clone {from} at {}",
            waypost_text::reveal(worker),
            at.to_the_second()
        )
    }
}

/// Returns who works on the tasks of a merged plan in clones other than this one, the latest notices.
pub(super) fn notices(merged: &Merged, tag: &CloneTag) -> Vec<ClaimNotice> {
    let elsewhere = merged.claims.iter().filter(|claim| claim.from != *tag);
    let mut found: Vec<ClaimNotice> = elsewhere
        .map(|Claim { task, worker, from, at, .. }| {
            let (task, worker) = (task.clone(), worker.clone());
            ClaimNotice { task, worker, from: from.clone(), at: *at }
        })
        .collect();
    found.sort_by_key(|notice| std::cmp::Reverse(notice.at));
    found.truncate(NOTICES_MAX);
    found
}
