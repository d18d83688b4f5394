//! A world for a scheduler: a store of one plan, workers that end when the test says so, a clock that is set by hand.
//! The store decides as the real one does, on the plan itself; the world checks what must hold at every moment.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use waypost_config::Config;
use waypost_config::Queue;
use waypost_core::{
    Actor, Command, Draft, Event, Evidence, GateOutcome, GateRecord, Json, Lock, LockMode, Outcome, Phase,
    Plan, PlanId, Proof, Refusal, Status, TaskSpec, Timestamp, Work,
};
use waypost_run::{
    Action, AfterFailure, AttemptKey, AttemptOutcome, Control, Force, Idleness, Input, Loss, RunEvent,
    Scheduler,
};
use waypost_service::Authenticator;
use waypost_store::VersionRecord;

use crate::own_plan;

/// A task with work for a program.
pub(crate) fn job(name: &str, depends_on: &[&str], locks: &[&str]) -> TaskSpec {
    let mut spec = waypost_testkit::task(name, depends_on);
    spec.work =
        Some(Box::new(Work { executor: "run".to_owned(), inputs: Json::empty_object(), shape: None }));
    spec.locks = locks
        .iter()
        .map(|key| match key.strip_prefix('~') {
            Some(shared) => Lock { key: shared.to_owned(), mode: LockMode::Shared },
            None => Lock { key: (*key).to_owned(), mode: LockMode::Exclusive },
        })
        .collect();
    spec
}

/// A configuration with an executor `run` and a queue of this width.
pub(crate) fn config(concurrency: u32) -> Config {
    let text = "[executors.run]\nkind = \"process\"\ncommand = [\"true\"]\n[executors.ask]\nkind = \"human\"\n[checks.look]\ncommand = [\"true\"]\n";
    let layer = waypost_config::Layer {
        origin: waypost_config::Origin::User,
        name: "test".to_owned(),
        text: text.to_owned(),
    };
    let mut config = Config::load(&[layer], []).unwrap();
    config.queues.insert("default".to_owned(), Queue { concurrency });
    config
}

/// How an attempt ends whose check was made.
pub(crate) fn checked(passed: bool) -> AttemptOutcome {
    let evidence = Evidence {
        passed,
        check: "look".to_owned(),
        worker: "w".to_owned(),
        at: None,
        outcome: "it looked".to_owned(),
        output: None,
        log_tail: None,
        digest: "sha256:0".to_owned(),
    };
    let error = (!passed).then(|| "the check: no".to_owned());
    AttemptOutcome::Checked { result: None, output: None, error, evidence: Box::new(evidence) }
}

/// What becomes of the next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Works,
    FailsBefore,
    FailsAfter,
}

/// What the store knows better than any one run: who holds which lock.
fn locks_are_free(plan: &Plan, task: &str) -> Result<(), Refusal> {
    let wanted = &plan.task(task).unwrap().spec.locks;
    for other in plan.in_progress() {
        for held in &other.spec.locks {
            let clash = |lock: &&Lock| {
                lock.key == held.key && (lock.mode, held.mode) != (LockMode::Shared, LockMode::Shared)
            };
            if let Some(lock) = wanted.iter().find(clash) {
                let (task, key, holder) =
                    (task.to_owned(), lock.key.clone(), format!("{}/{}", plan.id(), other.spec.id));
                return Err(Refusal::LockHeld { task, key, holder });
            }
        }
    }
    Ok(())
}

pub(crate) struct World {
    pub(crate) truth: Plan,
    log: Vec<VersionRecord>,
    pub(crate) now: Timestamp,
    pub(crate) config: Arc<Config>,
    pub(crate) scheduler: Scheduler,
    after_failure: AfterFailure,
    pub(crate) generation: u32,
    /// Programs that run, with whether they were asked to end.
    pub(crate) programs: BTreeMap<AttemptKey, Option<Force>>,
    /// Attempts that stand in line for the slot of one that ends.
    line: VecDeque<AttemptKey>,
    started: BTreeSet<AttemptKey>,
    /// When programs began.
    began: BTreeMap<AttemptKey, Timestamp>,
    /// How many tasks were recorded as running at the same time.
    pub(crate) running_max: u32,
    done: BTreeSet<String>,
    pub(crate) order: Vec<String>,
    pub(crate) fate: Fate,
    pub(crate) writes: u32,
    told: Vec<RunEvent>,
}

impl World {
    pub(crate) fn new(config: Config, draft: Draft) -> Self {
        Self::with(config, draft, AfterFailure::KeepGoing)
    }

    pub(crate) fn with(config: Config, draft: Draft, after_failure: AfterFailure) -> Self {
        let now = Timestamp::from_micros(1_000_000_000);
        let mut truth = Plan::blank(PlanId::new("p").unwrap());
        let create = Command::Create { draft: draft.into(), approval_required: Some(false) };
        let events = truth.decide(&Actor::person("ada"), now, &create).unwrap();
        truth.advance(&events, now);
        let config = Arc::new(config);
        let mut world = Self {
            truth,
            log: Vec::new(),
            now,
            scheduler: Scheduler::new(Arc::clone(&config), "w0", after_failure),
            config,
            after_failure,
            generation: 0,
            programs: BTreeMap::new(),
            line: VecDeque::new(),
            started: BTreeSet::new(),
            began: BTreeMap::new(),
            running_max: 0,
            done: BTreeSet::new(),
            order: Vec::new(),
            fate: Fate::Works,
            writes: 0,
            told: Vec::new(),
        };
        world.person(Command::Activate).unwrap();
        world.read();
        world
    }

    fn read(&mut self) {
        let mut plan = self.truth.clone();
        plan.take_touched();
        self.scheduler.handle(self.now, Input::Adopted(Box::new(plan)));
    }

    /// What the store does with commands: all of them, or none.
    pub(crate) fn commit(&mut self, by: &Actor, commands: &[Command]) -> Result<u64, Refusal> {
        // As the real store does: its clock may be set back, the time of versions never goes back.
        let at = self.now.max(self.truth.state().updated_at.unwrap_or(self.now));
        let mut next = self.truth.clone();
        let mut events = Vec::new();
        for command in commands {
            let decided = next.decide(by, at, command)?;
            for event in &decided {
                match event {
                    Event::TaskStarted { task, started_at: None, .. } | Event::TaskQueued { task, .. } => {
                        locks_are_free(&next, task.as_str())?;
                    }
                    Event::TaskStarted { task, attempt, started_at: Some(recorded), .. } => {
                        let key = AttemptKey::new(next.id(), task, *attempt);
                        let began = self.began.get(&key);
                        assert!(began.is_some_and(|began| began <= recorded), "{key:?} has not begun");
                    }
                    _ => {}
                }
                next.evolve(event, at);
            }
            events.extend(decided);
        }
        if events.is_empty() {
            return Ok(self.truth.version());
        }
        next.finish_version(at);
        let version = next.version();
        let (plan, actor) = (next.id().clone(), by.clone());
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
        self.hold();
        Ok(version)
    }

    /// The same for each command by itself.
    fn commit_possible(&mut self, by: &Actor, commands: &[Command]) -> (u64, Vec<Refusal>) {
        let (mut possible, mut refusals) = (Vec::new(), Vec::new());
        for command in commands {
            possible.push(command.clone());
            let before = (self.truth.clone(), self.log.len());
            if let Err(refusal) = self.commit(by, &possible) {
                possible.pop();
                refusals.push(refusal);
            } else {
                // Only to see whether it is possible after those before it.
                self.truth = before.0;
                self.log.truncate(before.1);
            }
        }
        (self.commit(by, &possible).unwrap_or(self.truth.version()), refusals)
    }

    /// What must hold after every version.
    fn hold(&mut self) {
        self.running_max = self.running_max.max(self.truth.counts().running);
        let running: Vec<_> = self.truth.in_progress().collect();
        for (place, task) in running.iter().enumerate() {
            for other in &running[place + 1..] {
                for lock in &task.spec.locks {
                    let clash = other.spec.locks.iter().any(|held| {
                        held.key == lock.key && (held.mode, lock.mode) != (LockMode::Shared, LockMode::Shared)
                    });
                    assert!(!clash, "{} and {} both hold {}", task.spec.id, other.spec.id, lock.key);
                }
            }
        }
        for (task, _) in self.truth.tasks() {
            if task.state.status == Status::Done {
                let proved = task.state.evidence().is_some_and(|evidence| evidence.passed);
                assert_eq!(proved, task.spec.check.is_some(), "{} is done without a check", task.spec.id);
                self.done.insert(task.spec.id.to_string());
            } else {
                assert!(
                    !self.done.contains(task.spec.id.as_str()),
                    "{} was done and is not any more",
                    task.spec.id
                );
            }
        }
    }

    /// A person does something beside the run; the run notices at its next look.
    pub(crate) fn person(&mut self, command: Command) -> Result<u64, Refusal> {
        let (by, mut commands) = (Actor::person("ada"), vec![command]);
        let mut next = self.truth.clone();
        if let Ok(events) = next.decide(&by, self.now, &commands[0]) {
            events.iter().for_each(|event| next.evolve(event, self.now));
            next.refresh_work();
            // As the service does: the record of the person's own plan is renewed with each edit.
            let runs = matches!(next.state().phase, Phase::Active | Phase::Paused);
            commands.extend(own_plan::record(&self.config, &next, self.now).filter(|_| runs));
        }
        self.commit(&by, &commands)
    }

    /// The run looks at what others wrote.
    pub(crate) fn look(&mut self) {
        let known = self.scheduler.plan(self.truth.id()).map_or(0, Plan::version);
        let entries: Vec<VersionRecord> =
            self.log.iter().filter(|entry| entry.version > known).cloned().collect();
        if !entries.is_empty() {
            self.scheduler.handle(self.now, Input::Advanced(self.truth.id().clone(), entries));
        }
    }

    /// Lets the scheduler do all that it wants now.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1_000 {
            let actions = self.scheduler.step(self.now);
            if actions.is_empty() {
                self.starts_are_recorded();
                return;
            }
            for action in actions {
                self.act(action);
            }
        }
        panic!("the scheduler never comes to rest");
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Write(id, commands) => {
                self.writes += 1;
                let by = self.scheduler.actor().clone();
                let input = match std::mem::replace(&mut self.fate, Fate::Works) {
                    Fate::FailsBefore => Input::Unknown(id),
                    Fate::Works => match self.commit(&by, &commands) {
                        Ok(version) => Input::Written(id, version),
                        Err(refusal) => Input::Refused(id, refusal),
                    },
                    Fate::FailsAfter => {
                        let _lost = self.commit(&by, &commands);
                        Input::Unknown(id)
                    }
                };
                self.scheduler.handle(self.now, input);
            }
            Action::WritePossible(id, commands) => {
                self.writes += 1;
                let by = self.scheduler.actor().clone();
                let fate = std::mem::replace(&mut self.fate, Fate::Works);
                let (version, refusals) = match fate {
                    Fate::FailsBefore => (0, Vec::new()),
                    Fate::Works | Fate::FailsAfter => self.commit_possible(&by, &commands),
                };
                let input = match fate {
                    Fate::Works => Input::PartlyWritten(id, version, refusals),
                    Fate::FailsBefore | Fate::FailsAfter => Input::Unknown(id),
                };
                self.scheduler.handle(self.now, input);
            }
            Action::CatchUp(_) => self.look(),
            Action::Read(_) => self.read(),
            Action::Prepare(key) => self.line.push_back(key),
            Action::Start(key) => {
                // Whoever stood in line and does no longer has begun already.
                if self.leaves_line(&key) || !self.started.contains(&key) {
                    self.begins(key, None);
                } else {
                    assert!(self.programs.contains_key(&key), "{key:?}");
                }
            }
            Action::Stop(key, force) => {
                if let Some(asked) = self.programs.get_mut(&key) {
                    *asked = Some(force);
                } else if self.leaves_line(&key) {
                    let error = "it was stopped before it began".to_owned();
                    self.scheduler.handle(self.now, Input::Ended(key, AttemptOutcome::Failed { error }));
                }
            }
            Action::Withdraw(key) => {
                if self.leaves_line(&key) {
                    let error = "it was stopped before it began".to_owned();
                    self.scheduler.handle(self.now, Input::Ended(key, AttemptOutcome::Failed { error }));
                }
            }
            Action::Tell(event) => self.told.push(event),
            Action::StoreProgress(..) => {}
        }
    }

    fn leaves_line(&mut self, key: &AttemptKey) -> bool {
        let place = self.line.iter().position(|waiting| waiting == key);
        place.and_then(|place| self.line.remove(place)).is_some()
    }

    /// A program begins.
    fn begins(&mut self, key: AttemptKey, predecessor: Option<AttemptKey>) {
        assert!(self.started.insert(key.clone()), "{key:?} starts twice");
        let task = self.truth.task(key.task.as_str()).unwrap();
        assert_eq!(task.state.attempt, key.attempt, "{key:?} starts before its start is durable");
        self.order.push(key.task.to_string());
        self.programs.insert(key.clone(), None);
        self.began.insert(key.clone(), self.now);
        self.scheduler.handle(self.now, Input::Began(key, predecessor));
        let concurrency = self.config.queues["default"].concurrency as usize;
        assert!(
            self.programs.len() <= concurrency,
            "more than {concurrency} run: {:?}",
            self.programs.keys()
        );
        self.no_program_shares_a_lock();
    }

    /// The first in line begins in the slot of one that has ended.
    fn gives_its_slot_on(&mut self, ended: &AttemptKey) {
        if let Some(next) = self.line.pop_front() {
            self.begins(next, Some(ended.clone()));
        }
    }

    /// What has run for 200 ms is recorded as started.
    fn starts_are_recorded(&self) {
        for key in self.programs.keys() {
            let task = self.truth.task(key.task.as_str()).filter(|task| task.state.attempt == key.attempt);
            let is_old = self.began[key].as_micros() + 200_000 <= self.now.as_micros();
            assert!(!is_old || !task.is_some_and(|task| task.state.is_queued()), "{key:?} is still queued");
        }
    }

    /// The ends of a task that observers were told, in order.
    pub(crate) fn told_ends(&self, of: &str) -> Vec<Status> {
        let mut ends = Vec::new();
        for event in &self.told {
            if let RunEvent::TaskEnded { task, status, .. } = event
                && task.as_str() == of
            {
                ends.push(*status);
            }
        }
        ends
    }

    /// The events of the latest version.
    pub(crate) fn latest_events(&self) -> Vec<&'static str> {
        self.log.last().unwrap().events.iter().map(Event::kind).collect()
    }

    pub(crate) fn pass_millis(&mut self, millis: i64) {
        self.now = Timestamp::from_micros(self.now.as_micros() + millis * 1_000);
        self.settle();
    }

    /// Programs of cancelled tasks included: they hold what they hold until they have really ended.
    fn no_program_shares_a_lock(&self) {
        let mut held: BTreeMap<&str, &AttemptKey> = BTreeMap::new();
        for key in self.programs.keys() {
            let Some(task) = self.truth.task(key.task.as_str()) else { continue };
            for lock in task.spec.locks.iter().filter(|lock| lock.mode == LockMode::Exclusive) {
                let other = held.insert(lock.key.as_str(), key);
                assert!(other.is_none(), "{key:?} and {other:?} both run with {}", lock.key);
            }
        }
    }

    /// The program of a task ends.
    pub(crate) fn ends(&mut self, task: &str, ending: AttemptOutcome) {
        let key = self.programs.keys().find(|key| key.task.as_str() == task).cloned();
        let key = key.unwrap_or_else(|| panic!("{task} does not run: {:?}", self.programs.keys()));
        self.programs.remove(&key);
        self.gives_its_slot_on(&key);
        self.scheduler.handle(self.now, Input::Ended(key, ending));
    }

    pub(crate) fn done(&mut self, task: &str) {
        self.ends(task, AttemptOutcome::Done { result: None, output: None });
        self.settle();
    }

    /// The check of a task ends.
    pub(crate) fn checks(&mut self, task: &str, passed: bool) {
        self.ends(task, checked(passed));
        self.settle();
    }

    /// An agent says something beside the run, which looks at once.
    pub(crate) fn agent(&mut self, command: Command) -> Result<u64, Refusal> {
        let version = self.commit(&Actor::agent("robin"), &[command])?;
        self.look();
        self.settle();
        Ok(version)
    }

    pub(crate) fn standing(&self, task: &str) -> &'static str {
        self.truth.effective_status(task).unwrap().as_str()
    }

    pub(crate) fn fails(&mut self, task: &str) {
        self.ends(task, AttemptOutcome::Failed { error: "no".to_owned() });
        self.settle();
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = self.now.plus_seconds(seconds);
        self.settle();
    }

    /// The run dies, its programs with it, and another begins.
    pub(crate) fn crash(&mut self) {
        self.generation += 1;
        self.programs.clear();
        self.line.clear();
        let worker = format!("w{}", self.generation);
        self.scheduler = Scheduler::new(Arc::clone(&self.config), worker, self.after_failure);
        self.read();
        self.lose_all_others(Loss::Died);
    }

    /// Every attempt that is not of this run is told to be over.
    pub(crate) fn lose_all_others(&mut self, loss: Loss) {
        let worker = format!("w{}", self.generation);
        let others: Vec<AttemptKey> = self
            .truth
            .in_progress()
            .filter(|task| task.state.worker.as_deref() != Some(worker.as_str()))
            .map(|task| AttemptKey::new(self.truth.id(), &task.spec.id, task.state.attempt))
            .collect();
        for key in others {
            self.scheduler.handle(self.now, Input::Gone(key, loss));
        }
    }

    pub(crate) fn control(&mut self, control: Control) {
        self.scheduler.handle(self.now, Input::Control(control));
        self.settle();
    }

    /// The attempts that wait for a slot, the next one first.
    pub(crate) fn pending(&self) -> &VecDeque<AttemptKey> {
        &self.line
    }

    pub(crate) fn running(&self) -> Vec<&str> {
        self.programs.keys().map(|key| key.task.as_str()).collect()
    }

    pub(crate) fn status(&self, task: &str) -> Status {
        self.truth.task(task).unwrap().state.status
    }

    pub(crate) fn rest(&self) -> Idleness {
        self.scheduler.rest()
    }

    /// A person ticks off a task.
    pub(crate) fn tick_off(&mut self, task: &str) {
        let outcome = Outcome::Done { result: None, output: None, evidence: None };
        let (task, by) = (waypost_testkit::id(task), Actor::person("ada"));
        // As the service does: a person who ends a task for people leaves a record.
        let gate = GateRecord {
            by: by.clone(),
            at: self.now,
            version: self.truth.version(),
            digest: String::new(),
            attempt: self.truth.task(task.as_str()).map_or(0, |task| task.state.attempt),
            outcome: GateOutcome::Done,
            answer: None,
            proof: Proof::Presence,
            via: "terminal".to_owned(),
            account: String::new(),
            place: None,
            nonce: String::new(),
            seal: None,
            signature: None,
        };
        let about = (self.truth.id(), &task);
        let gate = Authenticator::default().attest_gate(&self.config.approval, about, gate, None).unwrap();
        let record = Command::RecordGate { task: task.clone(), gate: Box::new(gate) };
        let done = Command::FinishTask { task, attempt: None, outcome, retry: None };
        self.commit(&by, &[done, record]).unwrap();
        self.look();
        self.settle();
    }
}
