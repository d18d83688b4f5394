//! Whose a task is. Who took it has it until the lease is over, and two sessions of one agent are two: what one of them
//! works on, the other gets only if it says that the first is gone.

use waypost_core::{Command, Plan, PlanId, Status, TaskId, Timestamp};
use waypost_service::give_back_lost;

use super::{plan_facts, plan_ref};
use crate::tool_call::Call;
use crate::tool_error::ToolError;
use crate::workspace::Write;

/// Another session that works on a task.
pub(super) struct Holder {
    attempt: u32,
    /// When it is thought gone unless it says something before.
    until: Option<Timestamp>,
}

/// How somebody who works on a task stands to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseOwner {
    /// The caller itself.
    Mine,
    /// The same agent in another session.
    OtherSession,
    /// Somebody else.
    Theirs,
}

pub(super) fn lease_owner(call: &Call, worker: &str) -> LeaseOwner {
    // Who works under the agent's name alone has said nothing of sessions.
    if worker == call.worker || worker == call.by.to_string() {
        LeaseOwner::Mine
    } else if call.by.is_worker(worker) {
        LeaseOwner::OtherSession
    } else {
        LeaseOwner::Theirs
    }
}

/// Who works on a task, if anybody does.
pub(super) fn worker_of(plan: &Plan, task: &TaskId) -> Option<String> {
    let running = plan.task(task.as_str()).filter(|task| task.state.status == Status::Running)?;
    running.state.worker.clone()
}

/// The number of the latest attempt at a task.
pub(super) fn attempt_of(plan: &Plan, task: &TaskId) -> u32 {
    plan.task(task.as_str()).map_or(0, |task| task.state.attempt)
}

/// The caller's other session that works on a task, if there is one. Whoever was not heard of for too long works on
/// nothing.
pub(super) fn other_session(call: &Call, plan: &PlanId, task: &TaskId) -> Result<Option<Holder>, ToolError> {
    give_back_lost(&call.workspace.plans, Some(plan))?;
    let attempt = plan_ref::read(call, plan, |plan| {
        let worker = worker_of(plan, task)?;
        (lease_owner(call, &worker) == LeaseOwner::OtherSession).then(|| attempt_of(plan, task))
    })?;
    let Some(attempt) = attempt else { return Ok(None) };
    let leases = call.workspace.leases_of(&call.by)?;
    let lease = leases.into_iter().find(|lease| lease.plan == *plan && lease.task == *task);
    Ok(Some(Holder { attempt, until: lease.and_then(|lease| lease.until) }))
}

/// Takes a task from the caller's other session if it says so, and refuses otherwise.
pub(super) fn from_other_session(
    call: &Call,
    plan: &PlanId,
    task: &TaskId,
    take_over: bool,
) -> Result<(), ToolError> {
    match other_session(call, plan, task)? {
        None => Ok(()),
        Some(holder) if take_over => {
            let reason = "taken over by another session of the same agent".to_owned();
            let release = Command::ReleaseTask { task: task.clone(), attempt: Some(holder.attempt), reason };
            start(call, plan, task, vec![release])
        }
        Some(holder) => {
            let until = holder.until.map(|until| format!(", until {until} if it says nothing more"));
            let message = format!(
                "task {task} was taken by another session of {}{}",
                call.by.name,
                until.unwrap_or_default()
            );
            let hint = "if that session is gone, send the same with take_over: true; otherwise task_next gives you another";
            Err(ToolError::new(message, hint))
        }
    }
}

/// Starts a task for the caller, after what has to happen first.
pub(super) fn start(
    call: &Call,
    plan: &PlanId,
    task: &TaskId,
    mut commands: Vec<Command>,
) -> Result<(), ToolError> {
    commands.push(Command::StartTask { task: task.clone(), worker: call.worker.clone() });
    let write = Write {
        plan: plan.clone(),
        by: call.by.clone(),
        commands,
        known_version: None,
        lease_seconds: Some(plan_facts::LEASE_SECONDS),
    };
    call.workspace.write(write).map(drop)
}
