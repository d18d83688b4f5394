//! Slots of queues that the store counts, for stores that several machines share: the write of a start takes its slot
//! or is refused. This caches the answers, so that a run asks again only when something may have changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use waypost_store::{PlanStore, StoreError, WORKERS_PAGE_MAX, WorkerFilter};

use crate::scheduler::SlotKeeper;

/// How long a worker keeps a slot for its own tasks, one after another, while another waits that has none.
const TURN: Duration = Duration::from_secs(1);
/// How long a worker without tasks keeps its turn: so short a break is the time between two of its tasks.
const BREAK_MAX: Duration = Duration::from_millis(500);
/// How long a worker that yielded its last slot leaves it to the other one, which may be slow to reach the store.
const YIELDED_MAX: Duration = Duration::from_secs(5);
/// How long a worker counts as waiting while a slot is free that it does not take: it has nothing to start.
const UNUSED_MAX: Duration = Duration::from_secs(5);

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
    /// When it last yielded a slot that nobody has taken yet, as far as is known.
    gave: Option<Instant>,
    /// Whether it needs a slot and has none. Others leave a free slot to it, so this holds until it has one.
    waits: bool,
    /// Since when a slot has been free while it waits.
    free_since: Option<Instant>,
}

/// Who has the slots of a queue, as the store counts them.
#[derive(Debug)]
struct Taken {
    own: u32,
    others: u32,
    /// Whether another worker waits that has none, if that was asked.
    others_wait: bool,
}

impl QueueState {
    /// Whether a free slot belongs to another worker that waits and has none.
    fn leaves_slots(&self) -> bool {
        self.own > 0 || self.gave.is_some_and(|at| at.elapsed() < YIELDED_MAX)
    }

    fn looked(&mut self, taken: &Taken) {
        let is_full = taken.others.saturating_add(self.own) >= self.concurrency;
        self.full = is_full || taken.others_wait && self.leaves_slots();
        if is_full {
            self.gave = None;
        }
        let is_offered = self.waits && !self.full;
        self.free_since = if is_offered { self.free_since.or_else(|| Some(Instant::now())) } else { None };
        self.waits &= taken.own == 0 && self.free_since.is_none_or(|since| since.elapsed() < UNUSED_MAX);
        self.waits |= is_full && self.own == 0 && self.own_max == 0;
    }
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
        let waits = queues.iter().filter(|(_, known)| known.waits);
        waits.map(|(queue, _)| queue.clone()).collect()
    }

    /// Whether all slots of a queue are taken, as far as is known. A slot can become free without a write: when a lease expires.
    pub(crate) fn is_any_full(&self) -> bool {
        self.queues().values().any(|known| known.full || known.waits)
    }

    /// Whether this worker has tasks in each of its queues and can start no other before one of them ends, as far as is known.
    pub(crate) fn has_no_room(&self) -> bool {
        let queues = self.queues();
        let is_taken = |known: &QueueState| known.full && known.own > 0 && known.own >= known.own_max;
        !queues.is_empty() && queues.values().all(is_taken)
    }

    /// Checks whether queues that were full have a free slot again. A worker that has slots leaves one to another that waits
    /// and has none.
    pub(crate) fn look_again(&self) -> Result<(), StoreError> {
        let is_uncertain = |known: &QueueState| known.full || known.waits;
        let queues = self.queues();
        let uncertain: Vec<(String, u32, u32, bool)> = queues
            .iter()
            .filter(|(_, known)| is_uncertain(known))
            .map(|(queue, known)| (queue.clone(), known.concurrency, known.own, known.leaves_slots()))
            .collect();
        drop(queues);
        for (queue, concurrency, own, leaves) in uncertain {
            let taken =
                self.taken(&queue, |taken| leaves && taken.others.saturating_add(own) < concurrency)?;
            if let Some(known) = self.queues().get_mut(&queue) {
                known.looked(&taken);
            }
        }
        Ok(())
    }

    /// Reads how many slots of a queue are taken and, if `asks` for it, whether another worker without any waits for one: the
    /// rows of workers can be large.
    fn taken(&self, queue: &str, asks: impl Fn(&Taken) -> bool) -> Result<Taken, StoreError> {
        self.plans.store().query(|read| {
            let (now, have) = (read.now(), read.slots(queue)?);
            let count = |is_own: bool| {
                let counted = have.iter().filter(|(worker, _)| (*worker == self.worker) == is_own);
                counted.fold(0_u32, |sum, (_, count)| sum.saturating_add(*count))
            };
            let mut taken = Taken { own: count(true), others: count(false), others_wait: false };
            if asks(&taken) {
                let workers = read.workers(WorkerFilter::After(None), WORKERS_PAGE_MAX)?.items;
                taken.others_wait = workers.iter().any(|worker| {
                    worker.name != self.worker
                        && worker.until >= now
                        && worker.waits_for.iter().any(|waited| waited == queue)
                        && !have.iter().any(|(name, _)| *name == worker.name)
                });
            }
            Ok(taken)
        })
    }
}

impl SlotKeeper for StoredSlots {
    fn take(&mut self, queue: &str, concurrency: u32) -> bool {
        {
            let mut queues = self.queues();
            let known = queues.entry(queue.to_owned()).or_default();
            known.concurrency = concurrency;
            if known.full && known.own >= known.own_max {
                return false;
            }
            if known.idle.is_some_and(|at| at.elapsed() >= BREAK_MAX) {
                known.since = None;
            }
            if known.since.get_or_insert_with(Instant::now).elapsed() < TURN {
                known.own += 1;
                known.idle = None;
                return true;
            }
        }
        // This worker has had its turn. If the check fails, it does not yield.
        let no_slot_is_free = |taken: &Taken| taken.others.saturating_add(taken.own) >= concurrency;
        let wanted = self.taken(queue, no_slot_is_free).is_ok_and(|taken| taken.others_wait);
        let mut queues = self.queues();
        let known = queues.entry(queue.to_owned()).or_default();
        known.since = Some(Instant::now());
        if wanted {
            // It keeps its other slots.
            (known.full, known.own_max, known.gave) = (true, known.own, Some(Instant::now()));
        } else {
            known.own += 1;
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
            known.waits |= known.own_max == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use waypost_store::{MemoryStore, Record, Worker, WorkerKind};

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

    /// A store in which a worker elsewhere waits for a slot and has none.
    #[expect(clippy::disallowed_methods, reason = "a test arranges what another worker writes")]
    fn with_waiting_worker() -> Arc<PlanStore> {
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        let mut row = Worker::new("far", "far", WorkerKind::Worker, vec!["default".to_owned()]);
        row.waits_for = vec!["default".to_owned()];
        plans
            .store()
            .write(&mut |transaction| {
                row.until = transaction.now().plus_seconds(60);
                transaction.put(Record::Worker(&row.name, Some(&row)))
            })
            .unwrap();
        plans
    }

    #[test]
    fn a_free_slot_is_left_to_a_worker_that_waits_and_has_none_however_slow_it_is() {
        let mut slots = StoredSlots::new(with_waiting_worker(), "here".to_owned());
        assert!((0..4).all(|_| slots.take("default", 4)));
        slots.was_refused("default");
        slots.give("default");
        // Three are its own, and one is free: it is the other's.
        slots.look_again().unwrap();
        assert!(!slots.has_room("default") && !slots.take("default", 4));
        // Its own ones serve its next tasks.
        slots.give("default");
        assert!(slots.take("default", 4) && !slots.take("default", 4));
        // A worker without any slot need not wait for another one like it.
        (0..3).for_each(|_| slots.give("default"));
        slots.look_again().unwrap();
        assert!(slots.take("default", 4));
    }

    #[test]
    fn a_worker_waits_until_it_has_a_slot_and_not_only_until_one_is_free() {
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        let mut slots = StoredSlots::new(plans, "far".to_owned());
        assert!(slots.take("default", 1));
        slots.was_refused("default");
        slots.give("default");
        slots.look_again().unwrap();
        assert!(slots.has_room("default"));
        assert_eq!(slots.waits_for(), ["default"], "or others would take it before its write arrives");
        // It has nothing to start after all.
        if let Some(known) = slots.queues().get_mut("default") {
            known.free_since = known.free_since.and_then(|since| since.checked_sub(UNUSED_MAX));
        }
        slots.look_again().unwrap();
        assert!(slots.waits_for().is_empty());
    }
}
