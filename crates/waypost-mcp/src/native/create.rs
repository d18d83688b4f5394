//! `plan_create`: a plan from tasks, from a file of the workspace, or from a text in any format.

use serde_json::{Value, json};
use waypost_core::{Draft, Plan};
use waypost_formats::{Dialect, Unreadable};

use super::arguments::Arguments;
use super::{plan_facts, plan_ref, task_args};
use crate::approval;
use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;
use crate::workspace_files;

/// Bytes of the ids that were made.
const IDS_BYTES: usize = 120;

const KNOWN: [&str; 9] = ["title", "goal", "body", "status", "queue", "tasks", "file", "text", "format"];

/// What a new plan is to be, and what is to be told of it.
struct New {
    draft: Draft,
    made: Vec<String>,
    notes: Vec<String>,
}

pub(super) fn run(call: &Call) -> Result<Answer, ToolError> {
    let arguments = Arguments::of(&call.arguments, &KNOWN, "")?;
    let mut new = new(call, &arguments)?;
    let spec = &mut new.draft.spec;
    for (field, name) in [
        (&mut spec.title, "title"),
        (&mut spec.goal, "goal"),
        (&mut spec.body, "body"),
        (&mut spec.status, "status"),
        (&mut spec.queue, "queue"),
    ] {
        if let Some(text) = arguments.text(name)? {
            text.clone_into(field);
        }
    }
    if new.draft.tasks.is_empty() && spec.title.is_empty() && spec.goal.is_empty() && spec.body.is_empty() {
        return Err(ToolError::new(
            "there is nothing to make a plan of",
            "give tasks, file or text, and a title",
        ));
    }
    // Whoever makes it finds it again as its own, whatever the text says.
    spec.owner.clone_from(&call.by.name);
    new.notes.extend(call.workspace.cannot_run(&new.draft));
    let committed = call.workspace.create(&call.by, None, new.draft)?;
    new.notes.extend(committed.warnings());
    call.remember(&committed.plan)?;
    plan_ref::read(call, &committed.plan, |plan| answer(plan, &new.made, &new.notes))
}

fn new(call: &Call, arguments: &Arguments<'_>) -> Result<New, ToolError> {
    let (inline, file, text) = (arguments.list("tasks")?, arguments.name("file")?, arguments.name("text")?);
    match (inline, file, text) {
        (None, None, None) => Ok(New { draft: Draft::new(""), made: Vec::new(), notes: Vec::new() }),
        (Some(inline), None, None) => {
            let named: Vec<(String, Value)> =
                inline.iter().enumerate().map(|(at, task)| (format!("tasks[{at}]"), task.clone())).collect();
            let read = task_args::read(&named, &task_args::Taken::nothing())?;
            let mut draft = Draft::new("");
            draft.tasks = read.tasks;
            Ok(New { draft, made: read.made, notes: Vec::new() })
        }
        (None, Some(file), None) => {
            let text = workspace_files::read(&call.workspace, file)?;
            from_text(&text, Some(file), format(arguments)?)
        }
        (None, None, Some(text)) => from_text(text, None, format(arguments)?),
        _ => Err(ToolError::new("tasks, file and text exclude each other", "give one of them")),
    }
}

/// The format that the caller names.
pub(super) fn format(arguments: &Arguments<'_>) -> Result<Option<Dialect>, ToolError> {
    let words: Vec<(&str, Dialect)> =
        Dialect::ALL.into_iter().map(|dialect| (dialect.name(), dialect)).collect();
    arguments.one_of("format", &words)
}

fn from_text(text: &str, file: Option<&str>, format: Option<Dialect>) -> Result<New, ToolError> {
    let name = file.unwrap_or("the text");
    let reading = waypost_formats::read(text, format, file).map_err(|error| unreadable(name, &error))?;
    let problems = reading.all_problems();
    if !problems.is_empty() {
        return Err(ToolError::invalid(&problems));
    }
    let count = reading.drafts.len();
    let mut drafts = reading.drafts.into_iter();
    let (Some(draft), None) = (drafts.next(), drafts.next()) else {
        let message = format!("{name} holds {count} plans, and one is needed");
        return Err(ToolError::new(message, "give one plan at a time"));
    };
    Ok(New { draft, made: Vec::new(), notes: reading.notes })
}

/// A text that is no plan.
pub(super) fn unreadable(name: &str, error: &Unreadable) -> ToolError {
    let hint = match error {
        Unreadable::UnknownFormat => "name its format, or give tasks",
        Unreadable::Syntax { .. } => "correct it there",
        Unreadable::NoPlan(_) => "see that it is the right text",
        Unreadable::WriteOnly(_) => "choose a format that can be read",
        Unreadable::ReadOnly(_) => "choose a format that can be written",
    };
    ToolError::new(format!("{name}: {error}"), hint)
}

pub(super) fn answer(plan: &Plan, made: &[String], notes: &[String]) -> Answer {
    let (id, version, tasks) = (plan.id(), plan.version(), plan.len());
    let mut value = json!({ "plan": id, "version": version, "tasks": tasks });
    let mut text = format!("plan {id} v{version}: {}", waypost_text::count(tasks, "task"));
    if !made.is_empty() {
        let ids = reply_text::ranges(made, IDS_BYTES);
        text.push_str(&format!(" ({ids})"));
        value["ids"] = json!(ids);
    }
    let next = plan_facts::next_ids(plan);
    if !next.is_empty() {
        text.push_str(&format!("; ready: {}", next.join(", ")));
        value["ready"] = json!(next);
    }
    if approval::needs_approval(plan) {
        text.push_str("; a person must approve: plan_start asks");
        value["approval"] = json!("needed");
    }
    let notes = reply_text::notes(notes);
    if !notes.is_empty() {
        text.push_str(&format!("; note: {}", notes.join("; ")));
        value["notes"] = json!(notes);
    }
    Answer { value, text }
}
