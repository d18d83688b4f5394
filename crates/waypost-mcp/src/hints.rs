//! Hints: the next step after an error, in terms of the called toolset. The store's and the core's own hints are for people who
//! type commands. Knows no toolset: each supplies its phrases.

use waypost_core::{Phase, Problem, Refusal, Status};
use waypost_formats::Unreadable;
use waypost_service::{Hint, ServiceError};
use waypost_store::StoreError;

/// How one toolset performs each action that a hint may suggest.
pub(crate) struct HintPhrases {
    /// Show the tasks of a plan.
    pub(crate) look: &'static str,
    /// List the plans.
    pub(crate) list: &'static str,
    /// Reset a task so that it runs again.
    pub(crate) retry: &'static str,
    /// End a running task.
    pub(crate) stop: &'static str,
    /// Start a task.
    pub(crate) begin: &'static str,
    /// Claim another task.
    pub(crate) another: &'static str,
    /// Start a plan, or request approval for it.
    pub(crate) start: &'static str,
    /// Take over a task from another session of the same agent.
    pub(crate) take_over: &'static str,
    /// Wait for the work of others.
    pub(crate) wait: &'static str,
    /// Resume a paused plan.
    pub(crate) resume: &'static str,
    /// Reopen a finished plan.
    pub(crate) reopen: &'static str,
    /// Restore an archived plan.
    pub(crate) unarchive: &'static str,
    /// Change the dependencies of tasks.
    pub(crate) detach: &'static str,
}

/// Rewords a hint for a caller on another machine: the person whom it asks has no terminal there.
pub(crate) fn for_remote(hint: &str) -> String {
    const COMMAND: &str = "a person runs `waypost ";
    let mut words = String::new();
    let mut rest = hint;
    while let Some((before, command)) = rest.split_once(COMMAND) {
        let (command, after) = command.split_once('`').unwrap_or((command, ""));
        let verb = command.split_whitespace().next().unwrap_or_default();
        words.push_str(before);
        words.push_str(match verb {
            "doctor" | "worker" | "run" | "submit" => "the operator of this server sees to it",
            _ => "a person does it in the dashboard",
        });
        words.push_str(&if verb.is_empty() { String::new() } else { format!(" ({verb})") });
        rest = after;
    }
    words + rest
}

/// Returns the hint for an error.
pub(crate) fn about(error: &ServiceError, ways: &HintPhrases) -> String {
    let hint = match error {
        ServiceError::Refused(refusal) => return of(refusal, ways),
        ServiceError::NotApproved { refusal, .. } => return of(refusal, ways),
        ServiceError::Invalid { .. } | ServiceError::WrongOperations(_) => "fix all of them, then retry",
        ServiceError::Conflict(_) => "nothing was written; read the changes, then retry",
        ServiceError::NoSuchPlan(unknown) => match &unknown.nearest {
            Some(near) => return format!("did you mean {near}?"),
            None => ways.list,
        },
        ServiceError::Ambiguous { .. } => "give more characters of the id",
        ServiceError::NoSuchVersion { .. } => "use a version from an earlier result",
        ServiceError::IdUsed(_) => "choose another id, or omit it to get a new one",
        ServiceError::Unreadable { error, .. } => about_text(error),
        ServiceError::NotOnePlan { .. } => "pass one plan at a time",
        ServiceError::HeldByOtherSession { .. } => ways.take_over,
        ServiceError::DoubtfulDone { .. } => {
            "if it was not done, report it as failed; if it is done, send sure: true"
        }
        // Agents do nothing of this themselves.
        ServiceError::ChangedSinceSeen { .. }
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
        | ServiceError::UnresolvedExecutor { .. } => return ask_person(error.hint()),
        ServiceError::Configuration { hint, .. } => hint,
        ServiceError::Store(error) => about_store(error),
    };
    hint.to_owned()
}

/// Returns what to ask a person for.
pub(crate) fn ask_person(hint: Hint) -> String {
    match hint {
        Hint::AskPerson(act) | Hint::ProvePresence(act) | Hint::UseOwnName(act) | Hint::ReadQuestion(act) => {
            format!("ask a person to {act}")
        }
        Hint::Sign { act, .. } => format!("ask a person to {act} with a signature"),
        Hint::Approve(plan)
        | Hint::RunOrApprove(plan)
        | Hint::ApproveOrAllowSigner(plan)
        | Hint::PreviewAgain(plan) => format!("ask a person to approve plan {plan}"),
        Hint::ApproveOrRestore(plan) => {
            format!("ask a person to approve plan {plan} again, or to restore the worker's configuration")
        }
        Hint::AnswerAgain { plan, task } => {
            format!("ask a person to retry task {task} of plan {plan}, and to answer it again")
        }
        Hint::TrustRemote => "ask a person to trust the remote that the plan is from".to_owned(),
        Hint::LeaveToOthers => "an agent or a person does this".to_owned(),
        Hint::TrustStore => "ask a person whether the store was replaced".to_owned(),
        Hint::Text(text) => format!("ask a person: {text}"),
        Hint::StartPlan
        | Hint::DropDependencies
        | Hint::CheckStore
        | Hint::ReadLatest(_)
        | Hint::NameKey
        | Hint::SignPortable
        | Hint::None
        | Hint::ListPlans
        | Hint::ListVersions(_)
        | Hint::LongerId
        | Hint::OtherId
        | Hint::ReadChanges { .. }
        | Hint::FixProblems
        | Hint::NameFormat
        | Hint::OtherFormat
        | Hint::FixText
        | Hint::RightText
        | Hint::OnePlan
        | Hint::TakeOver
        | Hint::FailOrBeSure => "ask a person".to_owned(),
    }
}

/// Returns the hint for a text that cannot be read or written as a plan.
fn about_text(error: &Unreadable) -> &'static str {
    match error {
        Unreadable::UnknownFormat => "name its format",
        Unreadable::Syntax { .. } => "fix it there",
        Unreadable::NoPlan(_) => "check that it is the right text",
        Unreadable::WriteOnly(_) => "choose a format that can be read",
        Unreadable::ReadOnly(_) => "choose a format that can be written",
    }
}

/// Returns the hint for a store error.
pub(crate) fn about_store(error: &StoreError) -> &'static str {
    match error {
        StoreError::Corrupt { .. } | StoreError::Database(_) => {
            "nothing was changed; report this: a person runs `waypost doctor`"
        }
        StoreError::TooNew { .. } => "report this: a person has to update Waypost",
        StoreError::Busy => "try again",
        StoreError::HolderStopped { .. } => "report this: a person has to continue or end that process",
        StoreError::DiskFull { .. } => "nothing was changed; report this: a person has to free disk space",
        StoreError::StoreRemoved { .. } => {
            "report this: a person has to restore the store and restart this server"
        }
        StoreError::Pruned { .. } => "only the final state of the plan is kept: read that",
        StoreError::BadCursor(_) => "pass the cursor that the previous page returned",
        StoreError::Files { .. }
        | StoreError::Unreachable(_)
        | StoreError::NotADatabase(_)
        | StoreError::BadLocation(_) => "report this: a person has to make the store readable and writable",
    }
}

fn of(refusal: &Refusal, ways: &HintPhrases) -> String {
    let hint = match refusal {
        Refusal::Invalid { problems } => return problems.first().map(Problem::hint).unwrap_or_default(),
        Refusal::NoSuchTask { nearest: Some(near), .. } => return format!("did you mean {near}?"),
        Refusal::NotAChoice { choices, .. } => return format!("answer one of {}", choices.join(", ")),
        Refusal::NoSuchTask { nearest: None, .. } | Refusal::NoQuestion { .. } => ways.look,
        Refusal::WrongStatus { stopped_by: Some(_), .. } => "ask a person to run it again",
        Refusal::WrongStatus { status: Status::Pending, wanted: "retried", .. } => {
            "it has not ended, so it needs no reopening"
        }
        Refusal::WrongStatus { status, .. } => match status {
            Status::Pending => ways.begin,
            Status::Running => ways.stop,
            Status::Done | Status::Failed | Status::Skipped | Status::Cancelled => ways.retry,
        },
        Refusal::WrongPhase { phase, wanted: "cancelled", .. } if phase.is_finished() => {
            "it has ended already"
        }
        Refusal::WrongPhase { phase: Phase::Paused, stopped_by: Some(_), .. } => "ask a person to resume it",
        Refusal::WrongPhase { phase, stopped_by: Some(_), .. } if phase.is_finished() => {
            "ask a person to reopen it"
        }
        Refusal::WrongPhase { phase, .. } => match phase {
            Phase::Draft => ways.start,
            Phase::AwaitingApproval => ways.wait,
            Phase::Active => "nothing more is needed",
            Phase::Paused => ways.resume,
            Phase::Completed | Phase::Failed | Phase::Cancelled => ways.reopen,
        },
        Refusal::NeedsApproval { .. } => ways.start,
        Refusal::HumanGate { plan, task, .. } => {
            return format!("ask a person to answer task {task} of plan {plan}");
        }
        Refusal::OnlyAPerson { .. } | Refusal::StoppedByPerson { .. } => "ask a person",
        Refusal::NotItsTask { .. } => "report on your own task",
        Refusal::NotItsPlan { .. } => "ask its owner or a person to do it",
        Refusal::NotWhatWasLookedAt { .. } => "read what changed since, then decide again",
        Refusal::StaleAttempt { given, current, .. } if given > current => {
            "send the attempt returned when the task was claimed, or none"
        }
        Refusal::StaleAttempt { .. } => "stop working on it: another worker has the task now",
        Refusal::AlreadyRunning { .. } => ways.another,
        Refusal::Blocked { .. } => "finish those first",
        Refusal::Held { .. } => "wait until the hold is lifted, or claim another",
        Refusal::Disputed { .. } => "ask a person to answer the question about it",
        Refusal::HasDependants { .. } => ways.detach,
        Refusal::IsParent { .. } => "work on its children",
        Refusal::MachineWork { .. } => "workers run it; claim another",
        Refusal::AwaitsCheck { .. } => "Waypost runs its check; no action is needed",
        Refusal::AwaitsAnswer { .. } => "wait until a person has answered",
        Refusal::NoEvidence { .. } => "report how the task ended; Waypost runs its check",
        Refusal::NotAwaited { .. } => "add the dependency first",
        Refusal::StillRunning { .. } => ways.stop,
        Refusal::LockHeld { .. } => "wait until it is released, or claim another",
        Refusal::QueueFull { .. } => "wait until a task of the queue ends, or claim another",
        Refusal::Archived { stopped_by: Some(_) } => "ask a person to restore it",
        Refusal::Archived { stopped_by: None } => ways.unarchive,
        Refusal::AlreadyExists {} => "choose another id, or change the plan that exists",
        Refusal::NotCreated {} => "create it first",
    };
    hint.to_owned()
}
