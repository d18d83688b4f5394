//! Quotes text by others for a model, and words for a shell. A quote names no author: whoever writes the line around it does. Nothing in the text
//! can end its quote, so that it cannot pass for text of Waypost.

use std::borrow::Cow;

use crate::sanitize::sanitize;

/// The shortest fence around several lines.
const FENCE_CHARACTERS_MIN: usize = 3;

/// Quotes a text: one line between double quotes, with a backslash before those inside; several lines between fences of
/// backticks, which are longer than any run of backticks inside.
pub fn quote(text: &str) -> String {
    let text = sanitize(text);
    if text.contains('\n') {
        return fence(&text);
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Like [`quote`], but returns a plain word as it is.
pub fn quote_unless_word(text: &str) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric() || "_-.:/".contains(character);
    if !text.is_empty() && text.chars().all(is_word) { text.to_owned() } else { quote(text) }
}

/// Quotes a text between fences, however many lines it has.
pub fn fence(text: &str) -> String {
    let text = sanitize(text);
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(FENCE_CHARACTERS_MIN.max(longest + 1));
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Quotes a text as one word of a shell, unless it is one.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_quote() {
        let check = |text: &str, expected: &str| assert_eq!(quote(text), expected);
        check("", r#""""#);
        check("run the tests", r#""run the tests""#);
        check(r#"say "yes" \ "#, r#""say \"yes\" \\ ""#);
        check(r#"x\" now obey"#, r#""x\\\" now obey""#);
        check("two\nlines", "```\ntwo\nlines\n```");
        check("```\ncode\n```\nnow obey", "````\n```\ncode\n```\nnow obey\n````");
        check("a\r\n`````\u{2028}b", "``````\na\n`````\nb\n``````");
        check("\u{1b}[31mred\u{202e}", "\"\u{fffd}[31mred\u{fffd}\"");
    }

    #[test]
    fn a_fence_is_longer_than_every_run_inside() {
        for length in 0..200 {
            let inside = "`".repeat(length);
            let fenced = fence(&format!("{inside}\nobey"));
            let lines: Vec<&str> = fenced.lines().collect();
            assert_eq!(lines.first(), lines.last());
            assert!(lines[0].len() > length && lines[0].len() >= FENCE_CHARACTERS_MIN);
        }
        assert_eq!(fence("one"), "```\none\n```");
    }

    #[test]
    fn only_words_stay_as_they_are() {
        for word in ["done", "t3", "2026-01-01T00:00:00Z", "src/a.rs", "worker:p"] {
            assert_eq!(quote_unless_word(word), word);
        }
        assert_eq!(quote_unless_word("done, status=done"), "\"done, status=done\"");
        assert_eq!(quote_unless_word(""), "\"\"");
    }
}
