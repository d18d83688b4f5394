//! The history of a plan: versions, differences and the timeline of attempts. Also its export in any format.

use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use waypost_core::{Timestamp, differences_in_full};
use waypost_formats::{Dialect, Form};
use waypost_service::{Hint, summary};
use waypost_text::escape_json;

use super::attempts::{Attempt, attempts};
use super::extract::{Parameters, PlanPath, page_size, parameter};
use super::response::{Problem, Reply, Versioned, hint_text};
use super::state::Api;
use super::tasks::label;

/// Versions on a page: default and maximum.
const VERSIONS_DEFAULT: usize = 50;
const VERSIONS_MAX: usize = 500;
/// Maximum number of listed differences.
const DIFFERENCES_MAX: usize = 500;
/// Maximum number of tasks on a page of the timeline.
const ROWS_MAX: usize = 1_000;
/// Maximum width of a label, in columns.
const LABEL_COLUMNS_MAX: usize = 60;

/// Selects versions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryQuery {
    before: Option<u64>,
    limit: Option<usize>,
}

/// `GET /plans/{plan}/history`: the latest first.
pub(crate) fn history(
    api: &Api,
    (PlanPath(id), Parameters(paging)): (PlanPath, Parameters<HistoryQuery>),
) -> Reply {
    let limit = page_size(paging.limit, VERSIONS_DEFAULT, VERSIONS_MAX)?;
    let (current, warnings) = api.service.view(&id, |plan, warnings| (plan.version(), warnings.to_vec()))?;
    // Of a damaged history, the versions before the damage.
    let last = if warnings.is_empty() { current } else { api.plans().readable_versions(&id)?.0 };
    let before = paging.before.unwrap_or(last + 1).min(last + 1);
    let from = before.saturating_sub(limit as u64 + 1);
    let count = before.saturating_sub(1).saturating_sub(from);
    let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
    let mut entries = if last == 0 { Vec::new() } else { api.plans().history(&id, from, count)? };
    entries.retain(|entry| entry.version < before);
    entries.reverse();
    let versions: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "version": entry.version,
                "at": entry.at,
                "actor": entry.actor,
                "command": entry.command,
                "summary": summary(&entry.events),
            })
        })
        .collect();
    let earlier = entries.last().map(|entry| entry.version).filter(|&version| version > 1);
    Ok(Versioned::at(json!({ "versions": versions, "before": earlier }), current).warned(&warnings))
}

/// `GET /plans/{plan}/versions/{version}`: the plan as it was, in the native format.
pub(crate) fn version(
    api: &Api,
    (PlanPath(id), Path(path)): (PlanPath, Path<Vec<(String, String)>>),
) -> Reply {
    let wanted = parameter(&path, "version").parse::<u64>();
    let wanted = wanted.map_err(|_| {
        Problem::not_found("a version is a number from 1", hint_text(Hint::ListVersions(id.clone())))
    })?;
    let draft = api.plans().at_version(&id, wanted)?.to_draft();
    let warnings: Vec<String> = api.plans().store().damage(&id)?.into_iter().collect();
    Ok(Versioned::at(json!(draft), wanted).warned(&warnings))
}

/// Selects the versions to compare; `to` is the newest by default.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffQuery {
    from: u64,
    to: Option<u64>,
}

/// `GET /plans/{plan}/diff`. From the newest version to an earlier one, `restore` tells what a restore would do.
pub(crate) fn diff(
    api: &Api,
    (PlanPath(id), Parameters(between)): (PlanPath, Parameters<DiffQuery>),
) -> Reply {
    let (latest, warnings) = api.service.view(&id, |plan, warnings| (plan.version(), warnings.to_vec()))?;
    let to = between.to.unwrap_or(latest);
    let old = api.plans().at_version(&id, between.from)?.to_draft();
    let new = api.plans().at_version(&id, to)?.to_draft();
    let mut found = differences_in_full(&old, &new);
    let total = found.len();
    found.truncate(DIFFERENCES_MAX);
    let mut value =
        json!({ "from": between.from, "to": to, "differences": found, "differences_total": total });
    if between.from == latest && to < latest {
        value["restore"] = json!(api.service.restore_preview(&id, to)?);
    }
    Ok(Versioned::of(value).warned(&warnings))
}

/// Selects the format and the version.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportQuery {
    format: Option<String>,
    version: Option<u64>,
}

/// `GET /plans/{plan}/export`
pub(crate) fn export(
    api: &Api,
    (PlanPath(id), Parameters(wanted)): (PlanPath, Parameters<ExportQuery>),
) -> Result<Response, Problem> {
    let dialect = wanted.format.as_deref().unwrap_or("native").parse::<Dialect>();
    let dialect =
        dialect.map_err(|error| Problem::bad(error.to_string(), "omit `format` for the native format"))?;
    let (draft, warnings) = match wanted.version {
        Some(version) => {
            let damage = api.plans().store().damage(&id)?.into_iter().collect();
            (api.plans().at_version(&id, version)?.to_draft(), damage)
        }
        None => api.service.view(&id, |plan, warnings| (plan.to_draft(), warnings.to_vec()))?,
    };
    let writing = waypost_formats::write(&draft, dialect, Form::AsRead);
    let writing = writing.map_err(|error| Problem::bad(error.to_string(), "choose another `format`"))?;
    let (kind, ending) = kind(dialect);
    let mut response = ([(CONTENT_TYPE, kind)], writing.text).into_response();
    let headers = response.headers_mut();
    // An SVG opened in the browser could run scripts on this origin, so exports are always downloads.
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{id}.{ending}\"")) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    let losses: Vec<String> = writing.losses.iter().take(50).map(ToString::to_string).collect();
    for (name, told) in [("x-waypost-losses", losses), ("x-waypost-warnings", warnings)] {
        if let Some(told) = (!told.is_empty()).then(|| escape_json(&json!(told).to_string()).into_owned())
            && let Ok(value) = HeaderValue::from_str(&told)
        {
            headers.insert(name, value);
        }
    }
    Ok(response)
}

/// The media types of exports.
pub(super) const MEDIA_TYPES: [&str; 6] = [
    "text/markdown",
    "text/plain",
    "text/vnd.graphviz",
    "application/json",
    "application/xml",
    "image/svg+xml",
];

/// Returns the media type and the file extension of a format.
fn kind(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::Svg => ("image/svg+xml", "svg"),
        Dialect::Graphml => ("application/xml", "graphml"),
        Dialect::Mermaid => ("text/plain; charset=utf-8", "mmd"),
        Dialect::Dot => ("text/vnd.graphviz; charset=utf-8", "dot"),
        Dialect::Markdown | Dialect::Checklist | Dialect::Backlog => ("text/markdown; charset=utf-8", "md"),
        Dialect::Native
        | Dialect::Clido
        | Dialect::Jaato
        | Dialect::Frctl
        | Dialect::Agora
        | Dialect::PlanDocument
        | Dialect::TaskMaster
        | Dialect::Beads => ("application/json", "json"),
    }
}

/// The cursor: the last task of the previous page.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    after: Option<String>,
}

/// `GET /plans/{plan}/timeline`: when each task ran, in the order of their first starts.
pub(crate) fn timeline(
    api: &Api,
    (PlanPath(id), Parameters(after)): (PlanPath, Parameters<PageQuery>),
) -> Reply {
    let mut found = attempts(api.plans(), &id, None)?;
    let (labels, version, warnings) = api.service.view(&id, |plan, warnings| {
        let labels: BTreeMap<String, String> = plan
            .tasks()
            .filter(|(task, _)| task.state.attempt > 0)
            .map(|(task, _)| (task.spec.id.to_string(), label(task, LABEL_COLUMNS_MAX)))
            .collect();
        (labels, plan.version(), warnings.to_vec())
    })?;
    let mut rows: Vec<(Option<Timestamp>, String)> =
        found.iter().map(|(task, all)| (all.first().and_then(|one| one.started_at), task.clone())).collect();
    rows.sort();
    let skipped = after.after.as_ref().and_then(|last| rows.iter().position(|(_, task)| task == last));
    let rows: Vec<String> =
        rows.into_iter().skip(skipped.map_or(0, |at| at + 1)).map(|(_, task)| task).collect();
    let next = (rows.len() > ROWS_MAX).then(|| rows[ROWS_MAX - 1].clone());
    let rows: Vec<Value> = rows
        .iter()
        .take(ROWS_MAX)
        .map(|task| {
            let attempts: Vec<Attempt> = found
                .remove(task)
                .unwrap_or_default()
                .into_iter()
                .filter(|one| one.started_at.is_some())
                .collect();
            json!({ "task": task, "label": labels.get(task), "attempts": attempts })
        })
        .collect();
    let value = json!({ "version": version, "rows": rows, "next": next });
    Ok(Versioned::at(value, version).warned(&warnings))
}
