//! The plans and tasks that arguments name, and who is there to run them.

use waypost_core::{Phase, Plan, PlanId, Refusal, TaskId};
use waypost_engine::{Config, no_worker};
use waypost_store::WriteError;

use super::status::words;
use crate::call::Call;
use crate::refused::Refused;

/// The task that an id or its beginning names.
pub(super) fn task(call: &Call, plan: &PlanId, word: &str) -> Result<TaskId, Refused> {
    let candidates = match call.workspace.plans.look(plan, |plan| plan.resolve(word))? {
        Ok(task) => return Ok(task),
        Err(candidates) => candidates,
    };
    if candidates.is_empty() {
        let refusal = Refusal::NoSuchTask { task: word.to_owned(), nearest: None };
        return Err(WriteError::Refused(refusal).into());
    }
    let names: Vec<&str> = candidates.iter().map(TaskId::as_str).collect();
    let message = format!("{word} could be any of the tasks {}", names.join(", "));
    Err(Refused::new(message, "write more of the id"))
}

/// How many workers that are alive, on whatever machine, take up tasks of the queue that a plan is on.
pub(super) fn workers_of(call: &Call, plan: &PlanId) -> Result<usize, Refused> {
    let plans = &call.workspace.plans;
    let queue = plans.look(plan, |plan| Config::queue_name(&plan.spec().queue).to_owned())?;
    Ok(waypost_engine::workers_of(plans, &queue)?.len())
}

/// What has to happen before anything runs, if it is not up to the agent.
pub(super) fn next(plan: &Plan, workers: usize) -> Option<String> {
    let id = plan.id();
    let state = plan.state();
    match state.phase {
        Phase::Draft if state.approval_required && state.approval.is_none() => {
            let why =
                if state.reason.is_empty() { String::new() } else { format!(": {}", words(&state.reason)) };
            Some(format!(
                "a person did not approve it{why}; change what they object to, then submit it again"
            ))
        }
        Phase::AwaitingApproval if state.approval_required && state.approval.is_none() => Some(format!(
            "a person has to approve it before anything runs, for example with `waypost approve {id}` in a terminal of theirs; run_watch waits for that"
        )),
        Phase::Active if workers == 0 && !has_worker(plan) => {
            let queue = Config::queue_name(&plan.spec().queue);
            Some(format!(
                "{}: somebody has to start one (`waypost worker --queue {queue}`) or run the plan (`waypost run {id}`)",
                no_worker(queue)
            ))
        }
        Phase::Paused => Some(format!("it is paused; `waypost resume {id}` lets it go on")),
        Phase::Failed | Phase::Cancelled => {
            Some(format!("it has ended; `waypost retry {id}` sets back what did not succeed"))
        }
        Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Completed => None,
    }
}

/// Whether somebody works on it, be it on another machine.
fn has_worker(plan: &Plan) -> bool {
    plan.running().next().is_some()
}
