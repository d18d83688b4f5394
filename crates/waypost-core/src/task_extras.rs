//! State that few tasks have: a report that waits for its check, evidence, a question to a person, answers. Stored
//! apart from the rest of a task's state, so that it costs nothing where it is not used.

use serde::{Deserialize, Serialize};

use crate::{Actor, ActorKind, Json, Proof, Timestamp, limits};

/// The result of a check that Waypost ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Evidence {
    /// Whether the check passed.
    pub passed: bool,
    /// The executor or the configured check that ran.
    pub check: String,
    /// The worker that ran the check; for a check done by a person, the person.
    pub worker: String,
    /// When the evidence was recorded; `None` until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// How the check ended, in prose.
    pub outcome: String,
    /// The output of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The tail of the check's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_tail: Option<String>,
    /// `sha256:` and the digest of what was checked: the check itself, the result and the output.
    pub digest: String,
}

/// A report that a task is done, until its check has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Report {
    /// What was accomplished, in prose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The output passed to dependants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// When the report was made.
    pub at: Timestamp,
    /// The actor that made the report.
    pub by: Actor,
}

/// A question that a worker asks a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionRequest {
    /// The text of the question.
    pub text: String,
    /// The possible answers; empty means any text.
    pub choices: Vec<String>,
    /// State that the worker gets back with the answer.
    pub state: Option<Json>,
    /// The digest of the report that a person is asked to check. Only a run sets it: it takes the place of the state.
    pub check: Option<String>,
}

/// The field in the state of a question that marks it as Waypost's own, about a report, and holds the digest of the report.
const CHECK_MARK: &str = "waypost:check";

/// Returns the state of a question about a report. Programs cannot write it: their questions lose such a state.
fn check_state(digest: &str) -> Json {
    Json::of(&serde_json::json!({ CHECK_MARK: digest }))
}

impl QuestionRequest {
    /// Returns the state to store.
    pub(crate) fn stored_state(&self) -> Option<Json> {
        match &self.check {
            Some(digest) => Some(check_state(digest)),
            None => self.state.clone().filter(|state| state.value().get(CHECK_MARK).is_none()),
        }
    }
}

fn is_of_check(state: Option<&Json>) -> bool {
    state.is_some_and(|state| state.value().get(CHECK_MARK).is_some())
}

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Question {
    /// The text of the question.
    pub text: String,
    /// The possible answers; empty means any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// State that the worker gets back with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Json>,
    /// The worker that asked.
    pub by: String,
    /// The attempt that asked.
    pub attempt: u32,
    /// When the question was asked.
    pub asked_at: Timestamp,
}

impl Question {
    /// Whether a run asks whether a report is true.
    pub fn is_about_report(&self) -> bool {
        is_of_check(self.state.as_ref())
    }

    /// Resolves `said` to an answer. With choices, returns the one that matches case-insensitively, or the only one
    /// with that prefix.
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

/// An answered question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Answer {
    /// The text of the question.
    pub question: String,
    /// The answer that was given.
    pub answer: String,
    /// The person who answered.
    pub by: Actor,
    /// When the answer was given.
    pub at: Timestamp,
    /// State that the worker gets back with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Json>,
}

impl Answer {
    /// Whether a run asked whether a report is true.
    pub fn was_about_report(&self) -> bool {
        is_of_check(self.state.as_ref())
    }

    /// Whether the person was asked to check the report with this digest.
    pub fn is_about_report(&self, digest: &str) -> bool {
        self.state.as_ref() == Some(&check_state(digest))
    }
}

/// What a person did with a task for people.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    bitcode::Encode,
    bitcode::Decode,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GateOutcome {
    /// Did it, or said yes.
    Done,
    /// Could not do it, or said no.
    Failed,
    /// Skipped it.
    Skipped,
    /// Cancelled it.
    Cancelled,
    /// Answered a question that was asked meanwhile.
    Answered,
}

/// The record that a person ended a task for people. Workers start nothing behind such a task without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct GateRecord {
    /// The person.
    pub by: Actor,
    /// When the person acted.
    pub at: Timestamp,
    /// The version of the plan that the person acted on.
    pub version: u64,
    /// The digest of the approved work; empty in a plan without an approval.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The attempt that was the latest then.
    pub attempt: u32,
    /// What the person did.
    pub outcome: GateOutcome,
    /// `sha256:` and the digest of the person's answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// How it was proved that a person acted.
    pub proof: Proof,
    /// Where the person acted, for example `terminal` or `dashboard`.
    pub via: String,
    /// The account that vouches for it, as `uid@host`; empty without a seal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// The place of a store in files, as a hash: the record does not count in a copy of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// 32 random hexadecimal digits, so that no two records are alike; empty without a seal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// The seal of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// The armoured signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A hold: the task does not start until the hold is lifted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Hold {
    /// The actor that holds the task. Only a person lifts the hold of a person.
    pub by: Actor,
    /// Why the task is held.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The name of the system actor that holds tasks while a question about them is open.
const MERGE_ACTOR: &str = "merge";

impl Hold {
    /// Returns the hold of a task about which a merge left a question open.
    pub fn of_dispute(reason: String) -> Self {
        Self { by: Actor::system(MERGE_ACTOR), reason }
    }

    /// Whether nobody holds the task, but an open question of a merge.
    pub fn is_dispute(&self) -> bool {
        self.by.kind == ActorKind::System && self.by.name == MERGE_ACTOR
    }
}

/// A comment on a task. Its text is what somebody wrote, never an instruction that Waypost vouches for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, bitcode::Encode, bitcode::Decode)]
pub struct Comment {
    /// The person or agent that wrote it.
    pub by: Actor,
    /// When it was written.
    pub at: Timestamp,
    /// The text.
    pub text: String,
}

/// The optional parts of a task's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, bitcode::Encode, bitcode::Decode)]
pub struct TaskExtras {
    /// The report that the task is done, until its check has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Report>,
    /// The result of the latest check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The open question to a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The answers of people, latest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The person who cancelled the task: only a person can retry it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<Actor>,
    /// The record that a person ended the task, which is for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateRecord>,
    /// The hold that keeps the task, or the tasks below it, from starting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Hold>,
    /// Comments of people and agents, latest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<Comment>,
    /// Words to find the task by, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The person or agent that is to take care of the task. A hint: others may still claim it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
}

impl TaskExtras {
    /// Returns what people and agents have said about the task, which outlives what the task has done.
    pub(crate) fn into_annotations(self) -> Self {
        let Self { held, comments, labels, assignee, .. } = self;
        Self { held, comments, labels, assignee, ..Self::default() }
    }

    /// Stores a comment. At the limit, drops the oldest one, those of people last: nobody silences them by talking.
    pub fn add_comment(&mut self, comment: Comment) {
        self.insert_comment(comment, None);
    }

    /// Stores a comment at a place, or as the last one; drops one as [`Self::add_comment`] does.
    pub(crate) fn insert_comment(&mut self, comment: Comment, place: Option<u32>) {
        if self.comments.len() >= limits::COMMENTS_MAX {
            let by_others = |comment: &Comment| comment.by.kind != ActorKind::Person;
            let oldest = self.comments.iter().position(by_others).unwrap_or(0);
            self.comments.remove(oldest);
        }
        let last = self.comments.len();
        self.comments.insert(place.map_or(last, |place| last.min(place as usize)), comment);
    }

    /// Stores an answer; at the limit, drops the oldest one.
    pub fn add_answer(&mut self, answer: Answer) {
        if self.answers.len() >= limits::ANSWERS_MAX {
            self.answers.remove(0);
        }
        self.answers.push(answer);
    }
}
