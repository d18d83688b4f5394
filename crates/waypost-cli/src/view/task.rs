//! Prints everything about one task, including what it waits for.

use waypost_core::{DependencyRule, Json, LockMode, Task, TaskState, Timestamp, Work};
use waypost_service::waiting_text;

use super::{CLONES_DISAGREE, Shown, sign_look, text};
use crate::output::Output;
use crate::runner::typeable;
use crate::style::Look;

/// Width of the field names.
const NAME_COLUMNS: usize = 14;
/// Maximum bytes of a JSON value that are shown.
const JSON_BYTES_MAX: usize = 2_000;
/// Maximum columns of an answered question.
const ANSWERED_COLUMNS: usize = 60;
/// Maximum lines of the end of a check's log.
const LOG_LINES_MAX: usize = 20;
/// Maximum number of names in one line.
const NAMES_MAX: usize = 20;

pub fn print(shown: &Shown<'_>, task: &Task, now: Timestamp, out: &mut Output) {
    let (plan, spec, state) = (shown.plan, &task.spec, &task.state);
    let id = spec.id.as_str();
    let title = out.paint(&text::reveal_lines(&format!("{id} of plan {}", plan.id())), Look::Bold);
    out.line(title);
    for line in text::wrap(&text::reveal_lines(&spec.description), out.columns, usize::MAX) {
        out.line(line);
    }
    out.line("");
    let (sign, word) = shown.sign(task);
    let word = out.paint(&format!("{} {word}", sign.glyph()), sign_look(sign));
    lines_of(out, "status", &[word]);
    for waiting in shown.started.waiting(id, now) {
        field(out, "waits for", &waiting_text(&waiting));
    }
    if let Some(why) = state.why() {
        field(out, "why", &why);
    }
    let texts = [
        ("worker", &state.worker),
        ("progress", &state.progress),
        ("result", &state.result),
        ("last error", &state.error),
    ];
    let shown_as_why = state.why() == state.error;
    for (name, value) in texts {
        if let Some(value) = value.as_ref().filter(|_| !(name == "last error" && shown_as_why)) {
            field(out, name, value);
        }
    }
    print_aside(state, out);
    if state.attempt > 0 && (state.started_at.is_some() || state.worker.is_some()) {
        let of = if spec.attempts_max() > 1 { format!(" of {}", spec.attempts_max()) } else { String::new() };
        let queued = if state.may_have_begun() { "; it was queued and may have begun" } else { "" };
        field(out, "attempt", &format!("{}{of}{queued}", state.attempt));
    }
    let names = |tasks: Vec<&Task>| text::names(tasks.iter().map(|task| &task.spec.id), NAMES_MAX);
    let parent = spec.parent.as_ref().map(ToString::to_string).unwrap_or_default();
    let depends_on: Vec<String> = spec.depends_on.iter().map(ToString::to_string).collect();
    let when = match spec.when {
        DependencyRule::AllDone => "",
        DependencyRule::AllFinished => "all of them have finished, however",
        DependencyRule::AnyDone => "any of them is done",
    };
    let locks: Vec<String> = spec
        .locks
        .iter()
        .map(|lock| match lock.mode {
            LockMode::Exclusive => lock.key.clone(),
            LockMode::Shared => format!("{} (shared)", lock.key),
        })
        .collect();
    let fields = [
        ("parent", parent),
        ("children", names(plan.children(id))),
        ("depends on", depends_on.join(", ")),
        ("when", when.to_owned()),
        ("skip", if spec.skip { "yes, says its author" } else { "" }.to_owned()),
        ("needed by", names(plan.dependants(id))),
        ("complexity", spec.complexity.map(|complexity| complexity.as_str().to_owned()).unwrap_or_default()),
        ("priority", if spec.priority == 0 { String::new() } else { spec.priority.to_string() }),
        ("tools", spec.tools.as_ref().map(|tools| tools.join(", ")).unwrap_or_default()),
        ("locks", locks.join(", ")),
        ("work", spec.work.as_deref().map(work_words).unwrap_or_default()),
        ("check", spec.check.as_deref().map(work_words).unwrap_or_default()),
        ("retry", spec.retry.as_ref().map(|retry| retry_words(retry)).unwrap_or_default()),
        ("timeout", spec.timeout_seconds.map(|seconds| format!("{seconds} s")).unwrap_or_default()),
        ("provides", spec.provides.clone().unwrap_or_default()),
        ("notes", spec.notes.clone()),
    ];
    for (name, value) in fields {
        field(out, name, &value);
    }
    if let Some(output) = &state.output {
        field(out, "output", &json_words(output));
    }
    for (name, output) in plan.outputs_for(id) {
        field(out, "received", &format!("{name} = {}", json_words(&output)));
    }
    if let Some(thinking) = &spec.thinking {
        field(out, "reasoning", thinking.reasoning.as_deref().unwrap_or(""));
        if let Some(digest) = &thinking.digest {
            field(out, "digest", &digest.summary);
        }
    }
    for (name, at) in [("started", state.started_at), ("finished", state.finished_at)] {
        if let Some(at) = at {
            field(out, name, &format!("{} UTC ({})", at.to_the_second(), text::ago(now.since(at))));
        }
    }
}

/// Prints reports, questions, answers and evidence.
fn print_aside(state: &TaskState, out: &mut Output) {
    if let Some(report) = state.reported() {
        let mut words = format!("as done by {}", report.by);
        if let Some(result) = &report.result {
            words.push_str(&format!(": {result}"));
        }
        field(out, "reported", &words);
        field(out, "its output", &report.output.as_ref().map(json_words).unwrap_or_default());
    }
    if let Some(question) = state.question() {
        field(out, "asks", &question.text);
        field(out, "choices", &question.choices.join(", "));
        field(out, "asked by", &format!("{}, attempt {}", question.by, question.attempt));
    }
    field(out, "labels", &state.labels().join(", "));
    field(out, "assigned to", state.assignee().unwrap_or_default());
    for comment in state.comments() {
        let at = comment.at.to_the_second();
        field(out, "comment", &format!("{} ({}, {at} UTC)", comment.text, comment.by));
    }
    if let Some(hold) = state.held() {
        let reason = if hold.reason.is_empty() { String::new() } else { format!(": {}", hold.reason) };
        match hold.is_dispute() {
            true => field(out, "disputed", &typeable(CLONES_DISAGREE)),
            false => field(out, "held", &format!("by {}{reason}", hold.by)),
        }
    }
    for answer in state.answers() {
        let question = text::excerpt(&answer.question, ANSWERED_COLUMNS);
        field(out, "answered", &format!("{} ({question} → {})", answer.answer, answer.by));
    }
    if let Some(gate) = state.gate() {
        let outcome: &str = gate.outcome.into();
        let at = gate.at.to_the_second();
        let words = format!("{outcome} by {} at {at} UTC ({}, {})", gate.by, gate.proof, gate.via);
        field(out, "person", &words);
    }
    if let Some(evidence) = state.evidence() {
        let word = if evidence.passed { "passed" } else { "failed" };
        field(out, "evidence", &format!("check {} {word}: {}", evidence.check, evidence.outcome));
        field(out, "checked by", &evidence.worker);
        field(out, "digest", &evidence.digest);
        field(out, "its output", &evidence.output.as_ref().map(json_words).unwrap_or_default());
        let tail = evidence.log_tail.as_deref().unwrap_or_default();
        let lines: Vec<&str> = tail.lines().collect();
        let from = lines.len().saturating_sub(LOG_LINES_MAX);
        field(out, "its log", &lines[from..].join("\n"));
    }
}

/// Prints a field with its value wrapped; nothing if the value is empty.
pub fn field(out: &mut Output, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    let columns = out.columns.saturating_sub(NAME_COLUMNS).max(20);
    let lines = text::wrap(&text::reveal_lines(value), columns, usize::MAX);
    lines_of(out, name, &lines);
}

/// Prints a field of our own lines, which may be coloured.
fn lines_of(out: &mut Output, name: &str, lines: &[String]) {
    for (number, line) in lines.iter().enumerate() {
        let name = if number == 0 { name } else { "" };
        let name = out.paint(&text::pad(name, NAME_COLUMNS), Look::Dim);
        out.line(format!("{name}{line}"));
    }
}

fn work_words(work: &Work) -> String {
    let shape = work.shape.as_ref().map(|shape| format!(", shape {shape}")).unwrap_or_default();
    format!("executor {}{shape}, inputs {}", work.executor, json_words(&work.inputs))
}

fn retry_words(retry: &waypost_core::Retry) -> String {
    match retry.backoff_seconds {
        0 => format!("{} attempts", retry.attempts),
        seconds => format!("{} attempts, {seconds} s apart at first", retry.attempts),
    }
}

fn json_words(json: &Json) -> String {
    let text = json.as_str();
    match waypost_text::head_bytes(text, JSON_BYTES_MAX) {
        head if head.len() < text.len() => format!("{head}… ({} bytes)", text.len()),
        whole => whole.to_owned(),
    }
}
