//! docker-agent's stored plan documents: one JSON file per plan, a text with a name, a status and a revision.
//!
//! Reads the store's file (`updatedAt`, `revision`), the host's form of the same (`updated_at`, `version`), and the envelope of its
//! command line. Does not know tasks: the format has none.

use serde_json::{Map, Value};
use waypost_core::{Draft, FORMAT, ForeignFields, PlanId, Problem, ProblemKind, ProblemLocation, Timestamp};

use crate::field_reader::{Fields, PreservedFields, Shown, json_of};
use crate::field_writer::{losses, plan_loss, pretty};
use crate::{Dialect, Form, Reading, Unreadable, Writing};

const DIALECT: Dialect = Dialect::PlanDocument;

/// Whether a text is a plan document: an envelope, or an object with a text `content` and no tasks of any kind.
pub(crate) fn looks_like(text: &str, _file_name: Option<&str>) -> bool {
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text) else { return false };
    if map.contains_key("schema_version") && (map.contains_key("plan") || map.contains_key("plans")) {
        return true;
    }
    is_document(&map)
}

fn is_document(map: &Map<String, Value>) -> bool {
    let has = |key: &str| map.contains_key(key);
    map.get("content").is_some_and(Value::is_string)
        && ["name", "revision", "version", "scope", "updatedAt", "updated_at"].into_iter().any(has)
        && !["tasks", "steps", "goals", "work_items", "workItems", "items"].into_iter().any(has)
}

/// Reads one document, or the documents in an envelope.
#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
pub(crate) fn read(text: &str, file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let Value::Object(mut map) = json_of(text)? else {
        return Err(Unreadable::NoPlan("a plan document is a JSON object".to_owned()));
    };
    let mut reading = Reading::new(DIALECT);
    let in_envelope = !map.contains_key("content") && (map.contains_key("plan") || map.contains_key("plans"));
    if !in_envelope {
        let draft = document(map, stem(file_name), &mut reading);
        reading.drafts.push(draft);
        return Ok(reading);
    }
    let documents = match (map.shift_remove("plans"), map.shift_remove("plan")) {
        (Some(Value::Array(plans)), _) => plans,
        (Some(other), _) | (None, Some(other)) => vec![other],
        (None, None) => Vec::new(),
    };
    for (n, entry) in documents.into_iter().enumerate() {
        match entry {
            Value::Object(map) => {
                let draft = document(map, None, &mut reading);
                reading.drafts.push(draft);
            }
            other => reading.problems.push(Problem::plan(ProblemKind::WrongType {
                field: format!("plans[{n}]"),
                detail: format!("expected an object, found {}", Shown(&other)),
            })),
        }
    }
    if let Some(Value::Array(warnings)) = map.shift_remove("warnings") {
        reading.notes.extend(warnings.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    Ok(reading)
}

fn document(map: Map<String, Value>, stem: Option<&str>, reading: &mut Reading) -> Draft {
    let mut draft = Draft { format: FORMAT.to_owned(), ..Draft::default() };
    let mut kept = PreservedFields::default();
    let host = !map.contains_key("revision")
        && !map.contains_key("updatedAt")
        && ["scope", "version", "updated_at"].iter().any(|key| map.contains_key(*key));
    let mut fields = Fields::new(map, ProblemLocation::Plan);
    if host {
        kept.set("form", "host");
    }
    name(&mut fields, stem.filter(|_| !host), &mut draft, &mut kept, &mut reading.notes);
    draft.spec.title = fields.text("title").unwrap_or_default();
    // The host omits an empty content; a stored file always has one.
    let content = if host { fields.text("content") } else { fields.text_needed("content") };
    draft.spec.body = content.unwrap_or_default();
    draft.spec.owner = fields.text("author").unwrap_or_default();
    draft.spec.status = fields.text("status").unwrap_or_default();
    let (number, time) = if host { ("version", "updated_at") } else { ("revision", "updatedAt") };
    if !fields.has(number) {
        kept.keep_absent(vec![number]);
    }
    if let Some(revision) = fields.integer(number) {
        match u64::try_from(revision) {
            Ok(revision) => kept.set("revision", revision),
            Err(_) => fields.wrong(number, format_args!("expected a number from 0, found {revision}")),
        }
    }
    let updated_at = fields.peek(time).filter(|at| at.is_string()).cloned();
    draft.state.updated_at = fields.time(time, &mut kept);
    if let Some(updated_at) = updated_at {
        kept.set("updated_at", updated_at);
    }
    kept.keep_unknown(fields.finish(&mut reading.problems));
    kept.keep_in(&mut draft.spec.foreign, DIALECT);
    draft
}

/// Sets the id. The file name is the key of a stored plan: if it is a valid id, a different name inside is ignored.
fn name(
    fields: &mut Fields,
    stem: Option<&str>,
    draft: &mut Draft,
    kept: &mut PreservedFields,
    notes: &mut Vec<String>,
) {
    let inner = fields.text("name");
    let key = match (stem, &inner) {
        (Some(stem), Some(inner)) if stem != inner && PlanId::new(stem).is_ok() => {
            notes
                .push(format!("the file is called {stem:?}, the name inside is {inner:?}: {stem:?} is used"));
            Some(stem.to_owned())
        }
        (Some(stem), None) => Some(stem.to_owned()),
        (_, inner) => inner.clone(),
    };
    let Some(key) = key else { return };
    match PlanId::new(key.as_str()) {
        Ok(id) => draft.id = Some(id),
        Err(bad) => {
            notes.push(format!("the name {key:?} cannot be an id here ({bad}); the plan gets another one"));
            kept.set("name", key.as_str());
        }
    }
    if draft.id.is_some() && !is_name(&key) {
        notes.push(format!("docker-agent itself does not open a plan called {key:?}"));
    }
}

/// Whether a text follows docker-agent's rule for names.
pub fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(allowed) && text.chars().all(|c| allowed(c) || matches!(c, '_' | '-'))
}

/// Writes the store's file; the host's form only if the plan was read in it.
pub(crate) fn write(draft: &Draft, form: Form) -> Result<Writing, Unreadable> {
    let kept = PreservedFields::of(&draft.spec.foreign, DIALECT);
    let host = match form {
        Form::AsRead => kept.text("form") == Some("host"),
        Form::Document | Form::Program => false,
    };
    let held = ["id", "version", "title", "body", "owner", "status", "updated_at"];
    let mut lost = losses(draft, DIALECT, &held, &[]);
    // The tasks are lost as a whole, so their fields are not listed one by one.
    lost.retain(|loss| loss.task.is_none());
    if !draft.tasks.is_empty() {
        lost.push(plan_loss("tasks"));
    }
    let name = written_name(draft, &kept);
    if draft.id.as_ref().is_some_and(|id| id.as_str() != name) {
        lost.push(plan_loss("id"));
    }
    let spec = &draft.spec;
    let mut map = Map::new();
    let mut put = |key: &str, text: &str, always: bool| {
        if always || !text.is_empty() {
            map.insert(key.to_owned(), Value::from(text));
        }
    };
    if host {
        if let Some(scope) = kept.unknown("scope").and_then(Value::as_str) {
            put("scope", scope, true);
        }
        put("name", &name, true);
        put("title", &spec.title, false);
        put("author", &spec.owner, false);
        put("status", &spec.status, false);
        put("content", &spec.body, false);
    } else {
        put("name", &name, true);
        put("title", &spec.title, false);
        put("content", &spec.body, true);
        put("author", &spec.owner, false);
        put("status", &spec.status, false);
    }
    let (number, time) = if host { ("version", "updated_at") } else { ("revision", "updatedAt") };
    if form != Form::AsRead || draft.version > 0 || !kept.was_absent(number) {
        map.insert(number.to_owned(), Value::from(revision(draft, &kept)));
    }
    // An import is no change of the document.
    match kept.get("updated_at").filter(|_| draft.version <= 1 && form != Form::Program) {
        Some(read) => _ = map.insert(time.to_owned(), read.clone()),
        None => crate::field_writer::put_time(&mut map, time, draft.state.updated_at, &kept, to_the_second),
    }
    match form {
        Form::AsRead | Form::Document => kept.write_unknown(&mut map, &[]),
        Form::Program if kept.has_unknown() => lost.push(plan_loss(&format!("foreign.{DIALECT}"))),
        Form::Program => {}
    }
    lost.sort();
    Ok(Writing { text: as_go_writes(&pretty(&map, 2)), losses: lost })
}

/// Returns the name to write: the id if docker-agent accepts it, otherwise the closest name that it accepts.
fn written_name(draft: &Draft, kept: &PreservedFields) -> String {
    if let Some(id) = &draft.id
        && (is_name(id.as_str()) || kept.get("revision").is_some())
    {
        // A file that was read under a name is written under that name, even if docker-agent would not open it.
        return id.to_string();
    }
    if let (None, Some(name)) = (&draft.id, kept.text("name")) {
        return name.to_owned();
    }
    let base = draft.id.as_ref().map_or(draft.spec.title.as_str(), PlanId::as_str);
    let mut name = String::new();
    for c in base.chars().flat_map(char::to_lowercase).take(64) {
        if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' && !name.is_empty() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "plan".to_owned() } else { name.to_owned() }
}

/// Returns by how much the revision of a document exceeds the version of its plan: a document that was imported keeps counting
/// from the revision that it had.
pub fn revision_offset(foreign: &ForeignFields) -> u64 {
    let kept = PreservedFields::of(foreign, Dialect::PlanDocument);
    kept.get("revision").and_then(Value::as_u64).map_or(0, |revision| revision.saturating_sub(1))
}

/// Returns the revision that was read, incremented by every version here after the first.
fn revision(draft: &Draft, kept: &PreservedFields) -> u64 {
    match kept.get("revision").and_then(Value::as_u64) {
        Some(read) => read.saturating_add(draft.version.saturating_sub(1)),
        None => draft.version.max(1),
    }
}

/// Formats a timestamp as docker-agent does, without a fraction.
pub fn to_the_second(at: Timestamp) -> String {
    Timestamp::from_micros(at.as_micros().div_euclid(1_000_000) * 1_000_000).to_string()
}

/// Escapes the characters that Go escapes because they could end a script element. In JSON they occur only inside strings.
fn as_go_writes(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            _ => text.push(c),
        }
    }
    text
}

fn stem(file_name: Option<&str>) -> Option<&str> {
    file_name?.rsplit(['/', '\\']).next()?.strip_suffix(".json").filter(|stem| !stem.is_empty())
}
