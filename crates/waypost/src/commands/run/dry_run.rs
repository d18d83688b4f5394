//! Previews a run: the order, concurrency, and programs. Runs nothing and writes nothing.

use serde_json::json;
use waypost_config::{Config, Definitions};
use waypost_core::{Draft, Status, Work, levels};
use waypost_service::{approval_preview, preview};

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::style::Look;
use crate::view::text;

/// The indentation of a task's details.
const INDENT: &str = "      ";

pub(super) fn print(context: &mut Context, config: &Config, draft: &Draft, jobs: Option<u32>) -> Outcome {
    let definitions = Definitions::of(config);
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
        let tasks: Vec<_> =
            tasks.filter(|task| !matches!(task.state.status, Status::Done | Status::Skipped)).collect();
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
