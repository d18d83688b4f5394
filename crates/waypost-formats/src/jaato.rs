//! jaato's todo plugin: one plan or a store file of many, as its document shows them (`id`, `progress`) and as the program saves
//! them (`step_id`, `sequence`, nulls).
//!
//! A step waits for steps of other agents; `blocked` and `blocked_by` are derived from the outputs that it has received. Does not
//! know jaato's tools or its events.

mod dependencies;
pub mod tool_output;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use waypost_core::{Draft, Phase, Problem, ProblemLocation, Status, Task, TaskSpec, Timestamp};

use self::dependencies::{Around, Links, Own, write_links};
use crate::field_reader::{
    Fields, Nameless, PreservedFields, json_of, plan_id_text, short_hash, take_plan_id, task_id,
};
use crate::field_writer::{
    Shape, canonical, in_order, losses, plan_loss, pretty, pretty_ascii, put, put_time, python_offset_and_z,
    task_loss,
};
use crate::{Dialect, Form, Loss, Reading, Unreadable, Writing};

const DIALECT: Dialect = Dialect::Jaato;
/// The numbers of a plan's progress, in both forms.
const PROGRESS: [&str; 9] =
    ["completed", "total", "percentage", "percent", "failed", "skipped", "in_progress", "pending", "blocked"];
const PLAN_FIELDS: &[&str] = &["id", "title", "phase", "created_at", "started_at", "finished_at", "summary"];
const TASK_FIELDS: &[&str] = &[
    "id",
    "description",
    "depends_on",
    "provides",
    "status",
    "started_at",
    "finished_at",
    "result",
    "error",
    "output",
    "received",
];

/// Reads one plan or a store file.
pub(crate) fn read(text: &str, _file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let Value::Object(top) = json_of(text)? else {
        return Err(Unreadable::NoPlan("expected a plan or a store of plans, found no object".to_owned()));
    };
    let mut reading = Reading::new(DIALECT);
    if top.contains_key("steps") || top.contains_key("title") {
        read_plan(top, &mut reading);
    } else if top.contains_key("agent_plan_ids") {
        reading.notes.push("this file only maps agents to plans; it contains no plan".to_owned());
    } else if top.values().all(Value::is_object) {
        for (key, plan) in top {
            let Value::Object(mut plan) = plan else { continue };
            if plan.contains_key("agent_plan_ids") {
                reading.notes.push(format!("{key} only says which agent works on which plan"));
                continue;
            }
            match plan.get("plan_id") {
                None => {
                    plan.insert("plan_id".to_owned(), key.into());
                }
                Some(Value::String(id)) if *id != key => {
                    let detail = format!("is stored under {key}, but says that it is {id}");
                    reading.problems.push(Problem::plan(waypost_core::ProblemKind::Format { detail }));
                }
                Some(_) => {}
            }
            read_plan(plan, &mut reading);
        }
    } else {
        return Err(Unreadable::NoPlan("no plan with `title` and `steps` was found".to_owned()));
    }
    Ok(reading)
}

/// Whether an object with these fields is a jaato plan.
pub(crate) fn is_plan(has: impl Fn(&str) -> bool) -> bool {
    has("steps") && (has("plan_id") || has("title"))
}

fn read_plan(plan: Map<String, Value>, reading: &mut Reading) {
    let mut draft = Draft::new("");
    let mut kept = PreservedFields::default();
    let mut fields = Fields::new(plan, ProblemLocation::Plan);
    let program = fields.has("started") || fields.has("context");
    kept.set("form", if program { "program" } else { "document" });
    let time = if program { python_offset_and_z } else { canonical };
    kept.keep_absent(
        ["plan_id", "status", "progress"].into_iter().filter(|name| !fields.has(name)).collect(),
    );

    let own_id = fields.name("plan_id");
    if let Some(id) = own_id.clone() {
        take_plan_id(&mut draft, id, &mut kept, &mut reading.notes);
    }
    draft.spec.title = fields.text_needed("title").unwrap_or_default();
    draft.state.created_at = fields.time_as("created_at", &mut kept, time);
    draft.state.started_at = fields.time_as("started_at", &mut kept, time);
    draft.state.finished_at = fields.time_as("completed_at", &mut kept, time);
    draft.state.summary = fields.text("summary").unwrap_or_default();
    let started = fields.flag("started");
    let status =
        fields.text("status").unwrap_or_else(|| if program { "active" } else { "pending" }.to_owned());
    let expected = "active, completed, failed or cancelled";
    draft.state.phase = phase_of(&status, started)
        .or_else(|| fields.unlike("status", expected, &Value::from(status.as_str())))
        .unwrap_or(Phase::Draft);
    if let Some(started) = started {
        kept.remember("started", was_started(&draft), started);
    }
    let current_step = fields.integer("current_step");
    if fields.has("progress") {
        // It is counted again when the plan is written.
        let progress = fields.object("progress").unwrap_or_default();
        kept.set("progress", if progress.contains_key("percent") { "program" } else { "document" });
        for (name, value) in progress.iter().filter(|(name, _)| !PROGRESS.contains(&name.as_str())) {
            fields.inexact(&format!("progress.{name}"), value, "nothing: progress is counted anew");
        }
    }
    if fields.peek("context").is_some_and(|context| context.as_object().is_some_and(Map::is_empty)) {
        fields.take("context");
    }
    if !fields.has("steps") {
        fields.missing("steps");
    }
    let steps = fields.list("steps").unwrap_or_default();
    kept.keep_unknown(fields.finish(&mut reading.problems));

    let own = Own::of(own_id.as_deref(), &steps);
    let mut nameless = Nameless::default();
    for (index, step) in steps.into_iter().enumerate() {
        let task = read_step(step, index, &own, time, &mut nameless, reading);
        draft.tasks.push(task);
    }
    nameless.settle(&mut draft);
    // A reply of the program does not include whether the plan was started; its steps show it.
    if started.is_none()
        && status == "active"
        && draft.tasks.iter().any(|task| task.state.status != Status::Pending)
    {
        draft.state.phase = Phase::Active;
    }
    if !program && document_word(draft.state.phase) != status {
        kept.keep_phase_word(draft.state.phase, &status);
    }
    if let Some(current_step) = current_step {
        kept.remember("current_step", current_step_of(&draft), current_step);
    }
    kept.keep_in(&mut draft.spec.foreign, DIALECT);
    reading.drafts.push(draft);
}

#[expect(clippy::wildcard_enum_match_arm, reason = "JSON has no more kinds of values")]
fn read_step(
    step: Value,
    index: usize,
    own: &Own,
    time: fn(Timestamp) -> String,
    nameless: &mut Nameless,
    reading: &mut Reading,
) -> Task {
    let step = match step {
        // A plan is requested with a list of texts.
        Value::String(text) => json!({ "description": text }),
        step => step,
    };
    let Some(mut fields) = Fields::entry(step, index, "steps", &mut reading.problems) else {
        return Task::new(TaskSpec::new(nameless.stand_in(index), ""));
    };
    let mut kept = PreservedFields::default();
    // The program assigns an id to a step without one, so that is not a problem.
    let name =
        fields.name("step_id").or_else(|| fields.name("id")).unwrap_or_else(|| format!("step_{}", index + 1));
    let id = task_id(Some(name), index, &mut fields, nameless, "id");
    let absent =
        ["description", "status", "depends_on", "provides"].into_iter().filter(|name| !fields.has(name));
    kept.keep_absent(absent.collect());

    let mut task = Task::new(TaskSpec::new(id, fields.text("description").unwrap_or_default()));
    task.spec.provides = fields.text("provides");
    task.state.started_at = fields.time_as("started_at", &mut kept, time);
    task.state.finished_at = fields.time_as("completed_at", &mut kept, time);
    task.state.result = fields.text("result");
    task.state.error = fields.text("error");
    task.state.output = fields.take("output").map(Into::into);
    let mut blocked = false;
    if let Some(word) = fields.text("status") {
        blocked = word == "blocked";
        let expected = "pending, in_progress, completed, failed, skipped or blocked";
        task.state.status = fields.status(&word, expected);
    }
    if let Some(sequence) = fields.integer("sequence")
        && usize::try_from(sequence).ok() != Some(index + 1)
    {
        let place = fields.place().clone();
        reading.notes.push(format!("{place}: has sequence {sequence}, but is at position {}", index + 1));
    }
    Links::take(&mut fields, own, blocked).put(&mut task, &mut kept);
    if blocked && task.spec.depends_on.is_empty() {
        // Nothing says what it waits for.
        fields.inexact("status", &Value::from("blocked"), Status::Pending.as_str());
    }
    kept.keep_unknown(fields.finish(&mut reading.problems));
    kept.keep_in(&mut task.spec.foreign, DIALECT);
    task
}

fn phase_of(status: &str, started: Option<bool>) -> Option<Phase> {
    Some(match (status, started) {
        ("active", Some(true)) | ("in_progress" | "running", _) => Phase::Active,
        ("active", _) | ("pending" | "draft", _) => Phase::Draft,
        ("completed" | "complete" | "done", _) => Phase::Completed,
        ("failed", _) => Phase::Failed,
        ("cancelled" | "canceled", _) => Phase::Cancelled,
        (_, _) => return None,
    })
}

fn document_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Draft | Phase::AwaitingApproval => "pending",
        Phase::Active | Phase::Paused => "in_progress",
        Phase::Completed => "completed",
        Phase::Failed => "failed",
        Phase::Cancelled => "cancelled",
    }
}

fn was_started(draft: &Draft) -> bool {
    match draft.state.phase {
        Phase::Active | Phase::Paused | Phase::Completed | Phase::Failed => true,
        Phase::Draft | Phase::AwaitingApproval | Phase::Cancelled => draft.state.started_at.is_some(),
    }
}

/// Returns the position of the first running step, from 1.
fn current_step_of(draft: &Draft) -> Value {
    let at = draft.tasks.iter().position(|task| task.state.status == Status::Running);
    at.map_or(Value::Null, |at| (at + 1).into())
}

/// Writes one plan.
pub(crate) fn write(draft: &Draft, form: Form) -> Result<Writing, Unreadable> {
    let mut losses = Vec::new();
    let (_, plan, program) = write_plan(draft, form, &mut losses);
    Ok(Writing { text: lay_out(&plan, program), losses })
}

/// Returns the plans of a store file by their ids, as they stand there; `None` if the text is no store file.
pub fn plans_of_store(text: &str) -> Option<Map<String, Value>> {
    let Value::Object(top) = json_of(text).ok()? else { return None };
    let is_of_store = |entry: &Value| ["steps", "agent_plan_ids"].iter().any(|key| entry.get(key).is_some());
    top.values().all(is_of_store).then_some(top)
}

/// Writes a store file: every plan under its id, beside the others of the store. The first plan determines the layout of the
/// file.
pub fn write_store(
    drafts: &[Draft],
    form: Form,
    mut store: Map<String, Value>,
) -> Result<Writing, Unreadable> {
    let mut losses = Vec::new();
    let (mut layout, mut written) = (None, BTreeSet::new());
    for draft in drafts {
        let (id, plan, program) = write_plan(draft, form, &mut losses);
        layout.get_or_insert(program);
        if !written.insert(id.clone()) {
            return Err(Unreadable::NoPlan(format!("two plans have the id {id}")));
        }
        store.insert(id, Value::Object(plan));
    }
    let text = lay_out(&store, layout.unwrap_or(form == Form::Program));
    Ok(Writing { text, losses })
}

fn lay_out(map: &Map<String, Value>, program: bool) -> String {
    if program { pretty_ascii(map) } else { pretty(map, 2) + "\n" }
}

fn write_plan(
    draft: &Draft,
    form: Form,
    losses_so_far: &mut Vec<Loss>,
) -> (String, Map<String, Value>, bool) {
    let kept = PreservedFields::of(&draft.spec.foreign, DIALECT);
    let shape = Shape::of(form, &kept);
    let mut losses = losses(draft, DIALECT, PLAN_FIELDS, TASK_FIELDS);
    let id = plan_id_text(draft, &kept, || format!("plan_{}", short_hash(&draft.spec.title)));
    match draft.state.phase {
        Phase::Draft | Phase::Active | Phase::Completed | Phase::Failed | Phase::Cancelled => {}
        Phase::AwaitingApproval | Phase::Paused => losses.push(plan_loss("phase")),
    }
    let around = Around::of(draft, &id);
    let steps = draft.tasks.iter().enumerate();
    let steps: Vec<Value> =
        steps.map(|(index, task)| write_step(&around, task, index, shape, &mut losses)).collect();
    drop(around);
    let mut map = if shape.program {
        program_plan(draft, &id, &kept, steps)
    } else {
        document_plan(draft, &id, &kept, shape, steps)
    };
    if shape.unknown {
        kept.write_unknown(&mut map, &[]);
    } else if kept.has_unknown_but(&["context"]) {
        losses.push(plan_loss("foreign.jaato"));
    }
    losses_so_far.append(&mut in_order(draft, losses));
    (id, map, shape.program)
}

fn program_plan(draft: &Draft, id: &str, kept: &PreservedFields, steps: Vec<Value>) -> Map<String, Value> {
    let state = &draft.state;
    let status = match state.phase {
        Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused => "active",
        Phase::Completed => "completed",
        Phase::Failed => "failed",
        Phase::Cancelled => "cancelled",
    };
    let mut map = Map::new();
    map.insert("plan_id".to_owned(), id.into());
    map.insert("created_at".to_owned(), Value::Null);
    map.insert("title".to_owned(), draft.spec.title.as_str().into());
    map.insert("steps".to_owned(), steps.into());
    map.insert("current_step".to_owned(), kept.recall("current_step", current_step_of(draft)));
    map.insert("status".to_owned(), status.into());
    map.insert("started".to_owned(), kept.recall("started", was_started(draft)));
    map.insert("started_at".to_owned(), Value::Null);
    map.insert("completed_at".to_owned(), Value::Null);
    map.insert("summary".to_owned(), summary_of(draft).into());
    map.insert("context".to_owned(), kept.unknown("context").cloned().unwrap_or_else(|| Map::new().into()));
    put_time(&mut map, "created_at", state.created_at, kept, python_offset_and_z);
    put_time(&mut map, "started_at", state.started_at, kept, python_offset_and_z);
    put_time(&mut map, "completed_at", state.finished_at, kept, python_offset_and_z);
    map
}

fn document_plan(
    draft: &Draft,
    id: &str,
    kept: &PreservedFields,
    shape: Shape,
    steps: Vec<Value>,
) -> Map<String, Value> {
    let state = &draft.state;
    let as_read = if shape.as_read { kept.phase_word(state.phase) } else { None };
    let status = as_read.unwrap_or_else(|| document_word(state.phase));
    let gap = |field: &str| shape.as_read && kept.was_absent(field);
    let mut map = Map::new();
    // A reference to a step of the same plan needs the plan's id.
    let own = draft.tasks.iter().any(|task| task.spec.depends_on.iter().any(|on| on.here().is_some()));
    put(&mut map, "plan_id", (draft.id.is_some() || own || !gap("plan_id")).then_some(id));
    map.insert("title".to_owned(), draft.spec.title.as_str().into());
    put(&mut map, "status", (state.phase != Phase::Draft || !gap("status")).then_some(status));
    put_time(&mut map, "created_at", state.created_at, kept, canonical);
    put_time(&mut map, "started_at", state.started_at, kept, canonical);
    put_time(&mut map, "completed_at", state.finished_at, kept, canonical);
    put(&mut map, "summary", summary_of(draft));
    if !gap("progress") {
        let counted = if shape.as_read { kept.text("progress") } else { None };
        map.insert("progress".to_owned(), progress(&steps, counted == Some("program")));
    }
    map.insert("steps".to_owned(), steps.into());
    map
}

fn summary_of(draft: &Draft) -> Option<&str> {
    Some(draft.state.summary.as_str()).filter(|summary| !summary.is_empty())
}

/// Returns the progress of the plan, as the document or the program counts it.
fn progress(steps: &[Value], program: bool) -> Value {
    let count = |word: &str| steps.iter().filter(|step| step["status"] == word).count();
    let (completed, total) = (count("completed"), steps.len());
    let percent = percent_of(completed, total);
    if !program {
        return json!({ "completed": completed, "total": total, "percentage": percent.round() as u64 });
    }
    json!({
        "total": total,
        "completed": completed,
        "failed": count("failed"),
        "skipped": count("skipped"),
        "in_progress": count("in_progress"),
        "pending": count("pending"),
        "blocked": count("blocked"),
        "percent": (percent * 10.0).round() / 10.0,
    })
}

fn percent_of(completed: usize, total: usize) -> f64 {
    if total == 0 { 0.0 } else { 100.0 * completed as f64 / total as f64 }
}

fn write_step(around: &Around<'_>, task: &Task, index: usize, shape: Shape, losses: &mut Vec<Loss>) -> Value {
    let Task { spec, state } = task;
    let kept = PreservedFields::of(&spec.foreign, DIALECT);
    let links = write_links(around, task, &kept);
    if state.received.values().any(|given| given.status != Status::Done) {
        losses.push(task_loss(&spec.id, "received"));
    }
    let status = match state.status {
        Status::Pending if links.contains_key("blocked_by") => "blocked",
        Status::Pending => "pending",
        Status::Running => "in_progress",
        Status::Done => "completed",
        Status::Failed => "failed",
        Status::Skipped => "skipped",
        Status::Cancelled => {
            losses.push(task_loss(&spec.id, "status"));
            "skipped"
        }
    };
    let (result, error) = (state.result.as_deref(), state.error.as_deref());
    let mut map = Map::new();
    if shape.program {
        map.insert("step_id".to_owned(), spec.id.as_str().into());
        map.insert("sequence".to_owned(), (index + 1).into());
        map.insert("description".to_owned(), spec.description.as_str().into());
        map.insert("status".to_owned(), status.into());
        map.insert("started_at".to_owned(), Value::Null);
        map.insert("completed_at".to_owned(), Value::Null);
        map.insert("result".to_owned(), result.into());
        map.insert("error".to_owned(), error.into());
        put_time(&mut map, "started_at", state.started_at, &kept, python_offset_and_z);
        put_time(&mut map, "completed_at", state.finished_at, &kept, python_offset_and_z);
        put(&mut map, "validation_required", kept.unknown("validation_required").cloned());
    } else {
        let gap = |field: &str| shape.as_read && kept.was_absent(field);
        map.insert("id".to_owned(), spec.id.as_str().into());
        let described = !spec.description.is_empty() || !gap("description");
        put(&mut map, "description", described.then_some(spec.description.as_str()));
        let has_status = state.status != Status::Pending || status == "blocked" || !gap("status");
        put(&mut map, "status", has_status.then_some(status));
        put_time(&mut map, "started_at", state.started_at, &kept, canonical);
        put_time(&mut map, "completed_at", state.finished_at, &kept, canonical);
        put(&mut map, "result", result);
        put(&mut map, "error", error);
    }
    map.extend(links);
    if shape.unknown {
        kept.write_unknown(&mut map, &["received_outputs"]);
    } else if kept.has_unknown_but(&["validation_required", "received_outputs"]) {
        losses.push(task_loss(&spec.id, "foreign.jaato"));
    }
    Value::Object(map)
}
