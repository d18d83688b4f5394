//! The tasks of a plan: in pages, or one in full.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::{EffectiveStatus, Plan, PlanId, Refusal, Task, TaskId};
use waypost_service::{
    CommitsOfTask, Repository, ServiceError, is_for_people, question_digest, task_changes, task_commits,
    task_row, whole_task, why,
};
use waypost_store::log_path;
use waypost_text::excerpt;

use super::attempts;
use super::extract::{Identity, Parameters, PlanPath, TaskPath, page_size};
use super::response::{Problem, Reply, Versioned};
use super::search;
use super::state::Api;
use crate::tokens::Role;

/// Tasks on a page: default and maximum.
const TASKS_DEFAULT: usize = 200;
const TASKS_MAX: usize = 1_000;
/// Maximum width of a description in a page, in columns.
const LABEL_COLUMNS_MAX: usize = 200;
/// Maximum number of listed attempts of a task; the latest ones are kept.
const ATTEMPTS_MAX: usize = 50;

/// Filters and pages the tasks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskQuery {
    after: Option<String>,
    limit: Option<usize>,
    standing: Option<String>,
    text: Option<String>,
    parent: Option<String>,
    /// Only tasks with labels, an assignee or comments.
    #[serde(default)]
    annotated: bool,
}

/// Returns the first line of a description, truncated.
pub(super) fn label(task: &Task, columns: usize) -> String {
    excerpt(task.spec.description.lines().next().unwrap_or_default(), columns).into_owned()
}

/// `GET /plans/{plan}/tasks`
pub(crate) fn list(
    api: &Api,
    (PlanPath(id), Parameters(listing)): (PlanPath, Parameters<TaskQuery>),
) -> Reply {
    let limit = page_size(listing.limit, TASKS_DEFAULT, TASKS_MAX)?;
    let standings = listing.standings()?;
    api.service.view(&id, |plan, warnings| {
        Ok(Versioned::at(page(plan, &listing, &standings, limit)?, plan.version()).warned(warnings))
    })?
}

impl TaskQuery {
    fn standings(&self) -> Result<Vec<EffectiveStatus>, Problem> {
        search::statuses(self.standing.as_deref().unwrap_or_default())
    }
}

fn page(
    plan: &Plan,
    listing: &TaskQuery,
    standings: &[EffectiveStatus],
    limit: usize,
) -> Result<Value, Problem> {
    let started = plan.as_started();
    let wanted = listing.text.as_deref().unwrap_or_default().to_lowercase();
    let fits = |task: &Task| {
        let standing = started.effective_status(task.spec.id.as_str());
        (standings.is_empty() || standing.is_some_and(|standing| standings.contains(&standing)))
            && listing
                .parent
                .as_ref()
                .is_none_or(|parent| task.spec.parent.as_ref().is_some_and(|own| own.as_str() == parent))
            && (!listing.annotated || is_annotated(task))
            && (wanted.is_empty()
                || task.spec.id.as_str().to_lowercase().contains(&wanted)
                || task.spec.description.to_lowercase().contains(&wanted))
    };
    if let Some(after) = &listing.after
        && plan.task(after).is_none()
    {
        let problem = Problem::from(ServiceError::from(plan.no_such_task(after)));
        return Err(problem.with_hint("start again without `after`"));
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
            rows.push(row(&started, task));
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

fn is_annotated(task: &Task) -> bool {
    let state = &task.state;
    !state.labels().is_empty() || state.assignee().is_some() || !state.comments().is_empty()
}

pub(super) fn row(plan: &Plan, task: &Task) -> Value {
    let mut fields = task_row(plan, task, label(task, LABEL_COLUMNS_MAX));
    if task.spec.priority != 0 {
        fields.insert("priority".to_owned(), task.spec.priority.into());
    }
    for (name, at) in [("started_at", task.state.started_at), ("finished_at", task.state.finished_at)] {
        if at.is_some() {
            fields.insert(name.to_owned(), json!(at));
        }
    }
    Value::Object(fields)
}

/// `GET /plans/{plan}/tasks/{task}`
pub(crate) fn get(api: &Api, TaskPath(id, task): TaskPath) -> Reply {
    let config = api.service.config()?;
    let found = api.service.view(&id, |plan, warnings| {
        let found = plan.task(task.as_str()).ok_or_else(|| plan.no_such_task(task.as_str()))?;
        let mut value = whole_task(plan, found);
        if found.state.question().is_some() || is_for_people(&config, plan, found) {
            value["question_digest"] = question_digest(plan.id(), found).into();
        }
        Ok((value, plan.version(), warnings.to_vec()))
    })?;
    let (mut value, version, warnings) = found.map_err(|refusal: Refusal| ServiceError::from(refusal))?;
    value["attempts"] = json!(attempts_of(api, &id, &task)?);
    value["why"] = json!(why(api.plans(), Some(&config), &id, &task)?.reasons);
    Ok(Versioned::at(value, version).warned(&warnings))
}

/// `GET /plans/{plan}/tasks/{task}/commits`: the commits that name the task, the latest first.
pub(crate) fn commits(api: &Api, TaskPath(id, task): TaskPath) -> Reply {
    let created = api.service.view(&id, |plan, _| match plan.task(task.as_str()) {
        Some(_) => Ok(plan.state().created_at),
        None => Err(plan.no_such_task(task.as_str())),
    })?;
    let created = created.map_err(|refusal: Refusal| ServiceError::from(refusal))?;
    Ok(Versioned::of(match repository(api)? {
        Some(repository) => json!(task_commits(&repository, &id, &task, created)),
        None => json!(CommitsOfTask::default()),
    }))
}

/// Takes the repository around the workspace, if there is one.
fn repository(api: &Api) -> Result<Option<MutexGuard<'_, Repository>>, Problem> {
    match api.repository.as_ref().map(Mutex::try_lock) {
        None => Ok(None),
        Some(Ok(repository)) => Ok(Some(repository)),
        Some(Err(TryLockError::Poisoned(poisoned))) => Ok(Some(poisoned.into_inner())),
        // A search takes up to three seconds; more at once would only slow each other down.
        Some(Err(TryLockError::WouldBlock)) => {
            let busy = "the repository is being searched for another request";
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, busy, "retry"))
        }
    }
}

/// Which attempt; by default the latest.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesQuery {
    attempt: Option<u32>,
}

/// `GET /plans/{plan}/tasks/{task}/changes`: what an agent changed in the worktree of an attempt. Files that are not committed may
/// hold anything, so only people see them.
pub(crate) fn changes(
    api: &Api,
    (Identity { role, .. }, TaskPath(id, task), Parameters(wanted)): (
        Identity,
        TaskPath,
        Parameters<ChangesQuery>,
    ),
) -> Reply {
    if role != Role::Person {
        let hint = "use a person's token";
        return Err(Problem::new(StatusCode::FORBIDDEN, "only people see the changes of a worktree", hint));
    }
    let latest = api.service.view(&id, |plan, _| match plan.task(task.as_str()) {
        Some(found) => Ok(found.state.attempt),
        None => Err(plan.no_such_task(task.as_str())),
    })?;
    let latest = latest.map_err(|refusal: Refusal| ServiceError::from(refusal))?;
    let attempt = wanted.attempt.unwrap_or(latest);
    if attempt == 0 || attempt > latest {
        let problem = Problem::not_found("the task has no such attempt", "omit `attempt` for the latest");
        return Err(problem);
    }
    let repository = repository(api)?;
    let found = task_changes(repository.as_deref(), &worktrees_of(api), (&id, &task, attempt));
    Ok(Versioned::of(json!(found)))
}

/// The folder with the worktrees of attempts.
pub(super) fn worktrees_of(api: &Api) -> PathBuf {
    api.logs.with_file_name("worktrees")
}

/// Returns the attempts of a task, each with whether its log exists.
fn attempts_of(api: &Api, id: &PlanId, task: &TaskId) -> Result<Vec<Value>, Problem> {
    let mut found =
        attempts::attempts(api.plans(), id, Some(task))?.remove(task.as_str()).unwrap_or_default();
    let from = found.len().saturating_sub(ATTEMPTS_MAX);
    let found = found.split_off(from);
    found
        .into_iter()
        .map(|attempt| {
            let mut value = json!(attempt);
            value["has_log"] = json!(has_log(api, id, task, attempt.attempt)?);
            Ok(value)
        })
        .collect()
}

/// Whether the log of the attempt exists on this machine or as a copy in the store.
fn has_log(api: &Api, id: &PlanId, task: &TaskId, attempt: u32) -> Result<bool, Problem> {
    Ok(log_path(&api.logs, id, task, attempt).exists()
        || api.plans().attempt_log(id, task, attempt)?.is_some())
}
