//! Runs attempts on threads, and takes the next pending attempt when a slot is free.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use waypost_store::meters;

use super::attempt::{PreparedAttempt, State, lock};
use super::dispatch::run;
use super::pending_queue::PendingQueue;
use super::thread_pool::Threads;
use crate::outcome::{AttemptEvent, AttemptEvents, AttemptKey, AttemptOutcome};
use crate::traces::Attempted;
use waypost_config::ExecutionEnv;

/// The state shared by all attempts of a run.
pub struct ExecutorPool {
    pub around: ExecutionEnv,
    pub pending: PendingQueue,
    threads: Threads,
    events: AttemptEvents,
    /// Wakes the event loop when at most this many attempts wait for a slot.
    wake_below: usize,
    /// Wakes the event loop at once, even while it batches.
    bell: SyncSender<()>,
    /// The working directory of this process, where programs start by default.
    here: Option<PathBuf>,
}

impl ExecutorPool {
    pub fn new(around: ExecutionEnv, events: AttemptEvents, bell: SyncSender<()>, wake_below: usize) -> Self {
        let here = std::env::current_dir().ok();
        Self {
            around,
            pending: PendingQueue::default(),
            threads: Threads::default(),
            events,
            wake_below,
            bell,
            here,
        }
    }

    /// Reports to the event loop that an attempt begins, possibly in the slot of one that has just ended. Returns false
    /// if the attempt was stopped before.
    fn begins(&self, attempt: &PreparedAttempt, predecessor: Option<&AttemptKey>) -> bool {
        if let State::Stopped = *lock(&attempt.state) {
            return false;
        }
        let (key, predecessor) = (attempt.job.key.clone(), predecessor.cloned());
        (self.events)(AttemptEvent::Began { key, predecessor, at: Instant::now() });
        true
    }

    /// Reports to the event loop that an attempt has ended. `in_line` is the number of pending attempts left if another
    /// attempt took its slot.
    fn ended(&self, key: AttemptKey, ending: AttemptOutcome, at: Instant, in_line: Option<usize>) {
        (self.events)(AttemptEvent::Ended { key, ending, at });
        if in_line.is_none_or(|in_line| in_line <= self.wake_below) {
            // A full channel already holds a wake-up that has not been read.
            let _rung = self.bell.try_send(());
        }
    }

    /// Starts an attempt, and after it the pending ones in the same slot. Each outcome is reported to the event loop.
    pub fn begin(self: &Arc<Self>, attempt: PreparedAttempt) {
        let key = attempt.job.key.clone();
        let workshop = Arc::clone(self);
        let begun = self.threads.run(move || {
            // An attempt that was stopped before it began may have no slot to pass on.
            let mut has_slot = workshop.begins(&attempt, None);
            let mut next = Some(attempt);
            while let Some(attempt) = next {
                let job = attempt.job;
                let (begun, started_at) = (Instant::now(), job.now());
                meters().attempts_started.with([&job.executor], |started| started.add(1));
                let here = workshop.here.as_deref();
                let ending = run(&job, &workshop.around, here, &attempt.state, &workshop.events);
                meters().attempts_ended.with([&job.executor, ending.as_str()], |ended| ended.add(1));
                let took = begun.elapsed();
                meters().attempt_times.with([&job.executor], |times| times.took(took));
                if let Some(trace) = job.trace {
                    let (key, executor, queue) = (&job.key, &*job.executor, &*job.queue);
                    let worker = &*workshop.around.worker;
                    let told = Attempted { key, executor, queue, worker, started_at, took };
                    trace.attempted(&told, &ending);
                }
                let at = Instant::now();
                let (found, in_line) = if has_slot { workshop.pending.next(&job.queue) } else { (None, 0) };
                next = found;
                has_slot = next.as_ref().is_some_and(|next| workshop.begins(next, Some(&job.key)));
                workshop.ended(job.key, ending, at, next.as_ref().map(|_| in_line));
            }
        });
        if let Err(error) = begun {
            let ending = AttemptOutcome::TryAgain { error: format!("no thread could be started: {error}") };
            self.ended(key, ending, Instant::now(), None);
        }
    }
}
