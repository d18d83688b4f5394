//! The attempts of tasks: from the tasks themselves, and from the history where a task was started more than once.

use std::collections::BTreeMap;

use serde::Serialize;
use waypost_core::{Event, PlanId, Status, Task, TaskId, Timestamp};
use waypost_store::{PlanStore, StoreError, WriteError};

/// Maximum number of versions searched for earlier attempts.
const VERSIONS_SEARCHED_MAX: u64 = 20_000;
/// Versions read at a time.
const VERSIONS_READ: usize = 1_000;

/// One start of a task, and its outcome.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Attempt {
    pub(super) attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Attempt {
    fn begun(attempt: u32, worker: &str, started_at: Option<Timestamp>) -> Self {
        let worker = Some(worker.to_owned());
        Self { attempt, worker, started_at, finished_at: None, outcome: None, error: None }
    }

    /// Returns the latest attempt, from the state of the task.
    fn latest(task: &Task) -> Option<Self> {
        let state = &task.state;
        (state.attempt > 0).then(|| Self {
            attempt: state.attempt,
            worker: state.worker.clone(),
            started_at: state.started_at,
            finished_at: state.finished_at,
            outcome: (state.status != Status::Running && state.finished_at.is_some())
                .then(|| state.status.as_str()),
            error: state.error.clone(),
        })
    }
}

/// Returns the attempts of one task or of all, by task. The state of a task holds its latest attempt. The history is
/// read only for earlier ones, at most [`VERSIONS_SEARCHED_MAX`] versions of it.
pub(super) fn attempts(
    plans: &PlanStore,
    id: &PlanId,
    only: Option<&TaskId>,
) -> Result<BTreeMap<String, Vec<Attempt>>, WriteError> {
    let (mut found, several, version) = plans.view(id, |plan, _| {
        let mut found: BTreeMap<String, Vec<Attempt>> = BTreeMap::new();
        let mut several = false;
        let tasks: Vec<&Task> = match only {
            Some(only) => plan.task(only.as_str()).into_iter().collect(),
            None => plan.tasks().map(|(task, _)| task).collect(),
        };
        for task in tasks {
            // Only the history records the outcome of an attempt that was released, retried or ended with a question.
            several |=
                task.state.attempt > 1 || task.state.status == Status::Pending && task.state.attempt > 0;
            if let Some(attempt) = Attempt::latest(task) {
                found.insert(task.spec.id.to_string(), vec![attempt]);
            }
        }
        (found, several, plan.version())
    })?;
    if several {
        let mut earlier = earlier(plans, id, version, &found)?;
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
    plans: &PlanStore,
    id: &PlanId,
    version: u64,
    wanted: &BTreeMap<String, Vec<Attempt>>,
) -> Result<BTreeMap<String, Vec<Attempt>>, WriteError> {
    let mut found: BTreeMap<String, Vec<Attempt>> = BTreeMap::new();
    let mut after = version.saturating_sub(VERSIONS_SEARCHED_MAX);
    loop {
        let entries = match plans.history(id, after, VERSIONS_READ) {
            // The attempts after the damage are only known from the tasks themselves.
            Err(StoreError::Corrupt { .. }) => return Ok(found),
            entries => entries?,
        };
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
            // Replaces the entry from when the attempt was queued.
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
        Event::PlanCreated { .. }
        | Event::PlanRevised { .. }
        | Event::PlanRestored { .. }
        | Event::PlanMerged { .. }
        | Event::TasksAdded { .. }
        | Event::TaskRevised { .. }
        | Event::TasksRemoved { .. }
        | Event::TaskMoved { .. }
        | Event::TasksReordered { .. }
        | Event::TasksReset { .. }
        | Event::ApprovalRequested { .. }
        | Event::PlanApproved { .. }
        | Event::StartRefused { .. }
        | Event::PlanRejected { .. }
        | Event::ApprovalVoided { .. }
        | Event::PlanActivated { .. }
        | Event::PlanPaused { .. }
        | Event::PlanResumed { .. }
        | Event::PlanFinished { .. }
        | Event::PlanArchived { .. }
        | Event::PlanUnarchived { .. }
        | Event::TaskQueued { .. }
        | Event::TaskStarted { .. }
        | Event::TaskProgressed { .. }
        | Event::QuestionAnswered { .. }
        | Event::GateRecorded { .. }
        | Event::TasksRetried { .. }
        | Event::TaskRefined { .. }
        | Event::DigestAttached { .. }
        | Event::TokensCharged { .. }
        | Event::TaskRolledBack { .. }
        | Event::OutputReceived { .. }
        | Event::OutputWithdrawn { .. }
        | Event::TaskHeld { .. }
        | Event::TaskUnheld { .. }
        | Event::TaskCommented { .. }
        | Event::TaskLabeled { .. }
        | Event::TaskAssigned { .. } => {}
    }
}
