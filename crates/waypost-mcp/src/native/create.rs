//! `plan_create`: creates a plan from tasks, from a file of the workspace, or from a text in any format.

use serde_json::{Value, json};
use waypost_core::{Draft, Plan, PlanId};
use waypost_formats::Dialect;
use waypost_service::{CreateOptions, ImportDraft, Imported, WriteReply};

use super::arguments::{Arguments, Problems};
use super::{plan_facts, task_args};
use crate::plan_text;
use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum bytes of the list of generated ids.
const IDS_BYTES: usize = 120;

const KNOWN: [&str; 9] = ["title", "goal", "body", "status", "queue", "tasks", "file", "text", "format"];

/// The draft of a new plan, the ids generated for it, and notes for the reply.
#[derive(Default)]
struct New {
    draft: Draft,
    made: Vec<String>,
    notes: Vec<String>,
    /// The text that the draft was read from.
    text: Option<ImportDraft>,
}

pub(super) fn run(call: &Call) -> Result<Answer, ToolError> {
    let mut wrong = Problems::default();
    let arguments = Arguments::noting_unknown(&call.arguments, &KNOWN, "", &mut wrong);
    let new = wrong.take(new(call, &arguments));
    let texts =
        ["title", "goal", "body", "status", "queue"].map(|name| wrong.take_or_default(arguments.text(name)));
    // Without a problem there is a plan.
    let mut new = wrong.or(new)?.unwrap_or_default();
    let spec = &mut new.draft.spec;
    let fields = [&mut spec.title, &mut spec.goal, &mut spec.body, &mut spec.status, &mut spec.queue];
    for (field, text) in fields.into_iter().zip(texts) {
        if let Some(text) = text {
            text.clone_into(field);
        }
    }
    if new.draft.tasks.is_empty() && spec.title.is_empty() && spec.goal.is_empty() && spec.body.is_empty() {
        return Err(ToolError::new(
            "there is nothing to create a plan from",
            "pass tasks, file or text, and a title",
        ));
    }
    let written = match new.text {
        Some(text) => match call.service().import(&call.caller, ImportDraft { draft: new.draft, ..text })? {
            Imported::Unchanged { plan, archived, .. } => {
                return unchanged(call, (&plan, archived), new.notes);
            }
            Imported::Created { reply, taken } => {
                new.notes.extend(taken.map(|taken| taken_note(&taken, &reply)));
                reply
            }
        },
        None => call.service().create(&call.caller, new.draft, CreateOptions::default())?,
    };
    new.notes.extend(plan_facts::notes(call, &written));
    call.remember(&written.plan)?;
    let resolved = plan_facts::resolved_waits(call, &written.plan)?;
    let mut answer = call.read(&written.plan, |plan| answer(plan, &new.made, &new.notes))?;
    plan_facts::add_resolved(&resolved, &mut answer);
    Ok(answer)
}

/// The reply for a text that is a plan already, and has not changed since.
fn unchanged(
    call: &Call,
    (id, archived): (&PlanId, bool),
    mut notes: Vec<String>,
) -> Result<Answer, ToolError> {
    let archived = if archived { ", which is archived," } else { "" };
    notes.insert(
        0,
        format!("this is already plan {id}{archived} and has not changed since; nothing was created"),
    );
    call.remember(id)?;
    let mut answer = call.read(id, |plan| answer(plan, &[], &notes))?;
    answer.value["changed"] = json!(false);
    Ok(answer)
}

fn taken_note(taken: &PlanId, reply: &WriteReply) -> String {
    let id = &reply.plan;
    format!("another plan has the id {taken}, so this one is {id}; to change the other, use plan_update")
}

fn new(call: &Call, arguments: &Arguments<'_>) -> Result<New, ToolError> {
    let (inline, file, text) = (arguments.list("tasks")?, arguments.name("file")?, arguments.name("text")?);
    match (inline, file, text) {
        (None, None, None) => Ok(New { draft: Draft::new(""), ..New::default() }),
        (Some(inline), None, None) => {
            let named: Vec<(String, Value)> =
                inline.iter().enumerate().map(|(at, task)| (format!("tasks[{at}]"), task.clone())).collect();
            let (tasks, made) = task_args::read_draft(&named)?;
            Ok(New { draft: Draft { tasks, ..Draft::new("") }, made, ..New::default() })
        }
        (None, Some(file), None) => {
            let format = format(arguments)?;
            from_text(&call.files().read_plan(file, format)?, Some(file), format)
        }
        (None, None, Some(text)) => from_text(text, None, format(arguments)?),
        _ => Err(ToolError::new("tasks, file and text exclude each other", "give one of them")),
    }
}

/// The format that the caller names.
pub(super) fn format(arguments: &Arguments<'_>) -> Result<Option<Dialect>, ToolError> {
    arguments.one_of("format", Dialect::all())
}

fn from_text(text: &str, file: Option<&str>, format: Option<Dialect>) -> Result<New, ToolError> {
    let (mut text, notes) = plan_text::read(text, file, format)?;
    let draft = std::mem::take(&mut text.draft);
    Ok(New { draft, notes, text: Some(text), ..New::default() })
}

pub(super) fn answer(plan: &Plan, made: &[String], notes: &[String]) -> Answer {
    let (id, version, tasks) = (plan.id(), plan.version(), plan.len());
    let text = format!("plan {id} v{version}: {}", waypost_text::count(tasks, "task"));
    let value = json!({ "plan": id, "version": version, "tasks": tasks });
    let mut answer = Answer { value, text };
    if !made.is_empty() {
        let ids = reply_text::ranges(made, IDS_BYTES);
        answer.add("ids", &ids, &format!(" ({ids})"));
    }
    answer.add_names("ready", "; ready: ", &plan_facts::next_ids(plan));
    plan_facts::add_approval(plan, &mut answer);
    answer.add_notes(notes);
    answer
}
