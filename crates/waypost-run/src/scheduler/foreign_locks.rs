//! Lock keys that others hold, as far as refusals of the store have told. The lock table of a run only knows its own
//! attempts; without this, each task that needs such a key would be tried, and refused, by itself.

use std::collections::BTreeMap;

use waypost_core::{Lock, LockMode, Plan, PlanId, Task, TaskId, Timestamp};

/// Microseconds until a key is tried again after its first refusal; doubled with each further one for the same holder.
const RETRY_MICROS_MIN: i64 = 250_000;
const RETRY_MICROS_MAX: i64 = 4_000_000;
/// Microseconds after which a key is forgotten that no task wanted when it could be tried again.
const UNUSED_MICROS_MAX: i64 = 60_000_000;

#[derive(Debug)]
struct ForeignLock {
    /// The plan and the task that hold the key.
    holder: (String, String),
    /// The weakest mode that was refused: after `Exclusive`, the holder may be one that shares the key.
    refused: LockMode,
    tried: Timestamp,
    pause: i64,
    /// Until when the key is not tried.
    until: Timestamp,
    /// The task that tries it now.
    probe: Option<(PlanId, TaskId)>,
}

fn plus(at: Timestamp, micros: i64) -> Timestamp {
    Timestamp::from_micros(at.as_micros().saturating_add(micros))
}

impl ForeignLock {
    fn conflicts(&self, lock: &Lock) -> bool {
        lock.mode == LockMode::Exclusive || self.refused == LockMode::Shared
    }

    fn blocks(&self, now: Timestamp, lock: &Lock) -> bool {
        // The clock may have been set back.
        self.conflicts(lock) && now < self.until && self.until <= plus(now, RETRY_MICROS_MAX)
    }
}

#[derive(Debug, Default)]
pub(super) struct ForeignLocks(BTreeMap<String, ForeignLock>);

impl ForeignLocks {
    /// Returns until when a task with these locks is not tried; `None` if it can be tried now.
    pub(super) fn blocked_until(&self, now: Timestamp, locks: &[Lock]) -> Option<Timestamp> {
        if self.0.is_empty() {
            return None;
        }
        let known = locks.iter().filter_map(|lock| Some((lock, self.0.get(&lock.key)?)));
        known.filter(|(lock, foreign)| foreign.blocks(now, lock)).map(|(_, foreign)| foreign.until).max()
    }

    /// Records that a task tries its locks: until the result is known, no other task tries the same keys.
    pub(super) fn probe(&mut self, now: Timestamp, plan: &PlanId, task: &TaskId, locks: &[Lock]) {
        if self.0.is_empty() {
            return;
        }
        for lock in locks {
            if let Some(foreign) = self.0.get_mut(&lock.key).filter(|foreign| foreign.conflicts(lock)) {
                foreign.until = plus(now, foreign.pause);
                foreign.probe = Some((plan.clone(), task.clone()));
            }
        }
    }

    /// Records that a lock was refused because `holder`, as `PLAN/TASK`, has it.
    pub(super) fn refused(&mut self, now: Timestamp, lock: &Lock, holder: &str) {
        let (plan, task) = holder.split_once('/').unwrap_or(("", holder));
        let holder = (plan.to_owned(), task.to_owned());
        let known = self.0.remove(&lock.key);
        self.0.retain(|_, foreign| now < plus(foreign.until, UNUSED_MICROS_MAX));
        let (refused, pause) = match known {
            Some(known) if known.holder == holder => {
                let weakest = if known.refused == LockMode::Shared { LockMode::Shared } else { lock.mode };
                (weakest, (2 * known.pause).min(RETRY_MICROS_MAX))
            }
            Some(_) | None => (lock.mode, RETRY_MICROS_MIN),
        };
        let until = plus(now, pause);
        let foreign = ForeignLock { holder, refused, tried: now, pause, until, probe: None };
        self.0.insert(lock.key.clone(), foreign);
    }

    /// Records the result of a write of `plan` whose refused locks are recorded: what else was tried is free, unless
    /// the task was refused for another reason.
    pub(super) fn settle(&mut self, plan: &PlanId, is_refused: impl Fn(&TaskId) -> bool) {
        self.0.retain(|_, foreign| match &foreign.probe {
            Some((of, task)) if of == plan => {
                let refused = is_refused(task);
                foreign.probe = None;
                refused
            }
            Some(_) | None => true,
        });
    }

    /// Makes the keys due that no task of this plan holds any more, and records the new holders of the others.
    pub(super) fn look_at(&mut self, now: Timestamp, plan: &Plan) {
        for (key, foreign) in self.0.iter_mut().filter(|(_, foreign)| foreign.holder.0 == plan.id().as_str())
        {
            let holds = |task: &&Task| task.spec.locks.iter().any(|lock| lock.key == *key);
            let is_known = |task: &Task| task.spec.id.as_str() == foreign.holder.1;
            if plan.in_progress().filter(holds).any(is_known) {
                continue;
            }
            match plan.in_progress().find(holds) {
                Some(next) => {
                    foreign.holder.1 = next.spec.id.to_string();
                    (foreign.pause, foreign.until) = (RETRY_MICROS_MIN, plus(now, RETRY_MICROS_MIN));
                }
                None => foreign.until = now,
            }
        }
    }

    /// The store has changed: a key may be free that is held in a plan whose changes are not read here.
    pub(super) fn store_changed(&mut self, is_followed: impl Fn(&str) -> bool) {
        for foreign in self.0.values_mut().filter(|foreign| !is_followed(&foreign.holder.0)) {
            foreign.until = foreign.until.min(plus(foreign.tried, RETRY_MICROS_MIN));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(key: &str, mode: LockMode) -> Lock {
        Lock { key: key.to_owned(), mode }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    #[test]
    fn one_task_at_a_time_tries_a_held_key_at_growing_intervals_until_it_is_free() {
        let (mut foreign, x) = (ForeignLocks::default(), [lock("x", LockMode::Exclusive)]);
        let (plan, task) = (PlanId::new("p").unwrap(), TaskId::new("t").unwrap());
        let mut now = 0;
        for pause in [250, 500, 1_000, 2_000, 4_000, 4_000] {
            foreign.refused(at(now), &x[0], "q/a");
            foreign.settle(&plan, |_| true);
            assert_eq!(foreign.blocked_until(at(now), &x), Some(at(now + pause)));
            now += pause;
            assert_eq!(foreign.blocked_until(at(now), &x), None);
            foreign.probe(at(now), &plan, &task, &x);
            assert!(foreign.blocked_until(at(now), &x).is_some(), "a second task tries it");
        }
        // Another holder: the key is in motion.
        foreign.refused(at(now), &x[0], "q/b");
        assert_eq!(foreign.blocked_until(at(now), &x), Some(at(now + 250)));
        foreign.probe(at(now + 250), &plan, &task, &x);
        foreign.settle(&plan, |_| false);
        assert_eq!(foreign.blocked_until(at(now + 250), &x), None);
    }

    #[test]
    fn a_key_that_was_refused_as_exclusive_may_be_shared() {
        let (mut foreign, plan) = (ForeignLocks::default(), PlanId::new("p").unwrap());
        let (read, write) = ([lock("x", LockMode::Shared)], [lock("x", LockMode::Exclusive)]);
        foreign.refused(at(0), &write[0], "q/a");
        assert_eq!(foreign.blocked_until(at(0), &read), None);
        // Tasks that share it do not put off those that do not.
        foreign.probe(at(200), &plan, &TaskId::new("t").unwrap(), &read);
        assert_eq!(foreign.blocked_until(at(200), &write), Some(at(250)));
        foreign.refused(at(200), &read[0], "q/a");
        assert!(foreign.blocked_until(at(200), &read).is_some());
    }

    #[test]
    fn a_change_of_the_store_or_a_clock_that_is_set_back_brings_the_next_try_forward() {
        let (mut foreign, x) = (ForeignLocks::default(), [lock("x", LockMode::Exclusive)]);
        (0..5).for_each(|_| foreign.refused(at(10_000), &x[0], "q/a"));
        assert_eq!(foreign.blocked_until(at(5_000), &x), None);
        foreign.store_changed(|plan| plan == "q");
        assert_eq!(foreign.blocked_until(at(10_000), &x), Some(at(14_000)));
        foreign.store_changed(|_| false);
        assert_eq!(foreign.blocked_until(at(10_000), &x), Some(at(10_250)));
    }
}
