//! Queues more short tasks than there are slots, so that the next program starts the moment its predecessor ends, and
//! several ends and reservations become one write. Only used while tasks take less time than a few writes.

use std::collections::VecDeque;

use waypost_core::{Phase, PlanId, Task, Timestamp};

use super::attempts::{AttemptStage, StopReason};
use super::duration_average::{AHEAD_FEW, AHEAD_MAX};
use super::{Action, Scheduler, earlier};
use waypost_exec::{AttemptKey, AttemptOutcome};

/// The ending of an attempt that was withdrawn.
const NOT_BEGUN: &str = "it was withdrawn before it began";
/// Microseconds that an ended attempt may wait for others to be written with it.
const LINGER_MICROS: i64 = 20_000;

impl Scheduler {
    /// Returns how many more attempts may be queued without a slot now.
    pub(super) fn ahead_left(&self) -> usize {
        // A pinned file is compared before each start, so that nothing may wait between the comparison and the start.
        let pins = !self.config.pinned_files.is_empty();
        let worthwhile = self.pace.is_short() && !self.slots.counts_starts() && !pins;
        if worthwhile { AHEAD_MAX.saturating_sub(self.waiting_count()) } else { 0 }
    }

    /// Handles a durable reservation: its work begins if it has a slot, or waits for one.
    pub(super) fn begin_or_wait(&mut self, now: Timestamp, key: AttemptKey) {
        self.look_at_live |= self.stopping;
        let may_begin = self.may_begin(&key);
        let Some(live) = self.live.get_mut(&key) else { return };
        if !may_begin {
            live.stop = Some((StopReason::Withdrawn, now, true));
            self.ended(now, &key, AttemptOutcome::Failed { error: NOT_BEGUN.to_owned() });
        } else if live.has_slot {
            live.begin(now);
            self.live_wake_at = earlier(self.live_wake_at, live.deadline);
            self.told.push(Action::Start(key));
        } else {
            live.stage = AttemptStage::Queued;
            self.told.push(Action::Prepare(key.clone()));
            self.waiting.entry(live.queue.clone()).or_default().push_back(key);
            self.fill_slots(now);
        }
    }

    /// Whether the work of a reserved attempt may begin: its plan was not paused meanwhile, for example.
    pub(super) fn may_begin(&self, key: &AttemptKey) -> bool {
        !self.draining
            && self.plans.get(&key.plan).is_none_or(|followed| {
                let state = followed.plan.state();
                let is_held = |task: &Task| followed.holds_back(task);
                followed.stale
                    || state.phase == Phase::Active
                        && !state.archived
                        && !followed.plan.task(key.task.as_str()).is_some_and(is_held)
            })
    }

    /// Records that an attempt has begun: because it was started, or as a pending one in the slot of `predecessor`,
    /// which has ended.
    pub(super) fn began(&mut self, now: Timestamp, key: &AttemptKey, predecessor: Option<&AttemptKey>) {
        if let Some(followed) = self.plans.get_mut(&key.plan) {
            followed.added_at.remove(&key.task);
        }
        let Some(live) = self.live.get_mut(key) else { return };
        live.started_at = Some(now);
        live.predecessor = predecessor.cloned();
        if matches!(live.stop, Some((StopReason::Withdrawn, ..))) {
            // It began before it could be withdrawn.
            live.stop = None;
        }
        // It may have got a slot of its own at the same moment.
        if live.stage != AttemptStage::Queued {
            return;
        }
        live.has_slot = true;
        live.begin(now);
        self.live_wake_at = earlier(self.live_wake_at, live.deadline);
        let queue = live.queue.clone();
        self.leaves_line(key, &queue);
        match predecessor.and_then(|ended| self.live.get_mut(ended)).filter(|ended| ended.has_slot) {
            Some(ended) => {
                ended.has_slot = false;
                self.slots.passed_on(&queue);
            }
            None => self.slots.take_anyway(&queue),
        }
    }

    /// Records that the program of an attempt has ended. Its slot is free at once.
    pub(super) fn ended(&mut self, now: Timestamp, key: &AttemptKey, ending: AttemptOutcome) {
        let Some(live) = self.live.get_mut(key) else { return };
        if let Some(started_at) = live.started_at {
            self.pace.note(now.as_micros() - started_at.as_micros());
        }
        let was = std::mem::replace(&mut live.stage, AttemptStage::Ended);
        live.ended_at = Some(now);
        live.ending = Some(ending);
        let queue = live.queue.clone();
        if std::mem::take(&mut live.has_slot) {
            self.slots.give(&queue);
        } else if was == AttemptStage::Queued {
            self.leaves_line(key, &queue);
        }
        if !self.plans.contains_key(&key.plan) {
            self.forget(key);
        }
        self.fill_slots(now);
    }

    fn leaves_line(&mut self, key: &AttemptKey, queue: &str) {
        let Some(waiting) = self.waiting.get_mut(queue) else { return };
        if waiting.front() == Some(key) {
            waiting.pop_front();
        } else {
            waiting.retain(|waiting| waiting != key);
        }
    }

    /// Assigns free slots to waiting attempts.
    pub(super) fn fill_slots(&mut self, now: Timestamp) {
        for (queue, waiting) in &mut self.waiting {
            let concurrency = self.config.queues.get(&**queue).map_or(0, |queue| queue.concurrency);
            while let Some(key) = waiting.front() {
                let live = self.live.get_mut(key);
                // An attempt that is being stopped never begins.
                let Some(live) =
                    live.filter(|live| live.stage == AttemptStage::Queued && live.stop.is_none())
                else {
                    waiting.pop_front();
                    continue;
                };
                if !self.slots.take(queue, concurrency) {
                    break;
                }
                live.has_slot = true;
                let Some(key) = waiting.pop_front() else { break };
                live.begin(now);
                self.live_wake_at = earlier(self.live_wake_at, live.deadline);
                self.told.push(Action::Start(key));
            }
        }
    }

    /// Returns how many attempts wait for a slot.
    fn waiting_count(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// Whether ended attempts of a plan may wait for more to be written with them. While enough attempts wait for a
    /// slot, nothing that depends on them could start anyway.
    pub(super) fn may_batch(&mut self, now: Timestamp, id: &PlanId) -> bool {
        if self.waiting_count() <= AHEAD_FEW || self.stopping {
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
        self.lingers = true;
        true
    }
}
