//! Steps that depend on steps of other agents: adds or links them, and lists blocked steps with the reasons.

use serde_json::{Map, Value, json};
use waypost_core::{
    Dependency, EffectiveStatus, ExternalTaskRef, Plan, PlanId, Status, Task, TaskChanges, TaskId, TaskSpec,
};
use waypost_formats::jaato::tool_output;
use waypost_service::{EditOp, Guard, StatusChange};
use waypost_store::TargetStatus;

use super::active_plan::{NO_ACTIVE_PLAN, current, named, started, step};
use super::arguments;
use super::reply::{NO_SUCH_TASK, Reply, STEPS_MAX, error};
use super::step::{add_step, added, new_step};
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum number of dependencies that a reply lists for one step.
pub(super) const WAITS_NAMED_MAX: usize = 20;

/// The step that gets the dependencies.
enum Target {
    New(String),
    Existing(String),
}

pub(super) fn add(call: &Call) -> Reply {
    let texts = arguments::both(arguments::text(call, "after_step_id"), arguments::text(call, "provides"));
    let read = arguments::both(arguments::both(target(call), references(call)), texts)?;
    let ((target, references), (after, provides)) = read;
    let plan = started(call, NO_ACTIVE_PLAN)?;
    let (id, said) = match target {
        Target::New(description) => {
            let mut spec = new_step(&description)?;
            spec.provides = provides;
            call.read(&plan, |plan| depend(call, plan, &mut spec, &references))??;
            let id = add_step(call, &plan, after.as_deref(), spec)?;
            (id, format!("Step added with {} dependencies", references.len()))
        }
        Target::Existing(step) => {
            let id = link(call, &plan, &step, provides, &references)?;
            (id, format!("Added {} dependencies to existing step", references.len()))
        }
    };
    let missing = missing(call, &plan, &id)?;
    let mut answer = call.workspace.plans().with_plan(&plan, |plan| linked(plan, &id, &said))?;
    let resolved = call.resolved_to(&plan, &id)?;
    if !resolved.is_empty() {
        answer.insert("resolved_to".to_owned(), resolved.into());
    }
    if !missing.is_empty() {
        let warning = format!("{}. See that the names are right.", missing.join("; "));
        answer.insert("warning".to_owned(), warning.into());
    }
    Ok(answer)
}

fn target(call: &Call) -> Result<Target, ToolError> {
    match arguments::both(arguments::text(call, "step_id"), arguments::text(call, "description"))? {
        (Some(_), Some(_)) => {
            Err(error("Give step_id (one of your steps) or description (a new step), not both."))
        }
        (Some(step), None) => Ok(Target::Existing(step)),
        (None, Some(description)) => Ok(Target::New(description)),
        (None, None) => Err(error("step_id is required, or description for a new step")),
    }
}

/// Returns the references as given. Each must have an agent and a step.
fn references(call: &Call) -> Result<Vec<Map<String, Value>>, ToolError> {
    let list = match call.arguments.get("depends_on") {
        Some(Value::Array(list)) if !list.is_empty() => list,
        _ => return Err(error("depends_on is required and must not be empty")),
    };
    let has = |reference: &Map<String, Value>, name: &str| {
        reference.get(name).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
    };
    let whole = |reference: &Value| {
        let reference = reference.as_object()?;
        (has(reference, "agent_id") && has(reference, "step_id")).then(|| reference.clone())
    };
    let read: Option<Vec<_>> = list.iter().map(whole).collect();
    read.ok_or_else(|| {
        let known = ["agent_id", "step_id", "plan_id"];
        let unknown = list.iter().filter_map(Value::as_object).flat_map(Map::keys);
        let unknown: Vec<&str> = unknown.map(String::as_str).filter(|name| !known.contains(name)).collect();
        let named = arguments::unknown_names(&unknown);
        error(format!("Each dependency must have agent_id and step_id{named}"))
    })
}

/// Adds the references to the dependencies of `spec`.
fn depend(
    call: &Call,
    plan: &Plan,
    spec: &mut TaskSpec,
    references: &[Map<String, Value>],
) -> Result<Vec<Dependency>, ToolError> {
    let list = references.iter().map(|reference| {
        let mut reference = reference.clone();
        let is_mine = reference["agent_id"] == *call.by().name
            && reference["step_id"].as_str().is_some_and(|step| plan.task(step).is_some());
        // The plan id distinguishes a step of the caller's own plan from a step of another plan.
        if is_mine && reference.get("plan_id").is_none_or(Value::is_null) {
            reference.insert("plan_id".to_owned(), plan.id().as_str().into());
        }
        Value::Object(reference)
    });
    tool_output::depend(plan, spec, list.collect()).map_err(|problems| ToolError::invalid(&problems))
}

/// Adds dependencies to an existing step.
fn link(
    call: &Call,
    plan: &PlanId,
    step: &str,
    provides: Option<String>,
    references: &[Map<String, Value>],
) -> Result<TaskId, ToolError> {
    let found = call.workspace.plans().with_plan(plan, |plan| {
        let task = plan.task(step)?;
        let mut spec = task.spec.clone();
        let added = depend(call, plan, &mut spec, references);
        Some(added.map(|added| (spec, added, task.state.status)))
    })?;
    let missing = || error(format!("Step '{step}' not found in plan.")).with_fact("code", NO_SUCH_TASK);
    let (spec, added, status) = found.ok_or_else(missing)??;
    let mut ops = Vec::new();
    if status == Status::Running {
        // A waiting step cannot be worked on; the agent that linked it claims it again once it is unblocked.
        let status = StatusChange::Pending { reason: "waits for other agents".to_owned() };
        ops.push(EditOp::SetStatus { task: spec.id.clone(), status, take_over: true });
    }
    let changes = TaskChanges {
        add_dependencies: added,
        provides: provides.map(Some),
        foreign: Some(spec.foreign),
        ..TaskChanges::default()
    };
    ops.push(EditOp::ReviseTask { task: spec.id.clone(), changes: Box::new(changes) });
    call.service().edit(&call.caller, plan, ops, Guard::NONE)?;
    Ok(spec.id)
}

/// The reply for a linked step: blocked, or ready or skipped if its dependencies have ended already.
fn linked(plan: &Plan, id: &TaskId, said: &str) -> Map<String, Value> {
    let Some((task, sequence)) = step(plan, id.as_str()) else { return Map::new() };
    let mut answer = added(plan, id);
    let written = tool_output::step(plan, task, sequence);
    let blocked_by = tool_output::blocked_by(plan, task);
    let came = match (task.state.status, blocked_by.is_empty()) {
        (Status::Skipped | Status::Cancelled, _) => {
            let why = written.get("result").and_then(Value::as_str).unwrap_or("it cannot happen");
            format!("{said} (SKIPPED: {why})")
        }
        (_, true) => format!("{said} (already completed: READY)"),
        (_, false) => format!("{said} (BLOCKED)"),
    };
    answer.insert("blocked_by".to_owned(), blocked_by.into());
    for name in ["result", "received_outputs"] {
        if let Some(value) = written.get(name) {
            answer.insert(name.to_owned(), value.clone());
        }
    }
    answer.insert("message".to_owned(), came.into());
    answer
}

pub(super) fn blocked(call: &Call) -> Reply {
    let plan = match named(call)? {
        Some(plan) => plan,
        None => current(call)?.ok_or_else(|| error("No plan found. Create a plan first with createPlan."))?,
    };
    let plans = call.workspace.plans();
    // An agent whose lease has expired works on nothing, and that may be the reason.
    call.service().reclaim_expired_leases(None)?;
    let found: Vec<(TaskId, Map<String, Value>, Vec<Waits>)> = plans.with_plan(&plan, |plan| {
        let all = plan.tasks().map(|(task, _)| task).zip(1..);
        let blocked = all.filter(|(task, _)| {
            plan.effective_status(task.spec.id.as_str()) == Some(EffectiveStatus::Blocked)
        });
        let named = blocked.filter(|(task, _)| !tool_output::blocked_by(plan, task).is_empty());
        named
            .take(STEPS_MAX)
            .map(|(task, sequence)| (task.spec.id.clone(), entry(plan, task, sequence), waits(plan, task)))
            .collect()
    })?;
    let mut steps = Vec::with_capacity(found.len());
    for (step, mut entry, waits) in found {
        let mut why = Vec::new();
        let left_out = waits.len().saturating_sub(WAITS_NAMED_MAX);
        for waits in waits.into_iter().take(WAITS_NAMED_MAX) {
            why.push(match waits {
                Waits::Here(words) => words,
                Waits::There(there) => target_sentence(call, (&plan, &step), &there)?,
            });
        }
        if left_out > 0 {
            why.push(format!("{left_out} more; getPlanStatus has them all"));
        }
        entry.insert("why".to_owned(), why.into());
        let resolved = match entry.get("step_id").and_then(Value::as_str).map(TaskId::new) {
            Some(Ok(step)) => call.resolved_to(&plan, &step)?,
            Some(Err(_)) | None => Map::new(),
        };
        if !resolved.is_empty() {
            entry.insert("resolved_to".to_owned(), resolved.into());
        }
        steps.push(Value::Object(entry));
    }
    let mut answer = Map::new();
    if steps.is_empty() {
        answer.insert("blocked_steps".to_owned(), json!([]));
        answer.insert("message".to_owned(), "No blocked steps".into());
    } else {
        answer.insert("count".to_owned(), steps.len().into());
        answer.insert("blocked_steps".to_owned(), steps.into());
    }
    Ok(answer)
}

fn entry(plan: &Plan, task: &Task, sequence: usize) -> Map<String, Value> {
    let mut entry = tool_output::step(plan, task, sequence);
    entry.entry("received_outputs").or_insert_with(|| json!({}));
    let shown = ["id", "step_id", "sequence", "description", "blocked_by", "depends_on", "received_outputs"];
    entry.retain(|name, _| shown.contains(&name.as_str()));
    for name in ["blocked_by", "depends_on"] {
        if let Some(Value::Array(list)) = entry.get_mut(name) {
            list.truncate(WAITS_NAMED_MAX);
        }
    }
    entry
}

/// A dependency that is not satisfied.
enum Waits {
    Here(String),
    There(ExternalTaskRef),
}

fn waits(plan: &Plan, task: &Task) -> Vec<Waits> {
    let open = task.spec.depends_on.iter().filter_map(|on| match on {
        Dependency::Task(on) => {
            let found = plan.task(on.as_str()).filter(|task| !task.state.satisfies())?;
            let word = plan.effective_status(found.spec.id.as_str()).map_or("gone", EffectiveStatus::as_str);
            Some(Waits::Here(format!("{on} is {word}")))
        }
        Dependency::External(there) => {
            let heard = task.state.received.get(&there.key());
            let is_open = heard.is_none_or(|heard| heard.status != Status::Done);
            is_open.then(|| Waits::There((**there).clone()))
        }
    });
    open.collect()
}

/// Describes the status of a step in another plan.
fn target_sentence(
    call: &Call,
    (of, step): (&PlanId, &TaskId),
    there: &ExternalTaskRef,
) -> Result<String, ToolError> {
    let found = call.workspace.plans().target_status(of, Some(step), there)?;
    Ok(sentence(there, &found))
}

fn sentence(there: &ExternalTaskRef, found: &TargetStatus) -> String {
    match (found, &there.agent) {
        (TargetStatus::There { plan, .. }, Some(agent)) => {
            format!("{agent}:{} (plan {plan}) is {}", there.task, found.describe(there))
        }
        (TargetStatus::There { .. }, None) => format!("{} is {}", there.key(), found.describe(there)),
        (missing, _) => missing.named(there),
    }
}

/// Describes the step's dependencies that do not exist yet.
fn missing(call: &Call, plan: &PlanId, step: &TaskId) -> Result<Vec<String>, ToolError> {
    let waits = call.workspace.plans().external_waits(plan, STEPS_MAX)?.into_iter();
    let missing = waits.filter(|(wait, found)| wait.task == *step && !found.is_there());
    Ok(missing.map(|(wait, found)| sentence(&wait.on, &found)).collect())
}
