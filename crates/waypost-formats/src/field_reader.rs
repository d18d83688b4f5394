//! Shared by the readers: takes an object apart field by field, and records a problem for each field that does not fit.
//!
//! Knows no format.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};
use waypost_core::{Draft, PlanId, Problem, ProblemKind, ProblemLocation, Status, TaskId, Timestamp};

use crate::preserved_fields::numeric_timestamp;
pub(crate) use crate::preserved_fields::{PreservedFields, holds_unknown, parse_timestamp};
use crate::{Dialect, Unreadable};

/// Converts a serde_json error with its position.
pub(crate) fn syntax(error: &serde_json::Error) -> Unreadable {
    let detail = without_position(error);
    // What is wrong with a value is said in Rust's types.
    let detail = if error.is_data() { waypost_text::plain_parse_error("", &detail) } else { detail };
    Unreadable::Syntax { line: error.line().max(1), column: error.column().max(1), detail }
}

/// Returns the message of a serde_json error without its "at line 1 column 2".
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Parses a JSON value.
pub(crate) fn json_of(text: &str) -> Result<Value, Unreadable> {
    serde_json::from_str(text).map_err(|error| syntax(&error))
}

/// Parses a JSON object.
#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
pub(crate) fn object_of(text: &str, dialect: Dialect) -> Result<Map<String, Value>, Unreadable> {
    match json_of(text)? {
        Value::Object(map) => Ok(map),
        other => Err(Unreadable::NoPlan(format!("{dialect}: expected an object, found {}", Shown(&other)))),
    }
}

/// Formats a value briefly, for messages.
pub(crate) struct Shown<'a>(pub(crate) &'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::String(text) => write!(f, "{:?}", waypost_text::truncate(text, 40)),
            Value::Array(_) => f.write_str("a list"),
            Value::Object(_) => f.write_str("an object"),
        }
    }
}

/// Returns a whole number from `12`, `12.0` or `"12"`.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            // Beyond 2^53 a float no longer stands for one whole number.
            (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the status that a word of any of the formats means.
pub(crate) fn status_of(word: &str) -> Option<Status> {
    Some(match word.trim().to_ascii_lowercase().replace([' ', '-'], "_").as_str() {
        "pending" | "todo" | "open" | "ready" | "blocked" | "not_started" | "queued" => Status::Pending,
        "running" | "in_progress" | "started" | "active" => Status::Running,
        "done" | "complete" | "completed" | "finished" | "succeeded" => Status::Done,
        "failed" | "error" => Status::Failed,
        "skipped" | "skip" => Status::Skipped,
        "cancelled" | "canceled" => Status::Cancelled,
        _ => return None,
    })
}

/// An object whose fields are taken one by one. Fields that no reader takes remain at the end.
#[derive(Debug)]
pub(crate) struct Fields {
    map: Map<String, Value>,
    place: ProblemLocation,
    within: String,
    problems: Vec<Problem>,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
impl Fields {
    /// Takes `map` apart; its problems are located at `place`.
    pub(crate) fn new(map: Map<String, Value>, place: ProblemLocation) -> Self {
        Self { map, place, within: String::new(), problems: Vec::new() }
    }

    /// Like [`Fields::new`] for a nested object: problems name its fields `within.field`.
    pub(crate) fn inside(map: Map<String, Value>, place: ProblemLocation, within: impl Into<String>) -> Self {
        Self { map, place, within: format!("{}.", within.into()), problems: Vec::new() }
    }

    /// Takes apart the entry at `index` of a list of tasks. An entry that is not an object is a problem.
    pub(crate) fn entry(entry: Value, index: usize, list: &str, problems: &mut Vec<Problem>) -> Option<Self> {
        let mut fields = Self::new(Map::new(), ProblemLocation::TaskNumber(index + 1));
        match entry {
            Value::Object(map) => Some(Self { map, ..fields }),
            other => {
                fields.unlike::<()>(list, "an object", &other);
                fields.finish(problems);
                None
            }
        }
    }

    /// Changes the location of further problems, once it is known.
    pub(crate) fn set_place(&mut self, place: ProblemLocation) {
        self.place = place;
    }

    /// The location of problems.
    pub(crate) fn place(&self) -> &ProblemLocation {
        &self.place
    }

    /// Whether the field is present, even as `null`.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.map.contains_key(field)
    }

    /// The names of the remaining fields, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.map.keys().map(String::as_str)
    }

    /// Returns a field without taking it.
    pub(crate) fn peek(&self, field: &str) -> Option<&Value> {
        self.map.get(field)
    }

    /// Takes the field as it is, `null` included.
    pub(crate) fn take_any(&mut self, field: &str) -> Option<Value> {
        self.map.shift_remove(field)
    }

    /// Takes the field; `null` counts as absent.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.take_any(field).filter(|value| !value.is_null())
    }

    /// Text; `null` counts as absent.
    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
        match self.take(field)? {
            Value::String(text) => Some(text),
            other => self.unlike(field, "text", &other),
        }
    }

    /// Required text.
    pub(crate) fn text_needed(&mut self, field: &str) -> Option<String> {
        if self.map.get(field).is_none_or(Value::is_null) {
            self.map.shift_remove(field);
            self.missing(field);
            return None;
        }
        self.text(field)
    }

    /// A name: text, or a number, which is converted to text.
    pub(crate) fn name(&mut self, field: &str) -> Option<String> {
        match self.take(field)? {
            Value::String(text) => Some(text),
            Value::Number(number) => {
                let text = number.to_string();
                self.inexact(field, &Value::Number(number), format_args!("{text:?}"));
                Some(text)
            }
            other => self.unlike(field, "text", &other),
        }
    }

    /// A boolean, also as the words `true` and `false`.
    pub(crate) fn flag(&mut self, field: &str) -> Option<bool> {
        let word = |value: &Value| value.as_str()?.to_ascii_lowercase().parse().ok();
        let value = self.take(field)?;
        match value.as_bool().or_else(|| word(&value)) {
            Some(flag) => {
                if !value.is_boolean() {
                    self.inexact(field, &value, flag);
                }
                Some(flag)
            }
            None => self.unlike(field, "true or false", &value),
        }
    }

    /// A whole number, see [`whole`].
    pub(crate) fn integer(&mut self, field: &str) -> Option<i64> {
        let value = self.take(field)?;
        match whole(&value) {
            Some(number) => {
                if !(value.is_i64() || value.is_u64()) {
                    self.inexact(field, &value, number);
                }
                Some(number)
            }
            None => self.unlike(field, "a whole number", &value),
        }
    }

    pub(crate) fn number(&mut self, field: &str) -> Option<f64> {
        self.read(field, "a number", Value::as_f64)
    }

    fn read<T>(&mut self, field: &str, expected: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let value = self.take(field)?;
        read(&value).or_else(|| self.unlike(field, expected, &value))
    }

    /// Returns the status that a word means; an unknown word is a problem and counts as pending.
    pub(crate) fn status(&mut self, word: &str, expected: &str) -> Status {
        let found = Value::from(word);
        let Some(status) = status_of(word) else {
            return self.unlike("status", expected, &found).unwrap_or(Status::Pending);
        };
        if !expected.split([',', ' ']).any(|known| known == word) {
            self.inexact("status", &found, status.as_str());
        }
        status
    }

    /// Parses a task id; an invalid one is a problem of the field.
    pub(crate) fn task_id(&mut self, field: &str, text: String) -> Option<TaskId> {
        TaskId::new(text).map_err(|bad| self.wrong(field, bad)).ok()
    }

    pub(crate) fn object(&mut self, field: &str) -> Option<Map<String, Value>> {
        match self.take(field)? {
            Value::Object(map) => Some(map),
            other => self.unlike(field, "an object", &other),
        }
    }

    pub(crate) fn list(&mut self, field: &str) -> Option<Vec<Value>> {
        match self.take(field)? {
            Value::Array(list) => Some(list),
            other => self.unlike(field, "a list", &other),
        }
    }

    /// A list of names; a single name counts as a list of one. Each entry that is not a name is a problem; the others stay.
    pub(crate) fn names_in(&mut self, field: &str) -> Option<Vec<String>> {
        let list = match self.take(field)? {
            Value::Array(list) => list,
            lone @ Value::String(_) => {
                self.inexact(field, &lone, "a list of one");
                vec![lone]
            }
            other => return self.unlike(field, "a list of texts", &other),
        };
        let mut names = Vec::with_capacity(list.len());
        for (at, entry) in list.into_iter().enumerate() {
            match entry {
                Value::String(text) => names.push(text),
                Value::Number(number) => {
                    let text = number.to_string();
                    self.inexact(&format!("{field}[{at}]"), &Value::Number(number), format_args!("{text:?}"));
                    names.push(text);
                }
                other => {
                    self.unlike::<()>(&format!("{field}[{at}]"), "text", &other);
                }
            }
        }
        Some(names)
    }

    /// A list of task ids, see [`Fields::names_in`].
    pub(crate) fn task_ids(&mut self, field: &str) -> Option<Vec<TaskId>> {
        let names = self.names_in(field)?.into_iter().enumerate();
        Some(names.filter_map(|(at, name)| self.task_id(&format!("{field}[{at}]"), name)).collect())
    }

    /// A timestamp. Its text is preserved if Waypost would write it differently.
    pub(crate) fn time(&mut self, field: &str, kept: &mut PreservedFields) -> Option<Timestamp> {
        self.time_as(field, kept, |at| at.to_string())
    }

    /// A timestamp. Its text is preserved if `written` gives another one.
    pub(crate) fn time_as(
        &mut self,
        field: &str,
        kept: &mut PreservedFields,
        written: fn(Timestamp) -> String,
    ) -> Option<Timestamp> {
        let value = self.take(field)?;
        let found = match &value {
            Value::String(text) => parse_timestamp(text),
            Value::Number(number) => number.as_f64().map(numeric_timestamp),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        match (found, &value) {
            (Some(at), Value::String(text)) => {
                if written(at) != *text {
                    kept.set(field, text.as_str());
                }
                Some(at)
            }
            (Some(at), _) => {
                kept.set(field, value);
                Some(at)
            }
            (None, _) => self.unlike(field, "a time such as 2026-03-22T10:00:00Z", &value),
        }
    }

    /// Records that a value is understood, but not kept as it is written.
    pub(crate) fn inexact(&mut self, field: &str, found: &Value, read: impl fmt::Display) {
        let field = format!("{}{field}", self.within);
        let (found, read) = (Shown(found).to_string(), read.to_string());
        self.problem(ProblemKind::Inexact { field, found, read });
    }

    /// Records a problem: the field has the wrong type.
    pub(crate) fn wrong(&mut self, field: &str, detail: impl fmt::Display) {
        let field = format!("{}{field}", self.within);
        self.problem(ProblemKind::WrongType { field, detail: detail.to_string() });
    }

    /// Records a problem: the field is missing.
    pub(crate) fn missing(&mut self, field: &str) {
        let field = format!("{}{field}", self.within);
        self.problem(ProblemKind::Missing { field });
    }

    /// Records a problem specific to this format.
    pub(crate) fn format(&mut self, detail: impl Into<String>) {
        self.problem(ProblemKind::Format { detail: detail.into() });
    }

    /// Records any problem.
    pub(crate) fn problem(&mut self, wrong: ProblemKind) {
        self.problems.push(Problem { place: self.place.clone(), wrong });
    }

    /// Records "expected this, found that". Always returns `None`, so that a reader can return it.
    pub(crate) fn unlike<T>(&mut self, field: &str, expected: &str, found: &Value) -> Option<T> {
        self.wrong(field, format_args!("expected {expected}, found {}", Shown(found)));
        None
    }

    /// Finishes a nested object: returns its remaining fields and takes over its problems.
    pub(crate) fn finish_inner(&mut self, inner: Self) -> Map<String, Value> {
        self.problems.extend(inner.problems);
        inner.map
    }

    /// Returns the remaining fields; appends the problems to `problems`.
    pub(crate) fn finish(self, problems: &mut Vec<Problem>) -> Map<String, Value> {
        problems.extend(self.problems);
        self.map
    }
}

/// Sets the draft's id. A text that is not a valid id is preserved for writing, with a note.
pub(crate) fn take_plan_id(
    draft: &mut Draft,
    text: String,
    kept: &mut PreservedFields,
    notes: &mut Vec<String>,
) {
    match PlanId::new(text.as_str()) {
        Ok(id) => draft.id = Some(id),
        Err(bad) => {
            if !text.is_empty() {
                notes.push(format!(
                    "the plan's id {text:?} cannot be used here ({bad}); the plan gets another one"
                ));
            }
            kept.set("id", text);
        }
    }
}

/// Returns the id to write: the preserved one that cannot be used here, the draft's own, or `otherwise`.
pub(crate) fn plan_id_text(
    draft: &Draft,
    kept: &PreservedFields,
    otherwise: impl FnOnce() -> String,
) -> String {
    match (kept.text("id").filter(|text| !text.is_empty()), &draft.id) {
        (Some(text), _) => text.to_owned(),
        (None, Some(id)) => id.to_string(),
        (None, None) => kept.text("id").map_or_else(otherwise, str::to_owned),
    }
}

/// Returns a deterministic short hash of a text: 8 hex digits.
pub(crate) fn short_hash(text: &str) -> String {
    let hash = text.bytes().fold(0u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    format!("{:08x}", hash & 0xffff_ffff)
}

/// Stand-in ids for tasks without a usable id, so that the other fields can still be checked.
#[derive(Debug, Default)]
pub(crate) struct Nameless {
    waiting: Vec<usize>,
}

impl Nameless {
    /// Returns an id for the task at `index` of the list. [`Nameless::settle`] makes it unique.
    pub(crate) fn stand_in(&mut self, index: usize) -> TaskId {
        self.waiting.push(index);
        stand_in(index + 1, 0)
    }

    /// Renames the stand-ins that collide with a real id.
    pub(crate) fn settle(self, draft: &mut Draft) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting: HashSet<usize> = self.waiting.into_iter().collect();
        let mut taken: HashSet<TaskId> = draft
            .tasks
            .iter()
            .enumerate()
            .filter(|(index, _)| !waiting.contains(index))
            .map(|(_, task)| task.spec.id.clone())
            .collect();
        for (index, task) in draft.tasks.iter_mut().enumerate() {
            if waiting.contains(&index) {
                let mut turn = 0;
                while taken.contains(&stand_in(index + 1, turn)) {
                    turn += 1;
                }
                task.spec.id = stand_in(index + 1, turn);
                taken.insert(task.spec.id.clone());
            }
        }
    }
}

#[expect(clippy::expect_used, reason = "digits and letters make an id")]
fn stand_in(number: usize, turn: usize) -> TaskId {
    let text = if turn == 0 { format!("task-{number}") } else { format!("task-{number}-{turn}") };
    TaskId::new(text).expect("digits and letters make an id")
}

/// Returns the id of the task at `index` (from 0): the text if it is a valid id, otherwise a stand-in. An empty or invalid text is
/// a problem; the caller reports a missing one.
pub(crate) fn task_id(
    text: Option<String>,
    index: usize,
    fields: &mut Fields,
    nameless: &mut Nameless,
    field: &str,
) -> TaskId {
    let Some(text) = text else {
        return nameless.stand_in(index);
    };
    match TaskId::new(text.as_str()) {
        Ok(id) => {
            fields.set_place(ProblemLocation::Task(text));
            id
        }
        Err(bad) => {
            if text.is_empty() {
                fields.missing(field);
            } else {
                fields.set_place(ProblemLocation::Task(text));
                fields.problem(ProblemKind::BadId { rule: bad.to_string() });
            }
            nameless.stand_in(index)
        }
    }
}
