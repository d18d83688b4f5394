//! A plan as a Markdown text: front matter, the body, and a section `## Tasks` with a checklist.
//!
//! People edit plans in this form, so it holds a whole plan, and a written text is read back as the same plan. Knows where the
//! tasks are in the text; `task_parser` and `task_writer` handle a single task.

pub(crate) mod task_parser;
pub(crate) mod task_writer;

use serde_json::{Map, Value as JsonValue};
use waypost_core::{Draft, FORMAT, Phase, PlanId, PlanState, Problem, ProblemKind, Task, TaskState};

use self::task_parser::{Style, item_line};
use crate::front_matter::{self, Entry, FrontMatter, Value, quoted_if_needed};
use crate::unsupported_fields::{set_in_plan, set_in_task};
use crate::{Dialect, Form, Loss, Reading, Unreadable, Writing};

/// The name under which fields of this format are preserved.
const NAME: &str = "markdown";
/// The known keys. Others are preserved verbatim.
const KEYS: [&str; 12] = [
    "id",
    "version",
    "title",
    "goal",
    "status",
    "owner",
    "queue",
    "token_budget",
    "phase",
    "state",
    "foreign",
    "tasks",
];

/// Whether a text is a plan in this form: front matter with one of the known keys, or the name of a Markdown file.
pub(crate) fn looks_like(text: &str, file_name: Option<&str>) -> bool {
    let named = file_name.is_some_and(|name| {
        let name = name.to_ascii_lowercase();
        name.ends_with(".md") || name.ends_with(".markdown")
    });
    named
        || front_matter::split(text)
            .is_some_and(|parts| parts.matter.entries.iter().any(|entry| KEYS.contains(&entry.key.as_str())))
}

/// Reads a plan. Any text is one: without front matter and tasks it is a body.
pub(crate) fn read(text: &str, file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let mut draft = Draft { format: FORMAT.to_owned(), ..Draft::default() };
    let mut problems = Vec::new();
    let mut notes = Vec::new();
    let (matter, rest, first_line) = match front_matter::split(text) {
        Some(parts) => (parts.matter, parts.rest, parts.rest_line),
        None => (FrontMatter::default(), front_matter::without_mark(text), 1),
    };
    take_front_matter(&matter, &mut draft, &mut problems, &mut notes);
    let placing = Placing::of(&matter);
    if let Placing::Unknown(word) = &placing {
        let detail = format!("expected `none` or `end`, found `{word}`");
        problems.push(Problem::plan(ProblemKind::WrongType { field: "tasks".to_owned(), detail }));
    }
    let split = take_apart(rest, &placing);
    let lines = split
        .block
        .split_inclusive('\n')
        .enumerate()
        .map(|(n, line)| (first_line + split.block_line + n, line));
    let read = task_parser::read(lines, Style::Full);
    draft.tasks = read.tasks;
    problems.extend(read.problems);
    notes.extend(read.notes);
    draft.spec.body = split.body;
    if matter.entry("title").is_none() {
        draft.spec.title = heading(&draft.spec.body).or_else(|| stem(file_name)).unwrap_or_default();
    }
    Ok(Reading {
        drafts: vec![draft],
        problems,
        notes,
        assigned_ids: read.assigned_ids,
        ..Reading::new(Dialect::Markdown)
    })
}

/// Writes a plan. `Form::Document` is for people: it omits the data of machines (`state`, `foreign`).
pub(crate) fn write(draft: &Draft, form: Form) -> Result<Writing, Unreadable> {
    let whole = match form {
        Form::AsRead | Form::Program => true,
        Form::Document => false,
    };
    let tasks: Vec<Task> = match whole {
        true => draft.tasks.clone(),
        false => draft.tasks.iter().map(for_people).collect(),
    };
    let (block, body) = (task_writer::write(&tasks), draft.spec.body.as_str());
    let (placing, rest) = put_together(body, &block);
    let (mut text, kept_all) = write_front_matter(draft, whole, &placing);
    if !rest.is_empty() {
        text.push('\n');
        text.push_str(&rest);
    }
    let mut losses = if whole { Vec::new() } else { losses_for_people(draft) };
    if !kept_all {
        losses.push(Loss { task: None, field: format!("foreign.{NAME}") });
    }
    losses.sort();
    losses.dedup();
    Ok(Writing { text, losses })
}

fn for_people(task: &Task) -> Task {
    let mut task = task.clone();
    task.spec.foreign = waypost_core::ForeignFields::default();
    let TaskState { status, result, error, reason, .. } = task.state;
    task.state = TaskState { status, result, error, reason, ..TaskState::default() };
    task
}

fn losses_for_people(draft: &Draft) -> Vec<Loss> {
    let mut held: Vec<String> =
        ["id", "version", "title", "goal", "status", "owner", "queue", "token_budget", "body", "phase"]
            .map(str::to_owned)
            .to_vec();
    held.push(format!("foreign.{NAME}"));
    let mut people = draft.clone();
    people.tasks = draft.tasks.iter().map(for_people).collect();
    let task_fields: Vec<Vec<String>> = people.tasks.iter().map(set_in_task).collect();
    let mut losses: Vec<Loss> = set_in_plan(draft)
        .into_iter()
        .filter(|field| !held.contains(field))
        .map(|field| Loss { task: None, field })
        .collect();
    for (task, held) in draft.tasks.iter().zip(task_fields) {
        let id = task.spec.id.as_str();
        let lost = set_in_task(task).into_iter().filter(|field| !held.contains(field));
        losses.extend(lost.map(|field| Loss { task: Some(id.to_owned()), field }));
    }
    losses
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Placing {
    /// In the first section `## Tasks` that starts with a checklist.
    Section,
    /// After the last line `## Tasks`, whatever precedes it.
    End,
    /// Nowhere: checklists in the text are text.
    Nowhere,
    /// The front matter has another word.
    Unknown(String),
}

impl Placing {
    fn of(matter: &FrontMatter) -> Self {
        match matter.text("tasks") {
            None => Self::Section,
            Some("end") => Self::End,
            Some("none") => Self::Nowhere,
            Some(word) => Self::Unknown(word.to_owned()),
        }
    }

    fn as_str(&self) -> Option<&str> {
        match self {
            Self::Section => None,
            Self::End => Some("end"),
            Self::Nowhere => Some("none"),
            Self::Unknown(word) => Some(word),
        }
    }
}

/// A text split into body and tasks.
#[derive(Debug, Default)]
struct Split<'a> {
    body: String,
    block: &'a str,
    /// The line on which the block starts, counted from 0.
    block_line: usize,
}

fn take_apart<'a>(rest: &'a str, placing: &Placing) -> Split<'a> {
    let no_tasks = || Split { body: rest.to_owned(), ..Split::default() };
    let lines = Line::all(rest);
    let (heading, block, after) = match placing {
        Placing::Nowhere => return no_tasks(),
        Placing::End => match lines.iter().rposition(|line| is_tasks_heading(line.text)) {
            Some(heading) => (heading, heading + 1..lines.len(), lines.len()),
            None => return no_tasks(),
        },
        Placing::Section | Placing::Unknown(_) => match section(&lines) {
            Some(found) => found,
            None => return no_tasks(),
        },
    };
    let start_of = |line: usize| lines.get(line).map_or(rest.len(), |line| line.start);
    let before = &rest[..start_of(heading)];
    let body = if after == lines.len() {
        let bare = before.strip_suffix('\n').map(|bare| bare.strip_suffix('\r').unwrap_or(bare));
        let bare = bare.map(|bare| match bare.strip_suffix('\n') {
            Some(barer) => barer.strip_suffix('\r').unwrap_or(barer),
            None => bare,
        });
        bare.unwrap_or(before).to_owned()
    } else {
        // The heading stays in the body to mark where the tasks belong.
        format!("{}{}\n{}", before, lines[heading].text, &rest[start_of(after)..])
    };
    Split { body, block: &rest[start_of(block.start)..start_of(block.end)], block_line: block.start }
}

/// A line of a Markdown text.
pub(crate) struct Line<'a> {
    /// Where it starts, in bytes.
    start: usize,
    /// The line with its line break.
    pub(crate) text: &'a str,
    /// Whether it is part of a fenced code block, the fences included.
    pub(crate) fenced: bool,
}

pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    Line::all(text).into_iter()
}

impl<'a> Line<'a> {
    fn all(text: &'a str) -> Vec<Self> {
        let mut start = 0;
        let mut fence: Option<(char, usize)> = None;
        let mut lines = Vec::new();
        for line in text.split_inclusive('\n') {
            let run = fence_run(line);
            let was_fenced = fence.is_some();
            match (fence, run) {
                (None, Some((c, length, _))) => fence = Some((c, length)),
                (Some((open, length)), Some((c, closing, true))) if c == open && closing >= length => {
                    fence = None
                }
                _ => {}
            }
            lines.push(Line { start, text: line, fenced: was_fenced || fence.is_some() });
            start += line.len();
        }
        lines
    }
}

/// Parses the fence that a line opens or closes: its character, its length, and whether nothing follows it.
fn fence_run(line: &str) -> Option<(char, usize, bool)> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let c = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = text.chars().take_while(|&next| next == c).count();
    (length >= 3).then(|| (c, length, text[length..].trim().is_empty()))
}

fn is_tasks_heading(line: &str) -> bool {
    line.strip_prefix("## ").is_some_and(|title| title.trim().eq_ignore_ascii_case("tasks"))
}

fn is_section_heading(line: &str) -> bool {
    line.starts_with("# ") || line.starts_with("## ")
}

fn is_boxed(line: &Line<'_>) -> bool {
    !line.fenced && item_line(line.text).is_some_and(|item| item.bulleted && item.mark.is_some())
}

/// Returns the heading of the tasks, the lines of the tasks, and the first line after them that is not blank.
fn section(lines: &[Line<'_>]) -> Option<(usize, std::ops::Range<usize>, usize)> {
    let headings = lines.iter().enumerate().filter(|(_, line)| !line.fenced && is_tasks_heading(line.text));
    for (heading, _) in headings {
        let end = lines[heading + 1..]
            .iter()
            .position(|line| !line.fenced && is_section_heading(line.text))
            .map_or(lines.len(), |found| heading + 1 + found);
        let Some(first) = (heading + 1..end).find(|&n| !lines[n].text.trim().is_empty()) else { continue };
        if !is_boxed(&lines[first]) {
            continue;
        }
        // The last item includes the indented lines below it; an unindented line after it is not part of the tasks.
        let last = (first..end).rev().find(|&n| is_item_start(&lines[n])).unwrap_or(first);
        let below = |n: &usize| lines[*n].text.trim().is_empty() || lines[*n].text.starts_with([' ', '\t']);
        let stop = (last + 1..end).take_while(below).last().map_or(last + 1, |n| n + 1);
        let after = (stop..lines.len()).find(|&n| !lines[n].text.trim().is_empty()).unwrap_or(lines.len());
        return Some((heading, heading + 1..stop, after));
    }
    None
}

fn is_item_start(line: &Line<'_>) -> bool {
    is_boxed(line)
        || !line.fenced && item_line(line.text).is_some_and(|item| item.bulleted && item.indent == 0)
}

/// Inserts the tasks into the body at a place where a reader finds both again.
fn put_together(body: &str, block: &str) -> (Placing, String) {
    let found_again = |text: &str, placing: &Placing| {
        let split = take_apart(text, placing);
        split.body == body && split.block.trim_matches('\n') == block.trim_matches('\n')
    };
    if block.is_empty() {
        let plain = take_apart(body, &Placing::Section).block.is_empty();
        return (if plain { Placing::Section } else { Placing::Nowhere }, body.to_owned());
    }
    let at_the_end = match body {
        "" => format!("## Tasks\n\n{block}"),
        body => format!("{body}\n\n## Tasks\n\n{block}"),
    };
    let lines = Line::all(body);
    let place = lines.iter().position(|line| !line.fenced && is_tasks_heading(line.text));
    let in_its_place = place.and_then(|heading| lines.get(heading + 1)).map(|next| {
        let after = body[next.start..].strip_prefix('\n').unwrap_or(&body[next.start..]);
        format!("{}\n{block}\n{after}", &body[..next.start])
    });
    for text in in_its_place.into_iter().chain([at_the_end.clone()]) {
        if found_again(&text, &Placing::Section) {
            return (Placing::Section, text);
        }
    }
    (Placing::End, at_the_end)
}

fn take_front_matter(
    matter: &FrontMatter,
    draft: &mut Draft,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<String>,
) {
    let mut kept = Map::new();
    for entry in &matter.entries {
        let Some(key) = KEYS.into_iter().find(|key| *key == entry.key) else {
            kept.insert(entry.key.clone(), JsonValue::from(entry.raw.as_str()));
            continue;
        };
        let text = match &entry.value {
            Value::Text(text) => text.as_str(),
            Value::Nothing => "",
            Value::List(_) | Value::Other => {
                problems.push(wrong_type(key, entry, "expected a text"));
                continue;
            }
        };
        if let Err(expected) = take_entry(key, text, draft, notes) {
            problems.push(wrong_type(key, entry, &expected));
        }
    }
    for (line, text) in &matter.strays {
        let detail = format!("line {line}: `{text}` is no `key: value`");
        problems.push(Problem::plan(ProblemKind::Format { detail }));
    }
    if matter.comments > 0 {
        notes.push(format!("{} comment lines of the front matter are not kept", matter.comments));
    }
    let mut foreign = std::mem::take(&mut draft.spec.foreign);
    foreign.keep(NAME, kept);
    draft.spec.foreign = foreign;
}

fn wrong_type(key: &str, entry: &Entry, detail: &str) -> Problem {
    let detail = format!("line {}: {detail}", entry.line);
    Problem::plan(ProblemKind::WrongType { field: key.to_owned(), detail })
}

fn take_entry(key: &str, text: &str, draft: &mut Draft, notes: &mut Vec<String>) -> Result<(), String> {
    let number = || text.parse::<u64>().map_err(|_| format!("expected a whole number, found `{text}`"));
    let spec = &mut draft.spec;
    match key {
        "id" if text.is_empty() => {}
        "id" => draft.id = Some(PlanId::new(text).map_err(|bad| bad.to_string())?),
        "version" => draft.version = number()?,
        "title" => spec.title = text.to_owned(),
        "goal" => spec.goal = text.to_owned(),
        "status" => spec.status = text.to_owned(),
        "owner" => spec.owner = text.to_owned(),
        "queue" => spec.queue = text.to_owned(),
        "token_budget" => spec.token_budget = Some(number()?),
        "phase" => {
            let words = Phase::ALL.map(Phase::as_str).join(", ");
            draft.state.phase =
                text.parse().map_err(|_| format!("expected one of {words}, found `{text}`"))?;
        }
        "state" => {
            let state: PlanState = task_parser::json(text, key, notes)?;
            draft.state = PlanState { phase: draft.state.phase, ..state };
        }
        "foreign" => draft.spec.foreign = task_parser::json(text, key, notes)?,
        // `tasks` gives the place of the tasks; the caller reads it.
        _ => {}
    }
    Ok(())
}

/// Returns the front matter, and whether all preserved entries of the original front matter could be written.
fn write_front_matter(draft: &Draft, whole: bool, placing: &Placing) -> (String, bool) {
    let spec = &draft.spec;
    let mut text = String::from("---\n");
    let mut line = |key: &str, value: &str| text.push_str(&format!("{key}: {value}\n"));
    if let Some(id) = &draft.id {
        line("id", &quoted_if_needed(id.as_str()));
    }
    if draft.version != 0 {
        line("version", &draft.version.to_string());
    }
    line("title", &quoted_if_needed(&spec.title));
    let texts =
        [("goal", &spec.goal), ("status", &spec.status), ("owner", &spec.owner), ("queue", &spec.queue)];
    for (key, value) in texts {
        if !value.is_empty() {
            line(key, &quoted_if_needed(value));
        }
    }
    if let Some(budget) = spec.token_budget {
        line("token_budget", &budget.to_string());
    }
    if draft.state.phase != Phase::default() {
        line("phase", draft.state.phase.as_str());
    }
    if let Some(word) = placing.as_str() {
        line("tasks", word);
    }
    if whole {
        let state = PlanState { phase: Phase::default(), ..draft.state.clone() };
        if state != PlanState::default() {
            let mut value = serde_json::to_value(&state).unwrap_or_default();
            if let Some(fields) = value.as_object_mut() {
                fields.shift_remove("phase");
            }
            line("state", &value.to_string());
        }
        let mut foreign = spec.foreign.clone();
        foreign.0.remove(NAME);
        if !foreign.is_empty() {
            line("foreign", &serde_json::to_string(&foreign).unwrap_or_default());
        }
    }
    let mut kept_all = true;
    for (key, raw) in spec.foreign.of(NAME) {
        match raw.as_str().filter(|raw| is_one_entry(&key, raw)) {
            Some(raw) => text.push_str(&format!("{raw}\n")),
            None => kept_all = false,
        }
    }
    text.push_str("---\n");
    (text, kept_all)
}

/// Whether a preserved entry is still a single entry: it may have been changed by hand since it was read.
fn is_one_entry(key: &str, raw: &str) -> bool {
    let file = format!("---\n{raw}\n---\n");
    front_matter::split(&file).is_some_and(|parts| {
        let matter = parts.matter;
        parts.rest.is_empty()
            && matter.strays.is_empty()
            && matter.comments == 0
            && matches!(matter.entries.as_slice(), [entry] if entry.key == key && entry.raw == raw)
            && !KEYS.contains(&key)
    })
}

/// Returns the first top-level heading of a text.
pub(crate) fn heading(text: &str) -> Option<String> {
    let lines = Line::all(text);
    let heading = lines.iter().find(|line| !line.fenced && line.text.starts_with("# "))?;
    let title = heading.text[2..].trim().trim_end_matches('#').trim_end();
    (!title.is_empty()).then(|| title.to_owned())
}

fn stem(file_name: Option<&str>) -> Option<String> {
    let name = file_name?.rsplit(['/', '\\']).next()?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    (!stem.is_empty()).then(|| stem.to_owned())
}
