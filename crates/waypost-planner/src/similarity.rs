//! Compares descriptions by words, not by meaning.

use std::collections::BTreeMap;

use waypost_text::{excerpt, truncate_bytes};

/// Minimum share of words common to both descriptions, of all their words, for one to restate the other.
pub const RESTATEMENT_PERCENT: usize = 90;

/// Words without significance for a task.
const EMPTY_WORDS: &[&str] = &[
    "a", "an", "and", "be", "for", "goal", "in", "is", "it", "of", "on", "or", "our", "please", "step",
    "sub", "subgoal", "task", "that", "the", "this", "to", "we", "with", "you", "your",
];

/// The significant words of a text, in order: lower case, without punctuation. Each character of a script without spaces
/// is a word.
pub(crate) fn significant_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for character in text.chars() {
        let alone = character > '\u{2E7F}';
        if character.is_alphanumeric() && !alone {
            word.extend(character.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if alone && character.is_alphanumeric() {
            words.push(character.to_string());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    let said: Vec<String> =
        words.iter().filter(|word| !EMPTY_WORDS.contains(&word.as_str())).cloned().collect();
    // A text of such words only is compared by them.
    if said.is_empty() { words } else { said }
}

/// Whether two descriptions differ only in case, punctuation and insignificant words.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let one = significant_words(one);
    !one.is_empty() && one == significant_words(other)
}

/// Whether two descriptions have nearly the same words.
pub(crate) fn restates(one: &str, other: &str) -> bool {
    let (one, other) = (significant_words(one), significant_words(other));
    // A repeated word counts repeatedly: 1.1 is not 1.1.1.
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for word in &one {
        *left.entry(word).or_default() += 1;
    }
    let in_both = other.iter().filter(|word| match left.get_mut(word.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        Some(_) | None => false,
    });
    let in_both = in_both.count();
    let all = one.len() + other.len() - in_both;
    all > 0 && in_both * 100 >= RESTATEMENT_PERCENT * all
}

/// Truncates a text to `bytes_max`, keeping line breaks.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    truncate_bytes(text, bytes_max).into_owned()
}

/// A text as one line of at most `columns`.
pub(crate) fn one_line(text: &str, columns: usize) -> String {
    excerpt(text, columns).into_owned()
}
