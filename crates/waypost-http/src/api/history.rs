//! What was: versions, differences, attempts, and the plan in any format.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use waypost_core::{Event, Plan, PlanId, Status, Task, TaskId, Timestamp, differences};
use waypost_formats::{Dialect, Form};
use waypost_service::summary;

use super::answer::{Problem, Told};
use super::asked::{Parameters, PlanPath, page_size};
use super::tasks::label;
use super::{Api, aside};

/// Versions on a page, unless the caller says otherwise, and at the most.
const VERSIONS_DEFAULT: usize = 50;
const VERSIONS_MAX: usize = 500;
/// Differences that are told.
const DIFFERENCES_MAX: usize = 500;
/// Versions that are looked through for the earlier attempts of tasks.
const VERSIONS_LOOKED_MAX: u64 = 20_000;
/// Versions that are read at a time.
const VERSIONS_READ: usize = 1_000;
/// Tasks of a timeline on a page.
const ROWS_MAX: usize = 1_000;
/// Columns of a label.
const LABEL_COLUMNS_MAX: usize = 60;

/// Which versions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paging {
    before: Option<u64>,
    limit: Option<usize>,
}

/// `GET /plans/{plan}/history`: the latest first.
pub(crate) async fn history(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    Parameters(paging): Parameters<Paging>,
) -> Result<Told<Value>, Problem> {
    let limit = page_size(paging.limit, VERSIONS_DEFAULT, VERSIONS_MAX)?;
    aside(api, move |api| {
        let current = api.plans.look(&id, Plan::version)?;
        let before = paging.before.unwrap_or(current + 1).min(current + 1);
        let from = before.saturating_sub(limit as u64 + 1);
        let count = before.saturating_sub(1).saturating_sub(from);
        let mut entries =
            api.plans.history(&id, from, usize::try_from(count).unwrap_or(usize::MAX).max(1))?;
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
        Ok(Told::at(json!({ "versions": versions, "before": earlier }), current))
    })
    .await
}

/// `GET /plans/{plan}/versions/{version}`: the plan as it was, in the native format.
pub(crate) async fn version(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    Path(names): Path<Vec<(String, String)>>,
) -> Result<Told<Value>, Problem> {
    let wanted =
        names.iter().find(|(name, _)| name == "version").and_then(|(_, text)| text.parse::<u64>().ok());
    let wanted = wanted.ok_or_else(|| Problem::not_found("a version is a number from 1 on", ""))?;
    aside(api, move |api| {
        let draft = api.plans.at_version(&id, wanted)?.to_draft();
        Ok(Told::at(json!(draft), wanted))
    })
    .await
}

/// Between which versions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Between {
    from: u64,
    to: Option<u64>,
}

/// `GET /plans/{plan}/diff`
pub(crate) async fn diff(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    Parameters(between): Parameters<Between>,
) -> Result<Told<Value>, Problem> {
    aside(api, move |api| {
        let to = match between.to {
            Some(to) => to,
            None => api.plans.look(&id, Plan::version)?,
        };
        let old = api.plans.at_version(&id, between.from)?.to_draft();
        let new = api.plans.at_version(&id, to)?.to_draft();
        let mut found = differences(&old, &new);
        let total = found.len();
        found.truncate(DIFFERENCES_MAX);
        Ok(Told::of(
            json!({ "from": between.from, "to": to, "differences": found, "differences_total": total }),
        ))
    })
    .await
}

/// In which format.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    format: Option<String>,
    version: Option<u64>,
}

/// `GET /plans/{plan}/export`
pub(crate) async fn export(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Response, Problem> {
    let dialect = wanted.format.as_deref().unwrap_or("native").parse::<Dialect>();
    let dialect =
        dialect.map_err(|error| Problem::bad(error.to_string(), "leave it out for the native format"))?;
    aside(api, move |api| {
        let draft = match wanted.version {
            Some(version) => api.plans.at_version(&id, version)?.to_draft(),
            None => api.plans.look(&id, Plan::to_draft)?,
        };
        let writing = waypost_formats::write(&draft, dialect, Form::AsRead);
        let writing = writing.map_err(|error| Problem::bad(error.to_string(), "choose another format"))?;
        let (kind, ending) = kind(dialect);
        let mut response = ([(CONTENT_TYPE, kind)], writing.text).into_response();
        let headers = response.headers_mut();
        // A picture is shown nowhere but where its owner put it: as a file it can run nothing here.
        if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{id}.{ending}\"")) {
            headers.insert(CONTENT_DISPOSITION, name);
        }
        let losses: Vec<String> = writing.losses.iter().take(50).map(ToString::to_string).collect();
        if let Some(told) = (!losses.is_empty()).then(|| json!(losses).to_string())
            && let Ok(value) = HeaderValue::from_str(&told)
        {
            headers.insert("x-waypost-losses", value);
        }
        Ok(response)
    })
    .await
}

/// The media type of a format, and how its files end.
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

/// One start of a task, and how it ended.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Attempt {
    pub(crate) attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Attempt {
    fn begun(attempt: u32, worker: &str, started_at: Option<Timestamp>) -> Self {
        let worker = Some(worker.to_owned());
        Self { attempt, worker, started_at, finished_at: None, outcome: None, error: None }
    }

    /// The latest one, as the task itself tells of it.
    fn latest(task: &Task) -> Option<Self> {
        let state = &task.state;
        (state.attempt > 0).then(|| Self {
            attempt: state.attempt,
            worker: state.worker.clone(),
            started_at: state.started_at,
            finished_at: state.finished_at,
            outcome: (state.status != Status::Running && state.finished_at.is_some())
                .then(|| state.status.word()),
            error: state.error.clone(),
        })
    }
}

/// The attempts of one task or of all, by task. Who was started once tells of it himself; only for others the history is
/// read, and no more of it than [`VERSIONS_LOOKED_MAX`] versions.
pub(super) fn attempts(
    api: &Api,
    id: &PlanId,
    only: Option<&TaskId>,
) -> Result<BTreeMap<String, Vec<Attempt>>, Problem> {
    let (mut found, several, version) = api.plans.look(id, |plan| {
        let mut found: BTreeMap<String, Vec<Attempt>> = BTreeMap::new();
        let mut several = false;
        let tasks: Vec<&Task> = match only {
            Some(only) => plan.task(only.as_str()).into_iter().collect(),
            None => plan.tasks().map(|(task, _)| task).collect(),
        };
        for task in tasks {
            // Of an attempt that was left, by a question or to be made again, only the history tells how it ended.
            several |=
                task.state.attempt > 1 || task.state.status == Status::Pending && task.state.attempt > 0;
            if let Some(attempt) = Attempt::latest(task) {
                found.insert(task.spec.id.to_string(), vec![attempt]);
            }
        }
        (found, several, plan.version())
    })?;
    if several {
        let mut earlier = earlier(api, id, version, &found)?;
        for (task, all) in &mut found {
            if let Some(mut before) = earlier.remove(task) {
                let ended = |number| before.iter().any(|one| one.attempt == number && one.outcome.is_some());
                all.retain(|known| known.outcome.is_some() || !ended(known.attempt));
                before.retain(|one| all.iter().all(|known| known.attempt != one.attempt));
                before.append(all);
                *all = before;
            }
        }
    }
    Ok(found)
}

fn earlier(
    api: &Api,
    id: &PlanId,
    version: u64,
    wanted: &BTreeMap<String, Vec<Attempt>>,
) -> Result<BTreeMap<String, Vec<Attempt>>, Problem> {
    let mut found: BTreeMap<String, Vec<Attempt>> = BTreeMap::new();
    let mut after = version.saturating_sub(VERSIONS_LOOKED_MAX);
    loop {
        let entries = api.plans.history(id, after, VERSIONS_READ)?;
        let Some(last) = entries.last() else { return Ok(found) };
        after = last.version;
        for entry in &entries {
            for event in &entry.events {
                note(event, entry.at, wanted, &mut found);
            }
        }
    }
}

fn note(
    event: &Event,
    at: Timestamp,
    wanted: &BTreeMap<String, Vec<Attempt>>,
    found: &mut BTreeMap<String, Vec<Attempt>>,
) {
    let mut end = |task: &TaskId, outcome: &'static str, error: Option<&str>| {
        let open =
            found.get_mut(task.as_str()).and_then(|all| all.last_mut()).filter(|last| last.outcome.is_none());
        if let Some(open) = open {
            (open.finished_at, open.outcome, open.error) =
                (Some(at), Some(outcome), error.map(str::to_owned));
        }
    };
    match event {
        Event::TaskQueued { task, attempt, worker } if wanted.contains_key(task.as_str()) => {
            let all = found.entry(task.to_string()).or_default();
            all.push(Attempt::begun(*attempt, worker, None));
        }
        Event::TaskStarted { task, attempt, worker, started_at } if wanted.contains_key(task.as_str()) => {
            let all = found.entry(task.to_string()).or_default();
            // It was queued before.
            all.pop_if(|last| last.attempt == *attempt);
            all.push(Attempt::begun(*attempt, worker, Some(started_at.unwrap_or(at))));
        }
        Event::TaskDone { task, .. } => end(task, "done", None),
        Event::TaskReported { task, .. } => end(task, "reported", None),
        Event::TaskFailed { task, error, .. } => end(task, "failed", Some(error)),
        Event::TaskReleased { task, reason } => {
            end(task, "released", Some(reason).filter(|reason| !reason.is_empty()).map(String::as_str))
        }
        Event::QuestionAsked { task, .. } => end(task, "asked", None),
        Event::TaskSkipped { task, .. } => end(task, "skipped", None),
        Event::TasksCancelled { tasks, .. } => {
            for task in tasks {
                end(task, "cancelled", None);
            }
        }
        _ => {}
    }
}

/// Where to go on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    after: Option<String>,
}

/// `GET /plans/{plan}/timeline`: when each task ran, in the order of their first starts.
pub(crate) async fn timeline(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    Parameters(after): Parameters<After>,
) -> Result<Told<Value>, Problem> {
    aside(api, move |api| {
        let mut found = attempts(api, &id, None)?;
        let (labels, version) = api.plans.look(&id, |plan| {
            let labels: BTreeMap<String, String> = plan
                .tasks()
                .filter(|(task, _)| task.state.attempt > 0)
                .map(|(task, _)| (task.spec.id.to_string(), label(task, LABEL_COLUMNS_MAX)))
                .collect();
            (labels, plan.version())
        })?;
        let mut rows: Vec<(Option<Timestamp>, String)> = found
            .iter()
            .map(|(task, all)| (all.first().and_then(|one| one.started_at), task.clone()))
            .collect();
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
        Ok(Told::at(json!({ "version": version, "rows": rows, "next": next }), version))
    })
    .await
}
