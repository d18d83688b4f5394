//! The approval question that elicitation puts to the person at a client, and the meaning of their answer: it counts only for the
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

/// Columns of a text of the plan that a person is shown.
const SHOWN_COLUMNS_MAX: usize = 200;
/// Executors and checks that a person is shown by name.
const MACHINES_SHOWN_MAX: usize = 12;
/// Bytes of a reason that is kept.
const REASON_BYTES_MAX: usize = 1_000;

/// What a person is asked, about one version of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) plan: PlanId,
    /// The version that is shown: an answer is about no other.
    pub(crate) version: u64,
    /// Why the agent asks.
    pub(crate) message: String,
    text: String,
}

/// A question on its way to the client.
pub(crate) struct PendingQuestion {
    pub(crate) question: Question,
    /// Told when somebody has answered elsewhere; closed when nobody waits for the answer any more.
    pub(crate) settled: oneshot::Receiver<()>,
}

/// Where a tool puts its questions.
pub(crate) struct QuestionSender {
    pub(crate) questions: mpsc::UnboundedSender<PendingQuestion>,
    /// Whether the client asks only while the call waits for the answer.
    pub(crate) only_while_waiting: bool,
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Run it.
    Approve(String),
    /// Do not run it.
    Reject(String),
    /// Neither: they dismissed the question, or the client could not ask.
    Nothing,
}

/// What came of an answer.
#[derive(Debug)]
pub(crate) enum Settled {
    /// It is decided, by this answer or by another.
    Decided,
    /// The plan is another one by now: this is what would have to be asked.
    Changed(Question),
    /// It still waits.
    Open,
}

impl Question {
    /// What a person has to know of the plan as it stands.
    pub(crate) fn about(workspace: &Workspace, plan: &PlanId, message: &str) -> Result<Self, ServiceError> {
        workspace.service.read(plan, |found| Self {
            plan: plan.clone(),
            version: found.version(),
            message: message.to_owned(),
            text: question(found, &workspace.config, message),
        })
    }

    /// As the protocol has it: a choice without a preset, so that nobody approves by pressing Enter.
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
    /// What an answer of the protocol means. Whatever is not plainly one of the two is neither.
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

/// Writes down what a person at `client` said of the version that they were shown.
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
        // Somebody else was faster.
        Err(ServiceError::Refused(_)) => Ok(Settled::Decided),
        Err(error) => Err(error.into()),
    }
}

/// The same, for those who may not wait.
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

/// What machines would still run, each with how often: the name of its executor and what the operator gave it to run.
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
    // What is no program stands in brackets already.
    if runs.starts_with('(') { format!("{name} {runs}") } else { format!("{name} ({runs})") }
}

/// One line of a text that somebody else wrote: nothing in it can pass for ours, and ours are the quotation marks around it.
fn plain(text: &str) -> String {
    excerpt(&text.replace('"', "'"), SHOWN_COLUMNS_MAX).into_owned()
}
