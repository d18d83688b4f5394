//! Names for resources that an attempt creates outside of this process. A name is a function of the attempt, so every
//! process derives the same one, and no two attempts share one.

use super::attempt_spec::idempotency_key;
use crate::outcome::AttemptKey;

/// Characters of the task id in a name.
const TASK_CHARS_MAX: usize = 30;

/// Returns a short checksum of a text.
pub(super) fn sum(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    waypost_text::hex(&digest.as_ref()[..5])
}

/// Returns the name of an attempt's container or Job.
pub(super) fn name(key: &AttemptKey) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let task: String = key.task.as_str().chars().map(plain).take(TASK_CHARS_MAX).collect();
    let task = task.trim_matches('-');
    let gap = if task.is_empty() { "" } else { "-" };
    format!("waypost-{task}{gap}{}-{}", key.attempt, sum(&idempotency_key(key)))
}

/// Returns a name for the job with this idempotency key, which is the same wherever it is asked for.
pub(super) fn of_idempotency_key(key: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let words: String = key.chars().map(plain).rev().take(TASK_CHARS_MAX).collect();
    let words: String = words.chars().rev().collect();
    format!("waypost-{}-{}", words.trim_matches('-'), sum(key))
}

#[cfg(test)]
mod tests {
    use waypost_core::{PlanId, TaskId};

    use super::*;

    fn key(task: &str, attempt: u32) -> AttemptKey {
        AttemptKey::new(&PlanId::new("kq3x").unwrap(), &TaskId::new(task).unwrap(), attempt)
    }

    #[test]
    fn names_are_such_as_clusters_and_engines_take() {
        for task in ["build", "Build API/v2", "é", "-", &"x".repeat(120)] {
            let name = name(&key(task, 12));
            assert!(name.len() <= 57, "{name}: room for the end of a pod's name");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
            assert!(!name.ends_with('-'), "{name}");
        }
        assert_ne!(name(&key("a/b", 1)), name(&key("a-b", 1)));
        assert_ne!(name(&key("a", 1)), name(&key("a", 2)));
        assert_eq!(name(&key("a", 1)), name(&key("a", 1)));
    }
}
