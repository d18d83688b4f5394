//! task-master's `tasks.json`: numbered tasks with subtasks, in one list or in one list per tag.
//!
//! Read only. Each tag becomes one plan. Fields without an equivalent are preserved as foreign fields of the task.

use std::collections::HashSet;

use serde_json::{Map, Value};
use waypost_core::{
    Complexity, Dependency, Draft, FORMAT, Problem, ProblemKind, ProblemLocation, Status, Task, TaskId,
    TaskSpec,
};

use crate::field_reader::{Fields, Nameless, PreservedFields, Shown, object_of, task_id};
use crate::{Dialect, Reading, Unreadable};

const DIALECT: Dialect = Dialect::TaskMaster;

/// Whether a text is a `tasks.json`: tasks with titles, or tags with such tasks. Plans of other formats have a title or a goal of their
/// own; if this one has, its tasks must have `dependencies`, `details` or `testStrategy`.
pub(crate) fn looks_like(text: &str, _file_name: Option<&str>) -> bool {
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text) else { return false };
    if map.contains_key("format") {
        return false;
    }
    let goal = map.get("meta").and_then(|meta| meta.get("goal"));
    let is_titled = map.contains_key("title") || map.contains_key("goal") || goal.is_some();
    let is_task = |task: &Value| has_title(task) && (!is_titled || has_own_fields(task));
    match map.get("tasks") {
        Some(Value::Array(tasks)) => tasks.first().is_some_and(is_task),
        Some(_) => false,
        None => {
            let lists: Vec<&Value> = map.values().filter_map(|tag| tag.get("tasks")).collect();
            let is_list =
                |list: &&Value| list.as_array().is_some_and(|tasks| tasks.first().is_none_or(is_task));
            !lists.is_empty() && lists.iter().all(is_list)
        }
    }
}

fn has_title(task: &Value) -> bool {
    let has = |key: &str| task.get(key).is_some();
    has("id") && has("title") && !has("depends_on") && !has("work")
}

fn has_own_fields(task: &Value) -> bool {
    ["dependencies", "details", "testStrategy"].iter().any(|key| task.get(key).is_some())
}

/// Reads a `tasks.json`.
#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
pub(crate) fn read(text: &str, _file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let mut map = object_of(text, DIALECT)?;
    let mut reading = Reading::new(DIALECT);
    if let Some(tasks) = map.shift_remove("tasks") {
        let title = ["meta", "metadata"]
            .iter()
            .find_map(|key| map.get(*key)?.get("projectName")?.as_str())
            .or_else(|| map.get("projectName")?.as_str())
            .unwrap_or("master")
            .to_owned();
        let draft = list(title, tasks, map, &mut reading);
        reading.drafts.push(draft);
        return Ok(reading);
    }
    for (tag, value) in map {
        match value {
            Value::Object(mut map) if map.contains_key("tasks") => {
                let tasks = map.shift_remove("tasks").unwrap_or_default();
                let draft = list(tag, tasks, map, &mut reading);
                reading.drafts.push(draft);
            }
            other => {
                reading.notes.push(format!("`{tag}` holds no tasks but {}; it was left out", Shown(&other)))
            }
        }
    }
    if reading.drafts.is_empty() {
        return Err(Unreadable::NoPlan("no list of tasks was found".to_owned()));
    }
    Ok(reading)
}

/// The state while one list of tasks is read.
struct Gathering<'a> {
    draft: Draft,
    /// The full ids of all tasks and subtasks.
    known: HashSet<String>,
    nameless: Nameless,
    reading: &'a mut Reading,
}

fn list(title: String, tasks: Value, rest: Map<String, Value>, reading: &mut Reading) -> Draft {
    let mut draft = Draft { format: FORMAT.to_owned(), ..Draft::default() };
    let mut kept = PreservedFields::default();
    let mut fields = Fields::new(rest, ProblemLocation::Plan);
    if let Some(metadata) = fields.object("metadata") {
        let mut metadata = Fields::inside(metadata, ProblemLocation::Plan, "metadata");
        draft.spec.goal = metadata.text("description").unwrap_or_default();
        draft.state.created_at = metadata.time("created", &mut kept);
        draft.state.updated_at = metadata.time("updated", &mut kept);
        let unknown = metadata.finish(&mut reading.problems);
        if !unknown.is_empty() {
            kept.keep_unknown(Map::from_iter([("metadata".to_owned(), Value::Object(unknown))]));
        }
    }
    draft.spec.title = title;
    kept.keep_unknown(fields.finish(&mut reading.problems));
    kept.keep_in(&mut draft.spec.foreign, DIALECT);

    let mut known = HashSet::new();
    gather_ids(&tasks, None, &mut known);
    let mut gathering = Gathering { draft, known, nameless: Nameless::default(), reading };
    gathering.tasks(tasks, None);
    let Gathering { mut draft, nameless, .. } = gathering;
    nameless.settle(&mut draft);
    draft
}

/// Returns the full id of a task: `5`, or `5.1` for the first subtask of `5`.
fn full_id(id: &Value, parent: Option<&str>) -> Option<String> {
    let id = match id {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    match parent {
        // Some files already write the full number.
        Some(parent) if !id.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.')) => {
            Some(format!("{parent}.{id}"))
        }
        Some(_) | None => Some(id),
    }
}

fn gather_ids(tasks: &Value, parent: Option<&str>, known: &mut HashSet<String>) {
    for task in tasks.as_array().into_iter().flatten() {
        if let Some(id) = task.get("id").and_then(|id| full_id(id, parent)) {
            if let Some(subtasks) = task.get("subtasks") {
                gather_ids(subtasks, Some(&id), known);
            }
            known.insert(id);
        }
    }
}

impl Gathering<'_> {
    /// Reads a list of tasks, and below each its subtasks. The JSON parser's recursion limit bounds the depth.
    #[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
    fn tasks(&mut self, tasks: Value, parent: Option<&TaskId>) {
        let tasks = match tasks {
            Value::Array(tasks) => tasks,
            Value::Null => return,
            other => {
                let detail = format!("expected a list, found {}", Shown(&other));
                let (field, place) = match parent {
                    Some(parent) => ("subtasks", ProblemLocation::Task(parent.to_string())),
                    None => ("tasks", ProblemLocation::Plan),
                };
                let wrong = ProblemKind::WrongType { field: field.to_owned(), detail };
                self.reading.problems.push(Problem { place, wrong });
                return;
            }
        };
        for value in tasks {
            match value {
                Value::Object(map) => self.task(map, parent),
                other => {
                    let place = ProblemLocation::TaskNumber(self.draft.tasks.len() + 1);
                    let detail = format!("expected an object, found {}", Shown(&other));
                    let wrong = ProblemKind::WrongType { field: "task".to_owned(), detail };
                    self.reading.problems.push(Problem { place, wrong });
                }
            }
        }
    }

    fn task(&mut self, map: Map<String, Value>, parent: Option<&TaskId>) {
        let index = self.draft.tasks.len();
        let mut fields = Fields::new(map, ProblemLocation::TaskNumber(index + 1));
        let mut kept = PreservedFields::default();
        let given = fields.take("id").and_then(|id| full_id(&id, parent.map(TaskId::as_str)));
        if given.is_none() {
            fields.missing("id");
        }
        let id = task_id(given, index, &mut fields, &mut self.nameless, "id");
        let mut task = Task::new(TaskSpec::new(id.clone(), ""));
        task.spec.parent = parent.cloned();

        let title = fields.text("title").unwrap_or_default();
        let description = fields.text("description").unwrap_or_default();
        let (title, description) =
            if title.is_empty() { (description, String::new()) } else { (title, description) };
        task.spec.description = title;
        task.spec.notes = sections([
            ("", description),
            ("Details", fields.text("details").unwrap_or_default()),
            ("Test strategy", fields.text("testStrategy").unwrap_or_default()),
            ("Acceptance criteria", fields.text("acceptanceCriteria").unwrap_or_default()),
        ]);
        if let Some(word) = fields.text("status") {
            let (status, exact) = status_of(&word);
            task.state.status = status;
            if !exact {
                kept.keep_status_word(status, &word);
                self.reading.notes.push(format!("task {id}: `{word}` was read as {}", status.as_str()));
            }
        }
        if let Some(word) = fields.text("priority") {
            match priority_of(&word) {
                Some(priority) => task.spec.priority = priority,
                None => {
                    fields.wrong("priority", format_args!("expected high, medium or low, found {word:?}"))
                }
            }
        }
        for field in ["complexity", "complexityScore"] {
            if let Some(value) = fields.take(field) {
                match complexity_of(&value) {
                    Some(complexity) => task.spec.complexity = Some(complexity),
                    None => {
                        fields.unlike::<()>(field, "a number from 1 to 10", &value);
                    }
                }
            }
        }
        for (n, dependency) in fields.list("dependencies").unwrap_or_default().into_iter().enumerate() {
            let name = self.dependency(&dependency, &id, parent);
            match name.map(TaskId::new) {
                Some(Ok(on)) => task.spec.depends_on.push(Dependency::Task(on)),
                Some(Err(bad)) => fields.wrong(&format!("dependencies[{n}]"), bad),
                None => {
                    fields.unlike::<()>(&format!("dependencies[{n}]"), "the id of a task", &dependency);
                }
            }
        }
        task.state.updated_at = fields.time("updatedAt", &mut kept);
        task.state.created_at = fields.time("createdAt", &mut kept);
        let subtasks = fields.take("subtasks");
        kept.keep_unknown(fields.finish(&mut self.reading.problems));
        kept.keep_in(&mut task.spec.foreign, DIALECT);
        self.draft.tasks.push(task);
        if let Some(subtasks) = subtasks {
            self.tasks(subtasks, Some(&id));
        }
    }

    /// Resolves a dependency. Inside a subtask a bare number means a sibling if there is one, otherwise a task of the list.
    fn dependency(&self, value: &Value, waiting: &TaskId, parent: Option<&TaskId>) -> Option<String> {
        let name = full_id(value, None)?;
        let Some(parent) = parent else { return Some(name) };
        let sibling = format!("{parent}.{name}");
        let is_sibling = self.known.contains(&sibling) && sibling != waiting.as_str();
        Some(if is_sibling { sibling } else { name })
    }
}

/// Joins texts, each under its heading; empty ones are left out.
pub(crate) fn sections<const N: usize>(texts: [(&str, String); N]) -> String {
    let mut notes = String::new();
    for (heading, text) in texts {
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        if !notes.is_empty() {
            notes.push_str("\n\n");
        }
        if !heading.is_empty() {
            notes.push_str(&format!("## {heading}\n\n"));
        }
        notes.push_str(text);
    }
    notes
}

/// Returns the status, and whether the word means exactly that.
fn status_of(word: &str) -> (Status, bool) {
    match word {
        "pending" => (Status::Pending, true),
        "in-progress" => (Status::Running, true),
        "done" => (Status::Done, true),
        "cancelled" => (Status::Cancelled, true),
        "completed" => (Status::Done, false),
        // The work is done but under review: not finished yet.
        "review" => (Status::Running, false),
        // `blocked` and `deferred` wait; the graph, or a person, knows for what.
        other => (crate::field_reader::status_of(other).unwrap_or(Status::Pending), false),
    }
}

/// Converts a priority word to a number: a higher number goes first, and the middle is 0.
pub(crate) fn priority_of(word: &str) -> Option<i32> {
    match word.to_ascii_lowercase().as_str() {
        "critical" | "highest" | "urgent" => Some(2),
        "high" => Some(1),
        "medium" | "normal" | "" => Some(0),
        "low" => Some(-1),
        "lowest" => Some(-2),
        _ => None,
    }
}

/// Converts a score from 1 to 10, or the word itself.
#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
fn complexity_of(value: &Value) -> Option<Complexity> {
    match value {
        Value::String(word) => match word.as_str() {
            "low" => Some(Complexity::Low),
            "medium" => Some(Complexity::Medium),
            "high" => Some(Complexity::High),
            _ => None,
        },
        value => match value.as_f64()? {
            score if score < 4.0 => Some(Complexity::Low),
            score if score < 8.0 => Some(Complexity::Medium),
            _ => Some(Complexity::High),
        },
    }
}
