//! Width and truncation: by terminal columns in whole graphemes, and by bytes in whole characters.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::sanitize::{one_line, sanitize_line};

/// Marks omitted text.
pub const ELLIPSIS: char = '…';

/// Maximum bytes per column: a family of four with skin tones has 41 bytes in two columns. Text with more is truncated
/// early, so that megabytes of combining marks cost no more than their visible part.
const COLUMN_BYTES_MAX: usize = 32;

/// Returns the number of terminal columns that a text occupies.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// Returns the longest prefix that could be visible in `columns` columns, without measuring its width.
pub(crate) fn visible_part(text: &str, columns: usize) -> &str {
    head_bytes(text, columns.saturating_add(2).saturating_mul(COLUMN_BYTES_MAX))
}

/// Returns one sanitized line of at most `columns` columns, with an ellipsis if it was cut. Spacing is preserved.
pub fn truncate(text: &str, columns: usize) -> Cow<'_, str> {
    let part = visible_part(text, columns);
    let line = sanitize_line(part);
    if part.len() == text.len() && width(&line) <= columns { line } else { Cow::Owned(cut(&line, columns)) }
}

/// Returns one sanitized line of at most `columns` columns, words separated by single spaces, with an ellipsis if it
/// was cut.
pub fn excerpt(text: &str, columns: usize) -> Cow<'_, str> {
    let text = text.trim();
    let part = visible_part(text, columns);
    let line = one_line(part);
    if part.len() == text.len() && width(&line) <= columns { line } else { Cow::Owned(cut(&line, columns)) }
}

/// Returns the part of a line that fits before an ellipsis, followed by the ellipsis.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let mut kept = fitting(line, room).trim_end().to_owned();
    kept.push(ELLIPSIS);
    kept
}

/// Returns the longest prefix of whole graphemes that fits in `columns`.
pub(crate) fn fitting(line: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, grapheme) in line.grapheme_indices(true) {
        used += grapheme.width();
        if used > columns {
            return &line[..at];
        }
    }
    line
}

/// Cuts text to at most `bytes_max` bytes, with an ellipsis if it was cut and the ellipsis fits. Does not sanitize.
pub fn truncate_bytes(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    match bytes_max.checked_sub(ELLIPSIS.len_utf8()) {
        Some(room) => Cow::Owned(format!("{}{ELLIPSIS}", head_bytes(text, room))),
        None => Cow::Borrowed(head_bytes(text, bytes_max)),
    }
}

/// Returns one sanitized line of at most `bytes_max` bytes, words separated by single spaces, with an ellipsis if it
/// was cut.
pub fn excerpt_bytes(text: &str, bytes_max: usize) -> String {
    truncate_bytes(&one_line(text), bytes_max).into_owned()
}

/// Returns the first `bytes_max` bytes at most, in whole characters.
pub fn head_bytes(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Returns the last `bytes_max` bytes at most, in whole characters.
pub fn tail_bytes(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}
