//! Plans that other workers write at the same time. The copy of such a plan does not change before a write: the store
//! decides and writes the commands that are still possible, and the copy follows by the versions that it has not seen.
//! So no worker reads a whole plan again because another was faster.

use std::collections::BTreeMap;
use std::sync::Arc;

use waypost_core::{ActorKind, Event, Plan, PlanId, Refusal, Task, Timestamp};
use waypost_store::VersionRecord;

use super::attempts as live;
use super::peer_workers::{Part, SHARED_SECONDS};
use super::{
    Action, AfterFailure, CheckedGates, Followed, INSTANT_COMMANDS_MAX, Scheduler, holder, is_failure,
    run_event as notice,
};
use waypost_config::Config;
use waypost_exec::AttemptKey;

/// Ready tasks of its own part that a worker considers for one write, and, for each priority, of the parts of others.
const SHARED_READY_MAX: usize = 512;
/// Ready tasks of a shared plan that are examined for one write.
const SHARED_LOOKED_MAX: usize = 16 * SHARED_READY_MAX;
/// Maximum count of lost races: a worker begins this many powers of two further ahead.
const LOST_RACES_MAX: u32 = 9;
/// How many powers of two one lost race adds.
const LOST_RACE_STEP: u32 = 2;
/// Tasks that end at once that a worker always tries, even if they are in the parts of others.
const SHARED_INSTANTS_MIN: usize = 32;

/// The ready tasks of a plan in the order in which a worker tries them.
pub(super) struct Offer<'a> {
    pub(super) tasks: std::iter::Peekable<Box<dyn Iterator<Item = &'a Task> + 'a>>,
    /// The number of tasks that end at once in one write.
    pub(super) instants_max: usize,
}

impl Followed {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            queue: Config::queue_name(&plan.spec().queue).into(),
            plan,
            pending: None,
            stale: false,
            reading: false,
            shared_until: None,
            gone: Vec::new(),
            parked: BTreeMap::new(),
            lost_races: 0,
            lock_waits: BTreeMap::new(),
            added_at: BTreeMap::new(),
            resumed_at: None,
            served: 0,
            in_progress: 0,
            approval: None,
            gates: CheckedGates::default(),
        }
    }

    /// Records when tasks could not start before.
    fn note_times(&mut self, entry: &VersionRecord) {
        for event in &entry.events {
            if let Event::TasksAdded { tasks, .. } = event {
                self.added_at.extend(tasks.iter().map(|task| (task.id.clone(), entry.at)));
            } else if matches!(event, Event::PlanResumed { .. }) {
                self.resumed_at = Some(entry.at);
            }
        }
    }

    /// Returns the name of the plan's queue, which an edit may have changed.
    pub(super) fn queue(&mut self) -> Arc<str> {
        let name = Config::queue_name(&self.plan.spec().queue);
        if *self.queue != *name {
            self.queue = name.into();
        }
        Arc::clone(&self.queue)
    }

    /// Records that another worker has written the plan.
    pub(super) fn share(&mut self, now: Timestamp) {
        self.shared_until = Some(now.plus_seconds(SHARED_SECONDS));
    }

    pub(super) fn is_shared(&self, now: Timestamp) -> bool {
        self.shared_until.is_some_and(|until| now < until)
    }

    /// Returns the ready tasks in the order in which this worker tries them. Among tasks of the same priority, workers
    /// that share a plan begin with different parts, so that they do not all try the same ones. Tasks in the parts of
    /// others come after a worker's own. A worker that is slow to reach the store, and that others do not know yet, begins
    /// further ahead: whatever comes first has long been started when its write arrives. Without room for a program, only
    /// tasks that end at once can start, and the order is that of the plan: a busy worker looks often, and finds none.
    pub(super) fn ready<'a>(
        &'a self,
        now: Timestamp,
        part: Part,
        has_room: bool,
        is_ours: impl Fn(&Task) -> bool + 'a,
    ) -> Offer<'a> {
        let offer = |tasks: Box<dyn Iterator<Item = &'a Task> + 'a>, instants_max: usize| Offer {
            tasks: tasks.peekable(),
            instants_max,
        };
        if !self.is_shared(now) {
            return offer(Box::new(self.plan.ready()), INSTANT_COMMANDS_MAX / 2);
        }
        if !has_room {
            let ours = self.plan.ready().take(SHARED_LOOKED_MAX).filter(move |task| is_ours(task));
            return offer(Box::new(ours), SHARED_INSTANTS_MIN);
        }
        let (mut own, mut looked) = (0, 0);
        // By priority, the highest first: tasks of the own part, and those of others.
        let mut found: Vec<(i32, Vec<&Task>, Vec<&Task>)> = Vec::new();
        for task in self.plan.ready().filter(|task| is_ours(task)) {
            if own == SHARED_READY_MAX || looked == SHARED_LOOKED_MAX {
                break;
            }
            let priority = task.spec.priority;
            if found.last().is_none_or(|(known, ..)| *known != priority) {
                found.push((priority, Vec::new(), Vec::new()));
            }
            let Some((_, mine, others)) = found.last_mut() else { break };
            // Tasks that wait for their time do not count; they are only included to find out when to wake.
            let counts = usize::from(self.waits_until(now, task).is_none());
            looked += counts;
            if part.has(&task.spec.id) {
                own += counts;
                mine.push(task);
            } else if others.len() < SHARED_READY_MAX {
                others.push(task);
            }
        }
        let ahead = (1 << self.lost_races) - 1;
        let tasks = found.into_iter().flat_map(move |(_, mut mine, mut others)| {
            if !mine.is_empty() {
                let ahead = ahead % mine.len();
                mine.rotate_left(ahead);
            }
            if !others.is_empty() {
                let count = others.len();
                others.rotate_left(part.place as usize * count / part.of as usize);
            }
            mine.into_iter().chain(others)
        });
        offer(Box::new(tasks), own.clamp(SHARED_INSTANTS_MIN, SHARED_READY_MAX))
    }

    /// Returns until when a ready task is not tried; `None` if it can be tried now.
    pub(super) fn waits_until(&self, now: Timestamp, task: &Task) -> Option<Timestamp> {
        let until = [task.state.not_before, self.parked.get(&task.spec.id).copied()];
        until.into_iter().flatten().filter(|&until| until > now).max()
    }
}

impl Scheduler {
    /// Advances the copy by versions that others, or this run, have written.
    pub(super) fn advance(&mut self, now: Timestamp, id: &PlanId, entries: &[VersionRecord]) {
        let Some(followed) = self.plans.get_mut(id) else { return };
        let foreign =
            |entry: &&VersionRecord| entry.actor.kind == ActorKind::Worker && entry.actor != self.by;
        for entry in entries.iter().filter(foreign) {
            self.mates.see(now, &entry.actor.name);
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
                    followed.note_times(entry);
                    let touched = followed.plan.take_touched();
                    if entry.actor != self.by {
                        for (task, _) in &touched.started {
                            followed.added_at.remove(task);
                        }
                    }
                    if entry.actor == self.by || !self.takes.tells_own_only {
                        let notices = notice::notices_of(&followed.plan, &entry.events, &touched);
                        self.told.extend(notices.into_iter().map(Action::Tell));
                    }
                    failed |= entry.events.iter().any(is_failure);
                }
                std::cmp::Ordering::Greater => followed.stale = true,
            }
        }
        if !entries.is_empty() {
            self.foreign_locks.look_at(now, &followed.plan);
        }
        self.draining |= failed && self.after_failure == AfterFailure::FailFast;
        self.settle_pending(now, id);
    }

    /// Handles a write of a shared plan: its possible part is durable, and the plan is at this version.
    pub(super) fn partly_written(&mut self, now: Timestamp, id: &PlanId, version: u64, refusals: &[Refusal]) {
        self.note_refusals(now, id, refusals);
        self.foreign_locks.settle(id, |task| {
            refusals.iter().any(|refusal| super::refused_task(refusal) == Some(task.as_str()))
        });
        let Some(followed) = self.plans.get_mut(id) else { return };
        if let Some(pending) = &mut followed.pending {
            pending.written = Some(version);
        }
        self.settle_pending(now, id);
    }

    /// Resolves the pending write once the copy has reached its version.
    fn settle_pending(&mut self, now: Timestamp, id: &PlanId) {
        let Some(followed) = self.plans.get_mut(id) else { return };
        let there = |written: Option<u64>| written.is_some_and(|version| followed.plan.version() >= version);
        if followed.pending.as_ref().is_some_and(|pending| there(pending.written))
            && let Some(pending) = followed.pending.take()
        {
            self.resolve(now, id, pending);
        }
    }

    /// Finds out from the plan which part of a write took effect: existing reservations begin, and missing ends are
    /// written again.
    pub(super) fn resolve(&mut self, now: Timestamp, id: &PlanId, pending: super::Pending) {
        let worker = self.worker.clone();
        let is_ours = |plan: Option<&Plan>, key: &AttemptKey| {
            plan.is_some_and(|plan| live::is_in_progress(plan, key, Some(&worker)))
        };
        let is_taken = |plan: Option<&Plan>, key: &AttemptKey| {
            let task = plan.and_then(|plan| plan.task(key.task.as_str()));
            task.is_some_and(|task| task.state.attempt >= key.attempt)
        };
        let (mut won, mut lost) = (false, false);
        for key in pending.starts {
            if is_ours(self.plan(id), &key) {
                won = true;
                self.begin_or_wait(now, key);
            } else {
                lost |= is_taken(self.plan(id), &key);
                self.forget(&key);
            }
        }
        for (key, live) in pending.finishes {
            if is_ours(self.plan(id), &key) {
                // Nothing of the write took effect, its starts included, so the previous holder can take the locks
                // again.
                let _same_as_before = self.locks.acquire(&holder(&key.plan, &key.task), &live.locks);
                self.live.insert(key, live);
            }
        }
        let in_progress = self.live.keys().filter(|key| key.plan == *id).count() as u32;
        if let Some(followed) = self.plans.get_mut(id) {
            followed.in_progress = in_progress;
            followed.lost_races = match (won, lost) {
                (true, _) => followed.lost_races.saturating_sub(1),
                // A slow worker loses few races a minute, so it must not take many to learn how far ahead to begin.
                (false, true) => (followed.lost_races + LOST_RACE_STEP).min(LOST_RACES_MAX),
                (false, false) => followed.lost_races,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waypost_core::{Actor, Command};
    use waypost_testkit::{plan_of, task};

    #[test]
    fn a_worker_that_loses_every_race_begins_further_ahead() {
        let now = Timestamp::from_micros(1);
        let mut plan = Plan::blank(PlanId::new("p").unwrap());
        let draft = plan_of((0..40).map(|number| task(&format!("t{number}"), &[]))).into();
        let create = Command::Create { draft, approval_required: None };
        let events = plan.decide(&Actor::person("ada"), now, &create).unwrap();
        plan.advance(&events, now);
        let mut followed = Followed::new(plan);
        followed.share(now);
        let first = |followed: &Followed| {
            let mut offer = followed.ready(now, Part { place: 0, of: 1 }, true, |_| true);
            let count = offer.tasks.peek().map(|task| task.spec.id.to_string());
            (count.unwrap(), offer.tasks.count())
        };
        let begins = [0, 1, 2, 3, LOST_RACES_MAX].map(|lost_races| {
            followed.lost_races = lost_races;
            first(&followed)
        });
        assert_eq!(begins.map(|(first, _)| first), ["t0", "t1", "t3", "t7", "t31"]);
        assert_eq!(first(&followed).1, 40, "none is left out");
    }
}
