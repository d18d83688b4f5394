//! Elicitation by server requests while the agent's call is in progress. Clients of the newest protocol receive
//! `input_required` results instead.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientResult, ElicitRequest, ServerRequest};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleServer};
use tokio::sync::oneshot;
use waypost_core::PlanId;

use crate::approval::APPROVAL_SECONDS_MAX;
use crate::elicitation::question::{PendingQuestion, Question, Settled, Verdict, settle_blocking};
use crate::workspace::Workspace;

/// How often a person is asked again because the plan changed while they reviewed it.
const ASKED_AGAIN_MAX: usize = 3;

/// Whether the person dismissed the question: then the call that asked does not go on waiting for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dismissed(pub(crate) bool);

/// A client whose person can be asked.
pub(crate) struct ElicitationTarget {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) client: String,
}

/// The plans with an open question, so that a person is not asked about the same plan twice at once.
#[derive(Default)]
pub(crate) struct OpenElicitations {
    about: Mutex<BTreeSet<PlanId>>,
}

/// Marks the plan's question as open until dropped.
struct OpenGuard {
    open: Arc<OpenElicitations>,
    plan: PlanId,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.open.about.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.plan);
    }
}

impl OpenElicitations {
    /// Asks the question, unless one about the same plan is open: then the waiting call reads the decision from the store.
    pub(crate) fn ask(
        self: Arc<Self>,
        asker: ElicitationTarget,
        pending: PendingQuestion,
    ) -> Option<impl Future<Output = Dismissed> + Send> {
        let plan = pending.question.plan.clone();
        if !self.about.lock().unwrap_or_else(PoisonError::into_inner).insert(plan.clone()) {
            return None;
        }
        let guard = OpenGuard { open: self, plan };
        Some(async move {
            let _guard = guard;
            elicit(asker, pending).await
        })
    }
}

/// Asks until there is an answer, here or elsewhere, or the person dismisses the question. On any error the plan keeps waiting
/// and can still be approved at every other front end.
async fn elicit(asker: ElicitationTarget, pending: PendingQuestion) -> Dismissed {
    let PendingQuestion { mut question, mut settled } = pending;
    for _ in 0..=ASKED_AGAIN_MAX {
        let verdict = ask(&asker.peer, &question, &mut settled).await;
        match settle_blocking(&asker.workspace, &question, &asker.client, verdict).await {
            Ok(Settled::Changed(next)) => question = next,
            Ok(Settled::Dismissed) => return Dismissed(true),
            Ok(Settled::Decided | Settled::Open) | Err(_) => return Dismissed(false),
        }
    }
    Dismissed(false)
}

async fn ask(peer: &Peer<RoleServer>, question: &Question, settled: &mut oneshot::Receiver<()>) -> Verdict {
    let Ok(form) = question.form() else { return Verdict::Nothing };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let sent = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
    let Ok(mut handle) = sent else { return Verdict::Nothing };
    let answer = tokio::select! {
        answer = &mut handle.rx => Some(answer),
        () = settled_by_others(settled) => None,
        () = tokio::time::sleep(Duration::from_secs(APPROVAL_SECONDS_MAX)) => None,
    };
    match answer {
        Some(Ok(Ok(ClientResult::ElicitResult(answer)))) => Verdict::of(&answer),
        Some(_) => Verdict::Nothing,
        None => {
            let _gone = handle.cancel(Some("answered elsewhere".to_owned())).await;
            Verdict::Nothing
        }
    }
}

/// Completes when the question was answered elsewhere; never completes if the asking call merely stopped waiting.
async fn settled_by_others(settled: &mut oneshot::Receiver<()>) {
    if settled.is_terminated() || settled.await.is_err() {
        std::future::pending::<()>().await;
    }
}
