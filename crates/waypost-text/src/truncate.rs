//! Width and truncation: by columns of a terminal, whole graphemes only, and by bytes, whole characters only.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::sanitize::{one_line, sanitize_line};

/// Stands where something was left out.
pub const ELLIPSIS: char = '…';

/// Bytes that one column takes at most: a family of four with skin tones has 41 bytes in two columns. A text with more is
/// truncated early, so that megabytes of combining marks cost no more than what is seen of them.
const COLUMN_BYTES_MAX: usize = 32;

/// Columns that a text takes in a terminal.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// The beginning of a text that can be seen in so many columns, before anything is known about its width.
pub(crate) fn visible_part(text: &str, columns: usize) -> &str {
    head_bytes(text, columns.saturating_add(2).saturating_mul(COLUMN_BYTES_MAX))
}

/// A text as one safe line of at most `columns` columns, with an ellipsis if it was cut. Spacing stays.
pub fn truncate(text: &str, columns: usize) -> Cow<'_, str> {
    let part = visible_part(text, columns);
    let line = sanitize_line(part);
    if part.len() == text.len() && width(&line) <= columns { line } else { Cow::Owned(cut(&line, columns)) }
}

/// A text as one safe line of at most `columns` columns, its words separated by one space, with an ellipsis if it was cut.
pub fn excerpt(text: &str, columns: usize) -> Cow<'_, str> {
    let text = text.trim();
    let part = visible_part(text, columns);
    let line = one_line(part);
    if part.len() == text.len() && width(&line) <= columns { line } else { Cow::Owned(cut(&line, columns)) }
}

/// As much of a line as fits before an ellipsis, and the ellipsis.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let mut kept = fitting(line, room).trim_end().to_owned();
    kept.push(ELLIPSIS);
    kept
}

/// As many graphemes from the beginning of a line as fit.
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

/// A text of at most `bytes_max` bytes, with an ellipsis if it was cut and the ellipsis fits. Does not sanitize.
pub fn truncate_bytes(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    match bytes_max.checked_sub(ELLIPSIS.len_utf8()) {
        Some(room) => Cow::Owned(format!("{}{ELLIPSIS}", head_bytes(text, room))),
        None => Cow::Borrowed(head_bytes(text, bytes_max)),
    }
}

/// A text as one safe line of at most `bytes_max` bytes, its words separated by one space, with an ellipsis if it was cut.
pub fn excerpt_bytes(text: &str, bytes_max: usize) -> String {
    truncate_bytes(&one_line(text), bytes_max).into_owned()
}

/// The first bytes of a text, whole characters only.
pub fn head_bytes(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// The last bytes of a text, whole characters only.
pub fn tail_bytes(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}
