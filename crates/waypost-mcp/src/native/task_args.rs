//! Parses tasks as a model writes them into tasks of the native format. Unknown fields are errors.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use waypost_core::{FORMAT, Status, Task};
use waypost_formats::{Dialect, Reading, Unreadable};
use waypost_service::NewTask;

use super::arguments::{Arguments, Problems, kind};
use crate::tool_error::ToolError;

/// The fields of a task in the native format, except its state, which its author does not write.
pub(super) fn task_fields() -> impl Iterator<Item = &'static str> {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let text = waypost_formats::schema(Dialect::Native).unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    });
    let fields = SCHEMA["$defs"]["task"]["properties"].as_object().into_iter().flat_map(Map::keys);
    fields.map(String::as_str).filter(|field| *field != "state")
}

/// Parses the tasks of a new plan. A task without an id gets one from its position, `t1`, `t2`…, so that the author can know it
/// beforehand; if that id is taken, it gets the next free number past the end. Also returns the generated ids.
pub(super) fn read_draft(values: &[(String, Value)]) -> Result<(Vec<Task>, Vec<String>), ToolError> {
    let mut wrong = Problems::default();
    let mut fields = fields(values, &mut wrong);
    let made = name_by_position(&mut fields);
    let reading = waypost_formats::read(&text_of(fields), Some(Dialect::Native), None);
    let tasks = wrong.take_or_default(tasks_of(reading));
    wrong.or((tasks, made))
}

/// Parses tasks to be added to a plan. Tasks without an id get one when they are written.
pub(super) fn read_added(values: &[(String, Value)]) -> Result<Vec<NewTask>, ToolError> {
    let mut wrong = Problems::default();
    let mut fields = fields(values, &mut wrong);
    let mut unnamed = Vec::with_capacity(fields.len());
    for ((place, _), task) in values.iter().zip(&mut fields) {
        unnamed.push(!has_id(task));
        if !has_id(task) {
            // The format requires an id: until the task has one, messages name it by its position.
            task.insert("id".to_owned(), json!(place));
        }
    }
    let tasks = wrong.take_or_default(tasks_of(waypost_formats::read_part(&text_of(fields))));
    let tasks = wrong.or(tasks)?;
    if let Some(task) = tasks.iter().find(|task| task.state.status != Status::Pending) {
        let message = format!("task {} cannot be added with a status", task.spec.id);
        return Err(ToolError::new(message, "add it, then set its status with a separate op"));
    }
    let new = |(task, unnamed): (Task, bool)| match unnamed {
        true => NewTask::unnamed(task.spec),
        false => NewTask::named(task.spec),
    };
    Ok(tasks.into_iter().zip(unnamed).map(new).collect())
}

/// Returns the known fields of each task: an object, or a text that is the description. Each value comes with its position.
fn fields(values: &[(String, Value)], wrong: &mut Problems) -> Vec<Map<String, Value>> {
    let known: Vec<&str> = task_fields().collect();
    let mut fields: Vec<Map<String, Value>> = Vec::with_capacity(values.len());
    for (place, value) in values {
        let mut task = match value {
            Value::String(description) => Map::from_iter([("description".to_owned(), json!(description))]),
            Value::Object(task) => {
                Arguments::noting_unknown(task, &known, format!("{place}."), wrong);
                task.clone()
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                let message = format!("{place}: must be an object or text, not {}", kind(other));
                wrong.note(ToolError::new(message, "write a task as {\"description\": \"…\"}"));
                Map::from_iter([("description".to_owned(), json!(place))])
            }
        };
        let is_whole = task.keys().all(|name| known.contains(&name.as_str()));
        if is_whole && says_nothing(&task) {
            let message = format!("{place}: a task needs a description");
            wrong.note(ToolError::new(message, "describe what is to be done").with_fact("code", "invalid"));
        }
        task.retain(|name, _| known.contains(&name.as_str()));
        fields.push(task);
    }
    fields
}

fn text_of(fields: Vec<Map<String, Value>>) -> String {
    json!({ "format": FORMAT, "tasks": fields }).to_string()
}

fn tasks_of(reading: Result<Reading, Unreadable>) -> Result<Vec<Task>, ToolError> {
    let reading =
        reading.map_err(|error| ToolError::new(format!("the tasks cannot be read: {error}"), ""))?;
    if !reading.problems.is_empty() {
        return Err(ToolError::invalid(&reading.problems));
    }
    Ok(reading.drafts.into_iter().flat_map(|draft| draft.tasks).collect())
}

/// Whether the task has neither a description nor an id, so that it describes no work.
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

fn has_id(task: &Map<String, Value>) -> bool {
    task.get("id").is_some_and(|id| !id.is_null())
}

fn name_by_position(fields: &mut [Map<String, Value>]) -> Vec<String> {
    let given: HashSet<String> = fields.iter().filter_map(id_of).map(str::to_owned).collect();
    let mut made = Vec::new();
    let mut beyond = fields.len();
    for (task, number) in fields.iter_mut().zip(1..).filter(|(task, _)| !has_id(task)) {
        let mut id = format!("t{number}");
        while given.contains(&id) {
            beyond += 1;
            id = format!("t{beyond}");
        }
        task.insert("id".to_owned(), json!(id));
        made.push(id);
    }
    made
}
