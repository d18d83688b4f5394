//! The definitions of the tools, in the plugin's words.

use super::reply::{Reply, finish};
use super::{cross_agent_steps, events, piggyback_events, plan, status, step};
use crate::hints::HintPhrases;
use crate::tool::{Answer, Effect, Tool};
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// How these tools do what a hint speaks of.
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

/// The schema of an answer whose fields depend on what happened.
const OBJECT: &str = r#"{"type":"object"}"#;

pub(crate) fn tools() -> Vec<Tool> {
    let mut tools = plan_tools();
    tools.extend(step_tools());
    tools.extend(event_tools());
    tools
}

fn plan_tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "createPlan",
            description: "Register an execution plan with ordered steps. Then call startPlan to request approval.",
            arguments: r#"{"type":"object","properties":{"title":{"type":"string"},"steps":{"type":"array","items":{"type":"string"}}},"required":["title","steps"]}"#,
            answer: OBJECT,
            effect: Effect::Adds,
            run: |call| answered(call, plan::create),
        },
        Tool {
            name: "startPlan",
            description: "Ask the user to approve your plan, and wait for the answer up to `timeout` seconds (50 if not given). Start no step before it says confirmed. If it is rejected, call completePlan with status cancelled.",
            arguments: r#"{"type":"object","properties":{"message":{"type":"string"},"timeout":{"type":"number","minimum":0,"maximum":600}}}"#,
            answer: OBJECT,
            effect: Effect::Idempotent,
            run: |call| answered(call, plan::start),
        },
        Tool {
            name: "getPlanStatus",
            description: "Show your plan, or the one with `plan_id`: steps, progress, and the outputs received from other agents.",
            arguments: r#"{"type":"object","properties":{"plan_id":{"type":"string"},"after_step_id":{"type":"string","description":"continue after this step of a long plan"}}}"#,
            answer: OBJECT,
            effect: Effect::Reads,
            run: |call| answered(call, status::show),
        },
        Tool {
            name: "completePlan",
            description: "Finish the plan: completed, failed, or cancelled (when it was rejected). Be honest: a plan with a failed step is not completed.",
            arguments: r#"{"type":"object","properties":{"status":{"type":"string","enum":["completed","failed","cancelled"]},"summary":{"type":"string"}},"required":["status"]}"#,
            answer: OBJECT,
            effect: Effect::Idempotent,
            run: |call| answered(call, plan::complete),
        },
    ]
}

fn step_tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "setStepStatus",
            description: "Report progress on a step. in_progress: you work on it now. completed: it was FULLY accomplished with the expected outcome. failed: you could NOT achieve its goal for ANY reason. skipped: it became unnecessary or was intentionally bypassed. If you say 'could not', 'unable to' or similar in the result, the status MUST be failed: being honest about failures is more valuable than false completion reports.",
            arguments: r#"{"type":"object","properties":{"step_id":{"type":"string"},"status":{"type":"string","enum":["in_progress","completed","failed","skipped"]},"result":{"type":"string"},"error":{"type":"string"}},"required":["step_id","status"]}"#,
            answer: OBJECT,
            effect: Effect::Idempotent,
            run: |call| answered(call, step::set_status),
        },
        Tool {
            name: "addStep",
            description: "Add a step during execution: at the end, or after `after_step_id`.",
            arguments: r#"{"type":"object","properties":{"description":{"type":"string"},"after_step_id":{"type":"string"}},"required":["description"]}"#,
            answer: OBJECT,
            effect: Effect::Adds,
            run: |call| answered(call, step::add),
        },
        Tool {
            name: "addDependentStep",
            description: "Make a step wait for steps of other agents: a new one (`description`, `after_step_id`), or one of yours (`step_id`). It is blocked until all of them are completed, then unblocks by itself and has their outputs in received_outputs; no polling. If one of them fails, is skipped or cancelled, it is skipped with the reason.",
            arguments: r#"{"type":"object","properties":{"description":{"type":"string"},"step_id":{"type":"string"},"depends_on":{"type":"array","items":{"type":"object","properties":{"agent_id":{"type":"string"},"step_id":{"type":"string"},"plan_id":{"type":"string"},"agent_name":{"type":"string"},"step_sequence":{"type":"integer"},"step_description":{"type":"string"}},"required":["agent_id","step_id"]}},"after_step_id":{"type":"string"},"provides":{"type":"string","description":"name of its output"}},"required":["depends_on"]}"#,
            answer: OBJECT,
            effect: Effect::Adds,
            run: |call| answered(call, cross_agent_steps::add),
        },
        Tool {
            name: "completeStepWithOutput",
            description: "Complete a step AND pass structured data to the steps of other agents that wait for it. For the final step of a subagent. Only for what was FULLY accomplished.",
            arguments: r#"{"type":"object","properties":{"step_id":{"type":"string"},"output":{"type":"object"},"result":{"type":"string"}},"required":["step_id","output"]}"#,
            answer: OBJECT,
            effect: Effect::Idempotent,
            run: |call| answered(call, step::complete_with_output),
        },
        Tool {
            name: "getBlockedSteps",
            description: "Show which steps wait for other agents, for what, and why.",
            arguments: r#"{"type":"object","properties":{"plan_id":{"type":"string"}}}"#,
            answer: OBJECT,
            effect: Effect::Reads,
            run: |call| answered(call, cross_agent_steps::blocked),
        },
    ]
}

fn event_tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "subscribeToTasks",
            description: "Subscribe to events of other agents: matching events come with the results of your next calls, also after a restart. Call this BEFORE spawning subagents. agent_id `*` means any.",
            arguments: r#"{"type":"object","properties":{"agent_id":{"type":"string"},"event_types":{"type":"array","items":{"type":"string","enum":["plan_created","plan_started","plan_completed","plan_failed","plan_cancelled","step_added","step_started","step_completed","step_failed","step_skipped","step_blocked","step_unblocked"]}},"plan_id":{"type":"string"},"step_id":{"type":"string"}},"required":["event_types"]}"#,
            answer: OBJECT,
            effect: Effect::Adds,
            run: |call| answered(call, events::subscribe),
        },
        Tool {
            name: "getTaskEvents",
            description: "Review recent events of all agents, or those after `after_event`; with `timeout`, wait up to 30 seconds for one.",
            arguments: r#"{"type":"object","properties":{"agent_id":{"type":"string"},"event_types":{"type":"array","items":{"type":"string"}},"limit":{"type":"integer","default":20},"timeout":{"type":"number","maximum":30},"after_event":{"type":"string"}}}"#,
            answer: OBJECT,
            effect: Effect::Reads,
            // It shows events itself.
            run: |call| finish(events::recent(call)),
        },
        Tool {
            name: "listSubscriptions",
            description: "List your subscriptions.",
            arguments: r#"{"type":"object","properties":{}}"#,
            answer: OBJECT,
            effect: Effect::Reads,
            run: |call| answered(call, events::list),
        },
        Tool {
            name: "unsubscribe",
            description: "End one of your subscriptions.",
            arguments: r#"{"type":"object","properties":{"subscription_id":{"type":"string"}},"required":["subscription_id"]}"#,
            answer: OBJECT,
            effect: Effect::Idempotent,
            run: |call| answered(call, events::unsubscribe),
        },
    ]
}

/// Runs a tool; events that its caller has subscribed to come along with the answer.
fn answered(call: &Call, run: fn(&Call) -> Reply) -> Result<Answer, ToolError> {
    finish(run(call).and_then(|mut answer| {
        piggyback_events::deliver(call, &mut answer)?;
        Ok(answer)
    }))
}
