//! `getPlanStatus`: the steps of a plan, its progress, and the outputs received from other agents.

use serde_json::{Map, Value, json};
use waypost_core::{Dependency, Plan};
use waypost_formats::jaato::tool_output;

use super::active_plan::{current_or_recent, named};
use super::arguments;
use super::reply::{CUT, NO_SUCH_TASK, Reply, STEPS_MAX, error, head};
use crate::approval;
use crate::reply_text;
use crate::tool_call::Call;

/// A reply takes no further step once its steps have this many bytes.
const STEPS_BYTES: usize = 64 * 1024;
/// Maximum bytes of one step.
const STEP_BYTES_MAX: usize = 32 * 1024;
/// Maximum bytes of the outputs received from other agents.
const RECEIVED_BYTES_MAX: usize = 32 * 1024;
/// Maximum bytes of the reason for a rejection.
const REASON_BYTES: usize = 2_000;

pub(super) fn show(call: &Call) -> Reply {
    let after = arguments::text(call, "after_step_id")?;
    let plan = match named(call)? {
        Some(plan) => plan,
        None => current_or_recent(call)?.ok_or_else(|| {
            let agent = match call.by().name.as_str() {
                "main" => String::new(),
                name => format!(" (agent: {name})"),
            };
            error(format!("No plan found for this agent{agent}. Create a plan first with createPlan."))
        })?,
    };
    let shown = call.workspace.plans().with_plan(&plan, |plan| shown(plan, after.as_deref()))?;
    let mut answer = shown.ok_or_else(|| {
        error(format!("Step not found: {}", after.unwrap_or_default())).with_fact("code", NO_SUCH_TASK)
    })?;
    if let Some(by) = call.service().archived_by(&plan)? {
        answer.insert("archived_by".to_owned(), by.to_string().into());
    }
    Ok(answer)
}

/// Returns the plan with the steps after `after`, or `None` if it has no such step.
fn shown(plan: &Plan, after: Option<&str>) -> Option<Map<String, Value>> {
    let state = plan.state();
    let mut answer = head(plan);
    answer.insert("agent_id".to_owned(), plan.spec().owner.as_str().into());
    answer.insert("created_at".to_owned(), json!(state.created_at));
    answer.insert("completed_at".to_owned(), json!(state.finished_at));
    let summary = Some(&state.summary).filter(|summary| !summary.is_empty());
    answer.insert("summary".to_owned(), json!(summary));
    if let Some(reason) = approval::rejection_reason(plan) {
        answer.insert("rejection_reason".to_owned(), reply_text::cut(reason, REASON_BYTES).into());
    }
    let mut steps = plan.tasks().map(|(task, _)| task).zip(1usize..);
    let running = plan.in_progress().next().map(|task| task.spec.id.clone());
    let current = running.and_then(|id| super::active_plan::step(plan, id.as_str())).map(|(_, at)| at);
    answer.insert("current_step".to_owned(), json!(current));
    answer.insert("progress".to_owned(), tool_output::progress(&plan.counts()));
    if let Some(after) = after {
        steps.find(|(task, _)| task.spec.id.as_str() == after)?;
    }
    let (mut shown, mut bytes, mut was_cut) = (Vec::new(), 0, false);
    while shown.len() < STEPS_MAX
        && bytes < STEPS_BYTES
        && let Some((task, at)) = steps.next()
    {
        let (step, step_was_cut) =
            reply_text::shortened(&Value::Object(tool_output::step(plan, task, at)), STEP_BYTES_MAX);
        bytes += step.to_string().len();
        was_cut |= step_was_cut;
        shown.push(step);
    }
    let left = steps.count();
    if left > 0 {
        let last = shown.last().map(|step| step["id"].clone());
        let text = format!("{left} more steps: call getPlanStatus with after_step_id.");
        answer.insert("after_step_id".to_owned(), json!(last));
        answer.insert("message".to_owned(), text.into());
    }
    answer.insert("steps".to_owned(), shown.into());
    let received = received(plan);
    if !received.is_empty() {
        let (received, received_was_cut) = reply_text::shortened(&received.into(), RECEIVED_BYTES_MAX);
        was_cut |= received_was_cut;
        answer.insert("received_outputs".to_owned(), received);
    }
    if was_cut {
        answer.insert("cut".to_owned(), CUT.into());
    }
    Some(answer)
}

/// Returns the outputs by agent. Of several outputs from one agent, the last step's is returned; each step has all of its own.
fn received(plan: &Plan) -> Map<String, Value> {
    let mut received = Map::new();
    for (task, _) in plan.tasks() {
        if let Some((_, output)) = tool_output::own_outputs(plan, task).into_iter().next_back() {
            received.insert(plan.spec().owner.clone(), output);
        }
        for there in task.spec.depends_on.iter().filter_map(Dependency::external) {
            let output = task.state.received.get(&there.key()).and_then(|given| given.output.as_ref());
            if let (Some(agent), Some(output)) = (&there.agent, output) {
                received.insert(agent.clone(), output.value());
            }
        }
    }
    received
}
