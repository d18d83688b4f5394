//! The actions of a record: field-level changes of a plan. Every shape is a promise and has a golden file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::field::Field;
use crate::ids::{BadOperationId, RecordId, TaskRef, shortened_text};
use crate::json_text;
use crate::travelling_work::TravellingWork;
use waypost_core::{
    Actor, Comment, Complexity, DependencyRule, ForeignFields, Hold, Json, Lock, Refinement, Retry, StopKind,
    TaskId, Timestamp,
};

/// One change of a plan.
///
/// `over` names the records whose writes of the same thing it replaces. What it does not name, its author did not see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// The plan begins, with these values of its fields. Its tasks follow as `add`, in this record and in others.
    Create(Box<PlanStart>),
    /// A task is added.
    Add(Box<TaskStart>),
    /// A field of a task, or of the plan, gets a value.
    Set {
        /// The task; absent for the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskRef>,
        /// The field.
        field: Field,
        /// The value.
        to: Value,
        /// The writes that this one replaces. What a task was added with need not be named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        over: Vec<RecordId>,
    },
    /// A list of a task gets an element.
    Include {
        /// The task.
        task: TaskRef,
        /// The list.
        list: ListField,
        /// The element.
        item: Value,
    },
    /// A list of a task loses an element.
    Exclude {
        /// The task.
        task: TaskRef,
        /// The list.
        list: ListField,
        /// The element.
        item: Value,
        /// The records whose additions of the element this removes.
        over: Vec<RecordId>,
    },
    /// Tasks are removed: all of them, those below included.
    Remove {
        /// The tasks.
        tasks: Vec<TaskRef>,
        /// Records about these tasks that its author had seen although some of their ancestors were missing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        over: Vec<RecordId>,
    },
    /// A task has come to an end, or is reported as done and waits for its check.
    Report {
        /// The task.
        task: TaskRef,
        /// How it ended.
        outcome: OutcomeKind,
        /// The result, the error or the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The output passed to dependants.
        #[serde(default, with = "json_text::optional", skip_serializing_if = "Option::is_none")]
        output: Option<Json>,
        /// The evidence of its check. It is shown; only a check that ran here counts here.
        #[serde(default, with = "json_text::optional", skip_serializing_if = "Option::is_none")]
        evidence: Option<Json>,
        /// The outcomes and retries that this one replaces.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        over: Vec<RecordId>,
    },
    /// A task is to be done again.
    Retry {
        /// The task.
        task: TaskRef,
        /// The outcomes and retries that this one replaces.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        over: Vec<RecordId>,
    },
    /// Somebody works on a task in the clone that wrote this. It is a notice: it starts nothing and gives no lease.
    Claim {
        /// The task.
        task: TaskRef,
        /// Who works on it.
        worker: String,
    },
    /// A worker asked a person.
    Ask {
        /// The task.
        task: TaskRef,
        /// The question.
        question: String,
        /// The possible answers; empty means any text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<String>,
    },
    /// Somebody answered a question.
    Answer {
        /// The task.
        task: TaskRef,
        /// The answer.
        answer: String,
        /// The questions that it answers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        over: Vec<RecordId>,
    },
    /// Tokens were spent.
    Charge {
        /// The task; absent for the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskRef>,
        /// The tokens.
        tokens: i64,
        /// Whether the plan was charged before, for a task that is gone.
        #[serde(default, skip_serializing_if = "is_default")]
        moved: bool,
    },
    /// The plan is stopped. A stop holds in every clone.
    Stop {
        /// How.
        kind: StopKind,
        /// The reason, or the author's summary at the end.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// The person who stopped it; absent if an agent or a worker did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// The plan continues in the clone that wrote this. It starts nothing in others.
    Resume {
        /// The stops that no longer hold.
        over: Vec<RecordId>,
    },
    /// A person approved the plan, with a signature that counts everywhere.
    Approve {
        /// The approval.
        #[serde(with = "json_text")]
        approval: Json,
    },
    /// The plan is deleted.
    Delete {},
    /// What was set aside is not wanted any more.
    Dismiss {
        /// The actions that were set aside.
        over: Vec<ActionRef>,
    },
    /// Somebody commented on a task.
    Comment {
        /// The task.
        task: TaskRef,
        /// The text.
        text: String,
        /// Who wrote it, if not the author of the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// When it was written, if not with the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
}

impl Action {
    /// The names of all actions.
    pub const OPS: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// Returns the name of the action.
    pub fn op(&self) -> &'static str {
        self.into()
    }
}

/// The values with which a plan begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStart {
    /// The title.
    #[serde(default)]
    pub title: String,
    /// The goal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// The author's free-text status.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The agent that owns the plan.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The queue.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub queue: String,
    /// The token budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// The Markdown text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The preserved fields of other formats, as texts.
    #[serde(default, with = "json_text::by_format", skip_serializing_if = "ForeignFields::is_empty")]
    pub foreign: ForeignFields,
    /// Whether the plan is archived.
    #[serde(default, skip_serializing_if = "is_default")]
    pub archived: bool,
    /// Tokens spent so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens: i64,
    /// Who created the plan, if not the author of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Actor>,
}

/// The values with which a task begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskStart {
    /// The name that the task was given.
    pub task: TaskId,
    /// The key of its place among its siblings.
    pub place: String,
    /// The parent; absent for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskRef>,
    /// The prose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The dependencies: task references, and objects for tasks of other plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Value>,
    /// How the dependencies must have ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when: DependencyRule,
    /// The estimated effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<Complexity>,
    /// The notes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// The expected tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Whether the task is skipped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip: bool,
    /// The locks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Lock>,
    /// The machine work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<TravellingWork>,
    /// The check of a report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<TravellingWork>,
    /// The retry policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The timeout of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// The priority.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// The name under which dependants receive the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provides: Option<String>,
    /// The stage that planning has reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refinement: Option<Refinement>,
    /// The reasoning of the planner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The node in the architecture graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_node_id: Option<String>,
    /// The digest of finished work, as a text.
    #[serde(default, with = "json_text::optional", skip_serializing_if = "Option::is_none")]
    pub digest: Option<Json>,
    /// Tokens spent on the task so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens: i64,
    /// The preserved fields of other formats, as texts.
    #[serde(default, with = "json_text::by_format", skip_serializing_if = "ForeignFields::is_empty")]
    pub foreign: ForeignFields,
    /// The hold that keeps the task from starting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Hold>,
    /// How the task had ended when it was shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StartState>,
    /// The labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Who is to take care of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// The comments, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<Comment>,
}

/// The end with which a task begins: it was shared with its plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartState {
    /// How the task ended.
    pub outcome: OutcomeKind,
    /// The result, the error or the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The output passed to dependants.
    #[serde(default, with = "json_text::optional", skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The person who skipped or cancelled it: no agent opens it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
}

/// A list of a task whose elements come and go one by one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ListField {
    /// The dependencies.
    DependsOn,
    /// The locks.
    Locks,
    /// The expected tools.
    Tools,
    /// The labels.
    Labels,
}

impl ListField {
    /// Returns the name of the list.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How a task ended, as clones report it to each other.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OutcomeKind {
    /// Done. Where the task has a check, the check passed where this was written.
    Done,
    /// Reported as done; the check has yet to pass.
    Reported,
    /// Failed for good.
    Failed,
    /// Skipped by its author or worker.
    Skipped,
    /// Cancelled on request.
    Cancelled,
}

impl OutcomeKind {
    /// Returns the name of the outcome.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One action of a record: `ID`, or `ID/3` for the fourth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionRef {
    /// The record.
    pub record: RecordId,
    /// The place of the action in the record, from 0.
    pub index: u32,
}

impl fmt::Display for ActionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            0 => write!(f, "{}", self.record),
            index => write!(f, "{}/{index}", self.record),
        }
    }
}

impl FromStr for ActionRef {
    type Err = BadOperationId;
    fn from_str(text: &str) -> Result<Self, BadOperationId> {
        let bad = || BadOperationId::Action(shortened_text(text));
        let (record, index) = match text.split_once('/') {
            None => (text, 0),
            Some((record, digits)) => {
                let index =
                    digits.parse().ok().filter(|index: &u32| index.to_string() == digits && *index > 0);
                (record, index.ok_or_else(bad)?)
            }
        };
        Ok(Self { record: record.parse().map_err(|_| bad())?, index })
    }
}

impl Serialize for ActionRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ActionRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
