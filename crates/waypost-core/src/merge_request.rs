//! What a merged plan asks of the plan of one clone.

use serde::{Deserialize, Serialize};

use crate::{Actor, Draft, Hold, TaskId, Timestamp};

/// The reason of tasks that were open when the author of the plan ended it.
pub const PLAN_ENDED: &str = "the plan was ended";
/// Why an attempt was taken back whose task ended in another clone.
pub const ENDED_ELSEWHERE: &str = "it was ended in another clone";
/// Why an attempt was taken back whose plan was archived in another clone.
pub const ARCHIVED_ELSEWHERE: &str = "the plan was archived in another clone";

/// A merged plan, with which records it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeRequest {
    /// The merged plan.
    pub draft: Draft,
    /// The stop that holds, if the plan is stopped.
    pub stop: Option<SharedStop>,
    /// A stop that is new here and was lifted elsewhere: a stop travels, and its end does not.
    pub lifted_stop: Option<SharedStop>,
    /// Holds of people that are new here and were lifted elsewhere.
    pub lifted_holds: Vec<(TaskId, Hold)>,
    /// The person who archived the plan.
    pub archived_by: Option<Actor>,
    /// Whether somebody began to work in some clone, so that skips and failures have consequences in all of them.
    pub begun: bool,
    /// Whether new records come from where nobody trusts here: no machine work starts because of what they say.
    pub untrusted: bool,
    /// How many records are new.
    pub operations: u64,
    /// The tags of the clones that they are from.
    pub from: Vec<String>,
    /// The state that they lead to, a hash of all records.
    pub state: String,
    /// How many questions are open.
    pub questions: u32,
    /// The tasks about whose removal, order or place a person is asked.
    pub removals: Vec<TaskId>,
    /// Ids that mean another task since these records arrived: what the task that had one of them did here does not count for
    /// the one that has it now.
    pub renamed: Vec<TaskId>,
}

/// A stop that holds in every clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SharedStop {
    /// How the plan is stopped.
    pub kind: StopKind,
    /// The reason, or the author's summary.
    pub reason: String,
    /// The person who stopped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// Who wrote the record.
    pub actor: Actor,
    /// When.
    pub at: Timestamp,
}

/// How a plan is stopped.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StopKind {
    /// Nothing more starts.
    Paused,
    /// A person rejected it.
    Rejected,
    /// The author completed it; what was open is cancelled.
    Completed,
    /// The author ended it as failed; what was open is cancelled.
    Failed,
    /// Cancelled, with everything that was open.
    Cancelled,
}

impl StopKind {
    /// Whether the plan has ended.
    pub fn is_end(self) -> bool {
        match self {
            Self::Paused | Self::Rejected => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}
