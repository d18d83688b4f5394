//! The fields of a native text that this version does not know: found while reading, put back while writing.
//!
//! They are preserved under `foreign.native`, by name. Does not know what any of them means.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};
use waypost_core::{Draft, FORMAT, ForeignFields, ProblemLocation};

use crate::ignored_fields::Ignored;

pub(super) const NAME: &str = "native";
/// The format's schema, which names every known field.
const SCHEMA: &str = include_str!("../../schemas/waypost-1.schema.json");

/// Collects the values of the ignored fields from `text`. Fields inside lists cannot be stored by name: they are only noted.
pub(super) fn collect(
    text: &str,
    ignored: &Ignored,
    unknown: &mut Map<String, Value>,
    place: &ProblemLocation,
    within: &str,
    notes: &mut Vec<String>,
) {
    if ignored.0.is_empty() {
        return;
    }
    let whole: Value = serde_json::from_str(text).unwrap_or_default();
    for path in &ignored.0 {
        if !find(&whole, path, unknown) {
            notes.push(format!("{place}: the unknown field `{within}{path}` is ignored"));
        }
    }
}

/// Stores the value at `path`, if it can be found by names alone.
fn find(whole: &Value, path: &str, unknown: &mut Map<String, Value>) -> bool {
    let mut here = whole;
    let mut names = Vec::new();
    let mut rest = path;
    while let Value::Object(map) = here {
        if let Some(value) = map.get(rest) {
            names.push(rest);
            file(unknown, &names, value.clone());
            return true;
        }
        // A name may contain a dot, so take the longest name that is present.
        let next = map
            .iter()
            .filter(|(name, _)| rest.strip_prefix(name.as_str()).is_some_and(|tail| tail.starts_with('.')))
            .max_by_key(|(name, _)| name.len());
        let Some((name, value)) = next else { return false };
        names.push(name);
        rest = &rest[name.len() + 1..];
        // An optional value adds a `?` to the path.
        rest = rest.strip_prefix("?.").unwrap_or(rest);
        here = value;
    }
    false
}

fn file(unknown: &mut Map<String, Value>, names: &[&str], value: Value) {
    match names {
        [] => {}
        [name] => {
            unknown.insert((*name).to_owned(), value);
        }
        [name, rest @ ..] => {
            let inner = unknown.entry((*name).to_owned()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                file(inner, rest, value);
            }
        }
    }
}

pub(super) fn nest(unknown: &mut Map<String, Value>, name: &str, more: Map<String, Value>) {
    if !more.is_empty() {
        unknown.insert(name.to_owned(), Value::Object(more));
    }
}

/// Adds the fields of `more`; where both have an object, merges it.
pub(super) fn merge(target: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (target.get_mut(&name), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            (_, value) => {
                target.insert(name, value);
            }
        }
    }
}

/// Preserves unknown fields, sorted by name, so that a second reading gives the same draft.
pub(super) fn keep(foreign: &mut ForeignFields, unknown: Map<String, Value>) {
    if unknown.is_empty() && !foreign.0.contains_key(NAME) {
        return;
    }
    let mut all = foreign.of(NAME);
    merge(&mut all, unknown);
    all.sort_keys();
    foreign.keep(NAME, all);
}

/// Returns the draft as JSON, with the unknown fields back in their places.
pub(super) fn with_unknown(draft: &Draft) -> Value {
    let tree = |value: serde_json::Result<Value>| value.unwrap_or_default();
    let mut plan = tree(serde_json::to_value(Draft {
        format: FORMAT.to_owned(),
        id: draft.id.clone(),
        version: draft.version,
        spec: draft.spec.clone(),
        state: draft.state.clone(),
        tasks: Vec::new(),
    }));
    put_back(&mut plan);
    let tasks = draft.tasks.iter().map(|task| {
        let mut task = tree(serde_json::to_value(task));
        put_back(&mut task);
        task
    });
    let tasks = Value::Array(tasks.collect());
    if let Value::Object(map) = &mut plan {
        map.shift_remove("tasks");
        map.insert("tasks".to_owned(), tasks);
    }
    plan
}

/// Moves the fields of `foreign.native` to where they were read; those that would collide with a known field stay.
fn put_back(tree: &mut Value) {
    let Value::Object(map) = tree else { return };
    let Some(Value::Object(mut foreign)) = map.shift_remove("foreign") else { return };
    if let Some(Value::Object(unknown)) = foreign.shift_remove(NAME) {
        let left = overlay(map, unknown);
        if !left.is_empty() {
            foreign.insert(NAME.to_owned(), Value::Object(left));
        }
    }
    if !foreign.is_empty() {
        map.insert("foreign".to_owned(), Value::Object(foreign));
    }
}

/// Inserts `fields` into `map` where they do not collide, and returns the rest.
fn overlay(map: &mut Map<String, Value>, fields: Map<String, Value>) -> Map<String, Value> {
    let mut left = Map::new();
    for (name, value) in fields {
        match (map.get_mut(&name), value) {
            (None, value) if !known(&name) => {
                map.insert(name, value);
            }
            // A state of which only the unknown fields are written.
            (None, Value::Object(fields)) if name == "state" => {
                let mut inner = Map::new();
                let rest = overlay(&mut inner, fields);
                nest(map, &name, inner);
                nest(&mut left, &name, rest);
            }
            (Some(Value::Object(inner)), Value::Object(fields)) => {
                let rest = overlay(inner, fields);
                nest(&mut left, &name, rest);
            }
            (_, value) => {
                left.insert(name, value);
            }
        }
    }
    left
}

/// Whether the name has a meaning anywhere in the format, so that an unknown value must not use it.
fn known(name: &str) -> bool {
    static KNOWN: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let mut names = HashSet::new();
        properties(&serde_json::from_str(SCHEMA).unwrap_or_default(), &mut names);
        names
    });
    KNOWN.contains(name)
}

/// Collects the names of all properties in a JSON Schema.
fn properties(schema: &Value, names: &mut HashSet<String>) {
    match schema {
        Value::Object(fields) => {
            names.extend(
                fields.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned(),
            );
            fields.values().for_each(|inner| properties(inner, names));
        }
        Value::Array(items) => items.iter().for_each(|inner| properties(inner, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
