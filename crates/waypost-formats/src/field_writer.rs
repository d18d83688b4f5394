//! Shared by the writers: JSON in the layout of each program, timestamps as Python writes them, and the list of fields that a
//! format cannot hold.
//!
//! Knows no format.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};
use waypost_core::{Dependency, Draft, ForeignFields, TaskId, TaskSpec, Timestamp};

use crate::field_reader::{PreservedFields, holds_unknown};
use crate::unsupported_fields::{set_in_plan, set_in_task};
use crate::{Dialect, Form, Loss};

/// How a plan is written: in which of the two layouts, and whether with fields that the format does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Use the program's layout, not the document's.
    pub(crate) program: bool,
    /// Write exactly as it was read, with its unknown and absent fields.
    pub(crate) as_read: bool,
    /// Write the unknown fields that were read.
    pub(crate) unknown: bool,
}

impl Shape {
    /// Returns the shape for `form`. The program's own form holds nothing that the program does not know.
    pub(crate) fn of(form: Form, kept: &PreservedFields) -> Self {
        match form {
            Form::AsRead => {
                Self { program: kept.text("form") == Some("program"), as_read: true, unknown: true }
            }
            Form::Document => Self { program: false, as_read: false, unknown: true },
            Form::Program => Self { program: true, as_read: false, unknown: false },
        }
    }
}

/// Formats a value with `indent` spaces per level and no newline at the end.
pub(crate) fn pretty(value: &impl Serialize, indent: usize) -> String {
    let indent = vec![b' '; indent];
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(&indent));
    // A tree of JSON values always serializes; a type whose map keys are not strings would give `null`.
    let written = value.serialize(&mut serializer).ok();
    written.and_then(|()| String::from_utf8(bytes).ok()).unwrap_or_else(|| "null".to_owned())
}

/// Like [`pretty`] with 2 spaces, and with every non-ASCII character escaped, as Python's `json.dump` does by default.
pub(crate) fn pretty_ascii(value: &impl Serialize) -> String {
    let mut ascii = String::new();
    for letter in pretty(value, 2).chars() {
        match letter {
            '\0'..='~' => ascii.push(letter),
            _ => ascii.extend(letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    ascii
}

/// Formats a timestamp in Waypost's own form.
pub(crate) fn canonical(at: Timestamp) -> String {
    at.to_string()
}

/// Formats a timestamp as Python does, without a fraction or with six digits of it: `2026-03-01T10:00:02.120000Z`.
pub(crate) fn python(at: Timestamp) -> String {
    format!("{}Z", python_naive(at))
}

/// Like [`python`], with an offset instead of the `Z`.
pub(crate) fn python_offset(at: Timestamp) -> String {
    format!("{}+00:00", python_naive(at))
}

/// Like [`python`], with an offset and the `Z`, as jaato writes.
pub(crate) fn python_offset_and_z(at: Timestamp) -> String {
    format!("{}+00:00Z", python_naive(at))
}

fn python_naive(at: Timestamp) -> String {
    let text = at.to_string();
    let text = text.strip_suffix('Z').unwrap_or(&text);
    match text.split_once('.') {
        Some((seconds, fraction)) => format!("{seconds}.{fraction:0<6}"),
        None => text.to_owned(),
    }
}

/// Inserts a timestamp, in the text in which it was read if it is unchanged.
pub(crate) fn put_time(
    map: &mut Map<String, Value>,
    field: &str,
    at: Option<Timestamp>,
    kept: &PreservedFields,
    written: fn(Timestamp) -> String,
) {
    put(map, field, at.map(|at| kept.time_value(field, at, written)));
}

/// Inserts a value, if there is one.
pub(crate) fn put(map: &mut Map<String, Value>, field: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(field.to_owned(), value.into());
    }
}

/// Returns the dependencies on tasks of the same plan, for a format that has no others.
pub(crate) fn own_dependencies<'a>(spec: &'a TaskSpec, losses: &mut Vec<Loss>) -> Vec<&'a str> {
    if spec.depends_on.iter().any(|on| on.external().is_some()) {
        losses.push(task_loss(&spec.id, "depends_on"));
    }
    spec.depends_on.iter().filter_map(Dependency::here).map(TaskId::as_str).collect()
}

/// Returns every field that is set in the draft and that a format with these fields cannot hold. This includes preserved fields of
/// other formats, but not Waypost's own hints.
pub(crate) fn losses(
    draft: &Draft,
    dialect: Dialect,
    plan_fields: &[&str],
    task_fields: &[&str],
) -> Vec<Loss> {
    let mut losses = Vec::new();
    lost(&mut losses, None, set_in_plan(draft), plan_fields, &draft.spec.foreign, dialect);
    for task in &draft.tasks {
        let id = Some(task.spec.id.as_str());
        lost(&mut losses, id, set_in_task(task), task_fields, &task.spec.foreign, dialect);
    }
    losses
}

fn lost(
    losses: &mut Vec<Loss>,
    task: Option<&str>,
    set: Vec<String>,
    held: &[&str],
    foreign: &ForeignFields,
    dialect: Dialect,
) {
    for field in set {
        if held.contains(&field.as_str()) {
            continue;
        }
        if let Some(kept) = field.strip_prefix("foreign.")
            && (kept == dialect.name() || !holds_unknown(foreign, kept))
        {
            continue;
        }
        losses.push(Loss { task: task.map(str::to_owned), field });
    }
}

/// Sorts the losses: the plan's first, then those of its tasks in order, each once.
pub(crate) fn in_order(draft: &Draft, mut losses: Vec<Loss>) -> Vec<Loss> {
    let place_of: HashMap<&str, usize> =
        draft.tasks.iter().enumerate().map(|(at, task)| (task.spec.id.as_str(), at)).collect();
    losses.sort_by_key(|loss| loss.task.as_ref().and_then(|task| place_of.get(task.as_str()).copied()));
    let mut told: HashSet<(Option<String>, String)> = HashSet::with_capacity(losses.len());
    losses.retain(|loss| told.insert((loss.task.clone(), loss.field.clone())));
    losses
}

/// A loss of the plan itself.
pub(crate) fn plan_loss(field: &str) -> Loss {
    Loss { task: None, field: field.to_owned() }
}

/// A loss of a task.
pub(crate) fn task_loss(task: &TaskId, field: &str) -> Loss {
    Loss { task: Some(task.to_string()), field: field.to_owned() }
}
