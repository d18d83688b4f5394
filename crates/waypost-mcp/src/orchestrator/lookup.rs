//! Lookup of tasks by id prefix, of the workers of a queue, and of what a run waits for.

use waypost_config::Config;
use waypost_core::{Phase, Plan, PlanId, TaskId};
use waypost_service::{no_worker, resolve_task, start_refusal_hint, start_refusal_text};
use waypost_text::shell_word;

use crate::hints::ask_person;
use crate::reply_text;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum bytes of an error, a question or a reason.
const EXCERPT_BYTES: usize = 200;

/// Returns the task with this id or id prefix.
pub(super) fn task(call: &Call, plan: &PlanId, word: &str) -> Result<TaskId, ToolError> {
    Ok(call.view(plan, |plan, _| resolve_task(plan, word))??)
}

/// Returns the number of live workers, on any machine, that serve the plan.
pub(super) fn workers_of(call: &Call, plan: &PlanId) -> Result<usize, ToolError> {
    Ok(waypost_service::workers_of(call.workspace.plans(), plan)?.1.len())
}

/// Returns what has to happen before anything runs, if the agent cannot do it itself.
pub(super) fn next(call: &Call, plan: &Plan, workers: usize) -> Option<String> {
    let id = plan.id();
    let state = plan.state();
    if let Some(refusal) = state.start_refusals.first().filter(|_| state.phase == Phase::Active) {
        let why = start_refusal_text(plan, refusal);
        return Some(format!("{}; {}", excerpt(&why), ask_person(start_refusal_hint(id, refusal))));
    }
    match state.phase {
        Phase::Draft if state.approval_required && state.approval.is_none() => {
            let why =
                if state.reason.is_empty() { String::new() } else { format!(": {}", quoted(&state.reason)) };
            Some(format!("a person rejected it{why}; change it, then submit it again"))
        }
        Phase::AwaitingApproval if state.approval_required && state.approval.is_none() => {
            let approve = call.person_runs(&format!("approve {id}"));
            Some(format!("it needs approval: {approve}; run_watch waits for it"))
        }
        Phase::Active if !has_machine_work(plan) => {
            Some("no remaining task is work for machines: agents or people have to do them".to_owned())
        }
        Phase::Active if workers == 0 && !has_worker(plan) => {
            let queue = Config::queue_name(&plan.spec().queue);
            let worker = call.person_runs(&format!("worker --queue {}", shell_word(queue)));
            let run = call.person_runs(&format!("run {id}"));
            Some(format!("{}: {worker}, or for this plan alone {run}", no_worker(queue)))
        }
        Phase::Paused => {
            Some(format!("it is paused; to resume it {}", call.person_runs(&format!("resume {id}"))))
        }
        Phase::Failed | Phase::Cancelled => {
            let retry = call.person_runs(&format!("retry {id}"));
            Some(format!("it has ended; to retry what failed {retry}"))
        }
        Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Completed => None,
    }
}

/// The beginning of a text by others, on one line.
pub(super) fn excerpt(text: &str) -> String {
    reply_text::cut(text, EXCERPT_BYTES)
}

/// The same as part of a sentence, which it cannot end.
pub(super) fn quoted(text: &str) -> String {
    waypost_text::quote(&excerpt(text))
}

/// Whether an unfinished task has work or a check for machines.
fn has_machine_work(plan: &Plan) -> bool {
    let mut left = plan.tasks().map(|(task, _)| task).filter(|task| !task.state.status.is_finished());
    left.any(|task| task.spec.work.is_some() || task.spec.check.is_some())
}

/// Whether a worker, on any machine, has a task of it in progress.
fn has_worker(plan: &Plan) -> bool {
    plan.in_progress().next().is_some()
}
