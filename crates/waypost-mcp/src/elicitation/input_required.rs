//! Elicitation by `input_required` results: clients of the newest protocol get one, ask the person, and call again with the
//! answer. The call is suspended meanwhile.
//!
//! The state of a call stays here; the client only holds a handle to it, so that nothing it sends back has to be trusted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ElicitRequest, ElicitResult, InputRequest, InputRequests, InputRequiredResult, JsonObject,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use waypost_core::Actor;

use crate::cancellation::CancelFlag;
use crate::elicitation::question::{PendingQuestion, Question, Verdict};
use crate::tool::Answer;
use crate::tool_error::ToolError;
use crate::workspace::Workspace;

/// Calls that wait for their next round.
pub(crate) const SUSPENDED_CALLS_MAX: usize = 64;
/// The name of the question in the client's answer.
const APPROVAL: &str = "approval";
/// Random bytes of a handle.
const HANDLE_BYTES: usize = 16;

/// A tool at work.
pub(crate) struct RunningCall {
    pub(crate) answer: JoinHandle<Result<Answer, ToolError>>,
    pub(crate) questions: mpsc::UnboundedReceiver<PendingQuestion>,
    pub(crate) gone: Arc<CancelFlag>,
    pub(crate) workspace: Arc<Workspace>,
}

/// Which call it was: the next round has to be the same.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallKey {
    pub(crate) by: Actor,
    pub(crate) tool: String,
    pub(crate) arguments: JsonObject,
}

/// A call between two rounds.
pub(crate) struct SuspendedCall {
    pub(crate) key: CallKey,
    pub(crate) running: RunningCall,
    pub(crate) pending: PendingQuestion,
    order: u64,
}

/// All calls between two rounds.
#[derive(Default)]
pub(crate) struct PendingCalls {
    suspended: Mutex<(u64, BTreeMap<String, SuspendedCall>)>,
}

impl PendingCalls {
    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<String, SuspendedCall>)> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a call until the client comes back, and says what it is to ask.
    pub(crate) fn suspend(
        &self,
        key: CallKey,
        running: RunningCall,
        pending: PendingQuestion,
    ) -> Result<InputRequiredResult, ToolError> {
        let cannot =
            |what: String| ToolError::new(what, "to answer in a terminal a person runs `waypost approve`");
        let form = pending
            .question
            .form()
            .map_err(|error| cannot(format!("the question cannot be sent: {error}")))?;
        let mut bytes = [0_u8; HANDLE_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| cannot(format!("no random numbers: {error}")))?;
        let handle = waypost_text::hex(&bytes);
        let mut suspended = self.lock();
        suspended.0 += 1;
        let order = suspended.0;
        suspended.1.insert(handle.clone(), SuspendedCall { key, running, pending, order });
        if suspended.1.len() > SUSPENDED_CALLS_MAX {
            // The oldest has been left: its plan goes on waiting, and only its answer is lost.
            let oldest =
                suspended.1.iter().min_by_key(|(_, call)| call.order).map(|(handle, _)| handle.clone());
            if let Some(left) = oldest.and_then(|oldest| suspended.1.remove(&oldest)) {
                left.running.gone.cancel();
            }
        }
        let asked = InputRequest::Elicitation(ElicitRequest::new(form));
        Ok(InputRequiredResult::new(Some(InputRequests::from([(APPROVAL.to_owned(), asked)])), Some(handle)))
    }

    /// The call that a handle stands for, if this is its next round.
    pub(crate) fn resume(&self, handle: &str, key: &CallKey) -> Result<SuspendedCall, ToolError> {
        let mut suspended = self.lock();
        match suspended.1.get(handle) {
            Some(call) if call.key == *key => {}
            Some(_) | None => {
                let message = "no call waits for this answer";
                return Err(ToolError::new(message, "call the tool again without it"));
            }
        }
        suspended.1.remove(handle).ok_or_else(|| ToolError::new("it is gone", "call the tool again"))
    }
}

/// What the person said, as the client tells it.
pub(crate) fn verdict(responses: Option<&BTreeMap<String, Value>>) -> Verdict {
    let answer = responses.and_then(|responses| responses.get(APPROVAL));
    let answer = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
    answer.map_or(Verdict::Nothing, |answer| Verdict::of(&answer))
}

impl SuspendedCall {
    /// What was asked.
    pub(crate) fn question(&self) -> &Question {
        &self.pending.question
    }
}
