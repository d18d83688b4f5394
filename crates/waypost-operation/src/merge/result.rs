//! What a merge comes to: the plan, the open questions, and what became of each action.

use serde::Serialize;
use serde_json::Value;

use crate::action::{ActionRef, OutcomeKind};
use crate::field::Field;
use crate::ids::{CloneTag, RecordId};
use crate::set::TaskKey;
use waypost_core::{Actor, Draft, Json, SharedStop, TaskId, Timestamp};

/// The plan that a set of records says, as a function of that set alone.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The plan, with the statuses and results of its tasks. It is a draft, or has ended; nothing in it lets anything start.
    pub draft: Draft,
    /// The open questions, in the order of the tasks.
    pub conflicts: Vec<Conflict>,
    /// What became of each action, in the total order.
    pub dispositions: Vec<ActionDisposition>,
    /// Tasks that somebody works on in some clone.
    pub claims: Vec<Claim>,
    /// Questions of workers, with the answers that were proposed.
    pub questions: Vec<OpenQuestion>,
    /// Approvals that came with a record; nobody has verified them.
    pub approvals: Vec<SharedApproval>,
    /// Tasks that are not called what they were named, because another one has the name.
    pub renamed: Vec<Renamed>,
    /// The stop that holds, if the plan is stopped.
    pub stop: Option<SharedStop>,
    /// Whether the plan is archived.
    pub archived: bool,
    /// Whether somebody began to work.
    pub begun: bool,
    /// Whether the plan was deleted by somebody who had seen everything.
    pub deleted: bool,
    /// The number of records of a newer version of Waypost, which do not count here.
    pub newer: usize,
    /// Which task each id of the draft means, in the order of the draft.
    pub(crate) keys: Vec<TaskKey>,
}

/// What became of one action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionDisposition {
    /// The record.
    pub record: RecordId,
    /// The place of the action in the record, from 0.
    pub index: u32,
    /// What became of it.
    #[serde(flatten)]
    pub disposition: Disposition,
}

/// What became of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(tag = "disposition", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Disposition {
    /// It holds.
    Applied,
    /// This record replaced it.
    Superseded {
        /// The record.
        by: RecordId,
    },
    /// Its text is part of a text that was merged from several.
    MergedText,
    /// It would break the plan, or destroy what its author had not seen. A conflict says so.
    SetAside {
        /// Why.
        why: String,
        /// The record that it does not go with.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<RecordId>,
    },
    /// Others say something else about the same thing. A conflict says so.
    Disputed,
    /// Somebody answered that it is not wanted.
    Dismissed {
        /// The record that says so.
        by: RecordId,
    },
    /// Its task was removed by somebody who had seen it.
    Gone {
        /// The removal.
        by: RecordId,
    },
    /// It names a task whose record is not here.
    Unresolved,
}

impl Disposition {
    /// Returns the name of the disposition.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// A field was set to several values.
    Field(Field),
    /// A task ended in several ways.
    Outcome,
    /// Somebody removed tasks that others changed meanwhile.
    Removal,
    /// A dependency would make tasks wait for each other.
    Dependency,
    /// A parent would make tasks wait for each other, or lies too deep.
    Parent,
    /// A task with children also has work.
    WorkOfGroup,
    /// Somebody deleted the plan while others changed it.
    Delete,
    /// Somebody archived the plan while others changed it.
    Archive,
}

impl ConflictKind {
    /// Returns the name by which people answer it.
    pub fn subject(&self) -> String {
        match self {
            Self::Field(field) => field.to_string(),
            Self::Outcome => "outcome".to_owned(),
            Self::Removal => "removal".to_owned(),
            Self::Dependency => "depends_on".to_owned(),
            Self::Parent => "parent".to_owned(),
            Self::WorkOfGroup => "work".to_owned(),
            Self::Delete => "delete".to_owned(),
            Self::Archive => "archive".to_owned(),
        }
    }
}

/// A question to a person: clones did what does not go together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conflict {
    /// The task; `None` for the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// What it is about.
    pub kind: ConflictKind,
    /// What it is about, in one word.
    pub subject: String,
    /// What happened, in a sentence.
    pub text: String,
    /// What each side did, oldest first in the total order.
    pub versions: Vec<ConflictVersion>,
    /// Which version the plan shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<usize>,
    /// How it can be answered.
    pub answers: Vec<AnswerKind>,
    #[serde(skip)]
    pub(crate) key: Option<TaskKey>,
    /// The tasks that a removal would remove now, or whose order or place is the question.
    #[serde(skip)]
    pub(crate) guarded: Vec<TaskKey>,
    /// The authors whom the text names, with the clones.
    #[serde(skip)]
    pub(crate) authors: Vec<(Actor, CloneTag)>,
    /// The element of a list, or the value that holds meanwhile.
    #[serde(skip)]
    pub(crate) item: Option<Value>,
    /// The actions that an answer replaces.
    #[serde(skip)]
    pub(crate) actions: Vec<ActionRef>,
}

impl Conflict {
    /// Marks the authors whom only another clone than this one names: nobody has proved who they are.
    pub fn mark_unverified(&mut self, own: Option<&CloneTag>) {
        for (by, from) in self.authors.drain(..).filter(|(_, from)| own != Some(from)) {
            self.text = self.text.replace(&who(&by, &from), &who(&by.unverified(), &from));
        }
        for version in self.versions.iter_mut().filter(|version| own != Some(&version.from)) {
            version.by = version.by.unverified();
        }
    }
}

/// Names an author and the clone, as the text of a question does.
pub(super) fn who(by: &Actor, from: &CloneTag) -> String {
    format!("{by} ({from})")
}

/// One side of a conflict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConflictVersion {
    /// The record.
    pub record: RecordId,
    /// Who made it. Without a signature it is a claim.
    pub by: Actor,
    /// The tag of the clone.
    pub from: CloneTag,
    /// The wall time.
    pub at: Timestamp,
    /// What it says, as text.
    pub value: String,
    #[serde(skip)]
    pub(crate) to: VersionValue,
}

/// What one side of a conflict says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum VersionValue {
    /// The value of a field.
    Field(Value),
    /// The end of a task.
    Outcome { outcome: OutcomeKind, text: Option<String>, output: Option<Json> },
    /// Something that is only shown.
    Shown,
}

/// A way to answer a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AnswerKind {
    /// Take one of the versions.
    Take,
    /// Give another text.
    Text,
    /// Keep what was to be removed.
    Keep,
    /// Remove it all the same.
    Remove,
    /// Drop what was set aside; of an outcome, do the task again.
    Dismiss,
}

impl AnswerKind {
    /// Returns the name of the way.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A notice that somebody works on a task in some clone. It starts nothing and gives no lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// The task.
    pub task: TaskId,
    /// Who works on it.
    pub worker: String,
    /// Who wrote the notice.
    pub by: Actor,
    /// The tag of the clone.
    pub from: CloneTag,
    /// The wall time.
    pub at: Timestamp,
}

/// A question of a worker in some clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenQuestion {
    /// The task.
    pub task: TaskId,
    /// The question.
    pub question: String,
    /// The possible answers; empty means any text.
    pub choices: Vec<String>,
    /// Who asked.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// The record of the question.
    pub record: RecordId,
    /// The answers. Without a signature they are proposals.
    pub answers: Vec<ProposedAnswer>,
}

/// An answer that somebody gave in some clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedAnswer {
    /// The answer.
    pub answer: String,
    /// Who gave it.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// Its record, whose signature may make it count.
    pub record: RecordId,
}

/// An approval that travelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SharedApproval {
    /// Its record.
    pub record: RecordId,
    /// The approval, as it is stored.
    pub approval: Json,
}

/// A task whose name another one has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Renamed {
    /// What it is called.
    pub task: TaskId,
    /// The name that it was given.
    pub name: TaskId,
}
