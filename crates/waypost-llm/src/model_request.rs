//! One request to a model, and its answer.

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use waypost_config::Role;
use waypost_core::TaskId;

/// The purpose of a request. Each has its own prompt.
#[derive(Serialize, Deserialize, strum::EnumIter, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// A whole plan from a goal.
    Generate,
    /// Whether a goal is small enough to be done as it is.
    Atomicity,
    /// The children of a goal.
    Decompose,
    /// The dependencies between siblings.
    Dependencies,
    /// The changes to the remaining tasks after a child has finished.
    Refine,
    /// A compressed result of finished work.
    Digest,
    /// Questions that the original of a digest answers, with their answers.
    #[serde(rename = "examine")]
    #[strum(serialize = "examine")]
    WriteExam,
    /// Answers to those questions from the digest alone.
    #[serde(rename = "sit")]
    #[strum(serialize = "sit")]
    AnswerExam,
    /// Which of the answers agree.
    #[serde(rename = "mark")]
    #[strum(serialize = "mark")]
    GradeExam,
}

impl Purpose {
    pub fn all() -> impl Iterator<Item = Self> {
        <Self as strum::IntoEnumIterator>::iter()
    }

    /// Returns the name used for the prompt's file, in journals and in progress.
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn role(self) -> Role {
        match self {
            Self::Generate | Self::Decompose | Self::Refine => Role::Planner,
            Self::Atomicity | Self::Dependencies | Self::GradeExam => Role::Checker,
            Self::Digest | Self::WriteExam | Self::AnswerExam => Role::Digester,
        }
    }
}

/// The author of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// Waypost.
    User,
    /// The model: an earlier answer that it is asked to repair.
    Assistant,
}

/// A turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub by: Speaker,
    pub text: String,
}

/// The JSON schema of the answer, for servers that can enforce it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    pub name: String,
    pub schema: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRequest {
    pub purpose: Purpose,
    /// The task that its tokens are charged to; `None`: the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Identifies the request within its session: the same after a crash, whatever else has happened since. A recorded
    /// answer is found by it.
    pub slot: String,
    /// The version of the prompt.
    pub prompt: String,
    /// The system prompt.
    pub system: String,
    /// The conversation; the first and the last turn are ours.
    pub turns: Vec<Turn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// Tokens that the answer may have.
    pub tokens_max: u32,
    /// The sampling temperature, in hundredths.
    pub temperature: u32,
}

impl ModelRequest {
    /// Returns a fingerprint of everything that the model is told.
    pub fn fingerprint(&self) -> String {
        let mut context = Context::new(&SHA256);
        let mut add = |text: &str| {
            context.update(&(text.len() as u64).to_le_bytes());
            context.update(text.as_bytes());
        };
        add(self.purpose.name());
        add(&self.system);
        for turn in &self.turns {
            add(match turn.by {
                Speaker::User => "user",
                Speaker::Assistant => "assistant",
            });
            add(&turn.text);
        }
        waypost_text::hex(context.finish().as_ref())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The answer is complete.
    Whole,
    /// The answer was cut off at `tokens_max`, or another limit of the server.
    Cut,
    /// The model refused to answer.
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The text as it arrived.
    pub text: String,
    pub ended: Ended,
    /// The server's name for the model that answered.
    pub model: String,
    /// Tokens of the request.
    pub tokens_in: u64,
    /// Tokens of the answer.
    pub tokens_out: u64,
    /// Whether the token counts were estimated, because the server did not report them.
    #[serde(default)]
    pub estimated: bool,
}

impl Answer {
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }
}
