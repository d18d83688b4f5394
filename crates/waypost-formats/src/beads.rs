//! beads' issues: one JSON object per line, as its repositories keep them in `issues.jsonl`.
//!
//! Read only. All lines together are one plan. A line that cannot be read is a problem of that line alone.

use std::collections::HashSet;

use serde_json::{Map, Value};
use waypost_core::{
    Dependency, Draft, FORMAT, Problem, ProblemKind, ProblemLocation, Status, Task, TaskId, TaskSpec,
};

use crate::field_reader::{Fields, Nameless, PreservedFields, Shown, task_id, without_position};
use crate::task_master::sections;
use crate::{Dialect, Reading, Unreadable};

const DIALECT: Dialect = Dialect::Beads;
/// Maximum number of deleted issues that one note names.
const NAMES_IN_NOTE_MAX: usize = 20;

/// Whether the first line is an issue.
pub(crate) fn looks_like(text: &str, _file_name: Option<&str>) -> bool {
    let Some(first) = text.lines().map(str::trim).find(|line| !line.is_empty()) else { return false };
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(first) else { return false };
    let has = |key: &str| map.contains_key(key);
    has("id") && has("title") && (has("issue_type") || has("status") && has("created_at")) && !has("tasks")
}

/// Reads all issues into one plan.
pub(crate) fn read(text: &str, _file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let mut reading = Reading::new(DIALECT);
    let mut draft = Draft { format: FORMAT.to_owned(), ..Draft::default() };
    let mut nameless = Nameless::default();
    let mut deleted = Vec::new();
    let mut issues = 0;
    for (n, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let detail = match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(map)) => {
                issues += 1;
                match kind(&map) {
                    Kind::Issue => issue(map, &mut draft, &mut nameless, &mut reading),
                    Kind::Deleted(id) => deleted.push(id),
                    Kind::Other(what) => {
                        reading
                            .notes
                            .push(format!("line {}: a {what}, not an issue; it was left out", n + 1));
                    }
                }
                continue;
            }
            Ok(other) => format!("line {}: expected an object, found {}", n + 1, Shown(&other)),
            Err(error) => format!("line {}: {}", n + 1, without_position(&error)),
        };
        reading.problems.push(Problem::plan(ProblemKind::Format { detail }));
    }
    if issues == 0 {
        return Err(Unreadable::NoPlan("no line is an issue".to_owned()));
    }
    leave_out(deleted, &mut draft, &mut reading.notes);
    nameless.settle(&mut draft);
    draft.spec.title = title(&draft);
    reading.drafts.push(draft);
    Ok(reading)
}

enum Kind {
    Issue,
    Deleted(String),
    Other(String),
}

fn kind(map: &Map<String, Value>) -> Kind {
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("_type"), text("status")) {
        ("" | "issue", "tombstone") => Kind::Deleted(text("id").to_owned()),
        ("" | "issue", _) => Kind::Issue,
        (other, _) => Kind::Other(other.to_owned()),
    }
}

fn issue(map: Map<String, Value>, draft: &mut Draft, nameless: &mut Nameless, reading: &mut Reading) {
    let index = draft.tasks.len();
    let mut fields = Fields::new(map, ProblemLocation::TaskNumber(index + 1));
    let mut kept = PreservedFields::default();
    fields.take("_type");
    let given = fields.text_needed("id");
    let id = task_id(given, index, &mut fields, nameless, "id");
    let mut task = Task::new(TaskSpec::new(id.clone(), fields.text_needed("title").unwrap_or_default()));
    task.spec.notes = sections([
        ("", fields.text("description").unwrap_or_default()),
        ("Design", fields.text("design").unwrap_or_default()),
        ("Acceptance criteria", fields.text("acceptance_criteria").unwrap_or_default()),
        ("Notes", fields.text("notes").unwrap_or_default()),
    ]);
    if let Some(word) = fields.text("status") {
        let (status, exact) = status_of(&word);
        task.state.status = status;
        if !exact {
            kept.keep_status_word(status, &word);
            reading.notes.push(format!("task {id}: `{word}` was read as {}", status.as_str()));
        }
    }
    // 0 is the most urgent and 2 the middle; beads itself reads a missing number as 0.
    let urgency = fields.integer("priority").unwrap_or(0);
    match urgency {
        0..=4 => task.spec.priority = 2 - i32::try_from(urgency).unwrap_or(2),
        other => fields.wrong("priority", format_args!("expected a number from 0 to 4, found {other}")),
    }
    task.state.worker = fields.text("assignee").filter(|name| !name.is_empty());
    task.state.created_at = fields.time("created_at", &mut kept);
    task.state.updated_at = fields.time("updated_at", &mut kept);
    task.state.finished_at = fields.time("closed_at", &mut kept);
    task.state.result = fields.text("close_reason").filter(|reason| !reason.is_empty());
    let links = fields.list("dependencies").unwrap_or_default();
    let other_links = follow(links, &mut task, &mut fields);
    let mut unknown = fields.finish(&mut reading.problems);
    if !other_links.is_empty() {
        unknown.insert("dependencies".to_owned(), Value::Array(other_links));
    }
    kept.keep_unknown(unknown);
    kept.keep_in(&mut task.spec.foreign, DIALECT);
    draft.tasks.push(task);
}

/// Applies the links that order or nest tasks, and returns the others, which only relate them.
fn follow(links: Vec<Value>, task: &mut Task, fields: &mut Fields) -> Vec<Value> {
    let mut others = Vec::new();
    for (n, link) in links.into_iter().enumerate() {
        let text = |key: &str| link.get(key).and_then(Value::as_str);
        let target = text("depends_on_id").map(TaskId::new);
        match (text("type").unwrap_or("blocks"), target) {
            ("blocks", Some(Ok(on))) => task.spec.depends_on.push(Dependency::Task(on)),
            ("parent-child", Some(Ok(parent))) if task.spec.parent.is_none() => {
                task.spec.parent = Some(parent)
            }
            ("blocks" | "parent-child", None) => {
                let field = format!("dependencies[{n}]");
                fields.unlike::<()>(&field, "an object with `depends_on_id` and `type`", &link);
            }
            ("blocks" | "parent-child", Some(Err(bad))) => fields.wrong(&format!("dependencies[{n}]"), bad),
            _ => others.push(link),
        }
    }
    others
}

/// Returns the status, and whether the word means exactly that.
fn status_of(word: &str) -> (Status, bool) {
    match word {
        "open" => (Status::Pending, true),
        "in_progress" => (Status::Running, true),
        "closed" => (Status::Done, true),
        // On an agent's hook, so an agent works on it.
        "hooked" => (Status::Running, false),
        other => (crate::field_reader::status_of(other).unwrap_or(Status::Pending), false),
    }
}

/// Drops references to deleted issues. These stay in the file as tombstones; they are not tasks, and nothing can wait for them.
fn leave_out(deleted: Vec<String>, draft: &mut Draft, notes: &mut Vec<String>) {
    if deleted.is_empty() {
        return;
    }
    let names: Vec<&str> = deleted.iter().take(NAMES_IN_NOTE_MAX).map(String::as_str).collect();
    let more = if deleted.len() > names.len() { ", …" } else { "" };
    notes.push(format!("{} deleted issues were left out: {}{more}", deleted.len(), names.join(", ")));
    let alive: HashSet<String> = draft.tasks.iter().map(|task| task.spec.id.to_string()).collect();
    let gone: HashSet<&str> = deleted.iter().map(String::as_str).filter(|id| !alive.contains(*id)).collect();
    for task in &mut draft.tasks {
        let id = task.spec.id.to_string();
        task.spec.depends_on.retain(|on| {
            let stays = on.here().is_none_or(|on| !gone.contains(on.as_str()));
            if !stays {
                notes.push(format!("task {id}: no longer waits for {on}, which was deleted"));
            }
            stays
        });
        if let Some(parent) = task.spec.parent.take_if(|parent| gone.contains(parent.as_str())) {
            notes.push(format!("task {id}: no longer a part of {parent}, which was deleted"));
        }
    }
}

/// Returns a title from the project: beads names issues `prefix-number`, and the prefix stands for the project.
fn title(draft: &Draft) -> String {
    let prefix = |task: &Task| task.spec.id.as_str().rsplit_once('-').map(|(prefix, _)| prefix.to_owned());
    let mut prefixes = draft.tasks.iter().map(prefix);
    match prefixes.next().flatten() {
        Some(first) if prefixes.all(|other| other.as_ref() == Some(&first)) => format!("{first} issues"),
        _ => "beads issues".to_owned(),
    }
}
