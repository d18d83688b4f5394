//! The API for programs and for the dashboard: everything that can be done with plans, as JSON over HTTP.
//!
//! Each request becomes commands of the core, decided in the store like those of every other door. Nothing here decides
//! what is allowed but who may write at all.

mod actions;
mod answer;
mod asked;
mod edits;
mod events;
mod graph;
mod history;
mod others;
mod plans;
mod tasks;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use waypost_core::{Actor, Command, PlanId};
use waypost_engine::{Config, admit};
use waypost_store::{Committed, Plans, WriteRequest};

use self::answer::Problem;

/// What the API works on.
pub struct Api {
    /// All plans of the store.
    pub plans: Arc<Plans>,
    /// What the operator allows.
    pub config: Arc<Config>,
    /// The folder with the logs of attempts.
    pub logs: PathBuf,
    /// The name of the workspace.
    pub workspace: String,
    /// Whether this server runs plans, too.
    pub runs: bool,
}

/// For how long a task that somebody took over HTTP is believed to be worked on.
const LEASE_SECONDS: u32 = 15 * 60;

impl Api {
    /// Everything under `/api/v1`.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/me", get(others::me))
            .route("/workers", get(others::workers))
            .route("/agents", get(others::agents))
            .route("/queues", get(others::queues))
            .route("/executors", get(others::executors))
            .route("/validate", post(others::validate))
            .route("/events", get(events::events))
            .route("/plans", get(plans::list).post(plans::create))
            .route("/plans/{plan}", get(plans::get).patch(plans::revise).delete(plans::delete))
            .route("/plans/{plan}/content", put(edits::replace))
            .route("/plans/{plan}/edits", post(edits::edit))
            .route("/plans/{plan}/restore", post(edits::restore))
            .route("/plans/{plan}/graph", get(graph::graph))
            .route("/plans/{plan}/timeline", get(history::timeline))
            .route("/plans/{plan}/history", get(history::history))
            .route("/plans/{plan}/versions/{version}", get(history::version))
            .route("/plans/{plan}/diff", get(history::diff))
            .route("/plans/{plan}/export", get(history::export))
            .route("/plans/{plan}/approval", get(actions::approval))
            .route("/plans/{plan}/actions/{action}", post(actions::on_plan))
            .route("/plans/{plan}/tasks", get(tasks::list))
            .route("/plans/{plan}/tasks/{task}", get(tasks::get))
            .route("/plans/{plan}/tasks/{task}/log", get(tasks::log))
            .route("/plans/{plan}/tasks/{task}/actions/{action}", post(actions::on_task))
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

    /// Writes one version, if the configuration lets it be written.
    fn write(
        &self,
        by: &Actor,
        plan: &PlanId,
        commands: Vec<Command>,
        known_version: Option<u64>,
    ) -> Result<Committed, Problem> {
        let problems = commands.iter().flat_map(|command| admit::command_problems(&self.config, command));
        let misfits: Vec<_> = problems.filter(admit::forbids_writing).collect();
        if !misfits.is_empty() {
            return Err(Problem::invalid("the configuration does not let it be written", &misfits));
        }
        let (plan, by) = (plan.clone(), by.clone());
        let lease_seconds = Some(LEASE_SECONDS);
        Ok(self.plans.write(WriteRequest { plan, by, commands, known_version, lease_seconds })?)
    }
}

/// Does something that may wait for the store, where waiting holds up nobody else.
async fn aside<T: Send + 'static>(
    api: Arc<Api>,
    work: impl FnOnce(&Api) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&api)).await;
    done.unwrap_or_else(|error| {
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "try again"))
    })
}
