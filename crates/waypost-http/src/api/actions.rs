//! Actions on a plan or a task: approve, start, pause, claim, answer, mark as done, and the like.

use std::slice::from_ref;

use axum::extract::Path;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::{Json, Phase, QuestionRequest, TaskId};
use waypost_service::{ClaimOptions, NewApproval, Seen, TaskRef, TaskReport};

use super::extract::{TaskPath, Write, parameter};
use super::response::{Problem, Reply, Versioned};
use super::state::Api;

/// The actions on a plan.
pub(super) const PLAN_ACTIONS: [&str; 11] = [
    "request-approval",
    "approve",
    "reject",
    "start",
    "pause",
    "resume",
    "cancel",
    "retry",
    "archive",
    "unarchive",
    "finish",
];

/// The actions on a task.
pub(super) const TASK_ACTIONS: [&str; 12] = [
    "claim", "progress", "done", "fail", "skip", "retry", "cancel", "hold", "unhold", "ask", "answer",
    "release",
];

/// What goes with an action; each takes only some of it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionBody {
    message: Option<String>,
    note: Option<String>,
    /// For approve: the version that the person has seen; `If-Match` may name it instead.
    version: Option<u64>,
    /// For approve: the digest of the preview that the person has seen. For answer, and for done and skip
    /// of a task for people: that of what it asks, without which `If-Match` is needed. For fail, it may be named.
    digest: Option<String>,
    /// For approve: tasks that are held, so that they do not start yet.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    hold: Vec<TaskId>,
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
    /// The attempt that reports, as claim returned it. Refused if the task has been started again since. Without it, only the
    /// holder of the task and people may report.
    attempt: Option<u32>,
    /// Seconds of the lease that claim takes; 0 never expires. Without it 900, or as long as the lease that the caller holds.
    lease_seconds: Option<u32>,
    /// Takes the task from another session of the same agent: for claim, and for reports without an attempt.
    #[serde(default)]
    take_over: bool,
    /// For done: an agent's result that reads as if the task were not done is accepted.
    #[serde(default)]
    sure: bool,
}

impl ActionBody {
    /// Refuses fields that the action does not take: they would have no effect.
    fn takes(&self, action: &str, fields: &[&str]) -> Result<(), Problem> {
        let given = [
            ("message", self.message.is_some()),
            ("note", self.note.is_some()),
            ("version", self.version.is_some()),
            ("digest", self.digest.is_some()),
            ("hold", !self.hold.is_empty()),
            ("reason", self.reason.is_some()),
            ("summary", self.summary.is_some()),
            ("phase", self.phase.is_some()),
            ("result", self.result.is_some()),
            ("output", self.output.is_some()),
            ("error", self.error.is_some()),
            ("progress", self.progress.is_some()),
            ("answer", self.answer.is_some()),
            ("question", self.question.is_some()),
            ("choices", !self.choices.is_empty()),
            ("attempt", self.attempt.is_some()),
            ("lease_seconds", self.lease_seconds.is_some()),
            ("take_over", self.take_over),
            ("sure", self.sure),
        ];
        let surplus = given.iter().find(|(name, is_given)| *is_given && !fields.contains(name));
        let Some((name, _)) = surplus else { return Ok(()) };
        let hint = match fields {
            [] => "leave it out".to_owned(),
            fields => format!("{action} takes {}", fields.join(", ")),
        };
        Err(Problem::bad(format!("{action} takes no {name}"), hint))
    }
}

/// Returns the fields that an action on a plan takes.
fn plan_fields(action: &str) -> &'static [&'static str] {
    match action {
        "request-approval" => &["message"],
        "approve" => &["version", "digest", "note", "hold"],
        "reject" | "pause" | "cancel" => &["reason"],
        "finish" => &["phase", "summary"],
        _ => &[],
    }
}

/// Returns the fields that an action on a task takes.
fn task_fields(action: &str) -> &'static [&'static str] {
    match action {
        "claim" => &["lease_seconds", "take_over"],
        "progress" => &["progress", "attempt", "take_over"],
        "done" => &["result", "output", "sure", "attempt", "take_over", "digest"],
        "fail" => &["error", "attempt", "take_over", "digest"],
        "skip" => &["reason", "attempt", "take_over", "digest"],
        "release" => &["reason", "attempt", "take_over"],
        "ask" => &["question", "choices", "attempt", "take_over"],
        "answer" => &["answer", "digest"],
        "cancel" | "hold" => &["reason"],
        _ => &[],
    }
}

/// `POST /plans/{plan}/actions/{action}`
pub(crate) fn on_plan(
    api: &Api,
    (Path(path), Write { plan: id, guard, by, body }): (Path<Vec<(String, String)>>, Write<ActionBody>),
) -> Reply {
    let action = parameter(&path, "action").to_owned();
    let service = &api.service;
    body.takes(&action, plan_fields(&action))?;
    let reason = body.reason.unwrap_or_default();
    let written = match action.as_str() {
        "request-approval" => service.request_approval(&by, &id, &body.message.unwrap_or_default(), guard)?,
        "approve" => {
            let seen = body.version.or(guard.known_version).zip(body.digest);
            let seen = seen.map(|(version, digest)| Seen { version, digest });
            let note = body.note.unwrap_or_default();
            let new = NewApproval { seen, note: &note, hold: &body.hold, signing: None };
            service.approve_with(&by, &id, new, guard)?
        }
        "reject" => service.reject(&by, &id, &reason, guard)?,
        "start" => service.activate(&by, &id, guard)?,
        "pause" => service.pause(&by, &id, &reason, guard)?,
        "resume" => service.resume(&by, &id, guard)?,
        "cancel" => service.finish(&by, &id, Phase::Cancelled, &reason, guard)?,
        "retry" => service.retry_plan(&by, &id, guard)?,
        "archive" => service.archive(&by, &id, guard)?,
        "unarchive" => service.unarchive(&by, &id, guard)?,
        "finish" => {
            let phase = final_phase(body.phase.as_deref())?;
            service.finish(&by, &id, phase, &body.summary.unwrap_or_default(), guard)?
        }
        other => {
            return Err(Problem::not_found(
                format!("unknown action {other}"),
                format!("one of {}", PLAN_ACTIONS.join(", ")),
            ));
        }
    };
    let phase = service.read(&id, |plan| plan.state().phase)?;
    let reply = json!({ "id": id, "version": written.version, "changed": written.changed, "phase": phase });
    Ok(Versioned::at(reply, written.version))
}

fn final_phase(word: Option<&str>) -> Result<Phase, Problem> {
    match word {
        None | Some("completed") => Ok(Phase::Completed),
        Some("failed") => Ok(Phase::Failed),
        Some("cancelled") => Ok(Phase::Cancelled),
        Some(other) => Err(Problem::bad(
            format!("a plan cannot finish as {other:?}"),
            "one of completed, failed, cancelled",
        )),
    }
}

type TaskActionRequest = (TaskPath, Path<Vec<(String, String)>>, Write<ActionBody>);

/// `POST /plans/{plan}/tasks/{task}/actions/{action}`
pub(crate) fn on_task(
    api: &Api,
    (TaskPath(id, task), Path(path), Write { plan: _, guard, by, body }): TaskActionRequest,
) -> Reply {
    let action = parameter(&path, "action").to_owned();
    let service = &api.service;
    body.takes(&action, task_fields(&action))?;
    let of = TaskRef {
        plan: &id,
        task: &task,
        attempt: body.attempt,
        take_over: body.take_over,
        seen: body.digest.as_deref(),
    };
    let report = |report: TaskReport| service.report(&by, of, report, guard);
    let written = match action.as_str() {
        "claim" => {
            let (lease_seconds, take_over) = (body.lease_seconds, body.take_over);
            let options = ClaimOptions { lease_seconds, take_over, reopen: false };
            service.claim(&by, &id, &task, options, guard)?.written
        }
        "progress" => report(TaskReport::Progress(body.progress.unwrap_or_default()))?,
        "done" => {
            let output = body.output.as_ref().map(Json::of);
            report(TaskReport::Done { result: body.result, output, sure: body.sure })?
        }
        "fail" => report(TaskReport::Failed { error: body.error.unwrap_or_default() })?,
        "skip" => report(TaskReport::Skipped { reason: body.reason })?,
        "release" => report(TaskReport::Released { reason: body.reason.unwrap_or_default() })?,
        "ask" => {
            let text = body.question.unwrap_or_default();
            let ask = QuestionRequest { text, choices: body.choices, ..QuestionRequest::default() };
            report(TaskReport::Question(Box::new(ask)))?
        }
        "answer" => service.answer(&by, of, body.answer.as_deref().unwrap_or_default(), guard)?,
        "retry" => service.retry_task(&by, &id, &task, guard)?,
        "cancel" => service.cancel_task(&by, &id, &task, &body.reason.unwrap_or_default(), guard)?,
        "hold" => service.hold_tasks(&by, &id, from_ref(&task), &body.reason.unwrap_or_default(), guard)?,
        "unhold" => service.unhold_tasks(&by, &id, from_ref(&task), guard)?,
        other => {
            return Err(Problem::not_found(
                format!("unknown action {other}"),
                format!("one of {}", TASK_ACTIONS.join(", ")),
            ));
        }
    };
    let reply = service.read(&id, |plan| {
        json!({
            "id": id,
            "task": task,
            "version": written.version,
            "changed": written.changed,
            "standing": plan.effective_status(task.as_str()),
            "attempt": plan.task(task.as_str()).map(|found| found.state.attempt),
        })
    })?;
    Ok(Versioned::at(reply, written.version))
}
