//! agora's runs: work items that executors run under resource locks, as submitted or with their state.
//!
//! An item is only work: it has no text for people. Does not know the executors, the queues or the shapes.

use serde_json::{Map, Value};
use waypost_core::{
    DEFAULT_QUEUE, Dependency, Draft, Lock, LockMode, Problem, ProblemLocation, Status, Task, TaskSpec,
    TaskState, Timestamp, Work,
};

use crate::field_reader::{
    Fields, Nameless, PreservedFields, object_of, plan_id_text, short_hash, take_plan_id, task_id,
};
use crate::field_writer::{canonical, in_order, losses, own_dependencies, pretty, put, put_time, task_loss};
use crate::{Dialect, Form, Loss, Reading, Unreadable, Writing};

const DIALECT: Dialect = Dialect::Agora;
const PLAN_FIELDS: &[&str] = &["id", "queue"];
const TASK_FIELDS: &[&str] = &["id", "depends_on", "locks", "work"];
/// The further fields of an item with its state.
const STATE_FIELDS: &[&str] =
    &["status", "attempt", "tries", "started_at", "not_before", "created_at", "reason", "error"];
/// Fields that show that an item has its state.
const STATE_NAMES: [&str; 4] = ["status", "attempts", "reason", "runningSince"];
/// The reason that agora gives for an item that was skipped because of another one.
const CASCADED: &str = "dependency failed or skipped";

/// Reads a run.
pub(crate) fn read(text: &str, _file_name: Option<&str>) -> Result<Reading, Unreadable> {
    let mut reading = Reading::new(DIALECT);
    let mut draft = Draft::new("");
    let mut kept = PreservedFields::default();
    let mut fields = Fields::new(object_of(text, DIALECT)?, ProblemLocation::Plan);
    if let Some(id) = fields.text_needed("id") {
        take_plan_id(&mut draft, id, &mut kept, &mut reading.notes);
    }
    draft.spec.queue = fields.text_needed("queue").unwrap_or_default();
    let named = ["items", "workItems", "work_items"].into_iter().find(|name| fields.has(name));
    if named.is_none() {
        fields.missing("items");
    }
    let items = named.and_then(|name| fields.list(name)).unwrap_or_default();
    kept.keep_unknown(fields.finish(&mut reading.problems));

    let mut nameless = Nameless::default();
    let with_state = items.iter().any(|item| STATE_NAMES.iter().any(|name| item.get(name).is_some()));
    for (index, item) in items.into_iter().enumerate() {
        let is_silent = with_state && item.get("status").is_none();
        let mut task = read_item(item, index, &draft, &mut nameless, &mut reading.problems);
        if is_silent {
            let mut kept = PreservedFields::of(&task.spec.foreign, DIALECT);
            kept.keep_absent(vec!["status"]);
            kept.keep_in(&mut task.spec.foreign, DIALECT);
        }
        draft.tasks.push(task);
    }
    nameless.settle(&mut draft);
    if with_state {
        kept.set("form", "program");
    }
    kept.keep_in(&mut draft.spec.foreign, DIALECT);
    reading.drafts.push(draft);
    Ok(reading)
}

fn read_item(
    item: Value,
    index: usize,
    run: &Draft,
    nameless: &mut Nameless,
    problems: &mut Vec<Problem>,
) -> Task {
    let Some(mut fields) = Fields::entry(item, index, "items", problems) else {
        return Task::new(TaskSpec::new(nameless.stand_in(index), ""));
    };
    let mut kept = PreservedFields::default();
    let name = fields.text_needed("id");
    let id = task_id(name, index, &mut fields, nameless, "id");
    let mut task = Task::new(TaskSpec::new(id, ""));
    for name in ["executor", "inputs", "depends_on", "resourceLocks"] {
        if fields.peek(name).is_none_or(Value::is_null) {
            fields.missing(name);
        }
    }
    let executor = fields.text("executor").unwrap_or_default();
    let inputs = fields.object("inputs").unwrap_or_default();
    let shape = fields.text("subagentShape");
    // A task without machine work is written with all three empty.
    if !(executor.is_empty() && inputs.is_empty() && shape.is_none()) {
        task.spec.work = Some(Box::new(Work { executor, inputs: Value::Object(inputs).into(), shape }));
    }
    let depends_on = fields.task_ids("depends_on").unwrap_or_default();
    task.spec.depends_on = depends_on.into_iter().map(Dependency::Task).collect();
    let locks = fields.names_in("resourceLocks").unwrap_or_default();
    task.spec.locks = locks.into_iter().map(|key| Lock { key, mode: LockMode::Exclusive }).collect();
    read_state(&mut fields, run, &mut task, &mut kept);
    kept.keep_unknown(fields.finish(problems));
    kept.keep_in(&mut task.spec.foreign, DIALECT);
    task
}

fn read_state(fields: &mut Fields, run: &Draft, task: &mut Task, kept: &mut PreservedFields) {
    let state = &mut task.state;
    if fields.has("status") {
        // Every item with a state repeats the fields of its run.
        let queue = if run.spec.queue.is_empty() { DEFAULT_QUEUE } else { &run.spec.queue };
        for (name, own) in [("runId", run.id.as_ref().map(|id| id.as_str())), ("queue", Some(queue))] {
            if fields.peek(name).and_then(Value::as_str).is_some_and(|text| Some(text) == own) {
                fields.take(name);
            }
        }
    }
    if let Some(word) = fields.text("status") {
        let expected = "pending, ready, running, done, failed, skipped, cancelled or denied";
        state.status = match word.as_str() {
            // An authority refused the item: it will never run.
            "denied" => Status::Failed,
            other => fields.status(other, expected),
        };
        if matches!(word.as_str(), "denied" | "ready") {
            kept.keep_status_word(state.status, &word);
        }
    }
    let reason = fields.text("reason");
    match state.status {
        Status::Failed => state.error = reason,
        Status::Pending | Status::Running | Status::Done | Status::Skipped | Status::Cancelled => {
            state.reason = reason
        }
    }
    if let Some(attempts) = fields.integer("attempts") {
        match u32::try_from(attempts) {
            Ok(tries) => state.tries = tries,
            Err(_) => fields.wrong("attempts", format_args!("expected a count, found {attempts}")),
        }
    }
    state.attempt = starts(state.status, state.tries);
    state.started_at = milliseconds(fields, "runningSince");
    state.not_before = milliseconds(fields, "nextAttemptAt");
    state.created_at = fields.time("submittedAt", kept);
}

/// Returns how often an item with this status and number of failed attempts must have been started.
fn starts(status: Status, tries: u32) -> u32 {
    match status {
        Status::Running | Status::Done => tries.saturating_add(1),
        Status::Failed => tries.max(1),
        Status::Pending | Status::Skipped | Status::Cancelled => tries,
    }
}

fn milliseconds(fields: &mut Fields, name: &str) -> Option<Timestamp> {
    let count = fields.integer(name)?;
    Some(Timestamp::from_micros(count.saturating_mul(1_000)))
}

/// Writes a run: as submitted, or with the state of its items if it was read so or the program's form is requested.
pub(crate) fn write(draft: &Draft, form: Form) -> Result<Writing, Unreadable> {
    let kept = PreservedFields::of(&draft.spec.foreign, DIALECT);
    let with_state = match form {
        Form::AsRead => kept.text("form") == Some("program"),
        Form::Document => false,
        Form::Program => true,
    };
    let task_fields: Vec<&str> = match with_state {
        true => TASK_FIELDS.iter().chain(STATE_FIELDS).copied().collect(),
        false => TASK_FIELDS.to_vec(),
    };
    let mut losses = losses(draft, DIALECT, PLAN_FIELDS, &task_fields);
    let id = plan_id_text(draft, &kept, || format!("run-{}", short_hash(&draft.spec.title)));
    let queue = if draft.spec.queue.is_empty() { DEFAULT_QUEUE } else { &draft.spec.queue };
    let run = with_state.then_some((id.as_str(), queue));
    let items = draft.tasks.iter().map(|task| write_item(task, run, form, &mut losses)).collect();
    let mut map = Map::new();
    map.insert("id".to_owned(), id.as_str().into());
    map.insert("queue".to_owned(), queue.into());
    map.insert("items".to_owned(), Value::Array(items));
    kept.write_unknown(&mut map, &[]);
    Ok(Writing { text: pretty(&map, 2) + "\n", losses: in_order(draft, losses) })
}

/// Whether a task has more to say than the request that its run was read from.
pub(crate) fn has_state(task: &Task) -> bool {
    let TaskState { status, attempt, tries, .. } = &task.state;
    *status != Status::Pending || *attempt > 0 || *tries > 0
}

fn write_item(task: &Task, run: Option<(&str, &str)>, form: Form, losses: &mut Vec<Loss>) -> Value {
    let Task { spec, state } = task;
    let kept = PreservedFields::of(&spec.foreign, DIALECT);
    if spec.work.is_none() {
        losses.push(task_loss(&spec.id, "work"));
    }
    let depends_on = own_dependencies(spec, losses);
    if spec.locks.iter().any(|lock| lock.mode == LockMode::Shared) {
        losses.push(task_loss(&spec.id, "locks"));
    }
    let locks: Vec<&str> = spec.locks.iter().map(|lock| lock.key.as_str()).collect();
    let work = spec.work.as_deref();

    let mut map = Map::new();
    map.insert("id".to_owned(), spec.id.as_str().into());
    map.insert("executor".to_owned(), work.map_or("", |work| &work.executor).into());
    map.insert("inputs".to_owned(), work.map_or_else(|| Map::new().into(), |work| work.inputs.value()));
    map.insert("depends_on".to_owned(), depends_on.into());
    map.insert("resourceLocks".to_owned(), locks.into());
    put(&mut map, "subagentShape", work.and_then(|work| work.shape.as_deref()));
    if let Some((run_id, queue)) = run {
        map.insert("runId".to_owned(), kept.unknown("runId").cloned().unwrap_or_else(|| run_id.into()));
        map.insert("queue".to_owned(), kept.unknown("queue").cloned().unwrap_or_else(|| queue.into()));
        let word = kept.status_word(state.status).unwrap_or(state.status.as_str());
        map.insert("status".to_owned(), word.into());
        let milliseconds = |at: Timestamp| at.as_micros().div_euclid(1_000);
        put(&mut map, "runningSince", state.started_at.map(milliseconds));
        // agora has one field for both: the error, or else the reason for skipping.
        let cascaded = state.because_of.as_ref().map(|_| CASCADED);
        put(&mut map, "reason", state.error.as_deref().or(state.reason.as_deref()).or(cascaded));
        if state.error.is_some() && state.reason.is_some() {
            losses.push(task_loss(&spec.id, "reason"));
        }
        put(&mut map, "attempts", (state.tries > 0).then_some(state.tries));
        if state.attempt != starts(state.status, state.tries) {
            losses.push(task_loss(&spec.id, "attempt"));
        }
        put(&mut map, "nextAttemptAt", state.not_before.map(milliseconds));
        put_time(&mut map, "submittedAt", state.created_at, &kept, canonical);
    }
    let of_the_state: &[&str] = if form == Form::Document { &["runId", "queue"] } else { &[] };
    kept.write_unknown(&mut map, of_the_state);
    Value::Object(map)
}
