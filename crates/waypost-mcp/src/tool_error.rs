//! Why a tool did not do what it was asked: what happened, to what, and what to do next. Always the tool's answer, never
//! an error of the protocol, so that the model reads it.

use std::sync::Arc;

use serde_json::{Map, Value};
use waypost_core::{Problem, Refusal};
use waypost_store::{StoreError, WriteError};

use crate::hints::{self, HintPhrases};
use crate::reply_text;

/// Bytes of what happened: what is said again of a call may be of any length.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// Problems that an answer names.
pub(crate) const PROBLEMS_NAMED_MAX: usize = 20;

/// Why not.
#[derive(Clone, Debug)]
pub(crate) struct ToolError {
    /// A lowercase clause: what happened, to what.
    pub(crate) message: String,
    /// What to do next; may be empty.
    pub(crate) hint: String,
    /// What else programs are told.
    pub(crate) facts: Box<Map<String, Value>>,
    /// What was not written, if the hint is up to the tools that are at hand.
    cause: Option<Arc<WriteError>>,
}

impl ToolError {
    /// A refusal with a message and a hint.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let message = reply_text::cut_text(&message.into(), MESSAGE_BYTES_MAX);
        Self {
            message,
            hint: waypost_text::sanitize(&hint.into()).into_owned(),
            facts: Box::default(),
            cause: None,
        }
    }

    /// What a draft has that it may not have.
    pub(crate) fn invalid(problems: &[Problem]) -> Self {
        let named = problems.iter().take(PROBLEMS_NAMED_MAX);
        let mut lines: Vec<String> = named.map(|problem| format!("{problem} ({})", problem.hint())).collect();
        if problems.len() > lines.len() {
            lines.push(format!("and {} more", problems.len() - lines.len()));
        }
        Self::new(
            format!("the plan is not valid: {}", lines.join("; ")),
            "correct all of them, then try again",
        )
    }

    /// Gives a fact to programs.
    pub(crate) fn with_fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// The same with a hint in these phrases.
    pub(crate) fn with_hints(mut self, ways: &HintPhrases) -> Self {
        let Some(cause) = self.cause.take() else { return self };
        let before = self.text();
        self.hint = hints::about(&cause, ways);
        let after = self.text();
        // Where the text is a fact as well, that says the same.
        for fact in self.facts.values_mut().filter(|fact| **fact == before.as_str()) {
            *fact = after.as_str().into();
        }
        self
    }

    /// For models that read only text.
    pub(crate) fn text(&self) -> String {
        if self.hint.is_empty() { self.message.clone() } else { format!("{}; {}", self.message, self.hint) }
    }
}

impl From<WriteError> for ToolError {
    fn from(error: WriteError) -> Self {
        let hint = error.hint();
        match error {
            WriteError::Refused(Refusal::Invalid { problems }) => Self::invalid(&problems),
            WriteError::Conflict(conflict) => {
                let shown = reply_text::changes(&conflict.differences);
                let mut shown: Vec<String> = shown.into_iter().take(reply_text::CHANGES_MAX).collect();
                if conflict.differences_total > conflict.differences.len()
                    || shown.len() == reply_text::CHANGES_MAX
                {
                    shown.push("and more".to_owned());
                }
                let mut message = WriteError::Conflict(conflict.clone()).to_string();
                if !shown.is_empty() {
                    message.push_str(&format!("; changed since: {}", shown.join("; ")));
                }
                let refused = Self::new(message, "nothing was written; look at that, then write again");
                refused.with_fact("version", conflict.current).with_fact("changed", shown)
            }
            error @ (WriteError::Refused(_)
            | WriteError::NotFound(_)
            | WriteError::Ambiguous { .. }
            | WriteError::NoSuchVersion { .. }
            | WriteError::IdUsed(_)
            | WriteError::Store(_)) => {
                let mut refused = Self::new(error.to_string(), hint);
                refused.cause = Some(Arc::new(error));
                refused
            }
        }
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        WriteError::Store(error).into()
    }
}
