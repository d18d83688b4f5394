//! What most tasks never have: a report that waits for its check, evidence, a question to a person, answers. Kept in one
//! place beside the rest of a task's state, so that it costs nothing where it is not used.

use serde::{Deserialize, Serialize};

use crate::{Actor, Json, Timestamp, limits};

/// What a check that Waypost ran has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Evidence {
    /// Whether the check passed.
    pub passed: bool,
    /// The executor or the configured check that looked.
    pub check: String,
    /// Who ran it; of a person's check, the person.
    pub worker: String,
    /// When, once it is written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// How it ended, in words.
    pub outcome: String,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The end of what it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_tail: Option<String>,
    /// `sha256:` and the sum of what was checked: the check itself, the result and the output.
    pub digest: String,
}

/// Somebody's word that a task is done, until its check has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Report {
    /// What was accomplished, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// For those who depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// When it was said.
    pub at: Timestamp,
    /// By whom.
    pub by: Actor,
}

/// What somebody who works on a task wants to know of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionRequest {
    /// The question.
    pub text: String,
    /// The answers that are possible; none: any text.
    pub choices: Vec<String>,
    /// What whoever asks wants back along with the answer.
    pub state: Option<Json>,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Question {
    /// The question.
    pub text: String,
    /// The answers that are possible; none: any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What whoever asked wants back along with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Json>,
    /// Who asked.
    pub by: String,
    /// The attempt in which it was asked.
    pub attempt: u32,
    /// When.
    pub asked_at: Timestamp,
}

impl Question {
    /// The answer that `said` means: with choices, the one that it is, whatever its case, or the only one that begins so.
    pub fn answer(&self, said: &str) -> Option<String> {
        let said = said.trim();
        if self.choices.is_empty() {
            return (!said.is_empty()).then(|| said.to_owned());
        }
        let wanted = said.to_lowercase();
        let same = |choice: &&String| choice.to_lowercase() == wanted;
        if let Some(choice) = self.choices.iter().find(same) {
            return Some(choice.clone());
        }
        let mut begin = self.choices.iter().filter(|choice| choice.to_lowercase().starts_with(&wanted));
        match (begin.next(), begin.next()) {
            (Some(choice), None) if !wanted.is_empty() => Some(choice.clone()),
            (Some(_) | None, _) => None,
        }
    }
}

/// A question that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Answer {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: String,
    /// Who gave it.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// What whoever asked wanted back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Json>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, bitcode::Encode, bitcode::Decode)]
pub struct TaskExtras {
    /// Somebody's word that it is done, until the check has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Report>,
    /// What the latest check has found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What a person is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// What persons have answered, the latest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The person who cancelled it: only a person retries it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<Actor>,
}

impl TaskExtras {
    /// Keeps an answer; of too many the oldest is forgotten.
    pub(crate) fn add_answer(&mut self, answer: Answer) {
        if self.answers.len() >= limits::ANSWERS_MAX {
            self.answers.remove(0);
        }
        self.answers.push(answer);
    }
}
