//! What to do next, in the tools of the set that was called: the store's and the core's own hints are for people who write
//! commands. What only a person can do is said to be so.

use waypost_core::{Phase, Problem, Refusal, Status};
use waypost_store::{StoreError, WriteError};

use crate::toolset::Toolset;

/// How a set of tools does what a hint speaks of.
struct Ways {
    /// Shows the tasks of a plan.
    look: &'static str,
    /// Shows the plans.
    list: &'static str,
    /// Sets a task back to be done again.
    retry: &'static str,
    /// Ends a task that runs.
    stop: &'static str,
    /// Starts a task.
    begin: &'static str,
    /// Takes another task.
    another: &'static str,
    /// Starts a plan, or asks a person whether it may.
    start: &'static str,
    /// Waits for what others do.
    wait: &'static str,
    /// Lets a paused plan go on.
    resume: &'static str,
    /// Opens a plan that has ended.
    reopen: &'static str,
    /// Brings back a plan that was put away.
    unarchive: &'static str,
    /// Changes what tasks depend on.
    detach: &'static str,
}

const NATIVE: Ways = Ways {
    look: "plan_get with full: true lists the tasks",
    list: "plan_list with all: true shows the plans",
    retry: "plan_edit with op status, status pending sets it back to be done again",
    stop: "wait for its end (events with wait), or cancel it (plan_edit with op status, status cancelled)",
    begin: "take it first: task_next with task",
    another: "task_next gives you another",
    start: "plan_start asks for the start",
    wait: "events with wait waits for it",
    resume: "plan_edit with op plan, phase active goes on",
    reopen: "plan_edit opens it again: op status, status pending for what failed, or op add",
    unarchive: "plan_edit with op plan, archived false brings it back",
    detach: "plan_edit with op revise changes what they depend on; op remove with detach: true frees them",
};

const JAATO: Ways = Ways {
    look: "getPlanStatus lists the steps",
    list: "getPlanStatus without plan_id shows yours",
    retry: "setStepStatus with in_progress begins it anew",
    stop: "wait for its end, or report it with setStepStatus",
    begin: "setStepStatus with in_progress begins it",
    another: "getPlanStatus shows the steps that are pending",
    start: "startPlan asks for approval",
    wait: "getTaskEvents waits for it",
    resume: "a person runs `waypost resume`",
    reopen: "createPlan makes a new one",
    unarchive: "a person runs `waypost unarchive`",
    detach: "set what depends on it to skipped with setStepStatus",
};

const PLANS: Ways = Ways {
    look: "read_plan shows the plan",
    list: "list_plans shows the plans",
    retry: "a person runs `waypost retry`",
    stop: "wait for its end",
    begin: "a person, or an agent with other tools, starts it",
    another: "read_plan shows what else there is",
    start: "a person runs `waypost approve`",
    wait: "read_plan shows when it is so",
    resume: "a person runs `waypost resume`",
    reopen: "write_plan under another name makes a new one",
    unarchive: "a person runs `waypost unarchive`",
    detach: "write the plan without what depends on it",
};

const ORCHESTRATOR: Ways = Ways {
    look: "run_status shows how the run stands",
    list: "run_submit tells the id of what it submits",
    retry: "a person runs `waypost retry`",
    stop: "run_watch waits for its end, run_cancel stops it",
    begin: "run_submit with plan starts the run",
    another: "run_status shows what else there is",
    start: "run_submit with plan asks for the start",
    wait: "run_watch waits for it",
    resume: "a person runs `waypost resume`",
    reopen: "a person runs `waypost retry`, or submit it anew under another id",
    unarchive: "a person runs `waypost unarchive`",
    detach: "submit a plan without them",
};

fn ways(set: Toolset) -> &'static Ways {
    match set {
        Toolset::Native => &NATIVE,
        Toolset::Jaato => &JAATO,
        Toolset::Plans => &PLANS,
        Toolset::Orchestrator => &ORCHESTRATOR,
    }
}

/// What to do about something that was not written.
pub(crate) fn about(error: &WriteError, set: Toolset) -> String {
    let ways = ways(set);
    match error {
        WriteError::Refused(refusal) => of(refusal, set),
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

fn of(refusal: &Refusal, set: Toolset) -> String {
    let ways = ways(set);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use waypost_core::{ActorKind, PlanId};

    use super::*;

    /// One of each, of some several: a new variant does not compile until it stands here.
    fn all_refusals() -> Vec<Refusal> {
        let task = || "t1".to_owned();
        let mut all = vec![
            Refusal::Invalid { problems: Vec::new() },
            Refusal::NoSuchTask { task: task(), nearest: None },
            Refusal::NoSuchTask { task: task(), nearest: Some("t2".to_owned()) },
            Refusal::NeedsApproval {},
            Refusal::OnlyAPerson { what: "approve", by: ActorKind::Agent },
            Refusal::NotWhatWasLookedAt { looked_at: 1, current: 2 },
            Refusal::StaleAttempt { task: task(), given: 1, current: 2 },
            Refusal::StaleAttempt { task: task(), given: 2, current: 1 },
            Refusal::AlreadyRunning { task: task(), worker: "agent:b".to_owned() },
            Refusal::Blocked { task: task(), waits_for: vec![task()] },
            Refusal::HasDependants { task: task(), dependants: vec![task()] },
            Refusal::IsParent { task: task() },
            Refusal::MachineWork { task: task(), executor: "build".to_owned(), by: ActorKind::Agent },
            Refusal::AwaitsCheck { task: task(), reported_by: "agent:b".to_owned() },
            Refusal::AwaitsAnswer { task: task(), question: "?".to_owned() },
            Refusal::NoQuestion { task: task() },
            Refusal::NotAChoice { task: task(), answer: "x".to_owned(), choices: vec!["y".to_owned()] },
            Refusal::NoEvidence { task: task(), why: "none" },
            Refusal::NotAwaited { task: task(), dependency: "x".to_owned() },
            Refusal::StillRunning { running: vec![task()] },
            Refusal::LockHeld { task: task(), key: "k".to_owned(), holder: "t2".to_owned() },
            Refusal::QueueFull { task: task(), queue: "default".to_owned(), concurrency: 1 },
            Refusal::Archived {},
            Refusal::AlreadyExists {},
            Refusal::NotCreated {},
        ];
        all.extend(Status::ALL.map(|status| Refusal::WrongStatus { task: task(), status, wanted: "done" }));
        all.extend(Phase::ALL.map(|phase| Refusal::WrongPhase { phase, wanted: "paused" }));
        all.extend(Phase::ALL.map(|phase| Refusal::WrongPhase { phase, wanted: "cancelled" }));
        let kinds: BTreeSet<usize> = all.iter().map(kind).collect();
        assert_eq!(kinds.len(), KINDS, "each variant is there");
        all
    }

    const KINDS: usize = 25;

    fn kind(refusal: &Refusal) -> usize {
        match refusal {
            Refusal::QueueFull { .. } => 24,
            Refusal::Invalid { .. } => 0,
            Refusal::NoSuchTask { .. } => 1,
            Refusal::WrongStatus { .. } => 2,
            Refusal::WrongPhase { .. } => 3,
            Refusal::NeedsApproval {} => 4,
            Refusal::OnlyAPerson { .. } => 5,
            Refusal::NotWhatWasLookedAt { .. } => 6,
            Refusal::StaleAttempt { .. } => 7,
            Refusal::AlreadyRunning { .. } => 8,
            Refusal::Blocked { .. } => 9,
            Refusal::HasDependants { .. } => 10,
            Refusal::IsParent { .. } => 11,
            Refusal::MachineWork { .. } => 12,
            Refusal::AwaitsCheck { .. } => 13,
            Refusal::AwaitsAnswer { .. } => 14,
            Refusal::NoQuestion { .. } => 15,
            Refusal::NotAChoice { .. } => 16,
            Refusal::NoEvidence { .. } => 17,
            Refusal::NotAwaited { .. } => 18,
            Refusal::StillRunning { .. } => 19,
            Refusal::LockHeld { .. } => 20,
            Refusal::Archived {} => 21,
            Refusal::AlreadyExists {} => 22,
            Refusal::NotCreated {} => 23,
        }
    }

    /// Everything that can be said in a set of tools.
    fn all_hints(set: Toolset) -> Vec<String> {
        let plan = || PlanId::new("kq3").unwrap();
        let mut hints: Vec<String> = all_refusals().iter().map(|refusal| of(refusal, set)).collect();
        hints.extend(
            [
                WriteError::NotFound("kq3".to_owned()),
                WriteError::Ambiguous { prefix: "k".to_owned(), candidates: vec![plan()] },
                WriteError::NoSuchVersion { plan: plan(), wanted: 9, current: 2 },
                WriteError::IdUsed(plan()),
                WriteError::Store(StoreError::Busy),
                WriteError::Store(StoreError::Database("x".to_owned())),
            ]
            .iter()
            .map(|error| about(error, set)),
        );
        hints
    }

    #[test]
    fn a_command_is_named_only_where_a_person_is_to_run_it() {
        for set in Toolset::ALL {
            for hint in all_hints(set) {
                let commands = hint.matches("`waypost ").count();
                assert_eq!(
                    commands,
                    hint.matches("a person runs `waypost ").count(),
                    "{}: {hint}",
                    set.name()
                );
            }
        }
    }

    #[test]
    fn a_hint_names_tools_of_the_set_that_was_called_and_no_others() {
        let names = |set: Toolset| -> BTreeSet<&str> { set.tools().iter().map(|tool| tool.name).collect() };
        for set in Toolset::ALL {
            let own = names(set);
            let others: BTreeSet<&str> =
                Toolset::ALL.into_iter().flat_map(names).filter(|name| !own.contains(name)).collect();
            let mut named = 0;
            for hint in all_hints(set) {
                let is_word = |character: char| character.is_alphanumeric() || character == '_';
                for word in hint.split(|character| !is_word(character)) {
                    // `events` is a word, too.
                    assert!(!others.contains(word) || word == "events", "{}: {hint}", set.name());
                    named += usize::from(own.contains(word));
                    assert!(
                        !word.contains('_')
                            || own.contains(word)
                            || word == "in_progress"
                            || word == "plan_id",
                        "{hint}"
                    );
                }
            }
            assert!(named > 0, "{} names its tools", set.name());
        }
    }
}
