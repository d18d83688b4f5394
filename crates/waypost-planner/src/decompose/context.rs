//! What a model is told of the place of a goal: why it is wanted, what lies above and beside it, and what came of that.
//! Bounded, whatever the size of the plan.

use waypost_core::{Dependency, Plan, Status, Task};
use waypost_text::sanitize;

use super::Decompose;
use crate::prompts::Values;
use crate::similarity::{cut, one_line};

/// Goals above a goal that are told: the first ones and the nearest.
pub(super) const ANCESTORS_TOLD_MAX: usize = 12;
/// Goals beside a goal that are told.
pub(super) const SIBLINGS_TOLD_MAX: usize = 40;
/// Columns of each.
pub(super) const DESCRIPTION_COLUMNS_MAX: usize = 500;
/// Columns of a digest.
pub(super) const DIGEST_COLUMNS_MAX: usize = 1_200;
/// Bytes of the goal that it is about.
const GOAL_BYTES_MAX: usize = 20_000;
/// Bytes of a goal's own notes.
const NOTES_BYTES_MAX: usize = 4_000;

/// The goal itself, as whole as can be.
pub(super) fn goal_text(task: &Task) -> String {
    let mut text = cut(&sanitize(&task.spec.description), GOAL_BYTES_MAX);
    if !task.spec.notes.is_empty() {
        text.push_str("\nNotes: ");
        text.push_str(&cut(&sanitize(&task.spec.notes), NOTES_BYTES_MAX));
    }
    text
}

/// A goal in one line, with its id.
pub(super) fn line(task: &Task) -> String {
    format!("{}: {}", task.spec.id, one_line(&task.spec.description, DESCRIPTION_COLUMNS_MAX))
}

/// The goals above a goal, the highest first.
pub(super) fn ancestors<'a>(plan: &'a Plan, task: &Task) -> Vec<&'a Task> {
    let mut above = Vec::new();
    let mut at = task.spec.parent.as_ref();
    while let Some(parent) = at.and_then(|id| plan.task(id.as_str())) {
        above.push(parent);
        at = parent.spec.parent.as_ref();
    }
    above.reverse();
    above
}

/// The goals beside a goal, in their order, without itself.
pub(super) fn siblings<'a>(plan: &'a Plan, task: &Task) -> Vec<&'a Task> {
    let all: Vec<&Task> = match &task.spec.parent {
        Some(parent) => plan.children(parent.as_str()),
        None => plan.tasks().filter(|(_, depth)| *depth == 0).map(|(task, _)| task).collect(),
    };
    all.into_iter().filter(|other| other.spec.id != task.spec.id).collect()
}

/// What finished work has come to, for those who go on from it.
pub(super) fn digest_text(task: &Task) -> Option<String> {
    let digest = task.spec.thinking.as_ref()?.digest.as_ref()?;
    let mut text = format!("  digest: {}", one_line(&digest.summary, DIGEST_COLUMNS_MAX));
    for (what, list) in [("decided", &digest.key_decisions), ("made", &digest.artifacts)] {
        if !list.is_empty() {
            text.push_str(&format!("\n  {what}: {}", one_line(&list.join("; "), DIGEST_COLUMNS_MAX)));
        }
    }
    Some(text)
}

/// A goal beside another: its line, what came of it, and what it was broken down into if the other waits for it.
fn sibling_text(plan: &Plan, task: &Task, sibling: &Task) -> String {
    let mut text = format!("- {}", line(sibling));
    match sibling.state.status {
        Status::Pending | Status::Running => {}
        status @ (Status::Done | Status::Failed | Status::Skipped | Status::Cancelled) => {
            text.push_str(&format!(" ({})", status.as_str()));
        }
    }
    if let Some(digest) = digest_text(sibling) {
        text.push('\n');
        text.push_str(&digest);
    } else if waits_for(task, sibling) {
        // It has been thought through by now, so that this is the same whenever it is asked.
        for child in plan.children(sibling.spec.id.as_str()).into_iter().take(SIBLINGS_TOLD_MAX) {
            text.push_str(&format!("\n  - {}", line(child)));
        }
    }
    text
}

pub(super) fn waits_for(task: &Task, other: &Task) -> bool {
    task.spec.depends_on.iter().filter_map(Dependency::here).any(|on| *on == other.spec.id)
}

impl Decompose {
    /// The values that all prompts about one goal have.
    pub(super) fn place_values(&self, plan: &Plan, task: &Task) -> Values {
        let above = ancestors(plan, task);
        let mut chain: Vec<String> = Vec::new();
        let goal = plan.spec().goal.trim();
        // The highest goal is often the plan's own, which need not be told twice.
        let highest = above.first().copied().unwrap_or(task);
        if !goal.is_empty() && highest.spec.description.trim() != goal {
            chain.push(one_line(goal, DESCRIPTION_COLUMNS_MAX));
        }
        let left_out = above.len().saturating_sub(ANCESTORS_TOLD_MAX);
        for (place, ancestor) in above.iter().enumerate() {
            let half = ANCESTORS_TOLD_MAX / 2;
            if left_out == 0 || place < half || place >= half + left_out {
                chain.push(one_line(&ancestor.spec.description, DESCRIPTION_COLUMNS_MAX));
            } else if place == half {
                chain.push(format!("… ({left_out} goals between)"));
            }
        }
        let chain: Vec<String> =
            chain.iter().enumerate().map(|(level, line)| format!("{}- {line}", "  ".repeat(level))).collect();
        let beside = siblings(plan, task);
        // What a goal waits for matters most, then what is finished, then the rest.
        let mut told: Vec<&Task> = beside.iter().copied().filter(|other| waits_for(task, other)).collect();
        let others = beside.iter().copied().filter(|other| !waits_for(task, other));
        told.extend(others.clone().filter(|other| digest_text(other).is_some()));
        told.extend(others.filter(|other| digest_text(other).is_none()));
        let more = told.len().saturating_sub(SIBLINGS_TOLD_MAX);
        told.truncate(SIBLINGS_TOLD_MAX);
        let mut lines: Vec<String> = told.into_iter().map(|other| sibling_text(plan, task, other)).collect();
        if more > 0 {
            lines.push(format!("- … and {more} more"));
        }
        Values::default()
            .data("goal", &goal_text(task))
            .data_under(
                "ancestors",
                "It is wanted for this, the widest goal first and its own parent last:",
                &chain.join("\n"),
            )
            .data_under("siblings", "Beside it stand these, which others take care of:", &lines.join("\n"))
    }
}
