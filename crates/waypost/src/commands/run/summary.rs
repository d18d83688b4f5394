//! Summarizes a run: how each task ended, how long it took, and the critical path.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use waypost_core::{Phase, Plan, Status, Task, TaskId};
use waypost_run::{Idleness, Summary};

use super::progress::evidence_words;
use waypost_cli::context::Context;
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::runner::{on_task, typeable};
use waypost_cli::view::table::{self, Cell};
use waypost_cli::view::{counts_beside_done, sign_look, text};

/// Maximum number of tasks in the table. If there are more, failed and unfinished tasks come first, then the longest.
const ROWS_MAX: usize = 20;
/// Maximum number of tasks named of the critical path.
const PATH_MAX: usize = 12;

fn duration(task: &Task) -> Option<Duration> {
    match (task.state.started_at, task.state.finished_at) {
        (Some(from), Some(to)) => Some(to.since(from)),
        (None, _) | (_, None) => None,
    }
}

/// Prints the summary. The exit code shows whether the plan is completed.
pub(crate) fn print(context: &mut Context, plan: &Plan, summary: &Summary) -> Outcome {
    let (phase, counts, id) = (plan.state().phase, plan.counts(), plan.id());
    let path = critical_path(plan);
    let path_time: Duration =
        path.iter().filter_map(|task| plan.task(task.as_str())).filter_map(duration).sum();
    let took = match (plan.state().started_at, plan.state().updated_at) {
        (Some(from), Some(to)) => to.since(from),
        (None, _) | (_, None) => Duration::ZERO,
    };
    if context.out.json {
        let line = json!({
            "event": "run_ended",
            "plan": id,
            "phase": phase,
            "counts": counts,
            "seconds": took.as_secs_f64(),
            "critical_path": path,
            "critical_path_seconds": path_time.as_secs_f64(),
        });
        context.out.line(line.to_string());
    } else {
        tasks(context, plan);
        if path.len() > 1 {
            let names: Vec<&str> = path.iter().take(PATH_MAX).map(TaskId::as_str).collect();
            let more = if path.len() > PATH_MAX { " → …" } else { "" };
            context.out.line(format!(
                "critical path ({}): {}{more}",
                text::duration(path_time),
                names.join(" → ")
            ));
        }
        context.out.line(format!(
            "plan {id} is {} after {}: {}",
            phase.as_str(),
            text::duration(took),
            describe_counts(plan)
        ));
    }
    ended(plan, summary)
}

fn describe_counts(plan: &Plan) -> String {
    let counts = plan.counts();
    let done = (counts.done > 0).then(|| format!("{} done", counts.done));
    let said: Vec<String> = done.into_iter().chain(counts_beside_done(&counts)).collect();
    if said.is_empty() { "no tasks".to_owned() } else { said.join(", ") }
}

fn tasks(context: &mut Context, plan: &Plan) {
    let leaves =
        plan.tasks().map(|(task, _)| task).filter(|task| plan.children(task.spec.id.as_str()).is_empty());
    let mut all: Vec<&Task> = leaves.collect();
    let total = all.len();
    if total > ROWS_MAX {
        let urgency = |task: &&Task| match task.state.status {
            Status::Failed | Status::Cancelled => 0,
            Status::Running | Status::Pending => 1,
            Status::Done | Status::Skipped => 2,
        };
        let longest = |task: &&Task| std::cmp::Reverse(duration(task).unwrap_or_default());
        all.sort_by_key(|task| (urgency(task), longest(task)));
        all.truncate(ROWS_MAX);
    }
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .map(|task| {
            let standing = plan.effective_status(task.spec.id.as_str());
            let word = standing.map_or("", |standing| standing.as_str());
            let attempt = task.state.attempt;
            let again = if attempt > 1 { format!("attempt {attempt} ") } else { String::new() };
            let why = why(task);
            vec![
                Cell::plain(text::excerpt(task.spec.id.as_str(), 30)),
                standing.map_or_else(
                    || Cell::plain(word),
                    |standing| Cell::looking(word, sign_look(standing.sign())),
                ),
                Cell::plain(duration(task).map(text::duration).unwrap_or_default()),
                Cell::plain(format!("{again}{}", text::one_line(&why))),
            ]
        })
        .collect();
    table::print(&mut context.out, &["TASK", "STATUS", "TOOK", ""], &rows);
    if total > rows.len() {
        let rest = total - rows.len();
        let more = format!("… and {} more (`waypost show {}`)", text::count(rest, "task"), plan.id());
        context.out.line(typeable(&more));
    }
}

/// The remark on a task: what it waits for, how it ended, the result of its check.
fn why(task: &Task) -> String {
    let state = &task.state;
    let said = match (state.status, state.question(), state.reported()) {
        (Status::Pending, Some(question), _) => format!("asks: {}", question.text),
        (Status::Pending, None, Some(report)) => format!("reported by {}, waits for its check", report.by),
        (Status::Done | Status::Running, _, _) => state.result.clone().unwrap_or_default(),
        (Status::Pending | Status::Failed | Status::Skipped | Status::Cancelled, _, _) => {
            state.why().unwrap_or_default()
        }
    };
    match state.evidence() {
        Some(evidence) if said.is_empty() => evidence_words(evidence),
        Some(evidence) => format!("{}; {said}", evidence_words(evidence)),
        None => said,
    }
}

/// The chain of finished tasks, each depending on the previous one, with the longest total duration.
fn critical_path(plan: &Plan) -> Vec<TaskId> {
    let mut best: BTreeMap<&str, (Duration, Option<&str>)> = BTreeMap::new();
    let mut tasks: Vec<&Task> =
        plan.tasks().map(|(task, _)| task).filter(|task| duration(task).is_some()).collect();
    // A task's dependencies finished before it started, so this is a topological order.
    tasks.sort_by_key(|task| (task.state.started_at, task.state.finished_at));
    for task in &tasks {
        let before = task
            .spec
            .depends_on
            .iter()
            .filter_map(|on| on.here())
            .filter_map(|on| best.get_key_value(on.as_str()).map(|(name, (length, _))| (*length, *name)));
        let longest = before.max_by_key(|before| before.0);
        let own = duration(task).unwrap_or_default();
        let entry =
            (own + longest.map_or(Duration::ZERO, |(length, _)| length), longest.map(|(_, name)| name));
        best.insert(task.spec.id.as_str(), entry);
    }
    let mut at = best.iter().max_by_key(|(_, (length, _))| *length).map(|(name, _)| *name);
    let mut path = Vec::new();
    while let Some(name) = at {
        path.extend(TaskId::new(name).ok());
        at = best.get(name).and_then(|(_, before)| *before);
    }
    path.reverse();
    path
}

/// Returns an error with the next step if the plan is not completed.
fn ended(plan: &Plan, summary: &Summary) -> Outcome {
    let (phase, id) = (plan.state().phase, plan.id());
    if phase == Phase::Completed {
        return Ok(());
    }
    if let Some(schema) = summary.newer_schema.filter(|_| !phase.is_finished()) {
        return Err(Failure::outdated(schema, &format!("the run of plan {id} ended before the plan did")));
    }
    if summary.asked_to_end.is_some() && !phase.is_finished() {
        let hint = format!("`waypost run {id}` continues it");
        return Err(Failure::new(Exit::Interrupted, format!("the run of plan {id} was interrupted"), hint));
    }
    let failed =
        plan.tasks().find(|(task, _)| task.state.status == Status::Failed).map(|(task, _)| &task.spec.id);
    let hint = match (phase, failed) {
        (_, Some(task)) => {
            let log = on_task("log", id, task, "", "");
            format!("`{log}` shows its output; `waypost retry {id}`, then run it again")
        }
        (Phase::Active, None) if plan.asking().next().is_some() => {
            format!("`waypost answer {id}` lists the questions; answer, then run it again")
        }
        (Phase::Active, None) => match summary.rest {
            Idleness::Over | Idleness::Waiting | Idleness::Busy => {
                format!("the remaining tasks are for people or agents: `waypost next {id}` lists them")
            }
        },
        (_, None) => format!("`waypost show {id}` shows its status"),
    };
    Err(Failure::failed(format!("plan {id} is not completed"), hint))
}
