//! frctl's words for the status of a plan and of a goal.

use serde_json::{Value, json};
use waypost_core::{Draft, Phase, Refinement, Status, Task};

use super::tree::Tree;
use crate::field_reader::PreservedFields;

/// Sets the phase. frctl's `complete` means that planning is complete; it is `completed` here only if every goal is done too.
/// A word that does not follow from the plan is preserved.
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
    let own = status_word(draft, &Tree::of(draft, None));
    if own != word {
        kept.set("status", json!([draft.state.phase, own, word]));
    }
}

/// Returns the word to write for a plan: the one that was read, as long as nothing has changed that it follows from.
pub(super) fn written_status(draft: &Draft, tree: &Tree, kept: &PreservedFields) -> Value {
    let own = status_word(draft, tree);
    match kept.get("status").and_then(Value::as_array).map(Vec::as_slice) {
        Some([phase, then, word]) if *then == own && *phase == draft.state.phase.as_str() => word.clone(),
        Some(_) | None => own.into(),
    }
}

/// Returns the word for a plan: `in_progress` as long as a goal has to be looked at, then `complete`, whether or not the goals
/// are implemented.
fn status_word(draft: &Draft, tree: &Tree) -> &'static str {
    match draft.state.phase {
        Phase::Paused => "paused",
        Phase::Completed => "complete",
        Phase::Failed | Phase::Cancelled => "failed",
        Phase::Draft | Phase::AwaitingApproval | Phase::Active => {
            let mut leaves = draft.tasks.iter().enumerate().filter(|(at, _)| tree.children(*at).is_empty());
            let is_planned =
                |task: &Task| matches!(goal_word(task, false, false).0, "atomic" | "complete" | "failed");
            let all = !draft.tasks.is_empty() && leaves.all(|(_, task)| is_planned(task));
            if all { "complete" } else { "in_progress" }
        }
    }
}

/// Returns the word for a goal, and whether it loses nothing. For the program, a goal is `complete` as soon as it is broken down;
/// in its document, when it is implemented.
pub(super) fn goal_word(task: &Task, has_children: bool, program: bool) -> (&'static str, bool) {
    let refinement = task.spec.thinking.as_ref().and_then(|thinking| thinking.refinement);
    let untold = match task.state.status {
        Status::Done => {
            let is_told = has_children || matches!(refinement, None | Some(Refinement::Atomic));
            return ("complete", is_told);
        }
        Status::Failed => return ("failed", refinement.is_none()),
        Status::Pending => false,
        Status::Running | Status::Skipped | Status::Cancelled => true,
    };
    let word = match refinement {
        Some(Refinement::Atomic) => "atomic",
        Some(Refinement::Decomposing) => "decomposing",
        // Without children `complete` would mean that it is done.
        Some(Refinement::Decomposed) if !has_children => return ("decomposing", false),
        Some(Refinement::Decomposed) if program => "complete",
        // Planning goes on from its children in any case.
        Some(Refinement::Decomposed) => "decomposing",
        None => "pending",
    };
    (word, !untold)
}
