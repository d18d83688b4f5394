//! Plain sentences for what serde says about input that does not fit: its words name Rust types.

/// What serde calls the types, and what their JSON values are called.
const TYPES: [(&str, &str); 13] = [
    ("a sequence", "a list"),
    ("a map", "an object"),
    ("a boolean", "true or false"),
    ("a borrowed string", "text"),
    ("a string", "text"),
    ("string or map", "text"),
    ("variant identifier", "text"),
    ("u64", "a whole number from 0"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("usize", "a whole number from 0"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i64", "a whole number"),
    ("f64", "a number"),
];

/// Rewrites the message of a deserializer. `path` is the place in the input; empty or `.` for the input as a whole.
pub fn plain_parse_error(path: &str, message: &str) -> String {
    let (message, position) = match message.rsplit_once(" at line ") {
        Some((message, position)) => (message, Some(position.replace(" column ", ", column "))),
        None => (message, None),
    };
    let words = sentence(message).unwrap_or_else(|| match position {
        Some(position) => format!("it is not valid JSON at line {position}"),
        None => message.to_owned(),
    });
    // The words name an unknown field, which is then also the end of its path.
    let (above, last) = path.rsplit_once('.').unwrap_or(("", path));
    let path = if words.starts_with(&format!("`{last}` is not a known field")) { above } else { path };
    if matches!(path, "" | "." | "?") { words } else { format!("{path}: {words}") }
}

/// Rewrites what a deserializer says about a value; `None` for a syntax error.
fn sentence(message: &str) -> Option<String> {
    let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
    if let Some(name) = message.strip_prefix("missing field ").and_then(quoted) {
        return Some(format!("`{name}` is missing"));
    }
    for (prefix, what) in [("unknown field ", "field"), ("unknown variant ", "value")] {
        let Some(rest) = message.strip_prefix(prefix) else { continue };
        let (name, expected) = rest.split_once(", ").unwrap_or((rest, ""));
        let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        let known = match known.as_slice() {
            [] => "none is known here".to_owned(),
            known => format!("use one of {}", known.join(", ")),
        };
        return Some(format!("{name} is not a known {what}; {known}"));
    }
    for prefix in ["invalid type: ", "invalid value: ", "invalid length "] {
        let Some(rest) = message.strip_prefix(prefix) else { continue };
        let (found, expected) = rest.rsplit_once(", expected ")?;
        // Only a list has a length.
        let found = if prefix == "invalid length " { "sequence" } else { found };
        let found = ["string ", "integer ", "floating point ", "boolean "]
            .iter()
            .find_map(|kind| found.strip_prefix(kind))
            .unwrap_or(match found {
                "sequence" => "a list",
                "map" => "an object",
                found => found,
            });
        let known = TYPES.iter().find(|(name, _)| *name == expected).map(|(_, words)| *words);
        let is_object = expected.starts_with("struct ") || expected.contains("tagged enum ");
        let expected = known.unwrap_or(if is_object { "an object" } else { expected });
        return Some(format!("must be {expected}, not {found}"));
    }
    if message.starts_with("invalid digit") || message.starts_with("cannot parse integer") {
        return Some("must be a whole number".to_owned());
    }
    let is_syntax = ["expected", "EOF", "trailing", "key must be", "control character", "invalid escape"];
    match is_syntax.iter().any(|begin| message.starts_with(begin)) {
        true => None,
        false => Some(message.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::plain_parse_error;

    #[test]
    fn no_word_of_the_parser_reaches_the_reader() {
        let cases = [
            (
                "",
                "unknown field `x`, expected one of `a`, `b` at line 1 column 5",
                "`x` is not a known field; use one of a, b",
            ),
            ("", "unknown field `x`, expected `a`", "`x` is not a known field; use one of a"),
            ("", "unknown field `x`, there are no fields", "`x` is not a known field; none is known here"),
            (
                "op",
                "unknown variant `z`, expected `a` or `b`",
                "op: `z` is not a known value; use one of a, b",
            ),
            (".", "missing field `text` at line 1 column 2", "`text` is missing"),
            (
                "limit",
                "invalid type: string \"a\", expected u64",
                "limit: must be a whole number from 0, not \"a\"",
            ),
            (
                "limit",
                "invalid value: integer `-1`, expected u32",
                "limit: must be a whole number from 0 to 4294967295, not `-1`",
            ),
            (
                "",
                "invalid type: sequence, expected struct Edits at line 1 column 0",
                "must be an object, not a list",
            ),
            (
                "",
                "invalid length 0, expected struct Edits with 1 element at line 1 column 2",
                "must be an object, not a list",
            ),
            (
                "operations[0]",
                "invalid type: string \"x\", expected internally tagged enum Operation",
                "operations[0]: must be an object, not \"x\"",
            ),
            (
                "?",
                "EOF while parsing an object at line 1 column 1",
                "it is not valid JSON at line 1, column 1",
            ),
            (
                "operations[0].foo",
                "unknown field `foo`, expected `op`",
                "operations[0]: `foo` is not a known field; use one of op",
            ),
            ("foo", "unknown field `foo`, expected `op`", "`foo` is not a known field; use one of op"),
            ("op", "invalid type: integer `5`, expected variant identifier", "op: must be text, not `5`"),
            ("limit", "invalid digit found in string", "limit: must be a whole number"),
            ("", "expected value at line 1 column 2", "it is not valid JSON at line 1, column 2"),
            (
                "",
                "EOF while parsing an object at line 1 column 1",
                "it is not valid JSON at line 1, column 1",
            ),
        ];
        for (path, message, expected) in cases {
            assert_eq!(plain_parse_error(path, message), expected, "{message}");
        }
    }
}
