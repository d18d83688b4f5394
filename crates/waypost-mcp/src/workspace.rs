//! A workspace: the service for its plans, its configuration and its folder. How these are found is up to the caller.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Actor, Phase, PlanId, Timestamp};
use waypost_service::Service;
use waypost_store::{Page, PlanStore, PlanSummary, Query, Sort, StoreError};

use crate::tool_error::ToolError;

/// The plans of a workspace, its configuration and its folder.
pub struct Workspace {
    /// All acts on the plans of its store.
    pub service: Service,
    /// What the operator allows.
    pub config: Arc<Config>,
    /// The folder that files may be read from and written to.
    pub folder: PathBuf,
    /// The folder that is Waypost's own: logs of attempts, and which workers are alive.
    pub own: PathBuf,
}

/// Why there is no workspace.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Unopened {
    /// What happened, to what.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

impl From<Unopened> for ToolError {
    fn from(unopened: Unopened) -> Self {
        Self::new(unopened.message, unopened.hint)
    }
}

/// Finds the workspace of a folder; without one, of the folder that the server was started in.
pub type Opener = Arc<dyn Fn(Option<&Path>) -> Result<Workspace, Unopened> + Send + Sync>;

impl Workspace {
    /// A workspace with its own service.
    pub fn new(plans: Arc<PlanStore>, config: Arc<Config>, folder: PathBuf, own: PathBuf) -> Self {
        Self { service: Service::new(plans, Arc::clone(&config)), config, folder, own }
    }

    /// The plans, to read them.
    pub(crate) fn plans(&self) -> &PlanStore {
        self.service.plans()
    }

    /// A page of plans. A cursor that no page ended with is refused: the first page would be taken for the next one.
    pub(crate) fn page(&self, query: &Query) -> Result<Page<PlanSummary>, ToolError> {
        if let Some(cursor) = query.after.as_deref().filter(|cursor| !cursor.contains('|')) {
            let message = format!("{cursor:?} is not a cursor of a plan list");
            return Err(ToolError::new(message, "pass the cursor of the previous page, or none"));
        }
        Ok(self.plans().heads(query)?)
    }

    /// Somebody's own newest plan in one of these phases; in any, if none is named.
    pub(crate) fn newest(&self, of: &Actor, phases: Vec<Phase>) -> Result<Option<PlanId>, ToolError> {
        let owner = Some(of.name.clone());
        let query = Query { owner, phases, sort: Sort::Created, limit: 1, ..Query::default() };
        Ok(self.plans().heads(&query)?.items.into_iter().next().map(|head| head.id))
    }

    /// What time it is in the store.
    pub(crate) fn now(&self) -> Result<Timestamp, StoreError> {
        self.plans().store().query(|read| Ok(read.now()))
    }
}
