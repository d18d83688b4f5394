//! The tools of the jaato todo plugin, under their names and with their answers: one plan for each agent, steps that wait
//! for steps of other agents, and events about them.
//!
//! What a plan, a step and a reference look like is known to the format (`waypost_formats::jaato`).

mod arguments;
mod current;
mod dependent;
mod events;
mod inline;
mod plan;
mod status;
mod step;
mod translate;

use serde_json::{Map, Value};

use crate::call::Call;
use crate::refused::Refused;
use crate::tool::{Answer, Effect, Tool};
use crate::words;

type Told = Result<Map<String, Value>, Refused>;

/// Bytes of an answer.
pub(crate) const ANSWER_BYTES_MAX: usize = 192 * 1024;
/// What an answer says in which something was cut.
const CUT: &str =
    "long texts were cut; the resource waypost://plans/{plan_id}/tasks/{step_id} has a step as a whole";

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
            effect: Effect::Settles,
            run: |call| answered(call, plan::start),
        },
        Tool {
            name: "getPlanStatus",
            description: "Show your plan, or the one with `plan_id`: steps, progress, and the outputs received from other agents.",
            arguments: r#"{"type":"object","properties":{"plan_id":{"type":"string"},"after_step_id":{"type":"string","description":"go on after this step of a long plan"}}}"#,
            answer: OBJECT,
            effect: Effect::Reads,
            run: |call| answered(call, status::show),
        },
        Tool {
            name: "completePlan",
            description: "Finish the plan: completed, failed, or cancelled (when it was rejected). Be honest: a plan with a failed step is not completed.",
            arguments: r#"{"type":"object","properties":{"status":{"type":"string","enum":["completed","failed","cancelled"]},"summary":{"type":"string"}},"required":["status"]}"#,
            answer: OBJECT,
            effect: Effect::Settles,
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
            effect: Effect::Settles,
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
            run: |call| answered(call, dependent::add),
        },
        Tool {
            name: "completeStepWithOutput",
            description: "Complete a step AND pass structured data to the steps of other agents that wait for it. For the final step of a subagent. Only for what was FULLY accomplished.",
            arguments: r#"{"type":"object","properties":{"step_id":{"type":"string"},"output":{"type":"object"},"result":{"type":"string"}},"required":["step_id","output"]}"#,
            answer: OBJECT,
            effect: Effect::Settles,
            run: |call| answered(call, step::complete_with_output),
        },
        Tool {
            name: "getBlockedSteps",
            description: "Show which steps wait for other agents, for what, and why.",
            arguments: r#"{"type":"object","properties":{"plan_id":{"type":"string"}}}"#,
            answer: OBJECT,
            effect: Effect::Reads,
            run: |call| answered(call, dependent::blocked),
        },
    ]
}

fn event_tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "subscribeToTasks",
            description: "Hear of what other agents do: matching events come with the answers of your next calls, also after a restart. Call this BEFORE spawning subagents. agent_id `*` means any.",
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
            run: |call| plainly(events::recent(call)),
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
            effect: Effect::Settles,
            run: |call| answered(call, events::unsubscribe),
        },
    ]
}

/// Runs a tool; events that its caller has subscribed to come along with the answer.
fn answered(call: &Call, run: fn(&Call) -> Told) -> Result<Answer, Refused> {
    plainly(run(call).and_then(|mut answer| {
        inline::deliver(call, &mut answer)?;
        Ok(answer)
    }))
}

/// An answer within its bound: of one that is longer, the long texts are cut, and the answer says so.
fn bounded(answer: Map<String, Value>) -> Value {
    let (mut value, was_cut) = words::shortened(&Value::Object(answer), ANSWER_BYTES_MAX);
    if was_cut && value.is_object() {
        value["cut"] = CUT.into();
    }
    value
}

/// Every refusal is an object with an `error`, as the plugin has it; the text says the same.
fn plainly(told: Told) -> Result<Answer, Refused> {
    match told {
        Ok(answer) => Ok(Answer::of(bounded(answer))),
        Err(refused) if refused.facts.contains_key("error") => Err(refused),
        Err(refused) => {
            let text = refused.text();
            Err(refused.with_fact("error", text))
        }
    }
}

/// A refusal in the plugin's words.
fn error(text: impl Into<String>) -> Refused {
    let refused = Refused::new(text, "");
    let text = refused.text();
    refused.with_fact("error", text)
}
