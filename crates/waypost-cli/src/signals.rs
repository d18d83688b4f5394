//! Handles Ctrl-C and SIGTERM on a thread of their own.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Failure, Outcome};

/// Calls `hear` on that thread for each of these signals from now on.
pub fn listen(mut hear: impl FnMut(i32) + Send + 'static) -> Outcome {
    let signals = Signals::new([SIGINT, SIGTERM]);
    let mut signals =
        signals.map_err(|error| Failure::failed(format!("cannot install signal handlers: {error}"), ""))?;
    let hear = move || signals.forever().for_each(&mut hear);
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(hear);
    thread.map(drop).map_err(|error| Failure::failed(format!("no thread can be started: {error}"), ""))
}
