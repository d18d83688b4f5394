//! An unvalidated plan: what format readers return and an editor saves.

use std::collections::{BTreeMap, HashSet};

use bitcode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::raw_json::is_default;
use crate::task::ForeignFields;
use crate::{Actor, Json, PlanId, Proof, Task, TaskId, Timestamp};

/// The name and version of the native format.
pub const FORMAT: &str = "waypost/1";

/// The queue of plans that name none.
pub const DEFAULT_QUEUE: &str = "default";

/// The author's part of a plan. Every text may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct PlanSpec {
    /// The title shown in lists.
    #[serde(default)]
    pub title: String,
    /// The goal, in the words of the person who asked for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// The author's free-text status. No program reads it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The agent that owns the plan.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The queue that the plan's work runs on; empty means the default queue.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub queue: String,
    /// The token budget for planning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// Free Markdown text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// Preserved fields of other formats.
    #[serde(default, skip_serializing_if = "ForeignFields::is_empty")]
    pub foreign: ForeignFields,
}

/// The lifecycle phase of a plan, maintained by Waypost.
#[derive(Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum Phase {
    /// Being written; nothing runs.
    #[default]
    Draft,
    /// Waiting for approval.
    AwaitingApproval,
    /// Started; tasks may run.
    Active,
    /// Paused; no further task starts.
    Paused,
    /// Every task is done or skipped by its author, or the author completed the plan.
    Completed,
    /// A task failed, or was skipped because of one elsewhere, and nothing more happens without intervention.
    Failed,
    /// Cancelled on request.
    Cancelled,
}

impl Phase {
    /// All phases, in the order of a plan's life.
    pub const ALL: [Self; 7] = [
        Self::Draft,
        Self::AwaitingApproval,
        Self::Active,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];
    /// The phases of plans that have not ended.
    pub const OPEN: [Self; 4] = [Self::Draft, Self::AwaitingApproval, Self::Active, Self::Paused];

    /// Whether the plan has ended.
    pub fn is_finished(self) -> bool {
        match self {
            Self::Draft | Self::AwaitingApproval | Self::Active | Self::Paused => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }

    /// Returns the stored name of the phase.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A person's recorded approval to run a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Approval {
    /// The person who approved.
    pub by: Actor,
    /// When the approval was given.
    pub at: Timestamp,
    /// The version that the person reviewed.
    pub version: u64,
    /// The person's note.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// What was approved. Earlier versions of Waypost did not record it, and workers start nothing without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<ApprovedWork>>,
}

impl Approval {
    /// Whether a person started a plan of their own, and nobody reviewed it.
    pub fn is_own(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.kind.is_own())
    }
}

/// What an approval is bound to, and how it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct ApprovedWork {
    /// The digest of everything that machines would do: `sha256:` and 64 hex digits. Workers start only this.
    pub digest: String,
    /// The definitions of the executors and checks that the plan uses, for the difference to a later state.
    pub definitions: Json,
    /// How it was proved that a person acted.
    pub proof: Proof,
    /// Where it was given, for example `terminal` or `dashboard`.
    pub via: String,
    /// Whether the person approved what others wrote, or ran a plan of their own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: ApprovalKind,
    /// What shows that the record is genuine. Earlier versions of Waypost did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Attestation>,
    /// The open tasks for people in other plans that stood before the work, as the person saw them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateAhead>,
    /// The sequence number of the store's latest version when the person saw the other plans that the work waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<u64>,
}

/// A task for people in another plan that stands before work of this one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Encode, Decode)]
pub struct GateAhead {
    /// The other plan.
    pub plan: PlanId,
    /// The task for people.
    pub task: TaskId,
    /// The tasks of this plan that wait for it.
    pub before: Vec<TaskId>,
    /// The digest of what it asks: another question opens nothing. Earlier versions of Waypost did not record it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
}

/// A person's no to the work of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Rejection {
    /// The person.
    pub by: Actor,
    /// The digest of the work that was rejected, as hex digits.
    pub work: String,
}

/// Why a person's record lets machines run a plan.
#[derive(Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
pub enum ApprovalKind {
    /// The person reviewed the plan and approved it.
    #[default]
    Explicit,
    /// The person started a plan of their own. It never stands for what an agent wrote.
    Own,
    /// The same, after they had reviewed it.
    OwnReviewed,
}

impl ApprovalKind {
    /// Whether it stands for a plan of the person's own, which their edits renew.
    pub fn is_own(self) -> bool {
        match self {
            Self::Explicit => false,
            Self::Own | Self::OwnReviewed => true,
        }
    }
}

/// Who vouches for an approval, and how that is verified. With the plan, its version and the digest, these fields make
/// the message that is sealed or signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Attestation {
    /// The account that recorded it: `UID@HOST`.
    pub account: String,
    /// When it was given, to the second. The time of the version is set later, when it is committed.
    pub approved_at: Timestamp,
    /// The place of a store in files, as a hash: an approval does not count in a copy of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// 32 random hex digits, so that no two approvals are alike.
    pub nonce: String,
    /// The chain hash of the version that was seen; empty if that version has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub history: String,
    /// When it ends. Then nothing new starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The message's MAC with the key of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// The message's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<ApprovalSignature>,
}

/// An SSH signature of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct ApprovalSignature {
    /// The signature as `ssh-keygen -Y sign` writes it.
    pub armored: String,
    /// The key's fingerprint, for display: verification takes the key from the signature.
    pub fingerprint: String,
    /// The principal who signed, such as `ada@example.org`.
    pub principal: String,
    /// Whether it counts in every store where the plan has this digest, and not only for the version that was seen.
    #[serde(default, skip_serializing_if = "is_default")]
    pub portable: bool,
}

/// A worker's refusal to start the tasks of an approved plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct StartRefusal {
    /// The worker that refuses.
    pub worker: String,
    /// Why it refuses.
    pub reason: StartRefusalReason,
    /// The digest of what this worker would do.
    pub digest: String,
    /// How that differs from what was approved, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
}

/// Why a worker starts nothing of an approved plan.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    Encode,
    Decode,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StartRefusalReason {
    /// The worker would run something other than what was approved.
    DigestMismatch,
    /// An earlier version of Waypost recorded the approval, without a digest or without a seal.
    NoDigest,
    /// A task for people ended, and no record shows that a person ended it. Only tasks behind it do not start.
    GateNotProved,
    /// No person has approved or started the plan.
    NoRecord,
    /// The approval was not given on this account, or its signature does not count here.
    NotAuthentic,
    /// The store is not the one that was at its location before.
    StoreChanged,
    /// The approval has ended.
    Expired,
    /// The approval has a weaker proof than this worker asks for.
    ProofTooLow,
}

/// The execution state of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct PlanState {
    /// The current phase.
    #[serde(default)]
    pub phase: Phase,
    /// Whether machines may run the plan only after a person approved it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approval_required: bool,
    /// Whether the operator's policy waives approval, regardless of who changes the plan.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approval_waived: bool,
    /// The approval currently in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The workers that refuse to start its tasks, at most [`crate::limits::START_REFUSALS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start_refusals: Vec<StartRefusal>,
    /// What persons rejected, at most [`crate::limits::REJECTIONS_MAX`]: an edit that is taken back brings a rejected plan back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejections: Vec<Rejection>,
    /// The actor that created the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Actor>,
    /// When the plan was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When the plan last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// When the plan first became active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the plan ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Tokens spent on planning.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens_used: i64,
    /// The number of the latest model call charged to the plan.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calls: u64,
    /// The author's summary at the end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Whether the author ended the plan. If so, no result from another plan reopens it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closed: bool,
    /// Why the plan was paused, rejected or cancelled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The person who paused, rejected or ended the plan: only a person can undo that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<Actor>,
    /// Whether the plan is archived: it is not listed and cannot be changed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub archived: bool,
    /// The person who archived the plan: only a person can restore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_by: Option<Actor>,
    /// The highest attempt number of any removed task. Attempts of tasks added later start above it, so that no attempt
    /// number is used twice.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempts_gone: u32,
    /// The highest number in the ids of removed tasks, by the text before the number: `step_` → 3 after `step_3` was removed. New
    /// tasks do not get the id of a removed one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub numbers_gone: BTreeMap<String, u64>,
}

/// An unvalidated plan. Its JSON is the native format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct Draft {
    /// The name and version of the format, [`FORMAT`].
    #[serde(default)]
    pub format: String,
    /// The id of the plan, if it has one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<PlanId>,
    /// The version that was read; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: u64,
    /// The author's part.
    #[serde(flatten)]
    pub spec: PlanSpec,
    /// The execution state.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: PlanState,
    /// The tasks; siblings appear in their order.
    #[serde(default)]
    pub tasks: Vec<Task>,
}

impl Draft {
    /// Creates a draft that has only a title.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            spec: PlanSpec { title: title.into(), ..PlanSpec::default() },
            ..Self::default()
        }
    }

    /// Whether the plan and all its tasks have ended. The statuses of groups are derived and do not count.
    pub fn has_ended(&self) -> bool {
        let parents: HashSet<&TaskId> =
            self.tasks.iter().filter_map(|task| task.spec.parent.as_ref()).collect();
        let has_ended = |task: &Task| task.state.status.is_finished() || parents.contains(&task.spec.id);
        self.state.phase.is_finished() && self.tasks.iter().all(has_ended)
    }
}
