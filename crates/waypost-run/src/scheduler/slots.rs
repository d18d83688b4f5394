//! Slots of queues: limits how many programs of a queue run at the same time, over all runs that share it.
//!
//! The slot keeper knows the slots of other runs; this counts those of this run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// Assigns the slots of queues to all runs that share them. Never waits.
pub trait SlotKeeper: Debug + Send {
    /// Takes one more slot of a queue with `concurrency` slots in all. `false`: other runs have them.
    fn take(&mut self, queue: &str, concurrency: u32) -> bool;
    /// Releases one slot.
    fn give(&mut self, queue: &str);
    /// Whether another run waits that has no slot, and this one has had its turn.
    fn is_wanted(&mut self, queue: &str) -> bool;
    /// Whether the write of a start takes the slot and may be refused. Then nothing is queued ahead of a slot.
    fn counts_starts(&self) -> bool {
        false
    }
    /// Whether a slot may be free, as far as is known without asking.
    fn has_room(&self, _queue: &str) -> bool {
        true
    }
    /// Reports that the write of a start was refused for lack of a slot in this queue.
    fn was_refused(&mut self, _queue: &str) {}
}

/// Slots that are not shared with other runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unshared;

impl SlotKeeper for Unshared {
    fn take(&mut self, _: &str, _: u32) -> bool {
        true
    }
    fn give(&mut self, _: &str) {}
    fn is_wanted(&mut self, _: &str) -> bool {
        false
    }
}

/// The slots of this run in one queue.
#[derive(Debug, Default)]
struct Share {
    /// Slots that programs use now.
    used: u32,
    /// Slots taken from the keeper. When a program ends, its slot serves the next.
    held: u32,
}

#[derive(Debug)]
pub(super) struct Slots {
    keeper: Box<dyn SlotKeeper>,
    /// The most programs of all queues at the same time in this run.
    jobs: Option<u32>,
    queues: BTreeMap<String, Share>,
    /// Queues without a free slot for now.
    denied: BTreeSet<String>,
    /// Queues in which another run waits for a slot: it gets the next one that no attempt here takes over.
    wanted: BTreeSet<String>,
}

impl Slots {
    pub(super) fn new(keeper: Box<dyn SlotKeeper>, jobs: Option<u32>) -> Self {
        Self { keeper, jobs, queues: BTreeMap::new(), denied: BTreeSet::new(), wanted: BTreeSet::new() }
    }

    /// Tries denied queues again, because other runs may have released slots.
    pub(super) fn ask_again(&mut self) {
        self.denied.clear();
    }

    /// Whether a slot of a queue with `concurrency` slots may be free.
    pub(super) fn has_room(&self, queue: &str, concurrency: u32) -> bool {
        let used: u32 = self.queues.values().map(|share| share.used).sum();
        let share = self.queues.get(queue);
        self.jobs.is_none_or(|jobs| used < jobs)
            && share.is_none_or(|share| share.used < concurrency)
            && (share.is_some_and(|share| share.held > share.used) || self.keeper.has_room(queue))
    }

    /// Takes a slot of a queue with `concurrency` slots, if one is free.
    pub(super) fn take(&mut self, queue: &str, concurrency: u32) -> bool {
        let used: u32 = self.queues.values().map(|share| share.used).sum();
        if self.denied.contains(queue) || self.jobs.is_some_and(|jobs| used >= jobs) {
            return false;
        }
        if !self.queues.contains_key(queue) {
            self.queues.insert(queue.to_owned(), Share::default());
        }
        let Some(share) = self.queues.get_mut(queue).filter(|share| share.used < concurrency) else {
            return false;
        };
        let taken = if share.held == share.used {
            let taken = self.keeper.take(queue, concurrency);
            share.held += u32::from(taken);
            taken
        } else if self.keeper.is_wanted(queue) {
            self.keeper.give(queue);
            share.held -= 1;
            false
        } else {
            true
        };
        if taken {
            share.used += 1;
        } else {
            self.denied.insert(queue.to_owned());
        }
        taken
    }

    /// Reports that the store refused a slot that seemed free.
    pub(super) fn was_refused(&mut self, queue: &str) {
        self.keeper.was_refused(queue);
    }

    /// Whether the write of a start takes its slot.
    pub(super) fn counts_starts(&self) -> bool {
        self.keeper.counts_starts()
    }

    /// Returns how many programs of this run have slots of a queue.
    pub(super) fn used(&self, queue: &str) -> u32 {
        self.queues.get(queue).map_or(0, |share| share.used)
    }

    /// Releases the slot of a program that has ended or does not start after all.
    pub(super) fn give(&mut self, queue: &str) {
        let Some(share) = self.queues.get_mut(queue) else { return };
        share.used = share.used.saturating_sub(1);
        if self.wanted.remove(queue) && share.held > share.used {
            share.held -= 1;
            self.keeper.give(queue);
            self.denied.insert(queue.to_owned());
        }
        // If the store counts, the next start has to ask again.
        if self.keeper.counts_starts() && share.held > share.used {
            share.held -= 1;
            self.keeper.give(queue);
        }
    }

    /// Records that a program began in the slot of one that ended. If another run waits, nothing new is queued ahead.
    pub(super) fn passed_on(&mut self, queue: &str) {
        if !self.wanted.contains(queue) && self.keeper.is_wanted(queue) {
            self.wanted.insert(queue.to_owned());
        }
    }

    /// Whether another run waits for slots of the queue.
    pub(super) fn are_wanted(&self, queue: &str) -> bool {
        self.wanted.contains(queue)
    }

    /// Counts a program that began without an assigned slot.
    pub(super) fn take_anyway(&mut self, queue: &str) {
        let share = self.queues.entry(queue.to_owned()).or_default();
        share.used += 1;
    }

    /// Whether programs of this run have slots of the queue.
    pub(super) fn has_any(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|share| share.used > 0)
    }

    /// Releases the slots that nothing in this run uses now.
    pub(super) fn give_back_unused(&mut self) {
        for (queue, share) in &mut self.queues {
            while share.held > share.used {
                share.held -= 1;
                self.keeper.give(queue);
            }
        }
    }
}
