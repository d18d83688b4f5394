//! Detects the format of a text by its top-level fields and by its first lines.
//!
//! Does not read plans: a text that looks like a format may still be invalid in it.

use serde_json::Value;
use serde_json::value::RawValue;
use waypost_core::FORMAT;

use crate::field_reader::syntax;
use crate::native::Entries;
use crate::{
    Dialect, Unreadable, backlog, beads, checklist, clido, front_matter, jaato, markdown, plan_document,
    task_master,
};

/// Returns the format that the text looks like.
pub fn sniff(text: &str, file_name: Option<&str>) -> Option<Dialect> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{')
        && let Ok(Entries(fields)) = serde_json::from_str(text)
    {
        return of_object(text, file_name, &fields);
    }
    if let Some((dialect, _)) = several(text, None, file_name) {
        return Some(dialect);
    }
    let has_front_matter = front_matter::split(text).is_some();
    if beads::looks_like(text, file_name) {
        Some(Dialect::Beads)
    } else if backlog::looks_like(text, file_name) {
        Some(Dialect::Backlog)
    } else if has_front_matter && markdown::looks_like(text, file_name) {
        Some(Dialect::Markdown)
    } else if clido::looks_like(text) {
        Some(Dialect::Clido)
    } else if checklist::looks_like(text, file_name) {
        Some(Dialect::Checklist)
    } else if markdown::looks_like(text, file_name) {
        Some(Dialect::Markdown)
    } else {
        None
    }
}

/// Returns the objects of a text that consists of several, and their format, if it is the same one whose files hold one object.
pub(crate) fn several<'a>(
    text: &'a str,
    dialect: Option<Dialect>,
    file_name: Option<&str>,
) -> Option<(Dialect, Vec<&'a str>)> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let objects = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let parts: Vec<&str> = objects.map(|object| object.ok().map(RawValue::get)).collect::<Option<_>>()?;
    if parts.len() < 2 {
        return None;
    }
    let mut found = parts.iter().map(|part| dialect.or_else(|| sniff(part, file_name)));
    let first = found.next().flatten()?;
    let is_one_object = match first {
        Dialect::Native | Dialect::Jaato | Dialect::Frctl | Dialect::Agora => true,
        Dialect::PlanDocument | Dialect::TaskMaster => true,
        // Of a model's reply, one plan counts.
        Dialect::Clido => file_name.is_some(),
        Dialect::Markdown | Dialect::Checklist | Dialect::Beads | Dialect::Backlog => false,
        Dialect::Mermaid | Dialect::Dot | Dialect::Graphml | Dialect::Svg => false,
    };
    (is_one_object && found.all(|other| other == Some(first))).then_some((first, parts))
}

fn of_object(text: &str, file_name: Option<&str>, fields: &[(String, &RawValue)]) -> Option<Dialect> {
    let has = |name: &str| fields.iter().any(|(field, _)| field == name);
    let is_native = |raw: &RawValue| {
        let family = FORMAT.split('/').next().unwrap_or(FORMAT);
        serde_json::from_str::<String>(raw.get()).is_ok_and(|format| format.split('/').next() == Some(family))
    };
    if fields.iter().any(|(name, raw)| name == "format" && is_native(raw)) {
        Some(Dialect::Native)
    } else if has("goals") || has("root_goal_id") {
        Some(Dialect::Frctl)
    } else if (has("content") || has("schema_version")) && plan_document::looks_like(text, file_name) {
        Some(Dialect::PlanDocument)
    } else if has("plans") && !has("tasks") {
        Some(Dialect::Frctl)
    } else if jaato::is_plan(has) || has("agent_plan_ids") {
        Some(Dialect::Jaato)
    } else if (has("items") || has("workItems") || has("work_items")) && (has("queue") || has("id")) {
        Some(Dialect::Agora)
    } else if has("meta") && has("tasks") && !task_master::looks_like(text, file_name) {
        Some(Dialect::Clido)
    } else if has("tasks") && task_master::looks_like(text, file_name) {
        Some(Dialect::TaskMaster)
    } else if has("goal") && has("tasks") && !has("title") {
        Some(Dialect::Clido)
    } else if !has("tasks") && beads::looks_like(text, file_name) {
        Some(Dialect::Beads)
    } else if has("tasks") || has("title") {
        Some(Dialect::Native)
    } else {
        of_map(text, file_name, fields)
    }
}

/// Detects a map of plans by id from its first entry.
fn of_map(text: &str, file_name: Option<&str>, fields: &[(String, &RawValue)]) -> Option<Dialect> {
    let (_, first) = fields.first()?;
    let first: Value = serde_json::from_str(first.get()).ok()?;
    if jaato::is_plan(|name| first.get(name).is_some()) || first.get("plan_id").is_some() {
        Some(Dialect::Jaato)
    } else if first.get("goal_count").is_some() || first.get("total_goals").is_some() {
        Some(Dialect::Frctl)
    } else if task_master::looks_like(text, file_name) {
        Some(Dialect::TaskMaster)
    } else if clido::looks_like(text) {
        Some(Dialect::Clido)
    } else {
        None
    }
}

/// Returns why no format was detected. For invalid JSON this is the position of the error.
pub(crate) fn why_unknown(text: &str) -> Unreadable {
    if !text.trim_start().starts_with(['{', '[']) {
        return Unreadable::UnknownFormat;
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Unreadable::UnknownFormat,
        Err(error) => syntax(&error),
    }
}
