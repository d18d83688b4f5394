//! Errors of tools: what failed, on what, a stable code with facts, and what to do next. Always a tool result with `isError`,
//! never a protocol error, so that the model reads it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use waypost_core::{Problem, ProblemLocation, Refusal};
use waypost_service::{ServiceError, Subject, WrongOperation};
use waypost_store::{Conflict, StoreError, WriteError};

use crate::hints::{self, HintPhrases};
use crate::reply_text;

/// Maximum bytes of a message: the parts of a call that it repeats may have any length.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// Bytes that each of several errors in one reply may have, however many there are.
const JOINED_BYTES_MIN: usize = 300;
/// Maximum number of problems that an error names.
pub(crate) const PROBLEMS_NAMED_MAX: usize = 20;
/// The code of an error in the arguments of a call, as HTTP has it.
const BAD_REQUEST: &str = "bad_request";
/// Maximum bytes of the facts of an error.
const FACTS_BYTES_MAX: usize = 4 * 1024;

/// Why a tool refused a call or failed.
#[derive(Clone, Debug)]
pub(crate) struct ToolError {
    /// A lowercase clause: what failed, on what.
    pub(crate) message: String,
    /// What to do next; may be empty.
    pub(crate) hint: String,
    /// Structured data for programs.
    pub(crate) facts: Box<Map<String, Value>>,
    /// The single errors, if this one stands for several.
    several: Vec<ToolError>,
    /// The original error, if the hint depends on the called toolset.
    cause: Option<Arc<ServiceError>>,
}

impl ToolError {
    /// Creates an error of the call itself, with the code [`BAD_REQUEST`]; the message is cut to its maximum.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let message = reply_text::cut_text(&message.into(), MESSAGE_BYTES_MAX);
        let hint = waypost_text::sanitize(&hint.into()).into_owned();
        Self { message, hint, facts: Box::default(), several: Vec::new(), cause: None }
            .with_fact("code", BAD_REQUEST)
    }

    /// The error for an invalid draft.
    pub(crate) fn invalid(problems: &[Problem]) -> Self {
        Self::of_problems("plan", problems)
    }

    /// One error for several, so that the caller can correct all of them at once. A single one stays as it is.
    pub(crate) fn joined(errors: Vec<Self>) -> Self {
        let flat = errors.into_iter().flat_map(|error| match error.several.is_empty() {
            true => vec![error],
            false => error.several,
        });
        let mut errors: Vec<Self> = flat.collect();
        if errors.len() == 1
            && let Some(one) = errors.pop()
        {
            return one;
        }
        // The reply repeats each of them.
        let each = (MESSAGE_BYTES_MAX / 2 / errors.len().max(1)).max(JOINED_BYTES_MIN);
        for error in &mut errors {
            error.message = reply_text::cut_text(&error.message, each);
        }
        let mut lines: Vec<String> = errors.iter().take(PROBLEMS_NAMED_MAX).map(Self::text).collect();
        if errors.len() > lines.len() {
            lines.push(format!("and {} more", errors.len() - lines.len()));
        }
        let code = errors
            .iter()
            .map(|error| error.facts.get("code"))
            .reduce(|one, other| one.filter(|_| one == other));
        let code = code.flatten().cloned().unwrap_or_else(|| BAD_REQUEST.into());
        let joined = Self::new(lines.join("; "), "fix all of them, then retry").with_fact("code", code);
        Self { several: errors, ..joined }
    }

    fn of_problems(what: &str, problems: &[Problem]) -> Self {
        let single = |problem: &Problem| {
            let told = Self::new(problem.to_string(), problem.hint()).with_fact("code", "invalid");
            match &problem.place {
                ProblemLocation::Task(task) => told.with_fact("task", task.as_str()),
                ProblemLocation::Plan | ProblemLocation::TaskNumber(_) => told,
            }
        };
        if let [one] = problems {
            let told = single(one);
            return Self { message: format!("invalid {what}: {}", told.message), ..told };
        }
        let named = problems.iter().take(PROBLEMS_NAMED_MAX);
        let mut lines: Vec<String> = named.map(|problem| format!("{problem} ({})", problem.hint())).collect();
        if problems.len() > lines.len() {
            lines.push(format!("and {} more", problems.len() - lines.len()));
        }
        let message = format!("invalid {what}: {}", lines.join("; "));
        let told = Self::new(message, "fix all of them, then retry").with_fact("code", "invalid");
        Self { several: problems.iter().map(single).collect(), ..told }
    }

    /// The error for an edit of several operations; `place` names those that are wrong.
    pub(crate) fn of_operations(error: ServiceError, place: impl Fn(usize) -> String) -> Self {
        let ServiceError::WrongOperations(wrong) = error else { return error.into() };
        let placed = wrong.into_iter().map(|WrongOperation { index, error }| {
            let told = Self::from(error);
            Self { message: format!("{}: {}", place(index), told.message), ..told }
        });
        Self::joined(placed.collect())
    }

    /// The error for a version conflict, with the changes by others.
    fn conflict(conflict: &Conflict, message: String) -> Self {
        let mut shown = reply_text::changes(&conflict.differences);
        shown.truncate(reply_text::CHANGES_MAX);
        if conflict.differences_total > conflict.differences.len() || shown.len() == reply_text::CHANGES_MAX {
            shown.push("and more".to_owned());
        }
        let since =
            if shown.is_empty() { String::new() } else { format!("; changed since: {}", shown.join("; ")) };
        Self::new(message + &since, "nothing was written; read the changes, then retry")
            .with_fact("code", "conflict")
            .with_fact("version", conflict.current)
            .with_fact("changed", shown)
    }

    /// Adds a fact for programs.
    pub(crate) fn with_fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// Whether the call itself is wrong.
    pub(crate) fn is_bad_request(&self) -> bool {
        self.facts.get("code").is_some_and(|code| code == BAD_REQUEST)
    }

    /// Sets the hint in the phrases of a toolset, for a caller on this machine or another.
    pub(crate) fn with_hints(mut self, ways: &HintPhrases, over_http: bool) -> Self {
        if self.several.iter().any(|one| one.cause.is_some()) {
            let several = self.several.into_iter().map(|one| one.with_hints(ways, over_http));
            return Self::joined(several.collect());
        }
        let before = self.text();
        if let Some(cause) = self.cause.take() {
            self.hint = waypost_text::sanitize(&hints::about(&cause, ways)).into_owned();
        }
        if over_http {
            self.hint = hints::for_remote(&self.hint);
        }
        let after = self.text();
        // A fact that repeats the text must stay the same as the text.
        for fact in self.facts.values_mut().filter(|fact| **fact == before.as_str()) {
            *fact = after.as_str().into();
        }
        self
    }

    /// The code, the facts, the message, the hint and the single problems, for programs; named as in replies of the HTTP API.
    pub(crate) fn structured(&self) -> Value {
        let mut fields = (*self.facts).clone();
        let mut put = |name: &str, value: Value| {
            fields.entry(name).or_insert(value);
        };
        // The replies of jaato's tools have the same text as `error`.
        if !self.facts.contains_key("error") {
            put("detail", self.message.as_str().into());
        }
        if !self.hint.is_empty() {
            put("hint", self.hint.as_str().into());
        }
        if !self.several.is_empty() {
            let problems = self.several.iter().take(PROBLEMS_NAMED_MAX).map(|one| {
                let mut problem = json!({ "message": one.message });
                if !one.hint.is_empty() {
                    problem["hint"] = one.hint.as_str().into();
                }
                if let Some(task) = one.facts.get("task") {
                    problem["task"] = task.clone();
                }
                problem
            });
            put("problems", problems.collect());
        }
        Value::Object(fields)
    }

    /// The message and the hint, for models that read only text.
    pub(crate) fn text(&self) -> String {
        if self.hint.is_empty() { self.message.clone() } else { format!("{}; {}", self.message, self.hint) }
    }
}

impl From<ServiceError> for ToolError {
    fn from(error: ServiceError) -> Self {
        match &error {
            ServiceError::Invalid { subject: Subject::Report, problems } => {
                Self::of_problems("report", problems)
            }
            ServiceError::Invalid { problems, .. } | ServiceError::Refused(Refusal::Invalid { problems }) => {
                Self::invalid(problems)
            }
            ServiceError::Conflict(conflict) => Self::conflict(conflict, error.to_string()),
            ServiceError::WrongOperations(_) => Self::of_operations(error, |index| format!("ops[{index}]")),
            ServiceError::Refused(_)
            | ServiceError::NoSuchPlan(_)
            | ServiceError::Ambiguous { .. }
            | ServiceError::NoSuchVersion { .. }
            | ServiceError::IdUsed(_)
            | ServiceError::Unreadable { .. }
            | ServiceError::NotOnePlan { .. }
            | ServiceError::HeldByOtherSession { .. }
            | ServiceError::DoubtfulDone { .. }
            | ServiceError::ChangedSinceSeen { .. }
            | ServiceError::NotApproved { .. }
            | ServiceError::NotForWorkers { .. }
            | ServiceError::NeedsPerson { .. }
            | ServiceError::NeedsTerminal { .. }
            | ServiceError::NotThatActor { .. }
            | ServiceError::NeedsStrongerProof { .. }
            | ServiceError::NotAttested(_)
            | ServiceError::SeenMissing { .. }
            | ServiceError::QuestionChanged { .. }
            | ServiceError::QuestionNotNamed { .. }
            | ServiceError::AnswerUnclear { .. }
            | ServiceError::UnresolvedExecutor { .. }
            | ServiceError::Configuration { .. }
            | ServiceError::Store(_) => {
                let mut told = Self::new(error.to_string(), "").with_fact("code", error.code());
                if let Value::Object(facts) =
                    reply_text::shortened(&Value::Object(error.facts()), FACTS_BYTES_MAX).0
                {
                    told.facts.extend(facts);
                }
                told.cause = Some(Arc::new(error));
                told
            }
        }
    }
}

impl From<WriteError> for ToolError {
    fn from(error: WriteError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        ServiceError::from(error).into()
    }
}
