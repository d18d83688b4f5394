//! Waypost's own JSON, `"format": "waypost/1"`: a [`Draft`] as it is.
//!
//! Parses directly into the core's types, task by task, because a plan of 100,000 tasks is normal; only a task that does not fit is
//! parsed field by field. Knows no other format.

mod unknown_fields;

use std::collections::HashSet;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use waypost_core::{
    Dependency, Draft, ExternalTaskRef, FORMAT, PlanId, PlanSpec, PlanState, Problem, ProblemKind,
    ProblemLocation, Task, TaskId, TaskSpec, TaskState,
};

use waypost_text::plain_parse_error;

use self::unknown_fields::{NAME, collect, keep, merge, nest, with_unknown};
use crate::field_reader::{Nameless, Shown, status_of, syntax};
use crate::field_writer::pretty;
use crate::ignored_fields::Ignored;
use crate::wrong_values::{WrongValue, wrong_values};
use crate::{Dialect, Form, Reading, Unreadable, Writing};

/// Reads a text of the native format. A dependency that names no task of the plan may name one of another plan.
pub(crate) fn read(text: &str, _file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let mut reading = read_part(text)?;
    reading.drafts.iter_mut().for_each(link_external);
    Ok(reading)
}

/// Reads a text of the native format whose tasks may depend on tasks that it does not contain, by their ids.
pub fn read_part(text: &str) -> Result<Reading, Unreadable> {
    let Entries(mut top) = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    let mut report = Report::default();
    let mut draft = Draft { format: FORMAT.to_owned(), ..Draft::default() };
    last_wins(&mut top, &ProblemLocation::Plan, &mut report);

    if let Some(raw) = take(&mut top, "format") {
        match serde_json::from_str::<Value>(raw.get()) {
            Ok(Value::String(format)) if format == FORMAT => {}
            Ok(Value::String(format)) => {
                let detail = format!("the format {format:?} is not supported; this is {FORMAT}");
                report.problem(&ProblemLocation::Plan, ProblemKind::Format { detail });
            }
            Ok(other) => report.unlike(&ProblemLocation::Plan, "format", "text", &other),
            Err(error) => report.unreadable(&ProblemLocation::Plan, "format", &error),
        }
    }
    draft.id = field::<Option<PlanId>>(&mut top, "id", &mut report).flatten();
    draft.version = field(&mut top, "version", &mut report).unwrap_or_default();
    let mut unknown = Map::new();
    if let Some(raw) = take(&mut top, "state") {
        let (state, more) = part::<PlanState>(raw, &ProblemLocation::Plan, "state.", &mut report);
        draft.state = state.unwrap_or_default();
        nest(&mut unknown, "state", more);
    }
    let tasks = take(&mut top, "tasks");
    let (spec, more) = from_entries::<PlanSpec>(&top, "", &ProblemLocation::Plan, "", &mut report);
    draft.spec = spec.unwrap_or_default();
    merge(&mut unknown, more);
    keep(&mut draft.spec.foreign, unknown);
    if let Some(raw) = tasks {
        read_tasks(raw, &mut draft, &mut report);
    }
    draft.tasks.iter_mut().for_each(Task::name_received);
    let Report { problems, notes, .. } = report;
    Ok(Reading { drafts: vec![draft], problems, notes, ..Reading::new(Dialect::Native) })
}

/// Links dependencies on `plan/task` and `agent:task`, unless a task of the plan has that id.
fn link_external(draft: &mut Draft) {
    let is_candidate = |on: &TaskId| on.as_str().contains(['/', ':']);
    let here = draft.tasks.iter().flat_map(|task| &task.spec.depends_on).filter_map(Dependency::here);
    if !here.into_iter().any(is_candidate) {
        return;
    }
    let ids: HashSet<TaskId> = draft.tasks.iter().map(|task| task.spec.id.clone()).collect();
    for on in draft.tasks.iter_mut().flat_map(|task| &mut task.spec.depends_on) {
        if let Some(there) = on.here().filter(|on| !ids.contains(*on))
            && let Some(there) = ExternalTaskRef::parse(there.as_str())
        {
            *on = Dependency::External(Box::new(there));
        }
    }
}

/// Writes the draft; nothing is lost.
pub(crate) fn write(draft: &Draft, _form: Form) -> Result<Writing, Unreadable> {
    let plain = draft.format == FORMAT
        && !draft.spec.foreign.0.contains_key(NAME)
        && !draft.tasks.iter().any(|task| task.spec.foreign.0.contains_key(NAME));
    let mut text = if plain { pretty(draft, 2) } else { pretty(&with_unknown(draft), 2) };
    text.push('\n');
    Ok(Writing { text, losses: Vec::new() })
}

fn read_tasks(raw: &RawValue, draft: &mut Draft, report: &mut Report) {
    let raws: Vec<&RawValue> = match serde_json::from_str(raw.get()) {
        Ok(raws) => raws,
        Err(_) if raw.get() == "null" => Vec::new(),
        Err(error) => {
            report.unreadable(&ProblemLocation::Plan, "tasks", &error);
            return;
        }
    };
    let mut nameless = Nameless::default();
    draft.tasks.reserve_exact(raws.len());
    for (index, raw) in raws.into_iter().enumerate() {
        let mut ignored = Ignored::default();
        let whole = match ignored.deserialize::<TaskSpec>(raw.get()) {
            Ok(spec) => with_the_rest(spec, raw, ignored, report),
            Err(_) => None,
        };
        draft.tasks.push(whole.unwrap_or_else(|| field_by_field(raw, index, &mut nameless, report)));
    }
    nameless.settle(draft);
}

/// The problems and notes of a reading.
#[derive(Default)]
struct Report {
    problems: Vec<Problem>,
    notes: Vec<String>,
}

impl Report {
    fn problem(&mut self, place: &ProblemLocation, wrong: ProblemKind) {
        self.problems.push(Problem { place: place.clone(), wrong });
    }

    fn wrong_type(&mut self, place: &ProblemLocation, field: &str, detail: String) {
        self.problem(place, ProblemKind::WrongType { field: field.to_owned(), detail });
    }

    fn unlike(&mut self, place: &ProblemLocation, field: &str, expected: &str, found: &Value) {
        self.wrong_type(place, field, format!("expected {expected}, found {}", Shown(found)));
    }

    /// Records what of an object with one field does not fit `T`. The paths begin with that field, whose name `named`
    /// replaces.
    fn wrong_values<T: DeserializeOwned>(
        &mut self,
        place: &ProblemLocation,
        (field, named): (&str, &str),
        object: &str,
        error: &serde_json::Error,
    ) {
        let found = serde_json::from_str(object).map(wrong_values::<T>).unwrap_or_default();
        if found.is_empty() {
            self.unreadable(place, named, error);
        }
        for WrongValue { path, words } in found {
            let path =
                path.strip_prefix(field).map_or_else(|| named.to_owned(), |rest| format!("{named}{rest}"));
            match words {
                Some(words) => self.wrong_type(place, &path, words),
                None => self.problem(place, ProblemKind::Missing { field: path }),
            }
        }
    }

    fn unreadable(&mut self, place: &ProblemLocation, field: &str, error: &serde_json::Error) {
        self.wrong_type(place, field, plain_parse_error("", &error.to_string()));
    }
}

/// The only field of a task that its author does not write: its state.
#[derive(Deserialize)]
struct StateOnly<'a> {
    #[serde(borrow, default)]
    state: Option<&'a RawValue>,
}

/// Completes a task whose spec fits: adds its state and preserves unknown fields. Returns `None` if the state is written twice.
fn with_the_rest(spec: TaskSpec, raw: &RawValue, mut ignored: Ignored, report: &mut Report) -> Option<Task> {
    let mut task = Task::new(spec);
    if ignored.0.is_empty() && !task.spec.foreign.0.contains_key(NAME) {
        return Some(task);
    }
    let place = ProblemLocation::Task(task.spec.id.to_string());
    let mut unknown = Map::new();
    let others = ignored.0.len();
    ignored.0.retain(|path| path != "state");
    if ignored.0.len() < others
        && let Some(state) = serde_json::from_str::<StateOnly>(raw.get()).ok()?.state
    {
        let (state, more) = part::<TaskState>(state, &place, "state.", report);
        task.state = state.unwrap_or_default();
        nest(&mut unknown, "state", more);
    }
    if !ignored.0.is_empty() {
        collect(raw.get(), &ignored, &mut unknown, &place, "", &mut report.notes);
    }
    finish(&mut task, unknown, &place, report);
    Some(task)
}

/// Parses a task that does not fit as a whole: keeps the fields that fit, and reports each of the others.
#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
fn field_by_field(raw: &RawValue, index: usize, nameless: &mut Nameless, report: &mut Report) -> Task {
    let number = ProblemLocation::TaskNumber(index + 1);
    let Ok(Entries(mut fields)) = serde_json::from_str(raw.get()) else {
        let found = serde_json::from_str(raw.get()).unwrap_or(Value::Null);
        report.unlike(&number, "tasks", "an object", &found);
        return Task::new(TaskSpec::new(nameless.stand_in(index), ""));
    };
    let id_raw = take(&mut fields, "id");
    let written = id_raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()).unwrap_or(Value::Null);
    let (place, id) = match written {
        Value::Null => {
            report.problem(&number, ProblemKind::Missing { field: "id".into() });
            (number, None)
        }
        Value::String(text) => match TaskId::new(text.as_str()) {
            Ok(id) => (ProblemLocation::Task(text), Some(id)),
            Err(bad) => {
                let place = if text.is_empty() { number } else { ProblemLocation::Task(text) };
                report.problem(&place, ProblemKind::BadId { rule: bad.to_string() });
                (place, None)
            }
        },
        other => {
            report.unlike(&number, "id", "text", &other);
            (number, None)
        }
    };
    last_wins(&mut fields, &place, report);
    let mut unknown = Map::new();
    let state_raw = take(&mut fields, "state");
    let (spec, more) = from_entries::<TaskSpec>(&fields, r#""id":"x","#, &place, "", report);
    merge(&mut unknown, more);
    let id = id.unwrap_or_else(|| nameless.stand_in(index));
    let mut task = Task::new(match spec {
        Some(spec) => TaskSpec { id, ..spec },
        None => TaskSpec::new(id, ""),
    });
    if let Some(raw) = state_raw {
        let (state, more) = part::<TaskState>(raw, &place, "state.", report);
        task.state = state.unwrap_or_default();
        nest(&mut unknown, "state", more);
    }
    finish(&mut task, unknown, &place, report);
    task
}

/// Accepts a flat `"status"` as the state's, and preserves the other unknown fields.
fn finish(task: &mut Task, mut unknown: Map<String, Value>, place: &ProblemLocation, report: &mut Report) {
    let expected = "pending, running, done, failed, skipped or cancelled";
    match unknown.shift_remove("status") {
        None | Some(Value::Null) => {}
        Some(Value::String(word)) => match status_of(&word) {
            Some(status) if task.state.status == status || task.state == TaskState::default() => {
                task.state.status = status;
            }
            Some(_) => {
                let own = task.state.status.as_str();
                let detail = format!("`status` says {word}, but `state.status` says {own}");
                report.problem(place, ProblemKind::Format { detail });
            }
            None => report.wrong_type(place, "status", format!("expected {expected}, found {word:?}")),
        },
        Some(other) => report.unlike(place, "status", expected, &other),
    }
    keep(&mut task.spec.foreign, unknown);
}

/// The fields of an object verbatim, in order.
pub(crate) struct Entries<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for All<'a> {
            type Value = Entries<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'a>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(All(std::marker::PhantomData))
    }
}

type Raws<'a> = Vec<(String, &'a RawValue)>;

/// Of a field that is written twice, keeps the last value and reports a problem.
fn last_wins(fields: &mut Raws<'_>, place: &ProblemLocation, report: &mut Report) {
    let mut seen = HashSet::new();
    let twice: HashSet<usize> =
        (0..fields.len()).rev().filter(|&at| !seen.insert(fields[at].0.clone())).collect();
    if twice.is_empty() {
        return;
    }
    let mut at = 0;
    fields.retain(|(name, _)| {
        let kept = !twice.contains(&at);
        at += 1;
        if !kept {
            let detail = format!("`{name}` is written twice");
            report.problem(place, ProblemKind::Format { detail });
        }
        kept
    });
}

fn take<'a>(fields: &mut Raws<'a>, name: &str) -> Option<&'a RawValue> {
    let at = fields.iter().rposition(|(field, _)| field == name)?;
    Some(fields.remove(at).1)
}

/// Takes one field of the plan.
fn field<T: DeserializeOwned>(fields: &mut Raws<'_>, name: &str, report: &mut Report) -> Option<T> {
    let raw = take(fields, name)?;
    let read = serde_json::from_str(raw.get());
    read.map_err(|error| report.unreadable(&ProblemLocation::Plan, name, &error)).ok()
}

/// Parses an object as `T`; see [`from_entries`].
fn part<T: DeserializeOwned>(
    raw: &RawValue,
    place: &ProblemLocation,
    within: &str,
    report: &mut Report,
) -> (Option<T>, Map<String, Value>) {
    let mut ignored = Ignored::default();
    if let Ok(value) = ignored.deserialize::<T>(raw.get()) {
        let mut unknown = Map::new();
        collect(raw.get(), &ignored, &mut unknown, place, within, &mut report.notes);
        return (Some(value), unknown);
    }
    match serde_json::from_str::<Entries>(raw.get()) {
        Ok(Entries(mut fields)) => {
            last_wins(&mut fields, place, report);
            from_entries(&fields, "", place, within, report)
        }
        Err(error) => {
            let field = within.trim_end_matches('.');
            report.unreadable(place, field, &error);
            (None, Map::new())
        }
    }
}

/// Parses those of `fields` that fit into `T`, reports each of the others, and returns the fields that `T` does not have.
/// `base` holds fields (followed by a comma) that `T` requires.
fn from_entries<T: DeserializeOwned>(
    fields: &Raws<'_>,
    base: &str,
    place: &ProblemLocation,
    within: &str,
    report: &mut Report,
) -> (Option<T>, Map<String, Value>) {
    let whole = object_text(base, fields.iter().map(|(name, raw)| (name.as_str(), raw.get())));
    let mut ignored = Ignored::default();
    let (value, text) = match ignored.deserialize::<T>(&whole) {
        Ok(value) => (Some(value), whole),
        Err(_) => {
            let mut good: Vec<(&str, String)> = Vec::new();
            for (name, raw) in fields {
                let object = |text: &str| object_text(base, [(name.as_str(), text)]);
                let text = object(raw.get());
                match serde_json::from_str::<T>(&text) {
                    Ok(_) => good.push((name, raw.get().to_owned())),
                    Err(error) => match entries_that_fit::<T>(raw, name, &object, place, within, report) {
                        Some(text) => good.push((name, text)),
                        None => {
                            let named = format!("{within}{name}");
                            report.wrong_values::<T>(place, (name, &named), &text, &error);
                        }
                    },
                }
            }
            let text = object_text(base, good.iter().map(|(name, text)| (*name, text.as_str())));
            ignored.0.clear();
            (ignored.deserialize::<T>(&text).ok(), text)
        }
    };
    let mut unknown = Map::new();
    collect(&text, &ignored, &mut unknown, place, within, &mut report.notes);
    (value, unknown)
}

/// Returns the entries that fit of a list that does not; each of the others is a problem.
fn entries_that_fit<T: DeserializeOwned>(
    raw: &RawValue,
    name: &str,
    object: &impl Fn(&str) -> String,
    place: &ProblemLocation,
    within: &str,
    report: &mut Report,
) -> Option<String> {
    let entries: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
    serde_json::from_str::<T>(&object("[]")).ok()?;
    let mut good = Vec::new();
    for (at, entry) in entries.into_iter().enumerate() {
        let text = object(&format!("[{}]", entry.get()));
        match serde_json::from_str::<T>(&text) {
            Ok(_) => good.push(entry.get()),
            Err(error) => {
                let (field, named) = (format!("{name}[0]"), format!("{within}{name}[{at}]"));
                report.wrong_values::<T>(place, (&field, &named), &text, &error);
            }
        }
    }
    Some(format!("[{}]", good.join(",")))
}

fn object_text<'a>(base: &str, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = format!("{{{base}");
    for (name, value) in fields {
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(value);
        text.push(',');
    }
    if text.ends_with(',') {
        text.pop();
    }
    text.push('}');
    text
}
