//! A whole conversation, as a model would have it: what it sends, and the text that it gets.

use serde_json::{Value, json};

use super::begin;
use crate::committed;

#[test]
fn a_plan_from_its_first_word_to_its_last() {
    let (world, session) = begin();
    let mut written = String::new();
    let mut ids: Vec<String> = Vec::new();
    let mut say = |tool: &str, arguments: Value| {
        let told = session.ask(tool, arguments.clone());
        if let Some(id) = told.value.get("plan").and_then(Value::as_str).filter(|id| id.len() == 10) {
            ids.push(id.to_owned());
        }
        let sign = if told.is_error { "!" } else { "<" };
        let text = told.text.replace('\n', "\n  ");
        written.push_str(&format!("> {tool} {arguments}\n{sign} {text}\n"));
    };
    let tasks = json!([
        { "description": "List the endpoints that use the old client", "provides": "endpoints" },
        { "description": "Move them to the new client", "depends_on": ["t1"], "notes": "keep the timeouts" },
        { "description": "Delete the old client", "depends_on": ["t2"] },
        { "description": "Write the release note" },
    ]);
    say("plan_create", json!({ "title": "Retire the old client", "tasks": tasks }));
    say("plan_start", json!({}));
    say("task_next", json!({}));
    say("task_report", json!({ "task": "t1", "status": "progress", "text": "two of five modules read" }));
    say("task_report", json!({ "task": "t1", "status": "done", "output": ["/users", "/orders"] }));
    say("task_next", json!({}));
    say(
        "plan_edit",
        json!({ "ops": [
        { "op": "add", "description": "Update the dashboards", "depends_on": ["t2"] },
        { "op": "revise", "task": "t3", "depends_also_on": ["t5"] },
    ] }),
    );
    say("plan_get", json!({}));
    say("plan_get", json!({ "since": 5 }));
    say("task_report", json!({ "task": "t2", "status": "done", "text": "could not move /orders" }));
    say("task_report", json!({ "task": "t2", "status": "failed", "text": "/orders needs a newer server" }));
    say("task_next", json!({}));
    say("task_report", json!({ "task": "t4", "status": "done" }));
    say("task_next", json!({}));
    say("plan_edit", json!({ "ops": [{ "op": "status", "task": "t2", "status": "pending" }] }));
    say("plan_export", json!({ "file": "plan.md" }));
    say("plan_list", json!({}));
    for id in &ids {
        written = written.replace(id, "PLAN");
    }
    drop(world);
    committed::check("crates/waypost-mcp/tests/golden/native.txt", &written);
}
