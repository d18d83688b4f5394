//! One question to a model, and what came back.

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use waypost_config::Role;
use waypost_core::TaskId;

/// What an ask is for. Each has a prompt of its own.
#[derive(Serialize, Deserialize, strum::EnumIter, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// A whole plan from a goal.
    Generate,
    /// Is a goal small enough to be done as it is?
    Atomicity,
    /// The children of a goal.
    Decompose,
    /// Which siblings wait for which.
    Dependencies,
    /// What of the rest changes, now that a child has returned.
    Refine,
    /// What came of finished work, compressed.
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

    /// Its name: of its prompt's file, in journals, in progress.
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

/// Who says a turn of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// We.
    User,
    /// The model, earlier: an answer that it is asked to mend.
    Assistant,
}

/// A turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub by: Speaker,
    pub text: String,
}

/// What an answer must look like, where a server can see to that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    pub name: String,
    pub schema: Value,
}

/// One question to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRequest {
    pub purpose: Purpose,
    /// The task that its tokens are charged to; none: the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Which question of its session it is: the same after a crash, whatever else has happened since. An answer that has
    /// arrived is found again by it.
    pub slot: String,
    /// The version of the prompt.
    pub prompt: String,
    /// What the model is told of its part.
    pub system: String,
    /// The conversation, ours first and last.
    pub turns: Vec<Turn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// Tokens that the answer may have.
    pub tokens_max: u32,
    /// Hundredths: how freely the model may choose its words.
    pub temperature: u32,
}

impl ModelRequest {
    /// A fingerprint of everything that the model is told.
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
    /// The model had said everything.
    Whole,
    /// It was cut at `tokens_max`.
    Cut,
    /// The model would not answer.
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The text, as it came.
    pub text: String,
    pub ended: Ended,
    /// The model that gave it, as its server calls it.
    pub model: String,
    /// Tokens of the question.
    pub tokens_in: u64,
    /// Tokens of the answer.
    pub tokens_out: u64,
    /// Whether the two were estimated, because the server did not say.
    #[serde(default)]
    pub estimated: bool,
}

impl Answer {
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }
}
