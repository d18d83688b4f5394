//! Attempts that wait for a slot. A thread whose attempt has ended takes the next one itself, so that a program starts
//! the moment its predecessor ends, whatever the event loop is doing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::attempt::PreparedAttempt;
use crate::outcome::AttemptKey;

/// The pending attempts, one list for each queue.
#[derive(Default)]
pub struct PendingQueue {
    queues: Mutex<BTreeMap<String, VecDeque<PreparedAttempt>>>,
    /// When the leases of the pending attempts may expire; `None` before the first lease, when there is no limit.
    until: Mutex<Option<Instant>>,
}

impl PendingQueue {
    fn queues(&self) -> MutexGuard<'_, BTreeMap<String, VecDeque<PreparedAttempt>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an attempt to the list of its queue.
    pub fn join(&self, attempt: PreparedAttempt) {
        self.queues().entry(attempt.job.queue.clone()).or_default().push_back(attempt);
    }

    /// Sets the time until which the leases of all pending attempts last.
    pub fn leased_until(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Takes the first pending attempt of a queue and returns the number of those left. Returns nothing if its lease
    /// may have expired: then the event loop has to check first.
    pub fn next(&self, queue: &str) -> (Option<PreparedAttempt>, usize) {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.is_some_and(|until| Instant::now() >= until) {
            return (None, 0);
        }
        match self.queues().get_mut(queue) {
            Some(line) => (line.pop_front(), line.len()),
            None => (None, 0),
        }
    }

    /// Removes this attempt, unless a thread has already taken it.
    pub fn leave(&self, key: &AttemptKey) -> Option<PreparedAttempt> {
        let mut queues = self.queues();
        let (line, place) = queues.values_mut().find_map(|line| {
            let place = line.iter().position(|attempt| attempt.job.key == *key)?;
            Some((line, place))
        })?;
        line.remove(place)
    }
}
