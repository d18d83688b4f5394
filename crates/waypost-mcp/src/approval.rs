//! Asking a person whether a plan may run, and waiting for the answer, whoever gives it and wherever. Decides nothing.

use std::time::{Duration, Instant};

use waypost_core::{Command, Phase, PlanId};

use crate::call::Call;
use crate::refused::Refused;

/// How long a call waits for a person at the most.
pub(crate) const APPROVAL_SECONDS_MAX: u64 = 600;
/// How long it waits before it looks whether anybody still listens.
const LOOK: Duration = Duration::from_secs(1);

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It may run, or runs.
    Approved,
    /// A person said no, and why.
    Rejected(String),
    /// Nobody has answered yet.
    Waiting,
}

/// Asks for approval, if it is needed, and waits so many seconds for the answer.
pub(crate) fn ask(call: &Call, plan: &PlanId, message: &str, seconds: u64) -> Result<Asked, Refused> {
    let plans = &call.workspace.plans;
    // Begun before the question, so that no answer falls between the two.
    let mut watch = plans.watch()?;
    call.write(plan, vec![Command::RequestApproval { message: message.to_owned() }])?;
    let until = Instant::now() + Duration::from_secs(seconds.min(APPROVAL_SECONDS_MAX));
    loop {
        let standing = plans.look(plan, |plan| match plan.state().phase {
            Phase::AwaitingApproval => Asked::Waiting,
            Phase::Active | Phase::Completed => Asked::Approved,
            Phase::Draft if plan.state().approval.is_some() => Asked::Approved,
            Phase::Draft | Phase::Paused | Phase::Failed | Phase::Cancelled => {
                Asked::Rejected(plan.state().reason.clone())
            }
        })?;
        let left = until.saturating_duration_since(Instant::now());
        if standing != Asked::Waiting || left.is_zero() || (call.client.gone)() {
            return Ok(standing);
        }
        watch.wait(left.min(LOOK))?;
    }
}
