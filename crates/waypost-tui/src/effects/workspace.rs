//! A store with its service, and what the work of its plans finds around it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use waypost_config::{Config, Surroundings};
use waypost_service::Service;
use waypost_store::{Plans, StoreError};

use crate::note::ErrorMessage;

/// How long the list of unreadable plans of a file store is kept: finding them reads all plans.
const DAMAGE_INTERVAL: Duration = Duration::from_secs(30);

/// A store, and everything that its plans find around them.
pub struct Workspace {
    /// What the list of plans calls it.
    pub name: String,
    pub(super) config: Arc<Config>,
    pub(super) around: Surroundings,
    service: Mutex<Service>,
    create_store: Mutex<Option<CreateStore>>,
    /// Plans that could not be read, and when that was found.
    damage: Mutex<Option<(Instant, Vec<String>)>>,
}

/// Creates a store that does not exist yet.
pub type CreateStore = Box<dyn FnOnce() -> Result<Arc<Plans>, ErrorMessage> + Send>;

impl Workspace {
    /// `create_store` creates the store when the first plan is written, where there is none yet.
    pub fn new(
        name: impl Into<String>,
        plans: Arc<Plans>,
        create_store: Option<CreateStore>,
        config: Arc<Config>,
        around: Surroundings,
    ) -> Self {
        let service = Mutex::new(Service::new(plans, Arc::clone(&config)));
        let create_store = Mutex::new(create_store);
        Self { name: name.into(), config, around, service, create_store, damage: Mutex::default() }
    }

    pub(super) fn service(&self) -> Service {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The plans, to read them.
    pub(crate) fn plans(&self) -> Arc<Plans> {
        Arc::clone(self.service().plans())
    }

    /// Plans that cannot be read, a line each. Only a file store leaves them out of its lists; the others return an error
    /// instead of a list.
    pub(super) fn damage(&self) -> Result<Vec<String>, StoreError> {
        let plans = self.plans();
        if !plans.store().location().starts_with("file:") {
            return Ok(Vec::new());
        }
        let mut known = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, lines)) = known.as_ref().filter(|(at, _)| at.elapsed() < DAMAGE_INTERVAL) {
            return Ok(lines.clone());
        }
        let lines = plans.store().check()?;
        *known = Some((Instant::now(), lines.clone()));
        Ok(lines)
    }

    /// Creates the store if there is none yet; whether it did.
    pub(super) fn ensure_store(&self) -> Result<bool, ErrorMessage> {
        let create_store = self.create_store.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(create_store) = create_store else { return Ok(false) };
        let service = Service::new(create_store()?, Arc::clone(&self.config));
        *self.service.lock().unwrap_or_else(PoisonError::into_inner) = service;
        Ok(true)
    }
}
