//! Requests approval for a plan and waits for the decision, which may come from any front end. Decides nothing itself.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use waypost_core::{Phase, Plan, PlanId};
use waypost_service::{Guard, awaits_approval};

use crate::elicitation::question::Question;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// The longest that a call waits for a person.
pub(crate) const APPROVAL_SECONDS_MAX: u64 = 600;
/// Interval at which a waiting call checks whether the client has cancelled.
const LOOK: Duration = Duration::from_secs(1);

/// The outcome of an approval request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalOutcome {
    /// The plan may run, or is running.
    Approved,
    /// A person rejected the plan, with this reason.
    Rejected(String),
    /// The person at the client dismissed the question. There is no decision yet.
    Dismissed,
    /// There is no decision yet.
    Waiting,
}

/// Returns the reason of the last rejection, until approval is requested again.
pub(crate) fn rejection_reason(plan: &Plan) -> Option<&str> {
    let state = plan.state();
    let stands = awaits_approval(plan) && state.phase == Phase::Draft && !state.reason.is_empty();
    stands.then_some(state.reason.as_str())
}

/// Returns the reason if the plan was rejected as it is now. After a change of its work, approval is requested again.
pub(crate) fn rejection(call: &Call, plan: &PlanId) -> Result<Option<String>, ToolError> {
    let stands = call.workspace.plans().with_plan(plan, |plan| {
        let state = plan.state();
        let stands = state.stopped_by.is_some() || plan.rejected_by().is_some();
        (state.phase == Phase::Draft && stands).then(|| state.reason.clone())
    })?;
    Ok(stands)
}

/// Requests approval if the plan needs it, and waits up to `seconds` for the decision. Where the client supports elicitation,
/// the person at the client is asked as well. The first answer decides.
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
    // Watch before asking, so that no answer falls between the two.
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
            // Sending closes the dialogue at the client; dropping the sender leaves it open for as long as a person likes.
            if let Some(settled) = asked_there {
                let _closed_already = settled.send(());
            }
            return Ok(standing);
        }
        if call.client.dismissed.is_cancelled() {
            return Ok(ApprovalOutcome::Dismissed);
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
