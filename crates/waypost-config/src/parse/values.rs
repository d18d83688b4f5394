//! Checks that several sections share.

use waypost_core::nearest;

/// What to say about a word that is none of those that are known.
pub(crate) fn one_of(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("it can be {}", known.join(", ")),
    }
}

/// Whether a path names something below where it starts, as far as its text says. Links are looked at when it is used.
pub(crate) fn stays_inside(path: &str) -> bool {
    use std::path::{Component, Path};
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    Path::new(path).components().all(inside)
}
