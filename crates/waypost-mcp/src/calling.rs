//! One call of a tool, from the request to its answer: the tool runs on a thread that may wait, and what it wants to ask a
//! person goes to the client meanwhile, or between two rounds of the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, InputRequest,
    InputRequests, InputRequiredResult,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use waypost_core::nearest;
use waypost_store::meters;

use crate::asking::{Desk, Settled, settle_aside};
use crate::call::{Call, Client};
use crate::dialogue::Asker;
use crate::gone::Gone;
use crate::ground::uris;
use crate::identity::NOBODY;
use crate::refused::Refused;
use crate::rounds::{Running, Which, verdict};
use crate::sampling::Sampler;
use crate::server::{CALLS_MAX, Server, client_name, visitor};
use crate::tool::Answer;
use crate::words;
use crate::workspace::Workspace;

/// Bytes of the name of an unknown tool that are said again.
const TOOL_BYTES: usize = 80;
/// The name of the roots in a client's answer.
const ROOTS: &str = "roots";

/// Sets that nobody waits any more when the request is dropped.
struct Attention(Option<Arc<Gone>>);

impl Attention {
    /// The call goes on although this request ends.
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Attention {
    fn drop(&mut self) {
        if let Some(gone) = &self.0 {
            gone.leave();
        }
    }
}

impl Server {
    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(&place) = self.shared.by_name.get(&*request.name) else {
            return Err(ErrorData::invalid_params(self.no_tool(&request.name), None));
        };
        let visitor = visitor(&context);
        if let Some(told) = told_roots(request.input_responses.as_ref()) {
            self.shared.ground.tell(&uris(&told)).await;
        } else if self.shared.ground.must_be_told(&visitor).await {
            return Ok(CallToolResponse::InputRequired(which_roots()));
        }
        let workspace = match self.shared.ground.workspace(&visitor).await {
            Ok(workspace) => workspace,
            Err(refused) => return Ok(CallToolResponse::Complete(result(Err(refused)))),
        };
        let which = Which {
            by: self.caller(&context),
            tool: request.name.to_string(),
            arguments: request.arguments.unwrap_or_default(),
        };
        if let Some(handle) = request.request_state.as_deref().filter(|state| *state != ROOTS) {
            let answers = request.input_responses.as_ref();
            return self.next_round(handle, which, answers, &context).await.or_else(tell_refused);
        }
        let worker = self.worker(&which.by, &visitor);
        let rounds = visitor.answers_in_rounds();
        let can_ask = visitor.can_ask() && workspace.config.elicitation;
        let name = || client_name(&context).unwrap_or_else(|| NOBODY.to_owned());
        let model = visitor.can_sample().then(|| Sampler::new(context.peer.clone(), name()));
        match self.begin(place, &which, worker, workspace, (can_ask.then_some(rounds), model)) {
            Ok(running) if rounds => self.round(running, which, &context).await.or_else(tell_refused),
            Ok(running) => Ok(CallToolResponse::Complete(result(self.converse(running, &context).await))),
            Err(refused) => tell_refused(refused),
        }
    }

    /// There is no tool of this name: the protocol wants an error of its own for that.
    fn no_tool(&self, name: &str) -> String {
        let known = || self.shared.by_name.keys().copied();
        let hint = match nearest(name, known()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
        };
        format!("there is no tool {}; {hint}", words::cut(name, TOOL_BYTES))
    }

    /// Starts the tool on a thread. `asks` says whether somebody can be asked, and whether only in rounds.
    fn begin(
        &self,
        place: usize,
        which: &Which,
        worker: String,
        workspace: Arc<Workspace>,
        (asks, model): (Option<bool>, Option<Sampler>),
    ) -> Result<Running, Refused> {
        let Ok(permit) = Arc::clone(&self.shared.calls).try_acquire_owned() else {
            let message = format!("{CALLS_MAX} calls are worked on already");
            return Err(Refused::new(message, "wait for one of them, then try again"));
        };
        let (sender, questions) = mpsc::unbounded_channel();
        let gone = Arc::new(Gone::default());
        let seen = Arc::clone(&gone);
        let client = Client {
            desk: asks.map(|only_while_waiting| Desk { questions: sender, only_while_waiting }),
            model,
            gone: Box::new(move || seen.has_left()),
        };
        let (shared, at) = (Arc::clone(&self.shared), Arc::clone(&workspace));
        let (by, arguments, tool) = (which.by.clone(), which.arguments.clone(), which.tool.clone());
        let recent = Arc::clone(&self.session.plan);
        let answer = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let (toolset, found) = &shared.tools[place];
            let call = Call { workspace: at, by, worker, arguments, client, recent };
            let answer = (found.run)(&call).map_err(|refused| refused.with_hints(toolset.hints()));
            let outcome = if answer.is_ok() { "answered" } else { "refused" };
            meters().calls.with([&tool, outcome], |calls| calls.add(1));
            answer
        });
        Ok(Running { answer, questions, gone, workspace })
    }

    /// Waits for the tool, and asks the person at the client what it wants to know meanwhile.
    async fn converse(
        &self,
        mut running: Running,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, Refused> {
        let _attention = Attention(Some(Arc::clone(&running.gone)));
        let mut dialogue = None;
        loop {
            tokio::select! {
                biased;
                Some(put) = running.questions.recv(), if dialogue.is_none() => {
                    let asker = Asker {
                        peer: context.peer.clone(),
                        workspace: Arc::clone(&running.workspace),
                        client: client_name(context).unwrap_or_else(|| NOBODY.to_owned()),
                    };
                    let asked = Arc::clone(&self.shared.dialogues).ask(asker, put);
                    dialogue = asked.map(Box::pin);
                }
                () = async { if let Some(dialogue) = &mut dialogue { dialogue.await } }, if dialogue.is_some() => {
                    dialogue = None;
                }
                answered = &mut running.answer => {
                    // The call did not wait for the person, who may still answer.
                    if let Some(dialogue) = dialogue {
                        tokio::spawn(dialogue);
                    }
                    return flat(answered);
                }
                () = context.ct.cancelled(), if !running.gone.has_left() => running.gone.leave(),
            }
        }
    }

    /// Waits for the tool, or for a question of it, which ends this round.
    async fn round(
        &self,
        mut running: Running,
        which: Which,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Refused> {
        let attention = Attention(Some(Arc::clone(&running.gone)));
        let put = loop {
            tokio::select! {
                biased;
                answered = &mut running.answer => return Ok(CallToolResponse::Complete(result(flat(answered)))),
                Some(put) = running.questions.recv() => break put,
                () = context.ct.cancelled(), if !running.gone.has_left() => running.gone.leave(),
            }
        };
        attention.keep();
        Ok(CallToolResponse::InputRequired(self.shared.rounds.park(which, running, put)?))
    }

    /// Goes on with a call whose client has asked the person.
    async fn next_round(
        &self,
        handle: &str,
        which: Which,
        answers: Option<&BTreeMap<String, Value>>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Refused> {
        let mut parked = self.shared.rounds.take(handle, &which)?;
        let client = client_name(context).unwrap_or_else(|| NOBODY.to_owned());
        let said = verdict(answers);
        match settle_aside(&parked.running.workspace, parked.question(), &client, said).await? {
            Settled::Decided => {}
            Settled::Changed(question) => {
                parked.put.question = question;
                let asked = self.shared.rounds.park(which, parked.running, parked.put)?;
                return Ok(CallToolResponse::InputRequired(asked));
            }
            // They let it be: the call ends, and the plan waits for whoever answers elsewhere.
            Settled::Open => parked.running.gone.leave(),
        }
        self.round(parked.running, which, context).await
    }
}

fn flat(answered: Result<Result<Answer, Refused>, JoinError>) -> Result<Answer, Refused> {
    answered.unwrap_or_else(|error| {
        Err(Refused::new(format!("the tool broke off: {error}"), "look at the plan, then try again"))
    })
}

fn tell_refused(refused: Refused) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResponse::Complete(result(Err(refused))))
}

/// An answer as the protocol has it.
fn result(answer: Result<Answer, Refused>) -> CallToolResult {
    match answer {
        Ok(Answer { value, text }) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(value);
            result
        }
        Err(refused) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(refused.text())]);
            if !refused.facts.is_empty() {
                result.structured_content = Some(Value::Object(*refused.facts));
            }
            result
        }
    }
}

#[expect(deprecated, reason = "the newest protocol has other ways; hosts still tell their folder by roots")]
fn which_roots() -> InputRequiredResult {
    let asked = InputRequest::ListRoots(rmcp::model::ListRootsRequest::default());
    InputRequiredResult::new(Some(InputRequests::from([(ROOTS.to_owned(), asked)])), Some(ROOTS.to_owned()))
}

#[expect(deprecated, reason = "the newest protocol has other ways; hosts still tell their folder by roots")]
fn told_roots(responses: Option<&BTreeMap<String, Value>>) -> Option<rmcp::model::ListRootsResult> {
    let told = responses?.get(ROOTS)?;
    serde_json::from_value(told.clone()).ok()
}
