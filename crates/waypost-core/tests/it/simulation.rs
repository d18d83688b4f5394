//! Random plans under random commands. After every step all that a plan keeps up to date is worked out anew from its
//! draft and compared; at the end every plan is driven until nothing can happen any more.
//!
//! A failure prints its seed; `WAYPOST_SEED=17 cargo test -p waypost-core simulation` repeats it, and `WAYPOST_SEEDS=9000`
//! tries more of them.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{
    Actor, Approval, Ask, Command, Dependency, Digest, Draft, Elsewhere, Event, Evidence, Json, Lock,
    LockMode, LockTable, Outcome, Phase, Plan, PlanChanges, Received, Refinement, Refusal, Retry, Status,
    Task, TaskChanges, TaskId, TaskSpec, Timestamp, Touched, When, Where, Wrong, validate,
};
use waypost_testkit::{Dice, id};

use crate::kit::{ada, agent, at, plan_id, system, work, worker};
use crate::oracle::{Fate, Oracle};

const SEEDS: u64 = 200;
const STEPS: usize = 60;

#[test]
fn whatever_is_asked_a_plan_stays_sound_and_comes_to_an_end() {
    let number = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let one = number("WAYPOST_SEED");
    let seeds = one.map_or(0..number("WAYPOST_SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let mut seen = Seen::default();
    for seed in seeds {
        let run = std::panic::catch_unwind(|| World::new(seed).run());
        match run {
            Ok(saw) => seen.add(saw),
            Err(_) => panic!("the simulation failed with WAYPOST_SEED={seed}"),
        }
    }
    if one.is_none() {
        seen.was_broad();
    }
}

/// What has come up in a run, so that a simulation in which nothing happens does not pass for a good one.
#[derive(Default)]
struct Seen {
    commands: BTreeMap<&'static str, u32>,
    events: BTreeMap<String, u32>,
    refusals: BTreeMap<String, u32>,
    phases: BTreeMap<&'static str, u32>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        let pour = |into: &mut BTreeMap<String, u32>, from: BTreeMap<String, u32>| {
            for (key, count) in from {
                *into.entry(key).or_default() += count;
            }
        };
        pour(&mut self.events, other.events);
        pour(&mut self.refusals, other.refusals);
        for (key, count) in other.commands {
            *self.commands.entry(key).or_default() += count;
        }
        for (key, count) in other.phases {
            *self.phases.entry(key).or_default() += count;
        }
    }

    fn was_broad(&self) {
        assert_eq!(self.commands.len(), 31, "every command was accepted at least once: {:?}", self.commands);
        assert_eq!(self.events.len(), 33, "every event happened: {:?}", self.events);
        for code in [
            "invalid",
            "stale_attempt",
            "blocked",
            "has_dependants",
            "is_parent",
            "still_running",
            "awaits_check",
            "awaits_answer",
            "not_a_choice",
            "no_evidence",
        ] {
            assert!(self.refusals.contains_key(code), "{code} came up: {:?}", self.refusals);
        }
        assert!(self.refusals.contains_key("cycle"), "cycles were tried: {:?}", self.refusals);
        assert_eq!(self.phases.len(), Phase::ALL.len(), "every phase came up: {:?}", self.phases);
    }
}

struct World {
    dice: Dice,
    plan: Plan,
    /// The same plan, read from a snapshot after every step.
    reloaded: Plan,
    history: Vec<(Vec<Event>, Timestamp)>,
    locks: LockTable,
    /// Running tasks with the locks that they took.
    held: BTreeMap<TaskId, Vec<Lock>>,
    seconds: u64,
    names: usize,
    seen: Seen,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            plan: Plan::blank(plan_id()),
            reloaded: Plan::blank(plan_id()),
            history: Vec::new(),
            locks: LockTable::default(),
            held: BTreeMap::new(),
            seconds: 0,
            names: 0,
            seen: Seen::default(),
        }
    }

    fn run(mut self) -> Seen {
        while self.plan.version() == 0 {
            let draft = self.random_draft();
            let approval_required = if self.dice.chance(20) { Some(true) } else { None };
            let by = if self.dice.chance(70) { ada() } else { agent() };
            let _sound = self.ask(&by, Command::Create { draft: Box::new(draft), approval_required });
        }
        for _ in 0..STEPS {
            self.seconds += self.dice.below(20) as u64;
            let (by, command) = self.random_command();
            let _refused = self.ask(&by, command);
        }
        self.drive_to_the_end();
        self.replay();
        self.seen
    }

    fn now(&self) -> Timestamp {
        at(self.seconds)
    }

    /// Decides a command, moves the plan on, and looks at everything.
    fn ask(&mut self, by: &Actor, command: Command) -> Result<(), Refusal> {
        let before = self.plan.to_draft();
        let now = self.now();
        // Locks belong to no plan: whoever starts a task takes them first.
        let wanted_locks = match &command {
            Command::StartTask { task, .. } => {
                self.plan.task(task.as_str()).map(|task| task.spec.locks.clone())
            }
            _ => None,
        };
        if let (Command::StartTask { task, .. }, Some(locks)) = (&command, &wanted_locks)
            && !self.held.contains_key(task)
            && let Err((key, holder)) = self.locks.acquire(task.as_str(), locks)
        {
            return Err(Refusal::LockHeld { task: task.to_string(), key, holder });
        }
        let decided = self.plan.decide(by, now, &command);
        if let (Command::StartTask { task, .. }, Some(locks)) = (&command, wanted_locks)
            && !self.held.contains_key(task)
        {
            match decided {
                Ok(_) => {
                    self.held.insert(task.clone(), locks);
                }
                Err(_) => self.locks.release(task.as_str(), &locks),
            }
        }
        match decided {
            Err(refusal) => {
                assert_eq!(self.plan.to_draft(), before, "a refused {command:?} changed the plan");
                self.count_refusal(&refusal);
                Err(refusal)
            }
            Ok(events) => {
                if !events.is_empty() || self.plan.version() == 0 {
                    *self.seen.commands.entry(command.name()).or_default() += 1;
                    self.advance(&before, &command, events);
                }
                Ok(())
            }
        }
    }

    fn count_refusal(&mut self, refusal: &Refusal) {
        let json = serde_json::to_value(refusal).unwrap();
        *self.seen.refusals.entry(json["code"].as_str().unwrap().to_owned()).or_default() += 1;
        assert!(!refusal.hint().is_empty(), "{refusal:?} comes with a hint");
        let Refusal::Invalid { problems } = refusal else { return };
        assert!(!problems.is_empty(), "an invalid plan has problems");
        for problem in problems {
            if let Wrong::Cycle { path } | Wrong::ParentCycle { path } = &problem.wrong {
                assert!(path.len() > 1 && path.first() == path.last(), "a cycle is a closed path: {path:?}");
                *self.seen.refusals.entry("cycle".to_owned()).or_default() += 1;
            }
        }
    }

    fn advance(&mut self, before: &Draft, command: &Command, events: Vec<Event>) {
        let now = self.now();
        let text = serde_json::to_string(&events).unwrap();
        let events_again: Vec<Event> = serde_json::from_str(&text).unwrap();
        assert_eq!(events, events_again, "events survive JSON: {text}");
        for event in &events {
            let json = serde_json::to_value(event).unwrap();
            *self.seen.events.entry(json["event"].as_str().unwrap().to_owned()).or_default() += 1;
            if let Event::TaskStarted { task, .. } = event {
                let task = before.tasks.iter().find(|known| known.spec.id == *task).unwrap();
                assert_eq!(Oracle::of(before).fate(task), Fate::Free, "{command:?} started before it may");
            }
            if let Event::TaskDone { task, evidence, .. } = event {
                let task = before.tasks.iter().find(|known| known.spec.id == *task).unwrap();
                let proved = evidence.as_ref().is_some_and(|evidence| evidence.passed);
                assert_eq!(proved, task.spec.check.is_some(), "{command:?} is believed without a check");
            }
        }
        let what = || format!("after {command:?} → {text}");

        self.plan.advance(&events, now);
        self.history.push((events_again, now));
        let touched = self.plan.take_touched();

        let after = self.plan.to_draft();
        assert_eq!(after.version, before.version + 1);
        *self.seen.phases.entry(after.state.phase.word()).or_default() += 1;
        self.check_touched(before, &after, &touched, &what);
        self.check_locks(&after, &touched, &what);
        check_draft(&after, &what);
        self.check_against_a_fresh_plan(&after, &what);

        // The numbers of tasks differ in a plan that was read from a snapshot, and nothing may depend on them.
        self.reloaded.advance(&events, now);
        let reloaded = self.reloaded.to_draft();
        assert!(
            reloaded == after,
            "from a snapshot it goes another way: {} {}",
            unlike(&after, &reloaded),
            what()
        );
        self.reloaded = Plan::from_snapshot(self.plan.snapshot().to_vec()).unwrap();
        let reloaded = self.reloaded.to_draft();
        assert!(reloaded == after, "a snapshot loses something: {} {}", unlike(&after, &reloaded), what());
    }

    fn check_touched(&self, before: &Draft, after: &Draft, touched: &Touched, what: &dyn Fn() -> String) {
        let old: BTreeMap<&TaskId, &Task> = before.tasks.iter().map(|task| (&task.spec.id, task)).collect();
        for task in &after.tasks {
            let id = &task.spec.id;
            let was = old.get(id);
            let was_status = was.map_or(Status::Pending, |was| was.state.status);
            let status = task.state.status;
            if status.is_finished() && !was_status.is_finished() && before.version > 0 {
                assert!(touched.finished.contains(id), "{id} finished, {touched:?} {}", what());
            }
            let end = |task: &Task| (task.state.status.is_finished(), task.state.output.clone());
            if before.version > 0 && was.is_some_and(|was| end(was) != end(task)) {
                assert!(touched.outcomes.contains(id), "{id} ended otherwise, {touched:?} {}", what());
            }
            let runs_anew = status == Status::Running
                && was.is_none_or(|was| {
                    was_status != Status::Running || was.state.attempt != task.state.attempt
                });
            let started = touched.started.contains(&(id.clone(), task.state.attempt));
            assert_eq!(started, runs_anew, "{id} started, {touched:?} {}", what());
            let stopped = was_status == Status::Running && status != Status::Running;
            assert_eq!(touched.stopped.contains(id), stopped, "{id} stopped, {touched:?} {}", what());
            let awaits = |task: &Task| -> Vec<Elsewhere> {
                task.spec.depends_on.iter().filter_map(Dependency::elsewhere).cloned().collect()
            };
            let waits_changed = was.map_or(!awaits(task).is_empty(), |was| {
                awaits(was) != awaits(task) || was.state.received != task.state.received
            });
            assert!(
                !waits_changed || touched.waits_changed.contains(id),
                "{id} waits, {touched:?} {}",
                what()
            );
        }
        let to_others =
            |draft: &Draft| (draft.state.phase.is_finished(), draft.state.archived, draft.spec.owner.clone());
        assert!(to_others(before) == to_others(after) || touched.whole, "{touched:?} {}", what());
        for id in &touched.finished {
            let finished =
                after.tasks.iter().find(|task| task.spec.id == *id).unwrap().state.status.is_finished();
            assert!(finished, "{id} has not finished {}", what());
        }
    }

    fn check_locks(&mut self, after: &Draft, touched: &Touched, what: &dyn Fn() -> String) {
        for task in &touched.stopped {
            let locks = self.held.remove(task).unwrap_or_default();
            self.locks.release(task.as_str(), &locks);
        }
        let running: Vec<&Task> =
            after.tasks.iter().filter(|task| task.state.status == Status::Running).collect();
        let names: BTreeSet<&TaskId> = running.iter().map(|task| &task.spec.id).collect();
        assert_eq!(names, self.held.keys().collect(), "those who run hold their locks {}", what());
        for task in &running {
            assert_eq!(
                self.held[&task.spec.id],
                task.spec.locks,
                "locks changed under a running task {}",
                what()
            );
            for lock in &task.spec.locks {
                let holders =
                    running.iter().flat_map(|other| &other.spec.locks).filter(|other| other.key == lock.key);
                let count = holders.count();
                assert!(
                    lock.mode == LockMode::Shared || count == 1,
                    "{} is held {count} times {}",
                    lock.key,
                    what()
                );
            }
        }
        if running.is_empty() {
            assert!(self.locks.is_empty(), "locks were left behind {}", what());
        }
    }

    fn check_against_a_fresh_plan(&self, after: &Draft, what: &dyn Fn() -> String) {
        let fresh = Plan::from_trusted_draft(plan_id(), after.clone());
        let ready =
            |plan: &Plan| -> BTreeSet<String> { plan.ready().map(|task| task.spec.id.to_string()).collect() };
        assert_eq!(ready(&self.plan), Oracle::of(after).ready(), "the ready set {}", what());
        assert_eq!(ready(&self.plan), ready(&fresh), "the ready set of a fresh plan {}", what());
        assert_eq!(self.plan.counts(), fresh.counts(), "counts {}", what());
        assert_eq!(self.plan.len(), after.tasks.len(), "the number of tasks {}", what());
        let running =
            |plan: &Plan| -> BTreeSet<String> { plan.running().map(|t| t.spec.id.to_string()).collect() };
        assert_eq!(running(&self.plan), running(&fresh), "what runs {}", what());
        for task in &after.tasks {
            let id = task.spec.id.as_str();
            assert_eq!(self.plan.standing(id), fresh.standing(id), "the standing of {id} {}", what());
            assert_eq!(
                self.plan.waiting(id, self.now()),
                fresh.waiting(id, self.now()),
                "{id} waits {}",
                what()
            );
            assert_eq!(self.plan.outputs_for(id), fresh.outputs_for(id), "outputs for {id} {}", what());
        }
    }

    fn replay(&self) {
        let mut again = Plan::blank(plan_id());
        for (events, at) in &self.history {
            again.advance(events, *at);
        }
        assert_eq!(again.to_draft(), self.plan.to_draft(), "the same events give the same plan");
        assert_eq!(again.counts(), self.plan.counts());
    }

    /// Gives every task what it waits for, and its own end, until nothing can start any more.
    fn drive_to_the_end(&mut self) {
        let _archived = self.ask(&ada(), Command::Unarchive);
        for round in 0.. {
            assert!(round < 10_000, "a plan comes to an end");
            let draft = self.plan.to_draft();
            let (phase, version) = (draft.state.phase, draft.version);
            match phase {
                Phase::Draft | Phase::AwaitingApproval => {
                    self.ask(&ada(), Command::Approve { version, note: String::new() }).unwrap();
                }
                Phase::Paused => self.ask(&ada(), Command::Resume).unwrap(),
                Phase::Active | Phase::Completed | Phase::Failed | Phase::Cancelled => {}
            }
            let unheard = draft.tasks.iter().find_map(|task| {
                let there = task.spec.depends_on.iter().filter_map(Dependency::elsewhere);
                let there = there.filter(|there| !task.state.received.contains_key(&there.key()));
                there.map(|there| (task.spec.id.clone(), there.clone())).next()
            });
            if let Some((task, from)) = unheard {
                let received = self.random_received();
                self.ask(&system(), Command::ReceiveOutput { task, from, received }).unwrap();
                continue;
            }
            let running = draft.tasks.iter().find(|task| task.state.status == Status::Running);
            let asking = self.plan.asking().next().map(|task| task.spec.id.clone());
            if let Some(task) = asking {
                self.ask(&ada(), Command::AnswerQuestion { task, answer: "yes".into() }).unwrap();
                continue;
            }
            let ready = self.plan.ready().next().map(|task| task.spec.id.clone());
            // Sometimes several run at once.
            let start_first = self.dice.chance(60);
            match (running, ready) {
                (None, None)
                    if !matches!(self.plan.state().phase, Phase::Draft | Phase::AwaitingApproval) =>
                {
                    break;
                }
                (None, None) => {}
                (running, Some(task)) if running.is_none() || start_first => {
                    self.seconds += 10_000;
                    let locked = self.ask(&worker(), Command::StartTask { task, worker: "w".into() });
                    match (locked, running) {
                        (Ok(()), _) => {}
                        (Err(Refusal::LockHeld { .. }), Some(running)) => self.finish(running),
                        (Err(refusal), _) => panic!("a ready task starts: {refusal}"),
                    }
                }
                (Some(running), _) => self.finish(running),
                (None, Some(_)) => unreachable!("a ready task is started when nothing runs"),
            }
        }
        let draft = self.plan.to_draft();
        let left = draft.tasks.iter().filter(|task| !task.state.status.is_finished());
        let left: Vec<&str> = left.map(|task| task.spec.id.as_str()).collect();
        assert_eq!(left, Vec::<&str>::new(), "nothing is left over in {draft:#?}");
        if draft.tasks.is_empty() {
            return;
        }
        assert!(draft.state.phase.is_finished(), "the plan has ended: {:?}", draft.state);
        if draft.state.summary.is_empty() && draft.state.phase == Phase::Completed {
            let cut_off =
                |task: &&Task| matches!(task.state.status, Status::Failed) || task.state.because_of.is_some();
            let cut_off = draft.tasks.iter().filter(|task| task.spec.parent.is_none()).find(cut_off);
            assert_eq!(cut_off, None, "a plan with something undone is not completed");
        }
    }

    fn finish(&mut self, task: &Task) {
        // What only says that it is done would be reported for ever.
        let check = task.spec.check.is_some();
        let (task, attempt) = (task.spec.id.clone(), Some(task.state.attempt));
        let outcome = match self.random_outcome(if check { 50 } else { 0 }) {
            Outcome::Done { result, output, evidence: None } if check => {
                Outcome::Done { result, output, evidence: Some(Box::new(evidence(true))) }
            }
            outcome => outcome,
        };
        self.ask(&worker(), Command::FinishTask { task, attempt, outcome, retry: None }).unwrap();
    }
}

fn evidence(passed: bool) -> Evidence {
    Evidence {
        passed,
        check: "shell".into(),
        worker: "w".into(),
        at: None,
        outcome: "it ended".into(),
        output: None,
        log_tail: None,
        digest: "sha256:0".into(),
    }
}

/// Where two drafts that should be one differ.
fn unlike(wanted: &Draft, found: &Draft) -> String {
    let mut unlike = Vec::new();
    if wanted.state != found.state || wanted.spec != found.spec {
        unlike.push(format!("{:?} → {:?}", wanted.state, found.state));
    }
    let tasks = wanted.tasks.iter().zip(&found.tasks).filter(|(wanted, found)| wanted != found);
    unlike.extend(tasks.map(|(wanted, found)| format!("{wanted:?} → {found:?}")));
    unlike.join("\n")
}

/// All that must be true of any draft of a plan.
fn check_draft(draft: &Draft, what: &dyn Fn() -> String) {
    let problems = validate(draft);
    assert!(problems.is_empty(), "{problems:?} {}", what());
    let oracle = Oracle::of(draft);
    for task in &draft.tasks {
        let (id, status) = (&task.spec.id, task.state.status);
        assert_eq!(task.state.finished_at.is_some(), status.is_finished(), "when {id} finished {}", what());
        if status.is_finished() || oracle.is_parent(task) {
            let open = task.state.reported().is_some() || task.state.question().is_some();
            assert!(!open, "{id} has ended and waits for nobody's word {}", what());
        }
        if oracle.is_parent(task) {
            assert_ne!(status, Status::Running, "a group does not run itself: {id} {}", what());
            let end = oracle.end(task);
            if task.spec.skip && end.is_some() {
                let fate = oracle.fate(task);
                let fits = match status {
                    Status::Pending => fate == Fate::Waits,
                    Status::Skipped => true,
                    _ => Some(status) == end,
                };
                assert!(fits, "group {id} that is passed over is {status:?} at {fate:?} {}", what());
            } else {
                let wanted = end.unwrap_or(Status::Pending);
                assert_eq!(status, wanted, "group {id} ends as its children {}", what());
            }
            continue;
        }
        // Until a plan has begun it stays as its author wrote it; an ended one waits until it is opened again.
        if draft.state.started_at.is_none() || draft.state.phase.is_finished() {
            continue;
        }
        let fate = oracle.fate(task);
        match (status, &task.state.because_of) {
            (Status::Pending, _) => {
                assert!(
                    matches!(fate, Fate::Free | Fate::Waits),
                    "{id} waits for nothing: {fate:?} {}",
                    what()
                );
            }
            (Status::Skipped, Some(cause)) => {
                let Fate::Doomed(causes) = fate else { panic!("{id} is skipped, but {fate:?} {}", what()) };
                assert!(causes.contains(cause.as_str()), "{id} blames {cause}, not {causes:?} {}", what());
            }
            (Status::Running | Status::Done | Status::Failed | Status::Skipped | Status::Cancelled, None) => {
            }
            (status, Some(cause)) => panic!("{id} is {status:?} and blames {cause} {}", what()),
        }
    }
    let open = draft.tasks.iter().any(|task| !task.state.status.is_finished());
    let runs = matches!(draft.state.phase, Phase::Active | Phase::Paused);
    assert!(!runs || open || draft.tasks.is_empty(), "a plan with nothing left has ended {}", what());
    assert!(!draft.state.phase.is_finished() || !open, "an ended plan has nothing left {}", what());
    assert_eq!(
        draft.state.phase.is_finished(),
        draft.state.finished_at.is_some(),
        "when it ended {}",
        what()
    );
}

/// The dice.
impl World {
    fn fresh_id(&mut self) -> TaskId {
        self.names += 1;
        id(&format!("x{}", self.names))
    }

    fn ids(&self) -> Vec<TaskId> {
        self.plan.tasks().map(|(task, _)| task.spec.id.clone()).collect()
    }

    /// Mostly a task of the plan, sometimes a name that is none.
    fn some_task(&mut self) -> TaskId {
        let ids = self.ids();
        if ids.is_empty() || self.dice.chance(1) { id("nobody") } else { self.dice.pick(&ids).clone() }
    }

    fn some_task_that(&mut self, wanted: impl Fn(&Task) -> bool) -> TaskId {
        let found: Vec<TaskId> = self
            .plan
            .tasks()
            .map(|(task, _)| task)
            .filter(|task| wanted(task))
            .map(|t| t.spec.id.clone())
            .collect();
        if found.is_empty() || self.dice.chance(10) {
            self.some_task()
        } else {
            self.dice.pick(&found).clone()
        }
    }

    fn random_elsewhere(&mut self) -> Elsewhere {
        let agent = self.dice.chance(50).then(|| "builder".to_owned());
        let plan = if agent.is_none() || self.dice.chance(30) {
            Some(waypost_core::PlanId::new("other").unwrap())
        } else {
            None
        };
        Elsewhere { agent, plan, task: id(["far", "farther"][self.dice.below(2)]) }
    }

    fn random_received(&mut self) -> Received {
        let status =
            *self.dice.pick(&[Status::Done, Status::Done, Status::Done, Status::Failed, Status::Cancelled]);
        let output = self.dice.chance(50).then(|| Json::of(&self.seconds));
        Received {
            status,
            output,
            provides: self.dice.chance(30).then(|| "far_output".to_owned()),
            ..Received::default()
        }
    }

    fn random_outcome(&mut self, proved_percent: u64) -> Outcome {
        let proved = self.dice.chance(proved_percent);
        let evidence = |passed| proved.then(|| Box::new(evidence(passed)));
        match self.dice.below(10) {
            0..6 => Outcome::Done {
                result: self.dice.chance(30).then(|| "well".to_owned()),
                output: self.dice.chance(30).then(|| Json::of(&self.seconds)),
                evidence: evidence(true),
            },
            6..9 => Outcome::Failed { error: "it broke".to_owned(), evidence: evidence(false) },
            _ => Outcome::Skipped { reason: self.dice.chance(50).then(|| "not needed".to_owned()) },
        }
    }

    fn random_when(&mut self) -> When {
        *self.dice.pick(&[When::AllDone, When::AllDone, When::AllDone, When::AllFinished, When::AnyDone])
    }

    fn random_locks(&mut self) -> Vec<Lock> {
        let mut locks = Vec::new();
        for key in ["db", "disk", "net"] {
            if self.dice.chance(15) {
                let mode = if self.dice.chance(30) { LockMode::Shared } else { LockMode::Exclusive };
                locks.push(Lock { key: key.to_owned(), mode });
            }
        }
        locks
    }

    fn random_retry(&mut self) -> Option<Box<Retry>> {
        let attempts = self.dice.below(4) as u32;
        (attempts > 0).then(|| Box::new(Retry { attempts, backoff_seconds: 5, backoff_seconds_max: 60 }))
    }

    /// Any dependencies: on known tasks, on later ones, now and then on ones that close a cycle.
    fn random_dependencies(&mut self, among: &[TaskId]) -> Vec<Dependency> {
        let mut dependencies = Vec::new();
        for _ in 0..self.dice.below(3) {
            if !among.is_empty() {
                dependencies.push(Dependency::Task(self.dice.pick(among).clone()));
            }
        }
        if self.dice.chance(6) {
            dependencies.push(Dependency::Elsewhere(Box::new(self.random_elsewhere())));
        }
        dependencies
    }

    fn random_spec(
        &mut self,
        name: TaskId,
        dependencies_among: &[TaskId],
        parents_among: &[TaskId],
    ) -> TaskSpec {
        let mut spec = TaskSpec::new(name, "do it");
        spec.depends_on = self.random_dependencies(dependencies_among);
        if !parents_among.is_empty() && self.dice.chance(35) {
            spec.parent = Some(self.dice.pick(parents_among).clone());
        }
        spec.when = self.random_when();
        spec.skip = self.dice.chance(8);
        spec.locks = self.random_locks();
        spec.retry = self.random_retry();
        spec.priority = self.dice.below(3) as i32;
        spec.work = self.dice.chance(25).then(work);
        spec.check = self.dice.chance(25).then(work);
        spec.provides = self.dice.chance(20).then(|| "it".to_owned());
        spec
    }

    /// Tasks with groups, mostly sound: what is not is tried again.
    fn random_draft(&mut self) -> Draft {
        let mut draft = Draft::new("simulated");
        let count = self.dice.below(10);
        let (mut known, mut groups) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let name = self.fresh_id();
            let mut spec = self.random_spec(name.clone(), &known, &groups);
            if self.dice.chance(30) {
                spec.work = None;
                groups.push(name.clone());
            }
            known.push(name);
            draft.tasks.push(Task::new(spec));
        }
        if self.dice.chance(15) {
            self.give_a_past(&mut draft);
        }
        draft
    }

    /// A draft of a plan to which something happened elsewhere, as an import brings it.
    fn give_a_past(&mut self, draft: &mut Draft) {
        draft.state.phase =
            *self.dice.pick(&[Phase::Draft, Phase::Active, Phase::Paused, Phase::AwaitingApproval]);
        draft.state.approval = Some(Approval { by: ada(), at: at(0), version: 0, note: String::new() });
        for task in &mut draft.tasks {
            if self.dice.chance(40) {
                task.state.status = *self.dice.pick(&Status::ALL);
                task.state.finished_at = task.state.status.is_finished().then(|| at(0));
            }
        }
    }

    fn random_place(&mut self) -> Where {
        match self.dice.below(6) {
            0 => Where::First,
            1 => Where::Before(self.some_task()),
            2 => Where::After(self.some_task()),
            _ => Where::Last,
        }
    }

    fn random_changes(&mut self) -> TaskChanges {
        let mut changes = TaskChanges::default();
        let ids = self.ids();
        match self.dice.below(10) {
            9 => changes.check = Some(self.dice.chance(50).then(|| *work())),
            0 => changes.depends_on = Some(self.random_dependencies(&ids)),
            1 | 2 => changes.depends_also_on = self.random_dependencies(&ids),
            3 => changes.depends_no_more_on = ids.into_iter().take(4).map(Dependency::Task).collect(),
            4 => changes.when = Some(self.random_when()),
            5 => changes.skip = Some(self.dice.chance(60)),
            6 => {
                changes.priority = Some(self.dice.below(5) as i32);
                changes.notes = Some(format!("at {}", self.seconds));
            }
            7 => changes.locks = Some(self.random_locks()),
            _ => changes.work = Some(self.dice.chance(50).then(|| *work())),
        }
        changes
    }

    /// The plan as it is, with a few changes, as an editor would save it.
    fn random_replacement(&mut self) -> Draft {
        let mut draft = self.plan.to_draft();
        draft.spec.goal = format!("at {}", self.seconds);
        let ids = self.ids();
        let mut gone: BTreeSet<TaskId> = BTreeSet::new();
        for _ in 0..self.dice.below(3) {
            if !draft.tasks.is_empty() && self.dice.chance(50) {
                let place = self.dice.below(draft.tasks.len());
                gone.insert(draft.tasks.remove(place).spec.id);
            }
        }
        for _ in 0..1 + self.dice.below(3) {
            if draft.tasks.is_empty() {
                break;
            }
            let place = self.dice.below(draft.tasks.len());
            let parent = self.dice.pick(&ids).clone();
            let spec = &mut draft.tasks[place].spec;
            match self.dice.below(6) {
                0 => spec.parent = None,
                1 | 2 => spec.parent = Some(parent),
                3 => spec.description.push('!'),
                4 => spec.skip = !spec.skip,
                _ => spec.depends_on.clear(),
            }
        }
        // Two that change places in the tree: the child becomes the parent of its parent.
        if self.dice.chance(30)
            && let Some(place) = draft.tasks.iter().position(|task| task.spec.parent.is_some())
        {
            let (child, parent) =
                (draft.tasks[place].spec.id.clone(), draft.tasks[place].spec.parent.clone());
            let above = draft.tasks.iter().position(|task| Some(&task.spec.id) == parent.as_ref());
            if let Some(above) = above {
                draft.tasks[place].spec.parent = draft.tasks[above].spec.parent.clone();
                draft.tasks[above].spec.parent = Some(child);
                draft.tasks[place].spec.work = None;
            }
        }
        for _ in 0..self.dice.below(3) {
            let name = self.fresh_id();
            let spec = self.random_spec(name, &ids, &ids);
            let place = self.dice.below(draft.tasks.len() + 1);
            draft.tasks.insert(place, Task::new(spec));
        }
        if self.dice.chance(30) && draft.tasks.len() > 1 {
            let (a, b) = (self.dice.below(draft.tasks.len()), self.dice.below(draft.tasks.len()));
            draft.tasks.swap(a, b);
        }
        for task in &mut draft.tasks {
            task.spec.depends_on.retain(|on| on.here().is_none_or(|on| !gone.contains(on)));
            if task.spec.parent.as_ref().is_some_and(|parent| gone.contains(parent)) {
                task.spec.parent = None;
            }
        }
        draft
    }

    fn random_command(&mut self) -> (Actor, Command) {
        let person_or_agent = if self.dice.chance(70) { ada() } else { agent() };
        let by = person_or_agent.clone();
        let roll = self.dice.below(146);
        let edit = (by.clone(), roll);
        match edit.1 {
            0..25 => (worker(), self.random_start()),
            25..45 => (worker(), self.random_finish()),
            45..50 => {
                let task = self.some_task_that(|task| task.state.status == Status::Running);
                let attempt = self.attempt_of(&task);
                (system(), Command::LoseTask { task, attempt, retry: None })
            }
            50..53 => (by, Command::CancelTask { task: self.some_task(), reason: "enough".into() }),
            53..58 => {
                (by, Command::RetryTask { task: self.some_task_that(|task| task.state.status.is_finished()) })
            }
            58..60 => (by, Command::RetryPlan),
            60..67 => {
                let ids = self.ids();
                let mut all = ids.clone();
                let names: Vec<TaskId> = (0..1 + self.dice.below(3)).map(|_| self.fresh_id()).collect();
                all.extend(names.iter().cloned());
                let tasks = names.into_iter().map(|name| self.random_spec(name, &all, &all)).collect();
                (by, Command::AddTasks { tasks, place: self.random_place() })
            }
            67..77 => {
                let (task, changes) = (self.some_task(), self.random_changes());
                (by, Command::ReviseTask { task, changes: Box::new(changes) })
            }
            77..81 => (by, Command::RemoveTask { task: self.some_task(), detach: self.dice.chance(60) }),
            81..87 => {
                let task = self.some_task();
                let parent = match self.dice.below(3) {
                    0 => None,
                    1 => Some(None),
                    _ => Some(Some(self.some_task())),
                };
                (by, Command::MoveTask { task, parent, place: self.random_place() })
            }
            87..93 => (by, Command::Replace(Box::new(self.random_replacement()))),
            93..97 => {
                let task = self.some_task();
                let names: Vec<TaskId> = (0..1 + self.dice.below(3)).map(|_| self.fresh_id()).collect();
                let mut among = self.ids();
                among.extend(names.iter().cloned());
                let children = names.iter().map(|name| {
                    let mut spec = self.random_spec(name.clone(), &among, &names);
                    spec.parent = spec.parent.filter(|parent| parent != name);
                    spec
                });
                let children = children.collect();
                (by, Command::DecomposeTask { task, children, reasoning: Some("smaller".into()), tokens: 3 })
            }
            97..99 => (by, Command::Pause { reason: "lunch".into() }),
            99..103 => (ada(), Command::Resume),
            103..105 => (by, Command::RequestApproval { message: "please".into() }),
            105..110 => {
                let version = self.plan.version().saturating_sub(u64::from(self.dice.chance(10)));
                (by, Command::Approve { version, note: "fine".into() })
            }
            110 => (by, Command::Reject { reason: "no".into() }),
            111..115 => (by, Command::Activate),
            115..117 => {
                let task = self.some_task_that(|task| task.state.status == Status::Running);
                let attempt = self.attempt_of(&task);
                (worker(), Command::ReportProgress { task, attempt, progress: "half".into() })
            }
            117 => {
                let (task, reasoning) = (self.some_task(), Some("clear".into()));
                (by, Command::RefineTask { task, refinement: Refinement::Atomic, reasoning, tokens: 7 })
            }
            118 => {
                let digest = Digest {
                    summary: "done".into(),
                    key_decisions: vec!["one".into()],
                    artifacts: Vec::new(),
                    compression_ratio: Some(0.1),
                    fidelity_score: None,
                };
                (by, Command::AttachDigest { task: self.some_task(), digest, tokens: 2 })
            }
            119..123 => {
                let awaits = |task: &Task| task.spec.depends_on.iter().any(|on| on.elsewhere().is_some());
                let task = self.some_task_that(awaits);
                let awaited = self
                    .plan
                    .task(task.as_str())
                    .and_then(|task| task.spec.depends_on.iter().find_map(Dependency::elsewhere).cloned());
                let from = awaited.unwrap_or_else(|| self.random_elsewhere());
                if self.dice.chance(25) {
                    return (system(), Command::WithdrawOutput { task, from });
                }
                (system(), Command::ReceiveOutput { task, from, received: self.random_received() })
            }
            130..136 => (if self.dice.chance(80) { worker() } else { by }, self.random_question()),
            136..141 => {
                let task = self.some_task_that(|task| task.state.question().is_some());
                let answer = (*self.dice.pick(&["yes", "N", "perhaps"])).to_owned();
                (by, Command::AnswerQuestion { task, answer })
            }
            141..144 => {
                let task = self.some_task_that(|task| task.state.status == Status::Running);
                let attempt = Some(self.attempt_of(&task)).filter(|_| self.dice.chance(70));
                (by, Command::ReleaseTask { task, attempt, reason: "lunch".into() })
            }
            144..146 => {
                let task = self.some_task_that(|task| task.spec.check.is_some());
                let outcome = self.random_outcome(5);
                (by, Command::FinishTask { task, attempt: None, outcome, retry: None })
            }
            123 if self.dice.chance(40) => {
                let phase = *self.dice.pick(&[Phase::Completed, Phase::Failed, Phase::Cancelled]);
                (by, Command::FinishPlan { phase, summary: "that is all".into() })
            }
            124 if self.dice.chance(40) => (by, Command::Archive),
            123..126 => (by, Command::Unarchive),
            _ => {
                let title = Some(format!("at {}", self.seconds));
                (by, Command::RevisePlan(Box::new(PlanChanges { title, ..PlanChanges::default() })))
            }
        }
    }

    fn attempt_of(&mut self, task: &TaskId) -> u32 {
        let attempt = self.plan.task(task.as_str()).map_or(0, |task| task.state.attempt);
        if self.dice.chance(10) { attempt.saturating_sub(1) } else { attempt }
    }

    fn random_start(&mut self) -> Command {
        let ready: Vec<TaskId> = self.plan.ready().map(|task| task.spec.id.clone()).collect();
        let task = if ready.is_empty() || self.dice.chance(10) {
            self.some_task()
        } else {
            self.dice.pick(&ready).clone()
        };
        Command::StartTask { task, worker: "w".into() }
    }

    fn random_finish(&mut self) -> Command {
        let task = self.some_task_that(|task| task.state.status == Status::Running);
        let attempt = if self.dice.chance(85) { Some(self.attempt_of(&task)) } else { None };
        let retry = self.random_retry().map(|retry| *retry);
        let has_check = self.plan.task(task.as_str()).is_some_and(|task| task.spec.check.is_some());
        Command::FinishTask {
            task,
            attempt,
            outcome: self.random_outcome(if has_check { 50 } else { 2 }),
            retry,
        }
    }

    fn random_question(&mut self) -> Command {
        let task = self.some_task_that(|task| task.state.status == Status::Running);
        let attempt = Some(self.attempt_of(&task)).filter(|_| self.dice.chance(85));
        let choices = if self.dice.chance(50) { vec!["Yes".to_owned(), "No".to_owned()] } else { Vec::new() };
        let state = self.dice.chance(30).then(|| Json::of(&self.seconds));
        Command::AskQuestion { task, attempt, ask: Box::new(Ask { text: "go on?".into(), choices, state }) }
    }
}
