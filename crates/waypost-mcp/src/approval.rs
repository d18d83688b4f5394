//! Requests approval for a plan and waits for the decision, whoever makes it and at whichever front end. Decides nothing.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use waypost_core::{Event, Phase, Plan, PlanId};
use waypost_service::Guard;

use crate::elicitation::question::Question;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// How long a call waits for a person at the most.
pub(crate) const APPROVAL_SECONDS_MAX: u64 = 600;
/// How long it waits before it looks whether anybody still listens.
const LOOK: Duration = Duration::from_secs(1);

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalOutcome {
    /// It may run, or runs.
    Approved,
    /// A person said no, and why.
    Rejected(String),
    /// Nobody has answered yet.
    Waiting,
}

/// Whether machines wait for approval.
pub(crate) fn needs_approval(plan: &Plan) -> bool {
    let state = plan.state();
    state.approval_required && state.approval.is_none() && !state.phase.is_finished()
}

/// Why a person did not approve, as long as nobody was asked anew.
pub(crate) fn rejection_reason(plan: &Plan) -> Option<&str> {
    let state = plan.state();
    let stands = needs_approval(plan) && state.phase == Phase::Draft && !state.reason.is_empty();
    stands.then_some(state.reason.as_str())
}

/// Why a person said no to the plan as it is. Whoever gave the answer gave it to this version: it is asked for again when
/// something has changed.
fn rejection(call: &Call, plan: &PlanId) -> Result<Option<String>, ToolError> {
    let plans = call.workspace.plans();
    let (is_draft, version) =
        plans.with_plan(plan, |plan| (plan.state().phase == Phase::Draft, plan.version()))?;
    if !is_draft {
        return Ok(None);
    }
    let last = plans.history(plan, version.saturating_sub(1), 1)?;
    let events = last.into_iter().flat_map(|entry| entry.events);
    let mut reasons = events.filter_map(|event| {
        let Event::PlanRejected { reason, .. } = event else { return None };
        Some(reason)
    });
    Ok(reasons.next())
}

/// Asks for approval, if it is needed, and waits so many seconds for the answer. The person at the client is asked, too,
/// where the client can; whoever answers first has answered.
pub(crate) fn ask(
    call: &Call,
    plan: &PlanId,
    message: &str,
    seconds: u64,
) -> Result<ApprovalOutcome, ToolError> {
    let plans = call.workspace.plans();
    if let Some(reason) = rejection(call, plan)? {
        return Ok(ApprovalOutcome::Rejected(reason));
    }
    // Begun before the question, so that no answer falls between the two.
    let mut watch = plans.watch()?;
    call.service().request_approval(&call.caller, plan, message, Guard::NONE)?;
    let mut asked_there: Option<oneshot::Sender<()>> = None;
    let until = Instant::now() + Duration::from_secs(seconds.min(APPROVAL_SECONDS_MAX));
    loop {
        let standing = plans.with_plan(plan, |plan| match plan.state().phase {
            Phase::AwaitingApproval => ApprovalOutcome::Waiting,
            Phase::Active | Phase::Completed => ApprovalOutcome::Approved,
            Phase::Draft if plan.state().approval.is_some() => ApprovalOutcome::Approved,
            Phase::Draft | Phase::Paused | Phase::Failed | Phase::Cancelled => {
                ApprovalOutcome::Rejected(plan.state().reason.clone())
            }
        })?;
        let gone = (call.client.gone)();
        if standing != ApprovalOutcome::Waiting || gone {
            // Sent, it closes the dialogue at the client; dropped, it leaves it open for as long as a person likes.
            if let Some(settled) = asked_there {
                let _closed_already = settled.send(());
            }
            return Ok(standing);
        }
        if asked_there.is_none() {
            asked_there = call.client.ask(seconds > 0, || {
                Question::about(&call.workspace, plan, message).map_err(ToolError::from)
            })?;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(standing);
        }
        watch.wait(left.min(LOOK))?;
    }
}
