//! Lists the fields that are set in a draft, so that a writer can name everything that it leaves out.
//!
//! Knows no format. The native JSON omits default values, so its fields are the ones that are set: a new field is listed here
//! without further code.

use serde::Serialize;
use serde_json::Value;
use waypost_core::{Draft, Phase, Status, Task};

/// What Waypost notes down about a plan, or finds again by itself. It is not the author's, so that a format without it loses
/// nothing.
const BOOKKEEPING: [&str; 14] = [
    "id",
    "version",
    "created_by",
    "created_at",
    "updated_at",
    "attempt",
    "tries",
    "started_at",
    "finished_at",
    "not_before",
    "worker",
    "progress",
    "received",
    "because_of",
];

/// Returns the names of all fields that are set in a plan, but for the bookkeeping. Foreign fields are named `foreign.<format>`; tasks are not listed.
pub(crate) fn set_in_plan(draft: &Draft) -> Vec<String> {
    let mut set: Vec<String> = set_fields(&draft.spec).collect();
    // The count of calls belongs to the store, the phase already shows that a closed plan has ended, and whether an approval
    // is needed is the account's word. An approval in a file counts nowhere.
    let is_said = |field: &String| match field.as_str() {
        "calls" | "closed" | "approval_waived" | "approval" => false,
        "phase" => !phase_follows(draft),
        _ => true,
    };
    set.extend(set_fields(&draft.state).filter(is_said));
    set.extend(draft.spec.foreign.0.keys().map(|dialect| format!("foreign.{dialect}")));
    set
}

/// Whether the phase of a plan follows from its tasks: it has not ended, or has with them.
fn phase_follows(draft: &Draft) -> bool {
    let has = |status: Status| draft.tasks.iter().any(|task| task.state.status == status);
    let is_over = !draft.tasks.is_empty() && draft.tasks.iter().all(|task| task.state.status.is_finished());
    match draft.state.phase {
        Phase::Draft | Phase::Active => true,
        Phase::Completed => is_over && !has(Status::Failed),
        Phase::Failed => is_over && has(Status::Failed),
        Phase::AwaitingApproval | Phase::Paused | Phase::Cancelled => false,
    }
}

/// Returns the names of all fields that are set in a task, but for the bookkeeping. Its foreign fields are named as in [`set_in_plan`].
pub(crate) fn set_in_task(task: &Task) -> Vec<String> {
    let mut set: Vec<String> = set_fields(&task.spec).collect();
    let is_said = |field: &String| field != "status" || task.state.status != Status::default();
    set.extend(set_fields(&task.state).filter(is_said));
    set.extend(task.spec.foreign.0.keys().map(|dialect| format!("foreign.{dialect}")));
    set
}

/// Returns the fields in the native JSON of a value, without empty texts and foreign fields.
fn set_fields(value: &impl Serialize) -> impl Iterator<Item = String> {
    let fields = match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    fields
        .into_iter()
        .filter(|(name, value)| name != "foreign" && value != "" && !BOOKKEEPING.contains(&name.as_str()))
        .map(|(name, _)| name)
}
