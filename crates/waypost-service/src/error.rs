//! The errors of the service: a stable code, facts for programs, and a hint key. Each front end words its own hints,
//! because the next step is a command in one and a tool call in another.

use serde_json::{Map, Value, json};
use waypost_core::{Actor, Phase, PlanId, Problem, Proof, Refusal, TaskId, Timestamp};
use waypost_formats::{NoUpdate, Unreadable};
use waypost_store::{Conflict, StoreError, WriteError};
use waypost_text::excerpt;

use crate::authenticity::AttestError;
use crate::hint::{Hint, PersonAct, PersonVerb};

/// What a signature alone does not do, as a gerund.
pub(crate) const APPROVING_REJECTED: &str = "approving what a person rejected";

/// What an agent cannot do with a plan that came from a remote which nobody has trusted.
const WORKING_ON_UNTRUSTED: &str = "work on a plan from a remote that is not trusted yet";
/// Maximum width of a question in a message, in columns.
const QUESTION_COLUMNS_MAX: usize = 200;

/// Maximum number of wrong operations in a message.
const OPERATIONS_NAMED_MAX: usize = 10;

/// Why an operation failed.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ServiceError {
    /// The rules of the plan forbid the operation.
    #[error("{0}")]
    Refused(Refusal),
    /// The plan has changed since the caller read it.
    #[error("plan {} is at version {}, not {}", .0.plan, .0.current, .0.known)]
    Conflict(Box<Conflict>),
    /// No plan has that id.
    #[error("no plan is called {}", shown(&.0.plan))]
    NoSuchPlan(Box<UnknownPlan>),
    /// The id prefix matches several plans or tasks.
    #[error("{} could be any of {}{}{}", shown(prefix), what.plural(), candidates.join(", "), if *more { " and others" } else { "" })]
    Ambiguous {
        /// Whether the id is that of a plan or a task.
        what: IdOf,
        /// The prefix that was given.
        prefix: String,
        /// The first ids that begin with the prefix.
        candidates: Vec<String>,
        /// Whether there are more of them.
        more: bool,
    },
    /// The plan has no such version.
    #[error("plan {plan} has versions 1 to {current}, and no version {wanted}")]
    NoSuchVersion {
        /// The id of the plan.
        plan: PlanId,
        /// The requested version.
        wanted: u64,
        /// The newest version.
        current: u64,
    },
    /// The id was used before; ids are never reused.
    #[error("the id {0} was used before")]
    IdUsed(PlanId),
    /// The content is not valid. Each problem has its location.
    #[error("{subject} is not valid: {}", first_of(problems))]
    Invalid {
        /// The content that is not valid.
        subject: Subject,
        /// All problems found.
        problems: Vec<Problem>,
    },
    /// Several operations of one edit are wrong.
    #[error("{} operations are wrong: {}", .0.len(), operations_text(.0))]
    #[strum(serialize = "invalid")]
    WrongOperations(Vec<WrongOperation>),
    /// The text cannot be parsed as a plan.
    #[error("{name}: {error}")]
    #[strum(serialize = "invalid")]
    Unreadable {
        /// The name of the text in messages.
        name: String,
        /// Why it cannot be parsed.
        error: Unreadable,
    },
    /// The text contains no plan, or several, where one is needed.
    #[error("{name} holds {count} plans, and one is needed")]
    NotOnePlan {
        /// The name of the text in messages.
        name: String,
        /// The number of plans in the text.
        count: usize,
    },
    /// Another session of the same agent holds the task.
    #[error("task {task} is held by another session of {agent}{}", until_text(*until))]
    HeldByOtherSession {
        /// The id of the task.
        task: TaskId,
        /// The name of the agent.
        agent: String,
        /// When the lease of the other session ends unless it is renewed.
        until: Option<Timestamp>,
    },
    /// An agent reports a task as done, and the result says that it is not.
    #[error("task {task} was not recorded as done: the result says {phrase:?}")]
    DoubtfulDone {
        /// The id of the task.
        task: TaskId,
        /// The phrase that admits failure.
        phrase: &'static str,
    },
    /// The plan, or what its executors stand for, changed while a person was deciding.
    #[error("plan {plan} changed while you were reading: {}", change_text(*seen, *current, changes))]
    ChangedSinceSeen {
        /// The id of the plan.
        plan: PlanId,
        /// The version that was seen.
        seen: u64,
        /// The newest version.
        current: u64,
        /// What changed in between, a line each.
        changes: Vec<String>,
    },
    /// An approval does not name what the person has seen.
    #[error("an approval names the version and the digest that were seen")]
    SeenMissing {
        /// The id of the plan.
        plan: PlanId,
    },
    /// A task asks something else than the person has read who answers.
    #[error("task {task} asks something else than you have read: {:?}", excerpt(text, QUESTION_COLUMNS_MAX))]
    #[strum(serialize = "changed_since_seen")]
    QuestionChanged {
        /// The id of the plan.
        plan: PlanId,
        /// The id of the task.
        task: TaskId,
        /// What it asks now.
        text: String,
        /// The possible answers; empty means any text.
        choices: Vec<String>,
        /// The digest of what it asks now.
        digest: String,
    },
    /// An answer does not name the question.
    #[error("an answer names the question that was read")]
    #[strum(serialize = "seen_missing")]
    QuestionNotNamed {
        /// The id of the plan.
        plan: PlanId,
        /// The id of the task.
        task: TaskId,
    },
    /// An answer to a task for people is neither a yes nor a no.
    #[error("the answer to {task} says neither yes nor no")]
    AnswerUnclear {
        /// The id of the plan.
        plan: PlanId,
        /// The id of the task.
        task: TaskId,
    },
    /// The plan has not been approved, so that nothing in it starts.
    #[error("{refusal}")]
    NotApproved {
        /// The id of the plan.
        plan: PlanId,
        /// What the plan refused.
        refusal: Box<Refusal>,
    },
    /// Only a person may do this.
    #[error("only a person can {what}; {by} cannot")]
    NeedsPerson {
        /// The requested action, as a verb.
        what: &'static str,
        /// The actor that asked.
        by: Actor,
        /// What a person does to that end.
        act: PersonAct,
    },
    /// The caller only claims tasks and reports on those that it holds.
    #[error("{by} claims tasks and reports on those that it holds, and can do nothing else")]
    NotForWorkers {
        /// The caller.
        by: Actor,
    },
    /// The caller has not proved that a person acts.
    #[error("{what} needs a person at a terminal, and there is none")]
    NeedsTerminal {
        /// The requested action, as a gerund.
        what: &'static str,
        /// What a person does to that end.
        act: PersonAct,
    },
    /// The name of another person was given, which proves nothing.
    #[error("{actor} is a name that was given, and {what} needs the person whose account this is")]
    NotThatActor {
        /// The name that was given.
        actor: Actor,
        /// The requested action, as a gerund.
        what: &'static str,
        /// What a person does to that end.
        act: PersonAct,
    },
    /// The proof that a person acts is weaker than the one that approval needs here.
    #[error("approval here needs {}; {given} is not enough", proof_text(*needed))]
    #[strum(serialize = "needs_proof")]
    NeedsStrongerProof {
        /// What a person signs.
        act: PersonAct,
        /// The proof that the configuration asks for.
        needed: Proof,
        /// The proof of the caller.
        given: Proof,
    },
    /// The approval could not be sealed or signed.
    #[error("{0}")]
    NotAttested(AttestError),
    /// Nobody defines an executor or a check of the plan, so that nobody can see what would run.
    #[error("plan {plan} cannot be approved: nobody defines {}", names.join(", "))]
    UnresolvedExecutor {
        /// The id of the plan.
        plan: PlanId,
        /// The names without a definition.
        names: Vec<String>,
    },
    /// The configuration cannot be loaded.
    #[error("{message}")]
    Configuration {
        /// What is wrong with it.
        message: String,
        /// One line per problem.
        details: Vec<String>,
        /// How to fix it.
        hint: String,
    },
    /// The store failed.
    #[error("{0}")]
    Store(StoreError),
}

/// An operation of an edit that is wrong.
#[derive(Debug)]
pub struct WrongOperation {
    /// Its place among the operations, from 0.
    pub index: usize,
    /// Why it is refused.
    pub error: ServiceError,
}

/// An id that no plan has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPlan {
    /// The id or prefix that was given.
    pub plan: String,
    /// The id of a plan that is spelled like it.
    pub nearest: Option<String>,
}

/// The kind of thing that an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdOf {
    /// A plan.
    Plan,
    /// A task.
    Task,
}

impl IdOf {
    fn plural(self) -> &'static str {
        match self {
            Self::Plan => "",
            Self::Task => "the tasks ",
        }
    }
}

/// The content that is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Subject {
    /// The plan that the operation would produce.
    #[error("the plan that this would make")]
    Result,
    /// Content that does not match the configuration.
    #[error("what would be written")]
    Write,
    /// A report on a task.
    #[error("the report")]
    Report,
    /// The rejection of a plan.
    #[error("the rejection")]
    Rejection,
    /// Content parsed from a text.
    #[error("what was read")]
    Text,
}

/// Shows an empty id as `""`.
fn shown(id: &str) -> &str {
    if id.is_empty() { "\"\"" } else { id }
}

fn until_text(until: Option<Timestamp>) -> String {
    let words =
        |until: Timestamp| format!(", until {} UTC unless it renews its lease", until.to_the_second());
    until.map(words).unwrap_or_default()
}

fn change_text(seen: u64, current: u64, changes: &[String]) -> String {
    match changes {
        _ if seen != current => format!("version {seen} is now {current}"),
        [] => "what would run is not what you have seen".to_owned(),
        changes => changes.join("; "),
    }
}

/// Names the proof that is asked for.
pub(crate) fn proof_text(proof: Proof) -> &'static str {
    match proof {
        Proof::Account => "a person's account",
        Proof::Client => "an answer at an agent's host",
        Proof::Presence => "a person who is present",
        Proof::Signature => "a signature",
        Proof::Touch => "a signature with touch",
    }
}

fn operations_text(wrong: &[WrongOperation]) -> String {
    let words = |one: &WrongOperation| format!("operation {}: {}", one.index + 1, one.error);
    let mut named: Vec<String> = wrong.iter().take(OPERATIONS_NAMED_MAX).map(words).collect();
    if wrong.len() > named.len() {
        named.push(format!("and {} more", wrong.len() - named.len()));
    }
    named.join("; ")
}

fn first_of(problems: &[Problem]) -> String {
    match problems {
        [] => "no problem is known".to_owned(),
        [one] => one.to_string(),
        [_, ..] => format!("{} problems", problems.len()),
    }
}

impl ServiceError {
    /// Refuses work on a plan that the actor is not offered.
    pub(crate) fn not_offered(by: &Actor, plan: &PlanId) -> Self {
        let act = PersonAct::on_plan(PersonVerb::Start, plan);
        Self::NeedsPerson { what: WORKING_ON_UNTRUSTED, by: by.clone(), act }
    }

    /// Returns the error for a plan that is not there.
    pub fn no_such_plan(plan: impl ToString) -> Self {
        Self::NoSuchPlan(Box::new(UnknownPlan { plan: plan.to_string(), nearest: None }))
    }

    /// Returns why the plan refused the operation, if it did.
    pub fn refusal(&self) -> Option<&Refusal> {
        if let Self::NotApproved { refusal, .. } = self {
            return Some(refusal);
        }
        if let Self::Refused(refusal) = self { Some(refusal) } else { None }
    }

    /// Returns the stable code for programs.
    pub fn code(&self) -> String {
        if let Some(refusal) = self.refusal() {
            return refusal_facts(refusal).0;
        }
        if let Self::Store(error) = self {
            return error.as_str().to_owned();
        }
        if let Self::NotAttested(error) = self {
            return error.code().to_owned();
        }
        if let Self::WrongOperations(wrong) = self {
            let mut codes = wrong.iter().map(|one| one.error.code());
            let first = codes.next().unwrap_or_default();
            if codes.all(|code| code == first) {
                return first;
            }
        }
        <&str>::from(self).to_owned()
    }

    /// Returns the facts that programs get with the code.
    pub fn facts(&self) -> Map<String, Value> {
        let facts = match self {
            Self::Refused(refusal) => return refusal_facts(refusal).1,
            Self::NotApproved { refusal, .. } => return refusal_facts(refusal).1,
            Self::NotForWorkers { by } => json!({ "by": by }),
            Self::NeedsPerson { what, by, .. } => json!({ "what": what, "by": by }),
            Self::NoSuchPlan(unknown) => match &unknown.nearest {
                Some(nearest) => json!({ "plan": unknown.plan, "nearest": nearest }),
                None => json!({ "plan": unknown.plan }),
            },
            Self::Ambiguous { candidates, .. } => json!({ "candidates": candidates }),
            Self::NoSuchVersion { current, .. } => json!({ "current": current }),
            Self::Unreadable { name, error: Unreadable::Syntax { line, column, .. } } => {
                json!({ "file": name, "line": line, "column": column })
            }
            Self::Unreadable { name, .. } | Self::NotOnePlan { name, .. } => json!({ "file": name }),
            Self::HeldByOtherSession { task, agent, until } => {
                json!({ "task": task, "agent": agent, "until": until })
            }
            Self::DoubtfulDone { task, phrase } => json!({ "task": task, "phrase": phrase }),
            Self::Invalid { problems, .. } => json!({ "problems": problems }),
            Self::WrongOperations(wrong) => {
                let one = |WrongOperation { index, error }: &WrongOperation| json!({ "index": index, "code": error.code(), "message": error.to_string() });
                json!({ "operations": wrong.iter().map(one).collect::<Vec<_>>() })
            }
            Self::ChangedSinceSeen { seen, current, changes, .. } => {
                json!({ "seen": seen, "current": current, "changes": changes })
            }
            Self::QuestionChanged { task, text, choices, digest, .. } => {
                json!({ "task": task, "question": text, "choices": choices, "digest": digest })
            }
            Self::QuestionNotNamed { task, .. } | Self::AnswerUnclear { task, .. } => json!({ "task": task }),
            Self::UnresolvedExecutor { names, .. } => json!({ "names": names }),
            Self::NeedsStrongerProof { needed, .. } => json!({ "needed": needed }),
            Self::NeedsTerminal { what, .. } => json!({ "what": what }),
            Self::NotThatActor { actor, what, .. } => json!({ "actor": actor, "what": what }),
            Self::SeenMissing { .. }
            | Self::NotAttested(_)
            | Self::Conflict(_)
            | Self::IdUsed(_)
            | Self::Configuration { .. }
            | Self::Store(_) => json!({}),
        };
        if let Value::Object(facts) = facts { facts } else { Map::new() }
    }

    /// Returns the next step to suggest.
    pub fn hint(&self) -> Hint {
        match self {
            Self::Refused(Refusal::Invalid { problems }) | Self::Invalid { problems, .. } => {
                match problems.as_slice() {
                    [one] => Hint::Text(one.hint()),
                    _ => Hint::FixProblems,
                }
            }
            Self::WrongOperations(_) => Hint::FixProblems,
            Self::Refused(Refusal::HumanGate { plan, task, .. }) => {
                Hint::AskPerson(PersonAct::on_task(PersonVerb::Answer, plan, task))
            }
            Self::Refused(Refusal::HasDependants { .. }) => Hint::DropDependencies,
            Self::Refused(Refusal::WrongPhase { phase: Phase::Draft, .. }) => Hint::StartPlan,
            Self::Refused(refusal) => Hint::Text(refusal.hint()),
            Self::NotApproved { plan, .. } => Hint::Approve(plan.clone()),
            Self::Conflict(conflict) => {
                Hint::ReadChanges { plan: conflict.plan.clone(), current: conflict.current }
            }
            Self::NoSuchPlan(unknown) => match &unknown.nearest {
                Some(nearest) => Hint::Text(format!("did you mean {nearest}?")),
                None => Hint::ListPlans,
            },
            Self::Ambiguous { .. } => Hint::LongerId,
            Self::NoSuchVersion { plan, .. } => Hint::ListVersions(plan.clone()),
            Self::IdUsed(_) => Hint::OtherId,
            Self::Unreadable { error, .. } => match error {
                Unreadable::UnknownFormat => Hint::NameFormat,
                Unreadable::Syntax { .. } => Hint::FixText,
                Unreadable::NoPlan(_) => Hint::RightText,
                Unreadable::WriteOnly(_) | Unreadable::ReadOnly(_) => Hint::OtherFormat,
            },
            Self::NotOnePlan { .. } => Hint::OnePlan,
            Self::HeldByOtherSession { .. } => Hint::TakeOver,
            Self::DoubtfulDone { .. } => Hint::FailOrBeSure,
            Self::NotForWorkers { .. } => Hint::LeaveToOthers,
            // Starting the plan would not help.
            Self::NeedsPerson { what, .. } if *what == WORKING_ON_UNTRUSTED => Hint::TrustRemote,
            Self::NeedsPerson { act, .. } => Hint::AskPerson(act.clone()),
            // A signature is no way out there.
            Self::NeedsTerminal { what, act } if *what == APPROVING_REJECTED => Hint::AskPerson(act.clone()),
            Self::NeedsTerminal { act, .. } => Hint::ProvePresence(act.clone()),
            Self::NotThatActor { act, .. } => Hint::UseOwnName(act.clone()),
            Self::NeedsStrongerProof { act, needed, .. } => match needed {
                // An answer at an agent's host is weaker than a person who is present.
                Proof::Account | Proof::Client | Proof::Presence => Hint::ProvePresence(act.clone()),
                Proof::Signature | Proof::Touch => {
                    Hint::Sign { act: act.clone(), touch: *needed == Proof::Touch }
                }
            },
            Self::NotAttested(error) => error.hint(),
            Self::ChangedSinceSeen { plan, .. } | Self::SeenMissing { plan } => {
                Hint::PreviewAgain(plan.clone())
            }
            Self::QuestionChanged { plan, task, .. } | Self::QuestionNotNamed { plan, task } => {
                Hint::ReadQuestion(PersonAct::on_task(PersonVerb::Answer, plan, task))
            }
            Self::AnswerUnclear { .. } => {
                let hint = "say `yes`, or `yes, TEXT` to complete it with TEXT as the result; `no` or `no, REASON` fails it";
                Hint::Text(hint.to_owned())
            }
            Self::UnresolvedExecutor { .. } => {
                Hint::Text("define them, or start a worker that does, and look again".to_owned())
            }
            Self::Configuration { hint, .. } => Hint::Text(hint.clone()),
            Self::Store(StoreError::Corrupt { .. } | StoreError::Database(_)) => Hint::CheckStore,
            Self::Store(StoreError::Pruned { plan, .. }) => Hint::ReadLatest(plan.clone()),
            Self::Store(error) => Hint::Text(error.hint().to_owned()),
        }
    }
}

fn refusal_facts(refusal: &Refusal) -> (String, Map<String, Value>) {
    match serde_json::to_value(refusal) {
        Ok(Value::Object(mut facts)) => {
            let code = facts.shift_remove("code");
            (code.and_then(|code| code.as_str().map(str::to_owned)).unwrap_or_default(), facts)
        }
        Ok(_) | Err(_) => ("refused".to_owned(), Map::new()),
    }
}

impl From<Refusal> for ServiceError {
    fn from(refusal: Refusal) -> Self {
        if let Refusal::Invalid { problems } = refusal {
            Self::Invalid { subject: Subject::Result, problems }
        } else {
            Self::Refused(refusal)
        }
    }
}

impl From<AttestError> for ServiceError {
    fn from(error: AttestError) -> Self {
        Self::NotAttested(error)
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<WriteError> for ServiceError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(refusal) => refusal.into(),
            WriteError::Conflict(conflict) => Self::Conflict(conflict),
            WriteError::NotFound(plan) => Self::no_such_plan(plan),
            WriteError::Ambiguous { prefix, candidates, more } => Self::Ambiguous {
                what: IdOf::Plan,
                prefix,
                more,
                candidates: candidates.iter().map(ToString::to_string).collect(),
            },
            WriteError::NoSuchVersion { plan, wanted, current } => {
                Self::NoSuchVersion { plan, wanted, current }
            }
            WriteError::IdUsed(plan) => Self::IdUsed(plan),
            WriteError::Store(error) => Self::Store(error),
        }
    }
}

impl ServiceError {
    /// Converts the reason why a text could not be applied to a plan.
    pub(crate) fn of_update(name: &str, error: NoUpdate) -> Self {
        let name = name.to_owned();
        match error {
            NoUpdate::Unreadable(error) => Self::Unreadable { name, error },
            NoUpdate::Invalid(problems) => Self::Invalid { subject: Subject::Text, problems },
            NoUpdate::NotOne(count) => Self::NotOnePlan { name, count },
        }
    }
}
