//! Tasks as a model writes them, made into tasks of the native format: ids that are not given are made, and what nobody
//! knows is an error.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use waypost_core::{FORMAT, Task};
use waypost_formats::Dialect;

use super::arguments::{Arguments, kind};
use crate::tool_error::ToolError;

/// The fields of a task in the native format.
pub(super) const TASK_FIELDS: [&str; 19] = [
    "id",
    "description",
    "parent",
    "depends_on",
    "when",
    "complexity",
    "notes",
    "tools",
    "skip",
    "locks",
    "work",
    "check",
    "retry",
    "timeout_seconds",
    "priority",
    "provides",
    "thinking",
    "foreign",
    "status",
];

/// Tasks that were read.
pub(super) struct Tasks {
    pub(super) tasks: Vec<Task>,
    /// Ids that were made, in their order.
    pub(super) made: Vec<String>,
}

/// What is there already.
pub(super) struct Taken<'a> {
    /// Whether a task of the plan has this id.
    pub(super) is_taken: &'a dyn Fn(&str) -> bool,
    /// How many tasks there are: made ids count on from there.
    pub(super) count: usize,
}

impl Taken<'_> {
    /// Nothing is.
    pub(super) fn nothing() -> Self {
        Self { is_taken: &|_| false, count: 0 }
    }
}

/// Reads tasks: objects, or texts that are descriptions. `name` says where they stand.
pub(super) fn read(values: &[(String, Value)], taken: &Taken<'_>) -> Result<Tasks, ToolError> {
    let mut fields: Vec<Map<String, Value>> = Vec::with_capacity(values.len());
    for (name, value) in values {
        fields.push(match value {
            Value::String(description) => Map::from_iter([("description".to_owned(), json!(description))]),
            Value::Object(task) => {
                Arguments::of(task, &TASK_FIELDS, format!("{name}."))?;
                task.clone()
            }
            other => {
                let message = format!("{name}: must be an object or text, not {}", kind(other));
                return Err(ToolError::new(message, "write a task as {\"description\": \"…\"}"));
            }
        });
    }
    if let Some(at) = fields.iter().position(says_nothing) {
        let message = format!("{}: a task says in its description what is to be done", values[at].0);
        return Err(ToolError::new(message, "give it a description"));
    }
    let made = name_all(&mut fields, taken);
    let here: HashSet<String> = fields.iter().filter_map(id_of).map(str::to_owned).collect();
    for task in &mut fields {
        resolve_external(task, &|id| here.contains(id) || (taken.is_taken)(id));
    }
    let text = json!({ "format": FORMAT, "tasks": fields }).to_string();
    let reading = waypost_formats::read(&text, Some(Dialect::Native), None)
        .map_err(|error| ToolError::new(format!("the tasks cannot be read: {error}"), ""))?;
    if !reading.problems.is_empty() {
        return Err(ToolError::invalid(&reading.problems));
    }
    let tasks = reading.drafts.into_iter().flat_map(|draft| draft.tasks).collect();
    Ok(Tasks { tasks, made })
}

/// Whether nobody could know what to do: it has no words and no name.
fn says_nothing(task: &Map<String, Value>) -> bool {
    let is_empty = |name: &str| match task.get(name) {
        None | Some(Value::Null) => true,
        Some(value) => value.as_str().is_some_and(|text| text.trim().is_empty()),
    };
    is_empty("description") && is_empty("id")
}

fn id_of(task: &Map<String, Value>) -> Option<&str> {
    task.get("id").and_then(Value::as_str)
}

/// Gives an id to each task that has none: `t` and its place, so that whoever writes them can know it beforehand.
fn name_all(fields: &mut [Map<String, Value>], taken: &Taken<'_>) -> Vec<String> {
    let given: HashSet<String> = fields.iter().filter_map(id_of).map(str::to_owned).collect();
    let is_free = |id: &str| !given.contains(id) && !(taken.is_taken)(id);
    let mut made = Vec::new();
    let mut beyond = taken.count + fields.len();
    for (at, task) in fields.iter_mut().enumerate() {
        if task.get("id").is_some_and(|id| !id.is_null()) {
            continue;
        }
        let mut id = format!("t{}", taken.count + at + 1);
        while !is_free(&id) {
            beyond += 1;
            id = format!("t{beyond}");
        }
        task.insert("id".to_owned(), json!(id));
        made.push(id);
    }
    made
}

/// A dependency that names no task of the plan may name one elsewhere: `agent:task`, or `plan/task`.
fn resolve_external(task: &mut Map<String, Value>, is_here: &dyn Fn(&str) -> bool) {
    let Some(Value::Array(dependencies)) = task.get_mut("depends_on") else { return };
    for dependency in dependencies {
        if let Some(there) = dependency.as_str().filter(|name| !is_here(name)).and_then(external_ref) {
            *dependency = there;
        }
    }
}

/// A task elsewhere, as a text names it.
pub(super) fn external_ref(name: &str) -> Option<Value> {
    if let Some((agent, task)) = name.split_once(':') {
        return Some(json!({ "agent": agent, "task": task }));
    }
    name.split_once('/').map(|(plan, task)| json!({ "plan": plan, "task": task }))
}
