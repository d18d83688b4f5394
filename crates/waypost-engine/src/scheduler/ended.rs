//! Attempts that must end, and what is written about those that have ended.

use waypost_core::{Command, Outcome, PlanId, Retry, Timestamp};

use super::live::{self, AttemptKey, Ending, Force, Live, Stage, StopReason};
use super::{Action, Draft, LOST_ATTEMPTS_MIN, Loss, Scheduler, TRY_AGAIN_ATTEMPTS, earlier};
use crate::config::Config;

impl Scheduler {
    /// Attempts that are over time, no longer wanted, or to end because the run ends.
    pub(super) fn stop_what_must_end(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        self.drop_waiting(now);
        for (key, live) in &mut self.live {
            if live.stage != Stage::Running {
                continue;
            }
            let wanted = self.plans.get(&key.plan).is_none_or(|followed| {
                followed.stale || live::is_running(&followed.plan, key, Some(&self.worker))
            });
            let reason = if !wanted {
                Some(StopReason::NoLongerWanted)
            } else if self.stopping {
                Some(StopReason::RunStopped)
            } else if live.deadline.is_some_and(|deadline| deadline <= now) {
                Some(StopReason::TimedOut)
            } else {
                None
            };
            let force_at = |since: Timestamp| since.plus_seconds(u64::from(self.config.stop_seconds));
            match (&mut live.stop, reason) {
                (None, None) => self.wake_at = earlier(self.wake_at, live.deadline),
                (None, Some(reason)) => {
                    live.stop = Some((reason, now, false));
                    actions.push(Action::Stop(key.clone(), Force::Ask));
                    self.wake_at = earlier(self.wake_at, Some(force_at(now)));
                }
                (Some((_, since, forced @ false)), _) if force_at(*since) <= now => {
                    *forced = true;
                    actions.push(Action::Stop(key.clone(), Force::Kill));
                }
                (Some((_, since, false)), _) => self.wake_at = earlier(self.wake_at, Some(force_at(*since))),
                (Some((_, _, true)), _) => {}
            }
        }
    }

    /// The commands for attempts of this plan that have ended, ours and others'.
    pub(super) fn write_what_ended(&mut self, now: Timestamp, id: &PlanId, draft: &mut Draft) {
        let ended: Vec<AttemptKey> = self
            .live
            .iter()
            .filter(|(key, live)| key.plan == *id && (live.stage == Stage::Ended || live.progress.is_some()))
            .map(|(key, _)| key.clone())
            .collect();
        for key in ended {
            let Some(live) = self.live.get_mut(&key) else { continue };
            if live.stage != Stage::Ended {
                if let Some(progress) = live.progress.take() {
                    let (task, attempt) = (key.task.clone(), key.attempt);
                    self.apply(now, id, Command::ReportProgress { task, attempt, progress }, draft);
                }
                continue;
            }
            let command = finish(&key, live, &self.config);
            let Some(live) = self.live.remove(&key) else { continue };
            self.release(&key, &live);
            let wanted =
                self.plans.get(id).is_some_and(|followed| live::is_running(&followed.plan, &key, None));
            if wanted && self.apply(now, id, command, draft) {
                draft.finishes.push((key, live));
            }
        }
        let Some(followed) = self.plans.get_mut(id) else { return };
        // Kept until the plan says so, too: the write may have to be made again.
        let plan = &followed.plan;
        followed.gone.retain(|(key, _)| live::is_running(plan, key, None));
        let mut gone = followed.gone.clone();
        // What stands as ours and does not run here was lost on the way.
        let ours =
            followed.plan.running().filter(|task| task.state.worker.as_deref() == Some(self.worker.as_str()));
        let ours = ours.map(|task| AttemptKey::new(id, &task.spec.id, task.state.attempt));
        let written = |key: &AttemptKey| draft.finishes.iter().any(|(written, _)| written == key);
        let lost = ours.filter(|key| !self.live.contains_key(key) && !written(key));
        gone.extend(lost.map(|key| (key, Loss::Died)));
        for (key, loss) in gone {
            let retry = Some(retry_of_lost(&self.config, loss));
            let command = Command::LoseTask { task: key.task, attempt: key.attempt, retry };
            self.apply(now, id, command, draft);
        }
    }
}

/// How often a task is tried whose worker was lost. A run that died says nothing about the task, so it is always tried
/// again, unless its author said how often.
fn retry_of_lost(config: &Config, loss: Loss) -> Retry {
    match loss {
        Loss::Died => Retry { attempts: u32::MAX, backoff_seconds: 0, backoff_seconds_max: 0 },
        Loss::Expired => Retry { attempts: config.retry.attempts.max(LOST_ATTEMPTS_MIN), ..config.retry },
    }
}

/// The command that says how an attempt ended.
fn finish(key: &AttemptKey, live: &mut Live, config: &Config) -> Command {
    let (task, attempt) = (key.task.clone(), key.attempt);
    let reason = live.stop.as_ref().map(|(reason, _, _)| *reason);
    // A copy: the write may have to be made again.
    let ending =
        live.ending.clone().unwrap_or(Ending::Failed { error: "nobody knows how it ended".to_owned() });
    let mut retry = config.retry;
    let outcome = match (ending, reason) {
        (Ending::Done { result, output }, _) => Outcome::Done { result, output },
        (Ending::Failed { .. } | Ending::TryAgain { .. }, Some(StopReason::RunStopped)) => {
            return Command::LoseTask { task, attempt, retry: Some(retry_of_lost(config, Loss::Died)) };
        }
        (Ending::Failed { .. } | Ending::TryAgain { .. }, Some(StopReason::TimedOut)) => {
            let seconds = live.timeout_seconds.unwrap_or_default();
            Outcome::Failed { error: format!("it took longer than {seconds} s and was stopped") }
        }
        (Ending::Failed { error }, Some(StopReason::NoLongerWanted) | None) => Outcome::Failed { error },
        (Ending::TryAgain { error }, Some(StopReason::NoLongerWanted) | None) => {
            retry.attempts = retry.attempts.max(TRY_AGAIN_ATTEMPTS);
            Outcome::Failed { error }
        }
    };
    Command::FinishTask { task, attempt: Some(attempt), outcome, retry: Some(retry) }
}
