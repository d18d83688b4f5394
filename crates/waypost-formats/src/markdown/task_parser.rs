//! Parses tasks from checklist lines such as `- [ ] t3: Implement JWT  (after: t1, t2; complexity: high)`.
//!
//! `task_writer` writes them. Knows lines, marks and attributes, not the document around them.

use std::collections::{HashMap, HashSet};

use serde::de::DeserializeOwned;
use waypost_core::{
    Complexity, Dependency, DependencyRule, Problem, ProblemKind, ProblemLocation, Status, Task, TaskId,
    TaskSpec,
};

use crate::front_matter::unended;
use crate::ignored_fields::Ignored;
use crate::long_numbers::long_numbers_of;

/// How much of a line has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The plan as a Markdown document: indented `key: value` lines are attributes, every word before a colon is an id.
    Full,
    /// Any checklist: indented lines are notes, and an id must look like one.
    Plain,
}

/// The attributes that may be on a line of their own.
const ATTRIBUTES: [&str; 21] = [
    "description",
    "parent",
    "after",
    "when",
    "complexity",
    "notes",
    "tools",
    "skip",
    "locks",
    "work",
    "check",
    "retry",
    "timeout_seconds",
    "priority",
    "provides",
    "thinking",
    "foreign",
    "result",
    "error",
    "reason",
    "state",
];

/// A line that starts an item.
pub(crate) struct ItemLine<'a> {
    /// Columns of indentation.
    pub(crate) indent: usize,
    /// Whether it has a bullet or a number.
    pub(crate) bulleted: bool,
    /// The mark in its checkbox; `None` without a checkbox.
    pub(crate) mark: Option<char>,
    pub(crate) text: &'a str,
}

/// Parses a line as an item: a bullet, a checkbox, or both.
pub(crate) fn item_line(line: &str) -> Option<ItemLine<'_>> {
    let (indent, rest) = indentation(unended(line));
    let (bulleted, rest) = match bullet(rest) {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (mark, text) = match mark_box(rest) {
        Some((mark, text)) => (Some(mark), text),
        None if bulleted => (None, rest),
        None => return None,
    };
    Some(ItemLine { indent, bulleted, mark, text: text.trim() })
}

fn indentation(line: &str) -> (usize, &str) {
    let mut columns = 0;
    for (at, c) in line.char_indices() {
        match c {
            ' ' => columns += 1,
            '\t' => columns = (columns / 4 + 1) * 4,
            _ => return (columns, &line[at..]),
        }
    }
    (columns, "")
}

fn bullet(rest: &str) -> Option<&str> {
    let after = match rest.strip_prefix(['-', '*', '+', '•']) {
        Some(after) => after,
        None => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 || digits > 9 {
                return None;
            }
            rest[digits..].strip_prefix(['.', ')'])?
        }
    };
    (after.is_empty() || after.starts_with([' ', '\t'])).then(|| after.trim_start())
}

fn mark_box(rest: &str) -> Option<(char, &str)> {
    let inner = rest.strip_prefix('[')?;
    let (mark, after) = match inner.strip_prefix(']') {
        Some(after) => (' ', after),
        None => {
            let mark = inner.chars().next()?;
            (mark, inner[mark.len_utf8()..].strip_prefix(']')?)
        }
    };
    (after.is_empty() || after.starts_with([' ', '\t'])).then_some((mark, after))
}

/// Returns the status that a mark means; `None` for an unknown mark.
pub(crate) fn status_of_mark(mark: char) -> Option<Status> {
    match mark {
        ' ' => Some(Status::Pending),
        'x' | 'X' | '✓' | '✔' => Some(Status::Done),
        '>' | '/' => Some(Status::Running),
        '!' => Some(Status::Failed),
        '-' | '~' => Some(Status::Skipped),
        'c' | 'C' => Some(Status::Cancelled),
        _ => None,
    }
}

pub(crate) fn mark_of(status: Status) -> char {
    match status {
        Status::Pending => ' ',
        Status::Running => '>',
        Status::Done => 'x',
        Status::Failed => '!',
        Status::Skipped => '-',
        Status::Cancelled => 'c',
    }
}

/// Whether a word can be an id without quotes.
pub(crate) fn is_plain_id(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(char::is_alphanumeric)
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '#' | '@' | '+'))
}

/// The result of parsing a block of lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The tasks, in the order of their lines.
    pub(crate) tasks: Vec<Task>,
    pub(crate) problems: Vec<Problem>,
    /// Notes for a person.
    pub(crate) notes: Vec<String>,
    /// The ids assigned to tasks that name none.
    pub(crate) assigned_ids: HashSet<TaskId>,
}

/// An item whose id is not settled yet.
struct Item<'a> {
    line: usize,
    indent: usize,
    parent: Option<usize>,
    status: Status,
    id: Option<String>,
    text: &'a str,
    attributes: Vec<(&'static str, String)>,
    note_lines: Vec<String>,
}

/// Parses numbered lines as items and the lines that are indented below them.
pub(crate) fn read<'a>(lines: impl IntoIterator<Item = (usize, &'a str)>, style: Style) -> Lines {
    let mut found = Lines::default();
    let mut items: Vec<Item<'a>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut blank_before = false;
    for (number, raw) in lines {
        let line = unended(raw);
        if line.trim().is_empty() {
            blank_before = true;
            continue;
        }
        let item = item_line(line).filter(|item| is_task(item, style));
        if let Some(item) = item {
            while open.last().is_some_and(|&above| items[above].indent >= item.indent) {
                open.pop();
            }
            let status = match item.mark {
                Some(mark) => status_of_mark(mark).unwrap_or_else(|| {
                    found
                        .notes
                        .push(format!("line {number}: the mark [{mark}] is not known; read as pending"));
                    Status::Pending
                }),
                None => {
                    found.notes.push(format!("line {number}: an item without a box; read as pending"));
                    Status::Pending
                }
            };
            let parent = open.last().copied();
            open.push(items.len());
            items.push(Item {
                line: number,
                indent: item.indent,
                parent,
                status,
                id: None,
                text: item.text,
                attributes: Vec::new(),
                note_lines: Vec::new(),
            });
        } else if let Some(item) = items.last_mut() {
            below(item, line, style, blank_before);
        } else {
            found.problems.push(Problem::plan(ProblemKind::Format {
                detail: format!("line {number}: a task was expected, such as `- [ ] t1: What is to be done`"),
            }));
        }
        blank_before = false;
    }
    name(&mut items, style);
    finish(items, found)
}

/// In a checklist only items with a checkbox are tasks: other bullets are notes. A document also accepts unindented bullets without
/// one.
fn is_task(item: &ItemLine<'_>, style: Style) -> bool {
    match style {
        Style::Full => item.bulleted && (item.mark.is_some() || item.indent == 0),
        Style::Plain => item.mark.is_some(),
    }
}

/// Adds one line below an item: a note, more of its description, an attribute, or free text.
fn below(item: &mut Item<'_>, line: &str, style: Style, blank_before: bool) {
    let text = line.trim_start();
    if let Some(note) = text.strip_prefix('>') {
        item.note_lines.push(note.strip_prefix(' ').unwrap_or(note).to_owned());
        return;
    }
    if style == Style::Full {
        if let Some(more) = text.strip_prefix('|') {
            item.attributes.push(("|", more.strip_prefix(' ').unwrap_or(more).to_owned()));
            return;
        }
        let attribute = text.split_once(':').and_then(|(key, value)| {
            let key = ATTRIBUTES.into_iter().find(|known| *known == key)?;
            (value.is_empty() || value.starts_with(' ')).then(|| (key, value.trim().to_owned()))
        });
        if let Some(attribute) = attribute {
            item.attributes.push(attribute);
            return;
        }
    }
    // Free text keeps its indentation relative to the item, so that lists and code in it stay intact.
    let margin = item.indent + 2;
    let (columns, _) = indentation(line);
    let spare = columns.saturating_sub(margin);
    if blank_before && !item.note_lines.is_empty() {
        item.note_lines.push(String::new());
    }
    item.note_lines.push(format!("{}{}", " ".repeat(spare.min(64)), text.trim_end()));
}

/// Decides which words before a colon are ids.
fn name(items: &mut [Item<'_>], style: Style) {
    let split: Vec<Option<(String, &str)>> = items.iter().map(|item| leading_id(item.text)).collect();
    let mut seen = HashSet::new();
    // If every line starts with a different word, those words are ids even if they are plain words.
    let all_named = split.iter().all(|split| split.as_ref().is_some_and(|(id, _)| seen.insert(id.clone())));
    for (item, split) in items.iter_mut().zip(split) {
        if let Some((id, rest)) = split
            && (style == Style::Full || all_named || looks_like_an_id(&id) || item.text.starts_with('"'))
        {
            item.id = Some(id);
            item.text = rest;
        }
    }
}

/// Whether a word is an id wherever it stands before a colon.
pub(crate) fn looks_like_an_id(word: &str) -> bool {
    word.chars().any(|c| c.is_numeric() || matches!(c, '_' | '-' | '.' | '/'))
}

/// Returns the id before the first colon, and the rest.
fn leading_id(text: &str) -> Option<(String, &str)> {
    let (id, rest) = match json_string(text) {
        Some((id, rest)) => (id, rest.strip_prefix(':')?),
        None => {
            let (id, rest) = text.split_once(':')?;
            (is_plain_id(id).then(|| id.to_owned())?, rest)
        }
    };
    (rest.is_empty() || rest.starts_with(' ')).then(|| (id, rest.trim_start()))
}

/// Returns a JSON string at the start of a text, and the rest.
fn json_string(text: &str) -> Option<(String, &str)> {
    if !text.starts_with('"') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let string = values.next()?.ok()?;
    Some((string, &text[values.byte_offset()..]))
}

fn finish(mut items: Vec<Item<'_>>, mut found: Lines) -> Lines {
    let mut used: HashSet<String> = items.iter().filter_map(|item| item.id.clone()).collect();
    let mut next = 1;
    let mut ids: Vec<TaskId> = Vec::with_capacity(items.len());
    for item in &mut items {
        let given = item.id.take().and_then(|id| match TaskId::new(id.as_str()) {
            Ok(id) => Some(id),
            Err(bad) => {
                let wrong = ProblemKind::BadId { rule: bad.to_string() };
                found.problems.push(Problem { place: ProblemLocation::Task(id), wrong });
                None
            }
        });
        let id = given.or_else(|| {
            while !used.insert(format!("t{next}")) {
                next += 1;
            }
            let id = TaskId::new(format!("t{next}")).ok();
            found.assigned_ids.extend(id.clone());
            id
        });
        // A generated id is always valid; should the rules change, parsing stops with a problem.
        match id {
            Some(id) => ids.push(id),
            None => {
                let place = ProblemLocation::TaskNumber(ids.len() + 1);
                found
                    .problems
                    .push(Problem { place, wrong: ProblemKind::Missing { field: "id".to_owned() } });
                return found;
            }
        }
    }
    for (n, item) in items.into_iter().enumerate() {
        let mut task = Task::new(TaskSpec::new(ids[n].clone(), ""));
        task.spec.parent = item.parent.map(|above| ids[above].clone());
        task.state.status = item.status;
        let (mut wrong, mut notes) = (Vec::new(), Vec::new());
        let (description, group) = description_and_group(item.text);
        task.spec.description = description;
        if let Some(group) = group {
            for (key, value) in group {
                set(&mut task, key, &value, &mut wrong, &mut notes);
            }
        } else if item.text.ends_with(')') && item.text.contains("(after:") {
            found.notes.push(format!(
                "line {}: `(after: …)` was read as words; name tasks by their ids, with commas in between",
                item.line
            ));
        }
        if !item.note_lines.is_empty() {
            task.spec.notes = item.note_lines.join("\n");
        }
        for (key, value) in &item.attributes {
            set(&mut task, key, value, &mut wrong, &mut notes);
        }
        found.notes.extend(notes.into_iter().map(|note| format!("task {}: {note}", task.spec.id)));
        found.problems.extend(wrong.into_iter().map(|wrong| Problem::task(&task.spec.id, wrong)));
        found.tasks.push(task);
    }
    found
}

/// Returns the description in an item's text, and the attributes in the parentheses at its end.
fn description_and_group(text: &str) -> (String, Option<Vec<(&'static str, String)>>) {
    if let Some((description, rest)) = json_string(text) {
        let rest = rest.trim();
        if rest.is_empty() {
            return (description, None);
        }
        if let Some((start, group)) = group_at_end(rest)
            && start == 0
        {
            return (description, Some(group));
        }
    }
    match group_at_end(text) {
        Some((start, group)) => (text[..start].trim_end().to_owned(), Some(group)),
        None => (text.to_owned(), None),
    }
}

fn group_at_end(text: &str) -> Option<(usize, Vec<(&'static str, String)>)> {
    let inner = text.strip_suffix(')')?;
    let start = inner.rfind('(')?;
    if start > 0 && !text[..start].ends_with([' ', '\t']) {
        return None;
    }
    let parts = inner[start + 1..].split(';').map(|part| {
        let part = part.trim();
        if part == "skip" {
            return Some(("skip", "true".to_owned()));
        }
        let (key, value) = part.split_once(':')?;
        let value = value.trim();
        let key = match key {
            "after" | "depends on" | "depends_on" => {
                value.split(',').all(|id| is_plain_id(id.trim())).then_some("after")
            }
            "when" => native::<DependencyRule>(value).map(|_| "when"),
            "complexity" => native::<Complexity>(value).map(|_| "complexity"),
            "priority" => value.parse::<i32>().ok().map(|_| "priority"),
            _ => None,
        }?;
        Some((key, value.to_owned()))
    });
    parts.collect::<Option<Vec<_>>>().map(|group| (start, group))
}

/// Parses a word of the native format.
fn native<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}

/// Sets one attribute of a task.
fn set(task: &mut Task, key: &str, value: &str, wrong: &mut Vec<ProblemKind>, notes: &mut Vec<String>) {
    let mut refuse = |detail: String| wrong.push(ProblemKind::WrongType { field: key.to_owned(), detail });
    let text =
        || json_string(value).filter(|(_, rest)| rest.is_empty()).map_or(value.to_owned(), |(text, _)| text);
    let one_of = |words: &str| format!("expected {words}, found `{value}`");
    let (spec, state) = (&mut task.spec, &mut task.state);
    match key {
        "description" => spec.description = text(),
        "|" => {
            spec.description.push('\n');
            spec.description.push_str(value);
        }
        "notes" => spec.notes = text(),
        "provides" => spec.provides = Some(text()),
        "result" => state.result = Some(text()),
        "error" => state.error = Some(text()),
        "reason" => state.reason = Some(text()),
        "parent" => match TaskId::new(text()) {
            Ok(parent) => spec.parent = Some(parent),
            Err(bad) => refuse(bad.to_string()),
        },
        "when" => match native(value) {
            Some(when) => spec.when = when,
            None => refuse(one_of("all_done, all_finished or any_done")),
        },
        "complexity" => match native(value) {
            Some(complexity) => spec.complexity = Some(complexity),
            None => refuse(one_of("low, medium or high")),
        },
        "skip" => match value {
            "true" => spec.skip = true,
            "false" => spec.skip = false,
            _ => refuse(one_of("true or false")),
        },
        "priority" => match value.parse() {
            Ok(priority) => spec.priority = priority,
            Err(_) => refuse(one_of("a whole number")),
        },
        "timeout_seconds" => match value.parse() {
            Ok(seconds) => spec.timeout_seconds = Some(seconds),
            Err(_) => refuse(one_of("a whole number of seconds")),
        },
        "after" => {
            match list(value, |id| TaskId::new(id).map(Dependency::Task).map_err(|bad| bad.to_string())) {
                Ok(after) => spec.depends_on = after,
                Err(detail) => refuse(detail),
            }
        }
        "tools" => match list(value, |tool| Ok(tool.to_owned())) {
            Ok(tools) => spec.tools = Some(tools),
            Err(detail) => refuse(detail),
        },
        "locks" => match list(value, |key| {
            Ok(waypost_core::Lock { key: key.to_owned(), mode: waypost_core::LockMode::default() })
        }) {
            Ok(locks) => spec.locks = locks,
            Err(detail) => refuse(detail),
        },
        "work" => json(value, key, notes).map_or_else(refuse, |work| spec.work = Some(work)),
        "check" => json(value, key, notes).map_or_else(refuse, |check| spec.check = Some(check)),
        "retry" => json(value, key, notes).map_or_else(refuse, |retry| spec.retry = Some(retry)),
        "thinking" => json(value, key, notes).map_or_else(refuse, |thinking| spec.thinking = Some(thinking)),
        "foreign" => json(value, key, notes).map_or_else(refuse, |foreign| spec.foreign = foreign),
        "state" => json::<waypost_core::TaskState>(value, key, notes).map_or_else(refuse, |read| {
            let (status, result) = (state.status, state.result.take());
            let (error, reason) = (state.error.take(), state.reason.take());
            *state = waypost_core::TaskState { status, ..read };
            state.result = state.result.take().or(result);
            state.error = state.error.take().or(error);
            state.reason = state.reason.take().or(reason);
        }),
        // Only keys of ATTRIBUTES and of the group come here.
        other => refuse(format!("no attribute is called `{other}`")),
    }
}

/// Parses a list: words separated by commas, or a JSON list.
fn list<T: DeserializeOwned>(value: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    if value.starts_with('[') {
        return serde_json::from_str(value).map_err(|error| error.to_string());
    }
    value.split(',').map(str::trim).filter(|word| !word.is_empty()).map(one).collect()
}

/// Parses a JSON value of a known type, and notes keys that the type does not have.
pub(crate) fn json<T: DeserializeOwned>(text: &str, key: &str, notes: &mut Vec<String>) -> Result<T, String> {
    let mut ignored = Ignored::default();
    let value = ignored.deserialize(text).map_err(|error| error.to_string())?;
    notes.extend(ignored.0.into_iter().map(|path| format!("`{key}` has no field `{path}`; it was left out")));
    notes.extend(long_numbers_of(text).into_iter().map(|(_, words)| format!("`{key}`: {words}")));
    Ok(value)
}

/// Returns the first position of each id.
pub(crate) fn first_places(tasks: &[Task]) -> HashMap<&TaskId, usize> {
    let mut places = HashMap::with_capacity(tasks.len());
    for (n, task) in tasks.iter().enumerate() {
        places.entry(&task.spec.id).or_insert(n);
    }
    places
}
