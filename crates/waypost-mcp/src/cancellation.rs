//! Cancellation of a call: whether the client still waits for the result.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set once nobody waits any more.
#[derive(Debug, Default)]
pub(crate) struct CancelFlag(AtomicBool);

impl CancelFlag {
    /// Nobody waits any more.
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether that is so.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
