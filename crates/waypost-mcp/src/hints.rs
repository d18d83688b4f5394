//! Hints: what to do next after an error, in the words of the tools that were called. The store's and the core's own hints are
//! for people who write commands. Knows no set of tools: each brings its phrases.

use waypost_core::{Phase, Problem, Refusal, Status};
use waypost_store::{StoreError, WriteError};

/// How a set of tools does what a hint speaks of.
pub(crate) struct HintPhrases {
    /// Shows the tasks of a plan.
    pub(crate) look: &'static str,
    /// Shows the plans.
    pub(crate) list: &'static str,
    /// Sets a task back to be done again.
    pub(crate) retry: &'static str,
    /// Ends a task that runs.
    pub(crate) stop: &'static str,
    /// Starts a task.
    pub(crate) begin: &'static str,
    /// Takes another task.
    pub(crate) another: &'static str,
    /// Starts a plan, or asks a person whether it may.
    pub(crate) start: &'static str,
    /// Waits for what others do.
    pub(crate) wait: &'static str,
    /// Lets a paused plan go on.
    pub(crate) resume: &'static str,
    /// Opens a plan that has ended.
    pub(crate) reopen: &'static str,
    /// Brings back a plan that was put away.
    pub(crate) unarchive: &'static str,
    /// Changes what tasks depend on.
    pub(crate) detach: &'static str,
}

/// What to do about something that was not written.
pub(crate) fn about(error: &WriteError, ways: &HintPhrases) -> String {
    match error {
        WriteError::Refused(refusal) => of(refusal, ways),
        WriteError::Conflict(_) => "nothing was written; look at that, then write again".to_owned(),
        WriteError::NotFound(_) => ways.list.to_owned(),
        WriteError::Ambiguous { .. } => "write more of the id".to_owned(),
        WriteError::NoSuchVersion { .. } => "name the version that an earlier answer told".to_owned(),
        WriteError::IdUsed(_) => "choose another id, or leave it out to get a new one".to_owned(),
        WriteError::Store(error) => about_store(error).to_owned(),
    }
}

/// What to do about a store that does not work.
pub(crate) fn about_store(error: &StoreError) -> &'static str {
    match error {
        StoreError::Corrupt { .. } | StoreError::Database(_) => {
            "nothing was changed; tell a person: a person runs `waypost doctor`, which says more"
        }
        StoreError::TooNew { .. } => "tell a person, who has to update Waypost",
        StoreError::Busy => "try again",
        StoreError::Pruned { .. } => "what is left is the plan as it ended: look at that",
        StoreError::Files { .. } | StoreError::BadLocation(_) => {
            "tell a person, who has to see that the store can be read and written"
        }
    }
}

fn of(refusal: &Refusal, ways: &HintPhrases) -> String {
    let hint = match refusal {
        Refusal::Invalid { problems } => return problems.first().map(Problem::hint).unwrap_or_default(),
        Refusal::NoSuchTask { nearest: Some(near), .. } => return format!("did you mean {near}?"),
        Refusal::NotAChoice { choices, .. } => return format!("answer one of {}", choices.join(", ")),
        Refusal::NoSuchTask { nearest: None, .. } | Refusal::NoQuestion { .. } => ways.look,
        Refusal::WrongStatus { status, .. } => match status {
            Status::Pending => ways.begin,
            Status::Running => ways.stop,
            Status::Done | Status::Failed | Status::Skipped | Status::Cancelled => ways.retry,
        },
        Refusal::WrongPhase { phase, wanted: "cancelled" } if phase.is_finished() => {
            "nothing of it is left to stop"
        }
        Refusal::WrongPhase { phase, .. } => match phase {
            Phase::Draft => ways.start,
            Phase::AwaitingApproval => ways.wait,
            Phase::Active => "nothing more is needed",
            Phase::Paused => ways.resume,
            Phase::Completed | Phase::Failed | Phase::Cancelled => ways.reopen,
        },
        Refusal::NeedsApproval {} => ways.start,
        Refusal::OnlyAPerson { .. } => "ask a person",
        Refusal::NotWhatWasLookedAt { .. } => "look at what changed since, then decide again",
        Refusal::StaleAttempt { given, current, .. } if given > current => {
            "send the attempt that was told when the task was taken, or none"
        }
        Refusal::StaleAttempt { .. } => "drop this work: somebody else has it now",
        Refusal::AlreadyRunning { .. } => ways.another,
        Refusal::Blocked { .. } => "finish those first",
        Refusal::HasDependants { .. } => ways.detach,
        Refusal::IsParent { .. } => "work on its children",
        Refusal::MachineWork { .. } => "machines do it; take another",
        Refusal::AwaitsCheck { .. } => "Waypost runs its check: nothing is left for you to do",
        Refusal::AwaitsAnswer { .. } => "wait until a person has answered",
        Refusal::NoEvidence { .. } => "report how the task ended; Waypost runs its check",
        Refusal::NotAwaited { .. } => "add the dependency first",
        Refusal::StillRunning { .. } => ways.stop,
        Refusal::LockHeld { .. } => "wait until it is released, or take another",
        Refusal::QueueFull { .. } => "wait until a task of the queue has ended, or take another",
        Refusal::Archived {} => ways.unarchive,
        Refusal::AlreadyExists {} => "choose another id, or change the plan that exists",
        Refusal::NotCreated {} => "create it first",
    };
    hint.to_owned()
}
