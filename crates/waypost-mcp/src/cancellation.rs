//! Cancellation of a call: whether the client still waits for the result.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set once the client no longer waits for the result.
#[derive(Debug, Default)]
pub(crate) struct CancelFlag(AtomicBool);

impl CancelFlag {
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
