//! The state that the API's handlers share: the service, the broadcast of events, and the end of streams. Knows no
//! route.

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

/// The state of the API.
pub struct Api {
    pub(super) service: Service,
    /// The folder with the logs of attempts.
    pub(super) logs: PathBuf,
    /// The name of the workspace.
    pub(super) workspace: String,
    /// Whether this server currently runs plans, too.
    pub(super) runs: Arc<AtomicBool>,
    pub(super) events: EventBroadcast,
    pub(super) approvals: ApprovalStates,
    /// How often all streams were ended.
    ends: watch::Sender<u64>,
}

impl Api {
    /// Creates the state. Reads and runs nothing before the first request.
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

    /// Returns the flag that the embedded worker sets while it runs plans.
    pub fn runs(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.runs)
    }

    /// Returns the plans, for reading.
    pub(crate) fn plans(&self) -> &Arc<PlanStore> {
        self.service.plans()
    }

    /// Ends all streams. Clients that may still read reconnect and resume where they were.
    pub(crate) fn end_streams(&self) {
        self.events.end_all();
        self.ends.send_modify(|times| *times += 1);
    }

    /// Is notified at the next [`Self::end_streams`].
    pub(super) fn stream_ends(&self) -> watch::Receiver<u64> {
        self.ends.subscribe()
    }
}

/// Runs work that may block on the store on a separate thread, so that it delays no other request.
pub(super) async fn run_blocking<T: Send + 'static>(
    api: Arc<Api>,
    work: impl FnOnce(&Api) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&api)).await;
    done.unwrap_or_else(|error| {
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "retry"))
    })
}
