//! Why a command did not do what it was asked: the message, the hint, the facts for programs, and the exit code.
//! Does not print: that is `output`.

use std::path::Path;

use serde_json::{Map, Value, json};
use waypost_core::{Problem, Refusal};
use waypost_formats::Unreadable;
use waypost_store::{Conflict, StoreError, WriteError};

use crate::view::differences;

/// Problems that are shown to people; programs get all of them.
const PROBLEMS_SHOWN_MAX: usize = 100;
/// Bytes of a value that programs get with a conflict.
const VALUE_BYTES_MAX: usize = 200;

/// How the process ends. Documented in `--help` and in `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It could not be done.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// The plan has moved on since the caller looked.
    Conflict = 3,
    /// The plan is not valid, or would not be.
    Invalid = 4,
    /// There is no such plan, task or version.
    NotFound = 5,
    /// Somebody pressed Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// The word for programs, where nothing more exact is known.
    fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Why not, for people and for programs.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the process ends.
    pub(crate) exit: Exit,
    /// The word for programs.
    pub(crate) code: String,
    /// A lowercase clause: what happened, to what.
    pub(crate) message: String,
    /// Lines for people between the message and the hint.
    pub(crate) details: Vec<String>,
    /// What to do next; may be empty.
    pub(crate) hint: String,
    /// What else programs are told.
    pub(crate) facts: Box<Map<String, Value>>,
}

/// What every command returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure with a message and a hint.
    pub(crate) fn new(exit: Exit, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            exit,
            code: exit.word().to_owned(),
            message: message.into(),
            details: Vec::new(),
            hint: hint.into(),
            facts: Box::default(),
        }
    }

    /// It could not be done.
    pub(crate) fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message, hint)
    }

    /// The command line makes no sense.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message, hint)
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, message, hint)
    }

    /// A file could not be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        let path = path.display();
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                Self::new(Exit::NotFound, format!("{path} does not exist"), "see that the path is right")
            }
            std::io::ErrorKind::AlreadyExists => Self::failed(
                format!("{path} exists already"),
                "choose another name, or say --force to replace it",
            ),
            _ => Self::failed(format!("{path}: {error}"), "see that the path may be read and written"),
        }
    }

    /// A text that is no plan at all.
    pub(crate) fn unreadable(name: &str, error: &Unreadable) -> Self {
        let (exit, hint) = match error {
            Unreadable::UnknownFormat => {
                (Exit::Invalid, "say which it is with --format; `waypost schema` lists the formats")
            }
            Unreadable::Syntax { .. } => (Exit::Invalid, "correct the file there"),
            Unreadable::NoPlan(_) => (Exit::Invalid, "see that this is the right file"),
            Unreadable::WriteOnly(_) => {
                (Exit::Usage, "give a format that can be read; `waypost schema` lists them")
            }
            Unreadable::ReadOnly(_) => {
                (Exit::Usage, "give a format that can be written; `waypost schema` lists them")
            }
        };
        let message = match error {
            Unreadable::WriteOnly(_) | Unreadable::ReadOnly(_) => error.to_string(),
            Unreadable::UnknownFormat | Unreadable::Syntax { .. } | Unreadable::NoPlan(_) => {
                format!("{name}: {error}")
            }
        };
        let mut failure = Self::new(exit, message, hint);
        failure.facts.insert("file".to_owned(), name.into());
        if let Unreadable::Syntax { line, column, .. } = error {
            failure.facts.insert("line".to_owned(), (*line).into());
            failure.facts.insert("column".to_owned(), (*column).into());
        }
        failure
    }

    /// A plan with these problems, each named with the file that it is in.
    pub(crate) fn invalid(what: &str, problems: &[(Option<String>, Problem)]) -> Self {
        let count = problems.len();
        let file = |file: &Option<String>| file.as_ref().map(|file| format!("{file}: ")).unwrap_or_default();
        if let [(from, problem)] = problems {
            let message = format!("{what} is not valid: {}{problem}", file(from));
            let failure = Self::new(Exit::Invalid, message, problem.hint());
            return failure.with_fact("problems", vec![problem_json(&problems[0])]);
        }
        let message = format!("{what} is not valid: {count} problems");
        let mut failure = Self::new(Exit::Invalid, message, "correct all of them, then try again");
        for (from, problem) in problems.iter().take(PROBLEMS_SHOWN_MAX) {
            failure.details.push(format!("  {}{problem}", file(from)));
            failure.details.push(format!("    hint: {}", problem.hint()));
        }
        if count > PROBLEMS_SHOWN_MAX {
            failure.details.push(format!("  … and {} more (--json lists all)", count - PROBLEMS_SHOWN_MAX));
        }
        failure.facts.insert("problems".to_owned(), problems.iter().map(problem_json).collect());
        failure
    }

    /// Adds a line for people.
    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// Gives a fact to programs.
    pub(crate) fn with_fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// The one object that programs get.
    pub(crate) fn to_json(&self, notes: &[String]) -> Value {
        let mut error = Map::new();
        error.insert("code".to_owned(), self.code.clone().into());
        error.insert("message".to_owned(), self.message.clone().into());
        if !self.hint.is_empty() {
            error.insert("hint".to_owned(), self.hint.clone().into());
        }
        error.extend((*self.facts).clone());
        if !notes.is_empty() {
            error.insert("notes".to_owned(), notes.into());
        }
        json!({ "error": error })
    }
}

fn problem_json((file, problem): &(Option<String>, Problem)) -> Value {
    let mut value = serde_json::to_value(problem).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        if let Some(file) = file {
            fields.insert("file".to_owned(), file.clone().into());
        }
        fields.insert("message".to_owned(), problem.to_string().into());
        fields.insert("hint".to_owned(), problem.hint().into());
    }
    value
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::BadLocation(_) => Exit::Usage,
            StoreError::Pruned { .. } => Exit::NotFound,
            StoreError::Corrupt { .. }
            | StoreError::TooNew { .. }
            | StoreError::Busy
            | StoreError::Files { .. }
            | StoreError::Database(_) => Exit::Failed,
        };
        Self { code: error.word().to_owned(), ..Self::new(exit, error.to_string(), error.hint()) }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        if let Refusal::Invalid { problems } = &refusal {
            let problems: Vec<_> = problems.iter().map(|problem| (None, problem.clone())).collect();
            return Self::invalid("the plan that this would make", &problems);
        }
        let exit = match &refusal {
            Refusal::Invalid { .. } => Exit::Invalid,
            Refusal::NoSuchTask { .. } => Exit::NotFound,
            Refusal::NotWhatWasLookedAt { .. } => Exit::Conflict,
            Refusal::WrongStatus { .. }
            | Refusal::WrongPhase { .. }
            | Refusal::NeedsApproval {}
            | Refusal::OnlyAPerson { .. }
            | Refusal::StaleAttempt { .. }
            | Refusal::AlreadyRunning { .. }
            | Refusal::Blocked { .. }
            | Refusal::HasDependants { .. }
            | Refusal::IsParent { .. }
            | Refusal::MachineWork { .. }
            | Refusal::AwaitsCheck { .. }
            | Refusal::AwaitsAnswer { .. }
            | Refusal::NoQuestion { .. }
            | Refusal::NotAChoice { .. }
            | Refusal::NoEvidence { .. }
            | Refusal::NotAwaited { .. }
            | Refusal::StillRunning { .. }
            | Refusal::LockHeld { .. }
            | Refusal::QueueFull { .. }
            | Refusal::Archived {}
            | Refusal::AlreadyExists {}
            | Refusal::NotCreated {} => Exit::Failed,
        };
        let mut failure = Self::new(exit, refusal.to_string(), refusal.hint());
        if let Ok(Value::Object(mut facts)) = serde_json::to_value(&refusal) {
            if let Some(Value::String(code)) = facts.shift_remove("code") {
                failure.code = code;
            }
            *failure.facts = facts;
        }
        failure
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let hint = error.hint();
        let message = error.to_string();
        match error {
            WriteError::Refused(refusal) => refusal.into(),
            WriteError::Store(error) => error.into(),
            WriteError::Conflict(conflict) => of_conflict(message, &conflict),
            WriteError::NotFound(plan) => {
                Self { code: "no_such_plan".to_owned(), ..Self::not_found(message, hint) }
                    .with_fact("plan", plan)
            }
            WriteError::Ambiguous { candidates, .. } => {
                let names: Vec<Value> = candidates.iter().map(|id| id.as_str().into()).collect();
                Self { code: "ambiguous".to_owned(), ..Self::not_found(message, hint) }
                    .with_fact("candidates", names)
            }
            WriteError::NoSuchVersion { current, .. } => {
                Self { code: "no_such_version".to_owned(), ..Self::not_found(message, hint) }
                    .with_fact("current", current)
            }
            WriteError::IdUsed(_) => Self { code: "id_used".to_owned(), ..Self::failed(message, hint) },
        }
    }
}

fn of_conflict(message: String, conflict: &Conflict) -> Failure {
    let hint =
        format!("look at what changed since, then write again with --expect-version {}", conflict.current);
    let mut failure = Failure::new(Exit::Conflict, message, hint);
    let writers: Vec<String> = conflict.writers.iter().map(ToString::to_string).collect();
    if !writers.is_empty() {
        failure.details.push(format!("  since version {}, {} wrote:", conflict.known, writers.join(", ")));
    }
    let lines = differences::short_lines(&conflict.differences);
    failure.details.extend(lines.into_iter().map(|line| format!("  {}", line.text)));
    let unseen = conflict.differences_total.saturating_sub(conflict.differences.len());
    if unseen > 0 {
        let more = format!("  … and {unseen} more (`waypost diff {} {}`)", conflict.plan, conflict.known);
        failure.details.push(more);
    }
    let shortened = conflict.differences.iter().map(|one| differences::json(one, VALUE_BYTES_MAX));
    let facts = [
        ("plan", conflict.plan.as_str().into()),
        ("known", conflict.known.into()),
        ("current", conflict.current.into()),
        ("writers", writers.into()),
        ("differences", shortened.collect()),
        ("differences_total", conflict.differences_total.into()),
    ];
    failure.facts.extend(facts.map(|(name, value): (&str, Value)| (name.to_owned(), value)));
    failure
}
