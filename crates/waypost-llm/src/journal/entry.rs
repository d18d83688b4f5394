//! The lines of a journal, as they are written.

use crate::{Answer, ModelRequest, Purpose, Turn};
use serde::{Deserialize, Serialize};
use waypost_core::{TaskId, Timestamp};

use crate::{Cost, Lost, ModelError, Redactor, Reply};

/// What the first line of every journal says.
const FORMAT: &str = "waypost planning journal";
/// The only version of it so far.
const VERSION: u32 = 1;

/// An answer that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub at: Timestamp,
    /// Which question of its session.
    pub slot: String,
    pub purpose: Purpose,
    /// The task that is charged; none: the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The version of the prompt.
    pub prompt: String,
    /// A fingerprint of everything that the model was told.
    pub fingerprint: String,
    pub from: String,
    /// What it cost, in millionths; nothing where no price was known.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "cost_millionths")]
    pub cost: Option<Cost>,
    /// The answer, without secrets.
    pub answer: Answer,
}

impl Entry {
    /// The answer as it is given again.
    pub fn reply(&self) -> Reply {
        Reply { answer: self.answer.clone(), from: self.from.clone(), cost: self.cost, recalled: true }
    }
}

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JournalLine {
    /// The first: what this file is.
    Begun { format: String, version: u32 },
    Answered {
        #[serde(flatten)]
        entry: Entry,
        /// What it was told of its part, without secrets.
        system: String,
        /// What it was asked, without secrets.
        turns: Vec<Turn>,
    },
    /// A call has ended without an answer.
    Failed {
        at: Timestamp,
        /// Which question of its session.
        slot: String,
        purpose: Purpose,
        /// The task it was for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// A fingerprint of everything that the model was told.
        fingerprint: String,
        /// A word for what happened.
        code: String,
        error: String,
        /// What it has cost all the same, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<Lost>,
    },
    /// Answers do not count any more.
    Forgotten { at: Timestamp, slots: Vec<String>, why: String },
}

impl JournalLine {
    pub(super) fn begun() -> Self {
        Self::Begun { format: FORMAT.to_owned(), version: VERSION }
    }

    /// Whether this version of the program knows what it means.
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
