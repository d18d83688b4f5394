//! Text for replies, truncated: excerpts, ranges of ids, changes, bounded JSON. A plan is a text by others, and the model that
//! reads a reply pays for it.

use serde_json::Value;
use waypost_core::{DiffStat, Difference};
pub(crate) use waypost_text::excerpt_bytes as cut;
use waypost_text::{quote, quote_unless_word, sanitize, truncate_bytes};

/// Maximum number of changes in a reply.
pub(crate) const CHANGES_MAX: usize = 30;
/// Maximum bytes of each value in a change.
const CHANGE_BYTES: usize = 80;

/// Maximum number of notes in a reply.
const NOTES_MAX: usize = 3;
/// Maximum bytes of each note.
const NOTE_BYTES: usize = 120;

/// Returns the first few notes, each cut to its maximum.
pub(crate) fn notes(notes: &[String]) -> Vec<String> {
    notes.iter().take(NOTES_MAX).map(|note| cut_at_word(note, NOTE_BYTES)).collect()
}

/// Cuts a text to at most `bytes`, on one line, before a word.
fn cut_at_word(text: &str, bytes: usize) -> String {
    let short = cut(text, bytes);
    let end = if short.ends_with('…') && cut(text, usize::MAX) != short { short.rfind(' ') } else { None };
    end.map_or_else(|| short.clone(), |end| format!("{}…", &short[..end]))
}

/// Cuts a text to at most `bytes`; keeps its line breaks.
pub(crate) fn cut_text(text: &str, bytes: usize) -> String {
    truncate_bytes(&sanitize(text), bytes).into_owned()
}

/// Returns the leading names that fit: at most `count`, and at most `bytes` in total.
pub(crate) fn few<'a>(names: impl Iterator<Item = &'a str>, count: usize, bytes: usize) -> Vec<&'a str> {
    let mut room = bytes;
    let fits = |name: &&str| {
        let fits = name.len() <= room;
        room = room.saturating_sub(name.len());
        fits
    };
    names.take(count).take_while(fits).collect()
}

/// Lists names, with consecutive numbers as ranges, e.g. `t1-t50, t60`.
pub(crate) fn ranges(names: &[String], bytes: usize) -> String {
    let mut parts: Vec<(String, Option<String>)> = Vec::new();
    let mut last: Option<(&str, u64)> = None;
    for name in names {
        let numbered = numbered(name);
        let follows = matches!((last, numbered), (Some((a, x)), Some((b, y))) if a == b && x + 1 == y);
        match parts.last_mut().filter(|_| follows) {
            Some((_, to)) => *to = Some(name.clone()),
            None => parts.push((name.clone(), None)),
        }
        last = numbered;
    }
    let mut text = String::new();
    for (at, (from, to)) in parts.iter().enumerate() {
        let part = to.as_ref().map_or_else(|| from.clone(), |to| format!("{from}-{to}"));
        let comma = if at == 0 { "" } else { ", " };
        if text.len() + comma.len() + part.len() > bytes {
            text.push_str(&format!(" +{} more", parts.len() - at));
            break;
        }
        text.push_str(&format!("{comma}{part}"));
    }
    text
}

/// Splits a name into the part before its trailing number, and the number.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let start = name.trim_end_matches(|character: char| character.is_ascii_digit());
    let digits = &name[start.len()..];
    // `t07` is not the same name as `t7`.
    let number = digits.parse().ok().filter(|number: &u64| number.to_string() == digits)?;
    Some((start, number))
}

/// Describes differences briefly, one line for each task, e.g. `t3: status=done, result=ok`.
pub(crate) fn changes(differences: &[Difference]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut last = None;
    for difference in differences {
        match difference {
            body @ Difference::Plan { field: "body", .. } => {
                lines.push(DiffStat::of(std::slice::from_ref(body)).describe());
            }
            Difference::Plan { field, after, .. } => lines.push(changed(field, after)),
            Difference::Added { task, description } => {
                lines.push(format!("+{task} {}", quote(&cut(description, CHANGE_BYTES))));
            }
            Difference::Removed { task, .. } => lines.push(format!("-{task}")),
            Difference::Task { task, field, after, .. } => {
                let what = changed(field, after);
                match lines.last_mut().filter(|_| last == Some(task)) {
                    Some(line) => line.push_str(&format!(", {what}")),
                    None => lines.push(format!("{task}: {what}")),
                }
                last = Some(task);
            }
            Difference::Reordered {} => lines.push("order".to_owned()),
        }
    }
    lines
}

fn changed(field: &str, after: &str) -> String {
    format!("{field}={}", quote_unless_word(&cut(after, CHANGE_BYTES)))
}

/// Cuts long texts and lists until the value has at most `bytes` as JSON, and returns whether it was cut. If that is not enough,
/// the value becomes one truncated text, which escaping may make slightly longer than `bytes`.
pub(crate) fn shortened(value: &Value, bytes: usize) -> (Value, bool) {
    let (mut text_bytes, mut items) = (bytes, bytes);
    let mut found = value.clone();
    let mut was_cut = false;
    while found.to_string().len() > bytes && text_bytes > 16 {
        (text_bytes, items) = (text_bytes / 4, (items / 4).max(4));
        found = shorten(value, text_bytes, items);
        was_cut = true;
    }
    if found.to_string().len() > bytes {
        found = Value::String(cut_text(&value.to_string(), bytes));
    }
    (found, was_cut)
}

fn shorten(value: &Value, text_bytes: usize, items: usize) -> Value {
    match value {
        Value::String(text) => Value::String(cut_text(text, text_bytes)),
        Value::Array(list) => {
            let mut shown: Vec<Value> =
                list.iter().take(items).map(|value| shorten(value, text_bytes, items)).collect();
            if list.len() > shown.len() {
                shown.push(Value::String(format!("… {} more", list.len() - shown.len())));
            }
            Value::Array(shown)
        }
        Value::Object(fields) => {
            let mut shown: serde_json::Map<String, Value> = fields
                .iter()
                .take(items)
                .map(|(name, value)| (cut_text(name, text_bytes.max(64)), shorten(value, text_bytes, items)))
                .collect();
            if fields.len() > shown.len() {
                shown.insert("…".to_owned(), Value::String(format!("{} more", fields.len() - shown.len())));
            }
            Value::Object(shown)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_count_up_are_told_as_ranges() {
        let told =
            |names: &[&str]| ranges(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), 40);
        assert_eq!(told(&["t1", "t2", "t3", "t5", "a", "b7", "b8"]), "t1-t3, t5, a, b7-b8");
        assert_eq!(told(&["t07", "t8"]), "t07, t8");
        assert_eq!(told(&[]), "");
        let many: Vec<String> = (0..100).map(|number| format!("task-{}", number * 2)).collect();
        assert_eq!(ranges(&many, 20), "task-0, task-2 +98 more");
    }

    #[test]
    fn names_are_listed_as_long_as_they_are_short() {
        assert_eq!(few(["t1", "a-very-long-name", "t2"].into_iter(), 5, 10), ["t1"]);
    }

    #[test]
    fn values_are_shortened_to_a_bound_whatever_their_shape() {
        let long = json!({ "text": "x".repeat(10_000), "list": (0..10_000).collect::<Vec<_>>(), "n": 1 });
        let (short, was_cut) = shortened(&long, 500);
        assert!(was_cut && short.to_string().len() <= 500, "{}", short.to_string().len());
        assert_eq!(short["n"], 1);
        let (same, was_cut) = shortened(&json!({ "a": [1, 2] }), 500);
        assert!(!was_cut);
        assert_eq!(same, json!({ "a": [1, 2] }));
        let deep = (0..100).fold(json!("x".repeat(50)), |inner, _| json!([inner, "y".repeat(50)]));
        assert!(shortened(&deep, 100).0.to_string().len() <= 110);
    }

    #[test]
    fn a_note_is_not_cut_in_the_middle_of_a_word() {
        let long = format!("{} nevertheless", "abcd ".repeat(23).trim_end());
        assert_eq!(notes(&[long]), [format!("{}…", "abcd ".repeat(23).trim_end())]);
        let whole = "abcd ".repeat(24).trim_end().to_owned();
        assert_eq!(notes(std::slice::from_ref(&whole)), [whole]);
    }
}
