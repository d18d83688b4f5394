//! Single steps: report a status, complete with an output, add.

use serde_json::{Map, Value, json};
use waypost_core::{EffectiveStatus, Json, Plan, PlanId, Position, Status, Task, TaskId, TaskSpec, nearest};
use waypost_formats::jaato::tool_output;
use waypost_service::{Caller, ClaimOptions, EditOp, Guard, NewTask, StatusChange, find_failure_phrase};

use super::active_plan::{NO_ACTIVE_PLAN, started, step};
use super::arguments::{self, both};
use super::reply::{NO_SUCH_TASK, Reply, error};
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// The lease of a step. If it expires without a report, other agents see the step as open again.
pub(super) const STEP_LEASE_SECONDS: u32 = 1_800;
/// The arguments of a call that had no effect, in its reply.
pub(super) const IGNORED: &str = "ignored_arguments";
/// The prefix of step ids; a number follows.
const STEP_PREFIX: &str = "step_";

pub(super) fn set_status(call: &Call) -> Reply {
    let (id, word) = both(arguments::needed(call, "step_id"), arguments::needed(call, "status"))?;
    // Models write the `summary` of completePlan here as well.
    let (summary, result) = (arguments::text(call, "summary")?, arguments::text(call, "result")?);
    let (is_unused, why) =
        (summary.is_some() && (result.is_some() || word == "in_progress"), arguments::text(call, "error")?);
    let result = result.or(summary);
    let report = match word.as_str() {
        "in_progress" => StatusChange::Running,
        "completed" => StatusChange::Done { result: result.clone(), output: None, sure: true },
        "failed" => {
            StatusChange::Failed { error: why.clone().or_else(|| result.clone()).unwrap_or_default() }
        }
        "skipped" => StatusChange::Skipped { reason: result.clone().or_else(|| why.clone()) },
        _ => {
            return Err(error(format!(
                "Invalid status: {word}. Must be one of: in_progress, completed, failed, skipped"
            )));
        }
    };
    let none = format!("{NO_ACTIVE_PLAN} (agent={})", call.by().name);
    let plan = started(call, &none)?;
    let wanted = if word == "completed" { result.as_deref().or(why.as_deref()) } else { None };
    let warning = wanted.and_then(find_failure_phrase).map(warning);
    let id = write_report(call, &plan, &id, report)?;
    let mut answer = call.workspace.plans().with_plan(&plan, |plan| reported(plan, &id))?;
    let instruction = call.workspace.plans().with_plan(&plan, |plan| instruction(plan, &id))?;
    match (warning, instruction) {
        // The warning matters more than the next step.
        (Some(warning), _) => answer.insert("warning".to_owned(), warning.into()),
        (None, Some(instruction)) => answer.insert("instruction".to_owned(), instruction.into()),
        (None, None) => None,
    };
    if is_unused {
        answer.insert(IGNORED.to_owned(), json!(["summary"]));
    }
    Ok(answer)
}

pub(super) fn complete_with_output(call: &Call) -> Reply {
    let output = match call.arguments.get("output") {
        None | Some(Value::Null) => Err(error("output is required")),
        Some(output @ Value::Object(_)) => Ok(Json::of(output)),
        Some(_) => Err(error("output must be an object, such as {\"result\": ...}")),
    };
    let (id, output) = both(arguments::needed(call, "step_id"), output)?;
    let result = arguments::text(call, "result")?;
    let plan = started(call, NO_ACTIVE_PLAN)?;
    let warning = result.as_deref().and_then(find_failure_phrase).map(warning);
    let report = StatusChange::Done { result, output: Some(output), sure: true };
    let id = write_report(call, &plan, &id, report)?;
    let mut answer = call.workspace.plans().with_plan(&plan, |plan| reported(plan, &id))?;
    answer.remove("error");
    let message = "Step completed with output. Dependent steps will be notified.";
    answer.insert("message".to_owned(), message.into());
    if let Some(warning) = warning {
        answer.insert("warning".to_owned(), warning.into());
    }
    Ok(answer)
}

/// The warning for a report of completion whose own text admits failure.
fn warning(words: &str) -> String {
    format!(
        "The result says '{words}', and the step is written down as completed. If it was not FULLY accomplished, call \
         setStepStatus(status='failed'): being honest about failures is more valuable than false completion reports."
    )
}

/// Records an agent's report on a step. A finished step can be reported again, so that an agent can correct a mistake.
fn write_report(call: &Call, plan: &PlanId, id: &str, report: StatusChange) -> Result<TaskId, ToolError> {
    let found = call.read(plan, |plan| {
        let task = plan.task(id).ok_or_else(|| no_step(plan, id))?;
        Ok::<_, ToolError>((task.spec.id.clone(), task.state.status.is_finished()))
    })?;
    let (task, is_finished) = found?;
    // The plugin has no sessions: the agent's own name holds the lease.
    let agent = Caller::new(call.by().clone());
    if report == StatusChange::Running {
        let lease_seconds = Some(STEP_LEASE_SECONDS);
        let options = ClaimOptions { lease_seconds, take_over: true, reopen: true };
        call.service().claim(&agent, plan, &task, options, Guard::NONE)?;
        return Ok(task);
    }
    let pending = StatusChange::Pending { reason: String::new() };
    let changes = is_finished.then_some(pending).into_iter().chain([report]);
    let ops =
        changes.map(|status| EditOp::SetStatus { task: task.clone(), status, take_over: true }).collect();
    call.service().edit(&agent, plan, ops, Guard::NONE)?;
    Ok(task)
}

/// The error for an unknown step, with a suggestion if a similar id exists.
pub(super) fn no_step(plan: &Plan, id: &str) -> ToolError {
    let near = nearest(id, plan.tasks().map(|(task, _)| task.spec.id.as_str()));
    let near = near.map(|near| format!(". Did you mean {near}?")).unwrap_or_default();
    error(format!("Step not found: {id}{near}")).with_fact("code", NO_SUCH_TASK)
}

/// The reply to a report: the step and the plan's progress.
fn reported(plan: &Plan, id: &TaskId) -> Map<String, Value> {
    let Some((task, sequence)) = step(plan, id.as_str()) else { return Map::new() };
    let written = tool_output::step(plan, task, sequence);
    let mut answer = Map::new();
    for name in ["id", "step_id", "sequence", "description", "status", "result", "error"] {
        answer.insert(name.to_owned(), written.get(name).cloned().unwrap_or(Value::Null));
    }
    answer.insert("progress".to_owned(), tool_output::progress(&plan.counts()));
    answer.insert("plan_status".to_owned(), tool_output::plan_word(plan.state().phase).into());
    if task.state.reported().is_some() {
        let text = "Reported. The step counts as completed when its check has passed.";
        answer.insert("message".to_owned(), text.into());
    }
    answer
}

/// The next instruction, for models that stop after every report.
fn instruction(plan: &Plan, id: &TaskId) -> Option<String> {
    let task = plan.task(id.as_str())?;
    let pending = |task: &&Task| plan.effective_status(task.spec.id.as_str()) == Some(EffectiveStatus::Ready);
    let next = plan.tasks().map(|(task, _)| task).find(pending);
    let counts = plan.counts();
    match (task.state.status, next) {
        (Status::Running, _) => {
            Some(format!("Step is now in progress. Proceed immediately with: {}", task.spec.description))
        }
        (Status::Done, Some(next)) => {
            Some(format!("Step completed. Proceed immediately to next step: {}", next.spec.description))
        }
        (Status::Done, None) if counts.in_progress() + counts.blocked == 0 => {
            Some("All steps completed. Call completePlan to finalize.".to_owned())
        }
        (Status::Done, None) => {
            let text = "Step completed. The steps that are left are in progress or blocked by other agents.";
            Some(text.to_owned())
        }
        (Status::Failed, Some(_)) => Some(
            "Step failed. Insert a step that puts it right (addStep), skip what has become pointless, or proceed to the \
             next pending step. Do NOT recreate the plan from scratch with createPlan."
                .to_owned(),
        ),
        (Status::Failed, None) | (Status::Pending | Status::Skipped | Status::Cancelled, _) => None,
    }
}

pub(super) fn add(call: &Call) -> Reply {
    let description = arguments::needed(call, "description")?;
    let after = arguments::text(call, "after_step_id")?;
    let plan = started(call, NO_ACTIVE_PLAN)?;
    let id = add_step(call, &plan, after.as_deref(), new_step(&description)?)?;
    Ok(call.read(&plan, |plan| added(plan, &id))?)
}

/// The reply for an added step: the step and the plan's progress.
pub(super) fn added(plan: &Plan, id: &TaskId) -> Map<String, Value> {
    let Some((task, sequence)) = step(plan, id.as_str()) else { return Map::new() };
    let mut answer = tool_output::step(plan, task, sequence);
    answer.retain(|name, _| ["id", "step_id", "sequence", "description", "status"].contains(&name.as_str()));
    answer.insert("total_steps".to_owned(), json!(plan.len()));
    answer.insert("progress".to_owned(), tool_output::progress(&plan.counts()));
    answer
}

/// A step whose id is assigned when it is written.
pub(super) fn new_step(description: &str) -> Result<TaskSpec, ToolError> {
    let id = TaskId::new(STEP_PREFIX).map_err(|bad| error(bad.to_string()))?;
    Ok(TaskSpec::new(id, description))
}

/// Adds a step, at the end or after another.
pub(super) fn add_step(
    call: &Call,
    plan: &PlanId,
    after: Option<&str>,
    spec: TaskSpec,
) -> Result<TaskId, ToolError> {
    let position = match after {
        None => Position::Last,
        Some(after) => call.read(plan, |plan| {
            let sibling = plan.task(after).ok_or_else(|| no_step(plan, after))?;
            Ok::<_, ToolError>(Position::After(sibling.spec.id.clone()))
        })??,
    };
    let tasks = vec![NewTask::numbered(STEP_PREFIX, spec)];
    let ops = vec![EditOp::AddTasks { tasks, position }];
    let reply = call.service().edit(&call.caller, plan, ops, Guard::NONE)?;
    reply.added.into_iter().next().ok_or_else(|| error("The step was not added. Try again."))
}
