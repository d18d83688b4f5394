//! Why nothing of a plan can be claimed: one list of reasons for every front end. Says nothing about single tasks;
//! `wait_reasons` does.

use waypost_core::{EffectiveStatus, Phase, Plan, Status};
use waypost_text::one_line;

use crate::caller::{Caller, Holder};

/// Maximum number of tasks that a reason names.
const NAMES_MAX: usize = 3;

/// Whether nothing of the plan starts before a person approves it.
pub fn awaits_approval(plan: &Plan) -> bool {
    let state = plan.state();
    state.approval_required && state.approval.is_none() && !state.phase.is_finished()
}

/// Says of a new plan that it needs approval, if that is so.
pub fn approval_note(plan: &Plan) -> Option<String> {
    let what = if plan.has_machine_work() { "has work for executors" } else { "needs approval" };
    let note = || format!("plan {} {what}: nothing runs until a person approves it", plan.id());
    awaits_approval(plan).then(note)
}

/// Whether tasks of the plan may be started now, as far as the plan as a whole decides that.
pub fn may_start_tasks(plan: &Plan) -> bool {
    stop_reason(plan).is_none()
}

/// Says why no task of the plan starts at all, if that is so.
fn stop_reason(plan: &Plan) -> Option<String> {
    let state = plan.state();
    if state.archived {
        return Some("the plan is archived".to_owned());
    }
    let ended = |how: &str| {
        let counts = plan.counts();
        format!("the plan {how}, {} of {} done", counts.done, counts.total)
    };
    match state.phase {
        Phase::Completed => Some(ended("is completed")),
        Phase::Failed => Some(ended("has failed")),
        Phase::Cancelled => Some(ended("was cancelled")),
        Phase::Paused => Some("the plan is paused".to_owned()),
        Phase::Active => None,
        // Starting its first task starts a draft, if nobody stopped it.
        Phase::Draft if !awaits_approval(plan) => {
            let stop = plan.rejection();
            (!stop.is_empty()).then(|| format!("{stop}: a person has to start it"))
        }
        Phase::Draft | Phase::AwaitingApproval => {
            let rejection = plan.rejection();
            let dash = if rejection.is_empty() { "" } else { "; " };
            Some(format!("the plan needs a person's approval{dash}{rejection}"))
        }
    }
}

/// Says why nothing of the plan can be claimed now, a clause each.
pub fn standstill(plan: &Plan, by: &Caller) -> Vec<String> {
    if let Some(stop) = stop_reason(plan) {
        return vec![stop];
    }
    let counts = plan.effective_counts();
    if counts.total == 0 {
        return vec!["the plan has no tasks".to_owned()];
    }
    let mut reasons = Vec::new();
    let running: Vec<String> = plan
        .running()
        .take(NAMES_MAX)
        .map(|task| {
            let worker = task.state.worker.as_deref().unwrap_or_default();
            let who = match by.relation_to(worker) {
                Holder::Caller => "you".to_owned(),
                Holder::OtherSession => "you in another session".to_owned(),
                Holder::Other => one_line(worker.split('#').next().unwrap_or_default()).into_owned(),
            };
            format!("{} by {who}", task.spec.id)
        })
        .collect();
    if !running.is_empty() {
        reasons.push(format!("{} running ({})", counts.running, running.join(", ")));
    }
    let asking: Vec<&str> = plan.asking().take(NAMES_MAX).map(|task| task.spec.id.as_str()).collect();
    if !asking.is_empty() {
        reasons.push(format!("a person has to answer {}", asking.join(", ")));
    }
    let skipped: Vec<&str> = to_be_skipped(plan).take(NAMES_MAX + 1).collect();
    if !skipped.is_empty() {
        let more = if skipped.len() > NAMES_MAX { " and others" } else { "" };
        let named = skipped[..skipped.len().min(NAMES_MAX)].join(", ");
        reasons.push(format!("to be skipped once the plan has started: {named}{more}"));
    }
    let others = [
        (counts.queued, "queued"),
        (counts.ready + counts.reported, "ready for machines, people or checks"),
        (counts.held, "held"),
        (counts.disputed, "disputed"),
        (counts.blocked, "blocked"),
    ];
    reasons
        .extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    reasons
}

/// Whether a task can start as soon as its plan has, and not before.
pub(crate) fn starts_with_plan(plan: &Plan, task: &str) -> bool {
    let is_ready = |plan: &Plan| plan.effective_status(task) == Some(EffectiveStatus::Ready);
    !is_ready(plan) && is_ready(&plan.as_started())
}

/// Returns the tasks that their author skips and that have not ended yet.
fn to_be_skipped(plan: &Plan) -> impl Iterator<Item = &str> {
    let pending = plan.tasks().map(|(task, _)| task).filter(|task| task.state.status == Status::Pending);
    pending.filter(|task| task.spec.skip).map(|task| task.spec.id.as_str())
}
