//! Handles Ctrl-C and SIGTERM.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Failure, Outcome};

/// Calls `hear` on a thread of its own for each of these signals from now on.
pub fn listen(mut hear: impl FnMut(i32) + Send + 'static) -> Outcome {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(not_installed)?;
    let hear = move || signals.forever().for_each(&mut hear);
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(hear);
    thread.map(drop).map_err(|error| Failure::failed(format!("no thread can be started: {error}"), ""))
}

/// Sets `flag` at each of these signals from now on, before any call that the signal interrupts returns.
pub fn note(flag: &Arc<AtomicBool>) -> Outcome {
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(flag)).map_err(not_installed)?;
    }
    Ok(())
}

fn not_installed(error: std::io::Error) -> Failure {
    Failure::failed(format!("cannot install signal handlers: {error}"), "")
}
