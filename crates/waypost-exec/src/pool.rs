//! Where attempts are made: threads, and the line of those who wait for a slot.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use waypost_store::meters;

use super::attempt::{Prepared, State, lock};
use super::dispatch::run;
use super::pending_queue::Line;
use super::thread_pool::Threads;
use crate::outcome::{AttemptEvent, AttemptEvents, AttemptKey, Ending};
use crate::traces::Attempted;
use waypost_config::Surroundings;

/// What all attempts of a run share.
pub struct Workshop {
    pub around: Surroundings,
    pub line: Line,
    threads: Threads,
    events: AttemptEvents,
    /// The loop is woken when no more attempts than this wait for a slot.
    wake_below: usize,
    /// Rung when the loop is wanted at once even if it lingers.
    bell: SyncSender<()>,
    /// The folder that we are in ourselves, where programs start unless they are told otherwise.
    here: Option<PathBuf>,
}

impl Workshop {
    pub fn new(around: Surroundings, events: AttemptEvents, bell: SyncSender<()>, wake_below: usize) -> Self {
        let here = std::env::current_dir().ok();
        Self { around, line: Line::default(), threads: Threads::default(), events, wake_below, bell, here }
    }

    /// Tells the loop that an attempt has ended, and who has its slot now.
    fn ended(&self, key: AttemptKey, ending: Ending, successor: Option<AttemptKey>, in_line: usize) {
        let at = Instant::now();
        let is_wanted = successor.is_none() || in_line <= self.wake_below;
        (self.events)(AttemptEvent::Ended { key, ending, successor, at });
        if is_wanted {
            // One that was rung and not heard yet is enough.
            let _rung = self.bell.try_send(());
        }
    }

    /// Starts the work of an attempt, and then that of those who stand in line. How each ends is told to the loop.
    pub fn begin(self: &Arc<Self>, attempt: Prepared) {
        let key = attempt.job.key.clone();
        let workshop = Arc::clone(self);
        let begun = self.threads.run(move || {
            let mut next = Some(attempt);
            while let Some(attempt) = next {
                let job = attempt.job;
                // Whoever was stopped before it began may have no slot that it could pass on.
                let has_slot = !matches!(*lock(&attempt.state), State::Stopped);
                let begun = Instant::now();
                meters().attempts_started.with([&job.executor], |started| started.add(1));
                let here = workshop.here.as_deref();
                let ending = run(&job, &workshop.around, here, &attempt.state, &workshop.events);
                meters().attempts_ended.with([&job.executor, ending.word()], |ended| ended.add(1));
                let took = begun.elapsed();
                meters().attempt_times.with([&job.executor], |times| times.took(took));
                if let Some(trace) = job.trace {
                    let (key, executor, queue) = (&job.key, &*job.executor, &*job.queue);
                    let (worker, started_at) = (&*workshop.around.worker, job.started_at);
                    let told = Attempted { key, executor, queue, worker, started_at, took };
                    trace.attempted(&told, &ending);
                }
                let (found, in_line) = if has_slot { workshop.line.next(&job.queue) } else { (None, 0) };
                next = found;
                let successor = next.as_ref().map(|next| next.job.key.clone());
                workshop.ended(job.key, ending, successor, in_line);
            }
        });
        if let Err(error) = begun {
            let ending = Ending::TryAgain { error: format!("no thread could be started: {error}") };
            self.ended(key, ending, None, 0);
        }
    }
}
