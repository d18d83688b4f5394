//! `task_next` and `task_report`: claim a task, leased to the caller, and report on it.

use serde_json::{Map, Value, json};
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};
use waypost_core::{
    Dependency, EffectiveStatus, Json, Plan, PlanId, QuestionRequest, Status, Task, TaskId, TaskState,
    Timestamp,
};
use waypost_service::{
    ClaimFilter, ClaimOptions, Claimed, EarlierAttempt, Guard, Holder, ServiceError, TaskRef, TaskReport,
    WriteReply, awaits_approval, resolve_task,
};
use waypost_text::quote;

use super::arguments::{ArgumentForm, Arguments, Problems};
use super::{merge_questions, plan_facts, plan_ref};
use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Maximum bytes of the description, and of the notes, in the reply to a claim.
pub(super) const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Maximum bytes of all dependency outputs in the reply to a claim.
pub(super) const OUTPUTS_BYTES_MAX: usize = 8 * 1024;
/// Maximum bytes of the result of one dependency in the reply to a claim.
const RESULT_BYTES_MAX: usize = 1_000;
/// Maximum bytes of the error, and of the reason, of the attempt before.
const EARLIER_BYTES_MAX: usize = 1_000;
/// Maximum number of people's answers in the reply to a claim; the latest are returned.
const ANSWERS_MAX: usize = 5;
/// Maximum number of comments in the reply to a claim; the latest are returned.
const COMMENTS_MAX: usize = 5;
/// Maximum bytes of a comment in the reply to a claim.
const COMMENT_BYTES_MAX: usize = 600;
/// Maximum bytes of a reason why nothing can be claimed.
const REASON_BYTES: usize = 160;

const NEXT_KNOWN: [(&str, ArgumentForm); 5] = [
    ("plan", ArgumentForm::Text),
    ("any", ArgumentForm::Flag),
    ("queue", ArgumentForm::Text),
    ("task", ArgumentForm::Text),
    ("take_over", ArgumentForm::Flag),
];

pub(super) fn next(call: &Call) -> Result<Answer, ToolError> {
    let arguments = Arguments::of(&call.arguments, &NEXT_KNOWN)?;
    let queue = arguments.name("queue")?;
    if arguments.name("task")?.is_some() {
        return this_one(call, &arguments, queue.is_some() || arguments.flag("any")?);
    }
    let any = arguments.flag("any")? || queue.is_some();
    let plan = match (any, arguments.name("plan")?) {
        (true, Some(_)) => return Err(arguments.bad("plan", "plan excludes any and queue")),
        (true, None) => None,
        (false, _) => Some(plan_ref::plan(call, &arguments)?),
    };
    let filter = ClaimFilter { plan: plan.as_ref(), queue };
    match call.service().claim_next(&call.caller, filter, None)? {
        Claimed::Taken { written, task } => {
            call.remember(&written.plan)?;
            claim_reply(call, &written, &task)
        }
        Claimed::Nothing { reasons } => {
            let reasons = reasons.iter().map(|reason| reply_text::cut(reason, REASON_BYTES));
            let mut why = reasons.collect::<Vec<_>>().join(", ");
            let mut archived_by = None;
            if let Some(plan) = &plan {
                why.push_str(call.read(plan, |plan| advice(call, plan))?);
                archived_by = call.service().archived_by(plan)?;
            }
            let mut answer = nothing(&why);
            if let Some(plan) = &plan {
                answer.value["plan"] = json!(plan);
            }
            if let Some(by) = archived_by {
                answer.add("archived_by", &by, &format!(" by {by}"));
            }
            Ok(answer)
        }
    }
}

/// Claims the named task. If the caller holds it already, renews the lease.
fn this_one(call: &Call, arguments: &Arguments<'_>, elsewhere: bool) -> Result<Answer, ToolError> {
    if elsewhere {
        return Err(arguments.bad("task", "task excludes any and queue"));
    }
    let task = task_named(arguments)?;
    let plan = plan_of(call, arguments, &task)?;
    let task = call.read(&plan, |plan| resolve_task(plan, task.as_str()))??;
    let options = ClaimOptions { take_over: arguments.flag("take_over")?, ..ClaimOptions::default() };
    let claimed = call.service().claim(&call.caller, &plan, &task, options, Guard::NONE);
    let written = claimed.map_err(|error| call.refused(&plan, error))?;
    call.remember(&plan)?;
    claim_reply(call, &written.written, &task)
}

/// The reply for a claim: the task, and which plans its dependencies on other agents mean.
fn claim_reply(call: &Call, written: &WriteReply, task: &TaskId) -> Result<Answer, ToolError> {
    let before = call.service().earlier_attempt(written, task)?;
    let resolved = call.resolved_to(&written.plan, task)?;
    let mut answer = call.read(&written.plan, |plan| taken(call, plan, task, &before))??;
    plan_facts::add_resolved(&resolved, &mut answer);
    merge_questions::add_about_task(call, &written.plan, task, &mut answer);
    Ok(answer)
}

fn task_named(arguments: &Arguments<'_>) -> Result<TaskId, ToolError> {
    TaskId::new(arguments.needed("task")?).map_err(|bad| arguments.bad("task", bad))
}

/// Returns what to do where nothing can be claimed.
fn advice(call: &Call, plan: &Plan) -> &'static str {
    let is_elsewhere = |worker: &str| call.caller.relation_to(worker) == Holder::OtherSession;
    if !plan.state().archived && awaits_approval(plan) {
        let is_rejected = !plan.rejection().is_empty();
        return if is_rejected { "; change the plan, then plan_start" } else { ": plan_start requests it" };
    }
    match plan.running().filter_map(|task| task.state.worker.as_deref()).any(is_elsewhere) {
        true => ", if that session is gone, task_next with task and take_over: true",
        false => "",
    }
}

fn nothing(why: &str) -> Answer {
    Answer { value: json!({ "task": Value::Null, "why": why }), text: format!("nothing: {why}") }
}

/// The reply for a claimed task. What others wrote is quoted, with its author.
fn taken(call: &Call, plan: &Plan, id: &TaskId, before: &EarlierAttempt) -> Result<Answer, ToolError> {
    let missing = || ServiceError::from(plan.no_such_task(id.as_str()));
    let Task { spec, state } = plan.task(id.as_str()).ok_or_else(missing)?;
    let value = json!({ "plan": plan.id(), "task": id, "attempt": state.attempt });
    let mut answer = Answer { value, text: format!("{id} (plan {}", plan.id()) };
    if let Some(author) = plan.state().created_by.as_ref().filter(|author| *author != call.by()) {
        answer.add("by", author, &format!(" by {author}"));
    }
    answer.text.push_str(&format!(", attempt {}): ", state.attempt));
    for (name, label, said) in [("description", "", &spec.description), ("notes", "\nnotes: ", &spec.notes)] {
        if !said.is_empty() {
            let shown = reply_text::cut_text(said, TEXT_BYTES_MAX);
            answer.add(name, &shown, &format!("{label}{}", quote(&shown)));
        }
    }
    if let Some(tools) = spec.tools.as_ref().filter(|tools| !tools.is_empty()) {
        let tools = reply_text::cut(&tools.join(", "), TEXT_BYTES_MAX);
        answer.add("tools", &tools, &format!("\ntools: {}", quote(&tools)));
    }
    if spec.check.is_some() {
        answer.add("check", true, "\na check decides whether it is done");
    }
    add_annotations(state, &mut answer);
    add_answers(state, &mut answer);
    add_earlier_attempt(before, &mut answer);
    add_inputs(plan, id, &mut answer);
    Ok(answer)
}

/// Adds how earlier attempts ended: the last error, and why the one before this was released.
fn add_earlier_attempt(before: &EarlierAttempt, answer: &mut Answer) {
    for (name, label, said) in [
        ("last_error", "\nlast error: ", &before.last_error),
        ("released", "\nreleased before: ", &before.released),
    ] {
        if let Some(said) = said.as_ref().filter(|said| !said.is_empty()) {
            let shown = reply_text::cut_text(said, EARLIER_BYTES_MAX);
            answer.add(name, &shown, &format!("{label}{}", quote(&shown)));
        }
    }
}

/// Adds the answers of people.
fn add_answers(state: &TaskState, answer: &mut Answer) {
    let answers = state.answers();
    let latest = &answers[answers.len().saturating_sub(ANSWERS_MAX)..];
    if latest.is_empty() {
        return;
    }
    let (mut told, mut text) = (Vec::new(), String::new());
    for answered in latest {
        let (question, said) = (reply_text::cut(&answered.question, REASON_BYTES), &answered.answer);
        text.push_str(&format!("\n{} answered {}: {}", answered.by, quote(&question), quote(said)));
        told.push(json!({ "question": question, "answer": said, "by": answered.by }));
    }
    answer.add("answers", told, &text);
}

/// Adds the labels, the assignee and the latest comments. Anybody with the tools can comment, so each text is quoted behind
/// its author.
fn add_annotations(state: &TaskState, answer: &mut Answer) {
    if !state.labels().is_empty() {
        let labels = reply_text::cut(&state.labels().join(", "), REASON_BYTES);
        answer.add("labels", &labels, &format!("\nlabels: {}", quote(&labels)));
    }
    if let Some(assignee) = state.assignee() {
        let assignee = reply_text::cut(assignee, REASON_BYTES);
        answer.add("assignee", &assignee, &format!("\nassigned to {}", quote(&assignee)));
    }
    let comments = state.comments();
    let earlier = comments.len().saturating_sub(COMMENTS_MAX);
    let (mut told, mut text) = (Vec::new(), String::new());
    for comment in &comments[earlier..] {
        let said = reply_text::cut_text(&comment.text, COMMENT_BYTES_MAX);
        text.push_str(&format!("\ncomment by {}: {}", comment.by, quote(&said)));
        told.push(json!({ "by": comment.by, "at": comment.at, "text": said }));
    }
    if !told.is_empty() {
        let more =
            if earlier > 0 { format!("\n{earlier} earlier comments: plan_get task") } else { String::new() };
        answer.add("comments", told, &format!("{text}{more}"));
    }
}

/// Adds the outputs of the task's dependencies as far as there is room, and how to get the rest.
fn add_inputs(plan: &Plan, id: &TaskId, answer: &mut Answer) {
    let mut room = OUTPUTS_BYTES_MAX;
    let (mut given, mut text) = (Map::new(), String::new());
    let mut left: Vec<String> = Vec::new();
    for (name, output) in plan.outputs_for(id.as_str()) {
        let bytes = output.as_str().len();
        if bytes > room {
            left.push(name);
            continue;
        }
        room -= bytes;
        text.push_str(&format!("\nfrom {name}: {output}"));
        given.insert(name, output.value());
    }
    if !given.is_empty() {
        answer.add("inputs", given, &text);
    }
    add_results(plan, id, &mut room, answer);
    if !left.is_empty() {
        let names = reply_text::few(left.iter().map(String::as_str), 10, REASON_BYTES).join(", ");
        let more = format!("{names} ({} too large): plan_get task {id}", left.len());
        answer.add("more_inputs", &more, &format!("\nfrom {more}"));
    }
}

/// Adds the results of dependencies that have no output, as far as there is room: they are all that the next worker knows of
/// them.
fn add_results(plan: &Plan, id: &TaskId, room: &mut usize, answer: &mut Answer) {
    let Some(task) = plan.task(id.as_str()) else { return };
    let (mut given, mut text) = (Map::new(), String::new());
    for on in &task.spec.depends_on {
        let Dependency::Task(on) = on else { continue };
        let Some(state) = plan.task(on.as_str()).map(|task| &task.state) else { continue };
        let said = state.result.as_ref().filter(|said| state.output.is_none() && !said.is_empty());
        let Some(said) = said.map(|said| reply_text::cut_text(said, RESULT_BYTES_MAX)) else { continue };
        if said.len() > *room {
            continue;
        }
        *room -= said.len();
        text.push_str(&format!("\nresult of {on}: {}", quote(&said)));
        given.insert(on.to_string(), said.into());
    }
    if !given.is_empty() {
        answer.add("results", given, &text);
    }
}

/// The kind of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum ReportStatus {
    Progress,
    Done,
    Failed,
    Skipped,
    Release,
    Question,
}

const KNOWN: [&str; 12] = [
    "plan",
    "task",
    "status",
    "text",
    "result",
    "output",
    "error",
    "reason",
    "choices",
    "attempt",
    "sure",
    "take_over",
];

pub(super) fn report(call: &Call) -> Result<Answer, ToolError> {
    let mut wrong = Problems::default();
    let arguments = Arguments::noting_unknown(&call.arguments, &KNOWN, "", &mut wrong);
    let task = wrong.take(task_named(&arguments));
    let status = arguments.one_of("status", ReportStatus::iter());
    let status = wrong.take(status.and_then(|status| status.ok_or_else(|| arguments.missing("status"))));
    let attempt = wrong.take_or_default(arguments.small("attempt"));
    for name in ["text", "result", "error", "reason"] {
        wrong.take(arguments.text(name));
    }
    for name in ["sure", "take_over"] {
        wrong.take(arguments.flag(name));
    }
    wrong.take(arguments.texts("choices"));
    let (task, status) = match wrong.or((task, status))? {
        (Some(task), Some(status)) => (task, status),
        (None, _) | (_, None) => return Err(arguments.missing("task")),
    };
    let plan = plan_of(call, &arguments, &task)?;
    let task = call.read(&plan, |plan| resolve_task(plan, task.as_str()))??;
    let report = match status {
        ReportStatus::Progress => TaskReport::Progress(text_of(&arguments)?),
        ReportStatus::Done => {
            let result = text_or(&arguments, "result")?;
            let (output, sure) = (arguments.value("output").map(Json::of), arguments.flag("sure")?);
            TaskReport::Done { result, output, sure }
        }
        ReportStatus::Failed => {
            TaskReport::Failed { error: text_or(&arguments, "error")?.unwrap_or_default() }
        }
        ReportStatus::Skipped => TaskReport::Skipped { reason: text_or(&arguments, "reason")? },
        ReportStatus::Release => {
            TaskReport::Released { reason: text_or(&arguments, "reason")?.unwrap_or_default() }
        }
        ReportStatus::Question => {
            let (text, choices) = (text_of(&arguments)?, arguments.texts("choices")?);
            TaskReport::Question(Box::new(QuestionRequest { text, choices, ..QuestionRequest::default() }))
        }
    };
    let skipped_before = call.read(&plan, |plan| plan.counts().skipped)?;
    let take_over = arguments.flag("take_over")?;
    let reference = TaskRef { plan: &plan, task: &task, attempt, take_over, seen: None };
    let reported_on = call.service().report(&call.caller, reference, report, Guard::NONE);
    reported_on.map_err(|error| call.refused(&plan, error))?;
    call.remember(&plan)?;
    Ok(call.read(&plan, |plan| reported(plan, &task, status, skipped_before))?)
}

/// Returns the plan of a task: the one that the call names, or the one in which the session holds a task of this id, or the
/// session's own. For a session without one, tasks that the agent's other sessions hold count too: they may be gone.
fn plan_of(call: &Call, arguments: &Arguments<'_>, task: &TaskId) -> Result<PlanId, ToolError> {
    if arguments.name("plan")?.is_none() {
        let mut leases = call.service().leases_of(&call.caller)?;
        leases.retain(|lease| lease.task == *task);
        // A session that works on a plan of its own means no task that another session holds under the same id.
        let has_own = matches!(call.session_plan()?, Some((_, true)));
        if has_own || leases.iter().any(|lease| call.caller.relation_to(&lease.worker) == Holder::Caller) {
            leases.retain(|lease| call.caller.relation_to(&lease.worker) == Holder::Caller);
        }
        match leases.as_slice() {
            [one] => return Ok(one.plan.clone()),
            [] => {}
            several => {
                let plans: Vec<&str> = several.iter().map(|lease| lease.plan.as_str()).collect();
                let message = format!("you hold a task {task} in several plans");
                return Err(ToolError::new(message, format!("name the plan: {}", plans.join(", "))));
            }
        }
    }
    plan_ref::plan(call, arguments)
}

/// Returns the text under a name, or under `text`.
fn text_or(arguments: &Arguments<'_>, name: &str) -> Result<Option<String>, ToolError> {
    let named = arguments.text(name)?;
    Ok(if named.is_some() { named } else { arguments.text("text")? }.map(str::to_owned))
}

fn text_of(arguments: &Arguments<'_>) -> Result<String, ToolError> {
    Ok(arguments.text("text")?.unwrap_or_default().to_owned())
}

/// The reply to a report: its effect, and the next ready tasks.
fn reported(plan: &Plan, task: &TaskId, status: ReportStatus, skipped_before: u32) -> Answer {
    let state = plan.task(task.as_str()).map(|task| &task.state);
    let now = plan.effective_status(task.as_str()).map(EffectiveStatus::as_str);
    let mut value = json!({ "plan": plan.id(), "task": task, "status": now });
    let text = match status {
        ReportStatus::Progress => return short_answer(task, value, "lease renewed"),
        ReportStatus::Question => {
            return short_answer(task, value, "question asked; ready again once a person answers");
        }
        ReportStatus::Release => format!("{task} released"),
        ReportStatus::Skipped => format!("{task} skipped"),
        ReportStatus::Done if state.is_some_and(|state| state.reported().is_some()) => {
            format!("{task} reported; the check decides")
        }
        ReportStatus::Done => format!("{task} done"),
        ReportStatus::Failed => {
            let again =
                state.filter(|state| state.status == Status::Pending).and_then(|state| state.not_before);
            failed(task, again, plan.counts().skipped.saturating_sub(skipped_before), &mut value)
        }
    };
    let phase = plan.state().phase;
    let next = reply_text::few(
        plan_facts::next_of(plan),
        plan_facts::REPORT_NEXT_MAX,
        plan_facts::REPORT_NEXT_BYTES,
    );
    let mut answer = Answer { value, text };
    if phase.is_finished() {
        answer.add("phase", phase.as_str(), &format!("; plan {}", phase.as_str()));
    } else if next.is_empty() {
        answer.add("next", json!([]), "; none ready");
    } else {
        answer.add_names("next", "; next ", &next);
    }
    answer
}

fn short_answer(task: &TaskId, mut value: Value, words: &str) -> Answer {
    value["message"] = json!(words);
    Answer { value, text: format!("{task}: {words}") }
}

fn failed(task: &TaskId, again: Option<Timestamp>, skipped: u32, value: &mut Value) -> String {
    match again {
        Some(again) => {
            value["again_at"] = json!(again);
            format!("{task} failed; retry at {again}")
        }
        None if skipped > 0 => {
            value["skipped"] = json!(skipped);
            format!("{task} failed; {skipped} skipped because of it")
        }
        None => format!("{task} failed"),
    }
}
