//! Text layout for a terminal: padding, fitting into a cell, wrapping to lines, horizontal scrolling.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::sanitize::{sanitize, sanitize_line};
use crate::truncate::{ELLIPSIS, cut, fitting, truncate, visible_part, width};

/// Pads `text` with spaces on the right to `columns`. Wider text is returned unchanged.
pub fn pad(text: &str, columns: usize) -> String {
    let mut padded = text.to_owned();
    padded.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(text))));
    padded
}

/// Returns one sanitized line of exactly `columns`, left-aligned: padded or truncated.
pub fn fit(text: &str, columns: usize) -> String {
    pad(&truncate(text, columns), columns)
}

/// Returns one sanitized line of exactly `columns`, right-aligned: padded or truncated.
pub fn fit_right(text: &str, columns: usize) -> String {
    let line = truncate(text, columns);
    format!("{}{line}", " ".repeat(columns.saturating_sub(width(&line))))
}

/// Wraps `text` to at most `lines_max` sanitized lines of at most `columns` columns. A line breaks after a space or
/// next to a wide character. A word longer than a line is split, after a slash or a hyphen if it has one. The text's
/// own line ends and indentation are preserved. An ellipsis marks omitted text.
pub fn wrap(text: &str, columns: usize, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let text = text.trim_end();
    if columns == 0 || lines_max == 0 || text.is_empty() {
        return lines;
    }
    let part = visible_part(text, columns.saturating_mul(lines_max));
    for paragraph in sanitize(part).split('\n') {
        let paragraph = sanitize_line(paragraph.trim_end());
        let mut rest: &str = &paragraph;
        if width(rest) - width(rest.trim_start()) >= columns {
            rest = rest.trim_start();
        }
        loop {
            if lines.len() == lines_max {
                mark_as_cut(&mut lines, columns);
                return lines;
            }
            if fitting(rest, columns).len() == rest.len() {
                lines.push(rest.to_owned());
                break;
            }
            if lines.len() + 1 == lines_max {
                lines.push(cut(rest, columns));
                return lines;
            }
            let end = line_break(rest, columns);
            lines.push(rest[..end].trim_end().to_owned());
            rest = rest[end..].trim_start();
            if rest.is_empty() {
                break;
            }
        }
    }
    if part.len() < text.len() {
        mark_as_cut(&mut lines, columns);
    }
    lines
}

fn mark_as_cut(lines: &mut [String], columns: usize) {
    let Some(last) = lines.last_mut() else { return };
    *last = if width(last) + 2 > columns { cut(last, columns) } else { format!("{last} {ELLIPSIS}") };
}

/// Returns the byte offset at which the first line of a text wider than `columns` ends; at least one grapheme.
fn line_break(text: &str, columns: usize) -> usize {
    let mut used = 0;
    let mut opportunity = None;
    let mut in_word = None;
    let mut has_word = false;
    for (at, grapheme) in text.grapheme_indices(true) {
        let wide = grapheme.width();
        let is_space = grapheme.chars().all(char::is_whitespace);
        if has_word && (is_space || wide > 1) {
            opportunity = Some(at);
        }
        if used + wide > columns {
            let forced = if at == 0 { grapheme.len() } else { at };
            return opportunity.or(in_word).unwrap_or(forced);
        }
        used += wide;
        has_word |= !is_space;
        if has_word && (is_space || wide > 1) {
            opportunity = Some(at + grapheme.len());
        }
        if matches!(grapheme, "/" | "-") {
            in_word = Some(at + grapheme.len());
        }
    }
    text.len()
}

/// Returns the part of a line after its first `columns` columns. A wide character split by the boundary becomes a
/// space.
pub fn skip_columns(line: &str, columns: usize) -> String {
    let mut used = 0;
    let mut shown = String::new();
    for grapheme in line.graphemes(true) {
        let wide = grapheme.width();
        if used >= columns {
            shown.push_str(grapheme);
        } else if used + wide > columns {
            shown.push(' ');
        }
        used += wide;
    }
    shown
}
