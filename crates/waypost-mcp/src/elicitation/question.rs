//! The approval question that elicitation puts to the person at a client, and the meaning of the answer: it counts only for the
//! version that was shown, and only if it is explicit.

use std::fmt::Write as _;
use std::sync::Arc;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use waypost_core::{Actor, Phase, Plan, PlanId, Proof};
use waypost_service::{Caller, Guard, Presence, Preview, PreviewGroup, Seen, ServiceError, short_digest};
use waypost_text::{excerpt, reveal, truncate_bytes};

use crate::tool_error::ToolError;
use crate::workspace::Workspace;

/// Maximum columns of a text from the plan in the question.
const SHOWN_COLUMNS_MAX: usize = 200;
/// Maximum number of tasks for machines in the question. A plan with more cannot be approved by answering it.
const TASKS_SHOWN_MAX: usize = 50;
/// Maximum bytes of a reason; the rest is cut.
const REASON_BYTES_MAX: usize = 1_000;

/// An approval question about one version of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) plan: PlanId,
    /// What the person is shown; the answer applies to nothing else.
    pub(crate) seen: Seen,
    /// Whether everything fits into the question. Otherwise it cannot be approved here.
    is_whole: bool,
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
    /// The person dismissed the question.
    Dismiss,
    /// The client could not ask, or its answer says nothing.
    Nothing,
}

/// The result of settling a question.
#[derive(Debug)]
pub(crate) enum Settled {
    /// The plan is decided, by this answer or by another.
    Decided,
    /// The plan has changed: this question would have to be asked instead.
    Changed(Question),
    /// The person dismissed the question; the plan still waits for a decision.
    Dismissed,
    /// The plan still waits for a decision.
    Open,
}

impl Question {
    /// Builds the question from the current version of the plan.
    pub(crate) fn about(workspace: &Workspace, plan: &PlanId, message: &str) -> Result<Self, ServiceError> {
        let preview = workspace.service.preview(plan)?;
        workspace.service.read(plan, |found| Self {
            plan: plan.clone(),
            seen: preview.seen(),
            is_whole: tasks_shown(&preview) <= TASKS_SHOWN_MAX,
            message: message.to_owned(),
            text: question(found, &preview, message),
        })
    }

    /// The question in the protocol's form: a choice without a default, so that pressing Enter approves nothing.
    pub(crate) fn form(&self) -> Result<ElicitRequestParams, serde_json::Error> {
        let choices = if self.is_whole { json!(["approve", "reject"]) } else { json!(["reject"]) };
        let schema = json!({
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "description": "approve: machines and agents may run it; reject: they may not",
                    "enum": choices,
                },
                "reason": { "type": "string", "title": "Reason", "description": "Why, or what to watch out for; needed to reject" },
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
    /// Interprets the protocol's answer. Anything but an explicit `approve` or `reject` approves and rejects nothing.
    pub(crate) fn of(answer: &ElicitResult) -> Self {
        match answer.action {
            ElicitationAction::Accept => {}
            ElicitationAction::Decline | ElicitationAction::Cancel => return Self::Dismiss,
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
    let presence = Presence { proof: Proof::Client, via: format!("elicitation:{client}") };
    let person = Caller::new(Actor::person(format!("someone at {client} (elicitation)"))).present(presence);
    let written = match verdict {
        Verdict::Approve(_) if !question.is_whole => return Ok(Settled::Open),
        Verdict::Approve(note) => service.approve(&person, plan, question.seen.clone(), &note, Guard::NONE),
        Verdict::Reject(reason) => service.reject(&person, plan, &reason, Guard::NONE),
        Verdict::Dismiss => return Ok(Settled::Dismissed),
        Verdict::Nothing => return Ok(Settled::Open),
    };
    match written {
        Ok(_) => Ok(Settled::Decided),
        // A rejection without a reason is asked for again, too.
        Err(ServiceError::ChangedSinceSeen { .. } | ServiceError::Invalid { .. }) => {
            let now = Question::about(workspace, plan, &question.message)?;
            let phase = service.read(plan, |plan| plan.state().phase)?;
            Ok(if phase == Phase::AwaitingApproval { Settled::Changed(now) } else { Settled::Decided })
        }
        // Another answer came first.
        Err(ServiceError::Refused(_) | ServiceError::NotApproved { .. }) => Ok(Settled::Decided),
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

fn question(plan: &Plan, preview: &Preview, message: &str) -> String {
    let spec = plan.spec();
    let title = if spec.title.is_empty() { &spec.goal } else { &spec.title };
    let title = if title.trim().is_empty() { "(untitled)".to_owned() } else { plain(title) };
    let tasks = plan.len();
    let mut text = format!(
        "May this plan run? \"{title}\" (plan {}, version {}, {tasks} {}, digest {})",
        plan.id(),
        plan.version(),
        if tasks == 1 { "task" } else { "tasks" },
        short_digest(&preview.digest),
    );
    for (name, said) in &preview.about {
        let _infallible = write!(text, "\n{name}: {}", shown(said));
    }
    if preview.total == 0 {
        text.push_str("\nMachines would run nothing; agents and people work on it.");
    } else if tasks_shown(preview) > TASKS_SHOWN_MAX {
        let _infallible = write!(
            text,
            "\nMachines would run {} tasks, too many to show here. Approve it in a terminal or in the dashboard.",
            preview.total
        );
    } else {
        text.push_str("\nMachines would run:");
        preview.groups.iter().for_each(|group| add_group(&mut text, group));
    }
    if !message.trim().is_empty() {
        let _infallible = write!(text, "\nThe agent says: {}", plain(message));
    }
    text
}

/// The number of tasks in the question, with those whose words are only read.
fn tasks_shown(preview: &Preview) -> usize {
    preview.groups.iter().map(|group| group.tasks.len()).sum()
}

/// Adds every task of a group with everything that its author passes to the program; how the program runs is said once.
fn add_group(text: &mut String, group: &PreviewGroup) {
    let warnings: Vec<&str> = group.risks.iter().map(|risk| risk.describe()).collect();
    let warnings = if warnings.is_empty() { String::new() } else { format!(" [{}]", warnings.join(", ")) };
    for (index, task) in group.tasks.iter().enumerate() {
        let _infallible = write!(text, "\n- {}: {}{warnings}", shown(&task.id), shown(&group.program));
        for (name, said) in group.settings.iter().filter(|_| index == 0) {
            // The configuration's own lines. Those of a prompt are deeper than its key.
            let lines: Vec<_> = said.lines().map(shown).collect();
            let _infallible = write!(text, "\n    {name}: {}", lines.join("\n      "));
        }
        for (name, said) in &task.particulars {
            let _infallible = write!(text, "\n    {name}: {}", shown(said));
        }
    }
}

/// Shows a text by others exactly, on one line below what it is about, so that nothing in it can pass for Waypost's own
/// text.
fn shown(text: &str) -> String {
    reveal(text).into_owned()
}

/// Reduces a text by others to one line without double quotes, so that nothing in it can pass for Waypost's own text.
fn plain(text: &str) -> String {
    excerpt(&text.replace('"', "'"), SHOWN_COLUMNS_MAX).into_owned()
}
