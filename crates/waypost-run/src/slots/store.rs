//! Slots of queues that the store counts, for stores that several machines share: the write of a start takes its slot
//! or is refused. This caches the answers, so that a run asks again only when something may have changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use waypost_store::{PlanStore, StoreError, WORKERS_PAGE_MAX, WorkerFilter};

use crate::scheduler::SlotKeeper;

/// How long a worker keeps a slot for its own tasks, one after another, while another waits that has none.
const TURN: Duration = Duration::from_secs(1);
/// How long a worker that yielded a slot takes none of the queue: the other worker has to notice it first.
const MANNERS: Duration = Duration::from_millis(500);

/// What a worker knows of one queue.
#[derive(Debug, Default)]
struct QueueState {
    concurrency: u32,
    /// Slots that this worker assumes it has.
    own: u32,
    /// Whether all slots are taken, as far as is known.
    full: bool,
    /// How many of them this worker has: when one of its tasks ends, its next one can have that slot at once.
    own_max: u32,
    /// Since when this worker has had slots without a long break or a check for waiting workers.
    since: Option<Instant>,
    /// Since when it has had none.
    idle: Option<Instant>,
    /// When it last yielded a slot to another worker.
    gave: Option<Instant>,
}

/// The slots of the queues of one store, as one worker sees them.
#[derive(Clone)]
pub(crate) struct StoredSlots {
    plans: Arc<PlanStore>,
    worker: String,
    queues: Arc<Mutex<BTreeMap<String, QueueState>>>,
}

impl std::fmt::Debug for StoredSlots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredSlots").field("worker", &self.worker).finish_non_exhaustive()
    }
}

impl StoredSlots {
    pub(crate) fn new(plans: Arc<PlanStore>, worker: String) -> Self {
        Self { plans, worker, queues: Arc::default() }
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<String, QueueState>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the queues in which this worker waits for a slot and has none. Its row shows them, so that others yield
    /// one.
    pub(crate) fn waits_for(&self) -> Vec<String> {
        let queues = self.queues();
        let waits = queues.iter().filter(|(_, known)| known.full && known.own_max == 0);
        waits.map(|(queue, _)| queue.clone()).collect()
    }

    /// Whether all slots of a queue are taken, as far as is known. A slot can become free without a write: when a lease expires.
    pub(crate) fn is_any_full(&self) -> bool {
        self.queues().values().any(|known| known.full)
    }

    /// Whether this worker has tasks in each of its queues and can start no other before one of them ends, as far as is known.
    pub(crate) fn has_no_room(&self) -> bool {
        let queues = self.queues();
        let is_taken = |known: &QueueState| known.full && known.own > 0 && known.own >= known.own_max;
        !queues.is_empty() && queues.values().all(is_taken)
    }

    /// Checks whether queues that were full have a free slot again.
    pub(crate) fn look_again(&self) -> Result<(), StoreError> {
        let full: Vec<String> =
            self.queues().iter().filter(|(_, known)| known.full).map(|(queue, _)| queue.clone()).collect();
        for queue in full {
            let taken = self.plans.store().query(|read| read.slots(&queue))?;
            let others = taken.iter().filter(|(worker, _)| *worker != self.worker);
            let others: u32 = others.map(|(_, count)| *count).sum();
            if let Some(known) = self.queues().get_mut(&queue) {
                known.full = others.saturating_add(known.own) >= known.concurrency;
            }
        }
        Ok(())
    }

    /// Whether another worker without a slot waits for one of this queue.
    fn others_wait(&self, queue: &str) -> Result<bool, StoreError> {
        self.plans.store().query(|read| {
            let (now, have) = (read.now(), read.slots(queue)?);
            let workers = read.workers(WorkerFilter::After(None), WORKERS_PAGE_MAX)?.items;
            Ok(workers.iter().any(|worker| {
                worker.name != self.worker
                    && worker.until >= now
                    && worker.waits_for.iter().any(|waited| waited == queue)
                    && !have.iter().any(|(name, _)| *name == worker.name)
            }))
        })
    }
}

impl SlotKeeper for StoredSlots {
    fn take(&mut self, queue: &str, concurrency: u32) -> bool {
        {
            let mut queues = self.queues();
            let known = queues.entry(queue.to_owned()).or_default();
            known.concurrency = concurrency;
            if known.full && known.own >= known.own_max || known.gave.is_some_and(|at| at.elapsed() < MANNERS)
            {
                return false;
            }
            if known.idle.is_some_and(|at| at.elapsed() >= MANNERS) {
                known.since = None;
            }
            if known.since.get_or_insert_with(Instant::now).elapsed() < TURN {
                known.own += 1;
                known.idle = None;
                return true;
            }
        }
        // This worker has had its turn. If the check fails, it does not yield.
        let wanted = self.others_wait(queue).unwrap_or(false);
        let mut queues = self.queues();
        let known = queues.entry(queue.to_owned()).or_default();
        known.since = Some(Instant::now());
        known.gave = wanted.then(Instant::now);
        known.own += u32::from(!wanted);
        if !wanted {
            known.idle = None;
        }
        !wanted
    }

    fn give(&mut self, queue: &str) {
        let mut queues = self.queues();
        let Some(known) = queues.get_mut(queue) else { return };
        known.own = known.own.saturating_sub(1);
        if known.own == 0 {
            known.idle = Some(Instant::now());
        }
    }

    fn is_wanted(&mut self, _: &str) -> bool {
        false
    }

    fn counts_starts(&self) -> bool {
        true
    }

    fn has_room(&self, queue: &str) -> bool {
        self.queues().get(queue).is_none_or(|known| !known.full || known.own < known.own_max)
    }

    fn was_refused(&mut self, queue: &str) {
        if let Some(known) = self.queues().get_mut(queue) {
            // The slots that were refused still count as its own, and are given back one by one.
            let had = if known.full { known.own_max } else { known.own };
            (known.full, known.own_max) = (true, had.saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use waypost_store::MemoryStore;

    use super::*;

    #[test]
    fn a_slot_that_becomes_free_here_serves_the_next_task_although_the_queue_is_full() {
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        let mut slots = StoredSlots::new(plans, "here".to_owned());
        assert!(!slots.has_no_room(), "nothing is known");
        // It tries all four, and others have two of them.
        assert!((0..4).all(|_| slots.take("default", 4)));
        (0..2).for_each(|_| slots.was_refused("default"));
        (0..2).for_each(|_| slots.give("default"));
        assert!(slots.has_no_room() && !slots.has_room("default") && !slots.take("default", 4));
        slots.give("default");
        assert!(slots.has_room("default") && slots.take("default", 4) && !slots.take("default", 4));
        // Another was faster with the one that this worker gave back.
        slots.give("default");
        assert!(slots.take("default", 4));
        slots.was_refused("default");
        slots.give("default");
        assert!(!slots.take("default", 4));
        // The last one, too.
        slots.give("default");
        assert!(slots.waits_for().is_empty() && slots.take("default", 4));
        slots.was_refused("default");
        slots.give("default");
        assert_eq!(slots.waits_for(), ["default"]);
        assert!(!slots.take("default", 4));
    }
}
