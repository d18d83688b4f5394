//! The length of an outage of the store.

use std::time::Instant;

use waypost_exec::AttemptKey;
use waypost_store::StoreError;

/// Consecutive failures of the store after which a run gives up.
pub(super) const STORE_FAILURES_MAX: u32 = 10;

/// Maximum number of attempts that a message names.
const ATTEMPTS_NAMED_MAX: usize = 10;

/// Describes attempts whose end is not in the store.
pub(super) fn of_unrecorded(attempts: &[AttemptKey]) -> String {
    if attempts.is_empty() {
        return String::new();
    }
    let name = |key: &AttemptKey| format!("{}/{}", key.plan, key.task);
    let named: Vec<String> = attempts.iter().take(ATTEMPTS_NAMED_MAX).map(name).collect();
    let more = match attempts.len().saturating_sub(ATTEMPTS_NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; ended, but not recorded: {}{more}; the next run repeats them", named.join(", "))
}

/// What the store failed to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Access {
    #[default]
    Read,
    Write,
}

#[derive(Debug, Default)]
pub(super) struct Outage {
    pub(super) failures: u32,
    /// What failed last. A store on a full disk can still be read, so a read does not end an outage of writes.
    pub(super) access: Access,
    /// When an outage began that the run waits out, and its first error.
    pub(super) since: Option<(Instant, StoreError)>,
}

impl Outage {
    /// Whether there is an outage that the run waits out.
    pub(super) fn lasts(&self) -> bool {
        self.since.is_some()
    }

    /// Whether a success of this access ends the failures so far.
    pub(super) fn is_ended_by(&self, access: Access) -> bool {
        match (self.access, access) {
            (Access::Read, _) | (Access::Write, Access::Write) => true,
            (Access::Write, Access::Read) => false,
        }
    }
}
