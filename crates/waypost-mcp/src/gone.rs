//! Whether anybody still waits for the answer of a call.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set once nobody waits any more.
#[derive(Debug, Default)]
pub(crate) struct Gone(AtomicBool);

impl Gone {
    /// Nobody waits any more.
    pub(crate) fn leave(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether that is so.
    pub(crate) fn has_left(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
