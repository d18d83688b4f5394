//! Lost attempts whose remote job is still there. The next attempt follows that job, and starts in the write that records
//! the loss: no other task can take the locks while the job runs. Until that is possible, the attempt stays as it is, with
//! its locks.

use std::collections::BTreeMap;

use waypost_core::{Command, Event, Phase, PlanId, Timestamp};
use waypost_exec::AttemptKey;

use super::attempts::{self as live, ActiveAttempt};
use super::finish::retry_of_lost;
use super::select::{Errand, time_limit};
use super::{Audience, Draft, Followed, Loss, Scheduler, holder};

impl Scheduler {
    /// Whether a lost attempt can be followed by another one at once: its author allows one more, without a wait.
    pub fn follows_at_once(&self, now: Timestamp, key: &AttemptKey) -> bool {
        let Some(followed) = self.plans.get(&key.plan) else { return false };
        let events = followed.plan.decide(&self.by, now, &self.loss_of(key));
        let at_once =
            |event: &Event| matches!(event, Event::TaskFailed { again_at: Some(at), .. } if *at <= now);
        events.is_ok_and(|events| events.iter().any(at_once))
    }

    fn loss_of(&self, key: &AttemptKey) -> Command {
        let retry = Some(retry_of_lost(&self.config, Loss::JobLeft));
        Command::LoseTask { task: key.task.clone(), attempt: key.attempt, retry }
    }

    /// Adds the losses and starts of attempts whose remote job is followed from now on.
    pub(super) fn take_over_jobs(&mut self, now: Timestamp, writes: &mut BTreeMap<PlanId, Draft>) {
        for (id, draft) in writes {
            let Some(followed) = self.plans.get(id) else { continue };
            let is_left = |(key, loss): &&(AttemptKey, Loss)| {
                *loss == Loss::JobLeft && live::is_in_progress(&followed.plan, key, None)
            };
            let left: Vec<AttemptKey> =
                followed.gone.iter().filter(is_left).map(|(key, _)| key.clone()).collect();
            for key in left {
                self.take_over_job(now, &key, draft);
            }
        }
    }

    fn take_over_job(&mut self, now: Timestamp, key: &AttemptKey, draft: &mut Draft) {
        let loss = self.loss_of(key);
        if !self.follows_at_once(now, key) {
            return;
        }
        let Some(followed) = self.plans.get_mut(&key.plan) else { return };
        let queue = followed.queue();
        let Some(task) = followed.plan.task(key.task.as_str()) else { return };
        let is_ours = Audience::of(&self.config, &self.takes, task) == Audience::Ours;
        let is_active = followed.plan.state().phase == Phase::Active;
        if !is_active || !is_ours || followed.is_refused() || followed.holds_back(task) {
            return;
        }
        let errand = Errand::of(&self.config, &self.takes, &self.worker, &key.plan, task);
        let Errand::Run(timeout) = errand else { return };
        let timeout_seconds = time_limit(&self.config, task, timeout);
        let locks = task.spec.locks.clone();
        let concurrency = self.config.queues.get(&*queue).map_or(0, |queue| queue.concurrency);
        if !self.slots.take(&queue, concurrency) {
            return;
        }
        if !locks.is_empty() && self.locks.acquire(&holder(&key.plan, &key.task), &locks).is_err() {
            return self.slots.give(&queue);
        }
        let next = AttemptKey::new(&key.plan, &key.task, key.attempt.saturating_add(1));
        let start = Command::QueueTask { task: key.task.clone(), worker: self.worker.clone() };
        let mut started = self.apply(now, &key.plan, loss, draft);
        if started && draft.shared {
            // It cannot be decided before the loss, which this copy does not see.
            draft.commands.push(start);
        } else if started {
            started = self.apply(now, &key.plan, start, draft);
        }
        if !started {
            self.release_locks(key, &locks);
            return self.slots.give(&queue);
        }
        if let Some(Followed { in_progress, .. }) = self.plans.get_mut(&key.plan) {
            *in_progress += 1;
        }
        self.live.insert(next.clone(), ActiveAttempt::reserving(locks, queue, timeout_seconds, true));
        draft.starts.push(next);
    }
}
