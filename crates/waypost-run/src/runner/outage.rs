//! How long a store has not answered.

use std::time::Instant;

/// How often in a row the store may fail before a run gives up.
pub(super) const STORE_FAILURES_MAX: u32 = 10;

/// How long the store has been away.
#[derive(Debug, Default)]
pub(super) struct Outage {
    pub(super) failures: u32,
    pub(super) since: Option<Instant>,
}

impl Outage {
    /// Whether it is one that may last.
    pub(super) fn lasts(&self) -> bool {
        self.since.is_some()
    }
}
