//! Handles signals, depending on which program uses the terminal.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals as Listening;
use signal_hook::low_level::emulate_default_handler;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// Like Ctrl-C.
    Interrupt,
    Terminate,
    Suspend,
    Resize,
}

/// The program that uses the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TerminalOwner {
    Waypost,
    /// A program that Waypost waits for; it handles its own keys.
    OtherProgram,
    /// Waypost has released the terminal, and has been stopping its runs since this time.
    Finishing(Instant),
    /// Signals have their default effect.
    Released,
}

/// How long runs may take to stop before a repeated signal takes effect at once.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignalAction {
    Nothing,
    /// The system's default effect.
    Default,
    Request(SignalRequest),
}

fn signal_action(owner: TerminalOwner, signal: i32, now: Instant) -> SignalAction {
    match (owner, signal) {
        (TerminalOwner::Released | TerminalOwner::Finishing(_), SIGWINCH)
        | (TerminalOwner::OtherProgram, SIGINT) => SignalAction::Nothing,
        // Closing a window sends several of these: from the shell and from the terminal.
        (TerminalOwner::Finishing(_), SIGHUP) => SignalAction::Nothing,
        (TerminalOwner::Finishing(since), SIGINT | SIGTERM) if now.duration_since(since) < GRACE => {
            SignalAction::Nothing
        }
        // The program that uses the terminal receives the signal as well, and Waypost stops together with it.
        (TerminalOwner::Released | TerminalOwner::Finishing(_), _)
        | (TerminalOwner::OtherProgram, SIGTSTP) => SignalAction::Default,
        (TerminalOwner::Waypost, SIGINT) => SignalAction::Request(SignalRequest::Interrupt),
        (TerminalOwner::Waypost, SIGTSTP) => SignalAction::Request(SignalRequest::Suspend),
        (TerminalOwner::Waypost | TerminalOwner::OtherProgram, SIGWINCH) => {
            SignalAction::Request(SignalRequest::Resize)
        }
        (TerminalOwner::Waypost | TerminalOwner::OtherProgram, _) => {
            SignalAction::Request(SignalRequest::Terminate)
        }
    }
}

/// The thread that handles signals.
#[derive(Clone, Debug)]
pub(crate) struct Signals(Arc<Mutex<TerminalOwner>>);

impl Signals {
    /// Starts the thread.
    pub(crate) fn start(on_signal: impl Fn(SignalRequest) + Send + 'static) -> io::Result<Self> {
        let mut listening = Listening::new([SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH])?;
        let signals = Self(Arc::new(Mutex::new(TerminalOwner::Waypost)));
        let inside = signals.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in &mut listening {
                match signal_action(inside.owner(), signal, Instant::now()) {
                    SignalAction::Nothing => {}
                    SignalAction::Default => {
                        let _unknown = emulate_default_handler(signal);
                    }
                    SignalAction::Request(asked) => on_signal(asked),
                }
            }
        })?;
        Ok(signals)
    }

    fn owner(&self) -> TerminalOwner {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_owner(&self, owner: TerminalOwner) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = owner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_what_runs_is_ended_no_further_signal_cuts_that_short_before_its_time() {
        let since = Instant::now();
        let finishing = TerminalOwner::Finishing(since);
        for signal in [SIGHUP, SIGTERM, SIGINT, SIGWINCH] {
            assert_eq!(signal_action(finishing, signal, since), SignalAction::Nothing, "{signal}");
        }
        let late = since + GRACE;
        for (signal, wanted) in [
            (SIGHUP, SignalAction::Nothing),
            (SIGTERM, SignalAction::Default),
            (SIGINT, SignalAction::Default),
        ] {
            assert_eq!(signal_action(finishing, signal, late), wanted, "{signal}");
        }
        assert_eq!(signal_action(TerminalOwner::Released, SIGHUP, late), SignalAction::Default);
        assert_eq!(
            signal_action(TerminalOwner::Waypost, SIGHUP, since),
            SignalAction::Request(SignalRequest::Terminate)
        );
    }
}
