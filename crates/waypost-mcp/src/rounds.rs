//! Calls of tools that go on in a later request: clients of the newest protocol are not asked by the server, but get "input
//! required" for an answer, ask the person, and call again with what they said.
//!
//! What is known of a call stays here; the client only holds a handle to it, so that nothing that it sends back is believed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ElicitRequest, ElicitResult, InputRequest, InputRequests, InputRequiredResult, JsonObject,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use waypost_core::Actor;

use crate::asking::{Put, Question, Verdict};
use crate::gone::Gone;
use crate::refused::Refused;
use crate::tool::Answer;
use crate::workspace::Workspace;

/// Calls that wait for their next round.
pub(crate) const ROUNDS_WAITING_MAX: usize = 64;
/// The name of the question in the client's answer.
const APPROVAL: &str = "approval";
/// Random bytes of a handle.
const HANDLE_BYTES: usize = 16;

/// A tool at work.
pub(crate) struct Running {
    pub(crate) answer: JoinHandle<Result<Answer, Refused>>,
    pub(crate) questions: mpsc::UnboundedReceiver<Put>,
    pub(crate) gone: Arc<Gone>,
    pub(crate) workspace: Arc<Workspace>,
}

/// Which call it was: the next round has to be the same.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Which {
    pub(crate) by: Actor,
    pub(crate) tool: String,
    pub(crate) arguments: JsonObject,
}

/// A call between two rounds.
pub(crate) struct Parked {
    pub(crate) which: Which,
    pub(crate) running: Running,
    pub(crate) put: Put,
    order: u64,
}

/// All calls between two rounds.
#[derive(Default)]
pub(crate) struct Rounds {
    parked: Mutex<(u64, BTreeMap<String, Parked>)>,
}

impl Rounds {
    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<String, Parked>)> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a call until the client comes back, and says what it is to ask.
    pub(crate) fn park(
        &self,
        which: Which,
        running: Running,
        put: Put,
    ) -> Result<InputRequiredResult, Refused> {
        let cannot =
            |what: String| Refused::new(what, "to answer in a terminal a person runs `waypost approve`");
        let form =
            put.question.form().map_err(|error| cannot(format!("the question cannot be put: {error}")))?;
        let mut bytes = [0_u8; HANDLE_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| cannot(format!("no random numbers: {error}")))?;
        let handle: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut parked = self.lock();
        parked.0 += 1;
        let order = parked.0;
        parked.1.insert(handle.clone(), Parked { which, running, put, order });
        if parked.1.len() > ROUNDS_WAITING_MAX {
            // The oldest has been left: its plan goes on waiting, and only its answer is lost.
            let oldest = parked.1.iter().min_by_key(|(_, call)| call.order).map(|(handle, _)| handle.clone());
            if let Some(left) = oldest.and_then(|oldest| parked.1.remove(&oldest)) {
                left.running.gone.leave();
            }
        }
        let asked = InputRequest::Elicitation(ElicitRequest::new(form));
        Ok(InputRequiredResult::new(Some(InputRequests::from([(APPROVAL.to_owned(), asked)])), Some(handle)))
    }

    /// The call that a handle stands for, if this is its next round.
    pub(crate) fn take(&self, handle: &str, which: &Which) -> Result<Parked, Refused> {
        let mut parked = self.lock();
        match parked.1.get(handle) {
            Some(call) if call.which == *which => {}
            Some(_) | None => {
                let message = "nothing waits for this answer any more";
                return Err(Refused::new(message, "call the tool again without it"));
            }
        }
        parked.1.remove(handle).ok_or_else(|| Refused::new("it is gone", "call the tool again"))
    }
}

/// What the person said, as the client tells it.
pub(crate) fn verdict(responses: Option<&BTreeMap<String, Value>>) -> Verdict {
    let answer = responses.and_then(|responses| responses.get(APPROVAL));
    let answer = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
    answer.map_or(Verdict::Nothing, |answer| Verdict::of(&answer))
}

impl Parked {
    /// What was asked.
    pub(crate) fn question(&self) -> &Question {
        &self.put.question
    }
}
