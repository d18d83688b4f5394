//! Tasks of a plan: pages of them, one in full, its log.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use waypost_core::{Plan, PlanId, Status, Task, TaskId};
use waypost_engine::{log_path, log_tail, why};

use super::answer::{Problem, Told};
use super::asked::{Parameters, PlanPath, TaskPath};
use super::{Api, aside};

/// Tasks on a page, unless the caller says otherwise, and at the most.
const TASKS_DEFAULT: usize = 200;
const TASKS_MAX: usize = 1_000;
/// Characters of a description in a page.
const LABEL_CHARACTERS_MAX: usize = 200;
/// Names of children and dependants.
const NAMES_MAX: usize = 500;
/// Attempts of a task that are told.
const ATTEMPTS_MAX: usize = 50;
/// Bytes of a log that are told, unless the caller says otherwise, and at the most.
const LOG_BYTES_DEFAULT: u64 = 64 * 1024;
const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Between two looks at a log that is being written.
const LOG_LOOK: Duration = Duration::from_millis(250);

/// Which tasks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    after: Option<String>,
    limit: Option<usize>,
    standing: Option<String>,
    text: Option<String>,
    parent: Option<String>,
}

/// The first line of what a task says, not too long.
pub(super) fn label(task: &Task, characters_max: usize) -> String {
    let line = task.spec.description.lines().next().unwrap_or_default();
    match line.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// `GET /plans/{plan}/tasks`
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    Parameters(listing): Parameters<Listing>,
) -> Result<Told<Value>, Problem> {
    let limit = listing.limit.unwrap_or(TASKS_DEFAULT);
    if !(1..=TASKS_MAX).contains(&limit) {
        return Err(Problem::bad(format!("limit is a number from 1 to {TASKS_MAX}"), ""));
    }
    aside(api, move |api| {
        let (value, version) = api.plans.look(&id, |plan| (page(plan, &listing, limit), plan.version()))?;
        Ok(Told::at(value?, version))
    })
    .await
}

fn page(plan: &Plan, listing: &Listing, limit: usize) -> Result<Value, Problem> {
    let wanted = listing.text.as_deref().unwrap_or_default().to_lowercase();
    let standings: Vec<&str> = listing.standing.iter().flat_map(|words| words.split(',')).collect();
    let fits = |task: &Task| {
        let standing = standing(plan, task);
        (standings.is_empty() || standings.contains(&standing))
            && listing
                .parent
                .as_ref()
                .is_none_or(|parent| task.spec.parent.as_ref().is_some_and(|own| own.as_str() == parent))
            && (wanted.is_empty()
                || task.spec.id.as_str().to_lowercase().contains(&wanted)
                || task.spec.description.to_lowercase().contains(&wanted))
    };
    if let Some(after) = &listing.after
        && plan.task(after).is_none()
    {
        return Err(Problem::bad(format!("no task is called {after}"), "begin again without `after`"));
    }
    let mut behind = listing.after.is_none();
    let (mut rows, mut total, mut next) = (Vec::new(), 0usize, None);
    for (task, _) in plan.tasks() {
        if !fits(task) {
            behind |= listing.after.as_deref() == Some(task.spec.id.as_str());
            continue;
        }
        total += 1;
        if behind && rows.len() < limit {
            rows.push(row(plan, task));
            next = Some(task.spec.id.clone());
        } else if behind && rows.len() == limit {
            rows.push(Value::Null);
        }
        behind |= listing.after.as_deref() == Some(task.spec.id.as_str());
    }
    let more = rows.len() > limit;
    rows.truncate(limit);
    Ok(json!({ "version": plan.version(), "tasks": rows, "total": total, "next": next.filter(|_| more) }))
}

/// Where a task stands, in a word that tells a question and a report apart.
pub(super) fn standing(plan: &Plan, task: &Task) -> &'static str {
    if task.state.question().is_some() {
        return "asking";
    }
    if task.state.reported().is_some() {
        return "reported";
    }
    plan.standing(task.spec.id.as_str()).map_or("cancelled", waypost_core::Standing::word)
}

fn row(plan: &Plan, task: &Task) -> Value {
    let (spec, state) = (&task.spec, &task.state);
    let mut fields = Map::new();
    fields.insert("id".to_owned(), json!(spec.id));
    fields.insert("description".to_owned(), json!(label(task, LABEL_CHARACTERS_MAX)));
    fields.insert("standing".to_owned(), json!(standing(plan, task)));
    let mut add = |name: &str, value: Value| {
        if !value.is_null() && value != json!([]) && value != json!(0) {
            fields.insert(name.to_owned(), value);
        }
    };
    add("parent", json!(spec.parent));
    add("depends_on", json!(spec.depends_on));
    add("executor", json!(spec.work.as_ref().map(|work| &work.executor)));
    add("complexity", json!(spec.complexity));
    add("priority", json!(spec.priority));
    add("attempt", json!(state.attempt));
    add("started_at", json!(state.started_at));
    add("finished_at", json!(state.finished_at));
    add("worker", json!(state.worker));
    add("progress", json!(state.progress));
    Value::Object(fields)
}

/// `GET /plans/{plan}/tasks/{task}`
pub(crate) async fn get(
    State(api): State<Arc<Api>>,
    TaskPath(id, task): TaskPath,
) -> Result<Told<Value>, Problem> {
    aside(api, move |api| {
        let found = api
            .plans
            .look(&id, |plan| plan.task(task.as_str()).map(|found| (one(plan, found), plan.version())))?;
        let (mut value, version) = found.ok_or_else(|| no_such_task(&id, &task))?;
        value["attempts"] = json!(attempts(api, &id, &task)?);
        value["why"] = json!(why(&api.plans, &id, &task)?.reasons);
        Ok(Told::at(value, version))
    })
    .await
}

fn no_such_task(plan: &PlanId, task: &TaskId) -> Problem {
    Problem::not_found(format!("plan {plan} has no task {task}"), "GET /api/v1/plans/{id}/tasks lists them")
}

fn one(plan: &Plan, task: &Task) -> Value {
    let id = task.spec.id.as_str();
    let ids = |tasks: Vec<&Task>| -> Value {
        tasks.iter().take(NAMES_MAX).map(|task| json!(task.spec.id)).collect()
    };
    let mut value = json!(task);
    value["standing"] = json!(standing(plan, task));
    value["children"] = ids(plan.children(id));
    value["needed_by"] = ids(plan.dependants(id));
    let outputs: Map<String, Value> =
        plan.outputs_for(id).into_iter().map(|(name, output)| (name, output.value())).collect();
    value["received_outputs"] = Value::Object(outputs);
    value
}

/// The attempts of a task, from its plan's history.
fn attempts(api: &Api, id: &PlanId, task: &TaskId) -> Result<Vec<Value>, Problem> {
    let mut found = super::history::attempts(api, id, Some(task))?.remove(task.as_str()).unwrap_or_default();
    let from = found.len().saturating_sub(ATTEMPTS_MAX);
    let found = found.split_off(from);
    Ok(found
        .into_iter()
        .map(|attempt| {
            let mut value = json!(attempt);
            value["has_log"] = json!(log_path(&api.logs, id, task, attempt.attempt).exists());
            value
        })
        .collect())
}

/// What of a log.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    attempt: Option<u32>,
    tail: Option<u64>,
    #[serde(default)]
    follow: bool,
}

/// `GET /plans/{plan}/tasks/{task}/log`: the end of it, or with `follow=true` as it is written.
pub(crate) async fn log(
    State(api): State<Arc<Api>>,
    TaskPath(id, task): TaskPath,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Response, Problem> {
    let tail = wanted.tail.unwrap_or(LOG_BYTES_DEFAULT).min(LOG_BYTES_MAX);
    let (api_, id_, task_) = (Arc::clone(&api), id.clone(), task.clone());
    let attempt = aside(api_, move |api| {
        let latest = api.plans.look(&id_, |plan| plan.task(task_.as_str()).map(|task| task.state.attempt))?;
        let latest = latest.ok_or_else(|| no_such_task(&id_, &task_))?;
        let attempt = wanted.attempt.unwrap_or(latest);
        if attempt == 0 || attempt > latest {
            return Err(Problem::not_found(
                format!("task {task_} has no attempt {attempt}"),
                format!("the latest is {latest}"),
            ));
        }
        Ok(attempt)
    })
    .await?;
    let path = log_path(&api.logs, &id, &task, attempt);
    if !wanted.follow {
        let text = aside(api, move |_| {
            log_tail(&path, tail)
                .map_err(|error| Problem::not_found(error.to_string(), "the log cannot be read"))
        });
        let (text, _) = text.await?;
        return Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-store")], text)
            .into_response());
    }
    let lines = futures_util::stream::unfold(Some((0u64, true)), move |state| {
        let (api, path, id, task) = (Arc::clone(&api), path.clone(), id.clone(), task.clone());
        async move {
            let (seen, first) = state?;
            if !first {
                tokio::time::sleep(LOG_LOOK).await;
            }
            let looked = aside(api, move |api| {
                // First whether it runs, then what it wrote: nothing that is written at the end is missed.
                let runs = api.plans.look(&id, |plan| {
                    plan.task(task.as_str()).is_some_and(|task| {
                        task.state.status == Status::Running && task.state.attempt == attempt
                    })
                })?;
                let (text, total) = log_tail(&path, LOG_BYTES_MAX).unwrap_or_default();
                Ok((runs, text, total))
            });
            let Ok((runs, text, total)) = looked.await else { return None };
            let fresh = usize::try_from(total.saturating_sub(seen)).unwrap_or(usize::MAX).min(text.len());
            let mut start = text.len() - fresh;
            while !text.is_char_boundary(start) {
                start += 1;
            }
            let mut said = String::new();
            if start < text.len() {
                said.push_str(&format!("event: log\ndata: {}\n\n", json!(&text[start..])));
            } else if first {
                said.push_str(": begun\n\n");
            }
            if !runs {
                said.push_str("event: end\ndata: {}\n\n");
            }
            let next = runs.then_some((total, false));
            Some((Ok::<_, std::convert::Infallible>(said), next))
        }
    });
    Ok(([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], HttpBody::from_stream(lines))
        .into_response())
}
