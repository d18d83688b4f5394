//! Random plans under random commands. After every step everything that a plan maintains incrementally is recomputed
//! from its draft and compared; at the end every plan is driven until nothing more can happen.

mod checks;
mod dice;

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{
    Actor, Approval, Command, Counts, Dependency, DependencyRule, Digest, Draft, Event, Evidence,
    ExternalTaskRef, IndexDelta, Json, Lock, LockMode, LockTable, Outcome, Phase, Plan, PlanChanges,
    Position, ProblemKind, QuestionRequest, Refinement, Refusal, Retry, Status, Task, TaskChanges, TaskId,
    TaskSpec, Timestamp, UpstreamResult, validate,
};
use waypost_testkit::{SeededRng, id};

use self::checks::{check_draft, unlike};
use crate::kit::{ada, agent, at, plan_id, system, work, worker};
use crate::oracle::{Fate, Oracle};

const STEPS: usize = 60;

/// Coverage of a run, so that a simulation in which nothing happens does not pass.
#[derive(Default)]
pub(crate) struct Seen {
    commands: BTreeMap<&'static str, u32>,
    events: BTreeMap<String, u32>,
    refusals: BTreeMap<String, u32>,
    phases: BTreeMap<&'static str, u32>,
    /// Versions that left an approval unchanged.
    kept_approvals: u32,
}

impl Seen {
    pub(crate) fn add(&mut self, other: Self) {
        let pour = |into: &mut BTreeMap<String, u32>, from: BTreeMap<String, u32>| {
            for (key, count) in from {
                *into.entry(key).or_default() += count;
            }
        };
        pour(&mut self.events, other.events);
        pour(&mut self.refusals, other.refusals);
        self.kept_approvals += other.kept_approvals;
        for (key, count) in other.commands {
            *self.commands.entry(key).or_default() += count;
        }
        for (key, count) in other.phases {
            *self.phases.entry(key).or_default() += count;
        }
    }

    pub(crate) fn was_broad(&self) {
        assert_eq!(self.commands.len(), 39, "every command was accepted at least once: {:?}", self.commands);
        assert_eq!(self.events.len(), 40, "every event happened: {:?}", self.events);
        for code in [
            "invalid",
            "stale_attempt",
            "blocked",
            "has_dependants",
            "is_parent",
            "still_running",
            "awaits_check",
            "awaits_answer",
            "held",
            "not_a_choice",
            "no_evidence",
        ] {
            assert!(self.refusals.contains_key(code), "{code} came up: {:?}", self.refusals);
        }
        assert!(self.kept_approvals > 100, "plans went on under an approval: {}", self.kept_approvals);
        assert!(self.refusals.contains_key("cycle"), "cycles were tried: {:?}", self.refusals);
        assert_eq!(self.phases.len(), Phase::ALL.len(), "every phase came up: {:?}", self.phases);
    }
}

pub(crate) struct World {
    dice: SeededRng,
    pub(crate) plan: Plan,
    /// The same plan, reloaded from a snapshot after every step.
    reloaded: Plan,
    history: Vec<(Vec<Event>, Timestamp)>,
    locks: LockTable,
    /// Running tasks with the locks that they acquired.
    held: BTreeMap<TaskId, Vec<Lock>>,
    pub(crate) seconds: u64,
    names: usize,
    seen: Seen,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            dice: SeededRng::new(seed),
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

    pub(crate) fn run(mut self) -> Seen {
        while self.plan.version() == 0 {
            let draft = self.random_draft();
            let approval_required = if self.dice.chance(20) { Some(true) } else { None };
            let by = if self.dice.chance(70) { ada() } else { agent() };
            let _sound = self.ask(&by, Command::Create { draft: draft.into(), approval_required });
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

    /// Decides a command, applies its events and checks all invariants.
    fn ask(&mut self, by: &Actor, command: Command) -> Result<(), Refusal> {
        let before = self.plan.to_draft();
        let now = self.now();
        // Locks do not belong to a plan: the worker acquires them before it starts a task.
        let wanted_locks = match &command {
            Command::StartTask { task, .. } | Command::QueueTask { task, .. } => {
                self.plan.task(task.as_str()).map(|task| task.spec.locks.clone())
            }
            _ => None,
        };
        if let (Command::StartTask { task, .. } | Command::QueueTask { task, .. }, Some(locks)) =
            (&command, &wanted_locks)
            && !self.held.contains_key(task)
            && let Err((key, holder)) = self.locks.acquire(task.as_str(), locks)
        {
            return Err(Refusal::LockHeld { task: task.to_string(), key, holder });
        }
        let decided = self.plan.decide(by, now, &command);
        if let (Command::StartTask { task, .. } | Command::QueueTask { task, .. }, Some(locks)) =
            (&command, wanted_locks)
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
            if let ProblemKind::Cycle { path } | ProblemKind::ParentCycle { path } = &problem.wrong {
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
            if let Event::TaskStarted { task, started_at: None, .. } | Event::TaskQueued { task, .. } = event
            {
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
        let digest = self.plan.work_digest();

        self.plan.advance(&events, now);
        self.history.push((events_again, now));
        let touched = self.plan.take_touched();

        let after = self.plan.to_draft();
        assert_eq!(after.version, before.version + 1);
        *self.seen.phases.entry(after.state.phase.as_str()).or_default() += 1;
        self.check_touched(before, &after, &touched, &what);
        self.check_locks(&after, &touched, &what);
        self.check_counts(&after, &what);
        check_draft(&after, &what);
        self.check_against_a_fresh_plan(&after, &what);
        let from_scratch = Plan::from_trusted_draft(plan_id(), after.clone()).work_digest();
        assert_eq!(self.plan.work_digest(), from_scratch, "the digest of the work is out of date {}", what());
        let still_approved = before.state.approval.is_some() && before.state.approval == after.state.approval;
        let has_machine_tasks =
            after.tasks.iter().any(|task| task.spec.work.is_some() || task.spec.check.is_some());
        if still_approved && has_machine_tasks {
            assert!(digest == from_scratch, "approved, and machines would do something else {}", what());
            self.seen.kept_approvals += 1;
        }

        // Task numbers differ in a plan loaded from a snapshot, and nothing may depend on them.
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
        assert_eq!(self.reloaded.work_digest(), from_scratch, "a snapshot has another digest {}", what());
    }

    fn replay(&self) {
        let mut again = Plan::blank(plan_id());
        for (events, at) in &self.history {
            again.advance(events, *at);
        }
        assert_eq!(again.to_draft(), self.plan.to_draft(), "the same events give the same plan");
        assert_eq!(again.counts(), self.plan.counts());
        assert_eq!(again.atomic(), self.plan.atomic());
    }

    /// Delivers what every task waits for and finishes it, until nothing more can start.
    fn drive_to_the_end(&mut self) {
        let _archived = self.ask(&ada(), Command::Unarchive);
        for round in 0.. {
            assert!(round < 10_000, "a plan comes to an end");
            let draft = self.plan.to_draft();
            let (phase, version) = (draft.state.phase, draft.version);
            match phase {
                Phase::Draft | Phase::AwaitingApproval => {
                    self.ask(&ada(), Command::Approve { version, note: String::new(), work: None }).unwrap();
                }
                Phase::Paused => {
                    self.ask(&ada(), Command::Resume).unwrap();
                    // A plan that was paused as a draft is a draft again.
                    continue;
                }
                Phase::Active | Phase::Completed | Phase::Failed | Phase::Cancelled => {}
            }
            let unheard = draft.tasks.iter().find_map(|task| {
                let there = task.spec.depends_on.iter().filter_map(Dependency::external);
                let there = there.filter(|there| !task.state.received.contains_key(&there.key()));
                there.map(|there| (task.spec.id.clone(), there.clone())).next()
            });
            if let Some((task, from)) = unheard {
                let received = self.random_received();
                self.ask(&system(), Command::ReceiveOutput { task, from, received, untrusted: false })
                    .unwrap();
                continue;
            }
            let running = draft.tasks.iter().find(|task| task.state.status == Status::Running);
            let asking = self.plan.asking().next().map(|task| task.spec.id.clone());
            if let Some(task) = asking {
                self.ask(&ada(), Command::AnswerQuestion { task, answer: "yes".into() }).unwrap();
                continue;
            }
            let held = draft.tasks.iter().find(|task| task.state.held().is_some());
            if let Some(task) = held.map(|task| task.spec.id.clone()) {
                self.ask(&ada(), Command::UnholdTask { task }).unwrap();
                continue;
            }
            let ready = self.plan.ready().next().map(|task| task.spec.id.clone());
            // Sometimes several tasks run at once.
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
        // Without evidence the task would stay reported forever.
        let check = task.spec.check.is_some();
        let (task, attempt) = (task.spec.id.clone(), Some(task.state.attempt));
        let outcome = match self.random_outcome(if check { 50 } else { 0 }) {
            Outcome::Done { result, output, evidence: None } if check => {
                Outcome::Done { result, output, evidence: Some(Box::new(evidence(true))) }
            }
            outcome => outcome,
        };
        let skips = matches!(outcome, Outcome::Skipped { .. });
        let by = if skips { ada() } else { Actor::worker("w") };
        self.ask(&by, Command::FinishTask { task, attempt, outcome, retry: None }).unwrap();
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
