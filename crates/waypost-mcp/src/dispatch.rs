//! Dispatch of a tool call, from the request to its result: the tool runs on a blocking thread, and its questions to a person
//! go to the client meanwhile (elicitation), or between two rounds of the call (input required).

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, InputRequest,
    InputRequests, InputRequiredResult,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinError;
use waypost_core::nearest;
use waypost_service::Caller;
use waypost_store::meters;

use crate::cancellation::CancelFlag;
use crate::elicitation::input_required::{CallKey, RunningCall, verdict};
use crate::elicitation::push::{Dismissed, ElicitationTarget};
use crate::elicitation::question::{QuestionSender, Settled, Verdict, settle_blocking};
use crate::identity::NOBODY;
use crate::progress::Progress;
use crate::reply_text;
use crate::sampling::Sampler;
use crate::server::{Server, client_info, client_name};
use crate::tool::Answer;
use crate::tool_call::{Call, Client};
use crate::tool_error::ToolError;
use crate::workspace::Workspace;
use crate::workspace_resolver::uris;

/// Bytes of an unknown tool's name that the error message repeats.
const TOOL_BYTES: usize = 80;
/// The key of the roots in a client's input responses, and the request state of that round.
const ROOTS: &str = "roots";

/// Cancels the call when the request is dropped.
struct CancelOnDrop(Option<Arc<CancelFlag>>);

impl CancelOnDrop {
    /// Lets the call continue although this request ends.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(gone) = &self.0 {
            gone.cancel();
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
        let client_info = client_info(&context);
        if let Some(roots) = roots_in(request.input_responses.as_ref()) {
            self.shared.workspaces.set_roots(&uris(&roots)).await;
        } else if self.shared.workspaces.needs_roots(&client_info).await {
            return Ok(CallToolResponse::InputRequired(roots_required()));
        }
        let workspace = match self.shared.workspaces.workspace(&client_info).await {
            Ok(workspace) => workspace,
            Err(refused) => return Ok(CallToolResponse::Complete(result(Err(refused)))),
        };
        let key = CallKey {
            by: self.caller(&context),
            tool: request.name.to_string(),
            arguments: request.arguments.unwrap_or_default(),
        };
        if let Some(handle) = request.request_state.as_deref().filter(|state| *state != ROOTS) {
            let answers = request.input_responses.as_ref();
            return self.resume_round(handle, key, answers, &context).await.or_else(complete_with_error);
        }
        let caller = Caller::session(key.by.clone(), self.worker(&key.by, &client_info));
        let rounds = client_info.answers_input_required();
        let can_ask = client_info.can_ask() && self.accepts_elicitation(&context, &workspace.config);
        let name = || client_name(&context).unwrap_or_else(|| NOBODY.to_owned());
        let model = client_info.can_sample().then(|| Sampler::new(context.peer.clone(), name()));
        let permit = match self.shared.turns.take().await {
            Ok(permit) => permit,
            Err(refused) => return complete_with_error(refused),
        };
        let running = self.begin(permit, place, &key, caller, workspace, (can_ask.then_some(rounds), model));
        if rounds {
            return self.round(running, key, &context).await.or_else(complete_with_error);
        }
        Ok(CallToolResponse::Complete(result(self.run_with_elicitation(running, &context).await)))
    }

    /// Returns the message for an unknown tool name. The protocol requires a protocol error for it, not a tool result.
    fn no_tool(&self, name: &str) -> String {
        let known = || self.shared.by_name.keys().map(String::as_str);
        let hint = match nearest(name, known()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known tools: {}", known().collect::<Vec<_>>().join(", ")),
        };
        format!("unknown tool {}; {hint}", reply_text::cut(name, TOOL_BYTES))
    }

    /// Starts the tool on a blocking thread. `asks` is `None` if the client cannot be asked; `Some(true)` means only in rounds.
    fn begin(
        &self,
        permit: OwnedSemaphorePermit,
        place: usize,
        key: &CallKey,
        caller: Caller,
        workspace: Arc<Workspace>,
        (asks, model): (Option<bool>, Option<Sampler>),
    ) -> RunningCall {
        let (sender, questions) = mpsc::unbounded_channel();
        let gone = Arc::new(CancelFlag::default());
        let (seen, dismissed) = (Arc::clone(&gone), Arc::new(CancelFlag::default()));
        let client = Client {
            question_sender: asks
                .map(|only_while_waiting| QuestionSender { questions: sender, only_while_waiting }),
            model,
            gone: Box::new(move || seen.is_cancelled()),
            dismissed: Arc::clone(&dismissed),
        };
        let (shared, at) = (Arc::clone(&self.shared), Arc::clone(&workspace));
        let (arguments, tool) = (key.arguments.clone(), key.tool.clone());
        let (session, over_http) = (Arc::clone(&self.session.plan), self.is_over_http());
        let answer = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let (toolset, found) = &shared.tools[place];
            let call = Call { workspace: at, caller, arguments, client, over_http, session };
            let answer = (found.run)(&call).map_err(|refused| refused.with_hints(toolset.hints(), over_http));
            let outcome = if answer.is_ok() { "answered" } else { "refused" };
            meters().calls.with([&tool, outcome], |calls| calls.add(1));
            answer
        });
        RunningCall { answer, questions, gone, dismissed, workspace }
    }

    /// Waits for the tool, and meanwhile passes its questions to the person at the client.
    async fn run_with_elicitation(
        &self,
        mut running: RunningCall,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, ToolError> {
        let _cancel = CancelOnDrop(Some(Arc::clone(&running.gone)));
        let mut progress = Progress::of(context);
        let mut open = None;
        loop {
            tokio::select! {
                biased;
                Some(pending) = running.questions.recv(), if open.is_none() => {
                    let asker = ElicitationTarget {
                        peer: context.peer.clone(),
                        workspace: Arc::clone(&running.workspace),
                        client: client_name(context).unwrap_or_else(|| NOBODY.to_owned()),
                    };
                    let asked = Arc::clone(&self.shared.elicitations).ask(asker, pending);
                    open = asked.map(Box::pin);
                }
                Some(dismissed) = async { Some(open.as_mut()?.await) }, if open.is_some() => {
                    open = None;
                    if dismissed == Dismissed(true) {
                        running.dismissed.cancel();
                    }
                }
                answered = &mut running.answer => {
                    // The call did not wait for the person, who may still answer.
                    if let Some(open) = open {
                        tokio::spawn(open);
                    }
                    return flat(answered);
                }
                () = context.ct.cancelled(), if !running.gone.is_cancelled() => running.gone.cancel(),
                () = progress.due() => progress.send().await,
            }
        }
    }

    /// Waits for the tool's result or for a question from it. A question ends this round.
    async fn round(
        &self,
        mut running: RunningCall,
        key: CallKey,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let cancel = CancelOnDrop(Some(Arc::clone(&running.gone)));
        let mut progress = Progress::of(context);
        let pending = loop {
            tokio::select! {
                biased;
                answered = &mut running.answer => return Ok(CallToolResponse::Complete(result(flat(answered)))),
                Some(pending) = running.questions.recv() => break pending,
                () = context.ct.cancelled(), if !running.gone.is_cancelled() => running.gone.cancel(),
                () = progress.due() => progress.send().await,
            }
        };
        cancel.disarm();
        Ok(CallToolResponse::InputRequired(self.shared.pending_calls.suspend(key, running, pending)?))
    }

    /// Resumes a call whose client has put the question to a person.
    async fn resume_round(
        &self,
        handle: &str,
        key: CallKey,
        answers: Option<&BTreeMap<String, Value>>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let mut suspended = self.shared.pending_calls.resume(handle, &key)?;
        let client = client_name(context).unwrap_or_else(|| NOBODY.to_owned());
        // The client names itself in each round.
        let accepts = self.accepts_elicitation(context, &suspended.running.workspace.config);
        let said = if accepts { verdict(answers) } else { Verdict::Nothing };
        match settle_blocking(&suspended.running.workspace, suspended.question(), &client, said).await? {
            Settled::Decided => {}
            Settled::Changed(question) => {
                suspended.pending.question = question;
                let asked = self.shared.pending_calls.suspend(key, suspended.running, suspended.pending)?;
                return Ok(CallToolResponse::InputRequired(asked));
            }
            // The call ends, and the plan waits for an answer from another front end.
            Settled::Dismissed => suspended.running.dismissed.cancel(),
            Settled::Open => suspended.running.gone.cancel(),
        }
        self.round(suspended.running, key, context).await
    }
}

fn flat(answered: Result<Result<Answer, ToolError>, JoinError>) -> Result<Answer, ToolError> {
    answered.unwrap_or_else(|error| {
        Err(ToolError::new(format!("the tool failed: {error}"), "check the plan, then retry"))
    })
}

fn complete_with_error(refused: ToolError) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResponse::Complete(result(Err(refused))))
}

/// Converts a reply to the protocol's result type.
fn result(answer: Result<Answer, ToolError>) -> CallToolResult {
    match answer {
        Ok(Answer { value, text }) => {
            let text = waypost_text::sanitize(&text).into_owned();
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(value);
            result
        }
        Err(refused) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(refused.text())]);
            result.structured_content = Some(refused.structured());
            result
        }
    }
}

#[expect(deprecated, reason = "the newest protocol has other ways; hosts still tell their folder by roots")]
fn roots_required() -> InputRequiredResult {
    let asked = InputRequest::ListRoots(rmcp::model::ListRootsRequest::default());
    InputRequiredResult::new(Some(InputRequests::from([(ROOTS.to_owned(), asked)])), Some(ROOTS.to_owned()))
}

#[expect(deprecated, reason = "the newest protocol has other ways; hosts still tell their folder by roots")]
fn roots_in(responses: Option<&BTreeMap<String, Value>>) -> Option<rmcp::model::ListRootsResult> {
    let roots = responses?.get(ROOTS)?;
    serde_json::from_value(roots.clone()).ok()
}
