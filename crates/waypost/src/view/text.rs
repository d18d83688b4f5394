//! Text in a bounded space: one line, so many columns, so long ago. Knows no plans.

use std::time::{SystemTime, UNIX_EPOCH};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use waypost_core::{Timestamp, seemly, steers};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text on one line: line ends and other controls become spaces, runs of them one.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(256));
    for character in text.chars() {
        if steers(character) || character.is_whitespace() {
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
        } else {
            line.push(character);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// The text on one line of at most `columns` columns; a cut is shown.
pub(crate) fn short(text: &str, columns: usize) -> String {
    // Only the beginning can be seen, so only the beginning is looked at.
    let seen = text.char_indices().nth(columns.saturating_mul(4) + 16).map_or(text, |(end, _)| &text[..end]);
    let line = one_line(seen);
    if seen.len() == text.len() { short_line(&line, columns) } else { cut(&line, columns) }
}

/// A line cut to at most `columns` columns; the spaces in it stay.
pub(crate) fn short_line(line: &str, columns: usize) -> String {
    if width(line) <= columns { line.to_owned() } else { cut(line, columns) }
}

fn cut(line: &str, columns: usize) -> String {
    let (mut cut, mut used) = (String::new(), 0);
    for character in line.chars() {
        let more = character.width().unwrap_or(0);
        if used + more > columns.saturating_sub(1) {
            break;
        }
        used += more;
        cut.push(character);
    }
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// The text with spaces behind it up to `columns`.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let mut padded = text.to_owned();
    padded.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(text))));
    padded
}

/// The text in lines of at most `columns` columns, broken at spaces where there are any; its own line ends stay.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.trim_end().split('\n') {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let mut word = seemly(word);
            if !line.is_empty() && width(&line) + 1 + width(&word) > columns {
                lines.push(std::mem::take(&mut line));
            }
            while width(&word) > columns {
                let end = end_of(&word, columns);
                let rest = word.split_off(end);
                lines.push(std::mem::replace(&mut word, rest));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    lines
}

/// The byte at which the first `columns` columns of a word end; at least one character.
fn end_of(word: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, character) in word.char_indices() {
        used += character.width().unwrap_or(0);
        if used > columns && at > 0 {
            return at;
        }
    }
    word.len()
}

/// What time it is. For ages and for what a task waits for; what is written carries the store's own time.
#[expect(
    clippy::disallowed_methods,
    reason = "a command that looks needs no store to say how long ago something was"
)]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// How long ago, in its largest unit: `12s`, `5m`, `3h`, `9d`.
pub(crate) fn age(at: Option<Timestamp>, now: Timestamp) -> String {
    let Some(at) = at else { return "-".to_owned() };
    let seconds = (now.as_micros() - at.as_micros()).max(0) / 1_000_000;
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

/// A moment to the second: `2026-03-22 10:00:00`.
pub(crate) fn moment(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(..19).unwrap_or(&text).replace('T', " ")
}

/// A size as people read it.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// `1 task`, `2 tasks`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_columns_not_by_bytes() {
        for (text, columns, expected) in [
            ("plain", 5, "plain"),
            ("plain text", 6, "plain…"),
            ("日本語の計画", 7, "日本語…"),
            ("日本語", 6, "日本語"),
            ("🎯 goal", 4, "🎯…"),
            ("two\nlines\tand  more", 40, "two lines and more"),
            ("bad\u{1b}[31m", 10, "bad [31m"),
        ] {
            assert_eq!(short(text, columns), expected);
            assert!(width(&short(text, columns)) <= columns);
        }
    }

    #[test]
    fn a_long_word_is_broken_and_line_ends_stay() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(wrapped("日本語", 3), ["日", "本", "語"]);
    }

    #[test]
    fn ages_use_the_largest_unit() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let now = at(10 * DAY);
        for (ago, expected) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (3600, "1h"), (DAY - 1, "23h"), (9 * DAY, "9d")]
        {
            assert_eq!(age(Some(at(10 * DAY - ago)), now), expected);
        }
        assert_eq!(age(Some(at(11 * DAY)), now), "0s", "a clock that is ahead is no error");
        assert_eq!(age(None, now), "-");
    }
}
