//! What reaches the loop of a run from other threads.

use crate::scheduler::Control;
use waypost_exec::AttemptEvent;

/// What reaches the loop from threads.
#[derive(Debug)]
pub(crate) enum Message {
    Attempt(AttemptEvent),
    Control(Control),
    /// Somebody may have written.
    StoreChanged,
    /// Whoever runs it wants to do something else for a moment.
    Aside,
}
