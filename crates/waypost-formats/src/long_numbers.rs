//! Finds numbers in a JSON text that have more digits than a number of 64 bits can keep.

use serde::de::IgnoredAny;

/// Maximum number of numbers that are named.
const NAMED_MAX: usize = 10;
/// Maximum number of braces in prose that are tried as the start of an object.
const OBJECTS_MAX: usize = 50;
/// Maximum characters of a number that are shown.
const SHOWN_MAX: usize = 40;

/// Returns a note for each number in the text that changes when it is read, with its line. The text is JSON, or has objects in
/// prose.
pub(crate) fn long_numbers(text: &str) -> Vec<String> {
    let named = |first: usize, part: &str| -> Vec<String> {
        let found = long_numbers_of(part).into_iter();
        found.map(|(line, words)| format!("line {}: {words}", first + line)).collect()
    };
    if text.trim_start().starts_with(['{', '[']) {
        return named(0, text);
    }
    let (mut at, mut notes) = (0, Vec::new());
    for _ in 0..OBJECTS_MAX {
        let Some(begin) = text[at..].find('{') else { break };
        at += begin;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<IgnoredAny>();
        let length = values.next().and_then(Result::ok).map_or(0, |_| values.byte_offset());
        notes.extend(named(text[..at].matches('\n').count(), &text[at..at + length]));
        at += length.max(1);
    }
    notes.truncate(NAMED_MAX);
    notes
}

/// Returns the numbers in a JSON text that change when they are read: the line of each, from 1, and what becomes of it.
pub(crate) fn long_numbers_of(text: &str) -> Vec<(usize, String)> {
    let mut notes = Vec::new();
    let bytes = text.as_bytes();
    let (mut at, mut line, mut in_text) = (0, 1, false);
    while at < bytes.len() && notes.len() < NAMED_MAX {
        match bytes[at] {
            b'\n' => line += 1,
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'-' | b'0'..=b'9' if !in_text => {
                let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let number = &text[at..at + length];
                if let Some(read) = changed(number) {
                    let shown = waypost_text::truncate(number, SHOWN_MAX);
                    let words = format!("the number {shown} has too many digits; it is kept as {read}");
                    notes.push((line, words));
                }
                at += length;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    notes
}

/// Returns what a number is read as, if that is another number.
fn changed(number: &str) -> Option<f64> {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return None;
    }
    let read: f64 = number.parse().ok()?;
    (digits(number) != digits(&format!("{read:e}"))).then_some(read)
}

/// Returns the significant digits of a number.
fn digits(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_named_in_the_objects_of_a_prose() {
        let text =
            "It \"costs 123456789012345678901 {or more}:\n```json\n{\"a\":\n123456789012345678901}\n```\n";
        assert_eq!(
            long_numbers(text),
            [
                "line 4: the number 123456789012345678901 has too many digits; it is kept as 123456789012345680000"
            ]
        );
    }

    #[test]
    fn only_numbers_that_change_are_named() {
        let kept = r#"{"a": 1, "b": -2.50, "c": 1e30, "d": 18446744073709551615, "e": "123456789012345678901", "f": 0.1, "g": 0}"#;
        assert_eq!(long_numbers(kept), Vec::<String>::new());
        let changed = "{\"quote \\\" 123456789012345678901\": 1,\n\"n\": 123456789012345678901, \"f\": 0.1000000000000000055}";
        assert_eq!(
            long_numbers(changed),
            [
                "line 2: the number 123456789012345678901 has too many digits; it is kept as 123456789012345680000",
                "line 2: the number 0.1000000000000000055 has too many digits; it is kept as 0.1",
            ]
        );
    }
}
