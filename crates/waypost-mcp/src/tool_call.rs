//! One tool call: the caller, the arguments, the workspace and the client behind it.

use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use waypost_core::{Actor, Phase, Plan, PlanId};
use waypost_service::{Caller, Service, ServiceError};

use crate::elicitation::question::{PendingQuestion, Question, QuestionSender};
use crate::reply_text;
use crate::sampling::Sampler;
use crate::tool_error::ToolError;
use crate::workspace::Workspace;

/// Bytes of why an argument does not fit.
const MISFIT_BYTES: usize = 300;

/// One call of a tool.
pub(crate) struct Call {
    pub(crate) workspace: Arc<Workspace>,
    /// The agent who calls, never a person whatever it says, and the session under whose name it holds tasks.
    pub(crate) caller: Caller,
    pub(crate) arguments: Map<String, Value>,
    /// The program at the other end, which may be able to ask a person.
    pub(crate) client: Client,
    /// The plan that this session made, named or took a task of last: two sessions of one agent mean their own.
    pub(crate) recent: Arc<Mutex<Option<PlanId>>>,
}

/// The program at the other end of a call.
pub(crate) struct Client {
    /// Where questions for the person who sits there are put; nothing where nobody can be asked.
    pub(crate) question_sender: Option<QuestionSender>,
    /// Its own model, where it lets that be asked.
    pub(crate) model: Option<Sampler>,
    /// Set when nobody waits for the answer any more.
    pub(crate) gone: Box<dyn Fn() -> bool + Send>,
}

impl Client {
    /// Puts a question to the person there, if they can be asked. Returns how to tell that it needs no answer any more.
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
    /// The arguments as `T`; what does not fit is named.
    pub(crate) fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        serde_path_to_error::deserialize(Value::Object(self.arguments.clone())).map_err(|error| {
            let path = error.path().to_string();
            let what = if path == "." { "invalid arguments".to_owned() } else { path };
            let why = reply_text::cut(&error.into_inner().to_string(), MISFIT_BYTES);
            ToolError::new(format!("{what}: {why}"), "see the tool's input schema")
        })
    }

    /// The agent who calls.
    pub(crate) fn by(&self) -> &Actor {
        &self.caller.actor
    }

    /// All acts on plans.
    pub(crate) fn service(&self) -> &Service {
        &self.workspace.service
    }

    /// Reads a plan.
    pub(crate) fn read<R>(&self, plan: &PlanId, read: impl FnOnce(&Plan) -> R) -> Result<R, ServiceError> {
        self.service().read(plan, read)
    }

    /// The same with the latest progress of its tasks.
    pub(crate) fn read_with_progress<R>(
        &self,
        plan: &PlanId,
        read: impl FnOnce(&Plan) -> R,
    ) -> Result<R, ServiceError> {
        self.service().read_with_progress(plan, read)
    }

    /// The plan that an id or its beginning names.
    pub(crate) fn plan(&self, id: &str) -> Result<PlanId, ServiceError> {
        self.service().resolve_plan(id)
    }

    /// From now on the session means this plan when it names none, if it is the caller's own.
    pub(crate) fn remember(&self, plan: &PlanId) -> Result<(), ToolError> {
        if self.read(plan, |plan| plan.spec().owner == self.by().name)? {
            *self.recent.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan.clone());
        }
        Ok(())
    }

    /// The plan that this session means if it has not ended; otherwise the caller's own newest that has not, if any.
    pub(crate) fn own_plan(&self) -> Result<Option<PlanId>, ToolError> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(plan) = recent {
            let is_open = |plan: &Plan| !(plan.state().phase.is_finished() || plan.state().archived);
            match self.read(&plan, is_open) {
                Ok(true) => return Ok(Some(plan)),
                // Ended, or of another workspace.
                Ok(false) | Err(ServiceError::NoSuchPlan(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.workspace
            .newest(self.by(), Phase::ALL.into_iter().filter(|phase| !phase.is_finished()).collect())
    }

    /// The caller's own newest plan, be it one that has ended.
    pub(crate) fn latest_plan(&self) -> Result<Option<PlanId>, ToolError> {
        self.workspace.newest(self.by(), Vec::new())
    }
}
