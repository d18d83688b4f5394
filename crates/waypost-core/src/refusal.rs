//! Refusals: why a plan does not execute a command, with the facts and a separate hint what to do next.

use serde::Serialize;

use crate::{Actor, ActorKind, Phase, Problem, Status};

/// Why a plan refuses a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, strum::EnumCount, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Refusal {
    /// The resulting plan would be invalid.
    #[error("the plan would not be valid: {}", first_of(problems))]
    Invalid {
        /// Every problem found.
        problems: Vec<Problem>,
    },
    /// The plan has no such task.
    #[error("no task is called {task}")]
    NoSuchTask {
        /// The name that was given.
        task: String,
        /// The most similar existing id.
        #[serde(skip_serializing_if = "Option::is_none")]
        nearest: Option<String>,
    },
    /// The task's status does not allow the command.
    #[error("task {task} is {}", cannot_be(if *queued { "queued" } else { status.as_str() }, wanted))]
    WrongStatus {
        /// The id of the task.
        task: String,
        /// The current status.
        status: Status,
        /// Whether a worker has reserved the task and has not recorded its start.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        queued: bool,
        /// The requested change, as a participle.
        wanted: &'static str,
        /// The person who stopped it, if the caller is not a person and so cannot undo that.
        #[serde(skip_serializing_if = "Option::is_none")]
        stopped_by: Option<Actor>,
    },
    /// The plan's phase does not allow the command.
    #[error("the plan is {}", cannot_be(phase.as_str(), wanted))]
    WrongPhase {
        /// The current phase.
        phase: Phase,
        /// The requested change, as a participle.
        wanted: &'static str,
        /// The person who stopped it, if the caller is not a person and so cannot undo that.
        #[serde(skip_serializing_if = "Option::is_none")]
        stopped_by: Option<Actor>,
    },
    /// The plan has not been approved.
    #[error("the plan needs a person's approval before anything runs{}", after_semicolon(rejection))]
    NeedsApproval {
        /// Who rejected the plan as it is, and why; empty if nobody did.
        #[serde(skip_serializing_if = "String::is_empty")]
        rejection: String,
    },
    /// Only a person may do this.
    #[serde(rename = "needs_person")]
    #[error("only a person can {what}; {by} cannot")]
    OnlyAPerson {
        /// The requested action, as a verb.
        what: &'static str,
        /// The actor that asked.
        by: Actor,
    },
    /// The task is for a person, or for an executor that nothing here defines.
    #[error("task {task} is for {whom}; {by} cannot {wanted}")]
    HumanGate {
        /// The id of the plan.
        plan: String,
        /// The id of the task.
        task: String,
        /// Who the task is for.
        whom: String,
        /// The actor that asked.
        by: String,
        /// The requested action, such as `end it`.
        wanted: &'static str,
    },
    /// The program of a task acts on its own attempt.
    #[error("{by} is the program of a task and works on that alone; it cannot do this in plan {plan}")]
    NotItsTask {
        /// The id of the plan.
        plan: String,
        /// The program that asked.
        by: String,
    },
    /// The plan belongs to another agent, which still has work in it.
    #[error("the plan belongs to {owner} and has open tasks; {by} cannot {wanted}")]
    NotItsPlan {
        /// The agent that owns the plan.
        owner: String,
        /// The actor that asked.
        by: String,
        /// The requested action, such as `archive it`.
        wanted: &'static str,
    },
    /// A person stopped it, and only a person can undo that.
    #[error("{by} {did}{}; only a person can {wanted}", in_quotes(reason))]
    StoppedByPerson {
        /// The person who stopped it.
        by: String,
        /// What the person did, such as `paused the plan`.
        did: String,
        /// The person's reason; may be empty.
        reason: String,
        /// The requested action, such as `resume it`.
        wanted: &'static str,
    },
    /// The approval is for another version than the current one.
    #[error("this is about version {looked_at}, but the plan is at version {current}")]
    NotWhatWasLookedAt {
        /// The version that the person reviewed.
        looked_at: u64,
        /// The current version.
        current: u64,
    },
    /// Another attempt has started since, because this worker was considered dead; or the attempt never existed.
    #[error("{}: {}", stale(task, *given, *current), latest(*current))]
    StaleAttempt {
        /// The id of the task.
        task: String,
        /// The attempt that reports.
        given: u32,
        /// The latest attempt.
        current: u32,
    },
    /// Another worker holds the task.
    #[error("task {task} is being worked on by {worker}")]
    AlreadyRunning {
        /// The id of the task.
        task: String,
        /// The worker that holds the task.
        worker: String,
    },
    /// The task waits for others.
    #[error("task {task} waits for {}", waits_for.join(", "))]
    Blocked {
        /// The id of the task.
        task: String,
        /// What the task waits for.
        waits_for: Vec<String>,
    },
    /// The task, or a task above it, is held.
    #[error("task {task} is held by {by}{}", in_quotes(reason))]
    Held {
        /// The id of the held task.
        task: String,
        /// The actor that holds it.
        by: String,
        /// Why the task is held; may be empty.
        reason: String,
    },
    /// Clones disagree about the task.
    #[error("clones disagree about task {task}; the answer to that question lifts its hold")]
    Disputed {
        /// The id of the task.
        task: String,
    },
    /// Other tasks depend on it.
    #[error("{} on task {task}", depend(dependants))]
    HasDependants {
        /// The id of the task.
        task: String,
        /// The tasks that depend on it.
        dependants: Vec<String>,
    },
    /// The task has subtasks and cannot be worked on itself.
    #[error("task {task} is made of other tasks and ends when they end")]
    IsParent {
        /// The id of the task.
        task: String,
    },
    /// The task is machine work.
    #[error("task {task} is work for executor {executor}, not for {}", by.as_str())]
    MachineWork {
        /// The id of the task.
        task: String,
        /// The executor that the task names.
        executor: String,
        /// The kind of actor that asked.
        by: ActorKind,
    },
    /// The task is reported as done; further reports are refused until its check has passed.
    #[error("task {task} is reported as done by {reported_by} and waits for its check")]
    AwaitsCheck {
        /// The id of the task.
        task: String,
        /// The actor that reported it.
        reported_by: String,
    },
    /// The task waits for an answer from a person.
    #[error("task {task} waits for a person's answer to: {question}")]
    AwaitsAnswer {
        /// The id of the task.
        task: String,
        /// The open question.
        question: String,
    },
    /// The task has no open question.
    #[error("task {task} has no open question")]
    NoQuestion {
        /// The id of the task.
        task: String,
    },
    /// The answer is not one of the question's choices.
    #[error("{answer:?} is not an answer to the question of task {task}: choose one of {}", choices.join(", "))]
    NotAChoice {
        /// The id of the task.
        task: String,
        /// The answer that was given.
        answer: String,
        /// The possible answers.
        choices: Vec<String>,
    },
    /// The evidence is not acceptable.
    #[error("the evidence for task {task} cannot be taken: {why}")]
    NoEvidence {
        /// The id of the task.
        task: String,
        /// Why not, as a clause.
        why: &'static str,
    },
    /// The task does not depend on the delivered result.
    #[error("task {task} does not wait for {dependency}")]
    NotAwaited {
        /// The id of the task.
        task: String,
        /// The external task whose result was delivered.
        dependency: String,
    },
    /// Tasks are still running or queued.
    #[error("{} still in progress", plural(running))]
    StillRunning {
        /// The ids of the tasks in progress.
        running: Vec<String>,
    },
    /// Another task holds a lock that this one needs.
    #[error("task {task} needs lock {key}, which {holder} holds")]
    LockHeld {
        /// The id of the task.
        task: String,
        /// The key of the lock.
        key: String,
        /// The holder of the lock.
        holder: String,
    },
    /// All slots of the task's queue are taken, here or by other workers.
    #[error("task {task} needs a slot of queue {queue}, and all {concurrency} are taken")]
    QueueFull {
        /// The id of the task.
        task: String,
        /// The name of the queue.
        queue: String,
        /// The number of slots of the queue.
        concurrency: u32,
    },
    /// The plan is archived.
    #[error("the plan is archived")]
    Archived {
        /// The person who archived it, if the caller is not a person and so cannot undo that.
        #[serde(skip_serializing_if = "Option::is_none")]
        stopped_by: Option<Actor>,
    },
    /// The plan exists already.
    #[error("the plan exists already")]
    AlreadyExists {},
    /// The plan has not been created.
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

fn cannot_be(status: &str, wanted: &str) -> String {
    if status == wanted {
        format!("already {status}")
    } else {
        format!("{status}, and so cannot be {wanted}")
    }
}

fn depend(names: &[String]) -> String {
    match names {
        [one] => format!("task {one} depends"),
        many => format!("tasks {} depend", many.join(", ")),
    }
}

fn only_a_person_can(act: &str, by: &Actor) -> String {
    format!("only a person can {act}: ask {}", by.name)
}

impl Refusal {
    /// Creates the refusal of a command that the phase does not allow.
    pub fn wrong_phase(phase: Phase, wanted: &'static str) -> Self {
        Self::WrongPhase { phase, wanted, stopped_by: None }
    }

    /// Whether the command is refused until a person approves the plan.
    pub fn awaits_approval(&self) -> bool {
        matches!(self, Self::NeedsApproval { .. } | Self::WrongPhase { phase: Phase::AwaitingApproval, .. })
    }

    /// Returns what to do next. Never suggests a destructive action.
    pub fn hint(&self) -> String {
        match self {
            Self::Invalid { problems } => problems.first().map(Problem::hint).unwrap_or_default(),
            Self::NoSuchTask { nearest: Some(near), .. } => format!("did you mean {near}?"),
            Self::NoSuchTask { .. } => "show the plan to see the ids of its tasks".into(),
            Self::WrongStatus { stopped_by: Some(by), .. } => only_a_person_can("run it again", by),
            Self::WrongStatus { status: Status::Pending, wanted: "retried", .. } => {
                "it has not ended, so it needs no retry".into()
            }
            Self::WrongStatus { status, .. } => match status {
                Status::Pending => "claim it first".into(),
                Status::Running => "wait until it ends, or cancel it".into(),
                Status::Skipped => "retry it, or clear its `skip`, to run it after all".into(),
                Status::Done | Status::Failed | Status::Cancelled => "retry it to run it again".into(),
            },
            Self::WrongPhase { phase, wanted: "cancelled", .. } if phase.is_finished() => {
                "it has already ended; archive it to hide it".into()
            }
            Self::WrongPhase { phase: Phase::Paused, stopped_by: Some(by), .. } => {
                only_a_person_can("resume it", by)
            }
            Self::WrongPhase { phase, stopped_by: Some(by), .. } if phase.is_finished() => {
                only_a_person_can("reopen it", by)
            }
            Self::WrongPhase { phase, .. } => match phase {
                Phase::Draft => "start the plan first".into(),
                Phase::AwaitingApproval => "wait for approval".into(),
                Phase::Active => "nothing more is needed".into(),
                Phase::Paused => "resume it first".into(),
                Phase::Completed | Phase::Failed | Phase::Cancelled => {
                    "retry what failed, or add tasks, to reopen it".into()
                }
            },
            Self::NeedsApproval { .. } => "request approval and wait for it".into(),
            Self::OnlyAPerson { .. } => "ask a person".into(),
            Self::HumanGate { .. } => "ask a person to do it".into(),
            Self::NotItsTask { .. } => {
                "report on your own task, and leave the rest to people and agents".into()
            }
            Self::NotItsPlan { owner, .. } => format!("ask {owner} or a person to do it"),
            Self::StoppedByPerson { by, .. } if by.starts_with("system:") => "ask a person".into(),
            Self::StoppedByPerson { by, .. } => format!("ask {}", by.trim_start_matches("person:")),
            Self::NotWhatWasLookedAt { .. } => "read what changed since, then decide again".into(),
            Self::StaleAttempt { given, current, .. } if given > current => {
                "send the attempt number that was returned when the task was claimed".into()
            }
            Self::StaleAttempt { .. } => "stop working on it: another worker has the task now".into(),
            Self::AlreadyRunning { .. } => "take another task".into(),
            Self::Blocked { .. } => "finish those first".into(),
            Self::Held { by, .. } => format!("wait until {by} lifts the hold"),
            Self::Disputed { .. } => "let a person answer the question".into(),
            Self::HasDependants { .. } => "change what they depend on first".into(),
            Self::IsParent { .. } => "work on its children".into(),
            Self::MachineWork { .. } => "leave it to a worker".into(),
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
            Self::Archived { stopped_by: Some(by) } => only_a_person_can("restore it", by),
            Self::Archived { stopped_by: None } => "unarchive it first".into(),
            Self::AlreadyExists {} => "choose another id, or edit the plan that exists".into(),
            Self::NotCreated {} => "create it first".into(),
        }
    }
}

fn stale(task: &str, given: u32, current: u32) -> String {
    if given > current {
        return format!("task {task} has no attempt {given}");
    }
    format!("attempt {given} of task {task} is over")
}

fn latest(current: u32) -> String {
    match current {
        0 => "it has not been started".to_owned(),
        current => format!("attempt {current} is the latest"),
    }
}

fn after_semicolon(clause: &str) -> String {
    if clause.is_empty() { String::new() } else { format!("; {clause}") }
}

fn in_quotes(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({reason:?})") }
}
