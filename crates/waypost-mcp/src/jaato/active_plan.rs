//! The active plan of an agent: its latest own plan that it has not completed.

use waypost_core::{Event, Phase, Plan, PlanId, Task};
use waypost_service::ServiceError;
use waypost_store::{PlanSummary, Query, Sort, StoreError, VersionRecord};

use super::arguments;
use super::reply::{NO_SUCH_PLAN, error};
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// How many of the latest versions are searched for the way in which the plan ended.
const ENDING_VERSIONS_MAX: usize = 20;

pub(super) const NO_ACTIVE_PLAN: &str = "No active plan. Create a plan first with createPlan.";
pub(super) const NOT_STARTED: &str = "Plan not started. Call startPlan first to confirm the plan.";

/// Returns the caller's active plan. A plan whose last step has ended stays active until completePlan is called.
pub(super) fn current(call: &Call) -> Result<Option<PlanId>, ToolError> {
    let Some(last) = latest(call, Vec::new())? else { return Ok(None) };
    if !last.phase.is_finished() || !was_ended_by_word(call, &last)? {
        return Ok(Some(last.id));
    }
    let open = vec![Phase::Draft, Phase::AwaitingApproval, Phase::Active, Phase::Paused];
    Ok(latest(call, open)?.map(|head| head.id))
}

/// Returns the caller's active plan, or else its latest.
pub(super) fn current_or_recent(call: &Call) -> Result<Option<PlanId>, ToolError> {
    match current(call)? {
        Some(plan) => Ok(Some(plan)),
        None => Ok(latest(call, Vec::new())?.map(|head| head.id)),
    }
}

/// Returns the caller's active plan, which must have been started.
pub(super) fn started(call: &Call, none: &str) -> Result<PlanId, ToolError> {
    let plan = current(call)?.ok_or_else(|| error(none))?;
    match call.workspace.plans().with_plan(&plan, |plan| plan.state().phase)? {
        Phase::Draft | Phase::AwaitingApproval => Err(error(NOT_STARTED)),
        Phase::Active | Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled => Ok(plan),
    }
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
fn was_ended_by_word(call: &Call, head: &PlanSummary) -> Result<bool, StoreError> {
    let after = head.version.saturating_sub(ENDING_VERSIONS_MAX as u64);
    let entries = call.workspace.plans().history(&head.id, after, ENDING_VERSIONS_MAX)?;
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
