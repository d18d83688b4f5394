//! The failure of a command: the message, the hint, the facts for programs, and the exit code. Does not print; `output` does.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::{Map, Value, json};
use waypost_core::{Phase, Problem, Refusal};
use waypost_formats::Unreadable;
use waypost_service::{Hint, PersonAct, PersonVerb, ServiceError, Subject};
use waypost_store::{Conflict, PlanStore, StoreError, WriteError};
use waypost_text::sanitize;

use waypost_text::reveal;

use crate::damage;
use crate::runner::{on_task, typeable};
use crate::view::differences;

/// Maximum number of problems shown to people; programs get all of them.
const PROBLEMS_SHOWN_MAX: usize = 100;
/// Maximum bytes of each value in a conflict's JSON.
const VALUE_BYTES_MAX: usize = 200;

/// The code of a store that was removed while a command used it.
pub const REMOVED: &str = "store_removed";

/// The exit codes. Documented in `--help` and in `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Exit {
    /// The command failed.
    Failed = 1,
    /// Invalid usage.
    Usage = 2,
    /// The plan has changed since the caller read it.
    Conflict = 3,
    /// The plan is not valid, or would become invalid.
    Invalid = 4,
    /// No such plan, task, version or file.
    NotFound = 5,
    /// A newer Waypost has migrated the store.
    Outdated = 6,
    /// Interrupted with Ctrl-C or SIGTERM: 128 + SIGINT.
    Interrupted = 130,
}

impl Exit {
    /// The error code for programs, unless there is a more specific one.
    fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a command failed, for people and for programs.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    /// The error code for programs.
    pub code: String,
    /// A lowercase clause: what happened, to what. Printed as it is, because it can quote a plan or a file.
    pub message: String,
    /// Lines for people between the message and the hint, printed as they are.
    pub details: Vec<String>,
    /// What to do next; may be empty. Its commands in backquotes are printed as they can be typed.
    pub hint: String,
    /// Additional fields for programs.
    pub facts: Box<Map<String, Value>>,
}

/// The result of every command.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            exit,
            code: exit.as_str().to_owned(),
            message: message.into(),
            details: Vec::new(),
            hint: hint.into(),
            facts: Box::default(),
        }
    }

    /// The command failed.
    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message, hint)
    }

    /// Invalid usage.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message, hint)
    }

    /// Something was not found.
    pub fn not_found(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, message, hint)
    }

    /// A newer Waypost has migrated the store, so that this process has finished what it had begun.
    pub fn outdated(schema: u32, left: &str) -> Self {
        let message = format!("a newer Waypost has migrated the store to schema {schema}: {left}");
        Self {
            code: "too_new".to_owned(),
            ..Self::new(Exit::Outdated, message, "update Waypost, then start it again")
        }
    }

    /// The output could not be written.
    pub fn unwritten(error: &std::io::Error) -> Self {
        Self::failed(format!("stdout: {error}"), "check that the output can be written")
    }

    /// A file could not be read or written.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the kinds of the standard library are many, and more come"
    )]
    pub fn file(path: &Path, error: &std::io::Error) -> Self {
        let path = path.display();
        match error.kind() {
            ErrorKind::NotFound => {
                Self::new(Exit::NotFound, format!("{path} does not exist"), "check the path")
            }
            ErrorKind::AlreadyExists => Self::failed(
                format!("{path} exists already"),
                "choose another name, or use --force to replace it",
            ),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Self::failed(format!("{path}: no disk space is left"), "free disk space, then try again")
            }
            ErrorKind::NotADirectory => Self::failed(
                format!("{path}: a folder of this path is a file"),
                "move that file away, then try again",
            ),
            _ => Self::failed(format!("{path}: {error}"), "check the permissions of the path"),
        }
    }

    /// A text that is not a plan in any known format.
    pub fn unreadable(name: &str, error: Unreadable) -> Self {
        ServiceError::Unreadable { name: name.to_owned(), error }.into()
    }

    /// A plan with these problems, each with the file that it is in.
    pub fn invalid(what: &str, problems: &[(Option<String>, Problem)]) -> Self {
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

    /// Why a text could not be written into a plan. Problems of the text name the file.
    pub fn of_text(name: &str, error: ServiceError) -> Self {
        let ServiceError::Invalid { subject: subject @ Subject::Text, problems } = error else {
            return error.into();
        };
        let in_file = |problem| (Some(name.to_owned()), problem);
        let problems: Vec<_> = problems.into_iter().map(in_file).collect();
        Self::invalid(&subject.to_string(), &problems)
    }

    /// The message and the details on one line.
    pub fn one_line(&self) -> String {
        let details = self.details.iter().map(|line| line.trim());
        std::iter::once(self.message.as_str()).chain(details).collect::<Vec<_>>().join("; ")
    }

    /// Adds a line for people.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// Adds a field for programs.
    pub fn with_fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// The JSON object for programs.
    pub fn to_json(&self, notes: &[String]) -> Value {
        let mut error = Map::new();
        error.insert("code".to_owned(), self.code.clone().into());
        // These are shown to people, also by programs; the facts stay as they are.
        error.insert("message".to_owned(), sanitize(&self.message).into());
        if !self.hint.is_empty() {
            error.insert("hint".to_owned(), sanitize(&typeable(&self.hint)).into());
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
        fields.insert("message".to_owned(), sanitize(&problem.to_string()).into());
        fields.insert("hint".to_owned(), sanitize(&problem.hint()).into());
    }
    value
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::BadLocation(_) | StoreError::BadCursor(_) => Exit::Usage,
            StoreError::Pruned { .. } => Exit::NotFound,
            StoreError::TooNew { .. } => Exit::Outdated,
            StoreError::Corrupt { .. }
            | StoreError::Busy
            | StoreError::HolderStopped { .. }
            | StoreError::Files { .. }
            | StoreError::DiskFull { .. }
            | StoreError::StoreRemoved { .. }
            | StoreError::Unreachable(_)
            | StoreError::NotADatabase(_)
            | StoreError::Database(_) => Exit::Failed,
        };
        let (code, message) = (error.as_str().to_owned(), error.to_string());
        let hint = match &error {
            StoreError::BadCursor(_) => {
                "pass the cursor that the previous page printed, with the same --sort".to_owned()
            }
            StoreError::BadLocation(_) => "for example --store sqlite:.waypost/waypost.db".to_owned(),
            StoreError::Corrupt { .. } => {
                damage::with_way_out(&hint_text(&ServiceError::Store(error).hint()), &message)
            }
            StoreError::TooNew { .. }
            | StoreError::Busy
            | StoreError::HolderStopped { .. }
            | StoreError::Files { .. }
            | StoreError::DiskFull { .. }
            | StoreError::StoreRemoved { .. }
            | StoreError::Database(_)
            | StoreError::Unreachable(_)
            | StoreError::NotADatabase(_)
            | StoreError::Pruned { .. } => hint_text(&ServiceError::Store(error).hint()),
        };
        Self { code, ..Self::new(exit, message, hint) }
    }
}

/// Saves what can be saved if a command failed because its store was removed, and names the file.
pub fn rescued<T>(plans: &PlanStore, outcome: Outcome<T>) -> Outcome<T> {
    outcome.map_err(|failure| match failure.code == REMOVED {
        true => rescue(plans, failure),
        false => failure,
    })
}

fn rescue(plans: &PlanStore, failure: Failure) -> Failure {
    match plans.store().rescue() {
        Ok(Some(path)) => {
            let path = path.display().to_string();
            let hint = format!(
                "move {path} to where the store was, and run `waypost doctor`; what ran was stopped, and the next run repeats it"
            );
            let failure =
                Failure { hint, ..failure }.with_detail(format!("  its contents were saved to {path}"));
            failure.with_fact("recovered", path)
        }
        Ok(None) => failure,
        Err(error) => failure.with_detail(format!("  its contents could not be saved: {error}")),
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        ServiceError::from(refusal).into()
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let refusal = if let ServiceError::Refused(refusal) = &error { Some(refusal) } else { None };
        let hint = refusal.and_then(command_after);
        let (code, hint) = (error.code(), hint.unwrap_or_else(|| hint_text(&error.hint())));
        let failure = match &error {
            ServiceError::Invalid { subject, problems } => {
                let problems: Vec<_> = problems.iter().map(|problem| (None, problem.clone())).collect();
                return Self::invalid(&subject.to_string(), &problems);
            }
            ServiceError::Unreadable { error: unreadable, .. } => {
                let failure = match unreadable {
                    Unreadable::WriteOnly(_) | Unreadable::ReadOnly(_) => {
                        Self::usage(unreadable.to_string(), hint)
                    }
                    Unreadable::UnknownFormat | Unreadable::Syntax { .. } | Unreadable::NoPlan(_) => {
                        Self::new(Exit::Invalid, error.to_string(), hint)
                    }
                };
                return Self { facts: Box::new(error.facts()), ..failure };
            }
            ServiceError::Conflict(conflict) => return of_conflict(error.to_string(), conflict),
            ServiceError::Configuration { message, details, hint } => {
                let mut failure = Self::new(Exit::Invalid, message.clone(), hint.clone());
                failure.details.clone_from(details);
                return failure;
            }
            ServiceError::Store(error) => return error.clone().into(),
            ServiceError::Refused(refusal) => Self::new(exit_of(refusal), error.to_string(), hint),
            ServiceError::NoSuchPlan(_)
            | ServiceError::Ambiguous { .. }
            | ServiceError::NoSuchVersion { .. } => Self::not_found(error.to_string(), hint),
            ServiceError::NotOnePlan { .. } => return Self::usage(error.to_string(), hint),
            ServiceError::ChangedSinceSeen { changes, .. } => {
                let mut failure = Self::new(Exit::Conflict, error.to_string(), hint);
                failure.details.extend(changes.iter().map(|line| format!("  {}", reveal(line))));
                failure
            }
            ServiceError::WrongOperations(_) => Self::new(Exit::Invalid, error.to_string(), hint),
            ServiceError::QuestionChanged { .. } => Self::new(Exit::Conflict, error.to_string(), hint),
            ServiceError::IdUsed(_)
            | ServiceError::HeldByOtherSession { .. }
            | ServiceError::DoubtfulDone { .. }
            | ServiceError::NotApproved { .. }
            | ServiceError::NotForWorkers { .. }
            | ServiceError::NeedsPerson { .. }
            | ServiceError::NeedsTerminal { .. }
            | ServiceError::NotThatActor { .. }
            | ServiceError::NeedsStrongerProof { .. }
            | ServiceError::NotAttested(_)
            | ServiceError::SeenMissing { .. }
            | ServiceError::QuestionNotNamed { .. }
            | ServiceError::AnswerUnclear { .. }
            | ServiceError::UnresolvedExecutor { .. } => Self::failed(error.to_string(), hint),
        };
        Self { code, facts: Box::new(error.facts()), ..failure }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most refusals are failures like any other")]
fn exit_of(refusal: &Refusal) -> Exit {
    match refusal {
        Refusal::Invalid { .. } => Exit::Invalid,
        Refusal::NoSuchTask { .. } => Exit::NotFound,
        Refusal::NotWhatWasLookedAt { .. } => Exit::Conflict,
        _ => Exit::Failed,
    }
}

/// Says what to type after a refusal whose own hint names no command.
#[expect(clippy::wildcard_enum_match_arm, reason = "most refusals have a hint that fits every front end")]
fn command_after(refusal: &Refusal) -> Option<String> {
    let ask = |whom: &str| format!("ask {whom} to run the same command in a terminal of their own");
    match refusal {
        Refusal::OnlyAPerson { .. } => Some(ask("a person")),
        Refusal::StoppedByPerson { by, .. } if by.starts_with("system:") => Some(ask("a person")),
        Refusal::StoppedByPerson { by, .. } => Some(ask(by.trim_start_matches("person:"))),
        Refusal::Disputed { .. } => {
            Some("answer the question with `waypost resolve`; `waypost conflicts` shows it".to_owned())
        }
        Refusal::WrongPhase { phase: Phase::Paused, stopped_by: None, .. } => {
            Some("resume it first: `waypost resume` and its id".to_owned())
        }
        _ => None,
    }
}

/// What a person types to do something, with options that have a space before them.
fn command(act: &PersonAct, options: &str) -> String {
    let PersonAct { verb, plan, task } = act;
    match (verb, task) {
        (PersonVerb::Purge, _) => format!("waypost delete {plan} --purge{options}"),
        (PersonVerb::Answer, Some(task)) => on_task("answer", plan, task, " yes", options),
        (PersonVerb::Answer, None) => format!("waypost answer {plan}{options}"),
        (verb, Some(task)) => on_task(&verb.to_string(), plan, task, "", options),
        (verb, None) => format!("waypost {verb} {plan}{options}"),
    }
}

/// Translates a hint into commands of this program.
pub fn hint_text(hint: &Hint) -> String {
    match hint {
        Hint::None => String::new(),
        Hint::ListPlans => "`waypost list` shows the plans".to_owned(),
        Hint::ListVersions(plan) => format!("`waypost history {plan}` shows the versions"),
        Hint::LongerId => "write more of the id".to_owned(),
        Hint::OtherId => "choose another id, or leave it out to get a new one".to_owned(),
        Hint::ReadChanges { current, .. } => {
            format!("review what changed since, then write again with --expect-version {current}")
        }
        Hint::FixProblems => "correct all of them, then try again".to_owned(),
        Hint::NameFormat => "name it with --format; `waypost schema` lists the formats".to_owned(),
        Hint::OtherFormat => "give another format; `waypost schema` lists them".to_owned(),
        Hint::FixText => "correct the file there".to_owned(),
        Hint::RightText => "check that this is the right file".to_owned(),
        Hint::OnePlan => "name a file with one plan".to_owned(),
        Hint::TakeOver => {
            "take another task, or if that session is gone, repeat the command with --take-over".to_owned()
        }
        Hint::FailOrBeSure => {
            "if it was not done, use `waypost fail`; if it is done, add --sure".to_owned()
        }
        Hint::PreviewAgain(plan) => format!("look at it again with `waypost preview {plan}`, then decide"),
        Hint::ReadQuestion(act) => {
            let (plan, task) = (&act.plan, act.task.as_deref().unwrap_or_default());
            let answer = on_task("answer", plan, task, "", "");
            format!("`{answer}` shows it and asks; or add --seen DIGEST, as `waypost answer {plan} --json` prints it")
        }
        Hint::AskPerson(act) => format!("ask a person to run `{}`", command(act, "")),
        Hint::TrustRemote => "ask a person to run `waypost trust` in this repository".to_owned(),
        Hint::LeaveToOthers => "an agent or a person does this".to_owned(),
        Hint::ProvePresence(act) => {
            let sign = match act.verb {
                PersonVerb::Approve | PersonVerb::Answer => ", or add --sign",
                PersonVerb::Revoke
                | PersonVerb::Purge
                | PersonVerb::Cancel
                | PersonVerb::Resume
                | PersonVerb::Retry
                | PersonVerb::Unarchive
                | PersonVerb::Unhold
                | PersonVerb::Run
                | PersonVerb::Start
                | PersonVerb::Done
                | PersonVerb::Fail
                | PersonVerb::Skip
                | PersonVerb::Edit => "",
            };
            format!("run `{}` in a terminal{sign}", command(act, ""))
        }
        Hint::UseOwnName(act) => {
            format!("run `{}` in a terminal, without --as and WAYPOST_ACTOR", command(act, ""))
        }
        Hint::Sign { act, touch: false } => format!("run `{}`", command(act, " --sign")),
        Hint::Sign { act, touch: true } => format!("run `{}` with a security key", command(act, " --sign")),
        Hint::Approve(plan) => format!("a person approves it: `waypost approve {plan}`"),
        Hint::RunOrApprove(plan) => {
            format!("its author runs it: `waypost run {plan}`; others approve it: `waypost approve {plan}`")
        }
        Hint::ApproveOrRestore(plan) => {
            format!("approve it again: `waypost approve {plan}`; or restore this worker's configuration")
        }
        Hint::ApproveOrAllowSigner(plan) => {
            format!("approve it here: `waypost approve {plan}`; or add the signer to the allowed signers")
        }
        Hint::AnswerAgain { plan, task } => {
            let (retry, answer) =
                (on_task("retry", plan, task, "", ""), on_task("answer", plan, task, " yes", ""));
            format!("`{retry}`, then `{answer}`")
        }
        Hint::TrustStore => "if you replaced it, run `waypost trust`".to_owned(),
        Hint::StartPlan => "start the plan first: `waypost run` or `waypost submit`".to_owned(),
        Hint::DropDependencies => {
            "change what they depend on first, or remove it with --drop-dependencies".to_owned()
        }
        Hint::CheckStore => "nothing was changed; `waypost doctor` names the damage, and `waypost doctor --repair` repairs what it can"
            .to_owned(),
        Hint::ReadLatest(plan) => format!("its latest state is kept: `waypost show {plan}` shows it"),
        Hint::NameKey => "name your key with --key, and see what ssh-keygen printed".to_owned(),
        Hint::SignPortable => "sign it with --sign --portable".to_owned(),
        Hint::Text(text) => text.clone(),
    }
}

fn of_conflict(message: String, conflict: &Conflict) -> Failure {
    let hint =
        format!("review what changed since, then write again with --expect-version {}", conflict.current);
    let mut failure = Failure::new(Exit::Conflict, message, hint);
    let writers: Vec<String> = conflict.writers.iter().map(ToString::to_string).collect();
    if !writers.is_empty() {
        failure.details.push(format!("  since version {}, {} wrote:", conflict.known, writers.join(", ")));
    }
    let lines = differences::short_lines(&conflict.differences);
    if lines.is_empty() && !writers.is_empty() {
        failure.details.push("  changes that cancel each other out".to_owned());
    }
    failure.details.extend(lines.into_iter().map(|line| format!("  {}", line.text)));
    let unseen = conflict.differences_total.saturating_sub(conflict.differences.len());
    if unseen > 0 {
        let more = format!("  … and {unseen} more (`waypost diff {} {}`)", conflict.plan, conflict.known);
        failure.details.push(typeable(&more).into_owned());
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
