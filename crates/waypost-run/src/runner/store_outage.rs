//! A store that does not answer. A run on its own machine gives up soon: its disk will not come back. A worker of a store that
//! others serve goes on with what it has, and tries again until it is heard.

use std::time::{Duration, Instant};

use waypost_store::{SharingScope, StoreError};

use super::outage::STORE_FAILURES_MAX;
use super::remark::RunWarning;
use super::{RunError, Runner};

/// The wait after a failure of the store, for each failure in a row.
const STORE_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait after a failure of the store.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(3);

impl Runner {
    /// The store has done what it was asked.
    pub(super) fn store_answered(&mut self) {
        self.outage.failures = 0;
        if let Some(since) = self.outage.since.take() {
            self.remarks.push(RunWarning::StoreBack { seconds: since.elapsed().as_secs() });
        }
    }

    /// The store has failed: waits before anything more is asked of it, or gives up.
    pub(super) fn store_failed(&mut self, error: StoreError) -> Result<(), RunError> {
        waypost_store::meters().store_errors.with([error.as_str()], |errors| errors.add(1));
        self.outage.failures = self.outage.failures.saturating_add(1);
        let will_pass = match error {
            StoreError::Busy | StoreError::Database(_) | StoreError::Files { .. } => true,
            StoreError::Corrupt { .. }
            | StoreError::TooNew { .. }
            | StoreError::Pruned { .. }
            | StoreError::BadCursor(_)
            | StoreError::BadLocation(_) => false,
        };
        let patient = self.plans.store().reach() == SharingScope::Machines && will_pass;
        if patient && self.outage.since.is_none() {
            self.outage.since = Some(Instant::now());
            self.remarks.push(RunWarning::StoreAway { error: error.to_string() });
        }
        if !patient && self.outage.failures >= STORE_FAILURES_MAX {
            return Err(RunError::Store(error));
        }
        self.hold_until = Some(Instant::now() + self.store_pause());
        Ok(())
    }

    /// How long to leave the store alone.
    pub(super) fn store_pause(&self) -> Duration {
        (STORE_PAUSE * self.outage.failures).min(STORE_PAUSE_MAX)
    }
}
