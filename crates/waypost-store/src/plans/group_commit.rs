//! Group commit: one waiting writer executes the jobs of all that have queued meanwhile. Does not know what the jobs
//! do.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of queued entries that are committed in one transaction.
const JOBS_MAX: usize = 512;

enum Turn<R> {
    Waiting,
    /// No thread is working: this caller leads.
    Lead,
    Done(R),
    /// The thread that did the work panicked.
    Abandoned,
}

struct Ticket<R> {
    turn: Mutex<Turn<R>>,
    changed: Condvar,
}

struct Queue<J, R> {
    jobs: Vec<(J, Arc<Ticket<R>>)>,
    busy: bool,
}

/// A queue of jobs that are executed in groups, in their order.
pub(crate) struct Group<J, R> {
    queue: Mutex<Queue<J, R>>,
}

/// A poisoned lock only means that another thread panicked; the guarded data is consistent at every moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J, R> Group<J, R> {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::new(Queue { jobs: Vec::new(), busy: false }) }
    }

    /// Queues `job` and returns its result once this caller or another has executed it. `work` receives a group of jobs
    /// and returns their results in the same order. Returns `None` when another caller panicked during the work.
    pub(crate) fn run(&self, job: J, work: impl FnOnce(Vec<J>) -> Vec<R>) -> Option<R> {
        let ticket = Arc::new(Ticket { turn: Mutex::new(Turn::Waiting), changed: Condvar::new() });
        {
            let mut queue = lock(&self.queue);
            queue.jobs.push((job, Arc::clone(&ticket)));
            if !queue.busy {
                queue.busy = true;
                *lock(&ticket.turn) = Turn::Lead;
            }
        }
        let mut turn = lock(&ticket.turn);
        loop {
            match std::mem::replace(&mut *turn, Turn::Waiting) {
                Turn::Waiting => turn = ticket.changed.wait(turn).unwrap_or_else(PoisonError::into_inner),
                Turn::Done(result) => return Some(result),
                Turn::Abandoned => return None,
                Turn::Lead => break,
            }
        }
        drop(turn);
        self.lead(&ticket, work)
    }

    fn lead(&self, mine: &Arc<Ticket<R>>, work: impl FnOnce(Vec<J>) -> Vec<R>) -> Option<R> {
        let (jobs, tickets): (Vec<J>, Vec<Arc<Ticket<R>>>) = {
            let mut queue = lock(&self.queue);
            // The leader is first in the queue: all earlier callers were served before it became the leader.
            let count = queue.jobs.len().min(JOBS_MAX);
            queue.jobs.drain(..count).unzip()
        };
        let mut handover = Handover { group: self, waiting: tickets };
        let results = work(jobs);
        let mut own = None;
        for (ticket, result) in handover.waiting.drain(..).zip(results) {
            if Arc::ptr_eq(&ticket, mine) {
                own = Some(result);
            } else {
                ticket.tell(Turn::Done(result));
            }
        }
        own
    }
}

impl<R> Ticket<R> {
    fn tell(&self, turn: Turn<R>) {
        *lock(&self.turn) = turn;
        self.changed.notify_one();
    }
}

/// Passes the lead on when the work ends. If the work panicked, it first notifies the callers that waited for it.
struct Handover<'a, J, R> {
    group: &'a Group<J, R>,
    waiting: Vec<Arc<Ticket<R>>>,
}

impl<J, R> Drop for Handover<'_, J, R> {
    fn drop(&mut self) {
        for ticket in self.waiting.drain(..) {
            ticket.tell(Turn::Abandoned);
        }
        let mut queue = lock(&self.group.queue);
        match queue.jobs.first() {
            Some((_, next)) => next.tell(Turn::Lead),
            None => queue.busy = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_job_is_done_once_and_gets_its_own_result() {
        let group = Group::new();
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for job in 0..32usize {
                let (group, done) = (&group, &done);
                scope.spawn(move || {
                    for round in 0..50usize {
                        let result = group.run((job, round), |jobs| {
                            done.fetch_add(jobs.len(), Ordering::Relaxed);
                            jobs.into_iter().map(|(job, round)| job * 1000 + round).collect()
                        });
                        assert_eq!(result, Some(job * 1000 + round));
                    }
                });
            }
        });
        assert_eq!(done.load(Ordering::Relaxed), 32 * 50);
    }

    #[test]
    fn when_the_work_panics_nobody_waits_forever_and_the_next_are_served() {
        let group: Group<usize, usize> = Group::new();
        let (answered, broken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for job in 0..16usize {
                let (group, answered, broken) = (&group, &answered, &broken);
                scope.spawn(move || {
                    let work = std::panic::AssertUnwindSafe(|| {
                        group.run(job, |jobs| {
                            assert!(!jobs.contains(&3), "job 3 breaks whoever does it");
                            jobs
                        })
                    });
                    match std::panic::catch_unwind(work) {
                        Ok(Some(result)) => {
                            assert_eq!(result, job);
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(None) | Err(_) => {
                            broken.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(answered.load(Ordering::Relaxed) + broken.load(Ordering::Relaxed), 16);
        assert!(broken.load(Ordering::Relaxed) >= 1);
        assert_eq!(group.run(7, |jobs| jobs), Some(7));
    }
}
