//! Hears what the system and other processes ask by signals.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals as Listening;
use signal_hook::low_level::emulate_default_handler;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To end, as Ctrl-C does.
    Interrupt,
    /// To end at once.
    Terminate,
    /// To stop until the shell lets it go on.
    Suspend,
    /// To look how large the terminal is now.
    Resize,
}

/// Whose the terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Ours.
    Ours,
    /// Of a program that we wait for: what its keys ask is for that.
    Anothers,
    /// No longer ours, while what we run is brought to its end since that time: the end that is asked for is on its way.
    Finishing(Instant),
    /// No longer ours: whatever is asked happens as if we had never listened.
    NoLonger,
}

/// How long what we run may take to end before somebody who asks again is obeyed at once.
const GRACE: Duration = Duration::from_secs(5);

/// What a signal comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Nothing,
    /// What the system would have done without us.
    Default,
    Asks(Asked),
}

fn meaning(whose: Whose, signal: i32, now: Instant) -> Meaning {
    match (whose, signal) {
        (Whose::NoLonger | Whose::Finishing(_), SIGWINCH) | (Whose::Anothers, SIGINT) => Meaning::Nothing,
        // A window that is closed says so several times: the shell and the terminal both do.
        (Whose::Finishing(_), SIGHUP) => Meaning::Nothing,
        (Whose::Finishing(since), SIGINT | SIGTERM) if now.duration_since(since) < GRACE => Meaning::Nothing,
        // Whatever has the terminal is asked to stop as well, and we stop with it.
        (Whose::NoLonger | Whose::Finishing(_), _) | (Whose::Anothers, SIGTSTP) => Meaning::Default,
        (Whose::Ours, SIGINT) => Meaning::Asks(Asked::Interrupt),
        (Whose::Ours, SIGTSTP) => Meaning::Asks(Asked::Suspend),
        (Whose::Ours | Whose::Anothers, SIGWINCH) => Meaning::Asks(Asked::Resize),
        (Whose::Ours | Whose::Anothers, _) => Meaning::Asks(Asked::Terminate),
    }
}

/// The thread that hears signals.
#[derive(Clone, Debug)]
pub(crate) struct Signals(Arc<Mutex<Whose>>);

impl Signals {
    /// Begins to hear them.
    pub(crate) fn start(hear: impl Fn(Asked) + Send + 'static) -> io::Result<Self> {
        let mut listening = Listening::new([SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH])?;
        let signals = Self(Arc::new(Mutex::new(Whose::Ours)));
        let inside = signals.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in &mut listening {
                match meaning(inside.whose(), signal, Instant::now()) {
                    Meaning::Nothing => {}
                    Meaning::Default => {
                        let _unknown = emulate_default_handler(signal);
                    }
                    Meaning::Asks(asked) => hear(asked),
                }
            }
        })?;
        Ok(signals)
    }

    fn whose(&self) -> Whose {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whose the terminal is from now on.
    pub(crate) fn say(&self, whose: Whose) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = whose;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_what_runs_is_ended_no_further_signal_cuts_that_short_before_its_time() {
        let since = Instant::now();
        let finishing = Whose::Finishing(since);
        for signal in [SIGHUP, SIGTERM, SIGINT, SIGWINCH] {
            assert_eq!(meaning(finishing, signal, since), Meaning::Nothing, "{signal}");
        }
        let late = since + GRACE;
        for (signal, wanted) in
            [(SIGHUP, Meaning::Nothing), (SIGTERM, Meaning::Default), (SIGINT, Meaning::Default)]
        {
            assert_eq!(meaning(finishing, signal, late), wanted, "{signal}");
        }
        assert_eq!(meaning(Whose::NoLonger, SIGHUP, late), Meaning::Default);
        assert_eq!(meaning(Whose::Ours, SIGHUP, since), Meaning::Asks(Asked::Terminate));
    }
}
