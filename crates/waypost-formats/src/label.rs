//! Text of a plan made fit for one line of a picture or a terminal. Plans are written by anybody: nothing in a label
//! may move a cursor, turn the direction of writing, or break a line.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use waypost_core::Status;

/// The text on one line: runs of white space become one space, and what cannot be shown becomes `�`.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }));
    }
    line
}

/// Characters that act instead of being shown: controls, turns of direction, line separators, and what XML forbids.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// The line cut to at most `columns` columns of a terminal, with `…` where something is missing.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let mut short = String::new();
    let mut width = 0;
    for c in line.chars() {
        let wide = c.width().unwrap_or(0);
        if width + wide + 1 > columns {
            break;
        }
        width += wide;
        short.push(c);
    }
    let kept = short.trim_end().len();
    short.truncate(kept);
    short.push('…');
    short
}

/// The line broken into at most `lines` lines of at most `columns` columns each.
pub(crate) fn wrapped(line: &str, columns: usize, lines: usize) -> Vec<String> {
    let mut broken: Vec<String> = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        if rest.width() <= columns {
            broken.push(rest.to_owned());
            break;
        }
        if broken.len() + 1 >= lines {
            broken.push(cut(rest, columns));
            break;
        }
        let mut width = 0;
        let mut end = 0;
        let mut space = None;
        for (at, c) in rest.char_indices() {
            let wide = c.width().unwrap_or(0);
            if width + wide > columns {
                break;
            }
            if c == ' ' {
                space = Some(at);
            }
            width += wide;
            end = at + c.len_utf8();
        }
        // The space right after a full line is as good a place to break as one inside it.
        let at = if rest[end..].starts_with(' ') { end } else { space.unwrap_or(end) };
        // A character that is wider than a whole line still has to go somewhere.
        let at = if at == 0 { rest.chars().next().map_or(rest.len(), char::len_utf8) } else { at };
        broken.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    broken
}

/// The sign of a status, so that colour is never the only one.
pub(crate) fn sign(status: Status) -> char {
    match status {
        Status::Pending => '○',
        Status::Running => '▶',
        Status::Done => '✓',
        Status::Failed => '✗',
        Status::Skipped => '↷',
        Status::Cancelled => '⊘',
    }
}

/// Text inside XML or HTML, in an attribute or between tags.
pub(crate) fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // White space that an attribute would otherwise turn into plain spaces.
            '\n' => safe.push_str("&#10;"),
            '\r' => safe.push_str("&#13;"),
            '\t' => safe.push_str("&#9;"),
            c if c.is_control() && c < '\u{20}' || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                safe.push('\u{fffd}')
            }
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_holds_nothing_that_acts() {
        assert_eq!(one_line("a\n\tb\u{1b}[31m \u{202e}c"), "a b\u{fffd}[31m \u{fffd}c");
    }

    #[test]
    fn lines_are_cut_by_what_is_seen() {
        assert_eq!(cut("日本語の計画", 7), "日本語…");
        assert_eq!(cut("short", 5), "short");
        assert_eq!(wrapped("one two three four", 9, 2), ["one two", "three fo…"]);
        assert_eq!(wrapped("unbreakable", 4, 9), ["unbr", "eaka", "ble"]);
        assert_eq!(wrapped("日本", 1, 9), ["日", "本"]);
    }
}
