//! A plan before anybody has checked it: what readers of formats return, what an editor saves.

use bitcode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::raw_json::is_default;
use crate::task::ForeignFields;
use crate::{Actor, PlanId, Task, Timestamp};

/// The name of the native format, and its version.
pub const FORMAT: &str = "waypost/1";

/// What the author says of a plan. Every text may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct PlanSpec {
    /// A line for lists.
    #[serde(default)]
    pub title: String,
    /// What is to be reached: the words of whoever asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// The author's free words for where the plan stands. No machine reads them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The agent that the plan belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The queue that its work is placed on; empty is the default queue.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub queue: String,
    /// Tokens that planning may spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// Free Markdown text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// Fields of foreign formats.
    #[serde(default, skip_serializing_if = "ForeignFields::is_empty")]
    pub foreign: ForeignFields,
}

/// Where a plan stands, in the machine's words.
#[derive(Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
pub enum Phase {
    /// Being written; nothing runs.
    #[default]
    Draft,
    /// Waits for a person's word.
    AwaitingApproval,
    /// Runs.
    Active,
    /// Starts nothing new.
    Paused,
    /// All that was to be done is done.
    Completed,
    /// Something failed, and nothing more can happen by itself.
    Failed,
    /// Stopped by order.
    Cancelled,
}

impl Phase {
    /// All of them, in the order of a plan's life.
    pub const ALL: [Self; 7] = [
        Self::Draft,
        Self::AwaitingApproval,
        Self::Active,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Whether the plan has ended.
    pub fn is_finished(self) -> bool {
        match self {
            Self::Draft | Self::AwaitingApproval | Self::Active | Self::Paused => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A person's recorded word that a plan may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct Approval {
    /// Who.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// The version that was looked at.
    pub version: u64,
    /// What the person added.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What came of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
pub struct PlanState {
    /// Where it stands.
    #[serde(default)]
    pub phase: Phase,
    /// Whether machines may run it only after a person has approved.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approval_required: bool,
    /// Whether the operator's policy was that nobody need approve, whoever changes it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approval_waived: bool,
    /// The approval that holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Actor>,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// When it first became active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Tokens that planning has spent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens_used: i64,
    /// Calls of models that it was charged with: the number of the latest.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calls: u64,
    /// What its author said at the end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Whether its author ended it: then no news from elsewhere opens it again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub closed: bool,
    /// Why it was paused, rejected or cancelled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The person who paused, rejected or ended it: only a person undoes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<Actor>,
    /// Archived: not listed, not changed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub archived: bool,
    /// The person who archived it: only a person restores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_by: Option<Actor>,
    /// The highest attempt of a task that was taken out: a task that comes later begins after it, so that no number of an
    /// attempt means two.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempts_gone: u32,
}

/// A plan that nobody has checked. Its JSON is the native format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct Draft {
    /// The format's name and version, [`FORMAT`].
    #[serde(default)]
    pub format: String,
    /// Its id, when it has one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<PlanId>,
    /// The version that it was read at; 0 when it has none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: u64,
    /// What its author says.
    #[serde(flatten)]
    pub spec: PlanSpec,
    /// What came of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: PlanState,
    /// Its tasks: siblings in their order.
    #[serde(default)]
    pub tasks: Vec<Task>,
}

impl Draft {
    /// A draft with a title and nothing else.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            spec: PlanSpec { title: title.into(), ..PlanSpec::default() },
            ..Self::default()
        }
    }
}
