//! Describes the context of a goal to a model: its ancestors, its siblings, and their results. Limited in size for
//! plans of any size.

use waypost_core::{Dependency, Plan, Status, Task};
use waypost_text::sanitize;

use super::Decompose;
use crate::prompts::Values;
use crate::similarity::{cut, one_line};

/// Maximum number of ancestors in a prompt: the first ones and the nearest.
pub(super) const ANCESTORS_TOLD_MAX: usize = 12;
/// Maximum number of siblings in a prompt.
pub(super) const SIBLINGS_TOLD_MAX: usize = 40;
/// Maximum width of each in columns.
pub(super) const DESCRIPTION_COLUMNS_MAX: usize = 500;
/// Maximum width of a digest in columns.
pub(super) const DIGEST_COLUMNS_MAX: usize = 1_200;
/// Maximum size of the goal itself in bytes.
const GOAL_BYTES_MAX: usize = 20_000;
/// Maximum size of a goal's notes in bytes.
const NOTES_BYTES_MAX: usize = 4_000;

/// The goal itself, truncated only if it is very long.
pub(super) fn goal_text(task: &Task) -> String {
    let mut text = cut(&sanitize(&task.spec.description), GOAL_BYTES_MAX);
    if !task.spec.notes.is_empty() {
        text.push_str("\nNotes: ");
        text.push_str(&cut(&sanitize(&task.spec.notes), NOTES_BYTES_MAX));
    }
    text
}

/// A goal with its id, in one line.
pub(super) fn line(task: &Task) -> String {
    format!("{}: {}", task.spec.id, one_line(&task.spec.description, DESCRIPTION_COLUMNS_MAX))
}

/// The ancestors of a goal, the root first.
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

/// The siblings of a goal, in order, without the goal itself.
pub(super) fn siblings<'a>(plan: &'a Plan, task: &Task) -> Vec<&'a Task> {
    let all: Vec<&Task> = match &task.spec.parent {
        Some(parent) => plan.children(parent.as_str()),
        None => plan.tasks().filter(|(_, depth)| *depth == 0).map(|(task, _)| task).collect(),
    };
    all.into_iter().filter(|other| other.spec.id != task.spec.id).collect()
}

/// The digest of finished work, for goals that build on it.
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

/// A sibling of a goal: its line, its result, and its subtasks if the goal depends on it.
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
        // The sibling is fully decomposed by now, so the prompt does not depend on when it is built.
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
    /// The values shared by all prompts about one goal.
    pub(super) fn place_values(&self, plan: &Plan, task: &Task) -> Values {
        let above = ancestors(plan, task);
        let mut chain: Vec<String> = Vec::new();
        let goal = plan.spec().goal.trim();
        // The root goal is often the plan's own goal, which is not repeated then.
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
        // Dependencies matter most, then finished siblings, then the rest.
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
