//! Messages to the event loop of a run from other threads.

use crate::scheduler::Control;
use waypost_exec::AttemptEvent;

#[derive(Debug)]
pub(crate) enum Message {
    Attempt(AttemptEvent),
    Control(Control),
    /// The store may have changed.
    StoreChanged,
    /// The caller wants `Runner::run` to return without ending the run.
    Aside,
}
