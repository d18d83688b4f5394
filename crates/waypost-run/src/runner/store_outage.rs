//! Outages of the store. A run with a local store gives up soon, because a failed disk does not come back. A worker
//! with a shared store continues its work and retries until the store answers.

use std::time::{Duration, Instant};

use waypost_store::{SharingScope, StoreError};

use super::outage::STORE_FAILURES_MAX;
use super::remark::RunWarning;
use super::{RunError, Runner};

/// The wait after a failure, multiplied by the number of consecutive failures.
const STORE_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait after a failure.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(3);

impl Runner {
    /// Records a success of the store, which ends an outage.
    pub(super) fn store_answered(&mut self) {
        self.outage.failures = 0;
        if let Some(since) = self.outage.since.take() {
            self.remarks.push(RunWarning::StoreBack { seconds: since.elapsed().as_secs() });
        }
    }

    /// Records a failure of the store. The run then waits before the next request, or gives up.
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

    /// Returns how long to leave the store alone.
    pub(super) fn store_pause(&self) -> Duration {
        (STORE_PAUSE * self.outage.failures).min(STORE_PAUSE_MAX)
    }
}
