//! Single steps: report, complete with an output, add.

use serde_json::{Map, Value, json};
use waypost_core::{
    Command, Json, Outcome, Plan, PlanId, Refusal, Standing, Status, Task, TaskId, TaskSpec, Where, Wrong,
    nearest,
};
use waypost_formats::jaato::tool_output;
use waypost_store::{WriteError, WriteRequest};

use super::active_plan::{NO_ACTIVE_PLAN, free_step_id, started, step};
use super::arguments;
use super::reply::{Reply, error};
use crate::false_done;
use crate::tool_call::Call;
use crate::tool_error::ToolError;
use crate::workspace::Write;

/// How long an agent is believed to work on a step without a word; then others see it as open again.
pub(super) const STEP_LEASE_SECONDS: u32 = 1_800;
/// How often a new step is given another id because a call at the same time took it.
const ADD_TRIES_MAX: usize = 50;

/// What an agent says of a step.
enum Report {
    InProgress,
    Ended(Outcome),
}

pub(super) fn set_status(call: &Call) -> Reply {
    let id = arguments::needed(call, "step_id")?;
    let word = arguments::needed(call, "status")?;
    let (result, why) = (arguments::text(call, "result")?, arguments::text(call, "error")?);
    let report = match word.as_str() {
        "in_progress" => Report::InProgress,
        "completed" => Report::Ended(Outcome::Done { result: result.clone(), output: None, evidence: None }),
        "failed" => {
            let error = why.clone().or_else(|| result.clone()).unwrap_or_default();
            Report::Ended(Outcome::Failed { error, evidence: None })
        }
        "skipped" => Report::Ended(Outcome::Skipped { reason: result.clone().or_else(|| why.clone()) }),
        _ => {
            return Err(error(format!(
                "Invalid status: {word}. Must be one of: in_progress, completed, failed, skipped"
            )));
        }
    };
    let none = format!("{NO_ACTIVE_PLAN} (agent={})", call.by.name);
    let plan = started(call, &none)?;
    let wanted = if word == "completed" { result.as_deref().or(why.as_deref()) } else { None };
    let warning = wanted.and_then(false_done::find_failure_phrase).map(warning);
    let id = write_report(call, &plan, &id, report)?;
    let mut answer = call.workspace.plans.look(&plan, |plan| reported(plan, &id))?;
    let instruction = call.workspace.plans.look(&plan, |plan| instruction(plan, &id))?;
    match (warning, instruction) {
        // First things first: the next step can wait.
        (Some(warning), _) => answer.insert("warning".to_owned(), warning.into()),
        (None, Some(instruction)) => answer.insert("instruction".to_owned(), instruction.into()),
        (None, None) => None,
    };
    Ok(answer)
}

pub(super) fn complete_with_output(call: &Call) -> Reply {
    let id = arguments::needed(call, "step_id")?;
    let output = match call.arguments.get("output") {
        None | Some(Value::Null) => return Err(error("output is required")),
        Some(output @ Value::Object(_)) => Json::of(output),
        Some(_) => return Err(error("output must be an object, such as {\"result\": ...}")),
    };
    let result = arguments::text(call, "result")?;
    let plan = started(call, NO_ACTIVE_PLAN)?;
    let warning = result.as_deref().and_then(false_done::find_failure_phrase).map(warning);
    let outcome = Outcome::Done { result, output: Some(output), evidence: None };
    let id = write_report(call, &plan, &id, Report::Ended(outcome))?;
    let mut answer = call.workspace.plans.look(&plan, |plan| reported(plan, &id))?;
    answer.remove("error");
    let message = "Step completed with output. Dependent steps will be notified.";
    answer.insert("message".to_owned(), message.into());
    if let Some(warning) = warning {
        answer.insert("warning".to_owned(), warning.into());
    }
    Ok(answer)
}

/// What to tell whoever reports as completed what its own words say was not.
fn warning(words: &str) -> String {
    format!(
        "The result says '{words}', and the step is written down as completed. If it was not FULLY accomplished, call \
         setStepStatus(status='failed'): being honest about failures is more valuable than false completion reports."
    )
}

/// Writes what an agent says of a step. What has ended can be reported anew: who sees that it was mistaken may say so.
fn write_report(call: &Call, plan: &PlanId, id: &str, report: Report) -> Result<TaskId, ToolError> {
    let found = call.workspace.plans.look(plan, |plan| {
        let task = plan.task(id)?;
        let state = &task.state;
        let mine = state.worker.as_ref().is_some_and(|worker| call.by.is_worker(worker));
        Some((task.spec.id.clone(), state.status, state.attempt, mine))
    })?;
    let Some((task, status, attempt, mine)) = found else {
        return Err(call.workspace.plans.look(plan, |plan| no_step(plan, id))?);
    };
    let mut commands = Vec::new();
    if status.is_finished() {
        commands.push(Command::RetryTask { task: task.clone() });
    }
    match report {
        Report::InProgress if status == Status::Running && mine => {
            renew(call, plan, &task, attempt)?;
            return Ok(task);
        }
        Report::InProgress => {
            commands.push(Command::StartTask { task: task.clone(), worker: call.by.to_string() });
        }
        Report::Ended(outcome) => {
            let task = task.clone();
            commands.push(Command::FinishTask { task, attempt: None, outcome, retry: None });
        }
    }
    let (plan, by) = (plan.clone(), call.by.clone());
    let lease_seconds = Some(STEP_LEASE_SECONDS);
    call.workspace.write(Write { plan, by, commands, known_version: None, lease_seconds })?;
    Ok(task)
}

/// There is no such step; perhaps one whose name is close to it.
pub(super) fn no_step(plan: &Plan, id: &str) -> ToolError {
    let near = nearest(id, plan.tasks().map(|(task, _)| task.spec.id.as_str()));
    let near = near.map(|near| format!(". Did you mean {near}?")).unwrap_or_default();
    error(format!("Step not found: {id}{near}"))
}

fn renew(call: &Call, plan: &PlanId, task: &TaskId, attempt: u32) -> Result<(), ToolError> {
    call.workspace.plans.store().write(&mut |transaction| {
        let until = transaction.now().plus_seconds(u64::from(STEP_LEASE_SECONDS));
        transaction.renew_lease(plan, task.as_str(), attempt, until).map(drop)
    })?;
    Ok(())
}

/// A step after a report, and how far the plan is.
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

/// What to do next, for models that stop after every report.
fn instruction(plan: &Plan, id: &TaskId) -> Option<String> {
    let task = plan.task(id.as_str())?;
    let pending = |task: &&Task| plan.standing(task.spec.id.as_str()) == Some(Standing::Ready);
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
    let id = add_step(call, &plan, after.as_deref(), |plan| {
        Ok(TaskSpec::new(free_step_id(plan)?, description.as_str()))
    })?;
    Ok(call.workspace.plans.look(&plan, |plan| added(plan, &id))?)
}

/// A step that was added, and how far the plan is.
pub(super) fn added(plan: &Plan, id: &TaskId) -> Map<String, Value> {
    let Some((task, sequence)) = step(plan, id.as_str()) else { return Map::new() };
    let mut answer = tool_output::step(plan, task, sequence);
    answer.retain(|name, _| ["id", "step_id", "sequence", "description", "status"].contains(&name.as_str()));
    answer.insert("total_steps".to_owned(), json!(plan.len()));
    answer.insert("progress".to_owned(), tool_output::progress(&plan.counts()));
    answer
}

/// Adds the step that `make` makes, at the end or after another.
pub(super) fn add_step(
    call: &Call,
    plan: &PlanId,
    after: Option<&str>,
    make: impl Fn(&Plan) -> Result<TaskSpec, ToolError>,
) -> Result<TaskId, ToolError> {
    let plans = &call.workspace.plans;
    for _ in 0..ADD_TRIES_MAX {
        let (spec, place) = plans.look(plan, |plan| {
            let mut spec = make(plan)?;
            let place = match after {
                None => Where::Last,
                Some(after) => {
                    let sibling = plan.task(after).ok_or_else(|| no_step(plan, after))?;
                    spec.parent.clone_from(&sibling.spec.parent);
                    Where::After(sibling.spec.id.clone())
                }
            };
            Ok::<_, ToolError>((spec, place))
        })??;
        let id = spec.id.clone();
        let commands = vec![Command::AddTasks { tasks: vec![spec], place }];
        let (plan, by) = (plan.clone(), call.by.clone());
        let request = WriteRequest { plan, by, commands, known_version: None, lease_seconds: None };
        match plans.write(request) {
            Ok(_) => return Ok(id),
            // Another call took the same id a moment ago.
            Err(WriteError::Refused(Refusal::Invalid { problems }))
                if problems.iter().all(|problem| problem.wrong == Wrong::DuplicateId) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Err(error("Too many steps are being added at the same time. Try again."))
}
