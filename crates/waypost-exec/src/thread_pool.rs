//! A pool of reusable threads: starting one for each attempt would cost as much as a good part of a short program.

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Idle threads that are kept.
const IDLE_MAX: usize = 64;
/// How long a waiting thread polls for work that comes soon, if at all: a wake-up would take a good part of a short
/// program's time.
const AWAKE: Duration = Duration::from_micros(500);

type Work = Box<dyn FnOnce() + Send>;

/// Runs each piece of work on a thread of its own, with as many threads as there is work at the same time.
#[derive(Clone, Default)]
pub(crate) struct Threads {
    idle: Arc<Mutex<Vec<Sender<Work>>>>,
}

impl Threads {
    /// Runs work on an idle thread, or on a new one.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut work: Work = Box::new(work);
        while let Some(thread) = self.take() {
            match thread.send(work) {
                Ok(()) => return Ok(()),
                // The thread panicked in its last work.
                Err(unsent) => work = unsent.0,
            }
        }
        // A weak reference, so that the threads do not keep the pool alive: they end when no one can send work any
        // more.
        let idle = Arc::downgrade(&self.idle);
        let begun = Builder::new().name("attempt".to_owned()).spawn(move || {
            work();
            while let Some(next) = wait(&idle) {
                next();
            }
        });
        begun.map(drop)
    }

    fn take(&self) -> Option<Sender<Work>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// Waits for work as an idle thread. Returns `None` when there are enough idle threads, or the pool is gone.
fn wait(idle: &Weak<Mutex<Vec<Sender<Work>>>>) -> Option<Work> {
    let (sender, receiver) = channel();
    {
        let idle = idle.upgrade()?;
        let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= IDLE_MAX {
            return None;
        }
        idle.push(sender);
    }
    match soon(&receiver) {
        Some(found) => found.ok(),
        None => receiver.recv().ok(),
    }
}

/// Returns what arrives within a moment; an error when nothing can arrive any more. Keeps a processor busy meanwhile.
pub fn soon<T>(receiver: &Receiver<T>) -> Option<Result<T, TryRecvError>> {
    let until = Instant::now() + AWAKE;
    loop {
        match receiver.try_recv() {
            // The processor may be needed by a program that is just starting.
            Err(TryRecvError::Empty) if Instant::now() < until => std::thread::yield_now(),
            Err(TryRecvError::Empty) => return None,
            found => return Some(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_used_again_and_all_work_is_done() {
        let threads = Threads::default();
        let (done, results) = channel();
        for round in 0..100 {
            let done = done.clone();
            threads.run(move || done.send((round, std::thread::current().id())).unwrap()).unwrap();
            let (number, _) = results.recv().unwrap();
            assert_eq!(number, round);
        }
        let kept = threads.idle.lock().unwrap().len();
        assert!((1..100).contains(&kept), "{kept} threads for a hundred jobs, one after the other");
    }

    #[test]
    fn a_thread_that_breaks_down_takes_no_other_work_with_it() {
        let threads = Threads::default();
        let (done, results) = channel();
        threads.run(|| std::panic::resume_unwind(Box::new("broken"))).unwrap();
        threads.run(move || done.send(7).unwrap()).unwrap();
        assert_eq!(results.recv(), Ok(7));
    }
}
