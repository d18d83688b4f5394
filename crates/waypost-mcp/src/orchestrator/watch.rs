//! `run_watch`: waits for the next change of a run, or for its end, and returns what happened since a version.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use waypost_core::{Phase, PlanId, Status};
use waypost_run::{News, RunEvent, happened_since};

use super::lookup::{self, quoted};
use super::status;
use crate::tool::Answer;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Default for how long a watch waits.
const SECONDS: u64 = 30;
/// The longest that a watch waits.
const SECONDS_MAX: u64 = 600;
/// Interval at which a waiting call checks whether the client has cancelled.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum number of changes in a reply; the latest are returned.
const HAPPENED_MAX: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Watch {
    plan: String,
    since: Option<u64>,
    seconds: Option<u64>,
    #[serde(default)]
    until: Until,
}

/// The condition to wait for.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Until {
    #[default]
    Change,
    End,
}

pub(super) fn watch(call: &Call) -> Result<Answer, ToolError> {
    let asked: Watch = call.arguments()?;
    let id = call.plan(&asked.plan)?;
    let current = call.view(&id, |plan, _| plan.version())?;
    let since = asked.since.unwrap_or(current);
    if since > current {
        let message = format!("plan {id} is at version {current}; there is no version {since}");
        return Err(ToolError::new(message, "use a version from an earlier result, or omit `since`"));
    }
    let seconds = asked.seconds.unwrap_or(SECONDS);
    if seconds > SECONDS_MAX {
        return Err(ToolError::new(
            format!("seconds: must be at most {SECONDS_MAX}"),
            "call it again to wait on",
        ));
    }
    wait(call, &id, since, asked.until, Duration::from_secs(seconds))?;
    answer(call, &id, since)
}

fn wait(call: &Call, id: &PlanId, since: u64, until: Until, at_most: Duration) -> Result<(), ToolError> {
    let plans = call.workspace.plans();
    // Watch before the first read, so that no change falls between the two.
    let mut watch = plans.watch()?;
    let end = Instant::now() + at_most;
    loop {
        let (version, phase) = call.view(id, |plan, _| (plan.version(), plan.state().phase))?;
        let over = match until {
            Until::Change => version > since || phase.is_finished(),
            // A paused or unapproved plan does not change by itself either.
            Until::End => phase.is_finished() || matches!(phase, Phase::Paused | Phase::Draft),
        };
        let left = end.saturating_duration_since(Instant::now());
        if over || left.is_zero() || (call.client.gone)() {
            return Ok(());
        }
        watch.wait(left.min(LOOK))?;
    }
}

fn answer(call: &Call, id: &PlanId, since: u64) -> Result<Answer, ToolError> {
    let happened = happened_since(call.workspace.plans(), id, since)?;
    let workers = lookup::workers_of(call, id)?;
    let (mut answer, warnings) = call.view(id, |plan, warnings| {
        let mut answer = status::run_summary(plan);
        if let Some(next) = lookup::next(call, plan, workers) {
            answer.insert("next".to_owned(), next.into());
        }
        (answer, warnings.to_vec())
    })?;
    // The version is that of the last reported change, which may be behind the plan.
    answer.insert("version".to_owned(), happened.version.into());
    let lines: Vec<String> = happened.news.iter().map(describe_news).collect();
    let left_out = lines.len().saturating_sub(HAPPENED_MAX);
    answer.insert("happened".to_owned(), lines[left_out..].into());
    if left_out > 0 {
        answer.insert("earlier".to_owned(), left_out.into());
    }
    if happened.more {
        answer.insert("more".to_owned(), true.into());
    }
    let mut answer = Answer::of(Value::Object(answer));
    answer.warn(&warnings);
    Ok(answer)
}

fn describe_news(news: &News) -> String {
    match news {
        News::Notice(notice) => describe_notice(notice),
        News::ApprovalRequested => "approval was requested".to_owned(),
        News::Approved { by, version } => format!("{by} approved version {version}"),
        News::Rejected { by, reason } if reason.is_empty() => format!("{by} rejected it"),
        News::Rejected { by, reason } => format!("{by} rejected it: {}", quoted(reason)),
        News::ApprovalVoided => "its work changed, so it needs approval again".to_owned(),
    }
}

fn describe_notice(notice: &RunEvent) -> String {
    match notice {
        RunEvent::TaskStarted { task, attempt: 1, .. } => format!("{task} started"),
        RunEvent::TaskStarted { task, attempt, .. } => format!("{task} started (attempt {attempt})"),
        RunEvent::TaskWillRetry { task, error, .. } => {
            format!("{task} failed and will be retried: {}", quoted(error))
        }
        RunEvent::TaskProgressed { task, progress, .. } => format!("{task}: {}", quoted(progress)),
        RunEvent::TaskReported { task, by, .. } => format!("{task} reported as done by {by}, to be checked"),
        RunEvent::TaskReleased { task, reason, .. } => format!("{task} released: {}", quoted(reason)),
        RunEvent::StartRefused { message, .. } => quoted(message),
        RunEvent::QuestionAsked { task, question, .. } => {
            format!("{task} asks a person: {}", quoted(question))
        }
        RunEvent::QuestionAnswered { task, answer, by, .. } => {
            format!("{task} was answered by {by}: {}", quoted(answer))
        }
        RunEvent::TaskEnded { task, status, why, .. } => match (status, why) {
            (Status::Done, _) | (_, None) => format!("{task} {}", status.as_str()),
            (_, Some(why)) => format!("{task} {}: {}", status.as_str(), quoted(why)),
        },
        RunEvent::PlanPhaseChanged { phase, .. } => format!("the plan is {}", phase.as_str()),
    }
}
