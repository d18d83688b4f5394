//! Short tasks are started ahead: written as started before a slot is free, so that the next program starts the moment the
//! one before it ends, and several ends and starts become one write.
//!
//! Only where tasks take less time than a few writes do; a task that waits for its slot counts as running meanwhile.

use waypost_core::{PlanId, Timestamp};

use super::live::{AttemptKey, Ending, Stage};
use super::{Action, Scheduler, earlier};

/// Attempts that may wait for a slot.
pub(super) const AHEAD_MAX: usize = 16;
/// Microseconds that attempts take on average where starting ahead is worth its while.
const SHORT_MICROS: i64 = 20_000;
/// Attempts that have to end before anything is known about the average.
const KNOWN_MIN: u32 = 8;
/// Microseconds for which the end of an attempt may wait for others to be written with it.
const LINGER_MICROS: i64 = 5_000;

/// How long attempts take on average, the latest counting most.
#[derive(Debug, Default)]
pub(super) struct Pace {
    count: u32,
    average_micros: i64,
}

impl Pace {
    fn note(&mut self, micros: i64) {
        self.count = self.count.saturating_add(1);
        let weight = i64::from(self.count.min(8));
        self.average_micros += (micros.max(0) - self.average_micros) / weight;
    }

    fn is_short(&self) -> bool {
        self.count >= KNOWN_MIN && self.average_micros < SHORT_MICROS
    }
}

impl Scheduler {
    /// How many more attempts may be started ahead now.
    pub(super) fn ahead_left(&self) -> usize {
        if self.pace.is_short() { AHEAD_MAX.saturating_sub(self.waiting.len()) } else { 0 }
    }

    /// A start is durable: its work begins, or waits for a slot when it was started ahead.
    pub(super) fn begin_or_wait(&mut self, now: Timestamp, key: AttemptKey) {
        let Some(live) = self.live.get_mut(&key) else { return };
        if live.ahead {
            live.stage = Stage::Waiting;
            self.waiting.push_back(key);
            self.fill_slots(now);
        } else {
            live.begin(now);
            self.told.push(Action::Start(key));
        }
    }

    /// The program of an attempt has ended, and its slot is free at once.
    pub(super) fn ended(&mut self, now: Timestamp, key: &AttemptKey, ending: Ending) {
        let Some(live) = self.live.get_mut(key) else { return };
        self.pace.note(now.as_micros() - live.since.as_micros());
        if live.has_slot() {
            self.slots.give(&live.queue);
        }
        live.stage = Stage::Ended;
        live.ended_at = Some(now);
        live.ending = Some(ending);
        self.fill_slots(now);
    }

    /// Gives free slots to those who wait for one.
    pub(super) fn fill_slots(&mut self, now: Timestamp) {
        if self.stopping {
            return;
        }
        let mut place = 0;
        while let Some(key) = self.waiting.get(place) {
            let Some(live) = self.live.get_mut(key).filter(|live| live.stage == Stage::Waiting) else {
                self.waiting.remove(place);
                continue;
            };
            let concurrency = self.config.queues.get(&live.queue).map_or(0, |queue| queue.concurrency);
            if !self.slots.take(&live.queue, concurrency) {
                place += 1;
                continue;
            }
            live.ahead = false;
            live.begin(now);
            let key = key.clone();
            self.waiting.remove(place);
            self.told.push(Action::Start(key));
        }
    }

    /// Attempts that wait for a slot and are no longer wanted, or are not to start because the run ends.
    pub(super) fn drop_waiting(&mut self, now: Timestamp) {
        for key in self.waiting.clone() {
            let wanted = self.plans.get(&key.plan).is_none_or(|followed| {
                followed.stale || super::live::is_running(&followed.plan, &key, Some(&self.worker))
            });
            if !wanted {
                self.forget(&key);
            } else if self.stopping
                && let Some(live) = self.live.get_mut(&key)
            {
                live.give_back(now);
            }
        }
        self.waiting.retain(|key| self.live.get(key).is_some_and(|live| live.stage == Stage::Waiting));
    }

    /// Whether what has ended in a plan may wait for more to be written with it: while enough attempts wait for a slot,
    /// nothing that depends on it could start anyway.
    pub(super) fn may_linger(&mut self, now: Timestamp, id: &PlanId) -> bool {
        if self.waiting.len() <= AHEAD_MAX / 2 || self.stopping {
            return false;
        }
        let ended =
            self.live.iter().filter(|(key, _)| key.plan == *id).filter_map(|(_, live)| live.ended_at).min();
        let Some(until) = ended.map(|at| Timestamp::from_micros(at.as_micros() + LINGER_MICROS)) else {
            return false;
        };
        if until <= now {
            return false;
        }
        self.wake_at = earlier(self.wake_at, Some(until));
        true
    }
}
