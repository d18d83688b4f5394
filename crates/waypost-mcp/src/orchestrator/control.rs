//! `run_cancel`, `run_why` and `run_log`: cancel a run, explain why a task waits, show the log of an attempt.

use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::{EffectiveStatus, Phase, PlanId, TaskId};
use waypost_service::Guard;
use waypost_store::{FoundLog, find_log};

use super::lookup;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Bytes of a log in a reply when the caller gives no number.
const LOG_BYTES: u64 = 4 * 1024;
/// Maximum bytes of a log in a reply.
const LOG_BYTES_MAX: u64 = 64 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cancel {
    plan: String,
    task: Option<String>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskArgs {
    plan: String,
    task: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    plan: String,
    task: String,
    attempt: Option<u32>,
    bytes: Option<u64>,
}

pub(super) fn cancel(call: &Call) -> Result<Answer, ToolError> {
    let Cancel { plan, task, reason } = call.arguments()?;
    let id = call.plan(&plan)?;
    let task = task.map(|task| lookup::task(call, &id, &task)).transpose()?;
    let (phase, version) =
        call.workspace.plans().with_plan(&id, |plan| (plan.state().phase, plan.version()))?;
    match phase {
        Phase::Cancelled if task.is_none() => return Ok(stopped(&id, version, phase, None)),
        // A finished run keeps its outcome.
        Phase::Completed | Phase::Failed if task.is_none() => {
            let message = format!("plan {id} has ended as {} already", phase.as_str());
            return Err(ToolError::new(message, "nothing is left to cancel"));
        }
        Phase::Draft
        | Phase::AwaitingApproval
        | Phase::Active
        | Phase::Paused
        | Phase::Completed
        | Phase::Failed
        | Phase::Cancelled => {}
    }
    let service = call.service();
    let written = match &task {
        Some(task) => service.cancel_task(&call.caller, &id, task, &reason, Guard::NONE)?,
        None => service.finish(&call.caller, &id, Phase::Cancelled, &reason, Guard::NONE)?,
    };
    let phase = call.workspace.plans().with_plan(&id, |plan| plan.state().phase)?;
    Ok(stopped(&id, written.version, phase, task.as_ref()))
}

fn stopped(id: &PlanId, version: u64, phase: Phase, task: Option<&TaskId>) -> Answer {
    let mut answer = json!({ "id": id, "version": version, "phase": phase });
    if let Some(task) = task {
        answer["task"] = task.as_str().into();
    }
    Answer::of(answer)
}

pub(super) fn why(call: &Call) -> Result<Answer, ToolError> {
    let TaskArgs { plan, task } = call.arguments()?;
    let id = call.plan(&plan)?;
    let task = lookup::task(call, &id, &task)?;
    let why =
        waypost_service::why(call.workspace.plans(), call.service().config().ok().as_deref(), &id, &task)?;
    // The structured facts add nothing to the messages: omit them to keep the reply small.
    let waits: Vec<Value> =
        why.reasons.iter().map(|reason| json!({ "kind": reason.kind, "message": reason.words })).collect();
    let standing = why.standing.map_or("gone", EffectiveStatus::as_str);
    Ok(Answer::of(json!({ "id": id, "task": task, "standing": standing, "waits_for": waits })))
}

pub(super) fn log(call: &Call) -> Result<Answer, ToolError> {
    let Log { plan, task, attempt, bytes } = call.arguments()?;
    let id = call.plan(&plan)?;
    let task = lookup::task(call, &id, &task)?;
    let plans = call.workspace.plans();
    let (latest, worker) = plans.with_plan(&id, |plan| {
        let state = plan.task(task.as_str()).map(|task| &task.state);
        (state.map_or(0, |state| state.attempt), state.and_then(|state| state.worker.clone()))
    })?;
    let attempt = attempt.unwrap_or(latest);
    if attempt == 0 || attempt > latest {
        let message = match latest {
            0 => format!("task {task} has not started"),
            latest => format!("task {task} has no attempt {attempt}: the latest is {latest}"),
        };
        let refused = ToolError::new(message, "run_why shows what it waits for");
        return Err(refused.with_fact("code", "not_found"));
    }
    let worker = worker.filter(|_| attempt == latest);
    let bytes_max = bytes.unwrap_or(LOG_BYTES).min(LOG_BYTES_MAX);
    let logs = call.workspace.own.join("logs");
    let found = find_log(plans, &logs, (&id, &task, attempt), worker.as_deref(), bytes_max)
        .map_err(|error| ToolError::new(format!("the log of {task} cannot be read: {error}"), "try again"))?;
    let (log, total, note) = match found {
        FoundLog::File { text, bytes } => (text, bytes, None),
        FoundLog::Copy(copy) => (
            copy.text,
            copy.bytes,
            Some(format!("a copy of its end; the file is with worker {}", copy.worker)),
        ),
        FoundLog::Nothing { elsewhere: None } => (String::new(), 0, Some("no output".to_owned())),
        FoundLog::Nothing { elsewhere: Some(worker) } => {
            let note = format!("no output yet, or only on the machine of its worker {worker}");
            (String::new(), 0, Some(note))
        }
    };
    let mut answer = json!({ "id": id, "task": task, "attempt": attempt, "log": log, "bytes": total });
    if let Some(note) = note {
        answer["note"] = note.into();
    }
    Ok(Answer::of(answer))
}
