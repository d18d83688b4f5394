//! Selects the ready tasks that start now: the most urgent first, then by the plan with the fewest attempts, then in
//! the order of the plan. A task starts within the limits of its queue, and with all its locks or not at all.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use waypost_core::{
    Command, EffectiveStatus, Lock, LockTable, Outcome, Phase, Plan, PlanId, Problem, QuestionRequest, Retry,
    Task, TaskId, Timestamp, Work,
};

use super::attempts::{ActiveAttempt, AttemptStage};
use super::finish::retry_of;
use super::foreign_locks::ForeignLocks;
use super::slots::Slots;
use super::{Audience, Draft, Followed, INSTANT_COMMANDS_MAX, Scheduler, TaskFilter, earlier, holder};
use waypost_config::Config;
use waypost_config::{ResolvedWork, resolve, resolve_check};
use waypost_exec::AttemptKey;
use waypost_exec::check_evidence::{self as proof, Claim, Verdict};
use waypost_store::meters;

/// A task that is to start.
struct Chosen {
    key: AttemptKey,
    locks: Vec<Lock>,
    timeout_seconds: Option<u32>,
    has_slot: bool,
    /// The result of a task that ends at once, without running anything.
    instant: Option<Instant>,
}

/// How an attempt ends at once, without running anything.
pub(super) enum Instant {
    Finish(Outcome, Retry),
    Ask(QuestionRequest),
}

impl Scheduler {
    /// Adds the starts that are possible now to the writes under construction.
    pub(super) fn choose_starts(&mut self, now: Timestamp, writes: &mut BTreeMap<PlanId, Draft>) {
        self.keep_or_drop_reservation();
        // Tasks that end at once make others ready, so repeat until nothing more becomes ready.
        loop {
            let chosen = self.choose(now, writes);
            let mut again = false;
            for one in chosen {
                let Some(draft) = writes.get_mut(&one.key.plan) else { continue };
                again |= self.start(now, one, draft);
            }
            for draft in writes.values_mut().filter(|draft| draft.shared) {
                draft.chosen = true;
            }
            if !again {
                return;
            }
        }
    }

    fn choose(&mut self, now: Timestamp, writes: &BTreeMap<PlanId, Draft>) -> Vec<Chosen> {
        let starting =
            self.live.values().filter(|live| !live.has_slot && live.stage == AttemptStage::Reserving).count();
        let mut ahead_left = self.ahead_left().saturating_sub(starting);
        let part = self.mates.part_of(now, &self.worker);
        let Self { config, plans, locks, foreign_locks, slots, takes, worker, .. } = self;
        let (config, takes): (&Config, &TaskFilter) = (config, takes);
        let (wake_at, served, reserved) = (&mut self.wake_at, &mut self.served, &mut self.reserved);
        let mut chosen: Vec<Chosen> = Vec::new();
        let mut instants: BTreeMap<&PlanId, usize> = BTreeMap::new();
        let mut waits: Vec<(PlanId, TaskId)> = Vec::new();
        let mut foreign_waits: Vec<(PlanId, TaskId)> = Vec::new();
        let mut lasts: BTreeMap<PlanId, u64> = BTreeMap::new();
        let mut turns = Vec::new();
        for (id, followed) in plans.iter() {
            let room = writes
                .get(id)
                .is_some_and(|draft| !draft.chosen && draft.commands.len() < INSTANT_COMMANDS_MAX);
            if room && followed.plan.state().phase == Phase::Active && !followed.is_refused() {
                let concurrency = config.queues.get(&*followed.queue).map_or(0, |queue| queue.concurrency);
                let has_room = ahead_left > 0 || slots.has_room(&followed.queue, concurrency);
                let offer = followed.ready(now, part, has_room, move |task| {
                    Audience::of(config, takes, task) == Audience::Ours && !followed.holds_back(task)
                });
                turns.push((id, followed, offer, followed.in_progress, followed.served));
            }
        }
        // The task that newcomers may not overtake goes first.
        let first = reserved.as_ref().map(|(plan, task, _)| (plan.clone(), task.clone()));
        let mut chosen_first = false;
        if let Some((plan, task)) = &first
            && let Some(turn) = turns.iter_mut().find(|turn| turn.0 == plan)
            && let Some(found) = turn.1.plan.task(task.as_str())
            && !turn.1.holds_back(found)
            && let Ok(Some(one)) = admit(
                config,
                (takes, worker),
                slots,
                &mut ahead_left,
                (now, &mut *locks, &mut *foreign_locks),
                &turn.1.plan,
                found,
            )
        {
            (*reserved, chosen_first) = (None, true);
            turn.3 += 1;
            chosen.push(one);
        }
        loop {
            let best = turns.iter_mut().enumerate().filter_map(|(place, turn)| {
                let priority = turn.2.tasks.peek()?.spec.priority;
                Some((Reverse(priority), turn.3, turn.4, place))
            });
            let Some((_, _, _, place)) = best.min() else { break };
            let (id, followed, offer, running, last) = &mut turns[place];
            let Some(task) = offer.tasks.next() else { continue };
            if first.as_ref().is_some_and(|(plan, first)| plan == *id && *first == task.spec.id)
                && chosen_first
            {
                continue;
            }
            if followed.holds_back(task) {
                continue;
            }
            if let Some(until) = followed.waits_until(now, task) {
                *wake_at = earlier(*wake_at, Some(until));
                continue;
            }
            match admit(
                config,
                (takes, worker),
                slots,
                &mut ahead_left,
                (now, &mut *locks, &mut *foreign_locks),
                &followed.plan,
                task,
            ) {
                Ok(Some(one)) => {
                    *served += 1;
                    (*running, *last) = (*running + 1, *served);
                    lasts.insert((*id).clone(), *served);
                    let full = one.instant.is_some() && {
                        let count = instants.entry(*id).or_default();
                        *count += 1;
                        *count >= offer.instants_max
                    };
                    chosen.push(one);
                    if full {
                        drop(turns.remove(place));
                    }
                }
                Ok(None) => {}
                Err(Obstacle::Queue) => {
                    drop(turns.remove(place));
                }
                Err(Obstacle::ForeignLocks(until)) => {
                    foreign_waits.push(((*id).clone(), task.spec.id.clone()));
                    *wake_at = earlier(*wake_at, Some(until));
                }
                Err(Obstacle::Locks) => waits.push(((*id).clone(), task.spec.id.clone())),
            }
        }
        drop(turns);
        for (id, last) in lasts {
            if let Some(followed) = self.plans.get_mut(&id) {
                followed.served = last;
            }
        }
        self.note_lock_waits(now, waits, &chosen);
        for (plan, task) in foreign_waits {
            if let Some(followed) = self.plans.get_mut(&plan) {
                followed.lock_waits.entry(task).or_insert(now);
            }
        }
        chosen
    }

    /// Records which tasks wait for locks and since when. The one that has waited longest, and long enough, gets a
    /// reservation.
    fn note_lock_waits(&mut self, now: Timestamp, waits: Vec<(PlanId, TaskId)>, chosen: &[Chosen]) {
        for one in chosen {
            if let Some(followed) = self.plans.get_mut(&one.key.plan) {
                if let Some(since) = followed.lock_waits.remove(&one.key.task) {
                    let queue = followed.queue();
                    meters().lock_waits.with([&queue], |times| times.took(now.since(since)));
                }
                followed.parked.remove(&one.key.task);
            }
        }
        let mut longest: Option<(Timestamp, PlanId, TaskId)> = None;
        for (plan, task) in waits {
            let Some(followed) = self.plans.get_mut(&plan) else { continue };
            let since = *followed.lock_waits.entry(task.clone()).or_insert(now);
            if longest.as_ref().is_none_or(|(longest, _, _)| since < *longest) {
                longest = Some((since, plan, task));
            }
        }
        let Some((since, plan, task)) = longest.filter(|_| self.reserved.is_none()) else { return };
        let until = since.plus_seconds(u64::from(self.config.lock_wait_seconds));
        if until > now {
            self.wake_at = earlier(self.wake_at, Some(until));
            return;
        }
        let found = self.plans.get(&plan).and_then(|followed| followed.plan.task(task.as_str()));
        let Some(locks) = found.map(|task| task.spec.locks.clone()) else { return };
        self.locks.reserve(&holder(&plan, &task), &locks);
        self.reserved = Some((plan, task, locks));
    }

    /// Drops the reservation of a task that cannot start anyway: it would block others for nothing.
    fn keep_or_drop_reservation(&mut self) {
        let ready = |plan: &Plan, task: &TaskId| {
            matches!(
                plan.effective_status(task.as_str()),
                Some(EffectiveStatus::Ready | EffectiveStatus::Reported)
            )
        };
        for followed in self.plans.values_mut() {
            let plan = &followed.plan;
            followed.lock_waits.retain(|task, _| ready(plan, task));
        }
        let Some((plan, task, _)) = &self.reserved else { return };
        let stands = self.plans.get(plan).is_some_and(|followed| {
            followed.plan.state().phase == Phase::Active && ready(&followed.plan, task)
        });
        if !stands && let Some((plan, task, locks)) = self.reserved.take() {
            self.locks.release(&holder(&plan, &task), &locks);
        }
    }

    /// Adds a reservation, or the start and end of a task that ends at once. Returns whether something ended whose
    /// consequences are visible.
    fn start(&mut self, now: Timestamp, one: Chosen, draft: &mut Draft) -> bool {
        let Chosen { key, locks, timeout_seconds, has_slot, instant } = one;
        let Some(queue) = self.plans.get_mut(&key.plan).map(Followed::queue) else { return false };
        let (task, worker) = (key.task.clone(), self.worker.clone());
        // Nothing runs for a task that ends at once: it starts and ends with this write.
        let command = match instant {
            Some(_) => Command::StartTask { task, worker },
            None => Command::QueueTask { task, worker },
        };
        let started = self.apply(now, &key.plan, command, draft);
        let Some(instant) = instant.filter(|_| started) else {
            if !started {
                self.release_locks(&key, &locks);
                if has_slot {
                    self.slots.give(&queue);
                }
                return false;
            }
            if let Some(followed) = self.plans.get_mut(&key.plan) {
                followed.in_progress += 1;
            }
            self.live.insert(key.clone(), ActiveAttempt::reserving(locks, queue, timeout_seconds, has_slot));
            draft.starts.push(key);
            return false;
        };
        let (of, attempt) = (key.task.clone(), Some(key.attempt));
        let end = match instant {
            Instant::Finish(outcome, retry) => {
                Command::FinishTask { task: of, attempt, outcome, retry: Some(retry) }
            }
            Instant::Ask(ask) => Command::AskQuestion { task: of, attempt, ask: Box::new(ask) },
        };
        if draft.shared {
            // The end cannot be decided before the start, which this copy does not see.
            draft.commands.push(end);
        } else {
            self.apply(now, &key.plan, end, draft);
        }
        self.release_locks(&key, &locks);
        // The consequences for a shared plan are only seen once they are written.
        !draft.shared
    }
}

/// Why a ready task does not start.
enum Obstacle {
    Queue,
    Locks,
    /// Others hold its locks; until when it is not tried.
    ForeignLocks(Timestamp),
}

/// What a run has to do for a ready task.
pub(super) enum Errand {
    /// Nothing: it is for agents, people or other workers.
    NotOurs,
    /// Record a result at once.
    Instant(Instant),
    /// Run something, with this time limit in seconds.
    Run(Option<u32>),
}

impl Errand {
    pub(super) fn of(config: &Config, takes: &TaskFilter, worker: &str, plan: &PlanId, task: &Task) -> Self {
        let finish = |outcome| Self::Instant(Instant::Finish(outcome, retry_of(config, Some(task))));
        // The plan was changed after it was checked against the configuration, so the task fails with the reason.
        let failed = |wrong| {
            let error = Problem::task(&task.spec.id, wrong).to_string();
            let retry = Retry { attempts: 1, ..config.retry };
            Self::Instant(Instant::Finish(Outcome::Failed { error, evidence: None }, retry))
        };
        let done = || Outcome::Done { result: None, output: None, evidence: None };
        let spec = &task.spec;
        if let (Some(report), Some(check)) = (task.state.reported(), &spec.check) {
            return match resolve_check(config, check) {
                _ if !takes.executor(&check.executor) => Self::NotOurs,
                Err(_) if takes.leaves_unknown => Self::NotOurs,
                Ok(ResolvedWork::Noop) => finish(proved(check, &report.into(), worker)),
                Ok(ResolvedWork::Human) => match proof::by_person(plan, task, check, report) {
                    Verdict::Ask(ask) => Self::Instant(Instant::Ask(ask)),
                    Verdict::Outcome(outcome) => finish(outcome),
                },
                Ok(ResolvedWork::Worker(doer)) => Self::Run(doer.timeout_seconds()),
                Err(wrong) => failed(wrong),
            };
        }
        let Some(work) = &spec.work else { return Self::NotOurs };
        let check = spec.check.as_deref().map(|check| (check, resolve_check(config, check)));
        match (resolve(config, work), check) {
            _ if !takes.executor(&work.executor) => Self::NotOurs,
            (Err(_), _) | (_, Some((_, Err(_)))) if takes.leaves_unknown => Self::NotOurs,
            (Ok(ResolvedWork::Human), _) => Self::NotOurs,
            (Ok(ResolvedWork::Worker(doer)), _) => Self::Run(doer.timeout_seconds()),
            // The person is asked once the work is reported.
            (Ok(ResolvedWork::Noop), None | Some((_, Ok(ResolvedWork::Human)))) => finish(done()),
            (Ok(ResolvedWork::Noop), Some((check, Ok(ResolvedWork::Noop)))) => {
                finish(proved(check, &Claim::default(), worker))
            }
            (Ok(ResolvedWork::Noop), Some((_, Ok(ResolvedWork::Worker(_))))) => Self::Run(None),
            (Err(wrong), _) | (Ok(ResolvedWork::Noop), Some((_, Err(wrong)))) => failed(wrong),
        }
    }
}

/// Returns a success with the evidence of a check that has nothing to run.
fn proved(check: &Work, claim: &Claim, worker: &str) -> Outcome {
    let evidence = Some(Box::new(proof::of_nothing(check, claim, worker)));
    Outcome::Done { result: None, output: None, evidence }
}

/// Returns the time limit of an attempt in seconds, given that of its worker.
pub(super) fn time_limit(config: &Config, task: &Task, of_worker: Option<u32>) -> Option<u32> {
    task.spec.timeout_seconds.or(of_worker).or(config.timeout_seconds).filter(|&seconds| seconds > 0)
}

/// Takes a slot and the locks of a task that may start. `None` if the task is not for this run.
fn admit(
    config: &Config,
    (takes, worker): (&TaskFilter, &str),
    slots: &mut Slots,
    ahead_left: &mut usize,
    (now, locks, foreign_locks): (Timestamp, &mut LockTable, &mut ForeignLocks),
    plan: &Plan,
    task: &Task,
) -> Result<Option<Chosen>, Obstacle> {
    let (instant, timeout) = match Errand::of(config, takes, worker, plan.id(), task) {
        Errand::NotOurs => return Ok(None),
        Errand::Instant(instant) => (Some(instant), None),
        Errand::Run(timeout) => (None, timeout),
    };
    let queue = Config::queue_name(&plan.spec().queue);
    let concurrency = config.queues.get(queue).map_or(0, |queue| queue.concurrency);
    let has_slot = instant.is_none() && slots.take(queue, concurrency);
    let full = instant.is_none() && !has_slot;
    // If other runs have all slots, it is unknown when one becomes free.
    let soon = *ahead_left > 0 && slots.has_any(queue) && !slots.are_wanted(queue);
    // A task with a limit of attempts is not queued before it can really start: it might lose an attempt while it
    // waits.
    if full && (!soon || task.spec.retry.is_some()) {
        return Err(Obstacle::Queue);
    }
    if !task.spec.locks.is_empty() {
        let obstacle = match foreign_locks.blocked_until(now, &task.spec.locks) {
            Some(until) => Some(Obstacle::ForeignLocks(until)),
            None => {
                let acquired = locks.acquire(&holder(plan.id(), &task.spec.id), &task.spec.locks);
                acquired.is_err().then_some(Obstacle::Locks)
            }
        };
        if let Some(obstacle) = obstacle {
            if has_slot {
                slots.give(queue);
            }
            return Err(obstacle);
        }
        foreign_locks.probe(now, plan.id(), &task.spec.id, &task.spec.locks);
    }
    if full {
        *ahead_left -= 1;
    }
    Ok(Some(Chosen {
        key: AttemptKey::new(plan.id(), &task.spec.id, task.state.attempt.saturating_add(1)),
        has_slot,
        locks: task.spec.locks.clone(),
        timeout_seconds: time_limit(config, task, timeout),
        instant,
    }))
}
