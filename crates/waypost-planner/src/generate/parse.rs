//! Reads the tasks of an answer: clido's flat form, its wrapped form, or a bare list.

use std::collections::HashSet;

use serde_json::{Map, Value};
use waypost_core::{Dependency, TaskId, TaskSpec};

use crate::lenient_fields::{Reading, has_one_of, kind_of};
use crate::repair::Repair;

const TASKS: &[&str] = &["tasks", "steps", "plan"];
const DESCRIPTION: &[&str] = &["description", "title", "name", "task"];

/// Whether a value looks like a plan.
pub(super) fn is_plan(value: &Value) -> bool {
    match value {
        Value::Object(map) => TASKS.iter().any(|name| map.get(*name).is_some_and(Value::is_array)),
        Value::Array(list) => !list.is_empty() && list.iter().all(|item| has_one_of(item, DESCRIPTION)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Reads the tasks of an answer, in order and each with an id. Problems are added to `reading`.
pub(super) fn tasks(value: &Value, reading: &mut Reading) -> Vec<TaskSpec> {
    let list = match value {
        Value::Array(list) => {
            reading.repairs.note(Repair::BareList);
            list
        }
        Value::Object(map) => match reading.field(map, TASKS) {
            Some(Value::Array(list)) => list,
            Some(other) => {
                reading.problem(format!("`tasks` must be a list, not {}", kind_of(other)));
                return Vec::new();
            }
            None => {
                reading.problem("`tasks` is missing; answer with the form {\"goal\": …, \"tasks\": […]}");
                return Vec::new();
            }
        },
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            reading.problem(format!("the answer must be an object, not {}", kind_of(other)));
            return Vec::new();
        }
    };
    let mut named: HashSet<String> = list.iter().filter_map(|task| name_of(task.get("id")?)).collect();
    list.iter().enumerate().map(|(place, item)| task(place + 1, item, &mut named, reading)).collect()
}

fn name_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn task(number: usize, item: &Value, named: &mut HashSet<String>, reading: &mut Reading) -> TaskSpec {
    let empty = Map::new();
    let fields = match item {
        Value::Object(map) => map,
        Value::String(description) => {
            reading.repairs.note(Repair::TextAsObject);
            reading.repairs.note(Repair::MissingId);
            return TaskSpec::new(stand_in(number, named), description.trim());
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            reading.problem(format!("task number {number} must be an object, not {}", kind_of(other)));
            &empty
        }
    };
    let id = id_of(number, fields, named, reading);
    let whose = format!("task {id}");
    let mut spec = TaskSpec::new(id, "");
    match reading.field(fields, DESCRIPTION) {
        None if fields.is_empty() => {}
        None => {}
        Some(value) => match reading.text(value) {
            Some(text) => spec.description = text,
            None => {
                reading.problem(format!("{whose}: `description` must be a text, not {}", kind_of(value)));
            }
        },
    }
    let field = reading.field(fields, &["depends_on", "dependencies", "dependsOn"]);
    for name in reading.texts(field, &format!("{whose}: `depends_on`")) {
        match TaskId::new(name.as_str()) {
            Ok(on) => spec.depends_on.push(Dependency::Task(on)),
            Err(bad) => reading.problem(format!("{whose}: `depends_on` holds no id: {bad}")),
        }
    }
    spec.complexity = reading.complexity(fields, &whose);
    if let Some(value) = reading.field(fields, &["notes", "note"]) {
        match reading.text(value) {
            Some(text) => spec.notes = text,
            None => reading.problem(format!("{whose}: `notes` must be a text, not {}", kind_of(value))),
        }
    }
    if let Some(value) = reading.field(fields, &["tools"]) {
        spec.tools = Some(reading.texts(Some(value), &format!("{whose}: `tools`")));
    }
    if let Some(value) = reading.field(fields, &["skip"]) {
        match reading.boolean(value) {
            Some(skip) => spec.skip = skip,
            None => reading.problem(format!("{whose}: `skip` must be true or false")),
        }
    }
    spec
}

fn id_of(
    number: usize,
    fields: &Map<String, Value>,
    named: &mut HashSet<String>,
    reading: &mut Reading,
) -> TaskId {
    let value = reading.field(fields, &["id", "task_id"]);
    let Some(text) = value.and_then(|value| reading.text(value)).filter(|text| !text.is_empty()) else {
        match value {
            Some(other) if !other.is_string() => {
                let kind = kind_of(other);
                reading
                    .problem(format!("task number {number}: `id` must be a text such as \"t1\", not {kind}"));
            }
            Some(_) | None => reading.repairs.note(Repair::MissingId),
        }
        return stand_in(number, named);
    };
    TaskId::new(text.as_str()).unwrap_or_else(|bad| {
        reading.problem(format!("task number {number}: `id` cannot be used: {bad}; use ids such as \"t1\""));
        stand_in(number, named)
    })
}

/// An id for a task without one: `t3` for the third task, or the next unused number.
fn stand_in(mut number: usize, named: &mut HashSet<String>) -> TaskId {
    loop {
        let name = format!("t{number}");
        match TaskId::new(name.as_str()) {
            Ok(id) if named.insert(name) => return id,
            Ok(_) | Err(_) => number += 1,
        }
    }
}
