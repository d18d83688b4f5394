//! The definitions of the tools, in the plugin's wording.

use super::reply::{Reply, finish};
use super::{cross_agent_steps, events, piggyback_events, plan, status, step};
use crate::hints::HintPhrases;
use crate::tool::{Answer, Handler, Tool};
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// This toolset's phrases for hints.
pub(crate) const HINTS: HintPhrases = HintPhrases {
    look: "getPlanStatus lists the steps",
    list: "getPlanStatus without plan_id shows yours",
    retry: "setStepStatus with in_progress restarts it",
    stop: "wait until it ends, or report it with setStepStatus",
    begin: "setStepStatus with in_progress starts it",
    another: "getPlanStatus shows the pending steps",
    start: "startPlan asks for approval",
    take_over: "wait until that session reports it",
    wait: "getTaskEvents waits for it",
    resume: "a person runs `waypost resume`",
    reopen: "createPlan creates a new one",
    unarchive: "a person runs `waypost unarchive`",
    detach: "skip the steps that depend on it (setStepStatus)",
};

pub(crate) fn tools() -> Vec<Tool> {
    let handlers: [(&str, Handler); 13] = [
        ("createPlan", |call| answered(call, plan::create)),
        ("startPlan", |call| answered(call, plan::start)),
        ("getPlanStatus", |call| answered(call, status::show)),
        ("completePlan", |call| answered(call, plan::complete)),
        ("setStepStatus", |call| answered(call, step::set_status)),
        ("addStep", |call| answered(call, step::add)),
        ("addDependentStep", |call| answered(call, cross_agent_steps::add)),
        ("completeStepWithOutput", |call| answered(call, step::complete_with_output)),
        ("getBlockedSteps", |call| answered(call, cross_agent_steps::blocked)),
        ("subscribeToTasks", |call| answered(call, events::subscribe)),
        // This tool returns events itself.
        ("getTaskEvents", |call| finish(events::recent(call))),
        ("listSubscriptions", |call| answered(call, events::list)),
        ("unsubscribe", |call| answered(call, events::unsubscribe)),
    ];
    Tool::all(include_str!("tools.json"), &handlers)
}

/// Runs a tool and adds the caller's subscribed events to the reply.
fn answered(call: &Call, run: fn(&Call) -> Reply) -> Result<Answer, ToolError> {
    finish(run(call).and_then(|mut answer| {
        piggyback_events::deliver(call, &mut answer)?;
        Ok(answer)
    }))
}
