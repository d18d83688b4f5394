//! What clones disagree about in a plan, as `plan_get` reports it. Only people answer, so no tool does.

use serde_json::{Value, json};
use waypost_core::{PlanId, TaskId};
use waypost_service::Conflict;
use waypost_text::count;

use crate::reply_text;
use crate::tool::Answer;
use crate::tool_call::Call;

/// Maximum number of questions that a reply lists.
const LISTED_MAX: usize = 10;
/// Maximum bytes of the text of a question in a list.
const TEXT_BYTES: usize = 200;
/// Maximum bytes of each version of a value.
const VALUE_BYTES: usize = 2_000;

/// Returns the open questions of a plan. What is wrong with the records of a plan, `waypost sync` reports.
fn open(call: &Call, plan: &PlanId) -> Vec<Conflict> {
    let open = call.service().open_questions(Some(plan)).unwrap_or_default();
    open.into_iter().flat_map(|open| open.questions).map(|question| question.conflict).collect()
}

/// Returns the number of open questions of a plan.
pub(super) fn number(call: &Call, plan: &PlanId) -> usize {
    call.service().question_count(plan).unwrap_or_default()
}

/// Adds the number of open questions, if there are any.
pub(super) fn add_count(open: usize, answer: &mut Answer) {
    if open > 0 {
        answer.add(
            "conflicts",
            open,
            &format!("; clones disagree about {}: a person decides", count(open, "thing")),
        );
    }
}

/// Returns what each question of a plan is about, in one line.
pub(super) fn all(call: &Call, plan: &PlanId) -> Vec<String> {
    let open = open(call, plan);
    let lines = open.iter().map(|Conflict { task, subject, text, .. }| {
        let of = task.as_ref().map(|task| format!("{task} ")).unwrap_or_default();
        reply_text::cut(&format!("{of}{subject}: {text}"), TEXT_BYTES)
    });
    let lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(LISTED_MAX);
    let mut listed: Vec<String> = lines.into_iter().take(LISTED_MAX).collect();
    if more > 0 {
        listed.push(format!("{more} more"));
    }
    listed
}

/// Returns the questions about a task, with what each clone wrote.
pub(super) fn about_task(call: &Call, plan: &PlanId, task: &str) -> Vec<Value> {
    let open = open(call, plan);
    let about = open.iter().filter(|conflict| conflict.task.as_ref().is_some_and(|of| of.as_str() == task));
    about.take(LISTED_MAX).map(details).collect()
}

/// Adds the questions about a task to the reply of whoever works on it: what was read is one version of several.
pub(super) fn add_about_task(call: &Call, plan: &PlanId, task: &TaskId, answer: &mut Answer) {
    let asked = about_task(call, plan, task.as_str());
    if asked.is_empty() {
        return;
    }
    let subjects: Vec<&str> = asked.iter().filter_map(|question| question["about"].as_str()).collect();
    let said = format!(
        "\nclones disagree about {}: what is shown may change, a person decides",
        subjects.join(", ")
    );
    answer.add("conflicts", asked, &said);
}

fn details(conflict: &Conflict) -> Value {
    let versions = conflict.versions.iter().enumerate().take(LISTED_MAX).map(|(at, version)| {
        let mut value = json!({
            "by": version.by.to_string(),
            "clone": version.from,
            "at": version.at.to_the_second(),
            "value": reply_text::cut_text(&version.value, VALUE_BYTES),
        });
        if conflict.shown == Some(at) {
            value["shown"] = json!(true);
        }
        value
    });
    json!({
        "about": conflict.subject,
        "text": reply_text::cut(&conflict.text, TEXT_BYTES),
        "versions": versions.collect::<Vec<Value>>(),
        "decides": "only a person can answer it",
    })
}
