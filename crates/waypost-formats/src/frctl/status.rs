//! frctl's words for the status of a plan and of a goal.

use waypost_core::{Draft, Phase, Refinement, Status, Task};

use crate::field_reader::PreservedFields;

/// Sets the phase. frctl's `complete` means that planning is complete; it is `completed` here only if every goal is done too.
pub(super) fn read_status(
    word: Option<&str>,
    draft: &mut Draft,
    kept: &mut PreservedFields,
    notes: &mut Vec<String>,
) {
    let done = !draft.tasks.is_empty() && draft.tasks.iter().all(|task| task.state.status == Status::Done);
    let word = word.unwrap_or("in_progress");
    draft.state.phase = match word {
        "complete" if done => Phase::Completed,
        "paused" => Phase::Paused,
        "failed" => Phase::Failed,
        "in_progress" | "complete" => Phase::Draft,
        other => {
            notes.push(format!(
                "the plan's status {other:?} is none of frctl's; the plan is taken for a draft"
            ));
            Phase::Draft
        }
    };
    if status_word(draft.state.phase) != word {
        kept.keep_phase_word(draft.state.phase, word);
    }
}

pub(super) fn status_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Draft | Phase::AwaitingApproval | Phase::Active => "in_progress",
        Phase::Paused => "paused",
        Phase::Completed => "complete",
        Phase::Failed | Phase::Cancelled => "failed",
    }
}

/// Returns the word for a goal, and whether it loses nothing.
pub(super) fn goal_word(task: &Task, has_children: bool) -> (&'static str, bool) {
    let refinement = task.spec.thinking.as_ref().and_then(|thinking| thinking.refinement);
    let untold = match task.state.status {
        Status::Done => return ("complete", refinement.is_none() || has_children),
        Status::Failed => return ("failed", refinement.is_none()),
        Status::Pending => false,
        Status::Running | Status::Skipped | Status::Cancelled => true,
    };
    let word = match refinement {
        Some(Refinement::Atomic) => "atomic",
        Some(Refinement::Decomposing) => "decomposing",
        // Without children `complete` would mean that it is done.
        Some(Refinement::Decomposed) if !has_children => return ("decomposing", false),
        Some(Refinement::Decomposed) => "complete",
        None => "pending",
    };
    (word, !untold)
}
