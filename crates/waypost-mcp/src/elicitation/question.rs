//! The approval question that elicitation puts to the person at a client, and the meaning of the answer: it counts only for the
//! version that was shown, and only if it is explicit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use waypost_config::Config;
use waypost_core::{Actor, Json, Phase, Plan, PlanId, Refusal, Task, Work};
use waypost_service::{Caller, Guard, ServiceError, preview_of_check, preview_of_work};
use waypost_text::{excerpt, truncate_bytes};

use crate::tool_error::ToolError;
use crate::workspace::Workspace;

/// Maximum columns of a text from the plan in the question.
const SHOWN_COLUMNS_MAX: usize = 200;
/// Maximum number of executors and checks that the question names.
const MACHINES_SHOWN_MAX: usize = 12;
/// Maximum bytes of a reason; the rest is cut.
const REASON_BYTES_MAX: usize = 1_000;

/// An approval question about one version of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) plan: PlanId,
    /// The version shown to the person; the answer applies to no other.
    pub(crate) version: u64,
    /// The agent's reason for asking.
    pub(crate) message: String,
    text: String,
}

/// A question on its way to the client.
pub(crate) struct PendingQuestion {
    pub(crate) question: Question,
    /// Receives a message when the question was answered elsewhere; closed when the call no longer waits for the answer.
    pub(crate) settled: oneshot::Receiver<()>,
}

/// Passes a tool's questions to the client.
pub(crate) struct QuestionSender {
    pub(crate) questions: mpsc::UnboundedSender<PendingQuestion>,
    /// Whether the client can be asked only while the call waits for the answer.
    pub(crate) only_while_waiting: bool,
}

/// A person's answer, with the note or reason they gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Approve(String),
    Reject(String),
    /// The person dismissed the question, or the client could not ask.
    Nothing,
}

/// The result of settling a question.
#[derive(Debug)]
pub(crate) enum Settled {
    /// The plan is decided, by this answer or by another.
    Decided,
    /// The plan has changed: this question would have to be asked instead.
    Changed(Question),
    /// The plan still waits for a decision.
    Open,
}

impl Question {
    /// Builds the question from the current version of the plan.
    pub(crate) fn about(workspace: &Workspace, plan: &PlanId, message: &str) -> Result<Self, ServiceError> {
        workspace.service.read(plan, |found| Self {
            plan: plan.clone(),
            version: found.version(),
            message: message.to_owned(),
            text: question(found, &workspace.config, message),
        })
    }

    /// The question in the protocol's form: a choice without a default, so that pressing Enter approves nothing.
    pub(crate) fn form(&self) -> Result<ElicitRequestParams, serde_json::Error> {
        let schema = json!({
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "description": "approve: machines and agents may run it; reject: they may not",
                    "enum": ["approve", "reject"],
                },
                "reason": { "type": "string", "title": "Reason", "description": "Optional: why, or what to watch out for" },
            },
            "required": ["decision"],
        });
        Ok(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.text.clone(),
            requested_schema: serde_json::from_value(schema)?,
        })
    }
}

impl Verdict {
    /// Interprets the protocol's answer. Anything but an explicit `approve` or `reject` counts as no verdict.
    pub(crate) fn of(answer: &ElicitResult) -> Self {
        match answer.action {
            ElicitationAction::Accept => {}
            ElicitationAction::Decline | ElicitationAction::Cancel => return Self::Nothing,
            _ => return Self::Nothing,
        }
        let Some(content) = &answer.content else { return Self::Nothing };
        let reason = content.get("reason").and_then(serde_json::Value::as_str).unwrap_or_default();
        let reason = truncate_bytes(reason.trim(), REASON_BYTES_MAX).into_owned();
        match content.get("decision").and_then(serde_json::Value::as_str) {
            Some("approve") => Self::Approve(reason),
            Some("reject") => Self::Reject(reason),
            Some(_) | None => Self::Nothing,
        }
    }
}

/// Records the verdict of the person at `client` on the version that they were shown.
pub(crate) fn settle(
    workspace: &Workspace,
    question: &Question,
    client: &str,
    verdict: Verdict,
) -> Result<Settled, ToolError> {
    let (service, plan) = (&workspace.service, &question.plan);
    let person = Caller::new(Actor::person(format!("someone at {client} (elicitation)")));
    let written = match verdict {
        Verdict::Approve(note) => service.approve(&person, plan, question.version, &note, Guard::NONE),
        Verdict::Reject(reason) => service.reject(&person, plan, &reason, Guard::NONE),
        Verdict::Nothing => return Ok(Settled::Open),
    };
    match written {
        Ok(_) => Ok(Settled::Decided),
        Err(ServiceError::Refused(Refusal::NotWhatWasLookedAt { .. })) => {
            let now = Question::about(workspace, plan, &question.message)?;
            let phase = service.read(plan, |plan| plan.state().phase)?;
            Ok(if phase == Phase::AwaitingApproval { Settled::Changed(now) } else { Settled::Decided })
        }
        // Another answer came first.
        Err(ServiceError::Refused(_)) => Ok(Settled::Decided),
        Err(error) => Err(error.into()),
    }
}

/// Runs [`settle`] on a blocking thread.
pub(crate) async fn settle_blocking(
    workspace: &Arc<Workspace>,
    question: &Question,
    client: &str,
    verdict: Verdict,
) -> Result<Settled, ToolError> {
    let (workspace, question, client) = (Arc::clone(workspace), question.clone(), client.to_owned());
    let settled = tokio::task::spawn_blocking(move || settle(&workspace, &question, &client, verdict));
    settled.await.map_err(|error| ToolError::new(format!("the answer was lost: {error}"), "ask again"))?
}

fn question(plan: &Plan, config: &Config, message: &str) -> String {
    let spec = plan.spec();
    let title = if spec.title.is_empty() { &spec.goal } else { &spec.title };
    let title = if title.trim().is_empty() { "(untitled)".to_owned() } else { plain(title) };
    let tasks = plan.len();
    let mut text = format!(
        "May this plan run? \"{title}\" (plan {}, version {}, {tasks} {})",
        plan.id(),
        plan.version(),
        if tasks == 1 { "task" } else { "tasks" },
    );
    let machines = machines(plan, config);
    if machines.is_empty() {
        text.push_str("\nMachines would run nothing; agents and people work on it.");
    } else {
        let named = machines.iter().take(MACHINES_SHOWN_MAX).map(|(name, count)| format!("{name} ×{count}"));
        let named: Vec<String> = named.collect();
        let rest = machines.len() - named.len();
        let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
        let _infallible = write!(text, "\nMachines would run: {}{more}.", named.join(", "));
    }
    if !message.trim().is_empty() {
        let _infallible = write!(text, "\nThe agent says: {}", plain(message));
    }
    text
}

/// Counts the unfinished work and checks that machines would run, by executor name and the operator's command for it.
fn machines(plan: &Plan, config: &Config) -> BTreeMap<String, usize> {
    let by_default = config.default_executor.as_ref().map(|executor| Work {
        executor: executor.clone(),
        inputs: Json::empty_object(),
        shape: None,
    });
    let mut machines = BTreeMap::new();
    let unfinished = plan.tasks().map(|(task, _)| task).filter(|task| !task.state.status.is_finished());
    for Task { spec, .. } in unfinished {
        let is_leaf = || plan.children(spec.id.as_str()).is_empty();
        let work = spec.work.as_deref().or_else(|| by_default.as_ref().filter(|_| is_leaf()));
        if let Some(work) = work {
            let words = executor_words(&work.executor, &preview_of_work(config, work));
            *machines.entry(words).or_default() += 1;
        }
        if let Some(check) = &spec.check {
            let words = executor_words(&check.executor, &preview_of_check(config, check));
            *machines.entry(format!("check {words}")).or_default() += 1;
        }
    }
    machines
}

fn executor_words(name: &str, runs: &str) -> String {
    let (name, runs) = (plain(name), plain(runs));
    // A preview that is not a program is in parentheses already.
    if runs.starts_with('(') { format!("{name} {runs}") } else { format!("{name} ({runs})") }
}

/// Reduces a text by others to one line without double quotes, so that nothing in it can pass for Waypost's own text.
fn plain(text: &str) -> String {
    excerpt(&text.replace('"', "'"), SHOWN_COLUMNS_MAX).into_owned()
}
