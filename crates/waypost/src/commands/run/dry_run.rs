//! Previews a run: the order, concurrency, and programs. Runs nothing and writes nothing.

use serde_json::json;
use waypost_config::{Config, Definitions};
use waypost_core::{Actor, Command, Draft, Phase, Plan, PlanId, Status, TaskId, Timestamp, Work, levels};
use waypost_service::{approval_preview, preview};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::style::Look;
use waypost_cli::view::text;

/// Whether failed tasks run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    Nothing,
    Failed,
}

/// The indentation of a task's details.
const INDENT: &str = "      ";

pub(super) fn print(
    context: &mut Context,
    config: &Config,
    draft: &Draft,
    jobs: Option<u32>,
    retry: Retry,
) -> Outcome {
    let definitions = Definitions::of(config);
    let draft = &remaining(draft, &context.actor()?, retry)?;
    let batches = levels(draft).map_err(|problem| Failure::invalid("the plan", &[(None, problem)]))?;
    let find = |id: &waypost_core::TaskId| draft.tasks.iter().find(|task| task.spec.id == *id);
    let is_parent =
        |id: &waypost_core::TaskId| draft.tasks.iter().any(|task| task.spec.parent.as_ref() == Some(id));
    let queue = Config::queue_name(&draft.spec.queue);
    let concurrency = config.queues.get(queue).map_or(0, |queue| queue.concurrency);
    let concurrency = jobs.map_or(concurrency, |jobs| jobs.min(concurrency));
    let mut shown = Vec::new();
    for batch in &batches {
        let tasks = batch.iter().filter(|id| !is_parent(id)).filter_map(find);
        let tasks: Vec<_> = tasks.filter(|task| !task.state.status.is_finished()).collect();
        if !tasks.is_empty() {
            shown.push(tasks);
        }
    }
    if context.out.json {
        let batches: Vec<_> = shown
            .iter()
            .map(|tasks| {
                let one = |task: &&waypost_core::Task| {
                    let inputs = |work: &Option<Box<Work>>| work.as_ref().map(|work| work.inputs.value());
                    json!({
                        "task": task.spec.id,
                        "command": preview(&definitions, &task.spec),
                        "inputs": inputs(&task.spec.work),
                        "check_inputs": inputs(&task.spec.check),
                        "locks": task.spec.locks,
                    })
                };
                tasks.iter().map(one).collect::<Vec<_>>()
            })
            .collect();
        return context.out.value(&json!({ "queue": queue, "concurrency": concurrency, "batches": batches }));
    }
    let total: usize = shown.iter().map(Vec::len).sum();
    context.out.line(format!(
        "{} in {}, at most {concurrency} concurrent (queue {queue})",
        text::count(total, "task"),
        text::count(shown.len(), "batch")
    ));
    let columns = context.out.columns;
    for (number, tasks) in shown.iter().enumerate() {
        let heading = context.out.paint(&format!("batch {}", number + 1), Look::Bold);
        context.out.line(heading);
        for task in tasks {
            let line = format!("  {}  {}", task.spec.id, preview(&definitions, &task.spec));
            context.out.line(text::truncate(&line, columns));
            // Not truncated: the approval prompt refers people here to read all of it.
            for (name, said) in approval_preview(&definitions, &task.spec).particulars {
                let said = format!("{name}: {said}");
                for line in text::wrap(&said, columns.saturating_sub(INDENT.len()).max(20), usize::MAX) {
                    let line = context.out.paint(&line, Look::Dim);
                    context.out.line(format!("{INDENT}{line}"));
                }
            }
        }
    }
    context.out.say("nothing was run and nothing was written");
    Ok(())
}

/// Returns the plan as it would be right after its start, without the dependencies that no longer keep anything waiting. A plan
/// that does not start has no open tasks.
fn remaining(draft: &Draft, by: &Actor, retry: Retry) -> Outcome<Draft> {
    let id = PlanId::new("preview").map_err(|error| Failure::failed(error.to_string(), ""))?;
    let mut draft = draft.clone();
    // As stored: a plan without a version cannot start.
    draft.version = draft.version.max(1);
    // Whether it needs approval is another question.
    draft.state.approval_required = false;
    if draft.state.phase == Phase::AwaitingApproval {
        draft.state.phase = Phase::Draft;
    }
    let plan = Plan::from_trusted_draft(id, draft.clone());
    let commands = match retry {
        Retry::Nothing => vec![Command::Activate],
        // What has ended is active again after a retry.
        Retry::Failed => vec![Command::RetryPlan, Command::Activate],
    };
    let at = draft.state.updated_at.unwrap_or(Timestamp::from_micros(0));
    let mut plan = plan;
    for command in commands {
        plan = plan.after(by, at, &[command]).into_owned();
    }
    let starts = plan.state().phase == Phase::Active;
    let status = |task: &TaskId| plan.task(task.as_str()).map(|task| task.state.status);
    for task in &mut draft.tasks {
        let now = status(&task.spec.id).unwrap_or(task.state.status);
        task.state.status = if starts || now.is_finished() { now } else { Status::Cancelled };
        task.spec.depends_on.retain(|on| !on.here().and_then(status).is_some_and(Status::is_finished));
    }
    Ok(draft)
}
