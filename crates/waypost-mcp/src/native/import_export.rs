//! `plan_export` and `plan_update`: export a plan to a file and update it from there. The body never passes through the model.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use waypost_core::Draft;
use waypost_formats::frctl::update_index;
use waypost_formats::{Dialect, Form, Loss};
use waypost_service::{Guard, ServiceError, SourceText};

use super::arguments::{ArgumentForm, Arguments, Problems};
use super::create::format;
use super::{plan_facts, plan_ref};
use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum bytes of the list of tasks to be done again.
const AGAIN_BYTES: usize = 200;
/// The name of frctl's index of the plans in a folder.
const INDEX: &str = "index.json";
/// Maximum number of lost fields that a reply lists.
const LOSSES_MAX: usize = 10;

/// Returns the arguments of a call about a plan and a file, of which one is its own, and the format that they name.
fn arguments_of<'a>(
    call: &'a Call,
    own: (&'static str, ArgumentForm),
) -> Result<(Arguments<'a>, Option<Dialect>), ToolError> {
    let known =
        [("plan", ArgumentForm::Text), ("file", ArgumentForm::Needed), ("format", ArgumentForm::Word), own];
    let mut wrong = Problems::default();
    let arguments = Arguments::noting_wrong(&call.arguments, &known, &mut wrong);
    let format = wrong.take_or_default(format(&arguments));
    wrong.or((arguments, format))
}

pub(super) fn export(call: &Call) -> Result<Answer, ToolError> {
    let (arguments, format) = arguments_of(call, ("overwrite", ArgumentForm::Flag))?;
    let file = arguments.needed("file")?;
    let plan = plan_ref::plan(call, &arguments)?;
    let dialect = format.unwrap_or_else(|| by_name(file));
    let (draft, warnings) = call.view(&plan, |plan, warnings| (plan.to_draft(), warnings.to_vec()))?;
    let writing = waypost_formats::write(&draft, dialect, Form::AsRead)
        .map_err(|error| ServiceError::Unreadable { name: "plan_export".to_owned(), error })?;
    let bytes = call.files().write(file, &writing.text, arguments.flag("overwrite")?)?;
    let version = draft.version;
    let value =
        json!({ "plan": plan, "version": version, "file": file, "format": dialect.name(), "bytes": bytes });
    let text = format!("wrote {file}: v{version} as {dialect}, {bytes} bytes");
    let mut answer = Answer { value, text };
    answer.add_names("lost", &format!("; {dialect} cannot hold "), &lost(&writing.losses));
    if dialect == Dialect::Frctl {
        answer.add_notes(&keep_index(call, file, &draft).err().into_iter().collect::<Vec<_>>());
    }
    answer.warn(&warnings);
    Ok(answer)
}

/// Updates frctl's index beside an exported plan, if there is one. It is written by the rules for all files of tools; what it says about
/// other plans stays. Returns a note if the index could not be kept.
fn keep_index(call: &Call, file: &str, draft: &Draft) -> Result<(), String> {
    let index = Path::new(file).with_file_name(INDEX).display().to_string();
    let Ok(known) = call.files().read_plan(&index, Some(Dialect::Frctl)) else { return Ok(()) };
    if index == file {
        return Ok(());
    }
    let updated =
        update_index(Some(&known), draft).map_err(|error| format!("{index} was not updated: {error}"))?;
    let written = call.files().write(&index, &updated, true);
    written
        .map(|_| ())
        .map_err(|_| format!("{index} does not list the plan: `waypost export` by a person updates it"))
}

/// Returns the format for a file's extension; native for any other.
fn by_name(file: &str) -> Dialect {
    match Path::new(file).extension().and_then(|ending| ending.to_str()) {
        Some("md" | "markdown") => Dialect::Markdown,
        Some("mmd" | "mermaid") => Dialect::Mermaid,
        Some("dot" | "gv") => Dialect::Dot,
        Some("graphml") => Dialect::Graphml,
        Some("svg") => Dialect::Svg,
        Some(_) | None => Dialect::Native,
    }
}

/// Describes the fields that the format cannot hold, e.g. `notes of 3 tasks`.
fn lost(losses: &[Loss]) -> Vec<String> {
    let mut fields: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for loss in losses {
        let (tasks, of_plan) = fields.entry(&loss.field).or_default();
        *tasks += usize::from(loss.task.is_some());
        *of_plan |= loss.task.is_none();
    }
    let words = fields.iter().take(LOSSES_MAX).map(|(field, (tasks, of_plan))| match (tasks, of_plan) {
        (0, _) => format!("the plan's {field}"),
        (1, _) => format!("{field} of a task"),
        (tasks, _) => format!("{field} of {tasks} tasks"),
    });
    words.collect()
}

pub(super) fn update(call: &Call) -> Result<Answer, ToolError> {
    let (arguments, format) = arguments_of(call, ("known_version", ArgumentForm::Number))?;
    let file = arguments.needed("file")?;
    let plan = plan_ref::plan(call, &arguments)?;
    let guard = Guard::from(arguments.number("known_version")?);
    let text = call.files().read_plan(file, format)?;
    let bytes = text.len();
    let source = SourceText { text, format, file_name: Some(file.to_owned()), name: file.to_owned() };
    let updated = call.service().update(&call.caller, &plan, source, guard);
    let updated = updated.map_err(|error| call.refused(&plan, error))?;
    call.remember(&plan)?;
    let (version, stat) = (updated.written.version, updated.changes.describe());
    let text = format!("v{version} from {bytes} bytes: {stat}");
    let value = json!({ "plan": plan, "version": version, "bytes": bytes, "changes": stat });
    let mut answer = Answer { value, text };
    call.read(&plan, |plan| plan_facts::add_approval(plan, &mut answer))?;
    let again: Vec<String> = updated.again.iter().map(ToString::to_string).collect();
    if !again.is_empty() {
        let named = reply_text::ranges(&again, AGAIN_BYTES);
        answer.add("again", &named, &format!("; to be done again: {named}"));
    }
    answer.add_notes(&[updated.written.notes(), updated.notes].concat());
    Ok(answer)
}
