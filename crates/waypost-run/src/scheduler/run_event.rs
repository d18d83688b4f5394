//! The events of a run for its observers, reported once they are durable. `run --json` streams their JSON.

use std::collections::BTreeSet;

use serde::Serialize;
use waypost_core::{
    Actor, Event, Evidence, IndexDelta, Phase, Plan, PlanId, StartRefusalReason, Status, TaskId, Timestamp,
};
use waypost_exec::AttemptKey;
use waypost_service::{Hint, start_refusal_hint, start_refusal_text};

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// An attempt began.
    TaskStarted {
        plan: PlanId,
        task: TaskId,
        attempt: u32,
        /// When the attempt began, by the store's clock.
        at: Option<Timestamp>,
    },
    /// An attempt failed, and there will be another.
    TaskWillRetry {
        plan: PlanId,
        task: TaskId,
        /// The attempt that failed.
        attempt: u32,
        error: String,
        /// The next attempt does not start before this time.
        again_at: Timestamp,
        /// The evidence of the check, if the check failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
    },
    /// A task reported progress.
    TaskProgressed {
        plan: PlanId,
        task: TaskId,
        /// The latest report; it replaces earlier ones that were not delivered yet.
        progress: String,
    },
    /// A task was reported as done; its check has yet to pass.
    TaskReported {
        plan: PlanId,
        task: TaskId,
        /// The actor that reported it.
        by: Actor,
    },
    /// An attempt was released without a result.
    TaskReleased {
        plan: PlanId,
        task: TaskId,
        /// Why it was released, as a message.
        reason: String,
    },
    /// A worker starts nothing of the plan: it would not run what was approved.
    StartRefused {
        plan: PlanId,
        worker: String,
        reason: StartRefusalReason,
        /// The refusal, as a sentence.
        message: String,
        /// What to do about it; each front end words it.
        #[serde(skip)]
        hint: Hint,
    },
    /// A task asks a person a question, and waits.
    QuestionAsked {
        plan: PlanId,
        task: TaskId,
        question: String,
        /// The possible answers; if empty, any text is accepted.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        choices: Vec<String>,
    },
    /// A person answered a question.
    QuestionAnswered {
        plan: PlanId,
        task: TaskId,
        answer: String,
        /// The actor that answered.
        by: Actor,
    },
    /// A task ended for good.
    TaskEnded {
        plan: PlanId,
        task: TaskId,
        status: Status,
        /// The attempt that it ended with; 0 if it was never started.
        attempt: u32,
        /// The duration of that attempt in seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        seconds: Option<f64>,
        /// The reason, unless the task is done.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// The evidence of its check.
        #[serde(skip_serializing_if = "Option::is_none")]
        evidence: Option<Box<Evidence>>,
    },
    /// The plan entered another phase. Its JSON name, `plan_is`, is kept for compatibility.
    #[serde(rename = "plan_is")]
    PlanPhaseChanged {
        plan: PlanId,
        /// The new phase.
        phase: Phase,
    },
}

impl RunEvent {
    /// The attempt whose start or end this is.
    pub(super) fn attempt(&self) -> Option<AttemptKey> {
        if let Self::TaskStarted { plan, task, attempt, .. } | Self::TaskEnded { plan, task, attempt, .. } =
            self
        {
            return Some(AttemptKey::new(plan, task, *attempt));
        }
        None
    }
}

/// Something that happened to a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// An event that observers of a run also receive.
    Notice(RunEvent),
    /// Approval was requested from a person.
    ApprovalRequested,
    /// A person approved the plan.
    Approved {
        by: Actor,
        /// The approved version.
        version: u64,
    },
    /// A person rejected the plan.
    Rejected {
        by: Actor,
        /// The person's reason.
        reason: String,
    },
    /// The approval is void, because the work for machines has changed.
    ApprovalVoided,
}

/// The events of a version for observers of a run, given the plan after it.
pub(crate) fn notices_of(plan: &Plan, events: &[Event], touched: &IndexDelta) -> Vec<RunEvent> {
    decisions_and_notices(plan, events, touched).1
}

/// Like [`notices_of`], preceded by decisions about approval.
pub(crate) fn news_of(plan: &Plan, events: &[Event], touched: &IndexDelta) -> Vec<News> {
    let (mut news, notices) = decisions_and_notices(plan, events, touched);
    news.extend(notices.into_iter().map(News::Notice));
    news
}

/// The events between a copy of a plan and the stored plan that replaces it. The copy may show what was never written:
/// `predicted` are the events of its last write, whose result is not known.
pub(super) fn notices_between(copy: &Plan, stored: &Plan, predicted: &[RunEvent]) -> Vec<RunEvent> {
    let unsure: BTreeSet<TaskId> =
        predicted.iter().filter_map(|notice| notice.attempt().map(|key| key.task.clone())).collect();
    let mut touched = IndexDelta::default();
    for task in stored.tasks_begun() {
        let (id, state) = (&task.spec.id, &task.state);
        let before = copy.task(id.as_str()).map(|task| &task.state).filter(|_| !unsure.contains(id));
        let same_attempt = before.filter(|before| before.attempt == state.attempt);
        if state.status.is_finished() {
            if same_attempt.is_none_or(|before| before.status != state.status) {
                touched.finished.push(id.clone());
            }
        } else if state.started_at.is_some()
            && state.status == Status::Running
            && same_attempt.is_none_or(|before| before.started_at.is_none())
        {
            touched.started.push((id.clone(), state.attempt));
        }
    }
    let mut notices = notices_of(stored, &[], &touched);
    let phase = stored.state().phase;
    if !phase.is_finished() && phase != copy.state().phase {
        notices.push(RunEvent::PlanPhaseChanged { plan: stored.id().clone(), phase });
    }
    notices
}

fn decisions_and_notices(plan: &Plan, events: &[Event], touched: &IndexDelta) -> (Vec<News>, Vec<RunEvent>) {
    let id = || plan.id().clone();
    let (mut decisions, mut notices) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::TaskFailed { task, error, again_at: Some(again_at), evidence } => {
                let attempt = plan.task(task.as_str()).map_or(0, |task| task.state.attempt);
                let (task, error, again_at) = (task.clone(), error.clone(), *again_at);
                let evidence = evidence.clone();
                notices.push(RunEvent::TaskWillRetry {
                    plan: id(),
                    task,
                    attempt,
                    error,
                    again_at,
                    evidence,
                });
            }
            Event::TaskStarted { task, attempt, started_at: at @ Some(_), .. } => {
                let (task, attempt) = (task.clone(), *attempt);
                notices.push(RunEvent::TaskStarted { plan: id(), task, attempt, at: *at });
            }
            Event::TaskReported { task, by, .. } => {
                notices.push(RunEvent::TaskReported { plan: id(), task: task.clone(), by: by.clone() });
            }
            Event::TaskReleased { task, reason } => {
                notices.push(RunEvent::TaskReleased {
                    plan: id(),
                    task: task.clone(),
                    reason: reason.clone(),
                });
            }
            Event::QuestionAsked { task, question } => notices.push(RunEvent::QuestionAsked {
                plan: id(),
                task: task.clone(),
                question: question.text.clone(),
                choices: question.choices.clone(),
            }),
            Event::QuestionAnswered { task, answer, by } => {
                let (task, answer, by) = (task.clone(), answer.clone(), by.clone());
                notices.push(RunEvent::QuestionAnswered { plan: id(), task, answer, by });
            }
            Event::TaskProgressed { task, progress } => {
                notices.push(RunEvent::TaskProgressed {
                    plan: id(),
                    task: task.clone(),
                    progress: progress.clone(),
                });
            }
            Event::StartRefused { refusal } => {
                let (worker, reason) = (refusal.worker.clone(), refusal.reason);
                let message = start_refusal_text(plan, refusal);
                let hint = start_refusal_hint(plan.id(), refusal);
                notices.push(RunEvent::StartRefused { plan: id(), worker, reason, message, hint });
            }
            Event::ApprovalRequested { .. } => decisions.push(News::ApprovalRequested),
            Event::PlanApproved { by, version, .. } => {
                decisions.push(News::Approved { by: by.clone(), version: *version });
            }
            Event::PlanRejected { by, reason } => {
                decisions.push(News::Rejected { by: by.clone(), reason: reason.clone() });
            }
            Event::PlanActivated {}
            | Event::PlanPaused { .. }
            | Event::PlanResumed { .. }
            | Event::ApprovalVoided {} => {
                notices.push(RunEvent::PlanPhaseChanged { plan: id(), phase: plan.state().phase });
                if *event == (Event::ApprovalVoided {}) {
                    decisions.push(News::ApprovalVoided);
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
            | Event::PlanFinished { .. }
            | Event::PlanArchived { .. }
            | Event::PlanUnarchived {}
            | Event::TaskQueued { .. }
            | Event::TaskStarted { .. }
            | Event::TaskDone { .. }
            | Event::TaskFailed { .. }
            | Event::TaskSkipped { .. }
            | Event::TasksCancelled { .. }
            | Event::TasksRetried { .. }
            | Event::TaskRefined { .. }
            | Event::DigestAttached { .. }
            | Event::TokensCharged { .. }
            | Event::TaskRolledBack { .. }
            | Event::OutputReceived { .. }
            | Event::GateRecorded { .. }
            | Event::OutputWithdrawn { .. }
            | Event::TaskHeld { .. }
            | Event::TaskUnheld { .. }
            | Event::TaskCommented { .. }
            | Event::TaskLabeled { .. }
            | Event::TaskAssigned { .. } => {}
        }
    }
    for task in &touched.finished {
        let Some(found) = plan.task(task.as_str()) else { continue };
        // A group ends with its subtasks, which have been reported.
        if !plan.children(task.as_str()).is_empty() {
            continue;
        }
        let state = &found.state;
        let seconds = match (state.status, state.started_at, state.finished_at) {
            (Status::Done | Status::Failed | Status::Cancelled, Some(from), Some(to)) => {
                Some((to.as_micros() - from.as_micros()).max(0) as f64 / 1e6)
            }
            _ => None,
        };
        let why = match state.status {
            Status::Failed | Status::Skipped | Status::Cancelled => state.why(),
            Status::Pending | Status::Running | Status::Done => None,
        };
        let (task, status, attempt) = (task.clone(), state.status, state.attempt);
        let evidence = state.evidence().cloned().map(Box::new);
        notices.push(RunEvent::TaskEnded { plan: id(), task, status, attempt, seconds, why, evidence });
    }
    for (task, attempt) in &touched.started {
        // A queued attempt starts later, with its own event.
        if let Some(at) = plan.task(task.as_str()).and_then(|task| task.state.started_at) {
            let (task, attempt) = (task.clone(), *attempt);
            notices.push(RunEvent::TaskStarted { plan: id(), task, attempt, at: Some(at) });
        }
    }
    let phase = plan.state().phase;
    if phase.is_finished() && !touched.finished.is_empty() {
        notices.push(RunEvent::PlanPhaseChanged { plan: id(), phase });
    }
    (decisions, notices)
}
