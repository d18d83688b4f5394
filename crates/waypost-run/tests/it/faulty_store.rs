//! The real loop and real programs over a store that fails, before and after its commits, and whose clock jumps.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use waypost_config::{Config, ExecutionEnv, Layer, Origin};
use waypost_core::{Actor, Command, Draft, Phase, Plan, PlanId, Timestamp};
use waypost_run::{Control, Controller, RunError, RunEvent, RunObserver, RunWarning, Runner, Summary, View};
use waypost_store::worker_name;
use waypost_store::{MemoryStore, NewPlan, PlanStore, Store, StoreError, WriteRequest};
use waypost_testkit::{SeededRng, plan_of};

use crate::direct_writes;
use crate::own_plan;
use crate::world::job;
use crate::wrapped::{Moment, Wrapped};

/// Plans that are run over a store that fails at random.
const SEEDS: u64 = 32;
/// Of them at the same time: they mostly wait for the store to recover.
const THREADS: u64 = 8;
/// Of a hundred calls of the store so many fail.
const FAULTS_PERCENT: u64 = 8;

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("waypost-faulty-{}-{number}", std::process::id()));
        fs::create_dir_all(root.join("work")).unwrap();
        Self(root)
    }

    fn runner(&self, plans: &Arc<PlanStore>, line: &str, id: &PlanId) -> Result<Runner, RunError> {
        self.runner_with(plans, line, "", id)
    }

    fn runner_with(
        &self,
        plans: &Arc<PlanStore>,
        line: &str,
        keys: &str,
        id: &PlanId,
    ) -> Result<Runner, RunError> {
        let line = serde_json::to_string(line).unwrap();
        let text = format!("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line}]\n{keys}\n");
        let layer = Layer { origin: Origin::User, name: "test".to_owned(), text };
        let around = ExecutionEnv {
            workspace: self.0.join("work"),
            logs: self.0.join("logs"),
            remote_notes: self.0.join("runs"),
            variables: BTreeMap::from([("PATH".to_owned(), waypost_testkit::program_path())]),
            worker: worker_name(),
        };
        let config = Arc::new(Config::load(&[layer], []).unwrap());
        own_plan::runner(plans, &config, around, id)
    }

    fn journal(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("work/journal")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn create(plans: &PlanStore, draft: Draft) -> PlanId {
    let by = Actor::person("ada");
    let new = NewPlan { id: None, by: by.clone(), draft, approval_required: None };
    let id = direct_writes::create(plans, new).plan;
    let (plan, commands) = (id.clone(), vec![Command::Activate]);
    let request = WriteRequest { plan, by, commands, known_version: None, lease_seconds: None };
    direct_writes::write(plans, request);
    id
}

#[derive(Default)]
struct Ended(BTreeMap<String, u32>);

impl RunObserver for Ended {
    fn on_event(&mut self, notice: &RunEvent) {
        if let RunEvent::TaskEnded { task, .. } = notice {
            *self.0.entry(task.to_string()).or_default() += 1;
        }
    }
    fn asked_to_end(&mut self, _: Control) {}
    fn on_tick(&mut self, _: &View<'_>) {}
    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// A diamond of three layers with a lock that half of them want.
fn draft(dice: &mut SeededRng) -> Draft {
    let names: Vec<String> = (0..9).map(|number| format!("t{number}")).collect();
    plan_of((0..9usize).map(|number| {
        let before: Vec<&str> = (0..3)
            .filter(|_| number >= 3 && dice.chance(60))
            .map(|place| names[(number / 3 - 1) * 3 + place].as_str())
            .collect();
        job(&names[number], &before, if dice.chance(50) { &["x"] } else { &[] })
    }))
}

fn runs_over_faults(seed: u64) {
    let place = Place::new();
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut dice = SeededRng::new(seed);
    let id = create(&PlanStore::new(Arc::clone(&inner)), draft(&mut dice));
    let counts = Arc::new(Mutex::new(BTreeMap::<String, u32>::new()));
    let (faults, dice) = (Arc::clone(&counts), Mutex::new(dice));
    let store = Wrapped::with_faults(inner, move |moment| {
        if dice.lock().unwrap().chance(FAULTS_PERCENT) {
            *faults.lock().unwrap().entry(format!("{moment:?}")).or_default() += 1;
            return Err(StoreError::Database(format!("fault at {moment:?}")));
        }
        Ok(())
    });
    let plans = Arc::new(PlanStore::new(store));
    // What fails before anything has begun is said, and can simply be asked again.
    let line = "echo \"$WAYPOST_TASK $WAYPOST_ATTEMPT\" >> journal";
    let mut runner = (0..20).find_map(|_| place.runner(&plans, line, &id).ok()).unwrap();
    let mut ended = Ended::default();
    runner.run(&mut ended).unwrap();
    let plan = (0..20).find_map(|_| plans.with_plan(&id, Plan::clone).ok()).unwrap();
    assert_eq!(plan.state().phase, Phase::Completed, "seed {seed}");
    let mut journal = place.journal();
    journal.sort();
    let once: Vec<String> = (0..9).map(|number| format!("t{number} 1")).collect();
    assert_eq!(journal, once, "seed {seed}: each task is done once, whatever the store did: {counts:?}");
    assert!(ended.0.values().all(|&times| times == 1), "seed {seed}: {:?}", ended.0);
    FAULTS.fetch_add(counts.lock().unwrap().values().sum(), Ordering::Relaxed);
}

static FAULTS: AtomicU32 = AtomicU32::new(0);

#[test]
fn every_task_is_done_exactly_once_although_the_store_fails_before_and_after_its_commits() {
    let said = std::env::var("WAYPOST_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = said {
        return runs_over_faults(seed);
    }
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || (thread..SEEDS).step_by(THREADS as usize).for_each(runs_over_faults));
        }
    });
    let faults = FAULTS.load(Ordering::Relaxed);
    assert!(u64::from(faults) > SEEDS, "hardly anything failed: {faults}");
}

#[test]
fn a_run_whose_store_stays_broken_gives_up_and_ends_its_programs() {
    let place = Place::new();
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let id = create(&PlanStore::new(Arc::clone(&inner)), plan_of([job("a", &[], &[]), job("b", &[], &[])]));
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = Arc::clone(&broken);
    let store = Wrapped::with_faults(Arc::clone(&inner), move |moment: Moment| {
        if is_broken.load(Ordering::Relaxed) {
            return Err(StoreError::Database(format!("fault at {moment:?}")));
        }
        Ok(())
    });
    let plans = Arc::new(PlanStore::new(store));
    let mut runner = place.runner(&plans, "echo $$ >> journal; sleep 600", &id).unwrap();
    // Broken as soon as both programs run.
    struct Break(Arc<AtomicBool>, PathBuf);
    impl RunObserver for Break {
        fn on_event(&mut self, _: &RunEvent) {}
        fn asked_to_end(&mut self, _: Control) {}
        fn on_tick(&mut self, _: &View<'_>) {
            let text = fs::read_to_string(&self.1).unwrap_or_default();
            self.0.fetch_or(text.lines().count() == 2, Ordering::Relaxed);
        }
        fn interval(&self) -> Duration {
            Duration::from_millis(10)
        }
    }
    let answer = runner.run(&mut Break(broken, place.0.join("work/journal")));
    assert!(matches!(answer, Err(RunError::StoreFailed(_))), "{answer:?}");
    let programs = place.journal();
    assert_eq!(programs.len(), 2);
    let lives = |program: &String| {
        let stat = fs::read_to_string(format!("/proc/{program}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    // They were killed; the system may need a moment to say so.
    let until = Instant::now() + Duration::from_secs(30);
    while programs.iter().any(lives) {
        assert!(Instant::now() < until, "a program outlives its run");
        std::thread::yield_now();
    }
    // Nothing was lost: the plan says that they run, and another run will take them over.
    let plan = PlanStore::new(inner).with_plan(&id, Plan::clone).unwrap();
    assert_eq!(plan.counts().in_progress(), 2);
}

#[test]
fn a_clock_that_jumps_keeps_nobody_from_the_end() {
    let place = Place::new();
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let base = 1_800_000_000_000_000;
    let (calls, dice) = (AtomicI64::new(0), Mutex::new(SeededRng::new(5)));
    // A little later at each look, and now and then an hour away, forwards or back.
    let store = Wrapped::with_clock(inner, move || {
        let hour = [0, 3_600_000_000, -3_600_000_000];
        let jump = *dice.lock().unwrap().pick(&hour);
        Timestamp::from_micros(base + 1_000 * calls.fetch_add(1, Ordering::Relaxed) + jump)
    });
    let plans = Arc::new(PlanStore::new(store));
    let id = create(&plans, draft(&mut SeededRng::new(9)));
    let line = "echo \"$WAYPOST_TASK $WAYPOST_ATTEMPT\" >> journal";
    place.runner(&plans, line, &id).unwrap().run(&mut Ended::default()).unwrap();
    let plan = plans.with_plan(&id, Plan::clone).unwrap();
    assert_eq!(plan.state().phase, Phase::Completed);
    assert_eq!(place.journal().len(), 9);
}

/// How long a test waits for a run before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::yield_now();
    }
}

/// The warnings of a run, and how often each of its tasks ended.
#[derive(Clone, Default)]
struct Heard {
    warnings: Arc<Mutex<Vec<RunWarning>>>,
    ended: Arc<Mutex<Ended>>,
}

impl RunObserver for Heard {
    fn on_event(&mut self, event: &RunEvent) {
        self.ended.lock().unwrap().on_event(event);
    }
    fn on_warning(&mut self, warning: &RunWarning) {
        self.warnings.lock().unwrap().push(warning.clone());
    }
}

impl Heard {
    fn warnings(&self) -> Vec<&'static str> {
        self.warnings.lock().unwrap().iter().map(RunWarning::as_str).collect()
    }
}

/// A run of one program, in the course of which the store can be read and no commit succeeds.
struct Unwritable {
    place: Place,
    inner: Arc<dyn Store>,
    id: PlanId,
    fails: Arc<AtomicBool>,
    failures: Arc<AtomicU32>,
    heard: Heard,
    controller: Controller,
    thread: std::thread::JoinHandle<Result<Summary, RunError>>,
}

impl Unwritable {
    /// Begins the run, and returns when the program has begun and the store fails.
    fn begin(error: fn() -> StoreError) -> Self {
        let (place, heard, fails) = (Place::new(), Heard::default(), Arc::new(AtomicBool::new(false)));
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let id =
            create(&PlanStore::new(Arc::clone(&inner)), plan_of([job("a", &[], &[]), job("b", &["a"], &[])]));
        let failures = Arc::new(AtomicU32::new(0));
        let (does_fail, count) = (Arc::clone(&fails), Arc::clone(&failures));
        let fault = move |moment: Moment| match moment {
            Moment::Append | Moment::Commit if does_fail.load(Ordering::Acquire) => {
                count.fetch_add(1, Ordering::AcqRel);
                Err(error())
            }
            Moment::Append | Moment::Commit | Moment::Answer | Moment::Read => Ok(()),
        };
        let plans = Arc::new(PlanStore::new(Wrapped::with_faults(Arc::clone(&inner), fault)));
        let line = "echo $WAYPOST_TASK $$ >> journal; while [ ! -e go ]; do sleep 0.02; done";
        let mut runner = place.runner(&plans, line, &id).unwrap();
        let (controller, mut observer) = (runner.controller(), heard.clone());
        let thread = std::thread::spawn(move || runner.run(&mut observer));
        until("the first program", || place.journal().len() == 1);
        fails.store(true, Ordering::Release);
        Self { place, inner, id, fails, failures, heard, controller, thread }
    }

    /// Lets the program end.
    fn end_program(&self) {
        fs::write(self.place.0.join("work/go"), "").unwrap();
    }

    fn plan(&self) -> Plan {
        PlanStore::new(Arc::clone(&self.inner)).with_plan(&self.id, Plan::clone).unwrap()
    }
}

fn disk_full() -> StoreError {
    StoreError::DiskFull { what: "the database".to_owned() }
}

#[test]
fn a_run_reports_a_full_disk_at_once_and_records_what_ended_when_there_is_space() {
    let run = Unwritable::begin(disk_full);
    run.end_program();
    until("a warning", || run.heard.warnings() == ["disk_full"]);
    // More failures than a run accepts that gives up.
    until("eleven failures", || run.failures.load(Ordering::Acquire) > 10 || run.thread.is_finished());
    assert!(!run.thread.is_finished(), "it gave up");
    assert_eq!(run.place.journal().len(), 1, "nothing starts whose start cannot be written");
    run.fails.store(false, Ordering::Release);
    until("the end", || run.thread.is_finished());
    let (plan, journal) = (run.plan(), run.place.journal());
    run.thread.join().unwrap().unwrap();
    assert_eq!(plan.state().phase, Phase::Completed);
    assert_eq!(journal.len(), 2, "what had ended was not done again: {journal:?}");
    assert_eq!(run.heard.warnings(), ["disk_full", "store_back"], "each is said once");
    let ended = run.heard.ended.lock().unwrap().0.clone();
    assert_eq!(ended, BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 1)]));
}

#[test]
fn a_second_signal_ends_a_run_whose_disk_is_full() {
    let run = Unwritable::begin(disk_full);
    until("a warning", || run.heard.warnings() == ["disk_full"]);
    run.controller.say(Control::Drain);
    run.controller.say(Control::Stop);
    until("the end", || run.thread.is_finished());
    assert_eq!(run.plan().counts().in_progress(), 1, "the next run takes it over");
    let ended = run.thread.join().unwrap();
    let is_full = |error: &StoreError| matches!(error, StoreError::DiskFull { .. });
    assert!(matches!(&ended, Err(RunError::StoppedInOutage { error, .. }) if is_full(error)), "{ended:?}");
}

#[test]
fn a_run_gives_up_if_its_store_can_be_read_and_not_written() {
    let run = Unwritable::begin(|| StoreError::Database("disk I/O error".to_owned()));
    run.end_program();
    until("the end", || run.thread.is_finished());
    let ended = run.thread.join().unwrap();
    assert!(matches!(ended, Err(RunError::StoreFailed(_))), "{ended:?}");
}

#[test]
fn a_program_that_must_not_outlive_its_lease_is_ended_while_the_store_is_away() {
    let place = Place::new();
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let id = create(&PlanStore::new(Arc::clone(&inner)), plan_of([job("a", &[], &["k"])]));
    // The store is away for as long as the first program runs.
    let pid = place.0.join("work/pid");
    let store = Wrapped::with_faults(inner, move |_| {
        let pid = fs::read_to_string(&pid).unwrap_or_default();
        let runs = !pid.is_empty() && fs::exists(format!("/proc/{}", pid.trim())).unwrap();
        if runs { Err(StoreError::Database("it is away".to_owned())) } else { Ok(()) }
    });
    let plans = Arc::new(PlanStore::new(store));
    let line = "echo $WAYPOST_ATTEMPT >> journal; [ $WAYPOST_ATTEMPT = 1 ] || exit 0; echo $$ > pid.new; mv pid.new pid; exec sleep 1000";
    let keys =
        "end_when_lost = true\n[lease]\nseconds = 2\nheartbeat_seconds = 1\n[retry]\nbackoff_seconds = 0";
    let mut runner = place.runner_with(&plans, line, keys, &id).unwrap();
    runner.run(&mut Ended::default()).unwrap();
    let plan = plans.with_plan(&id, Plan::clone).unwrap();
    assert_eq!((plan.state().phase, plan.task("a").unwrap().state.attempt), (Phase::Completed, 2));
    assert_eq!(place.journal(), ["1", "2"]);
}
