//! Attempts that stand in line for a slot: the thread whose attempt has ended takes the next one itself, so that a program
//! starts in the moment in which the one before it ends, whatever the loop is doing then.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::attempt::PreparedAttempt;
use crate::outcome::AttemptKey;

/// The lines, one for each queue.
#[derive(Default)]
pub struct PendingQueue {
    queues: Mutex<BTreeMap<String, VecDeque<PreparedAttempt>>>,
    /// Until when those in line are known to have their leases; before the first word of it nobody asks.
    until: Mutex<Option<Instant>>,
}

impl PendingQueue {
    fn queues(&self) -> MutexGuard<'_, BTreeMap<String, VecDeque<PreparedAttempt>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stands at the end of its queue's line.
    pub fn join(&self, attempt: PreparedAttempt) {
        self.queues().entry(attempt.job.queue.clone()).or_default().push_back(attempt);
    }

    /// The leases of all who stand in line last until then.
    pub fn leased_until(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Takes the first of a queue's line, unless its lease may be gone: then the loop has to look first. Says how many are
    /// left.
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

    /// Takes this one, unless somebody has taken it already.
    pub fn leave(&self, key: &AttemptKey) -> Option<PreparedAttempt> {
        let mut queues = self.queues();
        let (line, place) = queues.values_mut().find_map(|line| {
            let place = line.iter().position(|attempt| attempt.job.key == *key)?;
            Some((line, place))
        })?;
        line.remove(place)
    }
}
