//! `plan_create`: creates a plan from tasks, from a file of the workspace, or from a text in any format.

use serde_json::{Value, json};
use waypost_core::{Draft, Plan};
use waypost_formats::Dialect;
use waypost_service::CreateOptions;

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
    let created = call.service().create(&call.caller, new.draft, CreateOptions::default())?;
    new.notes.extend(plan_facts::notes(call, &created));
    call.remember(&created.plan)?;
    Ok(call.read(&created.plan, |plan| answer(plan, &new.made, &new.notes))?)
}

fn new(call: &Call, arguments: &Arguments<'_>) -> Result<New, ToolError> {
    let (inline, file, text) = (arguments.list("tasks")?, arguments.name("file")?, arguments.name("text")?);
    match (inline, file, text) {
        (None, None, None) => Ok(New { draft: Draft::new(""), made: Vec::new(), notes: Vec::new() }),
        (Some(inline), None, None) => {
            let named: Vec<(String, Value)> =
                inline.iter().enumerate().map(|(at, task)| (format!("tasks[{at}]"), task.clone())).collect();
            let (tasks, made) = task_args::read_draft(&named)?;
            Ok(New { draft: Draft { tasks, ..Draft::new("") }, made, notes: Vec::new() })
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
    let (draft, notes) = plan_text::read(text, file, format)?;
    Ok(New { draft, made: Vec::new(), notes })
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
