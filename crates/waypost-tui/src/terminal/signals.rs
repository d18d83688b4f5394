//! Hears what the system and other processes ask by signals.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// No longer ours: whatever is asked happens as if we had never listened.
    NoLonger,
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
                match (inside.whose(), signal) {
                    (Whose::NoLonger, SIGWINCH) | (Whose::Anothers, SIGINT) => {}
                    // Whatever has the terminal is asked to stop as well, and we stop with it.
                    (Whose::NoLonger, _) | (Whose::Anothers, SIGTSTP) => {
                        let _unknown = emulate_default_handler(signal);
                    }
                    (Whose::Ours, SIGINT) => hear(Asked::Interrupt),
                    (Whose::Ours, SIGTSTP) => hear(Asked::Suspend),
                    (Whose::Ours | Whose::Anothers, SIGWINCH) => hear(Asked::Resize),
                    (Whose::Ours | Whose::Anothers, _) => hear(Asked::Terminate),
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
