//! One-line summaries of the events of a version.

use waypost_core::{ApprovalKind, ApprovedWork, DerivedEvent, Event, StartRefusalReason, TaskId};
use waypost_text::{count, excerpt};

/// Maximum number of task ids in one line.
const NAMES_MAX: usize = 4;
/// Maximum width of quoted text, in columns.
const QUOTE_COLUMNS: usize = 41;

/// Summarizes all events of a version on one line.
pub fn summary(events: &[Event]) -> String {
    let told =
        events.iter().enumerate().filter(|(place, event)| !is_named_by_its_end(event, &events[place + 1..]));
    let words: Vec<String> =
        told.map(|(_, event)| event_words(event)).filter(|words| !words.is_empty()).collect();
    words.join("; ")
}

/// Whether a start is recorded in the same version as a later event of its task, which makes the start redundant.
fn is_named_by_its_end(event: &Event, rest: &[Event]) -> bool {
    let Event::TaskStarted { task, started_at: Some(_), .. } = event else { return false };
    rest.iter().any(|later| later.task() == Some(task))
}

fn names<'a>(tasks: impl ExactSizeIterator<Item = &'a TaskId>) -> String {
    let count = tasks.len();
    let mut names: Vec<String> = tasks.take(NAMES_MAX).map(ToString::to_string).collect();
    if count > NAMES_MAX {
        names.push(format!("… ({count} in all)"));
    }
    names.join(", ")
}

/// Says what a merge of other clones' records brought.
fn merged(operations: u64, from: &[String], questions: u32) -> String {
    let records = count(usize::try_from(operations).unwrap_or(usize::MAX), "record");
    let from = if from.is_empty() { String::new() } else { format!(" from {}", from.join(", ")) };
    let open = match questions {
        0 => String::new(),
        open => format!("; {} open", count(open as usize, "question")),
    };
    format!("merged {records}{from}{open}")
}

fn with(words: &str, more: &str) -> String {
    let more = excerpt(more, QUOTE_COLUMNS);
    if more.is_empty() { words.to_owned() } else { format!("{words}: {more}") }
}

/// Names the attempt, unless it is the first.
fn again(attempt: u32) -> String {
    if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() }
}

/// Names the version and how the approval was given; for a signature, the key.
fn approval_words(version: u64, work: Option<&ApprovedWork>) -> String {
    let Some(work) = work else { return format!("approved version {version}") };
    let proof = match work.attestation.as_ref().and_then(|attestation| attestation.signature.as_ref()) {
        Some(signature) => format!("{} {}", work.proof, signature.fingerprint),
        None => work.proof.to_string(),
    };
    match work.kind {
        ApprovalKind::Explicit | ApprovalKind::OwnReviewed => format!("approved version {version} ({proof})"),
        ApprovalKind::Own => format!("runs as the person's own plan ({proof})"),
    }
}

fn event_words(event: &Event) -> String {
    match event {
        Event::PlanCreated { draft, .. } => {
            format!("created with {}", count(draft.tasks.len(), "task"))
        }
        Event::PlanRevised { title, goal, status, owner, queue, token_budget, body, foreign } => {
            let changed = [
                ("title", title.is_some()),
                ("goal", goal.is_some()),
                ("owner", owner.is_some()),
                ("queue", queue.is_some()),
                ("token budget", token_budget.is_some()),
                ("body", body.is_some()),
                ("foreign fields", foreign.is_some()),
            ];
            let mut parts: Vec<String> =
                changed.iter().filter(|(_, changed)| *changed).map(|(name, _)| (*name).to_owned()).collect();
            if !parts.is_empty() {
                parts = vec![format!("changed {}", parts.join(", "))];
            }
            if let Some(status) = status {
                parts.push(match status.as_str() {
                    "" => "cleared the note".to_owned(),
                    note => with("note", note),
                });
            }
            parts.join("; ")
        }
        Event::PlanRestored { version } => format!("restored version {version}"),
        Event::PlanMerged { operations, from, questions, .. } => merged(*operations, from, *questions),
        Event::TasksAdded { tasks, .. } => format!("added {}", names(tasks.iter().map(|task| &task.id))),
        Event::TaskRevised { task } => format!("revised {}", task.id),
        Event::TasksRemoved { tasks } => format!("removed {}", names(tasks.iter())),
        Event::TaskMoved { task, parent, .. } => match parent {
            Some(parent) => format!("moved {task} under {parent}"),
            None => format!("moved {task}"),
        },
        Event::TasksReordered { parent, .. } => match parent {
            Some(parent) => format!("reordered the tasks of {parent}"),
            None => "reordered tasks".to_owned(),
        },
        Event::TasksReset { tasks } => format!("set back {}", names(tasks.iter())),
        Event::ApprovalRequested { message } => with("asked for approval", message),
        Event::PlanApproved { version, note, work, .. } => {
            with(&approval_words(*version, work.as_deref()), note)
        }
        Event::PlanRejected { reason, .. } => with("rejected", reason),
        Event::StartRefused { refusal } => {
            format!("{} starts nothing: {}", refusal.worker, refusal_words(refusal.reason))
        }
        Event::ApprovalVoided {} => "approval needed".to_owned(),
        Event::PlanActivated {} => "started".to_owned(),
        Event::PlanPaused { reason, .. } => with("paused", reason),
        Event::PlanResumed { to_draft: false } => "resumed".to_owned(),
        Event::PlanResumed { to_draft: true } => "resumed as a draft".to_owned(),
        Event::PlanFinished { phase, summary, .. } => with(phase.as_str(), summary),
        Event::PlanArchived { .. } => "archived".to_owned(),
        Event::PlanUnarchived {} => "taken out of the archive".to_owned(),
        Event::TaskQueued { task, attempt, worker } => format!("{worker} queued {task}{}", again(*attempt)),
        Event::TaskStarted { task, attempt, worker, .. } => {
            format!("{worker} started {task}{}", again(*attempt))
        }
        Event::TaskProgressed { task, progress } => with(&format!("{task}: progress"), progress),
        Event::TaskDone { task, result, evidence, .. } => {
            let checked = if evidence.is_some() { " (checked)" } else { "" };
            with(&format!("{task} done{checked}"), result.as_deref().unwrap_or(""))
        }
        Event::TaskReported { task, result, by, .. } => {
            with(&format!("{by} reported {task} as done"), result.as_deref().unwrap_or(""))
        }
        Event::TaskFailed { task, error, again_at, .. } => {
            let again = if again_at.is_some() { ", to be tried again" } else { "" };
            with(&format!("{task} failed{again}"), error)
        }
        Event::TaskReleased { task, reason } => with(&format!("{task} released"), reason),
        Event::QuestionAsked { task, question } => with(&format!("{task} asks"), &question.text),
        Event::QuestionAnswered { task, answer, by } => with(&format!("{by} answered {task}"), answer),
        Event::TaskSkipped { task, reason, .. } => {
            with(&format!("{task} skipped"), reason.as_deref().unwrap_or(""))
        }
        Event::TasksCancelled { tasks, reason, .. } => {
            with(&format!("cancelled {}", names(tasks.iter())), reason)
        }
        Event::TasksRetried { tasks } => format!("to be done again: {}", names(tasks.iter())),
        Event::TaskRefined { task, refinement, .. } => {
            let word = serde_json::to_value(refinement).unwrap_or_default();
            format!("{task} is {}", word.as_str().unwrap_or("refined"))
        }
        Event::DigestAttached { task, .. } => format!("digest of {task}"),
        Event::TokensCharged { task, tokens, .. } => match task {
            Some(task) => format!("{tokens} tokens for {task}"),
            None => format!("{tokens} tokens"),
        },
        Event::TaskRolledBack { task, .. } => format!("rolled back {task}"),
        Event::OutputReceived { task, from, received } => {
            let heard = format!("{task} received from {}: {}", from.key(), received.status.as_str());
            with(&heard, received.reason.as_deref().unwrap_or(""))
        }
        Event::GateRecorded { task, gate } => {
            format!("{} vouched for {task} ({}, {})", gate.by, gate.proof, gate.via)
        }
        Event::OutputWithdrawn { task, from } => {
            format!("{task} lost what it received from {}: that task will be done again", from.key())
        }
        Event::TaskHeld { task, by, reason } => with(&format!("{task} held by {by}"), reason),
        Event::TaskUnheld { task } => format!("{task} is no longer held"),
        Event::TaskCommented { task, by, text, .. } => with(&format!("{by} commented on {task}"), text),
        Event::TaskLabeled { task, labels } => match labels.as_slice() {
            [] => format!("{task} has no labels"),
            labels => format!("{task} labelled {}", labels.join(", ")),
        },
        Event::TaskAssigned { task, assignee } => match assignee {
            Some(assignee) => format!("{task} assigned to {assignee}"),
            None => format!("{task} assigned to nobody"),
        },
    }
}

/// Names the reason of a worker's refusal.
fn refusal_words(reason: StartRefusalReason) -> &'static str {
    match reason {
        StartRefusalReason::DigestMismatch => "not what was approved",
        StartRefusalReason::NoDigest => "approved by an earlier version of Waypost",
        StartRefusalReason::GateNotProved => "a task for people was not ended by a person",
        StartRefusalReason::NoRecord => "nobody has approved it",
        StartRefusalReason::NotAuthentic => "the approval does not count here",
        StartRefusalReason::StoreChanged => "another store than before",
        StartRefusalReason::Expired => "the approval has expired",
        StartRefusalReason::ProofTooLow => "the approval's proof is too weak",
    }
}

/// Summarizes an event derived from a version.
pub fn consequence_summary(consequence: &DerivedEvent) -> String {
    match consequence {
        DerivedEvent::TaskDone { task } => format!("{task} done with its last task"),
        DerivedEvent::TaskFailed { task, error } => with(&format!("{task} failed"), error),
        DerivedEvent::TaskSkipped { task, reason, .. } => {
            with(&format!("{task} skipped"), reason.as_deref().unwrap_or(""))
        }
        DerivedEvent::TaskCancelled { task, reason } => {
            with(&format!("{task} cancelled"), reason.as_deref().unwrap_or(""))
        }
        DerivedEvent::TaskReopened { task } => format!("{task} is to be done after all"),
        DerivedEvent::TaskBlocked { task } => format!("{task} waits"),
        DerivedEvent::TaskUnblocked { task } => format!("{task} could start now"),
        DerivedEvent::PlanStarted {} => "started".to_owned(),
        DerivedEvent::PlanCompleted {} => "completed".to_owned(),
        DerivedEvent::PlanFailed {} => "failed".to_owned(),
        DerivedEvent::PlanCancelled {} => "cancelled".to_owned(),
        DerivedEvent::PlanReopened {} => "reopened".to_owned(),
    }
}
