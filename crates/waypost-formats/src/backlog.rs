//! Backlog.md's task files: one Markdown file with front matter for each task.
//!
//! Read only. One file is a plan of one task; `read_many` joins the files of a folder into one plan.

use std::collections::HashMap;

use serde_json::{Map, Value as JsonValue};
use waypost_core::{
    Dependency, Draft, FORMAT, Problem, ProblemKind, ProblemLocation, Status, Task, TaskId, TaskSpec,
    Timestamp,
};

use crate::derived_id::derive_ids;
use crate::field_reader::PreservedFields;
use crate::front_matter::{self, Entry, FrontMatter, Value};
use crate::task_master::priority_of;
use crate::{Dialect, Reading, Unreadable};

const DIALECT: Dialect = Dialect::Backlog;

/// Whether a text is a task file: front matter with an id, a title and a status, and a field that only task files have.
pub(crate) fn looks_like(text: &str, _file_name: Option<&str>) -> bool {
    let Some(parts) = front_matter::split(text) else { return false };
    let has = |key: &str| parts.matter.entry(key).is_some();
    has("id")
        && has("title")
        && has("status")
        && ["assignee", "created_date", "dependencies", "parent_task_id", "ordinal"].into_iter().any(has)
}

/// Reads one task file.
pub(crate) fn read(text: &str, file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let mut reading = Reading::new(DIALECT);
    let Some(found) = task_file(text, file_name.unwrap_or_default(), &mut reading) else {
        return Err(Unreadable::NoPlan("there is no front matter with the id of a task".to_owned()));
    };
    let mut draft = Draft::new(found.task.spec.description.clone());
    draft.tasks.push(found.task);
    reading.drafts.push(draft);
    Ok(reading)
}

/// Reads the files of a folder, each given as its name and its text, into one plan.
pub fn read_many(files: &[(String, String)]) -> Reading {
    let mut reading = Reading::new(DIALECT);
    let mut found: Vec<TaskFile> =
        files.iter().filter_map(|(name, text)| task_file(text, name, &mut reading)).collect();
    // The order in the folder means nothing: people order their tasks by hand, or else by number.
    found.sort_by(|a, b| {
        let by_hand = match (a.ordinal, b.ordinal) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => std::cmp::Ordering::Equal,
        };
        by_hand.then_with(|| natural(a.task.spec.id.as_str()).cmp(&natural(b.task.spec.id.as_str())))
    });
    let mut draft = Draft { format: FORMAT.to_owned(), ..Draft::default() };
    draft.spec.title = "Backlog".to_owned();
    draft.tasks = found.into_iter().map(|file| file.task).collect();
    meet(&mut draft);
    reading.drafts.push(draft);
    derive_ids(&mut reading);
    reading
}

struct TaskFile {
    task: Task,
    ordinal: Option<f64>,
}

fn task_file(text: &str, name: &str, reading: &mut Reading) -> Option<TaskFile> {
    let mut refuse = |detail: String| {
        reading.problems.push(Problem::plan(ProblemKind::Format { detail: format!("{name}: {detail}") }));
        None
    };
    let Some(parts) = front_matter::split(text) else {
        return refuse("there is no front matter".to_owned());
    };
    let id = match parts.matter.text("id").map(TaskId::new) {
        Some(Ok(id)) => id,
        Some(Err(bad)) => return refuse(bad.to_string()),
        None => return refuse("the front matter has no id".to_owned()),
    };
    let mut problems = Vec::new();
    let mut task = Task::new(TaskSpec::new(id.clone(), ""));
    let ordinal = take_front_matter(&parts.matter, &mut task, &mut problems, &mut reading.notes);
    let (notes, summary) = body(parts.rest);
    task.spec.notes = notes;
    task.state.result = summary;
    for (line, text) in &parts.matter.strays {
        problems.push(ProblemKind::Format { detail: format!("line {line}: `{text}` is no `key: value`") });
    }
    let place = ProblemLocation::Task(id.to_string());
    reading.problems.extend(problems.into_iter().map(|wrong| Problem { place: place.clone(), wrong }));
    Some(TaskFile { task, ordinal })
}

fn take_front_matter(
    matter: &FrontMatter,
    task: &mut Task,
    problems: &mut Vec<ProblemKind>,
    notes: &mut Vec<String>,
) -> Option<f64> {
    let mut kept = PreservedFields::default();
    let mut unknown = Map::new();
    let mut ordinal = None;
    for entry in &matter.entries {
        let mut refuse =
            |detail: String| problems.push(ProblemKind::WrongType { field: entry.key.clone(), detail });
        let text = text_of(entry);
        match entry.key.as_str() {
            "id" => {}
            "title" => task.spec.description = text.trim().to_owned(),
            "status" => {
                let (status, exact) = status_of(&text);
                task.state.status = status;
                if !exact {
                    kept.keep_status_word(status, &text);
                    notes.push(format!("task {}: `{text}` was read as {}", task.spec.id, status.as_str()));
                }
            }
            "priority" => match priority_of(&text) {
                Some(priority) => task.spec.priority = priority,
                None => refuse(format!("expected high, medium or low, found {text:?}")),
            },
            "assignee" => {
                let names = list_of(entry);
                task.state.worker = names.first().cloned();
                if names.len() > 1 {
                    unknown.insert(entry.key.clone(), JsonValue::from(names));
                }
            }
            "dependencies" => {
                for name in list_of(entry) {
                    match TaskId::new(name) {
                        Ok(on) => task.spec.depends_on.push(Dependency::Task(on)),
                        Err(bad) => refuse(bad.to_string()),
                    }
                }
            }
            "parent_task_id" if text.is_empty() => {}
            "parent_task_id" => match TaskId::new(text) {
                Ok(parent) => task.spec.parent = Some(parent),
                Err(bad) => refuse(bad.to_string()),
            },
            "created_date" | "updated_date" => match Timestamp::parse(&text) {
                Ok(at) if entry.key == "created_date" => task.state.created_at = Some(at),
                Ok(at) => task.state.updated_at = Some(at),
                Err(bad) => refuse(bad.to_string()),
            },
            key => {
                if key == "ordinal" {
                    ordinal = text.parse::<f64>().ok().filter(|ordinal| ordinal.is_finite());
                }
                unknown.insert(key.to_owned(), value_of(entry));
            }
        }
    }
    kept.keep_unknown(unknown);
    kept.keep_in(&mut task.spec.foreign, DIALECT);
    ordinal
}

fn text_of(entry: &Entry) -> String {
    match &entry.value {
        Value::Text(text) => text.clone(),
        Value::List(list) => list.join(", "),
        Value::Nothing => String::new(),
        Value::Other => entry.raw.clone(),
    }
}

fn list_of(entry: &Entry) -> Vec<String> {
    match &entry.value {
        Value::List(list) => list.clone(),
        Value::Text(text) => {
            text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
        }
        Value::Nothing | Value::Other => Vec::new(),
    }
}

fn value_of(entry: &Entry) -> JsonValue {
    match &entry.value {
        Value::Text(text) => JsonValue::from(text.as_str()),
        Value::List(list) => JsonValue::from(list.clone()),
        Value::Nothing => JsonValue::Null,
        Value::Other => JsonValue::from(entry.raw.as_str()),
    }
}

/// Returns the status, and whether the word means exactly that. Every project may define words of its own.
fn status_of(word: &str) -> (Status, bool) {
    // Older files have a symbol before the word.
    let plain = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    match plain.to_ascii_lowercase().as_str() {
        "to do" => (Status::Pending, true),
        "in progress" => (Status::Running, true),
        "done" => (Status::Done, true),
        other => (crate::field_reader::status_of(other).unwrap_or(Status::Pending), false),
    }
}

/// Returns the text of a task without the markers that Backlog.md puts around its sections, and separately the final summary.
fn body(rest: &str) -> (String, Option<String>) {
    let mut notes = String::new();
    let mut summary = String::new();
    let mut in_summary = false;
    for line in rest.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("<!--")
            && trimmed.ends_with("-->")
            && (trimmed.contains(":BEGIN") || trimmed.contains(":END"))
        {
            continue;
        }
        if let Some(heading) = line.strip_prefix("## ") {
            in_summary = heading.trim() == "Final Summary";
            // The description needs no heading.
            if in_summary || heading.trim() == "Description" {
                continue;
            }
        }
        let text = if in_summary { &mut summary } else { &mut notes };
        text.push_str(line);
        text.push('\n');
    }
    let summary = summary.trim();
    (notes.trim().to_owned(), (!summary.is_empty()).then(|| summary.to_owned()))
}

/// Resolves references regardless of case: Backlog.md ignores case in ids.
fn meet(draft: &mut Draft) {
    let mut real: HashMap<String, TaskId> = HashMap::new();
    for task in &draft.tasks {
        real.entry(task.spec.id.as_str().to_lowercase()).or_insert_with(|| task.spec.id.clone());
    }
    let find = |id: &TaskId| real.get(&id.as_str().to_lowercase()).unwrap_or(id).clone();
    for task in &mut draft.tasks {
        if let Some(parent) = &mut task.spec.parent {
            *parent = find(parent);
        }
        for dependency in &mut task.spec.depends_on {
            if let Dependency::Task(on) = dependency {
                *on = find(on);
            }
        }
    }
}

/// A key that sorts `task-2` before `task-10`.
fn natural(id: &str) -> Vec<(u64, String)> {
    let mut key = Vec::new();
    let mut rest = id;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let words = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        key.push((number.parse().unwrap_or(u64::MAX), after[..words].to_lowercase()));
        rest = &after[words..];
    }
    key
}
