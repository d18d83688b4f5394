//! Two workers follow the same plans in a store that takes 1 to 500 ms for each call, and tasks of different plans want
//! the same locks: every task is done, and a worker handles what it is told soon, however much it has to write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Actor, Command, Draft, Event, Phase, Plan, PlanId, Refusal, Status, Timestamp};
use waypost_run::{
    Action, ActionQueue, AfterFailure, AttemptKey, AttemptOutcome, Control, Idleness, Input, Scheduler,
};
use waypost_store::VersionRecord;
use waypost_testkit::{SeededRng, plan_of};

use crate::own_plan;
use crate::several::clash;
use crate::world::{config, job};

/// Seeds of the simulation. `WAYPOST_SEED` repeats one.
const SEEDS: u64 = 60;
/// The longest call of the store, in milliseconds.
const CALL_MILLIS_MAX: i64 = 500;
/// The longest time from a message to a worker until its scheduler has it: the rest of a turn, the call that is being
/// made and what is read between two turns.
const INPUT_MILLIS_MAX: i64 = 100 + 4 * CALL_MILLIS_MAX;
/// Calls of the store for each task, of both workers together.
const CALLS_PER_TASK_MAX: usize = 10;
/// Calls of the store until a worker that drains is over.
const DRAIN_CALLS_MAX: usize = 24;

fn later(at: Timestamp, millis: i64) -> Timestamp {
    Timestamp::from_micros(at.as_micros() + millis * 1_000)
}

/// The plans as stored.
struct Stored {
    plans: BTreeMap<PlanId, Plan>,
    log: Vec<VersionRecord>,
}

impl Stored {
    /// Writes all commands or, if `partly`, those that are possible.
    fn write(
        &mut self,
        now: Timestamp,
        by: &Actor,
        id: &PlanId,
        commands: &[Command],
        partly: bool,
    ) -> Result<(u64, Vec<Refusal>), Refusal> {
        let mut next = self.plans[id].clone();
        let at = now.max(next.state().updated_at.unwrap_or(now));
        let (mut events, mut refusals) = (Vec::new(), Vec::new());
        for command in commands {
            let decided = next.decide(by, at, command).and_then(|decided| {
                self.locks_are_free(&next, &decided)?;
                Ok(decided)
            });
            match decided {
                Ok(decided) => {
                    decided.iter().for_each(|event| next.evolve(event, at));
                    events.extend(decided);
                }
                Err(refusal) if partly => refusals.push(refusal),
                Err(refusal) => return Err(refusal),
            }
        }
        if !events.is_empty() {
            next.finish_version(at);
            next.take_touched();
            let (plan, version, sequence) = (id.clone(), next.version(), self.log.len() as u64 + 1);
            let (actor, command) = (by.clone(), String::new());
            self.log.push(VersionRecord { sequence, plan, version, at, actor, command, events });
            self.plans.insert(id.clone(), next);
        }
        Ok((self.plans[id].version(), refusals))
    }

    fn locks_are_free(&self, changed: &Plan, events: &[Event]) -> Result<(), Refusal> {
        for event in events {
            let (Event::TaskStarted { task, started_at: None, .. } | Event::TaskQueued { task, .. }) = event
            else {
                continue;
            };
            let wanted = &changed.task(task.as_str()).unwrap().spec.locks;
            let others = self.plans.values().filter(|plan| plan.id() != changed.id());
            for plan in others.chain([changed]) {
                for other in plan.in_progress() {
                    if let Some(key) = clash(wanted, &other.spec.locks) {
                        let holder = format!("{}/{}", plan.id(), other.spec.id);
                        return Err(Refusal::LockHeld { task: task.to_string(), key, holder });
                    }
                }
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.plans.values().all(|plan| plan.state().phase == Phase::Completed)
    }
}

/// A worker and where it is in its event loop, which is that of the runner.
struct Worker {
    scheduler: Scheduler,
    queue: ActionQueue,
    /// Until when it is in a call of the store, or waits.
    now: Timestamp,
    waits: bool,
    seen: usize,
    messages: Vec<(Timestamp, Input)>,
    calls: usize,
    /// The calls that it had made when it was asked to drain.
    asked: Option<usize>,
    over: bool,
}

struct World {
    stored: Stored,
    dice: SeededRng,
    workers: Vec<Worker>,
    started: BTreeSet<AttemptKey>,
    latest_input_millis: i64,
}

impl World {
    fn new(config: Config, drafts: Vec<Draft>, dice: SeededRng) -> Self {
        let (config, now, ada) =
            (Arc::new(config), Timestamp::from_micros(1_000_000_000), Actor::person("ada"));
        let mut stored = Stored { plans: BTreeMap::new(), log: Vec::new() };
        for (number, draft) in drafts.into_iter().enumerate() {
            let mut plan = Plan::blank(PlanId::new(format!("p{number}")).unwrap());
            let create = Command::Create { draft: draft.into(), approval_required: Some(false) };
            let events = plan.decide(&ada, now, &create).unwrap();
            plan.advance(&events, now);
            let record = own_plan::record(&config, &plan, now).unwrap();
            let id = plan.id().clone();
            stored.plans.insert(id.clone(), plan);
            stored.write(now, &ada, &id, &[Command::Activate, record], false).unwrap();
        }
        let seen = stored.log.len();
        let workers = ["w1", "w2"].map(|name| {
            let mut scheduler = Scheduler::new(Arc::clone(&config), name, AfterFailure::KeepGoing);
            for plan in stored.plans.values() {
                scheduler.handle(now, Input::Adopted(Box::new(plan.clone())));
            }
            let queue = ActionQueue::default();
            let (messages, asked) = (Vec::new(), None);
            Worker { scheduler, queue, now, waits: true, seen, messages, calls: 0, asked, over: false }
        });
        let (workers, started) = (workers.into(), BTreeSet::new());
        Self { stored, dice, workers, started, latest_input_millis: 0 }
    }

    fn calls(&self) -> usize {
        self.workers.iter().map(|worker| worker.calls).sum()
    }

    /// The worker has called the store.
    fn called(&mut self, worker: usize) {
        let millis = 1 + self.dice.below(CALL_MILLIS_MAX as usize) as i64;
        let worker = &mut self.workers[worker];
        worker.now = later(worker.now, millis);
        worker.calls += 1;
    }

    /// The worker that is free first makes the next action, or the rest of its loop.
    fn turn(&mut self) {
        let worker = (0..self.workers.len()).filter(|&worker| !self.workers[worker].over);
        let worker = worker.min_by_key(|&worker| self.workers[worker].now).unwrap();
        let acting = &mut self.workers[worker];
        if std::mem::take(&mut acting.waits) {
            let now = acting.now;
            let (arrived, rest): (Vec<_>, Vec<_>) =
                std::mem::take(&mut acting.messages).into_iter().partition(|(at, _)| *at <= now);
            acting.messages = rest;
            for (at, input) in arrived {
                let millis = (now.as_micros() - at.as_micros()) / 1_000;
                self.latest_input_millis = self.latest_input_millis.max(millis);
                acting.scheduler.handle(now, input);
            }
            acting.queue.begin(now);
        }
        if let Some(action) = acting.queue.next(acting.now, &mut acting.scheduler) {
            self.act(worker, action);
            return;
        }
        if acting.asked.is_some() && acting.scheduler.rest() == Idleness::Over {
            acting.over = true;
            return;
        }
        acting.waits = true;
        if self.read_others(worker) {
            return;
        }
        let acting = &mut self.workers[worker];
        if acting.queue.is_done() {
            let next = acting.messages.iter().map(|(at, _)| *at);
            let next = next.chain(acting.scheduler.wake_at()).chain([later(acting.now, 1_000)]).min();
            // A moment later at least, as when others have written.
            acting.now = next.unwrap().clamp(later(acting.now, 1), later(acting.now, 20));
        }
    }

    /// Reads what others have written; returns whether there was anything.
    fn read_others(&mut self, worker: usize) -> bool {
        let acting = &mut self.workers[worker];
        let seen = std::mem::replace(&mut acting.seen, self.stored.log.len());
        let written: BTreeSet<PlanId> =
            self.stored.log[seen..].iter().map(|entry| entry.plan.clone()).collect();
        let mut any = false;
        for id in written {
            any |= self.catch_up(worker, &id);
        }
        any
    }

    fn catch_up(&mut self, worker: usize, id: &PlanId) -> bool {
        let acting = &mut self.workers[worker];
        let known = acting.scheduler.plan(id).map_or(0, Plan::version);
        let missing = |entry: &&VersionRecord| entry.plan == *id && entry.version > known;
        let entries: Vec<VersionRecord> = self.stored.log.iter().filter(missing).cloned().collect();
        if entries.is_empty() {
            return false;
        }
        self.called(worker);
        let acting = &mut self.workers[worker];
        acting.scheduler.handle(acting.now, Input::Advanced(id.clone(), entries));
        true
    }

    fn act(&mut self, worker: usize, action: Action) {
        let (now, by) = (self.workers[worker].now, self.workers[worker].scheduler.actor().clone());
        let input = match action {
            Action::Write(id, commands) => match self.stored.write(now, &by, &id, &commands, false) {
                Ok((version, _)) => Input::Written(id, version),
                Err(refusal) => Input::Refused(id, refusal),
            },
            Action::WritePossible(id, commands) => {
                let (version, refusals) = self.stored.write(now, &by, &id, &commands, true).unwrap();
                Input::PartlyWritten(id, version, refusals)
            }
            Action::CatchUp(id) => {
                self.catch_up(worker, &id);
                return;
            }
            Action::Read(id) => Input::Adopted(Box::new(self.stored.plans[&id].clone())),
            Action::Start(key) => {
                assert!(self.started.insert(key.clone()), "{key:?} starts twice");
                let millis = self.dice.below(60) as i64;
                let worker = &mut self.workers[worker];
                worker.scheduler.handle(now, Input::Began(key.clone(), None));
                let done = AttemptOutcome::Done { result: None, output: None };
                worker.messages.push((later(now, millis), Input::Ended(key, done)));
                return;
            }
            Action::Withdraw(key) => {
                let error = "it was stopped before it began".to_owned();
                let input = Input::Ended(key, AttemptOutcome::Failed { error });
                self.workers[worker].scheduler.handle(now, input);
                return;
            }
            // It begins with `Start`, when a slot is free.
            Action::Prepare(_) | Action::Stop(..) | Action::Tell(_) | Action::StoreProgress(..) => return,
        };
        self.called(worker);
        let acting = &mut self.workers[worker];
        acting.scheduler.handle(acting.now, input);
    }
}

fn random_draft(dice: &mut SeededRng, count: usize) -> Draft {
    let keys: [&[&str]; 6] = [&["x"], &["y"], &["x", "y"], &["~x"], &["~y"], &["x", "~y"]];
    plan_of((0..count).map(|number| job(&format!("t{number}"), &[], dice.pick::<&[&str]>(&keys))))
}

fn run(seed: u64) {
    let mut dice = SeededRng::new(seed);
    let counts = [20 + dice.below(40), 20 + dice.below(40)];
    let drafts = counts.map(|count| random_draft(&mut dice, count)).into();
    let mut world = World::new(config(1 + dice.below(4) as u32), drafts, dice);
    let tasks: usize = counts.iter().sum();
    let drains = world.dice.chance(50).then(|| world.dice.below(3 * tasks));
    while !world.stored.is_done() {
        let calls = world.calls();
        assert!(
            calls <= tasks * CALLS_PER_TASK_MAX,
            "seed {seed}: {:?} after {calls} calls",
            world.stored.plans.values().map(Plan::counts).collect::<Vec<_>>()
        );
        let first = &mut world.workers[0];
        if first.asked.is_none() && drains.is_some_and(|drains| calls >= drains) {
            first.asked = Some(first.calls);
            first.messages.push((first.now, Input::Control(Control::Drain)));
        }
        assert!(
            first.over || first.asked.is_none_or(|asked| first.calls <= asked + DRAIN_CALLS_MAX),
            "seed {seed}: a worker that drains does not end"
        );
        world.turn();
        assert!(
            world.latest_input_millis <= INPUT_MILLIS_MAX,
            "seed {seed}: a message waited for {} ms",
            world.latest_input_millis
        );
    }
    let done = |plan: &Plan| plan.tasks().all(|(task, _)| task.state.status == Status::Done);
    assert!(world.stored.plans.values().all(done), "seed {seed}");
}

#[test]
fn workers_that_want_the_same_locks_end_all_plans_of_a_slow_store_and_handle_messages_soon() {
    if let Some(seed) = std::env::var("WAYPOST_SEED").ok().and_then(|text| text.parse::<u64>().ok()) {
        return run(seed);
    }
    (0..SEEDS).for_each(run);
}
