//! One tool call: the caller, the arguments, the workspace and the client behind it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use waypost_core::{Actor, Dependency, ExternalTaskRef, Phase, Plan, PlanId, Refusal, TaskId};
use waypost_service::{Caller, Service, ServiceError};
use waypost_store::TargetStatus;

use crate::cancellation::CancelFlag;
use crate::elicitation::question::{PendingQuestion, Question, QuestionSender};
use crate::hints;
use crate::reply_text;
use crate::sampling::Sampler;
use crate::tool_error::ToolError;
use crate::workspace::Workspace;
use crate::workspace_files::Files;

/// Maximum bytes of the reason why an argument does not fit.
const MISFIT_BYTES: usize = 300;
/// Maximum number of dependencies on other agents whose plans a reply names.
const RESOLVED_MAX: usize = 20;

pub(crate) struct Call {
    pub(crate) workspace: Arc<Workspace>,
    /// The calling agent, never a person whatever it claims, and the session under whose name it holds leases.
    pub(crate) caller: Caller,
    pub(crate) arguments: Map<String, Value>,
    /// The calling program, which may be able to ask a person.
    pub(crate) client: Client,
    /// Whether the call came over HTTP, from a caller that may be on another machine.
    pub(crate) over_http: bool,
    /// The plan that this session works on. Each session of an agent has its own.
    pub(crate) session: Arc<Mutex<SessionPlan>>,
}

/// The plan of the caller that a session works on.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionPlan {
    plan: Option<PlanId>,
    /// Whether the session created, named or changed it; otherwise the session has only read it.
    is_its_own: bool,
    /// The plan whose start the session has been told.
    pub(crate) started: Option<PlanId>,
}

impl SessionPlan {
    /// The plan that the session works on, or has read.
    pub(crate) fn id(&self) -> Option<PlanId> {
        self.plan.clone()
    }
}

/// A plan of the caller that was archived, and who did it, if that is known.
pub(crate) struct ArchivedPlan {
    pub(crate) plan: PlanId,
    pub(crate) title: String,
    pub(crate) by: Option<Actor>,
}

impl ArchivedPlan {
    /// Names the author of the archiving after the word "archived"; empty if it is not known.
    pub(crate) fn by_whom(&self) -> String {
        self.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default()
    }
}

/// Names a task of another agent as its author does: `agent:task`. `None` if the reference names no agent.
pub(crate) fn agent_task(there: &ExternalTaskRef) -> Option<String> {
    there.agent.as_ref().map(|agent| format!("{agent}:{}", there.task))
}

/// The program at the other end of a call.
pub(crate) struct Client {
    /// Carries questions to the person at the client; `None` if the client cannot ask.
    pub(crate) question_sender: Option<QuestionSender>,
    /// The client's own model, if the client supports sampling.
    pub(crate) model: Option<Sampler>,
    /// Whether the client has cancelled the call.
    pub(crate) gone: Box<dyn Fn() -> bool + Send>,
    /// Set when the person at the client has dismissed the question.
    pub(crate) dismissed: Arc<CancelFlag>,
}

impl Client {
    /// Puts a question to the person at the client, if possible. Send on the returned channel to withdraw the question.
    pub(crate) fn ask(
        &self,
        waits: bool,
        question: impl FnOnce() -> Result<Question, ToolError>,
    ) -> Result<Option<oneshot::Sender<()>>, ToolError> {
        let Some(question_sender) = self
            .question_sender
            .as_ref()
            .filter(|question_sender| waits || !question_sender.only_while_waiting)
        else {
            return Ok(None);
        };
        let (tell, settled) = oneshot::channel();
        let sent = question_sender.questions.send(PendingQuestion { question: question()?, settled });
        Ok(sent.is_ok().then_some(tell))
    }
}

impl Call {
    /// Parses the arguments as `T`. The error names the argument that does not fit.
    pub(crate) fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        serde_path_to_error::deserialize(Value::Object(self.arguments.clone())).map_err(|error| {
            let path = error.path().to_string();
            let why = waypost_text::plain_parse_error(&path, &error.into_inner().to_string());
            let what = if why.starts_with(&format!("{path}: ")) { "" } else { "invalid arguments: " };
            let why = reply_text::cut(&why, MISFIT_BYTES);
            ToolError::new(format!("{what}{why}"), "see the tool's input schema")
        })
    }

    /// The calling agent.
    pub(crate) fn by(&self) -> &Actor {
        &self.caller.actor
    }

    /// The service for all operations on plans.
    pub(crate) fn service(&self) -> &Service {
        &self.workspace.service
    }

    /// The workspace's files, as the caller may use them.
    pub(crate) fn files(&self) -> Files<'_> {
        Files { workspace: &self.workspace, over_http: self.over_http }
    }

    pub(crate) fn read<R>(&self, plan: &PlanId, read: impl FnOnce(&Plan) -> R) -> Result<R, ServiceError> {
        self.service().read(plan, read)
    }

    /// Reads all that is intact of a plan, with warnings about damage.
    pub(crate) fn view<R>(
        &self,
        plan: &PlanId,
        look: impl FnOnce(&Plan, &[String]) -> R,
    ) -> Result<R, ServiceError> {
        self.service().view(plan, look)
    }

    /// Names a command that a person has to run, or where the caller may be on another machine, what the person does.
    pub(crate) fn person_runs(&self, command: &str) -> String {
        let words = format!("a person runs `waypost {command}`");
        if self.over_http { hints::for_remote(&words) } else { words }
    }

    /// Returns the plan with this id or id prefix.
    pub(crate) fn plan(&self, id: &str) -> Result<PlanId, ServiceError> {
        self.service().resolve_plan(id)
    }

    /// The state of the session that the call belongs to.
    pub(crate) fn session(&self) -> MutexGuard<'_, SessionPlan> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this plan the session's default for calls that name none, if it is the caller's own.
    pub(crate) fn remember(&self, plan: &PlanId) -> Result<(), ToolError> {
        if self.view(plan, |plan, _| plan.spec().owner == self.by().name)? {
            let mut session = self.session();
            (session.plan, session.is_its_own) = (Some(plan.clone()), true);
        }
        Ok(())
    }

    /// Notes that the session has read this plan of the caller, unless it works on one: its next calls mean the same plan,
    /// whatever other sessions of the agent create meanwhile.
    pub(crate) fn note_read(&self, plan: &PlanId) {
        let mut session = self.session();
        if !session.is_its_own {
            session.plan = Some(plan.clone());
        }
    }

    /// Returns the plan that the session works on, and whether it is the session's own or only read. `None` if there is no
    /// such plan in this workspace, or it belongs to another agent now.
    pub(crate) fn session_plan(&self) -> Result<Option<(PlanId, bool)>, ToolError> {
        let SessionPlan { plan, is_its_own, .. } = self.session().clone();
        let Some(plan) = plan else { return Ok(None) };
        match self.view(&plan, |plan, _| plan.spec().owner == self.by().name) {
            Ok(is_the_callers) => Ok(is_the_callers.then_some((plan, is_its_own))),
            Err(ServiceError::NoSuchPlan(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the caller's sessions are told apart. Requests of a protocol without sessions all share one.
    pub(crate) fn has_session(&self) -> bool {
        self.caller.worker != self.by().to_string()
    }

    /// Returns the plan that the session works on, even if it has ended or was archived: another may be that of another session.
    /// A session that works on none gets the one that it has read, if that is open, otherwise the caller's newest open plan,
    /// otherwise its newest.
    pub(crate) fn own_plan(&self) -> Result<Option<PlanId>, ToolError> {
        let SessionPlan { plan, is_its_own, .. } = self.session().clone();
        if let Some(plan) = plan {
            let is_open =
                |plan: &Plan, _: &[String]| !(plan.state().phase.is_finished() || plan.state().archived);
            match self.view(&plan, is_open) {
                Ok(is_open) if is_open || is_its_own => return Ok(Some(plan)),
                // Only read and over, or of another workspace.
                Ok(_) | Err(ServiceError::NoSuchPlan(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let found = match self.workspace.newest(self.by(), Phase::OPEN.to_vec())? {
            Some(open) => Some(open),
            None => self.workspace.newest(self.by(), Vec::new())?,
        };
        found.iter().for_each(|plan| self.note_read(plan));
        Ok(found)
    }

    /// Returns the caller's plan that was archived while it could expect to go on with it: that of the session, or for a session
    /// without one, the caller's latest, unless it had ended.
    pub(crate) fn archived_plan(&self) -> Result<Option<ArchivedPlan>, ToolError> {
        let plan = match self.session_plan()? {
            Some((plan, _)) => plan,
            None => match self.workspace.latest_archived(self.by())? {
                Some(plan) => plan,
                None => return Ok(None),
            },
        };
        let (archived, title) =
            self.view(&plan, |plan, _| (plan.state().archived, plan.spec().title.clone()))?;
        if !archived {
            return Ok(None);
        }
        let by = self.service().archived_by(&plan)?;
        Ok(Some(ArchivedPlan { plan, title, by }))
    }

    /// Returns the plans that a task's dependencies on other agents mean, by agent and task: the plan that has delivered, or the
    /// open plan that has the task.
    pub(crate) fn resolved_to(&self, plan: &PlanId, task: &TaskId) -> Result<Map<String, Value>, ToolError> {
        let dependencies = self.view(plan, |plan, _| {
            let Some(task) = plan.task(task.as_str()) else { return Vec::new() };
            let there = task.spec.depends_on.iter().filter_map(Dependency::external);
            let named = there.filter_map(|there| Some((agent_task(there)?, there))).take(RESOLVED_MAX);
            let heard = |there: &ExternalTaskRef| task.state.received.get(&there.key())?.plan.clone();
            named.map(|(name, there)| (name, there.clone(), heard(there))).collect()
        })?;
        let mut resolved = Map::new();
        for (name, there, heard) in dependencies {
            let meant = match heard.or_else(|| there.plan.clone()) {
                Some(plan) => Some(plan),
                None => {
                    let found = self.workspace.plans().target_status(plan, Some(task), &there)?;
                    if let TargetStatus::There { plan, .. } = found { Some(plan) } else { None }
                }
            };
            resolved.extend(meant.map(|meant| (name, meant.as_str().into())));
        }
        Ok(resolved)
    }

    /// The error for a refused change of a plan. If the plan is archived, it says which one, and who archived it.
    pub(crate) fn refused(&self, plan: &PlanId, error: ServiceError) -> ToolError {
        let is_archived = matches!(error, ServiceError::Refused(Refusal::Archived { .. }));
        let mut told = ToolError::from(error);
        match self.service().archived_by(plan) {
            Ok(Some(by)) if is_archived => {
                told.message = format!("plan {plan} was archived by {by}");
                told.with_fact("plan", plan.as_str()).with_fact("archived_by", by.to_string())
            }
            Ok(_) | Err(_) => told,
        }
    }
}
