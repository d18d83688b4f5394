//! Elicitation by `input_required` results: clients of the newest protocol receive one, ask the person, and repeat the call with
//! the answer. The call is suspended meanwhile.
//!
//! The state of a call stays in the server; the client holds only a handle, so nothing that it sends back has to be trusted.

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

/// Maximum number of suspended calls; beyond it the oldest is cancelled.
pub(crate) const SUSPENDED_CALLS_MAX: usize = 64;
/// The key of the question in the client's input responses.
const APPROVAL: &str = "approval";
/// Random bytes in a handle.
const HANDLE_BYTES: usize = 16;

/// A tool call in progress.
pub(crate) struct RunningCall {
    pub(crate) answer: JoinHandle<Result<Answer, ToolError>>,
    pub(crate) questions: mpsc::UnboundedReceiver<PendingQuestion>,
    pub(crate) gone: Arc<CancelFlag>,
    /// Set when the person at the client has dismissed the question.
    pub(crate) dismissed: Arc<CancelFlag>,
    pub(crate) workspace: Arc<Workspace>,
}

/// Identifies a call: the next round must have the same key.
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

/// All calls between two rounds, by handle.
#[derive(Default)]
pub(crate) struct PendingCalls {
    suspended: Mutex<(u64, BTreeMap<String, SuspendedCall>)>,
}

impl PendingCalls {
    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<String, SuspendedCall>)> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a call until its next round, and returns the question for the client.
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
            // The oldest call counts as abandoned: its plan keeps waiting for approval, and only the call's result is lost.
            let oldest =
                suspended.1.iter().min_by_key(|(_, call)| call.order).map(|(handle, _)| handle.clone());
            if let Some(left) = oldest.and_then(|oldest| suspended.1.remove(&oldest)) {
                left.running.gone.cancel();
            }
        }
        let asked = InputRequest::Elicitation(ElicitRequest::new(form));
        Ok(InputRequiredResult::new(Some(InputRequests::from([(APPROVAL.to_owned(), asked)])), Some(handle)))
    }

    /// Removes and returns the call of a handle, if `key` shows that this is its next round.
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

/// Reads the person's verdict from the client's input responses.
pub(crate) fn verdict(responses: Option<&BTreeMap<String, Value>>) -> Verdict {
    let answer = responses.and_then(|responses| responses.get(APPROVAL));
    let answer = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
    answer.map_or(Verdict::Nothing, |answer| Verdict::of(&answer))
}

impl SuspendedCall {
    pub(crate) fn question(&self) -> &Question {
        &self.pending.question
    }
}
