//! Checks shared by several sections.

use waypost_core::nearest;

/// The hint for a word that is not among the known ones.
pub(crate) fn one_of(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("it can be {}", known.join(", ")),
    }
}

/// Whether a log can be written to a path: below the workspace, or an absolute path without steps up, which only a configuration
/// that somebody trusts can name.
pub(crate) fn is_log_path(path: &str) -> bool {
    use std::path::{Component, Path};
    let has_no_steps_up = |path: &Path| path.components().all(|part| part != Component::ParentDir);
    !path.is_empty()
        && (stays_inside(path) || Path::new(path).is_absolute() && has_no_steps_up(Path::new(path)))
}

/// Whether a path stays below its starting folder, judged by its text only. Symbolic links are checked when it is used.
pub(crate) fn stays_inside(path: &str) -> bool {
    use std::path::{Component, Path};
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    Path::new(path).components().all(inside)
}
