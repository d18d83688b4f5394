//! The length of an outage of the store.

use std::time::Instant;

/// Consecutive failures of the store after which a run gives up.
pub(super) const STORE_FAILURES_MAX: u32 = 10;

#[derive(Debug, Default)]
pub(super) struct Outage {
    pub(super) failures: u32,
    pub(super) since: Option<Instant>,
}

impl Outage {
    /// Whether there is an outage that the run waits out.
    pub(super) fn lasts(&self) -> bool {
        self.since.is_some()
    }
}
