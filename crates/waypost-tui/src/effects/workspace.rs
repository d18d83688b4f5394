//! A store with its service, and the environment of its plans.

use std::sync::{Arc, Mutex, PoisonError};

use waypost_config::{Config, ExecutionEnv};
use waypost_service::{Authenticator, FindBranch, Repository, Service};
use waypost_store::PlanStore;

use crate::note::ErrorMessage;

/// A store, and the environment of its plans.
pub struct Workspace {
    /// Its name in the list of plans.
    pub name: String,
    pub(super) config: Arc<Config>,
    pub(super) around: ExecutionEnv,
    pub(super) authenticator: Authenticator,
    /// Finds the branch on which shared plans travel.
    pub(super) shared_branch: Option<FindBranch>,
    /// The repository whose commits name tasks.
    pub(super) repository: Option<Mutex<Repository>>,
    service: Mutex<Service>,
    create_store: Mutex<Option<CreateStore>>,
}

/// Creates a store that does not exist yet.
pub type CreateStore = Box<dyn FnOnce() -> Result<Arc<PlanStore>, ErrorMessage> + Send>;

impl Workspace {
    /// `create_store` creates a store that does not exist yet, when the first plan is created.
    pub fn new(
        name: impl Into<String>,
        plans: Arc<PlanStore>,
        create_store: Option<CreateStore>,
        config: Arc<Config>,
        around: ExecutionEnv,
    ) -> Self {
        let service = Mutex::new(Service::new(plans, Arc::clone(&config)));
        let create_store = Mutex::new(create_store);
        let authenticator = Authenticator::default();
        let (shared_branch, repository) = (None, None);
        Self {
            name: name.into(),
            config,
            around,
            authenticator,
            shared_branch,
            repository,
            service,
            create_store,
        }
    }

    /// Returns the workspace with the account that vouches for approvals.
    #[must_use]
    pub fn with_authenticator(mut self, authenticator: Authenticator) -> Self {
        let service = self.service().with_authenticator(authenticator.clone());
        (self.service, self.authenticator) = (Mutex::new(service), authenticator);
        self
    }

    /// Returns the workspace with the repository around it, and what finds the branch on which its plans travel.
    #[must_use]
    pub fn with_repository(self, repository: Option<Repository>, shared_branch: FindBranch) -> Self {
        Self { repository: repository.map(Mutex::new), shared_branch: Some(shared_branch), ..self }
    }

    pub(super) fn service(&self) -> Service {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// For reading; writes go through the service.
    pub(crate) fn plans(&self) -> Arc<PlanStore> {
        Arc::clone(self.service().plans())
    }

    /// Creates the store if it does not exist yet. Returns whether it did.
    pub(super) fn ensure_store(&self) -> Result<bool, ErrorMessage> {
        let create_store = self.create_store.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(create_store) = create_store else { return Ok(false) };
        let service = Service::new(create_store()?, Arc::clone(&self.config));
        let service = service.with_authenticator(self.authenticator.clone());
        *self.service.lock().unwrap_or_else(PoisonError::into_inner) = service;
        Ok(true)
    }
}
