//! A plan and its steps as jaato's tools answer them: the fields of the document, and those of the program beside them.
//!
//! The words and the links are those of the files. Does not know the tools.

use serde_json::{Map, Value, json};
use waypost_core::{Counts, Dependency, Phase, Plan, Problem, Status, Task, TaskSpec};

use super::dependencies::{Around, add_references, write_links, write_reference};
use super::{DIALECT, document_word, percent_of, write_step};
use crate::field_reader::PreservedFields;
use crate::field_writer::Shape;

const SHAPE: Shape = Shape { program: false, as_read: false, unknown: false };

/// The word for where a plan stands: `pending`, `in_progress`, `completed`, `failed` or `cancelled`.
pub fn plan_word(phase: Phase) -> &'static str {
    document_word(phase)
}

/// One step, which stands at `sequence` (from 1): `id` is the document's name for what the program calls `step_id`.
pub fn step(plan: &Plan, task: &Task, sequence: usize) -> Map<String, Value> {
    let around = Around::of_plan(plan);
    // What the format cannot hold is no loss in an answer.
    let written = write_step(&around, task, sequence.saturating_sub(1), SHAPE, &mut Vec::new());
    let mut fields = Map::new();
    for name in ["id", "step_id"] {
        fields.insert(name.to_owned(), task.spec.id.as_str().into());
    }
    fields.insert("sequence".to_owned(), sequence.into());
    if let Value::Object(written) = written {
        fields.extend(written);
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

/// Why a step was passed over; of a step elsewhere that it waited for, how that ended.
fn why_not(task: &Task) -> Option<String> {
    let heard = task.state.because_of.as_ref().and_then(|cause| {
        let received = task.state.received.get(cause.as_str())?;
        match (&received.reason, received.status) {
            (Some(reason), _) => Some(format!("{cause}, which it waited for, will not come: {reason}")),
            // Only a plan that its author has ended keeps what is no reason any more.
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

/// What a step still waits for.
pub fn blocked_by(plan: &Plan, task: &Task) -> Vec<Value> {
    let mut links =
        write_links(&Around::of_plan(plan), task, &PreservedFields::of(&task.spec.foreign, DIALECT));
    match links.remove("blocked_by") {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// One of the things that a step waits for.
pub fn reference(plan: &Plan, task: &Task, on: &Dependency) -> Value {
    write_reference(&Around::of_plan(plan), on, &PreservedFields::of(&task.spec.foreign, DIALECT))
}

/// How far a plan is, as the document counts it and as the program does.
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

/// Makes a step of `plan` wait for these references (`agent_id`, `step_id`, perhaps `plan_id`) besides. Returns what was
/// added; or everything that is wrong with them, and the step stays as it was.
pub fn depend(
    plan: &Plan,
    step: &mut TaskSpec,
    references: Vec<Value>,
) -> Result<Vec<Dependency>, Vec<Problem>> {
    add_references(plan, step, references)
}
