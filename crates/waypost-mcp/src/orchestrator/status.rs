//! `run_status`: a run in a few lines, whatever its size.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use waypost_core::{Counts, Phase, Plan, Status, Task, Timestamp};

use super::lookup::{self, excerpt};
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum number of running tasks that are named; those that have run longest come first.
const RUNNING_NAMED_MAX: usize = 5;
/// Maximum number of failures that are named; the latest come first.
const FAILED_NAMED_MAX: usize = 5;
/// Maximum number of open questions that are named.
const ASKING_NAMED_MAX: usize = 3;
/// Number of tasks that must have ended before the remaining time is estimated.
const ENDED_FOR_ETA_MIN: u32 = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanArgs {
    plan: String,
}

pub(super) fn status(call: &Call) -> Result<Answer, ToolError> {
    let PlanArgs { plan } = call.arguments()?;
    let id = call.plan(&plan)?;
    let now = call.workspace.now()?;
    let workers = lookup::workers_of(call, &id)?;
    call.view(&id, |plan, warnings| {
        let mut answer = run_summary(plan);
        put_some(&mut answer, "running", running(plan, now));
        put_some(&mut answer, "failed", failed(plan));
        put_some(&mut answer, "asking", asking(plan));
        if let Some(seconds) = eta(plan, now) {
            answer.insert("eta_seconds".to_owned(), seconds.into());
        }
        answer.insert("workers".to_owned(), workers.into());
        if let Some(next) = lookup::next(call, plan, workers) {
            answer.insert("next".to_owned(), next.into());
        }
        let mut answer = Answer::of(Value::Object(answer));
        answer.warn(warnings);
        Ok(answer)
    })?
}

/// The fields that every reply about a run has.
pub(super) fn run_summary(plan: &Plan) -> Map<String, Value> {
    let mut answer = Map::new();
    answer.insert("id".to_owned(), plan.id().as_str().into());
    answer.insert("version".to_owned(), plan.version().into());
    answer.insert("phase".to_owned(), plan.state().phase.as_str().into());
    answer.insert("counts".to_owned(), counts(&plan.as_started().effective_counts()));
    answer
}

/// Omits counts of zero, to keep the reply short.
fn counts(counts: &Counts) -> Value {
    let Counts {
        total,
        ready,
        blocked,
        reported,
        asking,
        held,
        disputed,
        queued,
        running,
        done,
        failed,
        skipped,
        cancelled,
    } = *counts;
    let all = [
        ("ready", ready),
        ("blocked", blocked),
        ("reported", reported),
        ("asking", asking),
        ("held", held),
        ("disputed", disputed),
        ("queued", queued),
        ("running", running),
        ("done", done),
        ("failed", failed),
        ("skipped", skipped),
        ("cancelled", cancelled),
    ];
    let mut map = Map::new();
    map.insert("total".to_owned(), total.into());
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    map.extend(some.map(|(name, count)| (name.to_owned(), count.into())));
    Value::Object(map)
}

fn put_some(answer: &mut Map<String, Value>, name: &str, list: Vec<Value>) {
    if !list.is_empty() {
        answer.insert(name.to_owned(), list.into());
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    (to.as_micros() - from.as_micros()).max(0) / 1_000_000
}

fn running(plan: &Plan, now: Timestamp) -> Vec<Value> {
    let mut tasks: Vec<&Task> = plan.running().collect();
    tasks.sort_by_key(|task| task.state.started_at);
    let shown = tasks.into_iter().take(RUNNING_NAMED_MAX).map(|task| {
        let elapsed = task.state.started_at.map_or(0, |from| seconds(from, now));
        let mut one = json!({ "task": task.spec.id, "attempt": task.state.attempt, "seconds": elapsed });
        if let Some(progress) = &task.state.progress {
            one["progress"] = excerpt(progress).into();
        }
        one
    });
    shown.collect()
}

fn failed(plan: &Plan) -> Vec<Value> {
    if plan.counts().failed == 0 {
        return Vec::new();
    }
    let all = plan.tasks().map(|(task, _)| task);
    let mut tasks: Vec<&Task> = all.filter(|task| task.state.status == Status::Failed).collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.state.finished_at));
    let shown = tasks.into_iter().take(FAILED_NAMED_MAX);
    shown
        .map(|task| {
            let error = task.state.why().unwrap_or_default();
            json!({ "task": task.spec.id, "attempt": task.state.attempt, "error": excerpt(&error) })
        })
        .collect()
}

fn asking(plan: &Plan) -> Vec<Value> {
    let tasks = plan.asking().take(ASKING_NAMED_MAX);
    tasks
        .map(|task| {
            let question = task.state.question().map(|question| excerpt(&question.text));
            json!({ "task": task.spec.id, "question": question })
        })
        .collect()
}

/// Estimates the remaining seconds from the average pace so far; `None` if the plan makes no progress or too few tasks have ended.
fn eta(plan: &Plan, now: Timestamp) -> Option<i64> {
    let counts = plan.counts();
    let ended = counts.done + counts.failed;
    let left = counts.total - counts.finished();
    let began = plan.state().started_at?;
    let goes_on = plan.state().phase == Phase::Active && counts.in_progress() > 0;
    (goes_on && ended >= ENDED_FOR_ETA_MIN)
        .then(|| seconds(began, now).saturating_mul(i64::from(left)) / i64::from(ended))
}
