//! Maintenance of a store: what the doctor finds, and pruning. Knows neither how findings are shown nor where logs are.

use waypost_core::{Actor, PlanId, Timestamp};
use waypost_store::{
    Finding, Lease, LeaseFilter, Looked, PlanState, PruneMode, StoreError, Worker, WorkerState, is_alive,
};

use crate::active_workers::{all_workers, worker_state};
use crate::error::ServiceError;
use crate::service::Service;

/// Maximum number of expired leases, and of silent workers, in a report.
const LISTED_MAX: usize = 20;

/// What the doctor found.
#[derive(Debug)]
pub struct StoreHealth {
    /// The damage to the store and its plans.
    pub findings: Vec<Finding>,
    /// Facts about the store for an operator, as name and value.
    pub about: Vec<(&'static str, String)>,
    /// The first leases that have expired without being noticed.
    pub expired: Vec<Lease>,
    /// The first workers whose heartbeats are overdue.
    pub silent: Vec<(Worker, WorkerState)>,
    /// The time by the clock of the store; `None` if damage hides it.
    pub now: Option<Timestamp>,
}

impl Service {
    /// Checks the store and all its plans; with `repair`, rebuilds from the events whatever can be rebuilt.
    pub fn doctor(&self, repair: bool) -> Result<StoreHealth, ServiceError> {
        let findings = self.plans().doctor(repair)?;
        let store = self.plans().store();
        let about = store.about()?;
        let leases = store.query(|read| {
            let now = read.now();
            Ok((read.leases(&LeaseFilter::EndedBefore(now), LISTED_MAX)?, Some(now)))
        });
        let (mut expired, now) = unless_damaged(leases)?;
        // A live process of this machine keeps its leases, whatever the clock says.
        expired.retain(|lease| !is_alive(&lease.worker));
        let silent = all_workers(self.plans()).map(|(workers, now)| {
            let states = workers.into_iter().map(|worker| {
                let state = worker_state(&worker, now);
                (worker, state)
            });
            let silent = states.filter(|(_, state)| matches!(state, WorkerState::Silent | WorkerState::Dead));
            silent.take(LISTED_MAX).collect()
        });
        Ok(StoreHealth { findings, about, expired, silent: unless_damaged(silent)?, now })
    }

    /// Removes the events of plans that finished at least `seconds` ago, and reports each plan to `tell`. Only a person
    /// may prune; a dry run is open to every actor.
    pub fn prune(
        &self,
        by: &Actor,
        seconds: u64,
        mode: PruneMode,
        tell: &mut dyn FnMut(Looked),
    ) -> Result<(), ServiceError> {
        Ok(self.plans().prune(seconds, by, mode, tell)?)
    }

    /// Returns unused space of the store to the file system. Returns the number of bytes freed.
    pub fn compact(&self) -> Result<u64, ServiceError> {
        Ok(self.plans().store().compact()?)
    }

    /// Returns whether a plan was purged, or pruned up to its last version.
    pub fn is_forgotten(&self, plan: &PlanId) -> Result<bool, ServiceError> {
        Ok(self.plans().store().query(|read| match read.plan_state(plan)? {
            PlanState::Stored { version, .. } => {
                Ok(read.pruned(plan)?.is_some_and(|pruned| pruned.up_to == version))
            }
            PlanState::Purged => Ok(true),
            PlanState::Unused => Ok(false),
        })?)
    }
}

/// Returns an empty result if a file is damaged: the findings already name it.
fn unless_damaged<T: Default>(found: Result<T, StoreError>) -> Result<T, StoreError> {
    match found {
        Err(StoreError::Corrupt { .. }) => Ok(T::default()),
        found => found,
    }
}
