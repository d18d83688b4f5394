//! What is done with a plan or a task as it stands: approve, start, pause, answer, mark as done, and the like.

use std::sync::Arc;

use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::{Ask, Command, Event, Json, Outcome, Phase, Plan, PlanId, Status, TaskId, differences};
use waypost_service::admission as admit;
use waypost_service::{Disclosure, disclosure, is_to_be_run};

use super::response::{Problem, Versioned};
use super::approval_state::approval as approval_of;
use super::extract::{Body, IfMatch, PlanPath, TaskPath, Writer};
use super::{Api, run_blocking};

/// Tasks whose commands are told.
const RUNS_MAX: usize = 500;
/// Differences since the last approval that are told.
const DIFFERENCES_MAX: usize = 200;
/// Versions that are looked through for the last approval.
const VERSIONS_LOOKED_MAX: u64 = 5_000;

/// ActionBody that go with an action.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionBody {
    message: Option<String>,
    note: Option<String>,
    reason: Option<String>,
    summary: Option<String>,
    phase: Option<String>,
    result: Option<String>,
    output: Option<Value>,
    error: Option<String>,
    progress: Option<String>,
    answer: Option<String>,
    question: Option<String>,
    #[serde(default)]
    choices: Vec<String>,
    /// The attempt in whose name something is said: it is refused if somebody else has started the task since.
    attempt: Option<u32>,
}

fn named(names: &[(String, String)], wanted: &str) -> String {
    names.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone()).unwrap_or_default()
}

/// `POST /plans/{plan}/actions/{action}`
pub(crate) async fn on_plan(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
    Path(names): Path<Vec<(String, String)>>,
    IfMatch(known): IfMatch,
    writer: Writer,
    Body(words): Body<ActionBody>,
) -> Result<Versioned<Value>, Problem> {
    let action = named(&names, "action");
    run_blocking(api, move |api| {
        let version = api.plans.look(&id, Plan::version)?;
        let text = |said: Option<String>| said.unwrap_or_default();
        let command = match action.as_str() {
            "request-approval" => Command::RequestApproval { message: text(words.message) },
            "approve" => Command::Approve { version: known.unwrap_or(version), note: text(words.note) },
            "reject" => Command::Reject { reason: text(words.reason) },
            "start" => Command::Activate,
            "pause" => Command::Pause { reason: text(words.reason) },
            "resume" => Command::Resume,
            "cancel" => Command::FinishPlan { phase: Phase::Cancelled, summary: text(words.reason) },
            "retry" => Command::RetryPlan,
            "archive" => Command::Archive,
            "unarchive" => Command::Unarchive,
            "finish" => Command::FinishPlan { phase: ended(words.phase.as_deref())?, summary: text(words.summary) },
            other => {
                return Err(Problem::not_found(
                    format!("no action is called {other}"),
                    "one of request-approval, approve, reject, start, pause, resume, cancel, retry, archive, unarchive, finish",
                ));
            }
        };
        let committed = api.write(&writer.0, &id, vec![command], known)?;
        let phase = api.plans.look(&id, |plan| plan.state().phase)?;
        Ok(Versioned::at(json!({ "id": id, "version": committed.version, "phase": phase }), committed.version))
    })
    .await
}

fn ended(word: Option<&str>) -> Result<Phase, Problem> {
    match word {
        None | Some("completed") => Ok(Phase::Completed),
        Some("failed") => Ok(Phase::Failed),
        Some("cancelled") => Ok(Phase::Cancelled),
        Some(other) => {
            Err(Problem::bad(format!("a plan does not end {other:?}"), "one of completed, failed, cancelled"))
        }
    }
}

/// `POST /plans/{plan}/tasks/{task}/actions/{action}`
pub(crate) async fn on_task(
    State(api): State<Arc<Api>>,
    TaskPath(id, task): TaskPath,
    Path(names): Path<Vec<(String, String)>>,
    IfMatch(known): IfMatch,
    writer: Writer,
    Body(words): Body<ActionBody>,
) -> Result<Versioned<Value>, Problem> {
    let action = named(&names, "action");
    run_blocking(api, move |api| {
        let running = api.plans.look(&id, |plan| {
            let found = plan.task(task.as_str());
            found.filter(|task| task.state.status == Status::Running).map(|task| task.state.attempt)
        })?;
        let attempt = words.attempt.or(running);
        let command = command(&action, &task, words, attempt, &writer)?;
        let committed = api.write(&writer.0, &id, vec![command], known)?;
        let told = api.plans.look(&id, |plan| {
            let found = plan.task(task.as_str());
            json!({
                "id": id,
                "task": task,
                "version": committed.version,
                "standing": plan.standing(task.as_str()),
                "attempt": found.map(|found| found.state.attempt),
            })
        })?;
        Ok(Versioned::at(told, committed.version))
    })
    .await
}

fn command(
    action: &str,
    task: &TaskId,
    words: ActionBody,
    attempt: Option<u32>,
    writer: &Writer,
) -> Result<Command, Problem> {
    let (task, said) = (task.clone(), words.attempt.is_some());
    let needed = |said: Option<String>, name: &str| {
        let said = said.filter(|said| !said.trim().is_empty());
        said.ok_or_else(|| Problem::bad(format!("{name} is missing"), format!("send {{\"{name}\": …}}")))
    };
    let finish = |task, outcome| {
        // Whoever works on it says so; a person or an agent may also tick off what nobody works on.
        Command::FinishTask { task, attempt, outcome, retry: None }
    };
    Ok(match action {
        "claim" => Command::StartTask { task, worker: writer.0.to_string() },
        "progress" => {
            let attempt = attempt.ok_or_else(|| {
                Problem::new(
                    axum::http::StatusCode::CONFLICT,
                    format!("nobody works on {task}"),
                    "claim it first",
                )
            })?;
            Command::ReportProgress {
                task,
                attempt: Some(attempt),
                progress: needed(words.progress, "progress")?,
            }
        }
        "done" => {
            let output = words.output.as_ref().map(Json::of);
            finish(task, Outcome::Done { result: words.result, output, evidence: None })
        }
        "fail" => finish(task, Outcome::Failed { error: needed(words.error, "error")?, evidence: None }),
        "skip" => finish(task, Outcome::Skipped { reason: words.reason }),
        "retry" => Command::RetryTask { task },
        "cancel" => Command::CancelTask { task, reason: words.reason.unwrap_or_default() },
        "ask" => {
            let text = needed(words.question, "question")?;
            let ask = Ask { text, choices: words.choices, state: None };
            Command::AskQuestion { task, attempt, ask: Box::new(ask) }
        }
        "answer" => Command::AnswerQuestion { task, answer: needed(words.answer, "answer")? },
        "release" => Command::ReleaseTask {
            task,
            attempt: attempt.filter(|_| said || !writer.is_person()),
            reason: words.reason.unwrap_or_default(),
        },
        other => {
            return Err(Problem::not_found(
                format!("no action is called {other}"),
                "one of claim, progress, done, fail, skip, retry, cancel, ask, answer, release",
            ));
        }
    })
}

/// `GET /plans/{plan}/approval`: what a person has to know before they decide.
pub(crate) async fn approval(
    State(api): State<Arc<Api>>,
    PlanPath(id): PlanPath,
) -> Result<Versioned<Value>, Problem> {
    run_blocking(api, move |api| {
        let mut value = approval_of(api, &id)?;
        let (draft, version) = api.plans.look(&id, |plan| (plan.to_draft(), plan.version()))?;
        let runs = || draft.tasks.iter().filter(|task| is_to_be_run(task));
        let told: Vec<Value> = runs()
            .take(RUNS_MAX)
            .map(|task| {
                let work = task.spec.work.as_ref();
                let Disclosure { program, particulars } = disclosure(&api.config, &task.spec);
                // These have a field of their own, in which they are JSON.
                let particulars = particulars.iter().filter(|(name, _)| *name != "inputs");
                let named = |(name, text): &(&str, String)| json!({ "name": name, "text": text });
                json!({
                    "task": task.spec.id,
                    "executor": work.map(|work| work.executor.clone()).unwrap_or_default(),
                    "commands": [program],
                    "inputs": work.map(|work| work.inputs.value()),
                    "particulars": particulars.map(named).collect::<Vec<_>>(),
                })
            })
            .collect();
        value["runs"] = json!(told);
        value["runs_total"] = json!(runs().count());
        let problems = admit::problems(&api.config, &draft);
        value["problems"] =
            problems.iter().take(DIFFERENCES_MAX).map(|problem| json!(problem.to_string())).collect();
        if let Some(approved) = last_approved(api, &id, version)? {
            let before = api.plans.at_version(&id, approved)?.to_draft();
            let mut found = differences(&before, &draft);
            found.retain(|difference| !is_progress(difference));
            let total = found.len();
            found.truncate(DIFFERENCES_MAX);
            value["since_approval"] =
                json!({ "version": approved, "differences": found, "differences_total": total });
        }
        Ok(Versioned::at(value, version))
    })
    .await
}

/// Whether a difference is only that work went on.
fn is_progress(difference: &waypost_core::Difference) -> bool {
    match difference {
        waypost_core::Difference::Task { field, .. } => *field == "state" || *field == "status",
        waypost_core::Difference::Plan { .. }
        | waypost_core::Difference::Added { .. }
        | waypost_core::Difference::Removed { .. }
        | waypost_core::Difference::Reordered {} => false,
    }
}

/// The version that a person approved last, if the plan is another one by now.
fn last_approved(api: &Api, id: &PlanId, version: u64) -> Result<Option<u64>, Problem> {
    let mut before = version;
    let stop = version.saturating_sub(VERSIONS_LOOKED_MAX);
    while before > stop {
        let from = before.saturating_sub(500).max(stop);
        let entries = api.plans.history(id, from, usize::try_from(before - from).unwrap_or(500))?;
        for entry in entries.iter().rev().filter(|entry| entry.version <= before) {
            for event in &entry.events {
                if let Event::PlanApproved { version, .. } = event {
                    return Ok(Some(*version));
                }
            }
        }
        before = from;
    }
    Ok(None)
}
