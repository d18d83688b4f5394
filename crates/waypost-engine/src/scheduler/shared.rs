//! Plans that other workers write at the same time. The copy of such a plan is not moved on before a write: the store
//! decides and writes those commands that are still possible, and the copy follows by the versions that it has not seen. So nobody
//! reads a whole plan again because another was faster.

use waypost_core::{ActorKind, Plan, PlanId, Refusal, Task, TaskId, Timestamp};
use waypost_store::Entry;

use super::live::{self, AttemptKey};
use super::{Action, AfterFailure, Followed, PARKED_MICROS, Scheduler, holder, is_failure, notice};

/// Seconds for which a plan counts as shared after another worker has written it.
const SHARED_SECONDS: u64 = 10;
/// Ready tasks of a shared plan that are looked at for one write.
const SHARED_READY_MAX: usize = 512;

impl Followed {
    /// Another worker has written the plan.
    pub(super) fn share(&mut self, now: Timestamp) {
        self.shared_until = Some(now.plus_seconds(SHARED_SECONDS));
    }

    pub(super) fn is_shared(&self, now: Timestamp) -> bool {
        self.shared_until.is_some_and(|until| now < until)
    }

    /// The ready tasks in the order in which this worker tries them. Workers that share a plan begin at different places
    /// among tasks of the same urgency, so that they do not all want the same one.
    pub(super) fn ready<'a>(
        &'a self,
        now: Timestamp,
        worker: &str,
    ) -> std::iter::Peekable<Box<dyn Iterator<Item = &'a Task> + 'a>> {
        if !self.is_shared(now) {
            return (Box::new(self.plan.ready()) as Box<dyn Iterator<Item = &'a Task>>).peekable();
        }
        let mut tasks: Vec<&Task> = self.plan.ready().take(SHARED_READY_MAX).collect();
        let place = worker.bytes().fold(self.plan.version() as usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        for urgent in tasks.chunk_by_mut(|a, b| a.spec.priority == b.spec.priority) {
            let count = urgent.len();
            urgent.rotate_left(place % count);
        }
        (Box::new(tasks.into_iter()) as Box<dyn Iterator<Item = &'a Task>>).peekable()
    }
}

impl Scheduler {
    /// Moves the copy on by versions that others, or this run, have written.
    pub(super) fn advance(&mut self, now: Timestamp, id: &PlanId, entries: &[Entry]) {
        let Some(followed) = self.plans.get_mut(id) else { return };
        let foreign = |entry: &Entry| entry.actor.kind == ActorKind::Worker && entry.actor != self.by;
        if entries.iter().any(foreign) {
            followed.share(now);
        }
        let waits_for = followed.pending.as_ref().map(|pending| pending.written);
        if followed.stale || waits_for == Some(None) {
            followed.stale = true;
            return;
        }
        let mut failed = false;
        for entry in entries {
            match entry.version.cmp(&(followed.plan.version() + 1)) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => {
                    followed.plan.advance(&entry.events, entry.at);
                    let touched = followed.plan.take_touched();
                    if entry.actor == self.by || !self.takes.tells_own_only {
                        let notices = notice::of(&followed.plan, &entry.events, &touched);
                        self.told.extend(notices.into_iter().map(Action::Tell));
                    }
                    failed |= entry.events.iter().any(is_failure);
                }
                std::cmp::Ordering::Greater => followed.stale = true,
            }
        }
        self.draining |= failed && self.after_failure == AfterFailure::FailFast;
        self.settle_pending(now, id);
    }

    /// A write of a shared plan is durable as far as it was possible, and the plan is at this version.
    pub(super) fn partly_written(&mut self, now: Timestamp, id: &PlanId, version: u64, refusals: &[Refusal]) {
        let Some(followed) = self.plans.get_mut(id) else { return };
        for refusal in refusals {
            if let Refusal::LockHeld { task, .. } = refusal
                && let Ok(task) = TaskId::new(task.as_str())
            {
                followed.parked.insert(task, Timestamp::from_micros(now.as_micros() + PARKED_MICROS));
            }
            if let Refusal::QueueFull { queue, .. } = refusal {
                // As long as the store says how many start, it is asked about each of them.
                followed.share(now);
                self.slots.was_refused(queue);
            }
        }
        if let Some(pending) = &mut followed.pending {
            pending.written = Some(version);
        }
        self.settle_pending(now, id);
    }

    /// Once the copy has come to where a write left the plan, reads off it what became of that.
    fn settle_pending(&mut self, now: Timestamp, id: &PlanId) {
        let Some(followed) = self.plans.get_mut(id) else { return };
        let there = |written: Option<u64>| written.is_some_and(|version| followed.plan.version() >= version);
        if followed.pending.as_ref().is_some_and(|pending| there(pending.written))
            && let Some(pending) = followed.pending.take()
        {
            self.resolve(now, id, pending);
        }
    }

    /// What of a write has happened, as the plan tells: starts that stand begin, and ends that do not stand are written again.
    pub(super) fn resolve(&mut self, now: Timestamp, id: &PlanId, pending: super::Pending) {
        let worker = self.worker.clone();
        let is_ours = |plan: Option<&Plan>, key: &AttemptKey| {
            plan.is_some_and(|plan| live::is_running(plan, key, Some(&worker)))
        };
        for key in pending.starts {
            if is_ours(self.plan(id), &key) {
                self.begin_or_wait(now, key);
            } else {
                self.forget(&key);
            }
        }
        for (key, live) in pending.finishes {
            if is_ours(self.plan(id), &key) {
                // Nothing of the write happened, its starts included, so the locks are free for whoever had them.
                let _same_as_before = self.locks.acquire(&holder(&key.plan, &key.task), &live.locks);
                self.live.insert(key, live);
            }
        }
        let running = self.live.keys().filter(|key| key.plan == *id).count() as u32;
        if let Some(followed) = self.plans.get_mut(id) {
            followed.running = running;
        }
    }
}
