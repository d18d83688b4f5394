//! Front matter: the block of `key: value` lines between two `---` at the top of a Markdown file.
//!
//! Supports the small part of YAML that such blocks really use: plain and quoted texts, lists, folded and literal blocks. Does not
//! know anchors, nested maps or types: every value is a text or a list of texts. Values that it cannot parse are kept verbatim.

/// The front matter of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    /// The entries, in order.
    pub(crate) entries: Vec<Entry>,
    /// Lines that are not entries, with their line numbers from 1.
    pub(crate) strays: Vec<(usize, String)>,
    /// Number of comment lines.
    pub(crate) comments: usize,
}

/// One `key: value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: Value,
    /// Its lines verbatim, without the last line break.
    pub(crate) raw: String,
    /// The number of its first line, from 1.
    pub(crate) line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A text; also numbers and words.
    Text(String),
    List(Vec<String>),
    /// Nothing after the colon.
    Nothing,
    /// A value that this small parser does not support.
    Other,
}

impl FrontMatter {
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The text with this key; `None` if the value is not a text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.entry(key)?.value {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Nothing | Value::Other => None,
        }
    }
}

/// A file split into front matter and the rest.
pub(crate) struct Parts<'a> {
    pub(crate) matter: FrontMatter,
    /// The text after it; one blank line in between belongs to neither.
    pub(crate) rest: &'a str,
    /// The number of the first line of `rest`, from 1.
    pub(crate) rest_line: usize,
}

/// Splits a file; `None` if it does not start with front matter.
pub(crate) fn split(text: &str) -> Option<Parts<'_>> {
    let text = without_mark(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = first.len();
    let mut number = 1;
    let mut inside = Vec::new();
    for line in lines {
        number += 1;
        at += line.len();
        if line.trim_end() == "---" {
            let rest = &text[at..];
            let (blank, rest) = match rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')) {
                Some(rest) => (1, rest),
                None => (0, rest),
            };
            return Some(Parts { matter: entries(&inside), rest, rest_line: number + 1 + blank });
        }
        inside.push((number, unended(line)));
    }
    None
}

/// Strips a byte order mark.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Strips the line break of a line.
pub(crate) fn unended(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

fn entries(lines: &[(usize, &str)]) -> FrontMatter {
    let mut matter = FrontMatter::default();
    let mut at = 0;
    while at < lines.len() {
        let (number, line) = lines[at];
        at += 1;
        if line.trim().is_empty() {
            continue;
        }
        if line.starts_with('#') {
            matter.comments += 1;
            continue;
        }
        let Some((key, value)) = key_and_value(line) else {
            matter.strays.push((number, line.to_owned()));
            continue;
        };
        let first = at;
        while at < lines.len() && continues(lines[at].1) {
            at += 1;
        }
        let mut more: Vec<&str> = lines[first..at].iter().map(|(_, line)| *line).collect();
        while more.last().is_some_and(|line| line.trim().is_empty()) {
            more.pop();
        }
        let mut raw = line.to_owned();
        for line in &more {
            raw.push('\n');
            raw.push_str(line);
        }
        matter.entries.push(Entry { key: key.to_owned(), value: value_of(value, &more), raw, line: number });
    }
    matter
}

/// Whether a line belongs to the entry above it.
fn continues(line: &str) -> bool {
    line.is_empty() || line.starts_with([' ', '\t']) || line.starts_with("- ") || line == "-"
}

fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let apart = value.is_empty() || value.starts_with([' ', '\t']);
    (plain && apart).then(|| (key, value.trim()))
}

fn value_of(inline: &str, more: &[&str]) -> Value {
    if let Some(style) = inline.strip_prefix(['>', '|']).filter(|rest| matches!(*rest, "" | "-" | "+")) {
        return Value::Text(block(inline.starts_with('>'), style, more));
    }
    if inline.is_empty() {
        let items: Option<Vec<String>> = more
            .iter()
            .filter(|line| !line.trim().is_empty())
            .map(|line| line.trim_start().strip_prefix('-').map(|item| scalar(item.trim())))
            .collect();
        return match items {
            Some(items) if items.is_empty() => Value::Nothing,
            Some(items) => Value::List(items),
            None => Value::Other,
        };
    }
    if let Some(list) = inline.strip_prefix('[') {
        return match list.strip_suffix(']') {
            Some(list) if more.is_empty() => Value::List(flow_items(list)),
            _ => Value::Other,
        };
    }
    if more.is_empty() {
        return Value::Text(scalar(inline));
    }
    // A long plain text that was broken over several lines.
    let mut text = inline.to_owned();
    for line in more {
        text.push(' ');
        text.push_str(line.trim());
    }
    Value::Text(scalar(text.trim_end()))
}

fn block(folded: bool, style: &str, more: &[&str]) -> String {
    let margin = more
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len())
        .min()
        .unwrap_or(0);
    let lines: Vec<&str> = more.iter().map(|line| line.get(margin..).unwrap_or("")).collect();
    let mut text = String::new();
    let mut fresh = true;
    for (n, line) in lines.iter().enumerate() {
        if n > 0 {
            if !folded || line.is_empty() {
                text.push('\n');
            } else if !fresh {
                text.push(' ');
            }
        }
        text.push_str(line);
        fresh = line.is_empty();
    }
    if style.is_empty() && !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Returns the items between the brackets of `[a, "b, c"]`.
fn flow_items(list: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut start = 0;
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (at, c) in list.char_indices() {
        match quote {
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') && list[start..at].trim().is_empty() => quote = Some(c),
            None if c == ',' => {
                items.push(scalar(list[start..at].trim()));
                start = at + 1;
            }
            None => {}
        }
    }
    let last = list[start..].trim();
    if !last.is_empty() || !items.is_empty() {
        items.push(scalar(last));
    }
    items.retain(|item| !item.is_empty());
    items
}

/// Unquotes a text; returns it verbatim if the quotes are not closed.
pub(crate) fn scalar(text: &str) -> String {
    if text.starts_with('"')
        && let Ok(inner) = serde_json::from_str::<String>(text)
    {
        return inner;
    }
    match text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'"),
        None => text.to_owned(),
    }
}

/// Quotes a text if needed, so that [`scalar`] and any YAML reader read the same text back.
pub(crate) fn quoted_if_needed(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

fn is_plain(text: &str) -> bool {
    let starts_well = text.chars().next().is_some_and(char::is_alphanumeric);
    let other_type = text.parse::<f64>().is_ok()
        || ["true", "false", "null", "yes", "no", "on", "off"]
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word));
    starts_well
        && !other_type
        && text.trim_end() == text
        && !text.ends_with(':')
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(lines: &str) -> Value {
        let text = format!("---\nkey:{lines}\n---\n");
        split(&text).expect("front matter").matter.entries.remove(0).value
    }

    #[test]
    fn every_way_to_write_a_text_is_read() {
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(value(" plain: words #4"), text("plain: words #4"));
        assert_eq!(value(" \"a\\nb\""), text("a\nb"));
        assert_eq!(value(" 'it''s'"), text("it's"));
        assert_eq!(value(" >-\n  two\n  lines\n\n  and one"), text("two lines\nand one"));
        assert_eq!(value(" |\n  two\n    lines"), text("two\n  lines\n"));
        assert_eq!(value(" a long text\n  that goes on"), text("a long text that goes on"));
    }

    #[test]
    fn every_way_to_write_a_list_is_read() {
        let list = |items: &[&str]| Value::List(items.iter().map(|&item| item.to_owned()).collect());
        assert_eq!(value(" [a, \"b, c\", 'd']"), list(&["a", "b, c", "d"]));
        assert_eq!(value(" []"), list(&[]));
        assert_eq!(value("\n  - a\n  - 'b'"), list(&["a", "b"]));
        assert_eq!(value("\n- a\n- b"), list(&["a", "b"]));
        assert_eq!(value(""), Value::Nothing);
        assert_eq!(value("\n  deep: map"), Value::Other);
    }

    #[test]
    fn a_text_that_yaml_would_misread_is_quoted() {
        for text in
            ["", " a", "a ", "true", "12", "a: b", "a #b", "- a", "[a]", "a\nb", "\"a\"", "'a'", "{", "a:"]
        {
            let written = quoted_if_needed(text);
            assert!(written.starts_with('"'), "{text:?} was written as {written}");
            assert_eq!(scalar(&written), text);
        }
        for text in ["a", "two words", "issue#4", "3 things", "it's"] {
            assert_eq!(quoted_if_needed(text), text);
        }
    }
}
