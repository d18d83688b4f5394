//! Merges our entry into a file owned by others: every other byte stays as it was. Accesses no files.

use std::ops::Range;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::instructions::{BEGIN, END};

/// Maximum columns shown of an unparseable line.
const LINE_SHOWN_MAX: usize = 60;
/// The name of our server in every host.
pub(super) const NAME: &str = "waypost";

/// The result of a merge.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Merged {
    /// The file is already up to date.
    Same,
    /// The file has a different entry, presumably on purpose; it is left alone.
    Kept(String),
    /// The new text of the file.
    Text(String),
}

/// Why a file cannot be merged, and the text to paste into it by hand.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unmergeable {
    pub(super) why: String,
    pub(super) paste: String,
}

/// How a host starts our server.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) command: String,
    /// Whether the caller asked for this program, so that an entry with another one is changed.
    pub(super) command_said: bool,
    pub(super) arguments: Vec<String>,
    /// Fields that this host requires in front of the others.
    pub(super) more: &'static [(&'static str, &'static str)],
}

impl Entry {
    /// The fields and their values, which are written the same in JSON and in TOML.
    fn fields(&self) -> Vec<(&str, String)> {
        let text = |text: &str| Value::from(text).to_string();
        let mut fields: Vec<_> = self.more.iter().map(|(name, value)| (*name, text(value))).collect();
        let arguments: Vec<String> = self.arguments.iter().map(|one| text(one)).collect();
        fields.push(("command", text(&self.command)));
        fields.push(("args", format!("[{}]", arguments.join(", "))));
        fields
    }

    /// The value to insert into a JSON file.
    fn json(&self) -> CstInputValue {
        let more = self.more.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        let own = [
            ("command".to_owned(), self.command.clone().into()),
            ("args".to_owned(), self.arguments.clone().into()),
        ];
        CstInputValue::Object(more.chain(own).collect())
    }

    /// The property for a person to paste into a JSON file.
    fn json_to_paste(&self) -> String {
        let fields: Vec<String> =
            self.fields().iter().map(|(name, value)| format!("  \"{name}\": {value}")).collect();
        format!("\"{NAME}\": {{\n{}\n}}", fields.join(",\n"))
    }

    /// The TOML table.
    fn toml(&self, servers: &str) -> String {
        let fields: String =
            self.fields().iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
        format!("[{servers}.{NAME}]\n{fields}")
    }
}

/// The byte order mark that some editors write.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Merges the text after a byte order mark, and keeps the mark.
fn behind_mark(
    old: Option<&str>,
    merge: impl Fn(Option<&str>) -> Result<Merged, Unmergeable>,
) -> Result<Merged, Unmergeable> {
    let Some(plain) = old.and_then(|old| old.strip_prefix(BYTE_ORDER_MARK)) else { return merge(old) };
    match merge(Some(plain))? {
        Merged::Text(text) => Ok(Merged::Text(format!("{BYTE_ORDER_MARK}{text}"))),
        other @ (Merged::Same | Merged::Kept(_)) => Ok(other),
    }
}

/// Merges our entry into the `servers` of a JSON file.
pub(super) fn json(old: Option<&str>, servers: &str, entry: &Entry) -> Result<Merged, Unmergeable> {
    behind_mark(old, |old| plain_json(old, servers, entry))
}

fn plain_json(old: Option<&str>, servers: &str, entry: &Entry) -> Result<Merged, Unmergeable> {
    let old = old.filter(|old| !old.trim().is_empty()).unwrap_or("{}\n");
    let unmergeable = |why: String| Unmergeable {
        why: format!("{why}; put this into its {servers:?} yourself"),
        paste: entry.json_to_paste(),
    };
    let tree =
        CstRootNode::parse(old, &json_with_comments()).map_err(|error| unmergeable(not_json(old, &error)))?;
    if let Some(kept) = tree.to_serde_value().and_then(|value| kept_json(&value, servers, entry)) {
        return Ok(kept);
    }
    let Some(root) = tree.object_value() else {
        return Err(unmergeable("it is not a JSON object".to_owned()));
    };
    let entries = match property(&root, servers) {
        Some(found) => found.object_value(),
        None => root.object_value_or_create(servers),
    };
    let Some(entries) = entries else {
        return Err(unmergeable(format!("its {servers:?} is not a JSON object")));
    };
    let ours = property(&entries, NAME).and_then(|ours| ours.object_value());
    match ours.and_then(|ours| property(&ours, "command")) {
        Some(command) => command.set_value(entry.command.clone().into()),
        None => drop(entries.append(NAME, entry.json())),
    }
    Ok(Merged::Text(tree.to_string()))
}

/// The property with this name. The last of several counts, as for parsers.
fn property(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let has_name = |property: &CstObjectProp| {
        property.name().and_then(|own| own.decoded_value().ok()).is_some_and(|own| own == name)
    };
    object.properties().into_iter().rfind(has_name)
}

/// JSON that allows comments and trailing commas.
fn json_with_comments() -> ParseOptions {
    ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
        ..ParseOptions::default()
    }
}

/// Describes why and where a text is not valid JSON.
fn not_json(old: &str, error: &ParseError) -> String {
    let is_cut = match error.kind() {
        ParseErrorKind::UnterminatedObject
        | ParseErrorKind::UnterminatedArray
        | ParseErrorKind::UnterminatedCommentBlock
        | ParseErrorKind::String(_) => error.range().end >= old.trim_end().len(),
        _ => false,
    };
    let (line, column) = (error.line_display(), error.column_display());
    let what = if is_cut { "it ends too early, as if it was cut off" } else { "it is not JSON" };
    let first = old.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
    let shown = waypost_text::truncate(first, LINE_SHOWN_MAX);
    format!(
        "line {line}, column {column} ({shown:?}): {what}; the file is unchanged: fix it there and run this again, or fix it"
    )
}

/// The result for an existing entry of ours, unless that has to be changed.
fn kept_json(value: &Value, servers: &str, entry: &Entry) -> Option<Merged> {
    let found = value.get(servers)?.get(NAME)?;
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    if entry.fields().iter().all(|(name, value)| found.get(*name) == Some(&parsed(value))) {
        return Some(Merged::Same);
    }
    let other = found.get("command").is_some_and(|command| *command != *entry.command);
    (!other || !entry.command_said).then(|| Merged::Kept(own_entry()))
}

fn own_entry() -> String {
    format!("it has a different entry {NAME:?}")
}

/// Merges our entry into the `servers` of a TOML file.
pub(super) fn toml(old: Option<&str>, servers: &str, entry: &Entry) -> Result<Merged, Unmergeable> {
    behind_mark(old, |old| plain_toml(old, servers, entry))
}

fn plain_toml(old: Option<&str>, servers: &str, entry: &Entry) -> Result<Merged, Unmergeable> {
    let table = entry.toml(servers);
    let old = old.unwrap_or_default();
    let unmergeable = |why: String| Unmergeable { why, paste: table.clone() };
    let parsed = DeTable::parse(old).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = old.get(..at).unwrap_or_default().matches('\n').count() + 1;
        let what = error.message();
        unmergeable(format!(
            "line {line}: it is not TOML: {what}; the file is unchanged: fix it there and run this again, or add this yourself"
        ))
    })?;
    let ours = match parsed.get_ref().get(servers).map(|one| one.get_ref()) {
        Some(DeValue::Table(servers)) => servers.get(NAME),
        Some(DeValue::Array(_)) => {
            let why =
                format!("its {servers:?} is an array of tables, not a table; put this into it yourself");
            return Err(unmergeable(why));
        }
        Some(_) | None => None,
    };
    if let Some(ours) = ours {
        return Ok(kept_toml(old, ours.get_ref(), entry));
    }
    let gap = match old {
        "" => "",
        old if old.ends_with("\n\n") => "",
        old if old.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let text = with_line_ends_of(old, format!("{old}{gap}{table}"));
    // A table cannot be added to an inline table. Only parsing the whole result shows that.
    match DeTable::parse(&text) {
        Ok(_) => Ok(Merged::Text(text)),
        Err(error) => {
            let why =
                format!("a table cannot be added to it ({}); put this into it yourself", error.message());
            Err(unmergeable(why))
        }
    }
}

fn kept_toml(old: &str, ours: &DeValue<'_>, entry: &Entry) -> Merged {
    let DeValue::Table(ours) = ours else { return Merged::Kept(own_entry()) };
    let command = ours.get("command");
    let has_it = command.and_then(|one| one.get_ref().as_str()) == Some(entry.command.as_str());
    let arguments: Vec<&str> = match ours.get("args").map(|one| one.get_ref()) {
        Some(DeValue::Array(args)) => args.iter().filter_map(|one| one.get_ref().as_str()).collect(),
        Some(_) | None => Vec::new(),
    };
    match command {
        Some(_) if has_it && arguments == entry.arguments => Merged::Same,
        Some(command) if entry.command_said && !has_it => {
            Merged::Text(replaced(old, command.span(), &Value::from(entry.command.as_str()).to_string()))
        }
        Some(_) | None => Merged::Kept(own_entry()),
    }
}

/// Merges our section, enclosed in its markers, into an instruction file.
pub(super) fn section(old: Option<&str>, section: &str) -> Result<Merged, Unmergeable> {
    let Some(old) = old.filter(|old| !old.trim().is_empty()) else {
        return Ok(Merged::Text(section.to_owned()));
    };
    let (begins, ends) = (lines_that_are(old, BEGIN), lines_that_are(old, END));
    let text = match (begins.as_slice(), ends.as_slice()) {
        ([], []) => {
            let gap = if old.ends_with("\n\n") || old.ends_with("\n\r\n") {
                ""
            } else if old.ends_with('\n') {
                "\n"
            } else {
                "\n\n"
            };
            format!("{old}{gap}{section}")
        }
        ([begin], [end]) if begin.start < end.start => {
            replaced(old, begin.start..end.end, section.trim_end())
        }
        (begins, ends) => {
            let (begins, ends) = (begins.len(), ends.len());
            let why = format!(
                "the marks of our section do not pair: {begins} × {BEGIN} and {ends} × {END}; leave one pair, in this order"
            );
            return Err(Unmergeable { why, paste: section.to_owned() });
        }
    };
    let text = with_line_ends_of(old, text);
    Ok(if text == old { Merged::Same } else { Merged::Text(text) })
}

/// The ranges of the lines that contain only `mark`.
fn lines_that_are(text: &str, mark: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        if line.trim() == mark {
            let start = at + line.find(mark).unwrap_or_default();
            found.push(start..start + mark.len());
        }
        at += line.len();
    }
    found
}

fn replaced(text: &str, at: Range<usize>, by: &str) -> String {
    format!("{}{by}{}", &text[..at.start], &text[at.end..])
}

/// Converts added lines to the file's line endings.
fn with_line_ends_of(old: &str, text: String) -> String {
    if old.contains("\r\n") { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text }
}

#[cfg(test)]
mod tests;
