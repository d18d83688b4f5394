//! Stops attempts that must end, and writes the results of those that have ended.

use std::collections::BTreeSet;

use waypost_core::{Command, Outcome, PlanId, Retry, Task, Timestamp};

use super::attempts::{self as live, ActiveAttempt, AttemptStage, StopReason};
use super::{
    Action, Draft, Followed, LOST_ATTEMPTS_MIN, Loss, RunEvent, Scheduler, TRY_AGAIN_ATTEMPTS, earlier,
};
use waypost_config::Config;
use waypost_config::{ResolvedWork, resolve};
use waypost_exec::check_evidence::CHECK_ATTEMPTS;
use waypost_exec::{AttemptKey, AttemptOutcome, Force};

/// Microseconds after which a start is written on its own. Readers are promised to see it within 200 ms.
const RECORD_START_MICROS: i64 = 100_000;

impl Scheduler {
    /// Stops attempts that are over their time limit, no longer wanted, or part of a run that ends.
    pub(super) fn stop_what_must_end(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        if self.look_at_live || self.live_wake_at.is_some_and(|at| at <= now) {
            self.look_at_live = false;
            self.live_wake_at = None;
            self.look_at_all(now, actions);
        }
        self.wake_at = earlier(self.wake_at, self.live_wake_at);
    }

    fn look_at_all(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let queued = self.live.iter().filter(|(_, live)| live.stage == AttemptStage::Queued);
        let withdrawn: BTreeSet<AttemptKey> =
            queued.filter(|(key, _)| !self.may_begin(key)).map(|(key, _)| key.clone()).collect();
        for (key, live) in &mut self.live {
            if !matches!(live.stage, AttemptStage::Running | AttemptStage::Queued) {
                continue;
            }
            let stands = self.plans.get(&key.plan).is_none_or(|followed| {
                followed.stale || live::is_in_progress(&followed.plan, key, Some(&self.worker))
            });
            let wanted = stands && !live.lost;
            let reason = if !wanted {
                Some(StopReason::NoLongerWanted)
            } else if self.stopping {
                Some(StopReason::RunStopped)
            } else if live.deadline.is_some_and(|deadline| deadline <= now) {
                Some(StopReason::TimedOut)
            } else if withdrawn.contains(key) {
                Some(StopReason::Withdrawn)
            } else {
                None
            };
            let force_at = |since: Timestamp| since.plus_seconds(u64::from(self.config.stop_seconds));
            match (&mut live.stop, reason) {
                (None, None) => self.live_wake_at = earlier(self.live_wake_at, live.deadline),
                // Another worker may be doing the same work now: there is no time for a request to end.
                (None | Some((_, _, false)), _) if live.lost => {
                    live.stop = Some((StopReason::NoLongerWanted, now, true));
                    actions.push(Action::Stop(key.clone(), Force::Kill));
                }
                (None, Some(StopReason::Withdrawn)) => {
                    live.stop = Some((StopReason::Withdrawn, now, true));
                    actions.push(Action::Withdraw(key.clone()));
                }
                (None, Some(reason)) => {
                    live.stop = Some((reason, now, false));
                    actions.push(Action::Stop(key.clone(), Force::Ask));
                    self.live_wake_at = earlier(self.live_wake_at, Some(force_at(now)));
                }
                (Some((_, since, forced @ false)), _) if force_at(*since) <= now => {
                    *forced = true;
                    actions.push(Action::Stop(key.clone(), Force::Kill));
                }
                (Some((_, since, false)), _) => {
                    self.live_wake_at = earlier(self.live_wake_at, Some(force_at(*since)));
                }
                (Some((_, _, true)), _) => {}
            }
        }
    }

    /// Adds the commands for attempts of this plan that have ended, ours and those of others.
    pub(super) fn write_what_ended(&mut self, now: Timestamp, id: &PlanId, draft: &mut Draft) {
        let ended: Vec<AttemptKey> = self
            .live
            .iter()
            .filter(|(key, live)| key.plan == *id && live.stage == AttemptStage::Ended)
            .map(|(key, _)| key.clone())
            .collect();
        for key in ended {
            let Some(live) = self.live.get_mut(&key) else { continue };
            let task = self.plans.get(id).and_then(|followed| followed.plan.task(key.task.as_str()));
            let command = finish(&key, live, &self.config, task);
            let Some(live) = self.live.remove(&key) else { continue };
            self.release(&key, &live);
            let stands =
                self.plans.get(id).is_some_and(|followed| live::is_in_progress(&followed.plan, &key, None));
            if stands && !live.lost {
                self.record_start(now, &key, live.started_at, draft);
                if self.apply(now, id, command, draft) {
                    draft.finishes.push((key, live));
                }
            }
        }
        let Some(followed) = self.plans.get_mut(id) else { return };
        // Kept until the plan shows it: the write may have to be repeated.
        let plan = &followed.plan;
        followed.gone.retain(|(key, _)| live::is_in_progress(plan, key, None));
        // Those with a remote job are followed by another attempt in the same write.
        let mut gone = followed.gone.clone();
        gone.retain(|(_, loss)| *loss != Loss::JobLeft);
        if gone.is_empty() && followed.plan.counts().in_progress() == followed.in_progress {
            return;
        }
        // An attempt that the plan attributes to this worker and that does not run here was lost.
        let ours = followed
            .plan
            .in_progress()
            .filter(|task| task.state.worker.as_deref() == Some(self.worker.as_str()));
        let ours = ours.map(|task| AttemptKey::new(id, &task.spec.id, task.state.attempt));
        let written = |key: &AttemptKey| draft.finishes.iter().any(|(written, _)| written == key);
        let lost = ours.filter(|key| !self.live.contains_key(key) && !written(key));
        gone.extend(lost.map(|key| (key, Loss::Died)));
        for (key, loss) in gone {
            let retry = Some(retry_of_lost(&self.config, loss));
            let command = Command::LoseTask { task: key.task.clone(), attempt: key.attempt, retry };
            self.apply(now, id, command, draft);
        }
    }

    /// Records that an attempt has begun, unless the plan already shows it.
    fn record_start(
        &mut self,
        now: Timestamp,
        key: &AttemptKey,
        started_at: Option<Timestamp>,
        draft: &mut Draft,
    ) {
        if let Some(started_at) = started_at.filter(|_| self.is_queued(key)) {
            let (task, attempt) = (key.task.clone(), key.attempt);
            self.apply(now, &key.plan, Command::RecordStart { task, attempt, started_at }, draft);
        }
    }

    /// Reports and stores the progress of attempts, each after its start was reported. For an attempt that has ended,
    /// progress is reported before the end and not stored.
    pub(super) fn tell_progress(&mut self, actions: &mut Vec<Action>) {
        for (key, progress) in std::mem::take(&mut self.progress) {
            let Some(live) = self.live.get(&key).filter(|live| !live.lost) else { continue };
            let (plan, task) = (key.plan.clone(), key.task.clone());
            let told = RunEvent::TaskProgressed { plan, task, progress: progress.clone() };
            if live.stage == AttemptStage::Ended {
                actions.push(Action::Tell(told));
                continue;
            }
            let is_pending = |followed: &Followed| followed.pending.is_some();
            if self.is_queued(&key) || self.plans.get(&key.plan).is_none_or(is_pending) {
                self.progress.insert(key, progress);
                continue;
            }
            if let Some(followed) = self.plans.get_mut(&key.plan) {
                followed.plan.show_progress(&key.task, key.attempt, &progress);
            }
            actions.push(Action::Tell(told));
            actions.push(Action::StoreProgress(key, progress));
        }
    }

    fn is_queued(&self, key: &AttemptKey) -> bool {
        let task = self.plans.get(&key.plan).and_then(|followed| followed.plan.task(key.task.as_str()));
        task.is_some_and(|task| task.state.is_queued() && task.state.attempt == key.attempt)
    }

    /// Records the starts of all running attempts of this plan: with any other write, or on their own after a while.
    pub(super) fn record_starts(&mut self, now: Timestamp, id: &PlanId, draft: &mut Draft) {
        let begun =
            self.live.iter().filter(|(key, live)| key.plan == *id && live.stage == AttemptStage::Running);
        let begun: Vec<(AttemptKey, Timestamp)> = begun
            .filter(|(key, live)| !live.lost && self.is_queued(key))
            .filter(|(_, live)| live.predecessor.as_ref().is_none_or(|key| !self.live.contains_key(key)))
            .filter_map(|(key, live)| Some((key.clone(), live.started_at?)))
            .collect();
        let Some(first) = begun.iter().map(|(_, started_at)| *started_at).min() else { return };
        let due = Timestamp::from_micros(first.as_micros().saturating_add(RECORD_START_MICROS));
        // Progress is reported after the start and should not wait for it.
        let is_waited_for = begun.iter().any(|(key, _)| self.progress.contains_key(key));
        if draft.commands.is_empty() && due > now && !is_waited_for {
            self.wake_at = earlier(self.wake_at, Some(due));
            return;
        }
        for (key, started_at) in begun {
            self.record_start(now, &key, Some(started_at), draft);
        }
    }
}

/// Returns the retry policy of a task whose worker was lost. A dead run says nothing about the task, so it is always
/// retried, unless its author sets a limit.
pub(super) fn retry_of_lost(config: &Config, loss: Loss) -> Retry {
    match loss {
        Loss::Died | Loss::JobLeft => {
            Retry { attempts: u32::MAX, backoff_seconds: 0, backoff_seconds_max: 0 }
        }
        Loss::Expired => Retry { attempts: config.retry.attempts.max(LOST_ATTEMPTS_MIN), ..config.retry },
    }
}

/// Returns the retry policy of a task whose author sets none. Work of an agent or a person is sent back a few times
/// when its check fails, without a wait.
pub(super) fn retry_of(config: &Config, task: Option<&Task>) -> Retry {
    let is_for_people = task.is_some_and(|task| {
        let work = task.spec.work.as_deref();
        work.is_none_or(|work| resolve(config, work) == Ok(ResolvedWork::Human))
    });
    if is_for_people {
        let attempts = config.retry.attempts.max(CHECK_ATTEMPTS);
        return Retry { attempts, backoff_seconds: 0, backoff_seconds_max: 0 };
    }
    config.retry
}

/// Builds the command that records how an attempt ended.
fn finish(key: &AttemptKey, live: &mut ActiveAttempt, config: &Config, found: Option<&Task>) -> Command {
    let (task, attempt) = (key.task.clone(), Some(key.attempt));
    let reason = live.stop.as_ref().map(|(reason, _, _)| *reason);
    // A clone, because the write may have to be repeated.
    let ending =
        live.ending.clone().unwrap_or(AttemptOutcome::Failed { error: "its outcome is unknown".to_owned() });
    let mut retry = retry_of(config, found);
    let (error, evidence) = match ending {
        AttemptOutcome::Done { result, output } => {
            let outcome = Outcome::Done { result, output, evidence: None };
            return Command::FinishTask { task, attempt, outcome, retry: Some(retry) };
        }
        AttemptOutcome::Checked { result, output, error: None, evidence } => {
            let outcome = Outcome::Done { result, output, evidence: Some(evidence) };
            return Command::FinishTask { task, attempt, outcome, retry: Some(retry) };
        }
        AttemptOutcome::Asked(ask) => return Command::AskQuestion { task, attempt, ask },
        AttemptOutcome::Checked { error: Some(error), evidence, .. } => (error, Some(evidence)),
        AttemptOutcome::Failed { error } => (error, None),
        AttemptOutcome::TryAgain { error } => {
            retry = Retry { attempts: config.retry.attempts.max(TRY_AGAIN_ATTEMPTS), ..config.retry };
            (error, None)
        }
    };
    let outcome = match reason {
        Some(StopReason::Withdrawn) => {
            let reason = "nothing new was to start".to_owned();
            return Command::ReleaseTask { task, attempt, reason };
        }
        Some(StopReason::RunStopped) if live.started_at.is_none() || may_begin_again(found) => {
            let reason = "the run was stopped".to_owned();
            return Command::ReleaseTask { task, attempt, reason };
        }
        Some(StopReason::RunStopped) => {
            let error = "the run was stopped, and its author allows no further attempt".to_owned();
            Outcome::Failed { error, evidence: None }
        }
        Some(StopReason::TimedOut) => {
            retry = retry_of(config, found);
            let seconds = live.timeout_seconds.unwrap_or_default();
            Outcome::Failed { error: format!("it took longer than {seconds} s and was stopped"), evidence }
        }
        Some(StopReason::NoLongerWanted) | None => Outcome::Failed { error, evidence },
    };
    Command::FinishTask { task, attempt, outcome, retry: Some(retry) }
}

/// Whether an interrupted attempt may be repeated. The author's limit of attempts is respected.
fn may_begin_again(task: Option<&Task>) -> bool {
    task.is_none_or(|task| {
        task.spec.retry.as_ref().is_none_or(|retry| task.state.tries.saturating_add(1) < retry.attempts)
    })
}
