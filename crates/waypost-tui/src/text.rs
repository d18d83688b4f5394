//! Text of plans on a terminal: without anything that could steer it, cut and padded by columns. Draws nothing.
//!
//! A plan is text that a model wrote. Control characters would move the cursor, and marks of direction would show one
//! thing and mean another; both are shown as signs.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;
use waypost_core::Timestamp;

/// The sign that something was cut off.
pub const CUT: &str = "…";

/// What is shown for a character that must not reach the terminal.
fn shown_for(character: char) -> Option<char> {
    match character {
        '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some(' '),
        '\u{7f}' => Some('␡'),
        '\0'..='\u{1f}' => char::from_u32(0x2400 + character as u32),
        '\u{80}'..='\u{9f}' => Some('�'),
        // Marks that turn the direction of text round, or hide in it.
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' => Some('�'),
        '\u{ad}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => Some('�'),
        _ => None,
    }
}

/// `text` as one line that a terminal only shows.
pub fn line(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || !text.chars().any(|c| shown_for(c).is_some())
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| shown_for(c).unwrap_or(c)).collect())
}

/// Columns that `text` takes.
pub fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// As much of the beginning of `text`, as one safe line, as fits into `columns`; what was cut shows.
pub fn cut(text: &str, columns: usize) -> String {
    // A cell shows at most a few characters, so that a text of megabytes costs no more than what is seen of it.
    let mut shown = String::new();
    let mut used = 0;
    let mut fits = (0, 0);
    for grapheme in text.graphemes(true) {
        let grapheme = line(grapheme);
        let wide = grapheme.width();
        if used + wide > columns {
            shown.truncate(fits.0);
            if columns > 0 {
                shown.push_str(CUT);
            }
            return shown;
        }
        shown.push_str(&grapheme);
        used += wide;
        if used < columns {
            fits = (shown.len(), used);
        }
    }
    shown
}

/// `text` as one safe line of exactly `columns`.
pub fn fit(text: &str, columns: usize) -> String {
    let mut shown = cut(text, columns);
    let missing = columns.saturating_sub(width(&shown));
    shown.extend(std::iter::repeat_n(' ', missing));
    shown
}

/// `text` as one safe line of exactly `columns`, at the right side.
pub fn fit_right(text: &str, columns: usize) -> String {
    let shown = cut(text, columns);
    let missing = columns.saturating_sub(width(&shown));
    format!("{}{shown}", " ".repeat(missing))
}

/// `text` broken into safe lines of at most `columns`, at most `lines_max` of them; what was left out shows.
pub fn wrap(text: &str, columns: usize, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if columns == 0 || lines_max == 0 {
        return lines;
    }
    for paragraph in text.split('\n') {
        let mut current = String::new();
        for word in paragraph.trim_end().split_word_bounds() {
            let word = line(word);
            if width(&current) + width(&word) <= columns {
                current.push_str(&word);
                continue;
            }
            if !current.trim_end().is_empty() {
                lines.push(current.trim_end().to_owned());
            }
            current.clear();
            for grapheme in word.trim_start().graphemes(true) {
                if width(&current) + grapheme.width() > columns {
                    lines.push(std::mem::take(&mut current));
                }
                current.push_str(grapheme);
            }
            if lines.len() > lines_max {
                break;
            }
        }
        lines.push(current.trim_end().to_owned());
        if lines.len() > lines_max {
            break;
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            *last = cut(&format!("{last} {CUT}{CUT}"), columns);
        }
    }
    lines
}

/// How long ago, in a word: `now`, `5m`, `3h`, `12d`, `7w`.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_micros().saturating_sub(at.as_micros()) / 1_000_000;
    match seconds {
        ..=9 => "now".to_owned(),
        10..=59 => format!("{seconds}s"),
        60..=3_599 => format!("{}m", seconds / 60),
        3_600..=86_399 => format!("{}h", seconds / 3_600),
        86_400..=1_209_599 => format!("{}d", seconds / 86_400),
        _ => format!("{}w", seconds / 604_800),
    }
}

/// A number with its noun: `1 task`, `3 tasks`.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// What is left of `text` without its first `columns`. A wide character that is cut through leaves a space.
pub fn skip(text: &str, columns: usize) -> String {
    let mut used = 0;
    let mut shown = String::new();
    for grapheme in text.graphemes(true) {
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
