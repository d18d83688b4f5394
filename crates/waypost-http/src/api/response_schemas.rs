//! The JSON schemas of responses, for the OpenAPI document. Knows no route.
//!
//! Fields that are not listed as required can be absent. Later versions may add fields, and values of phases, kinds and the
//! like, so these are plain strings: a client that refuses an unknown value would break.

use serde_json::{Map, Value, json};

/// An object with these fields; later versions may add others.
fn object(required: &[&str], fields: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": fields })
}

fn list_of(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// A component of the document.
fn component(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn or_null(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

/// A list under a name. `next` is the cursor of the next page; `warnings` name files of the store that are damaged.
fn page(name: &str, of: &str) -> Value {
    let fields = json!({
        name: list_of(&component(of)),
        "total": { "type": "integer" },
        "next": or_null("string"),
        "warnings": list_of(&json!({ "type": "string" })),
    });
    object(&[name], fields)
}

/// Returns the components for responses, by name.
pub(super) fn response_schemas() -> Map<String, Value> {
    [errors(), plans(), tasks(), approvals(), history(), server()].into_iter().flatten().collect()
}

fn components(all: Value) -> Map<String, Value> {
    match all {
        Value::Object(all) => all,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn texts() -> Value {
    list_of(&text())
}

fn number() -> Value {
    json!({ "type": "integer" })
}

fn amount() -> Value {
    json!({ "type": "number" })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn text_or_null() -> Value {
    json!({ "type": ["string", "null"] })
}

fn time_or_null() -> Value {
    json!({ "type": ["string", "null"], "format": "date-time" })
}

fn any() -> Value {
    json!({})
}

/// An object with fields of any name.
fn free() -> Value {
    json!({ "type": "object", "additionalProperties": {} })
}

fn described(mut schema: Value, words: &str) -> Value {
    schema["description"] = words.into();
    schema
}

fn errors() -> Map<String, Value> {
    components(json!({
        "Problem": object(&["type", "title", "status", "code", "detail"], json!({
            "type": text(), "title": text(), "status": number(),
            "code": described(text(), "Stable, and the same as that of the command line and of MCP."),
            "detail": text(), "hint": text(), "facts": free(),
            "problems": list_of(&component("PlanProblem")),
            "conflict": component("Conflict"),
        })),
        "PlanProblem": object(&["message"], json!({ "task": text(), "message": text(), "hint": text() })),
        "Conflict": object(&["known", "current"], json!({
            "known": number(), "current": number(), "differences": list_of(&component("Difference")),
            "differences_total": number(), "writers": list_of(&any()),
        })),
    }))
}

fn plans() -> Map<String, Value> {
    let phase = described(
        text(),
        "draft, awaiting_approval, active, paused, completed, failed or cancelled; later versions may add others.",
    );
    components(json!({
        "Any": any(),
        "Head": object(&["id", "version", "title", "phase"], json!({
            "id": text(), "version": number(), "title": text(), "phase": phase, "status": text(), "owner": text(),
            "queue": text(), "created_by": or_null("string"), "created_at": time_or_null(), "updated_at": time_or_null(),
            "archived": flag(), "awaits_approval": flag(), "counts": component("Counts"), "urgency": number(),
            "asking": number(), "goals": number(), "atomic": number(), "document": flag(),
            "state": component("PlanState"),
        })),
        "PlanState": object(&["name", "label", "detail", "needs_you"], json!({
            "name": text(), "label": text(), "detail": text(), "needs_you": flag(),
        })),
        "Counts": object(&["total", "ready", "blocked", "queued", "running", "done", "failed", "skipped", "cancelled"], json!({
            "total": number(), "ready": number(), "blocked": number(), "reported": number(), "asking": number(),
            "held": number(), "disputed": number(), "queued": number(), "running": number(), "done": number(), "failed": number(),
            "skipped": number(), "cancelled": number(),
        })),
        "PlanPage": page("plans", "Head"),
        "Plan": { "allOf": [component("Head"), object(&["approval", "questions", "running", "failed"], json!({
            "goal": text(), "body": text(), "summary": or_null("string"), "reason": or_null("string"),
            "token_budget": or_null("integer"), "tokens_used": number(),
            "started_at": time_or_null(), "finished_at": time_or_null(),
            "approval": component("ApprovalState"), "questions": list_of(&component("Question")),
            "running": list_of(&component("RunningTask")), "failed": texts(), "warnings": texts(),
            "conflicts": described(number(), "How many things clones disagree about, if they do."),
        }))] },
        "Question": object(&["task", "question", "digest"], json!({
            "task": text(), "question": text(), "choices": texts(),
            "digest": described(text(), "What was asked; an answer names it."),
        })),
        "RunningTask": object(&["task", "attempt"], json!({
            "task": text(), "attempt": number(), "worker": or_null("string"), "since": time_or_null(),
            "progress": or_null("string"),
        })),
        "Written": object(&["id", "version"], json!({
            "id": text(), "version": number(), "changed": flag(), "warnings": texts(), "notes": texts(),
            "added": described(texts(), "Ids of the tasks that an edit added."), "changes": free(), "again": texts(),
            "approval_voided": flag(), "awaits_approval": flag(),
            "phase": described(text(), "After an action on a plan."),
            "record": described(text(), "Of an answer to a conflict: its record."),
            "conflicts": described(number(), "After an answer to a conflict: how many are still open."),
            "task": described(text(), "After an action on a task."),
            "standing": described(text(), "After an action on a task."),
            "attempt": described(number(), "After an action on a task: reports on it name this number."),
        })),
        "Validity": object(&["ok", "problems"], json!({
            "ok": flag(), "problems": list_of(&component("PlanProblem")), "title": text(), "total": number(),
            "tasks": list_of(&any()), "notes": texts() })),
        "Graph": object(&["version", "count", "ids", "standing", "from", "to"], json!({
            "version": number(), "count": number(), "ids": texts(), "labels": texts(),
            "standing": described(text(), "One letter for each task."),
            "from": list_of(&number()), "to": list_of(&number()), "parent": list_of(&number()),
            "level": list_of(&number()), "critical": list_of(&number()),
            "people": described(list_of(&number()), "The tasks that a person does."),
            "work": described(text(), "One letter for each task: w if it has work, so that no task goes into it."),
        })),
        "Layout": object(&["version", "width", "height", "boxes", "of", "edges", "open"], json!({
            "version": number(), "width": { "type": "number" }, "height": { "type": "number" },
            "boxes": list_of(&free()), "of": list_of(&number()), "edges": list_of(&free()), "open": texts(),
        })),
    }))
}

fn tasks() -> Map<String, Value> {
    let standing = described(
        text(),
        "The status as the graph has it: ready, blocked, queued, running, asking, held, disputed, reported, done, failed, \
         skipped or cancelled; later versions may add others.",
    );
    let row = json!({
        "id": text(), "plan": described(text(), "Of a list over several plans."), "description": text(),
        "standing": standing, "skip": flag(), "parent": text(), "depends_on": list_of(&any()), "complexity": text(),
        "executor": text(), "worker": text(), "progress": text(), "held_by": text(), "attempt": number(),
        "priority": number(), "started_at": time(), "finished_at": time(), "waits_for": texts(),
    });
    components(json!({
        "TaskRow": object(&["id", "description", "standing"], row),
        "TaskPage": page("tasks", "TaskRow"),
        "FoundTask": object(&["plan", "plan_title", "task", "text", "standing"], json!({
            "plan": text(), "plan_title": text(), "task": text(), "text": text(), "standing": text(),
            "for_person": described(flag(), "Whether it waits for a person to do it."),
            "labels": texts(), "assignee": text() })),
        "FoundTasks": object(&["tasks", "total", "plans_read", "more"], json!({
            "tasks": list_of(&component("FoundTask")), "total": number(),
            "parents": described(number(), "How many of all have tasks in them."),
            "plans_read": number(), "more": flag() })),
        "TaskWork": object(&["executor"], json!({ "executor": text(), "inputs": any(), "shape": text() })),
        "TaskState": object(&["status"], json!({
            "status": text(), "attempt": number(), "started_at": time(), "finished_at": time(), "worker": text(),
            "progress": text(), "result": text(), "output": any(), "error": text(), "reason": text(),
        })),
        "TaskDetail": object(&["id", "description", "standing", "state"], json!({
            "id": text(), "description": text(), "notes": text(), "depends_on": list_of(&any()), "when": any(),
            "complexity": text(), "tools": texts(), "skip": flag(), "locks": list_of(&any()),
            "work": component("TaskWork"), "check": component("TaskWork"), "retry": free(), "timeout_seconds": number(),
            "priority": number(), "parent": text(), "provides": text(), "standing": standing,
            "state": component("TaskState"), "children": texts(), "needed_by": texts(),
            "received_outputs": described(free(), "The outputs of the tasks that it depends on, by their names."),
        })),
        "Task": { "allOf": [component("TaskDetail"), object(&["attempts", "why"], json!({
            "attempts": list_of(&component("Attempt")), "why": list_of(&component("WaitReason")),
            "question_digest": described(text(), "Of a task that asks a person: what an answer names."),
            "warnings": texts(),
        }))] },
        "TaskCommits": object(&["commits", "more"], json!({
            "commits": list_of(&component("TaskCommit")), "more": flag(),
            "note": described(text(), "Why they could not be searched for."),
        })),
        "TaskCommit": object(&["commit", "at", "author", "title"], json!({
            "commit": text(), "at": time(), "author": text(),
            "title": described(text(), "The first line of the message, without control characters."),
        })),
        "AttemptChanges": object(&["attempt", "place", "branch", "files", "files_total"], json!({
            "attempt": number(), "place": described(text(), "worktree, branch or nowhere."), "branch": text(),
            "base": text(), "commit": text(), "files": list_of(&component("FileChange")), "files_total": number(),
            "note": described(text(), "Why nothing can be shown."),
        })),
        "FileChange": object(&["path", "change", "lines", "insertions", "deletions"], json!({
            "path": text(), "change": described(text(), "added, removed or changed."),
            "lines": described(texts(), "Each begins with +, - or a space; @ and a number stand for omitted equal lines."),
            "insertions": number(), "deletions": number(), "note": text(),
        })),
        "Attempt": object(&["attempt"], json!({
            "attempt": number(), "worker": text(), "started_at": time(), "finished_at": time(), "outcome": text(),
            "error": text(), "has_log": flag(),
        })),
        "LogTimes": object(&["attempt", "times"], json!({
            "attempt": number(),
            "times": described(list_of(&object(&["from", "at"], json!({ "from": number(), "at": time() }))),
                "What stands in the log from byte `from` on was written at `at`. Empty if nothing is known."),
        })),
        "WaitReason": object(&["kind", "message"], json!({ "kind": text(), "message": text(), "fact": any() })),
        "ClaimedTask": object(&["task"], json!({
            "plan": text(), "version": number(),
            "task": { "oneOf": [component("TaskDetail"), { "type": "null" }] },
            "last_error": described(text_or_null(), "The error of the attempt before."),
            "released": described(text_or_null(), "Why the attempt before was released."),
            "lease_seconds": number(),
            "reasons": described(texts(), "Why nothing can be claimed."),
        })),
    }))
}

fn approvals() -> Map<String, Value> {
    let pairs = list_of(&texts());
    components(json!({
        "ApprovalState": object(&["required", "standing"], json!({
            "required": flag(),
            "standing": described(text(), "none, requested, approved, rejected or voided."),
            "by": text(), "at": time_or_null(), "version": number(), "note": text(), "approved": any(), "reason": text(),
            "requested_by": text(), "requested_at": time_or_null(), "message": text(),
            "start_refusals": list_of(&object(&["worker", "reason", "message"], json!({
                "worker": text(), "reason": any(), "message": text(), "hint": text() }))),
        })),
        "Approval": { "allOf": [component("ApprovalState"), object(&["problems"], json!({
            "problems": list_of(&any()), "since_approval": free(), "since_read": free() }))] },
        "Preview": object(&["plan", "version", "digest", "total", "groups"], json!({
            "plan": text(), "version": number(), "digest": text(), "total": number(), "about": pairs,
            "resolved_by": text(), "disagreeing": texts(), "unresolved": texts(), "since_approval": texts(),
            "groups": list_of(&component("PreviewGroup")),
        })),
        "PreviewGroup": object(&["group", "program", "tasks", "tasks_total"], json!({
            "group": number(), "program": text(), "role": text(), "settings": pairs, "pattern": pairs,
            "warnings": texts(), "tasks": list_of(&free()), "tasks_total": number(), "next_offset": or_null("integer"),
        })),
    }))
}

fn history() -> Map<String, Value> {
    components(json!({
        "Timeline": object(&["version", "rows"], json!({
            "version": number(), "next": or_null("string"),
            "rows": list_of(&object(&["task", "attempts"], json!({
                "task": text(), "label": or_null("string"), "attempts": list_of(&component("Attempt")) }))),
        })),
        "Runs": object(&["runs", "tasks", "tasks_total", "days"], json!({
            "runs": list_of(&object(&["plan", "state", "attempts", "failed", "seconds"], json!({
                "plan": text(), "state": component("PlanState"), "created_at": time_or_null(),
                "started_at": time_or_null(), "finished_at": time_or_null(), "counts": component("Counts"),
                "attempts": number(), "failed": number(),
                "seconds": described(amount(), "How long all attempts took together."),
                "took_seconds": described(json!({ "type": ["number", "null"] }), "From the first start to the end.") }))),
            "tasks": list_of(&object(&["task", "cells"], json!({
                "task": text(), "label": text(),
                "cells": described(list_of(&any()), "One for each run; null where the task did not run.") }))),
            "tasks_total": number(),
            "days": list_of(&object(&["day", "attempts", "failed", "seconds"], json!({
                "day": text(), "attempts": number(), "failed": number(), "seconds": amount() }))),
        })),
        "History": object(&["versions"], json!({
            "versions": list_of(&component("VersionEntry")), "before": or_null("integer"), "warnings": texts(),
        })),
        "VersionEntry": object(&["version", "at", "actor", "command", "summary"], json!({
            "version": number(), "at": time(), "actor": text(), "command": text(), "summary": text(),
        })),
        "Comparison": object(&["differences", "differences_total"], json!({
            "from": number(), "to": number(), "differences": list_of(&component("Difference")),
            "differences_total": number(), "restore": any(), "warnings": texts(),
        })),
        "Difference": object(&["change"], json!({
            "change": described(text(), "plan, task, added, removed or reordered."), "task": text(), "field": text(),
            "before": any(), "after": any(), "description": text(),
        })),
        "PlanEvent": object(&["sequence", "index", "at", "actor", "plan", "version", "kind", "event"], json!({
            "sequence": number(), "index": number(), "at": time(), "actor": text(), "plan": text(), "version": number(),
            "owner": text(), "kind": text(), "task": text(), "derived": flag(),
            "event": described(free(), "The fields of this kind of event."),
        })),
        "EventPage": object(&["events", "cursor", "more"], json!({
            "events": list_of(&component("PlanEvent")), "cursor": text(), "more": flag(), "forgotten": number(),
            "lost": number(), "unreadable_from": number(), "warnings": texts(),
        })),
    }))
}

fn server() -> Map<String, Value> {
    let running = list_of(&object(
        &["plan", "task"],
        json!({
        "plan": text(), "plan_title": text(), "task": text(), "label": text(), "attempt": number(),
        "since": time_or_null(), "until": time_or_null(), "progress": or_null("string"), "progress_at": time(),
        "worktree": flag() }),
    ));
    let spent = json!({
        "calls": number(), "tokens": number(), "tokens_in": number(), "tokens_out": number(), "cost": text(),
        "unpriced_calls": number(), "estimated_calls": number(),
    });
    components(json!({
        "Me": object(&["actor", "role", "version", "store", "worker", "ends_soon", "workspace"], json!({
            "actor": text(), "role": described(text(), "person, agent, worker or reader."), "version": text(),
            "store": text(), "worker": flag(),
            "ends_soon": described(flag(), "Whether the server starts no new task, because it is about to end."), "workspace": text(), "untrusted": or_null("string"),
        })),
        "WorkerPage": page("workers", "Worker"),
        "Worker": object(&["name", "state", "running"], json!({
            "name": text(), "host": text(), "kind": any(), "queues": texts(), "executors": texts(),
            "capacity": or_null("integer"), "began_at": time(), "seen_at": time(), "state": text(), "running": running,
            "queued": running,
        })),
        "AgentPage": page("agents", "Agent"),
        "Agent": object(&["name", "plans", "running"], json!({
            "name": text(), "plans": number(), "running": running, "last_seen_at": time_or_null(),
            "kind": described(text(), "agent, or person."),
        })),
        "Planner": object(&["model", "jobs"], json!({
            "model": or_null("string"), "problem": free(), "jobs": list_of(&component("PlanJob")),
        })),
        "PlanJob": object(&["job", "goal", "state", "progress"], json!({
            "job": number(), "goal": text(), "by": text(), "begun_at": time(),
            "state": described(text(), "running, stopping, stopped, failed or done."), "progress": texts(),
            "now": text(), "plan": text(), "failure": free(),
        })),
        "Spending": object(&["plans", "all"], json!({ "plans": list_of(&free()), "all": object(&[], spent), "left_out": texts() })),
        "PlanSpending": object(&["tokens_used"], json!({
            "tokens_used": number(), "token_budget": or_null("integer"), "calls": number(), "tokens": number(),
            "cost": text(), "by_model": free(), "by_task": free(), "by_purpose": free(),
        })),
        "Inbox": object(&["items", "total", "totals", "plans_total", "running", "running_total", "more"], json!({
            "items": list_of(&component("InboxItem")), "total": number(), "totals": free(), "plans_total": number(),
            "running": list_of(&free()), "running_total": number(), "more": flag(),
        })),
        "InboxItem": object(&["kind", "plan", "plan_title", "version", "text"], json!({
            "kind": described(text(), "approval, question, conflict, task or failure; later versions may add others."), "plan": text(), "plan_title": text(),
            "version": number(), "text": text(), "is_cut": flag(), "error": text(), "tasks": texts(),
            "tasks_total": number(), "holds_up": number(), "choices": texts(), "digest": text(), "by": any(),
            "since": time(), "attempt": number(),
        })),
        "ConflictPage": object(&["questions", "total", "next"], json!({
            "questions": list_of(&component("MergeConflict")), "total": number(), "next": or_null("string"),
        })),
        "MergeConflict": object(&["plan", "digest", "kind", "subject", "text", "versions", "answers"], json!({
            "plan": text(), "task": described(text(), "Absent if it is about the plan."),
            "digest": described(text(), "What is asked; an answer names it."),
            "kind": any(), "subject": described(text(), "What it is about, in one word, such as notes, outcome or removal."),
            "text": described(text(), "What happened, in a sentence."),
            "versions": list_of(&component("ConflictVersion")),
            "shown": described(number(), "The place of the version that the plan shows, from 0."),
            "answers": described(texts(), "How it can be answered: take, text, keep, remove, dismiss."),
        })),
        "ConflictVersion": object(&["record", "by", "from", "at", "value"], json!({
            "record": text(), "by": described(text(), "Who wrote it, as the record says."),
            "from": described(text(), "The tag of the clone."), "at": time(), "value": text(),
        })),
        "QueuePage": page("queues", "Queue"),
        "Queue": object(&["name", "concurrency"], json!({
            "name": text(), "concurrency": number(), "running": number(), "ready": number(),
        })),
        "ExecutorPage": page("executors", "Executor"),
        "Executor": object(&["name", "kind"], json!({ "name": text(), "kind": text() })),
    }))
}
