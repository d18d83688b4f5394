//! clido's plans: the file with `meta` and `tasks`, the flat form that a model replies with, and numbered steps.
//!
//! Accepts what clido refuses (a missing `depends_on`, `null`, numbers as ids, braces and fences in the prose around the reply).
//! Does not know how clido runs a plan.

use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use waypost_core::{Complexity, Dependency, Draft, Problem, ProblemLocation, Status, Task, TaskSpec};

use crate::field_reader::{
    Fields, Nameless, PreservedFields, Shown, parse_timestamp, plan_id_text, short_hash, syntax,
    take_plan_id, task_id, without_position,
};
use crate::field_writer::{
    Shape, canonical, in_order, losses, own_dependencies, plan_loss, pretty, put_time, task_loss,
};
use crate::{Dialect, Form, Loss, Reading, Unreadable, Writing};

const DIALECT: Dialect = Dialect::Clido;
/// The creation time that clido writes into every plan.
const CREATED_AT: &str = "2026-01-01T00:00:00Z";
/// Maximum number of fences, and of braces, in a text that are tried as the start of a plan.
const BEGINNINGS_MAX: usize = 256;
/// How many of these may reach the end of the text without a complete object.
const UNENDED_MAX: usize = 8;
const PLAN_FIELDS: &[&str] = &["id", "title", "goal", "created_at"];
const TASK_FIELDS: &[&str] =
    &["id", "description", "depends_on", "complexity", "notes", "tools", "skip", "status"];
const OPTIONAL: [&str; 6] = ["depends_on", "complexity", "skip", "notes", "status", "tools"];

/// Reads a plan file, or a model reply that contains a plan.
pub(crate) fn read(text: &str, file_name: Option<&str>) -> Result<Reading, Unreadable> {
    match find_plans(text) {
        Ok(plans) => {
            let mut reading = Reading::new(DIALECT);
            plans.into_iter().for_each(|plan| reading.append(read_plan(plan)));
            reading.notes.extend(file_name.and_then(|_| broken_object(text)));
            Ok(reading)
        }
        Err(unreadable) => match steps_of_text(text) {
            steps if steps.is_empty() => Err(unreadable),
            steps => Ok(read_steps(steps)),
        },
    }
}

/// Whether the text contains an object that is certainly a clido plan.
pub(crate) fn looks_like(text: &str) -> bool {
    objects_in(text).iter().any(is_plan)
}

/// Returns the steps of a plan in prose: the unindented lines `Step 1: …`, `2. …`, `3) …`, with or without Markdown marks.
pub fn steps_of_text(text: &str) -> Vec<String> {
    text.lines().filter_map(step_of_line).map(str::to_owned).collect()
}

fn step_of_line(line: &str) -> Option<&str> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let is_marked = line.starts_with(['*', '_']);
    let line = line.trim_start_matches(['*', '#', '_', '>', '`', ' ']);
    let (numbered, marks): (&str, &[char]) = match line.get(..4) {
        Some(word) if word.eq_ignore_ascii_case("step") => (line[4..].trim_start(), &[':', '.']),
        _ => (line, &['.', ')']),
    };
    let digits = numbered.bytes().take_while(u8::is_ascii_digit).count();
    let step = numbered[digits..].strip_prefix(marks)?.trim();
    // `**Step 1:** …`: the marks that were opened before the number end behind it.
    let step = if is_marked { step.trim_start_matches(['*', '_']).trim_start() } else { step };
    (digits > 0 && !step.is_empty()).then_some(step)
}

fn read_steps(steps: Vec<String>) -> Reading {
    let mut draft = Draft::new("");
    draft.spec.goal = steps.first().cloned().unwrap_or_default();
    let mut nameless = Nameless::default();
    for (index, step) in steps.into_iter().enumerate() {
        let mut fields = Fields::new(Map::new(), ProblemLocation::TaskNumber(index + 1));
        let id = task_id(Some((index + 1).to_string()), index, &mut fields, &mut nameless, "id");
        let mut spec = TaskSpec::new(id, step);
        spec.complexity = Some(Complexity::Medium);
        draft.tasks.push(Task::new(spec));
    }
    let notes = vec!["no JSON found; the numbered lines were read as steps".to_owned()];
    Reading { drafts: vec![draft], notes, ..Reading::new(DIALECT) }
}

/// Returns the objects in the text that are plans; at least one.
fn find_plans(text: &str) -> Result<Vec<Map<String, Value>>, Unreadable> {
    let whole = match serde_json::from_str(text.trim()) {
        // A text that is a single object is meant to be the plan, whatever it lacks.
        Ok(Value::Object(map)) => return Ok(vec![plan_inside(map)]),
        Ok(Value::Array(tasks)) if is_task_list(&tasks) => {
            return Ok(vec![Map::from_iter([("tasks".to_owned(), Value::Array(tasks))])]);
        }
        Ok(other) => Unreadable::NoPlan(format!("expected a plan, found {}", Shown(&other))),
        Err(error) if text.trim_start().starts_with('{') => syntax(&error),
        Err(_) => Unreadable::NoPlan("no object with `goal` and `tasks` was found".to_owned()),
    };
    let (found, mut others): (Vec<_>, Vec<_>) = objects_in(text).into_iter().partition(is_plan);
    let mut sure: Vec<Map<String, Value>> = Vec::new();
    for plan in found {
        // A model that writes its plan twice has written one.
        if !sure.contains(&plan) {
            sure.push(plan);
        }
    }
    if !sure.is_empty() {
        return Ok(sure);
    }
    match others.iter().position(|map| map.contains_key("tasks")) {
        Some(at) => Ok(vec![others.swap_remove(at)]),
        None => Err(whole),
    }
}

/// Returns the objects that begin in the text, the most likely plan first.
fn objects_in(text: &str) -> Vec<Map<String, Value>> {
    let mut found = Vec::new();
    let mut plans: Vec<Range<usize>> = Vec::new();
    let mut unended = 0;
    for at in beginnings(text) {
        if plans.iter().any(|plan| plan.contains(&at)) {
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(map))) => {
                let map = plan_inside(map);
                if is_plan(&map) {
                    plans.push(at..at + values.byte_offset());
                }
                found.push(map);
            }
            // Each of these reads to the end of the text, so limit how many there may be.
            Some(Err(error)) if error.is_eof() => unended += 1,
            Some(_) | None => {}
        }
        if unended > UNENDED_MAX {
            break;
        }
    }
    found
}

/// Returns a note about the first object in the text that is not valid JSON: a plan may have been cut off there.
fn broken_object(text: &str) -> Option<String> {
    let mut at = 0;
    for _ in 0..BEGINNINGS_MAX {
        at += text[at..].find('{')?;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<IgnoredAny>();
        match values.next()? {
            Ok(_) => at += values.byte_offset(),
            Err(error) if text[at + 1..].trim_start().starts_with('"') => {
                let line = text[..at].matches('\n').count() + 1;
                let why = without_position(&error);
                return Some(format!(
                    "line {line}: the object there is not valid JSON and was left out ({why})"
                ));
            }
            Err(_) => at += 1,
        }
    }
    None
}

/// Returns where an object may begin: first in fences marked as JSON, then in other fences, then anywhere.
fn beginnings(text: &str) -> Vec<usize> {
    let mut marked = Vec::new();
    let mut fenced = Vec::new();
    for (fence, _) in text.match_indices("```").take(BEGINNINGS_MAX) {
        let inside = &text[fence + 3..];
        let tag = inside.bytes().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let space = inside[tag..].len() - inside[tag..].trim_start().len();
        if inside[tag + space..].starts_with('{') {
            let places = if inside[..tag].eq_ignore_ascii_case("json") { &mut marked } else { &mut fenced };
            places.push(fence + 3 + tag + space);
        }
    }
    marked.extend(fenced);
    let anywhere = text.match_indices('{').map(|(at, _)| at).filter(|at| !marked.contains(at));
    let anywhere: Vec<usize> = anywhere.take(BEGINNINGS_MAX).collect();
    marked.extend(anywhere);
    marked
}

/// Returns the plan that an object wraps in a field, such as `{"plan": {…}}`; otherwise the object itself.
fn plan_inside(map: Map<String, Value>) -> Map<String, Value> {
    if map.contains_key("tasks") || map.contains_key("meta") {
        return map;
    }
    let inner = map.values().find_map(|value| value.as_object().filter(|inner| is_plan(inner))).cloned();
    inner.unwrap_or(map)
}

fn is_plan(map: &Map<String, Value>) -> bool {
    map.get("tasks").is_some_and(Value::is_array)
        && (map.get("goal").is_some_and(Value::is_string) || map.get("meta").is_some_and(Value::is_object))
}

fn is_task_list(tasks: &[Value]) -> bool {
    let is_task = |task: &Value| task.get("id").is_some() && task.get("description").is_some();
    !tasks.is_empty() && tasks.iter().all(is_task)
}

fn read_plan(plan: Map<String, Value>) -> Reading {
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    let mut draft = Draft::new("");
    let mut kept = PreservedFields::default();
    let mut fields = Fields::new(plan, ProblemLocation::Plan);
    let wrapped = fields.has("meta");
    if wrapped {
        let mut meta =
            Fields::inside(fields.object("meta").unwrap_or_default(), ProblemLocation::Plan, "meta");
        read_meta(&mut meta, &mut draft, &mut kept, &mut notes);
        let more = meta.finish(&mut problems);
        if !more.is_empty() {
            kept.keep_unknown(Map::from_iter([("meta".to_owned(), Value::Object(more))]));
        }
    } else {
        read_meta(&mut fields, &mut draft, &mut kept, &mut notes);
    }
    if !fields.has("tasks") {
        fields.missing("tasks");
    }
    let tasks = fields.list("tasks").unwrap_or_default();
    match (wrapped, written_by_program(&tasks)) {
        (true, true) => kept.set("form", "program"),
        (true, false) => kept.set("form", "document"),
        (false, _) => kept.set("form", "flat"),
    }
    kept.keep_unknown(fields.finish(&mut problems));
    kept.keep_in(&mut draft.spec.foreign, DIALECT);

    let mut nameless = Nameless::default();
    for (index, task) in tasks.into_iter().enumerate() {
        draft.tasks.push(read_task(task, index, &mut nameless, &mut problems));
    }
    nameless.settle(&mut draft);
    Reading { drafts: vec![draft], problems, notes, ..Reading::new(DIALECT) }
}

fn read_meta(fields: &mut Fields, draft: &mut Draft, kept: &mut PreservedFields, notes: &mut Vec<String>) {
    draft.spec.goal = fields.text_needed("goal").unwrap_or_default();
    match fields.take("id") {
        Some(Value::String(id)) => take_plan_id(draft, id, kept, notes),
        Some(other) => notes.push(format!("the plan's id {} is not text and was left out", Shown(&other))),
        None => {}
    }
    match fields.take("created_at") {
        Some(Value::String(text)) => match parse_timestamp(&text) {
            Some(at) => {
                draft.state.created_at = Some(at);
                kept.keep_time("created_at", at, &text);
            }
            // clido never reads this text, so it may be anything.
            None => {
                fields.inexact("created_at", &Value::from(text.as_str()), "no time");
                kept.set("created_at", text);
            }
        },
        Some(other) => notes.push(format!("`created_at` {} is not text and was left out", Shown(&other))),
        None => {}
    }
}

/// Whether the tasks have the field order in which clido saves them.
fn written_by_program(tasks: &[Value]) -> bool {
    let place = |name: &str| {
        let task = tasks.first().and_then(Value::as_object)?;
        task.keys().position(|key| key == name)
    };
    matches!((place("tools"), place("complexity")), (Some(tools), Some(complexity)) if tools < complexity)
}

fn read_task(task: Value, index: usize, nameless: &mut Nameless, problems: &mut Vec<Problem>) -> Task {
    let Some(mut fields) = Fields::entry(task, index, "tasks", problems) else {
        return Task::new(TaskSpec::new(nameless.stand_in(index), ""));
    };
    if fields.peek("id").is_none_or(Value::is_null) {
        fields.missing("id");
    }
    let name = fields.name("id");
    let id = task_id(name, index, &mut fields, nameless, "id");
    let mut kept = PreservedFields::default();
    kept.keep_absent(OPTIONAL.into_iter().filter(|name| !fields.has(name)).collect());

    let mut task = Task::new(TaskSpec::new(id, fields.text_needed("description").unwrap_or_default()));
    let spec = &mut task.spec;
    spec.depends_on =
        fields.task_ids("depends_on").unwrap_or_default().into_iter().map(Dependency::Task).collect();
    spec.complexity = fields.text("complexity").and_then(|word| match complexity_of(&word) {
        Some(complexity) => {
            if complexity.as_str() != word {
                fields.inexact("complexity", &Value::String(word), complexity.as_str());
            }
            Some(complexity)
        }
        None => fields.unlike("complexity", "low, medium or high", &Value::String(word)),
    });
    spec.skip = fields.flag("skip").unwrap_or_default();
    spec.notes = fields.text("notes").unwrap_or_default();
    spec.tools = fields.names_in("tools");
    if let Some(word) = fields.text("status") {
        task.state.status = fields.status(&word, "pending, running, done, failed or skipped");
    }
    kept.keep_unknown(fields.finish(problems));
    kept.keep_in(&mut task.spec.foreign, DIALECT);
    task
}

/// Returns the id that clido gives to a plan whose file has none.
pub(crate) fn derived_id(goal: &str) -> String {
    format!("plan-{}", short_hash(goal))
}

fn complexity_of(word: &str) -> Option<Complexity> {
    Some(match word.trim().to_ascii_lowercase().as_str() {
        "low" | "simple" => Complexity::Low,
        "medium" | "med" | "moderate" => Complexity::Medium,
        "high" | "complex" => Complexity::High,
        _ => return None,
    })
}

/// Writes a plan file; the flat form only if the plan was read in it.
pub(crate) fn write(draft: &Draft, form: Form) -> Result<Writing, Unreadable> {
    let kept = PreservedFields::of(&draft.spec.foreign, DIALECT);
    let shape = Shape::of(form, &kept);
    let flat = shape.as_read && kept.text("form") == Some("flat");
    let mut losses = losses(draft, DIALECT, PLAN_FIELDS, TASK_FIELDS);
    let goal = if draft.spec.goal.is_empty() { &draft.spec.title } else { &draft.spec.goal };
    if !draft.spec.title.is_empty() && draft.spec.title != *goal {
        losses.push(plan_loss("title"));
    }

    let mut meta = Map::new();
    let id = plan_id_text(draft, &kept, || if flat { String::new() } else { derived_id(goal) });
    let is_derived = flat && kept.get("derived_id").is_some() && id == derived_id(goal);
    if !is_derived && (!id.is_empty() || !flat) {
        meta.insert("id".to_owned(), id.into());
    }
    meta.insert("goal".to_owned(), goal.as_str().into());
    // A text that is not a time stays, whatever time the store has given to the plan.
    let not_a_time = kept.text("created_at").filter(|text| parse_timestamp(text).is_none());
    put_time(
        &mut meta,
        "created_at",
        draft.state.created_at.filter(|_| not_a_time.is_none()),
        &kept,
        canonical,
    );
    if draft.state.created_at.is_none() || not_a_time.is_some() {
        match kept.text("created_at") {
            Some(text) => meta.insert("created_at".to_owned(), text.into()),
            None if flat => None,
            None => meta.insert("created_at".to_owned(), CREATED_AT.into()),
        };
    }
    let tasks = draft.tasks.iter().map(|task| write_task(task, shape, &mut losses)).collect();

    let known_meta = kept.unknown("meta").and_then(Value::as_object);
    let mut plan = if flat { std::mem::take(&mut meta) } else { Map::new() };
    if shape.unknown {
        // In the flat form a field of `meta` has no place but the top level.
        let inner = if flat { &mut plan } else { &mut meta };
        for (name, value) in known_meta.into_iter().flatten() {
            inner.entry(name.clone()).or_insert_with(|| value.clone());
        }
    } else if kept.has_unknown() {
        losses.push(plan_loss("foreign.clido"));
    }
    if !flat {
        plan.insert("meta".to_owned(), Value::Object(meta));
    }
    plan.insert("tasks".to_owned(), tasks);
    if shape.unknown {
        kept.write_unknown(&mut plan, &["meta"]);
    }
    let mut text = pretty(&plan, 2);
    if !shape.program {
        text.push('\n');
    }
    Ok(Writing { text, losses: in_order(draft, losses) })
}

fn write_task(task: &Task, shape: Shape, losses: &mut Vec<Loss>) -> Value {
    let Task { spec, state } = task;
    let kept = PreservedFields::of(&spec.foreign, DIALECT);
    let depends_on = own_dependencies(spec, losses);
    let status = match state.status {
        Status::Pending | Status::Running | Status::Done | Status::Failed | Status::Skipped => {
            state.status.as_str()
        }
        Status::Cancelled => {
            losses.push(task_loss(&spec.id, "status"));
            Status::Skipped.as_str()
        }
    };
    let complexity = spec.complexity.map_or("low", Complexity::as_str);
    let tools = spec.tools.as_ref().map_or(Value::Null, |tools| tools.as_slice().into());

    let mut map = Map::new();
    // Omit a field again that was absent when the task was read and still has its default value.
    let mut put = |field: &str, is_default: bool, value: Value| {
        if !(shape.as_read && is_default && kept.was_absent(field)) {
            map.insert(field.to_owned(), value);
        }
    };
    put("id", false, spec.id.as_str().into());
    put("description", false, spec.description.as_str().into());
    put("depends_on", depends_on.is_empty(), depends_on.into());
    if shape.program {
        put("tools", false, tools.clone());
    }
    put("complexity", spec.complexity.is_none(), complexity.into());
    put("skip", !spec.skip, spec.skip.into());
    put("notes", spec.notes.is_empty(), spec.notes.as_str().into());
    put("status", state.status == Status::Pending, status.into());
    if !shape.program {
        put("tools", spec.tools.is_none(), tools);
    }
    if shape.unknown {
        kept.write_unknown(&mut map, &[]);
    } else if kept.has_unknown() {
        losses.push(task_loss(&spec.id, "foreign.clido"));
    }
    Value::Object(map)
}
