//! Outages of the store. A run with a local store gives up soon, because a failed disk does not come back; but it waits
//! for space on a full one. A worker with a shared store continues its work and retries until the store answers.

use std::time::{Duration, Instant};

use waypost_store::{SharingScope, StoreError};

use super::outage::{Access, STORE_FAILURES_MAX};
use super::remark::RunWarning;
use super::{RunError, Runner};
use crate::scheduler::Control;

/// The wait after a failure, multiplied by the number of consecutive failures.
const STORE_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait after a failure.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(3);

/// What a run does about an error of the store.
enum Response {
    /// It ends at once: no retry helps.
    End,
    /// It ends if the error repeats.
    RetryFewTimes,
    /// It waits until the store works again.
    WaitOut,
}

impl Runner {
    /// Records a success of the store, which may end an outage.
    pub(super) fn store_answered(&mut self, access: Access) {
        if !self.outage.is_ended_by(access) {
            return;
        }
        if let Some((since, _)) = std::mem::take(&mut self.outage).since {
            self.remarks.push(RunWarning::StoreBack { seconds: since.elapsed().as_secs() });
        }
    }

    fn response_to(&self, error: &StoreError) -> Response {
        match error {
            // Somebody can free space, and the results of the work so far are in memory only.
            StoreError::DiskFull { .. } => Response::WaitOut,
            StoreError::Busy
            | StoreError::HolderStopped { .. }
            | StoreError::Database(_)
            | StoreError::Unreachable(_)
            | StoreError::Files { .. } => match self.plans.store().reach() {
                SharingScope::Machines => Response::WaitOut,
                SharingScope::Process | SharingScope::Machine => Response::RetryFewTimes,
            },
            StoreError::Corrupt { .. }
            | StoreError::NotADatabase(_)
            | StoreError::Pruned { .. }
            | StoreError::BadCursor(_)
            | StoreError::BadLocation(_) => Response::RetryFewTimes,
            StoreError::StoreRemoved { .. } | StoreError::TooNew { .. } => Response::End,
        }
    }

    /// Records a failure of the store. The run then waits before the next request, or gives up.
    pub(super) fn store_failed(&mut self, access: Access, error: StoreError) -> Result<(), RunError> {
        waypost_store::meters().store_errors.with([error.as_str()], |errors| errors.add(1));
        self.outage.failures = self.outage.failures.saturating_add(1);
        let is_full = matches!(error, StoreError::DiskFull { .. });
        self.outage.access = if is_full { Access::Write } else { access };
        match self.response_to(&error) {
            Response::End => return Err(RunError::Store(error)),
            Response::RetryFewTimes if self.outage.failures >= STORE_FAILURES_MAX => {
                return Err(RunError::StoreFailed(error));
            }
            Response::RetryFewTimes => {}
            Response::WaitOut if self.outage.lasts() => {}
            Response::WaitOut => {
                self.remarks.push(RunWarning::of_outage(&error));
                self.outage.since = Some((Instant::now(), error));
            }
        }
        self.hold_until = Some(Instant::now() + self.store_pause());
        Ok(())
    }

    /// Returns why a run ends that was asked to stop during an outage: it does not wait for the store any longer.
    pub(super) fn stopped_in_outage(&self) -> Option<RunError> {
        let (_, error) = self.outage.since.as_ref()?;
        let is_stopped = self.asked_to_end == Some(Control::Stop);
        is_stopped.then(|| RunError::StoppedInOutage {
            error: error.clone(),
            unrecorded: self.scheduler.unrecorded().cloned().collect(),
        })
    }

    /// Returns how long to leave the store alone.
    pub(super) fn store_pause(&self) -> Duration {
        (STORE_PAUSE * self.outage.failures).min(STORE_PAUSE_MAX)
    }
}
