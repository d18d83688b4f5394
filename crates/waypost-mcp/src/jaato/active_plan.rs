//! The active plan of a session: the one that it created or changed last, until completePlan ends it. A session without one
//! continues the agent's latest plan that was not completed.

use serde_json::{Value, json};
use waypost_core::{Event, Phase, Plan, PlanId, Task};
use waypost_formats::jaato::tool_output;
use waypost_service::ServiceError;
use waypost_store::{PlanSummary, Query, Sort, StoreError, VersionRecord};

use super::arguments;
use super::reply::{NO_SUCH_PLAN, error};
use crate::tool_call::{ArchivedPlan, Call};
use crate::tool_error::ToolError;

/// How many of the latest versions are searched for the way in which the plan ended.
const ENDING_VERSIONS_MAX: usize = 20;

pub(super) const NO_ACTIVE_PLAN: &str = "No active plan. Create a plan first with createPlan.";
pub(super) const NOT_STARTED: &str = "Plan not started. Call startPlan first to confirm the plan.";

/// Maximum number of the agent's other open plans that a reply names.
const OTHERS_NAMED_MAX: usize = 5;

/// Returns the session's active plan. A plan whose last step has ended stays active until completePlan is called. A session
/// that has had a plan of its own takes up no other: it may be that of another session of the same agent.
pub(super) fn current(call: &Call) -> Result<Option<PlanId>, ToolError> {
    match call.session_plan()? {
        Some((plan, is_its_own)) if is_its_own || is_active(call, &plan)? => {
            Ok(is_active(call, &plan)?.then_some(plan))
        }
        Some(_) | None => current_of_agent(call),
    }
}

fn current_of_agent(call: &Call) -> Result<Option<PlanId>, ToolError> {
    let Some(last) = latest(call, Vec::new())? else { return Ok(None) };
    let found = if !last.phase.is_finished() || !was_ended_by_word(call, &last.id, last.version)? {
        Some(last.id)
    } else {
        latest(call, Phase::OPEN.to_vec())?.map(|head| head.id)
    };
    found.iter().for_each(|plan| call.note_read(plan));
    Ok(found)
}

fn is_active(call: &Call, plan: &PlanId) -> Result<bool, ToolError> {
    let (phase, archived, version) =
        call.view(plan, |plan, _| (plan.state().phase, plan.state().archived, plan.version()))?;
    Ok(!archived && (!phase.is_finished() || !was_ended_by_word(call, plan, version)?))
}

/// Returns the session's active plan, or else its latest, or else the agent's latest.
pub(super) fn current_or_recent(call: &Call) -> Result<Option<PlanId>, ToolError> {
    match (current(call)?, call.session_plan()?) {
        (Some(plan), _) | (None, Some((plan, _))) => Ok(Some(plan)),
        (None, None) => Ok(latest(call, Vec::new())?.map(|head| head.id)),
    }
}

/// Returns the session's active plan, which it works on from now on.
pub(super) fn used(call: &Call, none: &str) -> Result<PlanId, ToolError> {
    let Some(plan) = current(call)? else { return Err(no_plan(call, none)?) };
    call.remember(&plan)?;
    Ok(plan)
}

/// Returns the session's active plan, which must have been started.
pub(super) fn started(call: &Call, none: &str) -> Result<PlanId, ToolError> {
    let plan = used(call, none)?;
    match call.workspace.plans().with_plan(&plan, |plan| plan.state().phase)? {
        Phase::Draft | Phase::AwaitingApproval => Err(error(NOT_STARTED)),
        Phase::Active | Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled => Ok(plan),
    }
}

/// Returns the plan that a new one would replace: the one that this session works on. What other sessions of the agent work on
/// is not replaced.
pub(super) fn replaceable(call: &Call) -> Result<Option<PlanId>, ToolError> {
    if !call.has_session() {
        return current_of_agent(call);
    }
    match call.session_plan()? {
        Some((plan, true)) if is_active(call, &plan)? => Ok(Some(plan)),
        Some(_) | None => Ok(None),
    }
}

/// Returns the agent's other open plans, the newest first, as a reply names them.
pub(super) fn others(call: &Call, but: &PlanId) -> Result<Vec<Value>, StoreError> {
    let owner = Some(call.by().name.clone());
    let (phases, limit) = (Phase::OPEN.to_vec(), OTHERS_NAMED_MAX + 1);
    let query = Query { owner, phases, sort: Sort::Created, limit, ..Query::default() };
    let heads = call.workspace.plans().heads(&query)?.items.into_iter().filter(|head| head.id != *but);
    let named = heads.take(OTHERS_NAMED_MAX).map(|head| {
        json!({ "plan_id": head.id, "title": head.title, "status": tool_output::plan_word(head.phase) })
    });
    Ok(named.collect())
}

/// The error of a session without an active plan. If its plan was archived, it says by whom.
fn no_plan(call: &Call, none: &str) -> Result<ToolError, ToolError> {
    let Some(archived) = call.archived_plan()? else { return Ok(error(none)) };
    let ArchivedPlan { plan, title, .. } = &archived;
    let by = archived.by_whom();
    Ok(error(format!("Your plan '{title}' ({plan}) was archived{by}. {none}"))
        .with_fact("archived", plan.as_str()))
}

/// Returns the plan that `plan_id` names, if the argument is given.
pub(super) fn named(call: &Call) -> Result<Option<PlanId>, ToolError> {
    let Some(id) = arguments::text(call, "plan_id")? else { return Ok(None) };
    let found = PlanId::new(id.as_str()).ok().map(|id| call.read(&id, |_| id.clone()));
    match found {
        Some(Ok(id)) => Ok(Some(id)),
        Some(Err(ServiceError::NoSuchPlan(_))) | None => Err(error(format!(
            "Plan not found: {id}. Leave plan_id out to see your own plan; events name the plans of others."
        ))
        .with_fact("code", NO_SUCH_PLAN)),
        Some(Err(other)) => Err(other.into()),
    }
}

/// Returns the caller's latest plan in one of these phases; an empty list means any phase.
fn latest(call: &Call, phases: Vec<Phase>) -> Result<Option<PlanSummary>, StoreError> {
    let owner = Some(call.by().name.clone());
    let query = Query { owner, phases, sort: Sort::Created, limit: 1, ..Query::default() };
    Ok(call.workspace.plans().heads(&query)?.items.pop())
}

/// Whether a caller finished the plan explicitly. Otherwise it ended with its last step.
fn was_ended_by_word(call: &Call, plan: &PlanId, version: u64) -> Result<bool, StoreError> {
    let after = version.saturating_sub(ENDING_VERSIONS_MAX as u64);
    let entries = call.workspace.plans().history(plan, after, ENDING_VERSIONS_MAX)?;
    Ok(entries.iter().rev().find_map(ended_by_word).unwrap_or(false))
}

fn ended_by_word(entry: &VersionRecord) -> Option<bool> {
    if entry.events.iter().any(|event| matches!(event, Event::PlanFinished { .. })) {
        return Some(true);
    }
    // Outputs received or withdrawn after the end did not end the plan.
    let heard = |event: &Event| matches!(event, Event::OutputReceived { .. } | Event::OutputWithdrawn { .. });
    entry.events.iter().any(|event| event.may_have_consequences() && !heard(event)).then_some(false)
}

/// Returns a step of a plan and its position, counted from 1.
pub(super) fn step<'a>(plan: &'a Plan, id: &str) -> Option<(&'a Task, usize)> {
    plan.tasks().map(|(task, _)| task).zip(1..).find(|(task, _)| task.spec.id.as_str() == id)
}
