//! Merges our entry into a file owned by others: every other byte stays as it was. Accesses no files.

use std::ops::Range;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::instructions::{BEGIN, END};
use waypost_cli::runner::RUNNERS;

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

/// What a host calls the fields of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// Fields that the host requires in front of the others, with their values as JSON.
    pub(super) before: &'static [(&'static str, &'static str)],
    pub(super) command: &'static str,
    /// The field of the arguments; without one, they are items of the command.
    pub(super) arguments: Option<&'static str>,
    /// Fields that the host requires behind the others.
    pub(super) after: &'static [(&'static str, &'static str)],
}

/// How a host starts our server.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) launcher: Launcher,
    /// Whether the caller asked for this launcher, so that an entry with another one is changed.
    pub(super) launcher_said: bool,
    /// The arguments of our own program.
    pub(super) arguments: Vec<String>,
    pub(super) fields: Fields,
}

/// What starts our program: the program itself, or a package runner that fetches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launcher {
    pub(super) command: String,
    arguments: &'static [&'static str],
}

impl Launcher {
    /// The launcher with this name; any other name is a program.
    pub(super) fn new(name: &str) -> Self {
        let runner = RUNNERS.into_iter().find(|(runner, _)| *runner == name);
        Self { command: name.to_owned(), arguments: runner.map_or(&[], |(_, arguments)| arguments) }
    }

    /// The whole command line for these arguments of our own program.
    fn line(&self, own: &[String]) -> Vec<String> {
        let before = self.arguments.iter().map(|&one| one.to_owned());
        std::iter::once(self.command.clone()).chain(before).chain(own.iter().cloned()).collect()
    }

    /// The arguments of our own program in a command line of any launcher.
    fn own_arguments(line: &[String]) -> &[String] {
        let Some((command, rest)) = line.split_first() else { return &[] };
        let before = Self::new(command).arguments;
        if before.iter().zip(rest).filter(|(wanted, found)| wanted == found).count() == before.len() {
            &rest[before.len()..]
        } else {
            rest
        }
    }
}

impl Entry {
    /// The fields and their values for this command line.
    fn values(&self, line: &[String]) -> Vec<(&'static str, Value)> {
        let fixed =
            |(name, text): &(&'static str, &str)| (*name, serde_json::from_str(text).unwrap_or_default());
        let mut values: Vec<(&'static str, Value)> = self.fields.before.iter().map(fixed).collect();
        values.extend(self.launch_values(line));
        values.extend(self.fields.after.iter().map(fixed));
        values
    }

    /// The fields of the command line, with their values.
    fn launch_values(&self, line: &[String]) -> Vec<(&'static str, Value)> {
        let Fields { command, arguments, .. } = self.fields;
        match (arguments, line.split_first()) {
            (Some(arguments), Some((program, rest))) => {
                vec![(command, program.as_str().into()), (arguments, rest.to_vec().into())]
            }
            (_, _) => vec![(command, line.to_vec().into())],
        }
    }

    fn line(&self) -> Vec<String> {
        self.launcher.line(&self.arguments)
    }

    /// The command line of an entry, if it is one that starts a program.
    fn line_of(&self, found: &Value) -> Option<Vec<String>> {
        let texts = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
        };
        let Fields { command, arguments, .. } = self.fields;
        let Some(arguments) = arguments else { return texts(found.get(command)?) };
        let mut line = vec![found.get(command)?.as_str()?.to_owned()];
        line.extend(found.get(arguments).and_then(texts).unwrap_or_default());
        Some(line)
    }

    /// The new command line of an entry that has this one, if it has to be changed: its own arguments stay.
    fn relaunched(&self, old: &[String]) -> Option<Vec<String>> {
        let new = self.line_instead_of(old);
        (self.launcher_said && new != old).then_some(new)
    }

    /// What an entry with this command line would start with our launcher. One that starts no server gets our arguments.
    fn line_instead_of(&self, old: &[String]) -> Vec<String> {
        let own = Launcher::own_arguments(old);
        let starts_server = own.iter().any(|word| word == "mcp");
        self.launcher.line(if starts_server { own } else { &self.arguments })
    }

    /// The value to insert into a JSON file.
    fn json(&self) -> CstInputValue {
        let fields = self.values(&self.line());
        CstInputValue::Object(
            fields.into_iter().map(|(name, value)| (name.to_owned(), input_value(&value))).collect(),
        )
    }

    /// The property for a person to paste into a JSON file.
    fn json_to_paste(&self) -> String {
        let fields: Vec<String> = self
            .values(&self.line())
            .iter()
            .map(|(name, value)| format!("  \"{name}\": {}", in_one_line(value)))
            .collect();
        format!("\"{NAME}\": {{\n{}\n}}", fields.join(",\n"))
    }

    /// The TOML table. Its values are written as in JSON.
    fn toml(&self, servers: &str) -> String {
        let fields: String = self
            .values(&self.line())
            .iter()
            .map(|(name, value)| format!("{name} = {}\n", in_one_line(value)))
            .collect();
        format!("[{servers}.{NAME}]\n{fields}")
    }
}

/// A value in one line, with a space behind every comma.
fn in_one_line(value: &Value) -> String {
    match value.as_array() {
        Some(items) => format!("[{}]", items.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")),
        None => value.to_string(),
    }
}

fn input_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input_value).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(name, value)| (name.clone(), input_value(value))).collect(),
        ),
    }
}

/// Our entry in YAML, for a person to paste. Its values are written as in JSON, which YAML contains.
pub(super) fn yaml(servers: &str, entry: &Entry) -> String {
    let fields: String = entry
        .values(&entry.line())
        .iter()
        .map(|(name, value)| format!("    {name}: {}\n", in_one_line(value)))
        .collect();
    format!("{servers}:\n  {NAME}:\n{fields}")
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
        why: format!("{why} put this into its {servers:?} yourself"),
        paste: entry.json_to_paste(),
    };
    let tree =
        CstRootNode::parse(old, &json_with_comments()).map_err(|error| unmergeable(not_json(old, &error)))?;
    if let Some(kept) = tree.to_serde_value().and_then(|value| kept_json(&value, servers, entry)) {
        return kept;
    }
    let Some(root) = tree.object_value() else {
        return Err(unmergeable("it is not a JSON object;".to_owned()));
    };
    let entries = match property(&root, servers) {
        Some(found) => found.object_value(),
        None => root.object_value_or_create(servers),
    };
    let Some(entries) = entries else {
        return Err(unmergeable(format!("its {servers:?} is not a JSON object;")));
    };
    match property(&entries, NAME).and_then(|ours| ours.object_value()) {
        Some(ours) => {
            let found = ours.to_serde_value().unwrap_or_default();
            let line = entry.line_of(&found).and_then(|old| entry.relaunched(&old)).unwrap_or_default();
            for (name, value) in entry.launch_values(&line) {
                match property(&ours, name) {
                    Some(old) => old.set_value(input_value(&value)),
                    None if line.len() == 1 => {}
                    None => drop(ours.append(name, input_value(&value))),
                }
            }
        }
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
    let is_open = matches!(
        error.kind(),
        ParseErrorKind::UnterminatedObject
            | ParseErrorKind::UnterminatedArray
            | ParseErrorKind::UnterminatedCommentBlock
            | ParseErrorKind::String(_)
    );
    let is_cut = is_open && error.range().end >= old.trim_end().len();
    let (line, column) = (error.line_display(), error.column_display());
    let what = if is_cut { "it ends too early, as if it was cut off" } else { "it is not JSON" };
    let first = old.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
    let shown = waypost_text::truncate(first, LINE_SHOWN_MAX);
    format!(
        "line {line}, column {column} ({shown:?}): {what}; the file is unchanged: fix it there and run this again, or fix it and"
    )
}

/// The result for an existing entry of ours, unless that has to be changed.
fn kept_json(value: &Value, servers: &str, entry: &Entry) -> Option<Result<Merged, Unmergeable>> {
    let found = value.get(servers)?.get(NAME)?;
    if entry.values(&entry.line()).iter().all(|(name, value)| found.get(*name) == Some(value)) {
        return Some(Ok(Merged::Same));
    }
    let line = entry.line_of(found);
    let changes = line.as_ref().is_some_and(|old| entry.relaunched(old).is_some());
    (!changes).then(|| own_entry(entry, line.as_deref(), || entry.json_to_paste()))
}

/// Says what an entry of our name starts that is not the one that we would write, and how to have ours. One that starts no program
/// gets no launcher: whoever asks for one has to put ours in its place.
fn own_entry(
    entry: &Entry,
    line: Option<&[String]>,
    paste: impl FnOnce() -> String,
) -> Result<Merged, Unmergeable> {
    let Some(line) = line.filter(|line| !line.is_empty()) else {
        let why = format!("its entry {NAME:?} starts no program, and was not changed");
        return match entry.launcher_said {
            true => {
                Err(Unmergeable { why: format!("{why}; put this in its place yourself"), paste: paste() })
            }
            false => Ok(Merged::Kept(why)),
        };
    };
    let shown = |line: &[String]| {
        let words: Vec<_> = line.iter().map(|word| waypost_text::shell_word(word)).collect();
        waypost_text::truncate(&words.join(" "), LINE_SHOWN_MAX).into_owned()
    };
    let kept = format!("its entry {NAME:?} starts \"{}\", and was not changed", shown(line));
    let launcher = &entry.launcher.command;
    Ok(Merged::Kept(match entry.launcher_said || line.first() == Some(launcher) {
        true => kept,
        false => {
            let new = shown(&entry.line_instead_of(line));
            format!("{kept}; with --command {launcher} --yes it starts \"{new}\"")
        }
    }))
}

/// Merges our entry into the `servers` of a TOML file.
pub(super) fn toml(old: Option<&str>, servers: &str, entry: &Entry) -> Result<Merged, Unmergeable> {
    behind_mark(old, |old| plain_toml(old, servers, entry))
}

fn plain_toml(old: Option<&str>, servers: &str, entry: &Entry) -> Result<Merged, Unmergeable> {
    let table = entry.toml(servers);
    let old = old.unwrap_or_default();
    let unmergeable = |why: String| Unmergeable { why, paste: table.clone() };
    let parsed = DeTable::parse(old).map_err(|error| unmergeable(not_toml(old, &error)))?;
    let found = parsed.get_ref().get(servers).map(|one| one.get_ref());
    let is_table = matches!(found, Some(DeValue::Table(_)));
    let ours = match found {
        Some(DeValue::Table(servers)) => servers.get(NAME),
        Some(DeValue::Array(_)) => {
            let why =
                format!("its {servers:?} is an array of tables, not a table; put this into it yourself");
            return Err(unmergeable(why));
        }
        Some(_) | None => None,
    };
    if let Some(ours) = ours {
        return kept_toml(old, ours.get_ref(), entry, table);
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
            let values = entry.values(&entry.line()).into_iter();
            let values = values.map(|(name, value)| format!("{name} = {}", in_one_line(&value)));
            let values = values.collect::<Vec<_>>().join(", ");
            let (place, paste) = match is_table {
                true => (format!("its {servers:?}"), format!("{NAME} = {{ {values} }}")),
                false => ("it".to_owned(), table),
            };
            let why = format!(
                "a table cannot be added to it ({}); put this into {place} yourself",
                error.message()
            );
            Err(Unmergeable { why, paste })
        }
    }
}

/// Describes why and where a text is not valid TOML.
pub(super) fn not_toml(old: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start);
    let line = old.get(..at).unwrap_or_default().matches('\n').count() + 1;
    let what = error.message();
    format!(
        "line {line}: it is not TOML: {what}; the file is unchanged: fix it there and run this again, or add this yourself"
    )
}

fn kept_toml(old: &str, ours: &DeValue<'_>, entry: &Entry, paste: String) -> Result<Merged, Unmergeable> {
    let kept = |line: Option<&[String]>| own_entry(entry, line, || paste);
    let DeValue::Table(ours) = ours else { return kept(None) };
    let Some(command) = ours.get("command") else { return kept(None) };
    let arguments = ours.get("args");
    let mut line = vec![command.get_ref().as_str().unwrap_or_default().to_owned()];
    if let Some(DeValue::Array(items)) = arguments.map(|one| one.get_ref()) {
        line.extend(items.iter().filter_map(|one| one.get_ref().as_str()).map(str::to_owned));
    }
    if line == entry.line() {
        return Ok(Merged::Same);
    }
    let Some(new) = entry.relaunched(&line) else { return kept(Some(&line)) };
    let mut places: Vec<(Range<usize>, String)> = Vec::new();
    for (name, value) in entry.launch_values(&new) {
        match ours.get(name) {
            Some(found) => places.push((found.span(), in_one_line(&value))),
            None if new.len() == 1 => {}
            None => {
                let end = command.span().end;
                let is_inline = old
                    .get(..end)
                    .is_some_and(|before| before.rsplit('\n').next().is_some_and(|line| line.contains('{')));
                let gap = if is_inline { ", " } else { "\n" };
                places.push((end..end, format!("{gap}{name} = {}", in_one_line(&value))));
            }
        }
    }
    // From the end, so that the other places stay where they are.
    places.sort_by_key(|(at, _)| std::cmp::Reverse((at.start, at.end)));
    Ok(Merged::Text(places.into_iter().fold(old.to_owned(), |text, (at, by)| replaced(&text, at, &by))))
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
