//! Checks shared by several sections.

use waypost_core::nearest;

/// The hint for a word that is not among the known ones.
pub(crate) fn one_of(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("it can be {}", known.join(", ")),
    }
}

/// Whether a path stays below its starting folder, judged by its text only. Symbolic links are checked when it is used.
pub(crate) fn stays_inside(path: &str) -> bool {
    use std::path::{Component, Path};
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    Path::new(path).components().all(inside)
}
