//! A plan and its steps as jaato's tools return them: the fields of the document, and those of the program besides.
//!
//! The words and the links are those of the files. Does not know the tools.

use serde_json::{Map, Value, json};
use waypost_core::{Counts, Dependency, Phase, Plan, Problem, Status, Task, TaskSpec};

use super::dependencies::{Around, add_references, owner_of, write_links, write_reference};
use super::{DIALECT, document_word, percent_of, write_step};
use crate::field_reader::PreservedFields;
use crate::field_writer::Shape;

const SHAPE: Shape = Shape { program: false, as_read: false, unknown: false };

/// Returns the status word of a plan: `pending`, `in_progress`, `completed`, `failed` or `cancelled`.
pub fn plan_word(phase: Phase) -> &'static str {
    document_word(phase)
}

/// Returns the outputs of completed steps of the same plan that a step depends on, as those of other agents are keyed: by agent
/// and step, and by the name that the step provides.
pub fn own_outputs(plan: &Plan, task: &Task) -> Map<String, Value> {
    let owner = owner_of(&plan.spec().owner);
    let mut outputs = Map::new();
    for on in &task.spec.depends_on {
        let Dependency::Task(on) = on else { continue };
        let Some(done) = plan.task(on.as_str()).filter(|task| task.state.status == Status::Done) else {
            continue;
        };
        if let Some(output) = &done.state.output {
            outputs.insert(format!("{owner}:{on}"), output.value());
            outputs.extend(done.spec.provides.iter().map(|name| (name.clone(), output.value())));
        }
    }
    outputs
}

/// Returns one step at position `sequence` (from 1). The document's `id` is the program's `step_id`; both are included.
pub fn step(plan: &Plan, task: &Task, sequence: usize) -> Map<String, Value> {
    let around = Around::of_plan(plan);
    // Losses do not matter in a reply.
    let written = write_step(&around, task, sequence.saturating_sub(1), SHAPE, &mut Vec::new());
    let mut fields = Map::new();
    for name in ["id", "step_id"] {
        fields.insert(name.to_owned(), task.spec.id.as_str().into());
    }
    fields.insert("sequence".to_owned(), sequence.into());
    if let Value::Object(written) = written {
        fields.extend(written);
    }
    let own = own_outputs(plan, task);
    if !own.is_empty() {
        let received = fields.entry("received_outputs").or_insert_with(|| json!({}));
        if let Value::Object(received) = received {
            received.extend(own);
        }
    }
    let why = match task.state.status {
        Status::Skipped | Status::Cancelled => why_not(task),
        Status::Pending | Status::Running | Status::Done | Status::Failed => None,
    };
    if let Some(why) = why
        && !fields.contains_key("result")
    {
        fields.insert("result".to_owned(), why.into());
    }
    fields
}

/// Returns why a step was skipped or cancelled; if a step in another plan is the cause, how that one ended.
fn why_not(task: &Task) -> Option<String> {
    let heard = task.state.because_of.as_ref().and_then(|cause| {
        let received = task.state.received.get(cause.as_str())?;
        match (&received.reason, received.status) {
            (Some(reason), _) => Some(format!("{cause}, which it waited for, will not come: {reason}")),
            // Only a plan that was finished explicitly can keep a cause that no longer applies.
            (None, Status::Done) => None,
            (None, status) => Some(format!("{cause}, which it waited for, was {}", ended(status))),
        }
    });
    heard.or_else(|| task.state.why())
}

fn ended(status: Status) -> &'static str {
    match status {
        Status::Failed => "not accomplished: it failed",
        Status::Skipped => "skipped",
        Status::Cancelled => "cancelled",
        Status::Pending | Status::Running | Status::Done => status.as_str(),
    }
}

/// Returns the unresolved dependencies of a step.
pub fn blocked_by(plan: &Plan, task: &Task) -> Vec<Value> {
    let mut links =
        write_links(&Around::of_plan(plan), task, &PreservedFields::of(&task.spec.foreign, DIALECT));
    match links.remove("blocked_by") {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// Returns one dependency of a step in jaato's form.
pub fn reference(plan: &Plan, task: &Task, on: &Dependency) -> Value {
    write_reference(&Around::of_plan(plan), on, &PreservedFields::of(&task.spec.foreign, DIALECT))
}

/// Returns the progress of a plan, both as the document and as the program counts it.
pub fn progress(counts: &Counts) -> Value {
    let percent = percent_of(counts.done as usize, counts.total as usize);
    json!({
        "completed": counts.done,
        "total": counts.total,
        "percentage": percent.round() as u64,
        "failed": counts.failed,
        "skipped": counts.skipped + counts.cancelled,
        "in_progress": counts.in_progress(),
        "pending": counts.ready,
        "blocked": counts.blocked,
        "percent": (percent * 10.0).round() / 10.0,
    })
}

/// Adds these references (`agent_id`, `step_id`, perhaps `plan_id`) to the dependencies of a step of `plan`. Returns the added
/// ones, or all problems of the references, in which case the step is unchanged.
pub fn depend(
    plan: &Plan,
    step: &mut TaskSpec,
    references: Vec<Value>,
) -> Result<Vec<Dependency>, Vec<Problem>> {
    add_references(plan, step, references)
}
