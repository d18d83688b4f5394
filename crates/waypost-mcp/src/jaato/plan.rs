//! Whole plans: create, start with a person's approval, complete.

use serde_json::{Map, Value, json};
use waypost_core::{Draft, Phase, Plan, PlanId, Status, Task, TaskId, TaskSpec};
use waypost_formats::jaato::tool_output;
use waypost_service::{ApprovalRule, CreateOptions, Guard};

use super::active_plan::{self, NO_ACTIVE_PLAN, others, used};
use super::arguments;
use super::reply::{Reply, STEPS_MAX, error, head};
use crate::approval::{self, APPROVAL_SECONDS_MAX, ApprovalOutcome};
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Default for how long startPlan waits for a person: less than the tool timeout of clients.
const START_SECONDS: f64 = 50.0;
/// Maximum number of steps that a message names.
pub(super) const STEPS_NAMED_MAX: usize = 20;

pub(super) fn create(call: &Call) -> Reply {
    let (title, tasks) = arguments::both(arguments::needed(call, "title"), steps(call))?;
    let draft = Draft { tasks, ..Draft::new(title) };
    let replaced = replaceable(call)?;
    let options = CreateOptions { approval: ApprovalRule::Always, ..CreateOptions::default() };
    let made = call.service().create(&call.caller, draft, options)?.plan;
    call.remember(&made)?;
    let mut answer = call.workspace.plans().with_plan(&made, outline)?;
    answer.insert("message".to_owned(), "Plan created. Call startPlan to request approval.".into());
    if let Some(old) = replaced {
        let summary = format!("replaced by {made} before it was started");
        call.service().finish(&call.caller, &old, Phase::Cancelled, &summary, Guard::NONE)?;
        answer.insert("replaced".to_owned(), old.as_str().into());
    }
    let others = others(call, &made)?;
    if !others.is_empty() {
        answer.insert("other_open_plans".to_owned(), others.into());
    }
    Ok(answer)
}

/// Returns the tasks that the steps of a call stand for.
fn steps(call: &Call) -> Result<Vec<Task>, ToolError> {
    let steps = match call.arguments.get("steps") {
        Some(Value::Array(steps)) if !steps.is_empty() => steps,
        _ => return Err(error("steps must be a non-empty array")),
    };
    let task = |(step, number): (&Value, usize)| {
        let Value::String(description) = step else { return Err(error("all steps must be strings")) };
        if description.trim().is_empty() {
            return Err(error(format!("steps must not be empty: step {number} is")));
        }
        let id = TaskId::new(format!("step_{number}")).map_err(|bad| error(bad.to_string()))?;
        Ok(Task::new(TaskSpec::new(id, description.as_str())))
    };
    steps.iter().zip(1..).map(task).collect()
}

/// Returns the session's plan that a new one replaces: a plan that the agent created and that was never started.
fn replaceable(call: &Call) -> Result<Option<PlanId>, ToolError> {
    let Some(id) = active_plan::replaceable(call)? else { return Ok(None) };
    let plans = call.workspace.plans();
    let (phase, begun, own, title, counts) = plans.with_plan(&id, |plan| {
        let (spec, state) = (plan.spec(), plan.state());
        let own = state.created_by.as_ref() == Some(call.by());
        (state.phase, state.started_at.is_some(), own, spec.title.clone(), plan.counts())
    })?;
    match phase {
        Phase::Completed | Phase::Failed | Phase::Cancelled => Ok(None),
        Phase::Draft | Phase::AwaitingApproval if !begun => Ok(own.then_some(id)),
        Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused => Err(error(format!(
            "An active plan already exists: '{title}' ({} pending, {} in progress). Do NOT recreate the plan from \
             scratch. Instead:\n- Use addStep(description, after_step_id?) to insert new steps\n- Use \
             setStepStatus(step_id, status='skipped') to skip steps that are no longer needed\n- Use \
             completePlan(status='failed') first if you truly need to abandon the plan",
            counts.ready,
            counts.in_progress()
        ))),
    }
}

/// A plan with its steps as they were written.
fn outline(plan: &Plan) -> Map<String, Value> {
    let mut answer = head(plan);
    let steps = plan.tasks().zip(1..).map(|((task, _), sequence)| {
        let mut step = tool_output::step(plan, task, sequence);
        step.retain(|name, _| {
            ["id", "step_id", "sequence", "description", "status"].contains(&name.as_str())
        });
        Value::Object(step)
    });
    answer.insert("steps".to_owned(), steps.take(STEPS_MAX).collect());
    answer.insert("progress".to_owned(), tool_output::progress(&plan.counts()));
    say_more(plan, &mut answer);
    answer
}

/// Adds how to get the steps that the reply has no room for.
fn say_more(plan: &Plan, answer: &mut Map<String, Value>) {
    if plan.len() > STEPS_MAX {
        let more =
            format!("{STEPS_MAX} of {} steps; getPlanStatus with after_step_id has the others", plan.len());
        answer.insert("more".to_owned(), more.into());
    }
}

pub(super) fn start(call: &Call) -> Reply {
    let message = arguments::text(call, "message")?;
    let seconds = arguments::seconds(call, "timeout", START_SECONDS, APPROVAL_SECONDS_MAX as f64)?;
    let id = used(call, NO_ACTIVE_PLAN)?;
    let plans = call.workspace.plans();
    let (phase, waived, title, is_begun) = plans.with_plan(&id, |plan| {
        let state = plan.state();
        let is_begun = plan.tasks().any(|(task, _)| task.state.status != Status::Pending);
        (state.phase, state.approval_waived && !state.approval_required, plan.spec().title.clone(), is_begun)
    })?;
    match phase {
        Phase::Draft | Phase::AwaitingApproval => {}
        // It was approved while nobody waited, and this session has not been told so.
        Phase::Active if !is_begun && call.session().started.as_ref() != Some(&id) => {
            return confirmed(call, &id, message);
        }
        Phase::Active | Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled => {
            return Err(error("Plan already started. Proceed with setStepStatus."));
        }
    }
    let asked = if waived {
        // The operator's configuration waives approval.
        ApprovalOutcome::Approved
    } else {
        let asks = message.clone().unwrap_or_else(|| format!("{} asks to start '{title}'.", call.by().name));
        approval::ask(call, &id, &asks, seconds as u64)?
    };
    match asked {
        ApprovalOutcome::Approved => confirmed(call, &id, message),
        ApprovalOutcome::Rejected(reason) => {
            let why = if reason.is_empty() { "no reason was given".to_owned() } else { reason };
            Err(error(format!(
                "Plan rejected by the user: {why}. Do not execute it and do not ask again unchanged: create a changed \
                 plan with createPlan, or call completePlan(status='cancelled')."
            ))
            .with_fact("confirmed", false)
            .with_fact("plan_id", id.as_str()))
        }
        outcome @ (ApprovalOutcome::Dismissed | ApprovalOutcome::Waiting) => {
            let mut answer = plans.with_plan(&id, head)?;
            answer.insert("confirmed".to_owned(), false.into());
            let why = match outcome == ApprovalOutcome::Dismissed {
                true => "The user dismissed the question without an answer. ",
                false => "",
            };
            let text = format!(
                "{why}Still waiting for the user's approval. They run `waypost approve {id}` in a terminal, or approve in the \
                 dashboard. Do not start any step. Call startPlan again to go on waiting."
            );
            answer.insert("message".to_owned(), text.into());
            Ok(answer)
        }
    }
}

fn confirmed(call: &Call, id: &PlanId, message: Option<String>) -> Reply {
    // An approved plan is active already; a plan without approval starts here.
    call.service().activate(&call.caller, id, Guard::NONE)?;
    call.session().started = Some(id.clone());
    let message = message.unwrap_or_else(|| "Plan confirmed. You may proceed with execution.".to_owned());
    let answer = call.workspace.plans().with_plan(id, |plan| {
        let mut answer = head(plan);
        let steps = plan.tasks().zip(1..).map(|((task, _), sequence)| {
            json!({ "id": task.spec.id, "sequence": sequence, "description": task.spec.description })
        });
        answer.insert("steps".to_owned(), steps.take(STEPS_MAX).collect());
        say_more(plan, &mut answer);
        answer
    })?;
    let mut all = Map::from_iter([("confirmed".to_owned(), true.into())]);
    all.extend(answer);
    all.insert("message".to_owned(), message.into());
    Ok(all)
}

pub(super) fn complete(call: &Call) -> Reply {
    let word = arguments::needed(call, "status")?;
    let phase = match word.as_str() {
        "completed" => Phase::Completed,
        "failed" => Phase::Failed,
        "cancelled" => Phase::Cancelled,
        _ => {
            return Err(error(format!(
                "Invalid status: {word}. Must be one of: completed, failed, cancelled"
            )));
        }
    };
    let summary = arguments::text(call, "summary")?;
    let id = used(call, NO_ACTIVE_PLAN)?;
    let plans = call.workspace.plans();
    let open = plans.with_plan(&id, |plan| {
        may_end_as(plan, phase, &word)?;
        let open = plan.tasks().map(|(task, _)| task).filter(|task| !task.state.status.is_finished());
        Ok::<_, ToolError>(
            open.map(|task| task.spec.id.to_string()).take(STEPS_NAMED_MAX).collect::<Vec<_>>(),
        )
    })??;
    call.service().finish(&call.caller, &id, phase, summary.as_deref().unwrap_or_default(), Guard::NONE)?;
    plans
        .with_plan(&id, |plan| {
            let mut answer = head(plan);
            answer.insert("completed_at".to_owned(), json!(plan.state().finished_at));
            answer.insert("summary".to_owned(), json!(summary));
            answer.insert("progress".to_owned(), tool_output::progress(&plan.counts()));
            if !open.is_empty() {
                let text = format!("Plan finished. Never done, and cancelled with it: {}.", open.join(", "));
                answer.insert("message".to_owned(), text.into());
            }
            answer
        })
        .map_err(ToolError::from)
}

/// Refuses to complete or fail a plan that was never started, and to complete one with a failed or running step.
fn may_end_as(plan: &Plan, phase: Phase, word: &str) -> Result<(), ToolError> {
    let never_begun = match plan.state().phase {
        Phase::Draft | Phase::AwaitingApproval => plan.state().started_at.is_none(),
        Phase::Active | Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled => false,
    };
    if never_begun && phase != Phase::Cancelled {
        return Err(error(format!(
            "Cannot mark plan as '{word}' - plan was never started. Use 'cancelled' if the plan was rejected."
        )));
    }
    if phase != Phase::Completed {
        return Ok(());
    }
    let named = |status: Status| -> Vec<String> {
        let found = plan.tasks().map(|(task, _)| task).filter(|task| task.state.status == status);
        found.map(|task| task.spec.id.to_string()).take(STEPS_NAMED_MAX).collect()
    };
    let (failed, running) = (named(Status::Failed), named(Status::Running));
    if !failed.is_empty() {
        return Err(error(format!(
            "Cannot mark plan as 'completed' - failed: {}. Use 'failed', or set a step to 'skipped' if another one took \
             its place.",
            failed.join(", ")
        )));
    }
    if !running.is_empty() {
        return Err(error(format!(
            "Cannot mark plan as 'completed' - still in progress: {}. Set their status first.",
            running.join(", ")
        )));
    }
    Ok(())
}
