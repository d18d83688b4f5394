//! Finds numbers in a JSON text that have more digits than a number of 64 bits can keep.

/// Maximum number of numbers that are named.
const NAMED_MAX: usize = 10;
/// Maximum characters of a number that are shown.
const SHOWN_MAX: usize = 40;

/// Returns a note for each number in the text that changes when it is read, with its line. The text is JSON.
pub(crate) fn long_numbers(text: &str) -> Vec<String> {
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
                    notes.push(format!(
                        "line {line}: the number {shown} has too many digits; it is kept as {read}"
                    ));
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
