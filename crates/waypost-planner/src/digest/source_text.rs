//! The result of a task as text, from which a digest is made and examined. Limited in size.

use waypost_core::{Digest, Plan, Task};
use waypost_text::sanitize;

use crate::similarity::cut;

/// Maximum size of the original in bytes.
pub(super) const ORIGINAL_BYTES_MAX: usize = 60_000;
/// Maximum size of one part of it in bytes.
const PART_BYTES_MAX: usize = 20_000;
/// Maximum number of subtasks included.
const CHILDREN_TOLD_MAX: usize = 100;

/// Everything known about a finished task.
pub(super) fn text_of(plan: &Plan, task: &Task) -> String {
    let mut text = own(task);
    let children = plan.children(task.spec.id.as_str());
    if !children.is_empty() {
        text.push_str("\nParts:");
    }
    for child in children.iter().take(CHILDREN_TOLD_MAX) {
        let digest = child.spec.thinking.as_ref().and_then(|thinking| thinking.digest.as_ref());
        let said = match digest {
            Some(digest) => {
                format!(
                    "{} ({})\n{}",
                    child.spec.description,
                    child.state.status.as_str(),
                    digest_text(digest)
                )
            }
            None => own(child),
        };
        text.push_str(&format!("\n- {}", said.replace('\n', "\n  ")));
    }
    if children.len() > CHILDREN_TOLD_MAX {
        text.push_str(&format!("\n- and {} more", children.len() - CHILDREN_TOLD_MAX));
    }
    cut(&text, ORIGINAL_BYTES_MAX)
}

fn own(task: &Task) -> String {
    let mut lines = vec![format!("Goal: {}", task.spec.description)];
    let mut part = |what: &str, text: Option<&str>| {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            lines.push(format!("{what}: {}", cut(&sanitize(text.trim()), PART_BYTES_MAX)));
        }
    };
    part("Notes", Some(&task.spec.notes));
    part("Ended as", Some(task.state.status.as_str()));
    part("Result", task.state.result.as_deref());
    part("Output", task.state.output.as_ref().map(|output| output.as_str()));
    part("Error", task.state.error.as_deref());
    part("Reason", task.state.why().as_deref().filter(|why| Some(*why) != task.state.error.as_deref()));
    for answer in task.state.answers() {
        part("Asked", Some(&answer.question));
        part("Answered", Some(&answer.answer));
    }
    lines.join("\n")
}

/// A digest as later goals and the exam see it.
pub(super) fn digest_text(digest: &Digest) -> String {
    let mut text = digest.summary.clone();
    for (what, list) in [("Decided", &digest.key_decisions), ("Made", &digest.artifacts)] {
        if !list.is_empty() {
            text.push_str(&format!("\n{what}: {}", list.join("; ")));
        }
    }
    text
}
