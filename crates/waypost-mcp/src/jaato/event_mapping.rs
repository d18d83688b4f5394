//! Maps events to the plugin's twelve event types and their payloads. Knows no subscription.

use serde_json::{Map, Value, json};
use waypost_core::{DerivedEvent, Event, Phase, Plan, PlanId, TaskId};
use waypost_formats::jaato::tool_output;
use waypost_service::ServiceError;
use waypost_store::{EventFilter, EventSource, LogEvent, PlanStore, StoreError};

use super::active_plan::step;
use super::reply::error;
use crate::reply_text;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum bytes of an event's payload. The step that received an output has it in full.
const PAYLOAD_BYTES_MAX: usize = 4 * 1024;
/// Maximum bytes of the plan title and of the step description in an event.
const WORDS_BYTES: usize = 500;
/// Maximum number of steps that a `plan_created` event lists.
const STEPS_TOLD_MAX: usize = 100;
/// The reason on tasks cancelled together with their plan. They get no event: the end of the plan implies theirs.
const ENDED_ALONG: &str = "the plan was ended";

/// The plugin's event types, each with the event kinds that it is made from. The first kind is the type's own.
const TYPES: [(&str, &[&str]); 12] = [
    ("plan_created", &["plan_created"]),
    ("plan_started", &["plan_started"]),
    ("plan_completed", &["plan_completed", "plan_finished"]),
    ("plan_failed", &["plan_failed", "plan_finished"]),
    ("plan_cancelled", &["plan_cancelled", "plan_finished"]),
    ("step_added", &["tasks_added"]),
    ("step_started", &["task_started"]),
    ("step_completed", &["task_done"]),
    ("step_failed", &["task_failed"]),
    ("step_skipped", &["task_skipped", "task_cancelled", "tasks_cancelled"]),
    ("step_blocked", &["task_blocked"]),
    ("step_unblocked", &["task_unblocked"]),
];

/// Parses event types.
pub(super) fn types(words: &[String]) -> Result<Vec<&'static str>, ToolError> {
    let known = |word: &String| {
        let found = TYPES.iter().find(|(name, _)| name == word).map(|(name, _)| *name);
        found.ok_or_else(|| error(format!("Invalid event type: {word}")))
    };
    words.iter().map(known).collect()
}

pub(super) fn all_types() -> Vec<&'static str> {
    TYPES.iter().map(|(name, _)| *name).collect()
}

/// Returns the types that a filter was made for.
pub(super) fn types_of(filter: &EventFilter) -> Vec<&'static str> {
    let has = |kind: &str| filter.kinds.iter().any(|wanted| wanted == kind);
    TYPES.iter().filter(|(_, kinds)| has(kinds[0])).map(|(name, _)| *name).collect()
}

/// Returns the filter for events of these types. The agent `*` means any.
pub(super) fn filter(
    agent: Option<&str>,
    types: &[&str],
    plan: Option<PlanId>,
    step: Option<TaskId>,
) -> EventFilter {
    let wanted = TYPES.iter().filter(|(name, _)| types.contains(name));
    let mut kinds: Vec<String> =
        wanted.flat_map(|(_, kinds)| kinds.iter()).map(|&kind| kind.to_owned()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    EventFilter {
        agents: agent.filter(|agent| *agent != "*").map(str::to_owned).into_iter().collect(),
        kinds,
        plans: plan.into_iter().collect(),
        tasks: step.into_iter().collect(),
    }
}

/// An event of the plugin before the fields from its plan are added.
struct MappedEvent {
    kind: &'static str,
    step: Option<TaskId>,
    payload: Map<String, Value>,
}

impl MappedEvent {
    fn of_plan(kind: &'static str, payload: Value) -> Self {
        Self { kind, step: None, payload: fields(payload) }
    }

    fn of_step(kind: &'static str, step: &TaskId, payload: Value) -> Self {
        Self { kind, step: Some(step.clone()), payload: fields(payload) }
    }
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// Keeps the events that map to at least one of these types.
pub(super) fn mappable(
    plans: &PlanStore,
    occurrences: Vec<LogEvent>,
    types: &[&str],
) -> Result<Vec<LogEvent>, StoreError> {
    let mut kept = Vec::with_capacity(occurrences.len());
    for occurrence in occurrences {
        if !mapped(plans, &occurrence, types)?.is_empty() {
            kept.push(occurrence);
        }
    }
    Ok(kept)
}

/// Maps an event to these types.
fn mapped(plans: &PlanStore, occurrence: &LogEvent, types: &[&str]) -> Result<Vec<MappedEvent>, StoreError> {
    let mut events: Vec<MappedEvent> = match &occurrence.event {
        EventSource::Decided(event) => decided(event),
        EventSource::Followed(event) => {
            // Only the end of a plan can occur twice.
            let by_word = occurrence.task.is_none() && is_of_ending_by_word(plans, occurrence)?;
            followed(event, by_word).into_iter().collect()
        }
    };
    events.retain(|events| types.contains(&events.kind));
    Ok(events)
}

/// Whether somebody ended the plan in the version of this event. The page that the event is on may end between the two.
fn is_of_ending_by_word(plans: &PlanStore, occurrence: &LogEvent) -> Result<bool, StoreError> {
    let version = plans.history(&occurrence.plan, occurrence.version.saturating_sub(1), 1)?;
    let events =
        version.iter().filter(|entry| entry.version == occurrence.version).flat_map(|entry| &entry.events);
    Ok(events.into_iter().any(|event| matches!(event, Event::PlanFinished { .. })))
}

/// Returns the mapped events of these types, in order.
pub(super) fn translate(
    call: &Call,
    occurrences: &[LogEvent],
    types: &[&str],
) -> Result<Vec<Value>, ToolError> {
    let plans = call.workspace.plans();
    let mut told = Vec::new();
    let mut then: Option<Plan> = None;
    for occurrence in occurrences {
        let events = mapped(plans, occurrence, types)?;
        if events.is_empty() {
            continue;
        }
        // Events of one version follow each other.
        let is_that = |plan: &Plan| plan.id() == &occurrence.plan && plan.version() == occurrence.version;
        if !then.as_ref().is_some_and(is_that) {
            then = plan_then(call, occurrence)?;
        }
        // A plan that no longer exists has no events to report.
        let Some(plan) = &then else { continue };
        let many = events.len() > 1;
        let number = |at: usize| if many { format!("/{at}") } else { String::new() };
        told.extend(events.iter().zip(1..).map(|(events, at)| record(plan, occurrence, events, &number(at))));
    }
    Ok(told)
}

/// Returns the plan as it was after the event; as it is now if the versions until then were pruned.
fn plan_then(call: &Call, occurrence: &LogEvent) -> Result<Option<Plan>, ToolError> {
    match call.workspace.plans().at_version(&occurrence.plan, occurrence.version) {
        Ok(plan) => Ok(Some(plan)),
        Err(_) => match call.read(&occurrence.plan, Plan::clone) {
            Ok(plan) => Ok(Some(plan)),
            Err(ServiceError::NoSuchPlan(_)) => Ok(None),
            Err(other) => Err(other.into()),
        },
    }
}

fn decided(event: &Event) -> Vec<MappedEvent> {
    let step = |kind, task: &TaskId, payload| vec![MappedEvent::of_step(kind, task, payload)];
    match event {
        Event::PlanCreated { draft, .. } => {
            let steps = draft.tasks.iter().zip(1..).take(STEPS_TOLD_MAX).map(|(task, sequence)| {
                json!({ "step_id": task.spec.id, "sequence": sequence, "description": task.spec.description })
            });
            vec![MappedEvent::of_plan("plan_created", json!({ "steps": steps.collect::<Vec<_>>() }))]
        }
        Event::PlanFinished { phase, summary, .. } => {
            let kind = match phase {
                Phase::Completed => "plan_completed",
                Phase::Cancelled => "plan_cancelled",
                Phase::Draft | Phase::AwaitingApproval | Phase::Active | Phase::Paused | Phase::Failed => {
                    "plan_failed"
                }
            };
            vec![MappedEvent::of_plan(kind, json!({ "summary": summary }))]
        }
        Event::TasksAdded { tasks, .. } => {
            tasks.iter().map(|task| MappedEvent::of_step("step_added", &task.id, json!({}))).collect()
        }
        Event::TaskStarted { task, .. } => step("step_started", task, json!({})),
        Event::TaskDone { task, result, output, .. } => {
            let mut payload = Map::from_iter([("result".to_owned(), json!(result))]);
            payload.extend(output.as_ref().map(|output| ("output".to_owned(), output.value())));
            step("step_completed", task, payload.into())
        }
        // A task that will be retried has not failed yet.
        Event::TaskFailed { task, error, again_at: None, .. } => {
            step("step_failed", task, json!({ "error": error }))
        }
        Event::TaskSkipped { task, reason, .. } => step("step_skipped", task, json!({ "result": reason })),
        Event::TasksCancelled { tasks, reason, .. } => match tasks.as_slice() {
            [task] => step("step_skipped", task, json!({ "result": reason })),
            // Each of several tasks has an event of its own.
            _ => Vec::new(),
        },
        Event::TaskFailed { again_at: Some(_), .. }
        | Event::PlanRevised { .. }
        | Event::PlanRestored { .. }
        | Event::PlanMerged { .. }
        | Event::TaskRevised { .. }
        | Event::TasksRemoved { .. }
        | Event::TaskMoved { .. }
        | Event::TasksReordered { .. }
        | Event::TasksReset { .. }
        | Event::ApprovalRequested { .. }
        | Event::PlanApproved { .. }
        | Event::StartRefused { .. }
        | Event::PlanRejected { .. }
        | Event::ApprovalVoided {}
        | Event::PlanActivated {}
        | Event::PlanPaused { .. }
        | Event::PlanResumed { .. }
        | Event::PlanArchived { .. }
        | Event::PlanUnarchived {}
        | Event::TaskQueued { .. }
        | Event::TaskProgressed { .. }
        | Event::TaskReported { .. }
        | Event::TaskReleased { .. }
        | Event::QuestionAsked { .. }
        | Event::QuestionAnswered { .. }
        | Event::GateRecorded { .. }
        | Event::TasksRetried { .. }
        | Event::TaskRefined { .. }
        | Event::DigestAttached { .. }
        | Event::TokensCharged { .. }
        | Event::TaskRolledBack { .. }
        | Event::OutputReceived { .. }
        | Event::OutputWithdrawn { .. }
        | Event::TaskHeld { .. }
        | Event::TaskUnheld { .. }
        | Event::TaskCommented { .. }
        | Event::TaskLabeled { .. }
        | Event::TaskAssigned { .. } => Vec::new(),
    }
}

/// Maps a derived event. The end of a plan that was finished explicitly is reported by that event instead.
fn followed(event: &DerivedEvent, by_word: bool) -> Option<MappedEvent> {
    Some(match event {
        DerivedEvent::TaskDone { task } => {
            MappedEvent::of_step("step_completed", task, json!({ "result": null }))
        }
        DerivedEvent::TaskFailed { task, error } => {
            MappedEvent::of_step("step_failed", task, json!({ "error": error }))
        }
        DerivedEvent::TaskSkipped { task, reason, .. } => {
            MappedEvent::of_step("step_skipped", task, json!({ "result": reason }))
        }
        DerivedEvent::TaskCancelled { reason: Some(reason), .. } if reason == ENDED_ALONG => return None,
        DerivedEvent::TaskCancelled { task, reason } => {
            MappedEvent::of_step("step_skipped", task, json!({ "result": reason }))
        }
        DerivedEvent::TaskBlocked { task } => MappedEvent::of_step("step_blocked", task, json!({})),
        DerivedEvent::TaskUnblocked { task } => MappedEvent::of_step("step_unblocked", task, json!({})),
        DerivedEvent::PlanStarted {} => MappedEvent::of_plan("plan_started", json!({})),
        DerivedEvent::PlanCompleted {} if !by_word => {
            MappedEvent::of_plan("plan_completed", json!({ "summary": null }))
        }
        DerivedEvent::PlanFailed {} if !by_word => {
            MappedEvent::of_plan("plan_failed", json!({ "summary": null }))
        }
        DerivedEvent::PlanCancelled {} if !by_word => {
            MappedEvent::of_plan("plan_cancelled", json!({ "summary": null }))
        }
        DerivedEvent::PlanCompleted {}
        | DerivedEvent::PlanFailed {}
        | DerivedEvent::PlanCancelled {}
        | DerivedEvent::TaskReopened { .. }
        | DerivedEvent::PlanReopened {} => return None,
    })
}

/// Returns an event as the plugin formats it, with the data that its plan had then.
fn record(plan: &Plan, occurrence: &LogEvent, events: &MappedEvent, number: &str) -> Value {
    let mut record = Map::new();
    let mut put = |name: &str, value: Value| {
        record.insert(name.to_owned(), value);
    };
    put("event_id", format!("{}{number}", occurrence.cursor()).into());
    put("event_type", events.kind.into());
    put("timestamp", json!(occurrence.at));
    put("source_agent", plan.spec().owner.as_str().into());
    put("source_plan_id", plan.id().as_str().into());
    put("source_plan_title", reply_text::cut_text(&plan.spec().title, WORDS_BYTES).into());
    let mut payload = events.payload.clone();
    match &events.step {
        Some(id) => {
            put("source_step_id", id.as_str().into());
            if let Some((task, sequence)) = step(plan, id.as_str()) {
                put(
                    "source_step_description",
                    reply_text::cut_text(&task.spec.description, WORDS_BYTES).into(),
                );
                put("source_step_sequence", sequence.into());
                let written = tool_output::step(plan, task, sequence);
                let beside = match events.kind {
                    "step_blocked" => "blocked_by",
                    "step_unblocked" => "received_outputs",
                    _ => "provides",
                };
                payload.extend(written.get(beside).map(|value| (beside.to_owned(), value.clone())));
            }
        }
        None if events.kind != "plan_created" && events.kind != "plan_started" => {
            payload.insert("progress".to_owned(), tool_output::progress(&plan.counts()));
        }
        None => {}
    }
    put("payload", reply_text::shortened(&payload.into(), PAYLOAD_BYTES_MAX).0);
    Value::Object(record)
}
