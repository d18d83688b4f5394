//! `plan_get`: the overview of a plan, one task, all tasks by page, or the changes since a version.

use serde_json::{Map, Value, json};
use waypost_core::{EffectiveStatus, Plan, PlanId, Task, TaskId, differences};
use waypost_service::{Holder, ServiceError, awaits_approval};
use waypost_store::{TargetStatus, Wait};
use waypost_text::{quote, quote_unless_word};

use super::arguments::{ArgumentForm, Arguments};
use super::{merge_questions, plan_facts, plan_ref};
use crate::approval;
use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum bytes of the title in an overview.
const TITLE_BYTES: usize = 36;
/// Maximum bytes of the plan's free-text status.
const STATUS_BYTES: usize = 20;
/// Maximum bytes of the reason for a rejection.
const REJECTION_BYTES: usize = 80;
/// Maximum number of tasks on a page.
pub(super) const TASKS_PAGE: usize = 50;
/// Maximum bytes of one task on a page.
const ROW_BYTES: usize = 1_000;
/// A page takes no further task once it has this many bytes.
const PAGE_BYTES: usize = 12_000;
/// Maximum bytes of the plan's own fields on the first page.
const ABOUT_BYTES: usize = 8_000;
/// Maximum bytes of one task in full.
pub(super) const TASK_BYTES_MAX: usize = 64 * 1024;
/// Maximum bytes of each reason why a task waits.
const WAIT_BYTES: usize = 200;
/// Maximum number of external dependencies that are checked for missing targets.
const WAITS_MAX: usize = 200;
/// Maximum number of dependent tasks that are named.
const NEEDED_BY_MAX: usize = 10;

const KNOWN: [(&str, ArgumentForm); 5] = [
    ("plan", ArgumentForm::Text),
    ("task", ArgumentForm::Text),
    ("full", ArgumentForm::Flag),
    ("since", ArgumentForm::Number),
    ("cursor", ArgumentForm::Text),
];

pub(super) fn run(call: &Call) -> Result<Answer, ToolError> {
    let arguments = Arguments::of(&call.arguments, &KNOWN)?;
    let plan = plan_ref::plan(call, &arguments)?;
    let (task, since) = (arguments.name("task")?, arguments.number("since")?);
    let cursor = arguments.name("cursor")?;
    let full = arguments.flag("full")? || cursor.is_some();
    let is_offered = call.service().is_offered(&call.caller, &plan)?;
    let answer = match (task, full, since) {
        (None, false, None) => {
            let elsewhere = plan_facts::external_waits(call, &plan, 1)?;
            let resolved = plan_facts::resolved_waits(call, &plan)?;
            let archived_by = call.service().archived_by(&plan)?;
            let asked = merge_questions::number(call, &plan);
            seen(call, &plan, |plan| {
                let mut answer = overview(call, plan, &elsewhere, is_offered);
                merge_questions::add_count(asked, &mut answer);
                plan_facts::add_resolved(&resolved, &mut answer);
                if let Some(by) = &archived_by {
                    answer.add("archived_by", by, &format!("; archived by {by}"));
                }
                Ok(answer)
            })
        }
        (Some(task), false, None) => {
            let (waits, resolved) = (waits_for(call, &plan, task)?, resolved_to(call, &plan, task)?);
            let asked = merge_questions::about_task(call, &plan, task);
            let elsewhere = call.service().claims_of_other_clones(&plan).unwrap_or_default();
            seen(call, &plan, |plan| {
                let mut answer = one(plan, task, &waits, resolved, asked)?;
                if let Some((_, notice)) = elsewhere.iter().find(|(id, _)| id.as_str() == task) {
                    answer.add("claimed_elsewhere", notice.to_string(), &format!("; {notice}"));
                }
                Ok(answer)
            })
        }
        (None, true, None) => {
            let waits = plan_facts::targets(call, &plan, WAITS_MAX)?;
            let asked = if cursor.is_none() { merge_questions::all(call, &plan) } else { Vec::new() };
            seen(call, &plan, |plan| page(plan, cursor, &waits, &asked))
        }
        (None, false, Some(since)) => changes(call, &plan, since),
        _ => Err(ToolError::new("task, full and since exclude each other", "give one of them")),
    };
    answer.map(|mut answer| {
        if !is_offered {
            plan_facts::add_untrusted(&mut answer);
        }
        answer
    })
}

/// Reads all that is intact of a plan, and adds warnings about damage.
fn seen(
    call: &Call,
    plan: &PlanId,
    look: impl FnOnce(&Plan) -> Result<Answer, ToolError>,
) -> Result<Answer, ToolError> {
    call.view(plan, |plan, warnings| {
        let mut answer = look(plan)?;
        answer.warn(warnings);
        Ok(answer)
    })?
}

/// Summarizes a plan; the reply is small whatever the plan's size.
fn overview(call: &Call, plan: &Plan, elsewhere: &[String], is_offered: bool) -> Answer {
    let started = plan.as_started();
    let (id, version, counts) = (plan.id(), plan.version(), started.effective_counts());
    let title = reply_text::cut(&plan_facts::title(plan), TITLE_BYTES);
    let status = reply_text::cut(&plan.spec().status, STATUS_BYTES);
    let phase = plan.state().phase.as_str();
    let value = json!({ "plan": id, "title": title, "version": version, "phase": phase });
    let mut answer = Answer { value, text: format!("plan {id} v{version} {phase} {}", quote(&title)) };
    if !status.is_empty() {
        answer.add("status", &status, &format!(" ({})", quote_unless_word(&status)));
    }
    answer.add("done", counts.done, &format!(": {}/{} done", counts.done, counts.total));
    answer.add("total", counts.total, "");
    for (count, word) in [
        (counts.running, "running"),
        (counts.queued, "queued"),
        (counts.ready, "ready"),
        (counts.reported, "reported"),
        (counts.asking, "asking"),
        (counts.held, "held"),
        (counts.disputed, "disputed"),
        (counts.blocked, "blocked"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.cancelled, "cancelled"),
    ] {
        if count > 0 {
            answer.add(word, count, &format!(", {count} {word}"));
        }
    }
    let of = |wanted: Holder| {
        plan.running().filter(move |task| {
            task.state.worker.as_ref().is_some_and(|worker| call.caller.relation_to(worker) == wanted)
        })
    };
    let few = |names: &mut dyn Iterator<Item = &'_ str>| -> Vec<String> {
        let found = reply_text::few(names, plan_facts::REPORT_NEXT_MAX, plan_facts::REPORT_NEXT_BYTES);
        found.into_iter().map(str::to_owned).collect()
    };
    let mine = few(&mut of(Holder::Caller).map(|task| task.spec.id.as_str()));
    let others = few(&mut of(Holder::OtherSession).map(|task| task.spec.id.as_str()));
    let next = few(&mut plan_facts::next_of(&started).filter(|_| is_offered));
    for (names, word) in [(mine, "yours"), (others, "other_session"), (next, "next")] {
        answer.add_names(word, &format!("; {word}: "), &names);
    }
    if awaits_approval(plan) {
        answer.add("approval", "needed", "; needs approval");
    }
    if let Some(reason) = approval::rejection_reason(plan) {
        let reason = reply_text::cut(reason, REJECTION_BYTES);
        answer.add("rejected", &reason, &format!("; rejected: {}", quote(&reason)));
    }
    if let Some(first) = elsewhere.first() {
        answer.add("waits", first, &format!("; {first}"));
    }
    answer
}

/// Returns what a task that is neither running nor finished waits for, including holders of locks.
fn waits_for(call: &Call, plan: &PlanId, task: &str) -> Result<Vec<String>, ToolError> {
    let Ok(task) = TaskId::new(task) else { return Ok(Vec::new()) };
    let why =
        waypost_service::why(call.workspace.plans(), call.service().config().ok().as_deref(), plan, &task)?;
    let waits = match why.standing {
        Some(
            EffectiveStatus::Blocked
            | EffectiveStatus::Ready
            | EffectiveStatus::Reported
            | EffectiveStatus::Asking
            | EffectiveStatus::Held
            | EffectiveStatus::Disputed,
        ) => why.reasons,
        Some(
            EffectiveStatus::Queued
            | EffectiveStatus::Running
            | EffectiveStatus::Done
            | EffectiveStatus::Failed
            | EffectiveStatus::Skipped
            | EffectiveStatus::Cancelled,
        )
        | None => Vec::new(),
    };
    Ok(waits.iter().map(|reason| reply_text::cut(&reason.words, WAIT_BYTES)).collect())
}

/// Returns the plans that a task's dependencies on other agents mean.
fn resolved_to(call: &Call, plan: &PlanId, task: &str) -> Result<Map<String, Value>, ToolError> {
    TaskId::new(task).map_or_else(|_| Ok(Map::new()), |task| call.resolved_to(plan, &task))
}

/// Returns one task with its state, its waits, its inputs and its dependants.
fn one(
    plan: &Plan,
    id: &str,
    waits: &[String],
    resolved: Map<String, Value>,
    asked: Vec<Value>,
) -> Result<Answer, ToolError> {
    let task = plan.task(id).ok_or_else(|| ServiceError::from(plan.no_such_task(id)))?;
    let mut value = task_value(plan, task);
    if !waits.is_empty() {
        value["waits_for"] = json!(waits);
    }
    if !asked.is_empty() {
        value["conflicts"] = Value::Array(asked);
    }
    if !resolved.is_empty() {
        value["resolved_to"] = Value::Object(resolved);
    }
    let inputs: Map<String, Value> =
        plan.outputs_for(id).into_iter().map(|(name, output)| (name, output.value())).collect();
    if !inputs.is_empty() {
        value["inputs"] = Value::Object(inputs);
    }
    let needed_by: Vec<&str> =
        plan.dependants(id).into_iter().take(NEEDED_BY_MAX).map(|task| task.spec.id.as_str()).collect();
    if !needed_by.is_empty() {
        value["needed_by"] = json!(needed_by);
    }
    let (mut value, was_cut) = reply_text::shortened(&value, TASK_BYTES_MAX);
    if was_cut && value.is_object() {
        value["cut"] = json!("plan_export writes all of it to a file");
    }
    Ok(Answer::of(value))
}

/// Returns a task's spec and state with its effective status. Omits the timestamps of creation and update, and the tries.
fn task_value(plan: &Plan, task: &Task) -> Value {
    let mut value = serde_json::to_value(&task.spec).unwrap_or_default();
    let state = serde_json::to_value(&task.state).unwrap_or_default();
    let standing = plan.as_started().effective_status(task.spec.id.as_str());
    if let (Value::Object(fields), Value::Object(state)) = (&mut value, state) {
        for (name, found) in state {
            let known = ["status", "created_at", "updated_at", "tries"];
            if !known.contains(&name.as_str()) {
                fields.insert(name, found);
            }
        }
        fields.insert("status".to_owned(), json!(standing.map_or("", |standing| standing.as_str())));
    }
    value
}

/// Returns all tasks by page. The first page begins with the plan's own fields.
fn page(
    plan: &Plan,
    cursor: Option<&str>,
    waits: &[(Wait, TargetStatus)],
    asked: &[String],
) -> Result<Answer, ToolError> {
    let mut value = json!({ "plan": plan.id(), "version": plan.version() });
    if cursor.is_none() {
        let about = serde_json::to_value(plan.spec()).unwrap_or_default();
        value["about"] = reply_text::shortened(&about, ABOUT_BYTES).0;
    }
    if !asked.is_empty() {
        value["conflicts"] = json!(asked);
    }
    let (mut tasks, started) = (plan.tasks(), plan.as_started());
    if let Some(cursor) = cursor
        && !tasks.by_ref().any(|(task, _)| task.spec.id.as_str() == cursor)
    {
        let message = format!("cursor: task {cursor} does not exist");
        let code = ServiceError::from(plan.no_such_task(cursor)).code();
        return Err(ToolError::new(message, "start again with full: true").with_fact("code", code));
    }
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut last = None;
    let mut more = false;
    for (task, _) in tasks {
        if rows.len() == TASKS_PAGE || bytes >= PAGE_BYTES {
            more = true;
            break;
        }
        let mut row = row(&started, task);
        let missing = waits.iter().filter(|(wait, found)| wait.task == task.spec.id && !found.is_there());
        let missing: Vec<String> = missing.map(|(wait, found)| found.describe(&wait.on)).collect();
        if !missing.is_empty() {
            row["waits_for"] = json!(missing);
        }
        let row = reply_text::shortened(&row, ROW_BYTES).0;
        bytes += row.to_string().len();
        rows.push(row);
        last = Some(task.spec.id.as_str());
    }
    value["tasks"] = Value::Array(rows);
    if let Some(last) = last.filter(|_| more) {
        value["cursor"] = json!(last);
    }
    Ok(Answer::of(value))
}

/// A task on a page: its spec, effective status and result. `plan` is the plan as it will be once it has started.
fn row(plan: &Plan, task: &Task) -> Value {
    let mut row = serde_json::to_value(&task.spec).unwrap_or_default();
    let standing = plan.effective_status(task.spec.id.as_str());
    row["status"] = json!(standing.map_or("", |standing| standing.as_str()));
    if let Some(result) = &task.state.result {
        row["result"] = json!(result);
    }
    if let Some(why) = task.state.why() {
        row["why"] = json!(why);
    }
    row
}

/// Returns the changes since a version.
fn changes(call: &Call, plan: &PlanId, since: u64) -> Result<Answer, ToolError> {
    let plans = call.workspace.plans();
    let (version, warnings) = call.view(plan, |plan, warnings| (plan.version(), warnings.to_vec()))?;
    let found = if since == version {
        Vec::new()
    } else {
        let before = plans.at_version(plan, since)?.to_draft();
        call.view(plan, |plan, _| differences(&before, &plan.to_draft()))?
    };
    let lines = reply_text::changes(&found);
    let total = lines.len();
    let shown: Vec<&String> = lines.iter().take(reply_text::CHANGES_MAX).collect();
    let mut text = format!("plan {plan} v{since} to v{version}:{}", if total == 0 { " nothing" } else { "" });
    for line in &shown {
        text.push_str(&format!("\n{line}"));
    }
    let mut value = json!({ "plan": plan, "version": version, "changes": shown });
    if total > shown.len() {
        let more = total - shown.len();
        text.push_str(&format!("\n{more} more; full: true shows all"));
        value["more"] = json!(more);
    }
    let mut answer = Answer { value, text };
    answer.warn(&warnings);
    Ok(answer)
}
