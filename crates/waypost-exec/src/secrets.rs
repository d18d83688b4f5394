//! The secrets of an attempt, in every form in which its worker may write them: whole, line by line, and escaped in JSON.

use serde_json::Value;
use waypost_core::Json;

/// Shorter secrets are not replaced: that would blacken everything.
const SECRET_BYTES_MIN: usize = 4;
/// Shorter lines of a secret with several lines are not replaced on their own.
const LINE_BYTES_MIN: usize = 8;
/// What stands in the place of a secret.
const MARK: &str = "***";

/// The secrets that are not to be stored.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The longest first: a secret that is a part of another must not leave the rest of it in the text.
    forms: Vec<String>,
}

/// Shows no secret.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} forms)", self.forms.len())
    }
}

impl Secrets {
    /// No secrets.
    pub const NONE: &'static Self = &Self { forms: Vec::new() };

    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut forms = Vec::new();
        for value in values {
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= LINE_BYTES_MIN);
            for part in lines.chain([value.as_str(), value.trim()]) {
                // A program may write JSON that contains JSON.
                let escaped = escapes(part).into_iter().flat_map(|once| [escape(&once), once]);
                forms.extend(escaped.chain([part.to_owned()]));
            }
        }
        forms.retain(|form| form.trim().len() >= SECRET_BYTES_MIN);
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        forms.dedup();
        Self { forms }
    }

    /// Returns the text without the secrets.
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for form in &self.forms {
            if text.contains(form.as_str()) {
                text = text.replace(form.as_str(), MARK);
            }
        }
        text
    }

    /// Removes the secrets from the texts in a JSON text, which can write them in many ways. Another text stays as it was written.
    pub(super) fn redact_decoded(&self, json: Json) -> Json {
        if self.forms.is_empty() {
            return json;
        }
        // What is JSON can be decoded.
        let Ok(mut value) = serde_json::from_str(json.as_str()) else { return Json::of(&MARK) };
        match self.redact_json(&mut value) {
            true => Json::parse(&value.to_string()).unwrap_or_else(|_| Json::of(&MARK)),
            false => json,
        }
    }

    /// Removes the secrets from all texts and names in a JSON value. Returns whether there were any.
    fn redact_json(&self, value: &mut Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => {
                let redacted = self.redact(text);
                let is_changed = redacted != *text;
                *text = redacted;
                is_changed
            }
            Value::Array(values) => {
                // All of them: the first secret is not the last.
                values.iter_mut().filter_map(|value| self.redact_json(value).then_some(())).count() > 0
            }
            Value::Object(fields) => {
                let mut is_changed = false;
                for (name, mut value) in std::mem::take(fields) {
                    let redacted = self.redact(&name);
                    is_changed |= self.redact_json(&mut value) || redacted != name;
                    fields.insert(redacted, value);
                }
                is_changed
            }
        }
    }

    /// The bytes of the longest form.
    pub(super) fn bytes_max(&self) -> usize {
        self.forms.first().map_or(0, String::len)
    }
}

/// Returns a text as JSON writes it: with other characters as they are, and with their numbers.
fn escapes(text: &str) -> [String; 2] {
    let escaped = escape(text);
    let mut ascii = String::with_capacity(escaped.len());
    for character in escaped.chars() {
        match character.is_ascii() {
            true => ascii.push(character),
            false => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    ascii.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    [escaped, ascii]
}

/// Returns a text as it is between the quotation marks of a JSON string.
fn escape(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(secret: &str, text: &str, expected: &str) {
        assert_eq!(Secrets::new([secret.to_owned()]).redact(text), expected);
    }

    #[test]
    fn a_secret_is_removed_in_every_form() {
        check("hunter22", "is hunter22.", "is ***.");
        check("abc", "abc", "abc");
        check("    ", "a    b", "a    b");
        check("hunter22\n", "is hunter22.", "is ***.");
        check("pa\"ss\\word", r#"pa"ss\word"#, "***");
        check("pa\"ss\\word", r#"{"p": "pa\"ss\\word"}"#, r#"{"p": "***"}"#);
        check("pa\"ss\\word", r#""{\"p\": \"pa\\\"ss\\\\word\"}""#, r#""{\"p\": \"***\"}""#);
        check("gehe\u{ed}m-\u{1f600}", "gehe\\u00edm-\\ud83d\\ude00", "***");
        let key = "-----BEGIN KEY-----\nfirst-line\nlast-line\n-----END KEY-----\n";
        check(key, &format!("is {key}."), "is ***.");
        check(key, "is last-line", "is ***");
        check(
            key,
            r#"{"k": "-----BEGIN KEY-----\nfirst-line\nlast-line\n-----END KEY-----\n"}"#,
            r#"{"k": "***"}"#,
        );
        check(key, "first-line\r\nlast-line", "***\r\n***");
    }

    #[test]
    fn a_part_of_another_secret_leaves_nothing_of_it() {
        let secrets = Secrets::new(["word".to_owned(), "passwords".to_owned()]);
        assert_eq!(secrets.redact("passwords word"), "*** ***");
    }

    #[test]
    fn decoded_texts_and_names_are_redacted() {
        let secrets = Secrets::new(["hunter22".to_owned()]);
        let mut value = serde_json::json!({ "hunter22": 1, "a": ["is hunter22", { "b": "hunter22" }] });
        assert!(secrets.redact_json(&mut value));
        assert_eq!(value, serde_json::json!({ "***": 1, "a": ["is ***", { "b": "***" }] }));
        assert!(!secrets.redact_json(&mut value));
        let check = |text: &str, expected: &str| {
            assert_eq!(secrets.redact_decoded(Json::parse(text).unwrap()).as_str(), expected);
        };
        check(r#"{"a":9007199254740993}"#, r#"{"a":9007199254740993}"#);
        check(r#"["\u0068unter22"]"#, r#"["***"]"#);
    }
}
