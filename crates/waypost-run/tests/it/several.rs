//! Several runs share one plan and one queue: whatever the order in which they come, every task is done once, no lock is
//! held by two, the queue's bound holds for all of them together, and nobody reads the plan again and again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use waypost_config::Config;
use waypost_core::{
    Actor, Command, Draft, Event, Lock, LockMode, Phase, Plan, PlanId, Refusal, Status, TaskId, Timestamp,
};
use waypost_run::{
    Action, AfterFailure, AttemptKey, AttemptOutcome, Input, Loss, RunLimits, Scheduler, SlotKeeper,
};
use waypost_store::VersionRecord;
use waypost_testkit::{SeededRng, plan_of};

use crate::own_plan;
use crate::world::{config, job};

/// The slots of one queue, for all runs of a test.
#[derive(Debug)]
struct Counted {
    taken: Arc<Mutex<u32>>,
    own: u32,
    wanted: Arc<Mutex<bool>>,
}

impl SlotKeeper for Counted {
    fn take(&mut self, _: &str, concurrency: u32) -> bool {
        let mut taken = self.taken.lock().unwrap();
        let free = *taken < concurrency;
        *taken += u32::from(free);
        self.own += u32::from(free);
        free
    }
    fn give(&mut self, _: &str) {
        *self.taken.lock().unwrap() -= 1;
        self.own -= 1;
    }
    fn is_wanted(&mut self, _: &str) -> bool {
        *self.wanted.lock().unwrap()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // As the system does when a run dies.
        *self.taken.lock().unwrap() -= self.own;
    }
}

/// The slots of a queue that the store counts: what a run was told, until something is written.
#[derive(Debug)]
struct Told(Arc<Mutex<bool>>);

impl SlotKeeper for Told {
    fn take(&mut self, _: &str, _: u32) -> bool {
        !*self.0.lock().unwrap()
    }
    fn give(&mut self, _: &str) {}
    fn is_wanted(&mut self, _: &str) -> bool {
        false
    }
    fn counts_starts(&self) -> bool {
        true
    }
    fn was_refused(&mut self, _: &str) {
        *self.0.lock().unwrap() = true;
    }
}

/// Who keeps the slots.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// Something beside the store, which all runs see.
    Beside,
    /// The store.
    Store,
}

struct Run {
    name: String,
    /// Whether the store has refused it a slot.
    full: Arc<Mutex<bool>>,
    scheduler: Scheduler,
    actions: VecDeque<Action>,
    /// Attempts that stand in line for the slot of one that ends.
    line: VecDeque<AttemptKey>,
    reads: u32,
}

struct Shared {
    truth: Plan,
    log: Vec<VersionRecord>,
    now: Timestamp,
    config: Arc<Config>,
    runs: Vec<Run>,
    keeper: Keeper,
    born: u32,
    taken: Arc<Mutex<u32>>,
    wanted: Arc<Mutex<bool>>,
    programs: BTreeMap<AttemptKey, usize>,
    started: BTreeSet<AttemptKey>,
    done: BTreeSet<String>,
}

pub(crate) fn clash(a: &[Lock], b: &[Lock]) -> Option<String> {
    let both =
        |x: &Lock, y: &Lock| x.key == y.key && (x.mode, y.mode) != (LockMode::Shared, LockMode::Shared);
    a.iter().find(|x| b.iter().any(|y| both(x, y))).map(|lock| lock.key.clone())
}

/// Whether the same request ends a task that it starts.
fn ends_later(commands: &[Command], started: &TaskId) -> bool {
    commands.iter().any(|command| matches!(command, Command::FinishTask { task, .. } if task == started))
}

impl Shared {
    fn new(config: Config, draft: Draft, count: usize, keeper: Keeper) -> Self {
        let now = Timestamp::from_micros(1_000_000_000);
        let mut truth = Plan::blank(PlanId::new("p").unwrap());
        let create = Command::Create { draft: draft.into(), approval_required: Some(false) };
        let events = truth.decide(&Actor::person("ada"), now, &create).unwrap();
        truth.advance(&events, now);
        let mut world = Self {
            truth,
            log: Vec::new(),
            now,
            config: Arc::new(config),
            runs: Vec::new(),
            keeper,
            born: 0,
            taken: Arc::default(),
            wanted: Arc::default(),
            programs: BTreeMap::new(),
            started: BTreeSet::new(),
            done: BTreeSet::new(),
        };
        let record = own_plan::record(&world.config, &world.truth, now).unwrap();
        world.write(&Actor::person("ada"), &[Command::Activate, record], false, None).0.unwrap();
        for _ in 0..count {
            let run = world.begin();
            world.runs.push(run);
        }
        world
    }

    fn begin(&mut self) -> Run {
        self.born += 1;
        let name = format!("w{}", self.born);
        let full = Arc::new(Mutex::new(false));
        let keeper: Box<dyn SlotKeeper> = match self.keeper {
            Keeper::Store => Box::new(Told(Arc::clone(&full))),
            Keeper::Beside => {
                Box::new(Counted { taken: Arc::clone(&self.taken), own: 0, wanted: Arc::clone(&self.wanted) })
            }
        };
        let bounds = RunLimits { keeper, ..RunLimits::default() };
        let config = Arc::clone(&self.config);
        let mut scheduler = Scheduler::bounded(config, name.clone(), AfterFailure::KeepGoing, bounds);
        scheduler.handle(self.now, Input::Adopted(Box::new(self.truth.clone())));
        Run { name, full, scheduler, actions: VecDeque::new(), line: VecDeque::new(), reads: 0 }
    }

    fn write(
        &mut self,
        by: &Actor,
        commands: &[Command],
        partly: bool,
        own: Option<u32>,
    ) -> (Result<u64, Refusal>, Vec<Refusal>) {
        let mut next = self.truth.clone();
        let (mut events, mut refusals) = (Vec::new(), Vec::new());
        let concurrency = self.config.queues["default"].concurrency;
        let others = next.in_progress().filter(|task| task.state.worker.as_deref() != Some(&by.name)).count();
        let mut left = own.map(|own| concurrency.saturating_sub(others as u32 + own));
        for (place, command) in commands.iter().enumerate() {
            let decided = next.decide(by, self.now, command).and_then(|decided| {
                for event in &decided {
                    let (Event::TaskStarted { task, started_at: None, .. } | Event::TaskQueued { task, .. }) =
                        event
                    else {
                        continue;
                    };
                    let wanted = &next.task(task.as_str()).unwrap().spec.locks;
                    for other in next.in_progress() {
                        if let Some(key) = clash(wanted, &other.spec.locks) {
                            let (task, holder) =
                                (task.to_string(), format!("{}/{}", next.id(), other.spec.id));
                            return Err(Refusal::LockHeld { task, key, holder });
                        }
                    }
                }
                if let (Command::StartTask { task, .. } | Command::QueueTask { task, .. }, Some(left)) =
                    (command, &mut left)
                    && !ends_later(&commands[place..], task)
                {
                    let (task, queue) = (task.to_string(), "default".to_owned());
                    *left = left.checked_sub(1).ok_or(Refusal::QueueFull { task, queue, concurrency })?;
                }
                Ok(decided)
            });
            match decided {
                Ok(decided) => {
                    for event in &decided {
                        next.evolve(event, self.now);
                    }
                    events.extend(decided);
                }
                Err(refusal) if partly => refusals.push(refusal),
                Err(refusal) => return (Err(refusal), Vec::new()),
            }
        }
        if !events.is_empty() {
            next.finish_version(self.now);
            let (plan, version, at, actor) = (next.id().clone(), next.version(), self.now, by.clone());
            self.log.push(VersionRecord {
                sequence: version,
                plan,
                version,
                at,
                actor,
                command: String::new(),
                events,
            });
            self.truth = next;
            for run in &self.runs {
                *run.full.lock().unwrap() = false;
            }
        }
        for (task, _) in self.truth.tasks() {
            match task.state.status {
                Status::Done => drop(self.done.insert(task.spec.id.to_string())),
                _ => assert!(!self.done.contains(task.spec.id.as_str()), "{} was done", task.spec.id),
            }
        }
        (Ok(self.truth.version()), refusals)
    }

    fn missing(&self, run: usize) -> Vec<VersionRecord> {
        let known = self.runs[run].scheduler.plan(self.truth.id()).map_or(0, Plan::version);
        self.log.iter().filter(|entry| entry.version > known).cloned().collect()
    }

    /// One run does the next thing that it wants to do; returns whether there was any.
    fn turn(&mut self, run: usize) -> bool {
        let now = self.now;
        let Some(action) = self.runs[run].actions.pop_front() else {
            let entries = self.missing(run);
            let acting = &mut self.runs[run];
            acting.scheduler.handle(now, Input::Advanced(self.truth.id().clone(), entries));
            acting.actions = acting.scheduler.step(now).into();
            return !acting.actions.is_empty();
        };
        let by = self.runs[run].scheduler.actor().clone();
        let own = self.runs[run].scheduler.slots_besides(self.truth.id()).map(|(_, own)| own);
        let own = own.filter(|_| self.keeper == Keeper::Store);
        match action {
            Action::Write(id, commands) => {
                let input = match self.write(&by, &commands, false, own).0 {
                    Ok(version) => Input::Written(id, version),
                    Err(refusal) => Input::Refused(id, refusal),
                };
                self.runs[run].scheduler.handle(now, input);
            }
            Action::WritePossible(id, commands) => {
                let (version, refusals) = self.write(&by, &commands, true, own);
                let input = Input::PartlyWritten(id, version.unwrap(), refusals);
                self.runs[run].scheduler.handle(now, input);
            }
            Action::CatchUp(id) => {
                let entries = self.missing(run);
                self.runs[run].scheduler.handle(now, Input::Advanced(id, entries));
            }
            Action::Read(_) => {
                self.runs[run].reads += 1;
                let plan = Box::new(self.truth.clone());
                self.runs[run].scheduler.handle(now, Input::Adopted(plan));
            }
            Action::Prepare(key) => self.runs[run].line.push_back(key),
            Action::Start(key) => {
                let line = &mut self.runs[run].line;
                let waited = line.len();
                line.retain(|waiting| *waiting != key);
                // Whoever stood in line and does no longer has begun already.
                if line.len() < waited || !self.started.contains(&key) {
                    self.start(run, key, None);
                }
            }
            Action::Withdraw(key) => {
                let Run { line, scheduler, .. } = &mut self.runs[run];
                let waited = line.len();
                line.retain(|waiting| *waiting != key);
                if line.len() < waited {
                    let error = "it was stopped before it began".to_owned();
                    scheduler.handle(now, Input::Ended(key, AttemptOutcome::Failed { error }));
                }
            }
            Action::Stop(..) | Action::Tell(_) | Action::StoreProgress(..) => {}
        }
        true
    }

    fn start(&mut self, run: usize, key: AttemptKey, predecessor: Option<AttemptKey>) {
        let task = self.truth.task(key.task.as_str()).unwrap();
        assert_eq!(task.state.attempt, key.attempt, "{key:?} starts before its start is durable");
        assert_eq!(task.state.worker.as_deref(), Some(self.runs[run].name.as_str()), "{key:?}");
        assert!(self.started.insert(key.clone()), "{key:?} starts twice");
        for other in self.programs.keys() {
            let held = &self.truth.task(other.task.as_str()).unwrap().spec.locks;
            assert_eq!(clash(&task.spec.locks, held), None, "{key:?} and {other:?}");
        }
        self.programs.insert(key.clone(), run);
        self.runs[run].scheduler.handle(self.now, Input::Began(key, predecessor));
        let concurrency = self.config.queues["default"].concurrency as usize;
        assert!(self.programs.len() <= concurrency, "more than {concurrency}: {:?}", self.programs);
    }

    fn ends(&mut self, key: &AttemptKey) {
        let run = self.programs.remove(key).unwrap();
        if let Some(next) = self.runs[run].line.pop_front() {
            self.start(run, next, Some(key.clone()));
        }
        let ending = AttemptOutcome::Done { result: None, output: None };
        self.runs[run].scheduler.handle(self.now, Input::Ended(key.clone(), ending));
    }

    /// A run dies, its programs with it, and another takes its place.
    fn dies(&mut self, run: usize) {
        self.programs.retain(|_, of| *of != run);
        self.runs[run] = self.begin();
        self.look_for_lost();
    }

    /// All runs hear of what the dead had. Whoever has not seen the start yet hears of it again later.
    fn look_for_lost(&mut self) {
        let id = self.truth.id().clone();
        let lives = |name: &str| self.runs.iter().any(|run| run.name == name);
        let lost = self.truth.in_progress().filter(|task| !task.state.worker.as_deref().is_some_and(lives));
        let lost: Vec<_> = lost.map(|task| AttemptKey::new(&id, &task.spec.id, task.state.attempt)).collect();
        for other in &mut self.runs {
            for key in &lost {
                other.scheduler.handle(self.now, Input::Gone(key.clone(), Loss::Died));
            }
        }
    }
}

fn random_plan(dice: &mut SeededRng) -> Draft {
    let count = 1 + dice.below(40);
    plan_of((0..count).map(|number| {
        let mut before: Vec<String> = Vec::new();
        for _ in 0..dice.below(3).min(number) {
            let name = format!("t{}", dice.below(number));
            if !before.contains(&name) {
                before.push(name);
            }
        }
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let keys: [&[&str]; 6] = [&[], &[], &[], &["x"], &["~x"], &["x", "y"]];
        let keys = *dice.pick::<&[&str]>(&keys);
        let mut spec = job(&format!("t{number}"), &before, keys);
        if dice.chance(15) {
            spec.work.as_mut().unwrap().executor = "noop".to_owned();
        }
        spec.priority = dice.below(2) as i32;
        spec
    }))
}

fn run(seed: u64, crash: u64, keeper: Keeper) {
    let mut dice = SeededRng::new(seed);
    let bounds = config(1 + dice.below(4) as u32);
    let draft = random_plan(&mut dice);
    let count = 2 + dice.below(2);
    let mut world = Shared::new(bounds, draft, count, keeper);
    for step in 0..20_000 {
        if world.truth.state().phase.is_finished() && world.programs.is_empty() {
            break;
        }
        *world.wanted.lock().unwrap() = dice.chance(5);
        let calm = step > 2_000;
        if !calm && dice.below(1_000) < crash as usize {
            let one = dice.below(count);
            world.dies(one);
        }
        let mut went_on = false;
        for _ in 0..1 + dice.below(6) {
            went_on |= world.turn(dice.below(count));
        }
        let running: Vec<AttemptKey> = world.programs.keys().cloned().collect();
        if !running.is_empty() && dice.chance(40) {
            let key = dice.pick(&running).clone();
            world.ends(&key);
        } else if !went_on {
            let micros = if dice.chance(20) { 300_000 } else { 2_000 };
            world.now = Timestamp::from_micros(world.now.as_micros() + micros);
            world.look_for_lost();
            // Whoever was refused a slot looks again after a while, although nothing was written.
            for run in &world.runs {
                *run.full.lock().unwrap() = false;
            }
        }
    }
    assert_eq!(world.truth.state().phase, Phase::Completed, "seed {seed}: {:?}", world.truth.counts());
    assert!(world.programs.is_empty(), "seed {seed}");
    if crash == 0 {
        let tasks = world.truth.tasks().filter(|(task, _)| task.spec.work.is_some()).count() as u32;
        let starts: u32 = world.truth.tasks().map(|(task, _)| task.state.attempt).sum();
        assert_eq!(starts, tasks, "seed {seed}: every task is started once");
        let passed = (world.now.as_micros() - 1_000_000_000) / 10_000_000;
        for run in &world.runs {
            // Each finds out once that it is not alone, and again whenever others have been silent for ten seconds.
            let most = 2 + passed;
            assert!(
                i64::from(run.reads) <= most,
                "seed {seed}: {} whole readings, at most {most}",
                run.reads
            );
        }
    }
    // Where a copy has followed by versions, it is what the store has.
    for number in 0..count {
        while world.turn(number) {}
        let copy = world.runs[number].scheduler.plan(world.truth.id()).unwrap();
        assert_eq!(copy.version(), world.truth.version(), "seed {seed}");
        let (copy, truth) = (copy.to_draft(), world.truth.to_draft());
        for (copied, task) in copy.tasks.iter().zip(&truth.tasks) {
            assert_eq!(copied.state.status, task.state.status, "seed {seed}: {}", task.spec.id);
            assert_eq!(copied.state.attempt, task.state.attempt, "seed {seed}: {}", task.spec.id);
        }
    }
    assert_eq!(*world.taken.lock().unwrap(), 0, "seed {seed}: a slot was never given back");
}

#[test]
fn runs_that_share_a_plan_do_every_task_once_within_the_queues_bound() {
    for seed in crate::simulation::seeds() {
        run(seed, 0, Keeper::Beside);
    }
}

#[test]
fn runs_whose_slots_the_store_counts_do_every_task_once_within_the_queues_bound() {
    for seed in crate::simulation::seeds() {
        run(seed, 0, Keeper::Store);
    }
}

#[test]
fn runs_whose_slots_the_store_counts_end_a_plan_although_some_of_them_die() {
    for seed in crate::simulation::seeds() {
        run(seed, 15, Keeper::Store);
    }
}

#[test]
fn runs_that_share_a_plan_end_it_although_some_of_them_die() {
    for seed in crate::simulation::seeds() {
        run(seed, 15, Keeper::Beside);
    }
}
