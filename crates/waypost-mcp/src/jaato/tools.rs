//! The definitions of the tools, in the plugin's wording.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::arguments::{NAME_BYTES, unknown_names};
use super::reply::{Reply, error, finish};
use super::{cross_agent_steps, events, piggyback_events, plan, status, step};
use crate::hints::HintPhrases;
use crate::reply_text;
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

/// The definitions of the tools.
const DEFINITIONS: &str = include_str!("tools.json");
/// Arguments that a tool takes although its definition does not list them.
const UNLISTED: [(&str, &str); 1] = [("setStepStatus", "summary")];

pub(crate) fn tools() -> Vec<Tool> {
    let handlers: [(&str, Handler); 13] = [
        ("createPlan", |call| answered(call, "createPlan", plan::create)),
        ("startPlan", |call| answered(call, "startPlan", plan::start)),
        ("getPlanStatus", |call| answered(call, "getPlanStatus", status::show)),
        ("completePlan", |call| answered(call, "completePlan", plan::complete)),
        ("setStepStatus", |call| answered(call, "setStepStatus", step::set_status)),
        ("addStep", |call| answered(call, "addStep", step::add)),
        ("addDependentStep", |call| answered(call, "addDependentStep", cross_agent_steps::add)),
        ("completeStepWithOutput", |call| {
            answered(call, "completeStepWithOutput", step::complete_with_output)
        }),
        ("getBlockedSteps", |call| answered(call, "getBlockedSteps", cross_agent_steps::blocked)),
        ("subscribeToTasks", |call| answered(call, "subscribeToTasks", events::subscribe)),
        // This tool returns events itself.
        ("getTaskEvents", |call| finish(named(call, "getTaskEvents", events::recent))),
        ("listSubscriptions", |call| answered(call, "listSubscriptions", events::list)),
        ("unsubscribe", |call| answered(call, "unsubscribe", events::unsubscribe)),
    ];
    Tool::all(DEFINITIONS, &handlers)
}

/// Runs a tool and adds the caller's subscribed events to the reply.
fn answered(call: &Call, tool: &str, run: fn(&Call) -> Reply) -> Result<Answer, ToolError> {
    finish(named(call, tool, run).and_then(|mut answer| {
        piggyback_events::deliver(call, &mut answer)?;
        Ok(answer)
    }))
}

/// Runs a tool and names the arguments that had no effect, because the tool has none of that name. The plugin ignores them
/// silently.
fn named(call: &Call, tool: &str, run: fn(&Call) -> Reply) -> Reply {
    let known: Vec<&str> = known_arguments(tool).iter().map(String::as_str).collect();
    let takes = |name: &str| known.contains(&name) || UNLISTED.contains(&(tool, name));
    let ignored: Vec<&str> = call.arguments.keys().map(String::as_str).filter(|name| !takes(name)).collect();
    let mut answer = run(call).map_err(|refused| match refused.is_bad_request() && !ignored.is_empty() {
        // What is missing may be what is misspelled.
        true => error(format!("{}{}", refused.text(), unknown_names(&ignored))),
        false => refused,
    })?;
    if !ignored.is_empty() {
        let ignored = ignored.iter().map(|name| Value::from(reply_text::cut(name, NAME_BYTES)));
        let known = answer.entry(step::IGNORED).or_insert_with(|| Value::Array(Vec::new()));
        known.as_array_mut().into_iter().for_each(|known| known.extend(ignored.clone()));
    }
    Ok(answer)
}

/// Returns the names of a tool's arguments.
fn known_arguments(tool: &str) -> &'static [String] {
    static KNOWN: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
        let definitions: Vec<Value> = serde_json::from_str(DEFINITIONS).unwrap_or_default();
        let arguments = |definition: &Value| {
            let names =
                definition["inputSchema"]["properties"].as_object().map(|all| all.keys().cloned().collect());
            Some((definition["name"].as_str()?.to_owned(), names.unwrap_or_default()))
        };
        definitions.iter().filter_map(arguments).collect()
    });
    KNOWN.get(tool).map_or(&[], Vec::as_slice)
}
