//! What the handlers of the API share: the service, the broadcast of events, and when streams end. Knows no route.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::http::StatusCode;
use tokio::sync::watch;
use waypost_service::Service;
use waypost_store::PlanStore;

use super::approval_state::ApprovalStates;
use super::event_broadcast::EventBroadcast;
use super::response::Problem;

/// What the API works on.
pub struct Api {
    pub(super) service: Service,
    /// The folder with the logs of attempts.
    pub(super) logs: PathBuf,
    /// The name of the workspace.
    pub(super) workspace: String,
    /// Whether this server runs plans, too: it may cease to.
    pub(super) runs: Arc<AtomicBool>,
    pub(super) events: EventBroadcast,
    pub(super) approvals: ApprovalStates,
    /// How often all streams were ended.
    ends: watch::Sender<u64>,
}

impl Api {
    /// Nothing is read or run before the first request.
    pub fn new(service: Service, logs: PathBuf, workspace: String) -> Self {
        let events = EventBroadcast::new(Arc::clone(service.plans()));
        Self {
            service,
            logs,
            workspace,
            runs: Arc::default(),
            events,
            approvals: ApprovalStates::default(),
            ends: watch::Sender::default(),
        }
    }

    /// The flag that a worker beside the server sets while it runs plans.
    pub fn runs(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.runs)
    }

    /// The plans, to read them.
    pub(crate) fn plans(&self) -> &Arc<PlanStore> {
        self.service.plans()
    }

    /// Ends all streams. Clients that still may read reconnect and resume where they were.
    pub(crate) fn end_streams(&self) {
        self.events.end_all();
        self.ends.send_modify(|times| *times += 1);
    }

    /// Notified at the next [`Self::end_streams`].
    pub(super) fn stream_ends(&self) -> watch::Receiver<u64> {
        self.ends.subscribe()
    }
}

/// Runs what may wait for the store on a thread where that delays no other request.
pub(super) async fn run_blocking<T: Send + 'static>(
    api: Arc<Api>,
    work: impl FnOnce(&Api) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&api)).await;
    done.unwrap_or_else(|error| {
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "retry"))
    })
}
