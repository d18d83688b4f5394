//! The format of a journal's lines.

use crate::{Answer, ModelRequest, Purpose, Turn};
use serde::{Deserialize, Serialize};
use waypost_core::{TaskId, Timestamp};

use crate::{Cost, Lost, ModelError, Redactor, Reply};

/// The format name in the first line of every journal.
const FORMAT: &str = "waypost planning journal";
/// The only version of the format so far.
const VERSION: u32 = 1;

/// A stored answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub at: Timestamp,
    /// The request within its session.
    pub slot: String,
    pub purpose: Purpose,
    /// The task that is charged; `None`: the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The version of the prompt.
    pub prompt: String,
    /// A fingerprint of the whole prompt.
    pub fingerprint: String,
    pub from: String,
    /// The cost in millionths; `None` if no price was known.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "cost_millionths")]
    pub cost: Option<Cost>,
    /// Without secrets.
    pub answer: Answer,
}

impl Entry {
    /// Returns the answer as a repeated reply.
    pub fn reply(&self) -> Reply {
        Reply { answer: self.answer.clone(), from: self.from.clone(), cost: self.cost, recalled: true }
    }
}

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JournalLine {
    /// The first line: the format of the file.
    Begun { format: String, version: u32 },
    Answered {
        #[serde(flatten)]
        entry: Entry,
        /// The system prompt, without secrets.
        system: String,
        /// The conversation, without secrets.
        turns: Vec<Turn>,
    },
    /// A call that ended without an answer.
    Failed {
        at: Timestamp,
        /// The request within its session.
        slot: String,
        purpose: Purpose,
        /// The task it was for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// A fingerprint of the whole prompt.
        fingerprint: String,
        /// The stable name of the error.
        code: String,
        error: String,
        /// The cost of the call, if it had any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<Lost>,
    },
    /// Answers that no longer count.
    Forgotten { at: Timestamp, slots: Vec<String>, why: String },
}

impl JournalLine {
    pub(super) fn begun() -> Self {
        Self::Begun { format: FORMAT.to_owned(), version: VERSION }
    }

    /// Checks that this version of the program can read the line.
    pub(super) fn is_of_ours(&self) -> Result<(), String> {
        match self {
            Self::Begun { format, version } if format == FORMAT && *version == VERSION => Ok(()),
            Self::Begun { format, version } => Err(format!(
                "this is {format:?} in version {version}, and {FORMAT:?} in version {VERSION} is read here"
            )),
            Self::Answered { .. } | Self::Failed { .. } | Self::Forgotten { .. } => Ok(()),
        }
    }

    pub(super) fn answered(at: Timestamp, ask: &ModelRequest, reply: &Reply, redactor: &Redactor) -> Self {
        let clean = |turn: &Turn| Turn { by: turn.by, text: redactor.clean(&turn.text) };
        Self::Answered {
            entry: Entry {
                at,
                slot: ask.slot.clone(),
                purpose: ask.purpose,
                task: ask.task.clone(),
                prompt: ask.prompt.clone(),
                fingerprint: ask.fingerprint(),
                from: reply.from.clone(),
                cost: reply.cost,
                answer: reply.answer.clone(),
            },
            system: redactor.clean(&ask.system),
            turns: ask.turns.iter().map(clean).collect(),
        }
    }

    pub(super) fn failed(
        at: Timestamp,
        ask: &ModelRequest,
        (error, lost): (&ModelError, Option<&Lost>),
        redactor: &Redactor,
    ) -> Self {
        Self::Failed {
            at,
            slot: ask.slot.clone(),
            purpose: ask.purpose,
            task: ask.task.clone(),
            fingerprint: ask.fingerprint(),
            code: error.code().to_owned(),
            error: redactor.clean(&error.to_string()),
            lost: lost.cloned(),
        }
    }
}
