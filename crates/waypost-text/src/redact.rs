//! Removes secrets from texts: those that this process knows, and everything that looks like a key.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The replacement of a secret.
const MARK: &str = "[secret]";
/// Shorter known secrets are not searched for: they would be found everywhere.
const KNOWN_BYTES_MIN: usize = 6;
/// Suffixes of the names of variables that hold secrets.
const SECRET_NAMES: [&str; 6] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_CREDENTIALS"];
/// The minimum length of such a variable's value, in bytes.
const VARIABLE_BYTES_MIN: usize = 12;
/// The minimum number of characters of a key after its prefix.
const KEY_REST_MIN: usize = 16;
/// The prefixes of well-known kinds of keys.
const BEGINNINGS: [&str; 15] = [
    "sk-",
    "sk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "hf_",
    "AKIA",
    "AIza",
    "eyJ",
];

/// Removes secrets from texts.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<[String]>,
}

/// Shows only the number of known secrets.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.known.len())
    }
}

impl Redactor {
    /// Creates a redactor that knows these secrets.
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let mut known: Vec<String> =
            known.into_iter().filter(|secret| secret.len() >= KNOWN_BYTES_MIN).collect();
        // The longest first: a secret that is a part of another must not leave the rest of it in the text.
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        known.dedup();
        Self { known: known.into() }
    }

    /// Creates a redactor from the variables of an environment whose names mark them as secret.
    pub fn of_variables(variables: &BTreeMap<String, String>) -> Self {
        let is_secret = |name: &str| {
            let name = name.to_ascii_uppercase();
            SECRET_NAMES.iter().any(|word| name.ends_with(word))
        };
        let secret = variables.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value);
        // Some variables name the file or the URL of a secret.
        let is_place = |value: &str| value.starts_with(['/', '~', '.']) || value.contains("://");
        Self::new(secret.filter(|value| value.len() >= VARIABLE_BYTES_MIN && !is_place(value)).cloned())
    }

    /// Creates a redactor that knows the secrets of all of these.
    pub fn together<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::new(all.into_iter().flat_map(|one| one.known.iter().cloned()))
    }

    /// Returns the text without secrets.
    pub fn clean(&self, text: &str) -> String {
        without_private_keys(&without_keys(&self.clean_of_known(text)))
    }

    /// Returns the text without the known secrets; what only looks like a secret stays.
    pub fn clean_of_known(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.known.iter().filter(|secret| text.contains(secret.as_str())).collect::<Vec<_>>() {
            text = text.replace(secret.as_str(), MARK);
        }
        text
    }
}

/// Removes words that have the prefix and the form of a key.
fn without_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_of_key) {
        let end = rest[at..].find(|character| !is_of_key(character)).map_or(rest.len(), |end| at + end);
        out.push_str(&rest[..at]);
        let word = &rest[at..end];
        out.push_str(if key_beginning(word).is_some() { MARK } else { word });
        rest = &rest[end..];
    }
    out + rest
}

fn is_of_key(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.')
}

/// Returns how a text that looks like a secret begins: the prefix of a well-known kind of key, or `PRIVATE KEY`.
pub fn secret_in(text: &str) -> Option<&'static str> {
    let is_private_key = |block: &str| block.lines().next().is_some_and(|head| head.contains("PRIVATE KEY"));
    if text.match_indices("-----BEGIN ").any(|(at, _)| is_private_key(&text[at..])) {
        return Some("PRIVATE KEY");
    }
    text.split(|character| !is_of_key(character)).find_map(key_beginning)
}

fn key_beginning(word: &str) -> Option<&'static str> {
    let goes_on = |rest: &str| {
        rest.len() >= KEY_REST_MIN
            && rest.chars().any(|character| character.is_ascii_digit())
            && rest.chars().any(|character| character.is_ascii_alphabetic())
    };
    let after = |beginning: &str| word.strip_prefix(beginning).filter(|rest| goes_on(rest));
    BEGINNINGS.into_iter().find(|beginning| match *beginning {
        // Only a token of three parts is a JWT: much other encoded data begins with `eyJ`.
        "eyJ" => after("eyJ").is_some_and(|rest| rest.split('.').count() == 3),
        beginning => after(beginning).is_some(),
    })
}

/// Removes the blocks of private keys.
fn without_private_keys(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("-----BEGIN ") {
        let block = &rest[at..];
        let head_end = block.find('\n').unwrap_or(block.len());
        let end =
            block.find("-----END ").map(|end| block[end..].find('\n').map_or(block.len(), |line| end + line));
        let (true, Some(end)) = (block[..head_end].contains("PRIVATE KEY"), end) else {
            out.push_str(&rest[..at + "-----BEGIN ".len()]);
            rest = &rest[at + "-----BEGIN ".len()..];
            continue;
        };
        out.push_str(&rest[..at]);
        out.push_str(MARK);
        rest = &block[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_secret_is_found_by_how_the_secret_begins() {
        for (text, found) in [
            ("use ghp_0123456789abcdefABCDEF0123 for it", Some("ghp_")),
            ("{\"key\":\"AKIAIOSFODNN7EXAMPLE1\"}", Some("AKIA")),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc", Some("PRIVATE KEY")),
            ("-----BEGIN CERTIFICATE-----\nabc", None),
            ("the task-list sk-ill of a hf_model", None),
        ] {
            assert_eq!(secret_in(text), found, "{text}");
        }
    }

    #[test]
    fn known_secrets_and_what_looks_like_a_key_are_taken_out_and_nothing_else() {
        let redactor = Redactor::new(["hunter2hunter2".to_owned(), "hunter2".to_owned(), "ab".to_owned()]);
        for (text, clean) in [
            ("my key is hunter2hunter2, or hunter2", "my key is [secret], or [secret]"),
            ("ab stays", "ab stays"),
            ("sk-proj-abcdefgh0123456789 and text", "[secret] and text"),
            ("\"ghp_0123456789abcdefABCDEF0123\"", "\"[secret]\""),
            ("the task-list sk-ill of a hf_model", "the task-list sk-ill of a hf_model"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl1", "[secret]"),
            ("AKIAIOSFODNN7EXAMPLE1", "[secret]"),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest", "[secret]\nrest"),
            (
                "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
                "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
            ),
            ("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"),
            ("äöü ✓ sk-", "äöü ✓ sk-"),
        ] {
            assert_eq!(redactor.clean(text), clean);
        }
        assert_eq!(format!("{redactor:?}"), "Redactor(2 secrets)");
        let variables = [
            ("AWS_SECRET_KEY", "ab/cd+ef/gh012"),
            ("KEY_KEY", "/run/secrets/key"),
            ("PATH", "/usr/bin:/usr/local"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let redactor = Redactor::of_variables(&variables);
        assert_eq!(
            redactor.clean("ab/cd+ef/gh012 /run/secrets/key /usr/bin:/usr/local"),
            "[secret] /run/secrets/key /usr/bin:/usr/local"
        );
    }
}
