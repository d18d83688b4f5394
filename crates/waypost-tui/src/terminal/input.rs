//! Reads keys, mouse events and pastes on a thread, which pauses while another program uses the terminal.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, poll};

/// How long to wait for the rest of a key that arrives in parts.
const REST_OF_A_KEY: Duration = Duration::from_millis(1);
/// How long to wait for the thread to pause.
const CLOSE_WAIT: Duration = Duration::from_millis(200);

/// Whether the thread may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Open,
    Closing,
    Closed,
}

#[derive(Debug)]
struct Shared {
    gate: Mutex<Gate>,
    changed: Condvar,
}

/// The thread that reads input.
#[derive(Debug)]
pub(crate) struct InputReader {
    shared: Arc<Shared>,
    wake: PipeWriter,
}

impl InputReader {
    /// Starts reading. Calls `on_event` with each event until it returns false, and with `None` at the end of the input.
    pub(crate) fn start(on_event: impl FnMut(Option<Event>) -> bool + Send + 'static) -> io::Result<Self> {
        let (woken, wake) = io::pipe()?;
        let shared = Arc::new(Shared { gate: Mutex::new(Gate::Open), changed: Condvar::new() });
        let inside = Arc::clone(&shared);
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || inside.read(&woken, on_event))?;
        Ok(Self { shared, wake })
    }

    /// Pauses reading.
    pub(crate) fn close(&mut self) {
        let mut gate = self.shared.lock();
        if *gate == Gate::Open {
            *gate = Gate::Closing;
            let _over = self.wake.write_all(b".");
            // The thread may be in the middle of a key, so wait for it, but not forever.
            let closing = |gate: &mut Gate| *gate == Gate::Closing;
            let waited = self.shared.changed.wait_timeout_while(gate, CLOSE_WAIT, closing);
            drop(waited);
        }
    }

    /// Resumes reading.
    pub(crate) fn open(&self) {
        *self.shared.lock() = Gate::Open;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self) {
        let mut gate = self.lock();
        while *gate != Gate::Open {
            *gate = Gate::Closed;
            self.changed.notify_all();
            gate = self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn read(&self, mut woken: &PipeReader, mut on_event: impl FnMut(Option<Event>) -> bool) {
        let stdin = io::stdin();
        loop {
            self.pass();
            let mut ready = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&woken, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => break,
            }
            let (keys, wakes) = (ready[0].revents(), ready[1].revents());
            if !wakes.is_empty() {
                if matches!(woken.read(&mut [0; 16]), Ok(0) | Err(_)) {
                    return;
                }
                continue;
            }
            while event::poll(REST_OF_A_KEY).unwrap_or(false) {
                let Ok(event) = event::read() else { break };
                if !on_event(Some(event)) {
                    return;
                }
            }
            // Everything typed before the terminal disappeared has been read.
            if keys.intersects(PollFlags::HUP | PollFlags::ERR) {
                break;
            }
        }
        on_event(None);
    }
}
