//! Plain checklists: what people and models write when they plan in Markdown, and the text of jaato's `plan` command.
//!
//! A checklist lists tasks and marks those that are done. Indentation gives the parent; order alone is not a dependency. Lines
//! that are not items become the body, so nothing that was written is dropped.

use waypost_core::{Draft, FORMAT, Phase, Status, Task};
use waypost_text::one_line;

use crate::field_writer::{losses, plan_loss, task_loss};
use crate::markdown::task_parser::{self, Style, item_line, looks_like_an_id, mark_of};
use crate::markdown::task_writer::{self, Place, group, is_plain_dependency, tree};
use crate::{Dialect, Form, Reading, Unreadable, Writing, markdown};

const DIALECT: Dialect = Dialect::Checklist;

/// Whether a text has at least one item with a checkbox, and no front matter.
pub(crate) fn looks_like(text: &str, _file_name: Option<&str>) -> bool {
    crate::front_matter::split(text).is_none()
        && markdown::lines(text).any(|line| !line.fenced && is_item(line.text))
}

fn is_item(line: &str) -> bool {
    item_line(line).is_some_and(|item| item.mark.is_some() && !item.text.is_empty())
}

/// Reads a checklist.
pub(crate) fn read(text: &str, _file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let parts = take_apart(text);
    if parts.items.is_empty() {
        return Err(Unreadable::NoPlan(
            "no checklist item such as `- [ ] Write the tests` was found".to_owned(),
        ));
    }
    let found = task_parser::read(parts.items, Style::Plain);
    let mut notes = found.notes;
    let mut draft = Draft { format: FORMAT.to_owned(), ..Draft::default() };
    draft.tasks = found.tasks;
    draft.spec.title = parts.title;
    draft.spec.body = body_of(&parts.body);
    if let Some(word) = parts.status {
        match phase_of(&word) {
            Some(phase) => draft.state.phase = phase,
            None => {
                notes.push(format!("the status `{word}` is not a plan phase; kept as the free-text status"));
                draft.spec.status = word;
            }
        }
    }
    Ok(Reading {
        drafts: vec![draft],
        problems: found.problems,
        notes,
        assigned_ids: found.assigned_ids,
        ..Reading::new(DIALECT)
    })
}

#[derive(Default)]
struct Parts<'a> {
    title: String,
    status: Option<String>,
    items: Vec<(usize, &'a str)>,
    body: Vec<&'a str>,
}

fn take_apart(text: &str) -> Parts<'_> {
    let mut parts = Parts::default();
    let mut blanks: Vec<(usize, &str)> = Vec::new();
    let mut titled = false;
    let mut command = false;
    let mut in_item = false;
    for (n, line) in markdown::lines(text).enumerate() {
        let (number, text) = (n + 1, line.text);
        if text.trim().is_empty() {
            blanks.push((number, text));
            continue;
        }
        let below_item = in_item && text.starts_with([' ', '\t']);
        if below_item || !line.fenced && is_item(text) {
            parts.items.append(&mut blanks);
            parts.items.push((number, text));
            in_item = true;
            continue;
        }
        in_item = false;
        parts.body.extend(blanks.drain(..).map(|(_, blank)| blank));
        if !line.fenced && !titled {
            if let Some(title) = text.strip_prefix("Current Plan:") {
                (titled, command) = (true, true);
                parts.title = title.trim().to_owned();
                continue;
            }
            if let Some(title) = heading(text) {
                titled = true;
                parts.title = title;
                continue;
            }
        }
        if command {
            if let Some(word) = text.strip_prefix("Status:") {
                parts.status = Some(word.trim().to_owned());
                continue;
            }
            // Both follow from the items.
            if text.trim() == "Steps:" || text.starts_with("Progress:") {
                continue;
            }
        }
        parts.body.push(text);
    }
    parts
}

fn heading(line: &str) -> Option<String> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let title = title.strip_prefix([' ', '\t'])?;
    ((1..=6).contains(&level)).then(|| title.trim().trim_end_matches('#').trim_end().to_owned())
}

/// Returns the lines that are not items, without the blank lines around them.
fn body_of(lines: &[&str]) -> String {
    let text: String = lines.concat();
    let text = text.trim_end();
    let start =
        text.split_inclusive('\n').take_while(|line| line.trim().is_empty()).map(str::len).sum::<usize>();
    text[start.min(text.len())..].to_owned()
}

fn phase_of(word: &str) -> Option<Phase> {
    match word {
        "pending" => Some(Phase::Draft),
        "in_progress" => Some(Phase::Active),
        word => word.parse().ok(),
    }
}

/// Writes the title, the body, and one line for each task.
pub(crate) fn write(draft: &Draft, _form: Form) -> Result<Writing, Unreadable> {
    let mut lost = losses(
        draft,
        DIALECT,
        &["title", "body"],
        &["id", "description", "parent", "depends_on", "when", "complexity", "priority", "skip", "status"],
    );
    let places = tree(&draft.tasks);
    let items: String = places.iter().map(|place| line(&draft.tasks[place.index], place.level)).collect();
    let title = match one_line(&draft.spec.title) {
        title if title.is_empty() => String::new(),
        title => format!("# {title}\n\n"),
    };
    let body = match body_of(&[&draft.spec.body]) {
        body if body.is_empty() => body,
        body => format!("{body}\n\n"),
    };
    // Items in the body would be read as tasks, and an unclosed code block would hide the tasks, so such a body is left out.
    let with_body = format!("{title}{body}{items}");
    let fits = task_parser::read(take_apart(&with_body).items, Style::Plain).tasks.len() == draft.tasks.len();
    let text = if fits { with_body } else { format!("{title}{items}") };
    // Anything that a reader would not get back is lost, for whatever reason.
    let back = take_apart(&text);
    let found = task_parser::read(back.items, Style::Plain);
    if back.title != draft.spec.title {
        lost.push(plan_loss("title"));
    }
    // Blank lines around a body say nothing.
    if body_of(&back.body) != body_of(&[&draft.spec.body]) {
        lost.push(plan_loss("body"));
    }
    for (Place { index, .. }, read) in places.iter().zip(&found.tasks) {
        let (wrote, read) = (&draft.tasks[*index].spec, &read.spec);
        let same = [
            ("id", wrote.id == read.id),
            ("description", wrote.description == read.description),
            ("parent", wrote.parent == read.parent),
            ("depends_on", wrote.depends_on == read.depends_on),
        ];
        lost.extend(same.iter().filter(|(_, same)| !same).map(|(field, _)| task_loss(&wrote.id, field)));
    }
    lost.sort();
    lost.dedup();
    Ok(Writing { text, losses: lost })
}

/// Writes one task on one line.
fn line(task: &Task, level: usize) -> String {
    let mut shown = task.clone();
    shown.spec.depends_on.retain(is_plain_dependency);
    // A plain word is read as an id only if every line has one, and another line may be added.
    let id = match looks_like_an_id(task.spec.id.as_str()) {
        true => task_writer::id(&task.spec.id),
        false => serde_json::Value::from(task.spec.id.as_str()).to_string(),
    };
    let start = format!("{}- [{}] {id}:", "  ".repeat(level), mark_of(task.state.status));
    let group = match group(&shown, true) {
        parts if parts.is_empty() => String::new(),
        parts => format!("  ({})", parts.join("; ")),
    };
    let description = one_line(&task.spec.description);
    let plain = match description.is_empty() {
        true => format!("{start}{group}\n"),
        false => format!("{start} {description}{group}\n"),
    };
    // Words at the end that look like attributes must stay part of the description.
    let back = task_parser::read([(1, plain.as_str())], Style::Full);
    match back.tasks.first() {
        Some(back) if back.spec.description == description => plain,
        _ => format!("{start} {}{group}\n", serde_json::Value::from(description)),
    }
}

/// Renders the plan as the `plan` command of jaato's document shows it.
pub fn render_plan_command(draft: &Draft) -> String {
    let status = match draft.state.phase {
        Phase::Draft | Phase::AwaitingApproval => "pending",
        Phase::Active => "in_progress",
        Phase::Paused => "paused",
        Phase::Completed => "completed",
        Phase::Failed => "failed",
        Phase::Cancelled => "cancelled",
    };
    let mut text = format!("Current Plan: {}\nStatus: {status}\n\nSteps:\n", one_line(&draft.spec.title));
    for Place { index, level, .. } in tree(&draft.tasks) {
        let task = &draft.tasks[index];
        let (id, description) = (one_line(task.spec.id.as_str()), one_line(&task.spec.description));
        let margin = "  ".repeat(level + 1);
        text.push_str(&format!("{margin}[{}] {id}: {description}\n", mark_of(task.state.status)));
    }
    let total = draft.tasks.len();
    let done = draft.tasks.iter().filter(|task| task.state.status == Status::Done).count();
    let percent = (done * 100).checked_div(total).unwrap_or(0);
    text.push_str(&format!("\nProgress: {done}/{total} ({percent}%)\n"));
    text
}
