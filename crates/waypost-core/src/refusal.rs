//! Why a plan does not do what it was asked, with the facts; and, apart, what to do next.

use serde::Serialize;

use crate::{ActorKind, Phase, Problem, Status};

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Refusal {
    /// What would come of it is no sound plan.
    #[error("the plan would not be valid: {}", first_of(problems))]
    Invalid {
        /// Everything that is wrong.
        problems: Vec<Problem>,
    },
    /// The plan has no such task.
    #[error("no task is called {task}")]
    NoSuchTask {
        /// The name that was given.
        task: String,
        /// A name that is close to it.
        #[serde(skip_serializing_if = "Option::is_none")]
        nearest: Option<String>,
    },
    /// The task's status forbids it.
    #[error("task {task} is {}, and so cannot be {wanted}", status.as_str())]
    WrongStatus {
        /// The task.
        task: String,
        /// Where it stands.
        status: Status,
        /// What was asked, as a participle.
        wanted: &'static str,
    },
    /// The plan's phase forbids it.
    #[error("the plan is {}, and so cannot be {wanted}", phase.as_str())]
    WrongPhase {
        /// Where it stands.
        phase: Phase,
        /// What was asked, as a participle.
        wanted: &'static str,
    },
    /// Nobody has approved yet.
    #[error("the plan needs a person's approval before anything runs")]
    NeedsApproval {},
    /// Only a person may.
    #[error("only a person can {what}; {} cannot", by.as_str())]
    OnlyAPerson {
        /// What was asked, as a verb.
        what: &'static str,
        /// Who asked.
        by: ActorKind,
    },
    /// A person stopped it, and only a person undoes that.
    #[error("{by} {did}{}; only a person can {wanted}", in_quotes(reason))]
    StoppedByPerson {
        /// The person.
        by: String,
        /// What the person did, as `paused the plan`.
        did: String,
        /// Why; may be empty.
        reason: String,
        /// What was asked, as `resume it`.
        wanted: &'static str,
    },
    /// The approval was of another version than the one that stands.
    #[error("version {looked_at} was looked at, but the plan is at version {current}")]
    NotWhatWasLookedAt {
        /// The version that was looked at.
        looked_at: u64,
        /// The version that stands.
        current: u64,
    },
    /// Somebody else has started it since: this worker was thought dead.
    #[error("attempt {given} of task {task} is over: attempt {current} is the latest")]
    StaleAttempt {
        /// The task.
        task: String,
        /// The attempt that reports.
        given: u32,
        /// The latest attempt.
        current: u32,
    },
    /// Somebody works on it.
    #[error("task {task} is being worked on by {worker}")]
    AlreadyRunning {
        /// The task.
        task: String,
        /// Who.
        worker: String,
    },
    /// It waits for something.
    #[error("task {task} waits for {}", waits_for.join(", "))]
    Blocked {
        /// The task.
        task: String,
        /// What it waits for.
        waits_for: Vec<String>,
    },
    /// Others depend on it.
    #[error("{} on task {task}", depend(dependants))]
    HasDependants {
        /// The task.
        task: String,
        /// Who.
        dependants: Vec<String>,
    },
    /// It is a group of tasks, not one that can be worked on.
    #[error("task {task} is made of other tasks and ends when they end")]
    IsParent {
        /// The task.
        task: String,
    },
    /// It is for a machine to do.
    #[error("task {task} is work for executor {executor}, not for {}", by.as_str())]
    MachineWork {
        /// The task.
        task: String,
        /// The executor.
        executor: String,
        /// Who asked.
        by: ActorKind,
    },
    /// It is said to be done, and nobody's word counts until its check has passed.
    #[error("task {task} is reported as done by {reported_by} and waits for its check")]
    AwaitsCheck {
        /// The task.
        task: String,
        /// Whose word it is.
        reported_by: String,
    },
    /// It asks a person something.
    #[error("task {task} waits for a person's answer to: {question}")]
    AwaitsAnswer {
        /// The task.
        task: String,
        /// What it asks.
        question: String,
    },
    /// It asks nothing.
    #[error("task {task} asks nothing")]
    NoQuestion {
        /// The task.
        task: String,
    },
    /// The question offers answers, and this is none of them.
    #[error("{answer:?} is no answer to what task {task} asks: it can be {}", choices.join(", "))]
    NotAChoice {
        /// The task.
        task: String,
        /// What was said.
        answer: String,
        /// What can be said.
        choices: Vec<String>,
    },
    /// What was handed in as evidence is none.
    #[error("the evidence for task {task} cannot be taken: {why}")]
    NoEvidence {
        /// The task.
        task: String,
        /// Why not, a clause.
        why: &'static str,
    },
    /// The task waits for no such thing.
    #[error("task {task} does not wait for {dependency}")]
    NotAwaited {
        /// The task.
        task: String,
        /// What was delivered.
        dependency: String,
    },
    /// Some of it still runs.
    #[error("{} still running", plural(running))]
    StillRunning {
        /// The tasks.
        running: Vec<String>,
    },
    /// Another task holds a key that this one needs.
    #[error("task {task} needs lock {key}, which {holder} holds")]
    LockHeld {
        /// The task.
        task: String,
        /// The key.
        key: String,
        /// Who holds it.
        holder: String,
    },
    /// All slots of its queue are taken, here or by other workers.
    #[error("task {task} needs a slot of queue {queue}, and all {concurrency} are taken")]
    QueueFull {
        /// The task.
        task: String,
        /// The queue.
        queue: String,
        /// How many slots it has.
        concurrency: u32,
    },
    /// The plan is put away.
    #[error("the plan is archived")]
    Archived {},
    /// There is one already.
    #[error("the plan exists already")]
    AlreadyExists {},
    /// There is none yet.
    #[error("the plan does not exist yet")]
    NotCreated {},
}

fn first_of(problems: &[Problem]) -> String {
    match problems {
        [] => "nothing is known to be wrong".to_owned(),
        [one] => one.to_string(),
        [one, rest @ ..] => format!("{one} (and {} more)", rest.len()),
    }
}

fn plural(names: &[String]) -> String {
    match names {
        [one] => format!("task {one} is"),
        many => format!("tasks {} are", many.join(", ")),
    }
}

fn depend(names: &[String]) -> String {
    match names {
        [one] => format!("task {one} depends"),
        many => format!("tasks {} depend", many.join(", ")),
    }
}

impl Refusal {
    /// What to do next. Never a destructive way out.
    pub fn hint(&self) -> String {
        match self {
            Self::Invalid { problems } => problems.first().map(Problem::hint).unwrap_or_default(),
            Self::NoSuchTask { nearest: Some(near), .. } => format!("did you mean {near}?"),
            Self::NoSuchTask { .. } => "look at the plan for the names of its tasks".into(),
            Self::WrongStatus { status, .. } => match status {
                Status::Pending => "start it first".into(),
                Status::Running => "wait until it ends, or cancel it".into(),
                Status::Skipped => "retry it, or take its `skip` off, if it is to be done".into(),
                Status::Done | Status::Failed | Status::Cancelled => {
                    "retry it if it is to be done again".into()
                }
            },
            Self::WrongPhase { phase, wanted: "cancelled" } if phase.is_finished() => {
                "nothing of it is left to stop; archive it to put it away".into()
            }
            Self::WrongPhase { phase, .. } => match phase {
                Phase::Draft => "start the plan first".into(),
                Phase::AwaitingApproval => "wait for a person's word".into(),
                Phase::Active => "nothing more is needed".into(),
                Phase::Paused => "resume it first".into(),
                Phase::Completed | Phase::Failed | Phase::Cancelled => {
                    "retry what failed, or add tasks, to open it again".into()
                }
            },
            Self::NeedsApproval {} => "request approval and wait for a person's word".into(),
            Self::OnlyAPerson { .. } => "ask a person".into(),
            Self::StoppedByPerson { by, .. } => format!("ask {by}"),
            Self::NotWhatWasLookedAt { .. } => "look at what changed since, then decide again".into(),
            Self::StaleAttempt { given, current, .. } if given > current => {
                "name the attempt that was told when the task was taken".into()
            }
            Self::StaleAttempt { .. } => "drop this work: somebody else has it now".into(),
            Self::AlreadyRunning { .. } => "take another task".into(),
            Self::Blocked { .. } => "finish those first".into(),
            Self::HasDependants { .. } => "change what they depend on first, or detach them".into(),
            Self::IsParent { .. } => "work on its children".into(),
            Self::MachineWork { .. } => "let the scheduler run it".into(),
            Self::AwaitsCheck { .. } => {
                "let Waypost run the check; a person can also skip, cancel or retry the task".into()
            }
            Self::AwaitsAnswer { .. } => "wait until a person has answered".into(),
            Self::NoQuestion { .. } => "look at the task for what it waits for".into(),
            Self::NotAChoice { choices, .. } => format!("answer one of {}", choices.join(", ")),
            Self::NoEvidence { .. } => "report how the task ended, and let Waypost run its check".into(),
            Self::NotAwaited { .. } => "add the dependency first".into(),
            Self::StillRunning { .. } => "wait for them, or cancel them".into(),
            Self::LockHeld { .. } => "wait until it is released".into(),
            Self::QueueFull { .. } => "wait until a task of the queue has ended".into(),
            Self::Archived {} => "unarchive it first".into(),
            Self::AlreadyExists {} => "choose another id, or edit the plan that exists".into(),
            Self::NotCreated {} => "create it first".into(),
        }
    }
}

fn in_quotes(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({reason:?})") }
}
