//! Tasks as JSON, the same at every front end that programs read. Fields of a single front end are added there.

use serde_json::{Map, Value, json};
use waypost_core::{Plan, Task};

/// Maximum number of children and of dependants listed for one task.
const NAMES_MAX: usize = 500;

/// Returns the fields of a task in a list that all front ends share, with this description. Empty fields are omitted.
/// `plan` is the plan as it will be once it has started.
pub fn task_row(plan: &Plan, task: &Task, description: String) -> Map<String, Value> {
    let (spec, state) = (&task.spec, &task.state);
    let mut fields = Map::new();
    fields.insert("id".to_owned(), spec.id.as_str().into());
    fields.insert("description".to_owned(), description.into());
    fields.insert("standing".to_owned(), json!(plan.effective_status(spec.id.as_str())));
    if spec.skip {
        fields.insert("skip".to_owned(), true.into());
    }
    if let Some(parent) = &spec.parent {
        fields.insert("parent".to_owned(), parent.as_str().into());
    }
    if !spec.depends_on.is_empty() {
        fields.insert("depends_on".to_owned(), json!(spec.depends_on));
    }
    if let Some(complexity) = spec.complexity {
        fields.insert("complexity".to_owned(), complexity.as_str().into());
    }
    if let Some(work) = &spec.work {
        fields.insert("executor".to_owned(), work.executor.clone().into());
    }
    for (name, text) in [("worker", &state.worker), ("progress", &state.progress)] {
        if let Some(text) = text {
            fields.insert(name.to_owned(), text.clone().into());
        }
    }
    if let Some(hold) = state.held() {
        fields.insert("held_by".to_owned(), hold.by.to_string().into());
    }
    if !state.labels().is_empty() {
        fields.insert("labels".to_owned(), json!(state.labels()));
    }
    if let Some(assignee) = state.assignee() {
        fields.insert("assignee".to_owned(), assignee.into());
    }
    if !state.comments().is_empty() {
        fields.insert("comments".to_owned(), state.comments().len().into());
    }
    if state.attempt > 0 {
        fields.insert("attempt".to_owned(), state.attempt.into());
    }
    fields
}

/// Returns everything about one task: its fields, effective status, children, dependants and received outputs.
pub fn whole_task(plan: &Plan, task: &Task) -> Value {
    let id = task.spec.id.as_str();
    let ids = |tasks: Vec<&Task>| -> Value {
        tasks.iter().take(NAMES_MAX).map(|task| Value::from(task.spec.id.as_str())).collect()
    };
    let mut value = json!(task);
    value["standing"] = json!(plan.as_started().effective_status(id));
    value["children"] = ids(plan.children(id));
    value["needed_by"] = ids(plan.dependants(id));
    let outputs: Map<String, Value> =
        plan.outputs_for(id).into_iter().map(|(name, output)| (name, output.value())).collect();
    value["received_outputs"] = Value::Object(outputs);
    value
}
