//! A workspace: the service for its plans, its configuration and its folder. The caller decides how these are found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Actor, Phase, PlanId, Timestamp};
use waypost_service::Service;
use waypost_store::{ArchiveFilter, Page, PlanStore, PlanSummary, Query, Sort, StoreError};

use crate::created_files::CreatedFiles;
use crate::tool_error::ToolError;

/// The plans of a workspace, its configuration and its folder.
pub struct Workspace {
    /// All operations on the plans of its store.
    pub service: Service,
    /// The operator's configuration.
    pub config: Arc<Config>,
    /// The folder in which tools may read and write files.
    pub folder: PathBuf,
    /// Waypost's own folder: logs of attempts, planning journals, and which workers are alive.
    pub own: PathBuf,
    /// The files that its tools created.
    pub(crate) created_files: CreatedFiles,
}

/// Why a workspace could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Unopened {
    /// What failed, on what.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

impl From<Unopened> for ToolError {
    fn from(unopened: Unopened) -> Self {
        Self::new(unopened.message, unopened.hint)
    }
}

/// Opens the workspace of a folder; for `None`, of the folder in which the server was started.
pub type Opener = Arc<dyn Fn(Option<&Path>) -> Result<Workspace, Unopened> + Send + Sync>;

impl Workspace {
    /// Creates a workspace with its own service.
    pub fn new(plans: Arc<PlanStore>, config: Arc<Config>, folder: PathBuf, own: PathBuf) -> Self {
        let service = Service::new(plans, Arc::clone(&config));
        Self { service, config, folder, created_files: CreatedFiles::of(&own), own }
    }

    /// The plans, for reading.
    pub(crate) fn plans(&self) -> &PlanStore {
        self.service.plans()
    }

    /// Returns a page of plans. Refuses a malformed cursor: the first page would be mistaken for the next one.
    pub(crate) fn page(&self, query: &Query) -> Result<Page<PlanSummary>, ToolError> {
        Ok(self.plans().heads(query)?)
    }

    /// Returns the owner's newest plan in one of these phases, of those that it may be offered; an empty list means any phase.
    pub(crate) fn newest(&self, of: &Actor, phases: Vec<Phase>) -> Result<Option<PlanId>, ToolError> {
        let owner = Some(of.name.clone());
        let query = Query { owner, phases, sort: Sort::Created, ..Query::default() };
        Ok(self.service.first_offered(&query)?.map(|head| head.id))
    }

    /// Returns the owner's latest plan if it was archived before it ended.
    pub(crate) fn latest_archived(&self, of: &Actor) -> Result<Option<PlanId>, ToolError> {
        let (owner, shelf) = (Some(of.name.clone()), ArchiveFilter::All);
        let query = Query { owner, shelf, sort: Sort::Created, limit: 1, ..Query::default() };
        let last = self.plans().heads(&query)?.items.pop();
        Ok(last.filter(|last| last.archived && !last.phase.is_finished()).map(|last| last.id))
    }

    /// Returns the time of the store's clock.
    pub(crate) fn now(&self) -> Result<Timestamp, StoreError> {
        self.plans().store().query(|read| Ok(read.now()))
    }
}
