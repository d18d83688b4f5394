//! The API for programs and for the dashboard: everything that can be done with plans, as JSON over HTTP.
//!
//! Each request becomes commands of the core, decided in the store like those of every other door. Nothing here decides
//! what is allowed but who may write at all.

mod actions;
mod response;
mod approval_state;
mod extract;
mod openapi;
mod edits;
mod events;
mod event_broadcast;
mod graph;
mod history;
mod log;
mod next;
mod me;
mod validate;
mod workers;
mod plans;
mod routes;
mod tasks;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::http::StatusCode;
use tokio::sync::watch;
use waypost_config::Config;
use waypost_core::{Actor, Command, PlanId};
use waypost_service::admission as admit;
use waypost_store::{Committed, Plans, WriteRequest};

pub(crate) use self::response::Problem;
use self::approval_state::ApprovalStates;
pub use self::openapi::openapi;
use self::event_broadcast::EventBroadcast;

/// What the API works on.
pub struct Api {
    /// All plans of the store.
    pub(crate) plans: Arc<Plans>,
    /// What the operator allows.
    config: Arc<Config>,
    /// The folder with the logs of attempts.
    logs: PathBuf,
    /// The name of the workspace.
    workspace: String,
    /// Whether this server runs plans, too: it may cease to.
    runs: Arc<AtomicBool>,
    /// What happens, for all who listen.
    feed: EventBroadcast,
    /// What was said last about approval.
    approvals: ApprovalStates,
    /// How often all streams were ended.
    ends: watch::Sender<u64>,
}

/// For how long a task that somebody took over HTTP is believed to be worked on.
const LEASE_SECONDS: u32 = 15 * 60;

impl Api {
    /// For these plans. Nothing is read or run before somebody asks.
    pub fn new(plans: Arc<Plans>, config: Arc<Config>, logs: PathBuf, workspace: String) -> Self {
        let feed = EventBroadcast::new(Arc::clone(&plans));
        Self {
            plans,
            config,
            logs,
            workspace,
            runs: Arc::default(),
            feed,
            approvals: ApprovalStates::default(),
            ends: watch::Sender::default(),
        }
    }

    /// Where whoever runs plans beside the server says so.
    pub fn runs(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.runs)
    }

    /// Everything under `/api/v1`.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        routes::all()
            .router
            .fallback(|| async { Problem::not_found("nothing is here", "see /api/v1/openapi.json") })
            .method_not_allowed_fallback(|| async {
                Problem::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "not with this method",
                    "see /api/v1/openapi.json",
                )
            })
            .with_state(Arc::clone(self))
    }

    /// Ends everything that is told as it happens: who may hear on comes again and says where it was.
    pub(crate) fn end_streams(&self) {
        self.feed.end_all();
        self.ends.send_modify(|times| *times += 1);
    }

    /// Hears of the next [`Self::end_streams`].
    fn stream_ends(&self) -> watch::Receiver<u64> {
        self.ends.subscribe()
    }

    /// Writes one version, if the configuration lets it be written.
    fn write(
        &self,
        by: &Actor,
        plan: &PlanId,
        commands: Vec<Command>,
        known_version: Option<u64>,
    ) -> Result<Committed, Problem> {
        let misfits = admit::forbidden(&self.config, &commands);
        if !misfits.is_empty() {
            return Err(Problem::invalid("the configuration does not let it be written", &misfits));
        }
        let (plan, by) = (plan.clone(), by.clone());
        let lease_seconds = Some(LEASE_SECONDS);
        Ok(self.plans.write(WriteRequest { plan, by, commands, known_version, lease_seconds })?)
    }
}

/// Does something that may wait for the store, where waiting holds up nobody else.
async fn run_blocking<T: Send + 'static>(
    api: Arc<Api>,
    work: impl FnOnce(&Api) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&api)).await;
    done.unwrap_or_else(|error| {
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "try again"))
    })
}
