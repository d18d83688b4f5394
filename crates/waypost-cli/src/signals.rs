//! Handles Ctrl-C and SIGTERM.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::error::{Failure, Outcome};

/// Whether this program handles Ctrl-C in its own way from now on.
static IS_HANDLED: AtomicBool = AtomicBool::new(false);
/// Whether Ctrl-C ends the process, once a question was asked. Its handler cannot be taken away again.
static ENDS_PROCESS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Lets Ctrl-C interrupt the system call that waits for an answer, in place of ending the process.
pub fn while_asking<T>(ask: impl FnOnce() -> T) -> T {
    if IS_HANDLED.load(Ordering::Acquire) {
        return ask();
    }
    let ends_process = ENDS_PROCESS.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        // Without the handler, Ctrl-C ends the process as before.
        let _handler = flag::register_conditional_default(SIGINT, Arc::clone(&flag));
        flag
    });
    ends_process.store(false, Ordering::Release);
    let answer = ask();
    ends_process.store(true, Ordering::Release);
    answer
}

/// Leaves Ctrl-C to other handlers from now on.
pub fn take_over() {
    IS_HANDLED.store(true, Ordering::Release);
    if let Some(ends_process) = ENDS_PROCESS.get() {
        ends_process.store(false, Ordering::Release);
    }
}

/// Calls `hear` on a thread of its own for Ctrl-C and SIGTERM from now on.
pub fn listen(hear: impl FnMut(i32) + Send + 'static) -> Outcome {
    listen_to(&[SIGINT, SIGTERM], hear)
}

/// Calls `hear` on a thread of its own for each of these signals from now on.
pub fn listen_to(which: &[i32], mut hear: impl FnMut(i32) + Send + 'static) -> Outcome {
    let mut signals = Signals::new(which).map_err(not_installed)?;
    take_over();
    let hear = move || signals.forever().for_each(&mut hear);
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(hear);
    thread.map(drop).map_err(|error| Failure::failed(format!("no thread can be started: {error}"), ""))
}

/// Sets the flag at each of these signals from now on, before any call that the signal interrupts returns.
pub fn note(set: &Arc<AtomicBool>) -> Outcome {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(set)).map_err(not_installed)?;
    }
    take_over();
    Ok(())
}

fn not_installed(error: std::io::Error) -> Failure {
    Failure::failed(format!("cannot install signal handlers: {error}"), "")
}
