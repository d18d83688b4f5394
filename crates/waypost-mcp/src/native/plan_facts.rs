//! Facts about a plan that several tools return: its title, its ready tasks, its waits for tasks of other plans.

use waypost_core::{Phase, Plan, PlanId};
use waypost_store::{TargetStatus, Wait};

use crate::approval::needs_approval;
use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Names of tasks that an answer says are ready.
pub(super) const NEXT_MAX: usize = 3;
/// Bytes of them in all.
const NEXT_BYTES: usize = 60;
/// The same in answers of which there are many: to reports, and overviews.
pub(super) const REPORT_NEXT_MAX: usize = 2;
pub(super) const REPORT_NEXT_BYTES: usize = 16;

/// Things elsewhere that tasks of a plan wait for and that are looked for.
const ELSEWHERE_MAX: usize = 20;
/// Bytes of what is said of each.
const ELSEWHERE_BYTES: usize = 120;

/// What a plan is called.
pub(super) fn title(plan: &Plan) -> String {
    let spec = plan.spec();
    if spec.title.is_empty() { spec.goal.clone() } else { spec.title.clone() }
}

/// Tasks that an agent could take now.
pub(super) fn next_of(plan: &Plan) -> impl Iterator<Item = &str> {
    let offered = match plan.state().phase {
        Phase::Draft | Phase::Active => usize::MAX,
        Phase::AwaitingApproval | Phase::Paused | Phase::Completed | Phase::Failed | Phase::Cancelled => 0,
    };
    plan.claimable().take(offered).filter(|task| task.spec.work.is_none()).map(|task| task.spec.id.as_str())
}

/// The first of them.
pub(super) fn next_ids(plan: &Plan) -> Vec<&str> {
    reply_text::few(next_of(plan), NEXT_MAX, NEXT_BYTES)
}

/// Says how to get the approval that a plan needs.
pub(super) fn add_approval(plan: &Plan, answer: &mut Answer) {
    if needs_approval(plan) {
        answer.add("approval", "needed", "; needs approval: plan_start requests it");
    }
}

/// What tasks of a plan wait for elsewhere, in words: what is not there so far comes first. At most `limit`.
pub(super) fn external_waits(call: &Call, plan: &PlanId, limit: usize) -> Result<Vec<String>, ToolError> {
    let mut waits = call.workspace.plans().external_waits(plan, ELSEWHERE_MAX)?;
    waits.sort_by_key(|(_, found)| found.is_there());
    let words = |(wait, found): &(Wait, TargetStatus)| {
        let said = format!("{} waits for {}", wait.task, found.named(&wait.on));
        reply_text::cut(&said, ELSEWHERE_BYTES)
    };
    Ok(waits.iter().take(limit).map(words).collect())
}
