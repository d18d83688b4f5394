//! Plans and tasks as JSON: bounded, unless the whole plan or task is requested.

use serde_json::{Map, Value, json};
use waypost_core::{Plan, Task, Timestamp};
use waypost_service::{task_row, whole_task};
use waypost_store::PlanSummary;
use waypost_text::truncate_bytes;

use super::tree::Page;

/// Maximum bytes of a text in a page of tasks.
const TEXT_BYTES_MAX: usize = 300;

/// The head of a plan. Only the length of the body is included.
pub fn head(plan: &Plan) -> Map<String, Value> {
    let mut fields = match serde_json::to_value(PlanSummary::detailed(plan)) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    };
    let (spec, state) = (plan.spec(), plan.state());
    for (name, text) in [("goal", &spec.goal), ("summary", &state.summary), ("reason", &state.reason)] {
        if !text.is_empty() {
            fields.insert(name.to_owned(), text.clone().into());
        }
    }
    if let Some(approval) = &state.approval {
        fields.insert("approval".to_owned(), json!(approval));
    }
    fields.insert("body_bytes".to_owned(), spec.body.len().into());
    fields
}

/// A plan with one page of its tasks.
pub fn page(plan: &Plan, page: &Page<'_>) -> Value {
    let mut fields = head(plan);
    let started = plan.as_started();
    fields.insert("tasks".to_owned(), page.rows.iter().map(|found| row_of(&started, found.task)).collect());
    fields.insert("tasks_total".to_owned(), page.total.into());
    if let Some(next) = page.next() {
        fields.insert("next".to_owned(), next.into());
    }
    Value::Object(fields)
}

/// A whole plan in the native format, with the effective status of each task.
pub fn whole(plan: &Plan) -> Value {
    let (mut value, started) = (json!(plan.to_draft()), plan.as_started());
    if let Some(tasks) = value.get_mut("tasks").and_then(Value::as_array_mut) {
        for task in tasks {
            let standing = task.get("id").and_then(Value::as_str).and_then(|id| started.effective_status(id));
            task["standing"] = json!(standing);
        }
    }
    value["counts"] = json!(started.effective_counts());
    value
}

/// A task in a page: the essential fields, with long texts truncated.
pub fn row_of(plan: &Plan, task: &Task) -> Value {
    let (spec, state) = (&task.spec, &task.state);
    let description = truncate_bytes(&spec.description, TEXT_BYTES_MAX).into_owned();
    let mut fields = task_row(plan, task, description);
    let texts = [
        ("notes", Some(spec.notes.clone()).filter(|notes| !notes.is_empty())),
        ("result", state.result.clone()),
        ("why", state.why()),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            fields.insert(name.to_owned(), truncate_bytes(&text, TEXT_BYTES_MAX).into());
        }
    }
    if let Some(question) = state.question() {
        fields.insert("question".to_owned(), truncate_bytes(&question.text, TEXT_BYTES_MAX).into());
        if !question.choices.is_empty() {
            fields.insert("choices".to_owned(), json!(question.choices));
        }
    }
    if let Some(report) = state.reported() {
        fields.insert("reported_by".to_owned(), report.by.to_string().into());
    }
    if let Some(evidence) = state.evidence() {
        let brief = json!({ "passed": evidence.passed, "check": evidence.check, "digest": evidence.digest });
        fields.insert("evidence".to_owned(), brief);
    }
    Value::Object(fields)
}

/// Everything about one task.
pub fn task(plan: &Plan, task: &Task, now: Timestamp) -> Value {
    let mut value = whole_task(plan, task);
    value["waits_for"] = json!(plan.as_started().waiting(task.spec.id.as_str(), now));
    json!({ "id": plan.id(), "version": plan.version(), "task": value })
}
