//! Several workers on one store that machines share: SQLite, which here says of itself that it reaches beyond one machine. Each
//! worker has its own connection, its own folder of logs and its own name, as if it ran elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use waypost_config::{Config, ExecutionEnv, Layer, Origin};
use waypost_core::{Actor, Command, Phase, PlanId, Retry, TaskId};
use waypost_run::{
    AfterFailure, Control, Controller, ExitPolicy, Follow, Options, RunError, RunEvent, RunObserver,
    RunWarning, Runner, TaskFilter, View,
};
use waypost_service::{Authenticator, Caller, Service, why};
use waypost_store::{
    Durability, LeaseFilter, NewPlan, PlanStore, Read, SharingScope, SqliteStore, Store, StoreError, Worker,
    WorkerKind, WriteRequest,
};
use waypost_store::{FoundLog, find_log};
use waypost_testkit::{id, plan_of};

use crate::direct_writes;
use crate::own_plan;
use crate::world::job;
use crate::wrapped::{Moment, Wrapped};

/// How long a call of the store takes for a worker that is far away.
const FAR: Duration = Duration::from_millis(200);
/// How long a test waits for workers before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    root: PathBuf,
    /// Whether the store is away.
    away: Arc<AtomicBool>,
    /// What workers have asked the store for.
    moments: Arc<Mutex<Vec<Moment>>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.root);
    }
}

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("waypost-machines-{}-{number}", std::process::id()));
        fs::create_dir_all(root.join("work")).unwrap();
        Self { root, away: Arc::default(), moments: Arc::default() }
    }

    /// The store as another machine sees it.
    fn plans(&self) -> Arc<PlanStore> {
        self.plans_noting(Arc::default())
    }

    /// The same, with a note of every moment.
    fn plans_noting(&self, moments: Arc<Mutex<Vec<Moment>>>) -> Arc<PlanStore> {
        let path = self.root.join("shared.db");
        let inner: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, Durability::Relaxed).unwrap());
        let away = Arc::clone(&self.away);
        let fault = move |moment: Moment| {
            moments.lock().unwrap().push(moment);
            match moment {
                Moment::Append | Moment::Commit | Moment::Read if away.load(Ordering::Acquire) => {
                    Err(StoreError::Database("the server is gone".to_owned()))
                }
                Moment::Append | Moment::Commit | Moment::Read | Moment::Answer => Ok(()),
            }
        };
        let reach = Some(SharingScope::Machines);
        Arc::new(PlanStore::new(Arc::new(Wrapped { inner, fault: Box::new(fault), clock: None, reach })))
    }

    /// The store as a machine sees it that is far away: each read, and the answer to each write, takes its time.
    fn plans_from_afar(&self) -> Arc<PlanStore> {
        let inner: Arc<dyn Store> =
            Arc::new(SqliteStore::open(&self.root.join("shared.db"), Durability::Relaxed).unwrap());
        let fault = |moment: Moment| {
            if matches!(moment, Moment::Read | Moment::Answer) {
                std::thread::park_timeout(FAR);
            }
            Ok(())
        };
        let reach = Some(SharingScope::Machines);
        Arc::new(PlanStore::new(Arc::new(Wrapped { inner, fault: Box::new(fault), clock: None, reach })))
    }

    fn around(&self, name: &str) -> ExecutionEnv {
        ExecutionEnv {
            workspace: self.root.join("work"),
            logs: self.root.join(name).join("logs"),
            remote_notes: self.root.join(name).join("runs"),
            variables: BTreeMap::from([("PATH".to_owned(), waypost_testkit::program_path())]),
            worker: format!("{name}:1:1.1"),
        }
    }

    fn worker(&self, name: &str, config: &str, patience: ExitPolicy) -> Runner {
        self.worker_at(self.plans_noting(Arc::clone(&self.moments)), name, config, patience)
    }

    fn worker_at(&self, plans: Arc<PlanStore>, name: &str, config: &str, patience: ExitPolicy) -> Runner {
        let options = Options {
            follow: Follow::Queues(vec!["default".to_owned()]),
            after_failure: AfterFailure::KeepGoing,
            jobs: None,
            takes: TaskFilter { leaves_unknown: true, tells_own_only: true, ..TaskFilter::default() },
            patience,
            authenticator: Authenticator::default(),
        };
        let config = loaded(config);
        own_plan::start_all(&self.plans(), &config);
        Runner::with(plans, config, self.around(name), options).unwrap()
    }

    fn noted(&self) -> Vec<String> {
        let text = fs::read_to_string(self.root.join("work/noted")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn config(concurrency: u32, line: &str, more: &str) -> String {
    let line = serde_json::to_string(line).unwrap();
    format!(
        "[queues.default]\nconcurrency = {concurrency}\n[executors.run]\nkind = \"process\"\nshell = true\n\
         command = [{line}]\n{more}"
    )
}

#[expect(clippy::disallowed_methods, reason = "a test arranges what the service might refuse")]
fn purge(plans: &PlanStore, plan: &PlanId) {
    plans.purge(plan, &Actor::person("ada")).unwrap();
}

fn loaded(text: &str) -> Arc<Config> {
    let layer = Layer { origin: Origin::User, name: "test".to_owned(), text: text.to_owned() };
    Arc::new(Config::load(&[layer], []).unwrap())
}

fn submit(plans: &PlanStore, name: &str, tasks: usize) -> PlanId {
    submit_with(plans, name, &vec![0; tasks])
}

/// Submits a plan with a task for each of these priorities.
fn submit_with(plans: &PlanStore, name: &str, priorities: &[i32]) -> PlanId {
    let by = Actor::person("ada");
    let task = |(number, priority): (usize, &i32)| {
        let mut task = job(&format!("t{number}"), &[], &[]);
        task.priority = *priority;
        task
    };
    let draft = plan_of(priorities.iter().enumerate().map(task));
    let plan = PlanId::new(name).unwrap();
    let new = NewPlan { id: Some(plan.clone()), by: by.clone(), draft, approval_required: None };
    direct_writes::create(plans, new);
    let request = WriteRequest {
        plan: plan.clone(),
        by,
        commands: vec![Command::Activate],
        known_version: None,
        lease_seconds: None,
    };
    direct_writes::write(plans, request);
    plan
}

#[derive(Clone, Default)]
struct Heard {
    remarks: Arc<Mutex<Vec<RunWarning>>>,
    started: Arc<AtomicU32>,
    /// The plans that the worker follows.
    followed: Arc<Mutex<Vec<PlanId>>>,
}

impl RunObserver for Heard {
    fn on_event(&mut self, notice: &RunEvent) {
        if let RunEvent::TaskStarted { .. } = notice {
            self.started.fetch_add(1, Ordering::AcqRel);
        }
    }
    fn asked_to_end(&mut self, _: Control) {}
    fn on_warning(&mut self, remark: &RunWarning) {
        self.remarks.lock().unwrap().push(remark.clone());
    }
    fn on_tick(&mut self, view: &View<'_>) {
        *self.followed.lock().unwrap() = view.plans.iter().map(|plan| plan.id().clone()).collect();
    }
    fn interval(&self) -> Duration {
        Duration::from_millis(50)
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} does not come about");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

type Ended = std::thread::JoinHandle<Result<(), RunError>>;

/// Runs a worker in a thread of its own.
fn begin(mut runner: Runner) -> (Ended, Controller, Heard) {
    let (controller, heard) = (runner.controller(), Heard::default());
    let mut watcher = heard.clone();
    let thread = std::thread::spawn(move || runner.run(&mut watcher).map(drop));
    (thread, controller, heard)
}

#[test]
fn a_queues_bound_holds_for_workers_that_share_nothing_but_the_store() {
    let place = Place::new();
    let note = |what: &str| format!("echo \"{what} $(date +%s%N)\" >> noted");
    let text = config(2, &format!("{}; sleep 0.02; {}", note("start"), note("end")), "");
    let plans = place.plans();
    let all = [submit(&plans, "p", 40), submit(&plans, "q", 20)];
    let workers: Vec<_> = ["mill", "barn", "shed"]
        .map(|name| begin(place.worker(name, &text, ExitPolicy::UntilIdle)))
        .into_iter()
        .collect();
    let mut starts = Vec::new();
    for (thread, _, heard) in workers {
        thread.join().unwrap().unwrap();
        starts.push(heard.started.load(Ordering::Acquire));
    }
    for plan in &all {
        assert_eq!(plans.with_plan(plan, |plan| plan.state().phase).unwrap(), Phase::Completed);
    }
    let mut spans: Vec<(u128, i32)> = Vec::new();
    for line in place.noted() {
        let (what, at) = line.split_once(' ').unwrap();
        spans.push((at.parse().unwrap(), if what == "start" { 1 } else { -1 }));
    }
    spans.sort_unstable();
    assert_eq!(spans.len(), 2 * 60, "every task ran once");
    let (mut now, mut most) = (0, 0);
    for (_, change) in spans {
        now += change;
        most = most.max(now);
    }
    assert_eq!(most, 2, "two run at the same time, and never more");
    let (rest, _) = plans.workers(None, 10).unwrap();
    assert_eq!(rest.total, 0, "whoever ended has said farewell");
    assert_eq!(starts.iter().sum::<u32>(), 60, "{starts:?}");
}

#[test]
fn a_worker_without_any_slot_gets_one_although_another_has_work_for_all_of_them() {
    let place = Place::new();
    let plans = place.plans();
    let text = config(1, "sleep 0.05", "[lease]\nseconds = 6\nheartbeat_seconds = 1\n");
    submit(&plans, "long", 400);
    let (first, stop_first, _) = begin(place.worker("mill", &text, ExitPolicy::UntilAsked));
    until("the first worker's start", || !plans.leases_of("mill:1:1.1", 1).unwrap().is_empty());
    let (second, stop_second, _) = begin(place.worker("barn", &text, ExitPolicy::UntilAsked));
    until("the second worker's start", || !plans.leases_of("barn:1:1.1", 1).unwrap().is_empty());
    let left = plans.with_plan(&PlanId::new("long").unwrap(), |plan| plan.counts().ready).unwrap();
    assert!(left > 0, "it had to wait for the end of all");
    stop_first.say(Control::Stop);
    stop_second.say(Control::Stop);
    first.join().unwrap().unwrap();
    second.join().unwrap().unwrap();
}

#[test]
fn a_worker_far_away_gets_its_share_of_the_slots_that_two_others_have_work_for() {
    let place = Place::new();
    let plans = place.plans();
    let text = config(2, "sleep 0.05", "[lease]\nseconds = 6\nheartbeat_seconds = 1\n");
    submit(&plans, "long", 2_000);
    let near = ["mill", "barn"].map(|name| begin(place.worker(name, &text, ExitPolicy::UntilAsked)));
    until("a near start", || !plans.leases_of("mill:1:1.1", 1).unwrap().is_empty());
    let afar = place.plans_from_afar();
    let (far, stop_far, heard) = begin(place.worker_at(afar, "isle", &text, ExitPolicy::UntilAsked));
    until("its tasks", || heard.started.load(Ordering::Acquire) >= 3);
    let left = plans.with_plan(&PlanId::new("long").unwrap(), |plan| plan.counts().ready).unwrap();
    assert!(left > 0, "it had to wait for the end of all");
    stop_far.say(Control::Stop);
    near.iter().for_each(|(_, stop, _)| stop.say(Control::Stop));
    far.join().unwrap().unwrap();
    for (ended, _, _) in near {
        ended.join().unwrap().unwrap();
    }
}

#[test]
fn a_worker_that_finds_its_queue_full_says_so_and_why_names_it() {
    let place = Place::new();
    let plans = place.plans();
    let plan = submit(&plans, "p", 2);
    let text =
        config(1, "while [ ! -e go ]; do sleep 0.02; done", "[lease]\nseconds = 6\nheartbeat_seconds = 1\n");
    let (first, _, _) = begin(place.worker("mill", &text, ExitPolicy::UntilIdle));
    until("the first start", || plans.with_plan(&plan, |plan| plan.counts().running).unwrap() == 1);
    let (second, _, heard) = begin(place.worker("barn", &text, ExitPolicy::UntilIdle));
    let waits = |worker: &Worker| worker.name.starts_with("barn") && worker.waits_for == ["default"];
    until("the wait", || plans.workers(None, 10).unwrap().0.items.iter().any(waits));
    let ready = plans.with_plan(&plan, |plan| plan.ready().next().map(|task| task.spec.id.clone())).unwrap();
    let told = why(&plans, None, &plan, &ready.unwrap()).unwrap();
    let queue = told.reasons.iter().find(|reason| reason.kind == "queue").unwrap();
    assert!(queue.words.contains("a slot of queue default: 1 are taken"), "{}", queue.words);
    assert_eq!(heard.started.load(Ordering::Acquire), 0);
    fs::write(place.root.join("work/go"), "").unwrap();
    first.join().unwrap().unwrap();
    second.join().unwrap().unwrap();
    assert_eq!(plans.with_plan(&plan, |plan| plan.state().phase).unwrap(), Phase::Completed);
}

#[test]
fn the_log_of_an_attempt_can_be_read_on_another_machine_while_it_runs_and_afterwards() {
    let place = Place::new();
    let plans = place.plans();
    let plan = submit(&plans, "p", 1);
    let line = "echo begun >&2; while [ ! -e go ]; do sleep 0.02; done; echo over >&2";
    let text = config(1, line, "[lease]\nseconds = 6\nheartbeat_seconds = 1\n");
    let (thread, _, _) = begin(place.worker("mill", &text, ExitPolicy::UntilIdle));
    let elsewhere = place.root.join("elsewhere");
    let first: TaskId = id("t0");
    let copy = || match find_log(&plans, &elsewhere, (&plan, &first, 1), None, 1_000).unwrap() {
        FoundLog::Copy(copy) => Some(*copy),
        FoundLog::Nothing { .. } => None,
        FoundLog::File { .. } => panic!("no file is there"),
    };
    until("a copy of what was written so far", || copy().is_some());
    let so_far = copy().unwrap();
    assert_eq!((so_far.ended, so_far.worker.as_str()), (false, "mill:1:1.1"));
    assert!(so_far.text == "begun\n", "{so_far:?}");
    fs::write(place.root.join("work/go"), "").unwrap();
    thread.join().unwrap().unwrap();
    let whole = copy().unwrap();
    assert!(whole.ended && whole.text.ends_with("over\n"), "{whole:?}");
    assert_eq!(whole.bytes, whole.text.len() as u64);
    let logs = place.around("mill").logs;
    let file = find_log(&plans, &logs, (&plan, &first, 1), None, 1_000).unwrap();
    assert_eq!(
        file,
        FoundLog::File { text: whole.text, bytes: whole.bytes },
        "where the file is, it is read"
    );
    let nothing = find_log(&plans, &elsewhere, (&plan, &first, 2), Some("mill:1:1.1"), 1_000).unwrap();
    assert_eq!(nothing, FoundLog::Nothing { elsewhere: Some("mill:1:1.1".to_owned()) });
}

#[test]
fn a_worker_outlives_a_store_that_is_away_and_reports_what_ended_meanwhile() {
    let place = Place::new();
    let plans = place.plans();
    let plan = submit(&plans, "p", 3);
    let text = config(1, "echo ran >> noted; while [ ! -e go ]; do sleep 0.02; done", "");
    let (thread, _, heard) = begin(place.worker("mill", &text, ExitPolicy::UntilIdle));
    until("the first program", || place.noted().len() == 1);
    place.away.store(true, Ordering::Release);
    fs::write(place.root.join("work/go"), "").unwrap();
    let is_away = |remark: &RunWarning| matches!(remark, RunWarning::StoreAway { .. });
    until("a word about the store", || heard.remarks.lock().unwrap().iter().any(is_away));
    // Longer than a run on its own machine would try.
    let began = Instant::now();
    until("a while", || began.elapsed() > Duration::from_secs(7));
    assert!(!thread.is_finished(), "it gave up");
    assert_eq!(place.noted().len(), 1, "nothing starts whose start cannot be written");
    place.away.store(false, Ordering::Release);
    thread.join().unwrap().unwrap();
    assert_eq!(plans.with_plan(&plan, |plan| plan.state().phase).unwrap(), Phase::Completed);
    assert_eq!(place.noted().len(), 3, "what had ended was not done again");
    let remarks = heard.remarks.lock().unwrap();
    assert!(remarks.iter().any(|remark| matches!(remark, RunWarning::StoreBack { .. })), "{remarks:?}");
    assert_eq!(remarks.iter().filter(|remark| is_away(remark)).count(), 1, "it is said once: {remarks:?}");
}

#[test]
fn what_ended_while_the_store_was_away_for_longer_than_its_lease_is_dropped_if_another_has_it() {
    let place = Place::new();
    let plans = place.plans();
    let plan = submit(&plans, "p", 1);
    let lease = "[lease]\nseconds = 2\nheartbeat_seconds = 1\n";
    let text = config(1, "echo $WAYPOST_ATTEMPT >> noted; while [ ! -e go ]; do sleep 0.02; done", lease);
    let (thread, _, heard) = begin(place.worker("mill", &text, ExitPolicy::UntilAsked));
    until("the first program", || place.noted().len() == 1);
    place.away.store(true, Ordering::Release);
    // Another worker, which reaches the store, finds the lease over and has the task done.
    let direct = PlanStore::new(Arc::new(
        SqliteStore::open(&place.root.join("shared.db"), Durability::Relaxed).unwrap(),
    ));
    let by = |who: &str, command: Command| WriteRequest {
        plan: plan.clone(),
        by: Actor::worker(who),
        commands: vec![command],
        known_version: None,
        lease_seconds: Some(600),
    };
    until("the end of the lease", || {
        let mut over = false;
        let look = &mut |read: &mut dyn Read| {
            let now = read.now();
            over = !read.leases(&LeaseFilter::EndedBefore(now), 1)?.is_empty();
            Ok(())
        };
        direct.store().read(look).unwrap();
        over
    });
    let retry = Some(Retry { attempts: 9, backoff_seconds: 0, backoff_seconds_max: 0 });
    direct_writes::write(&direct, by("barn:1:1.1", Command::LoseTask { task: id("t0"), attempt: 1, retry }));
    let start = Command::StartTask { task: id("t0"), worker: "barn:1:1.1".to_owned() };
    direct_writes::write(&direct, by("barn:1:1.1", start));
    place.away.store(false, Ordering::Release);
    let is_lost = |remark: &RunWarning| matches!(remark, RunWarning::LeaseLost { key } if key.attempt == 1);
    until("a word about the lease", || heard.remarks.lock().unwrap().iter().any(is_lost));
    let state = plans.with_plan(&plan, |plan| plan.task("t0").unwrap().state.clone()).unwrap();
    assert_eq!((state.attempt, state.worker.as_deref()), (2, Some("barn:1:1.1")));
    assert!(!thread.is_finished(), "it goes on as a worker");
    assert!(
        Service::new(Arc::clone(&plans), Arc::default())
            .drain_worker(&Caller::new(Actor::person("ada")), "mill:1:1.1")
            .unwrap()
    );
    thread.join().unwrap().unwrap();
    assert_eq!(place.noted(), ["1"]);
}

#[test]
fn an_idle_worker_asks_the_store_for_nothing_between_its_heartbeats_until_something_is_written() {
    let place = Place::new();
    let plans = place.plans();
    let text = config(1, "echo ran >> noted", "[lease]\nseconds = 9\nheartbeat_seconds = 3\n");
    let (thread, controller, _) = begin(place.worker("mill", &text, ExitPolicy::UntilAsked));
    let heartbeat = || {
        place.moments.lock().unwrap().clear();
        until("a heartbeat", || place.moments.lock().unwrap().contains(&Moment::Answer));
        place.moments.lock().unwrap().clone()
    };
    // Before the first one, it reads what there is.
    heartbeat();
    assert_eq!(heartbeat(), [Moment::Commit, Moment::Answer]);
    let plan = submit(&plans, "p", 1);
    own_plan::start(&plans, &loaded(&text), &plan);
    until("the end of the plan", || {
        plans.with_plan(&plan, |plan| plan.state().phase).unwrap() == Phase::Completed
    });
    controller.say(Control::Drain);
    thread.join().unwrap().unwrap();
    assert_eq!(place.noted(), ["ran"]);
}

#[test]
fn a_worker_says_who_it_is_and_what_it_can_do() {
    let place = Place::new();
    let plans = place.plans();
    let runner = place.worker("mill", &config(3, "true", ""), ExitPolicy::UntilIdle);
    let (page, now) = plans.workers(None, 10).unwrap();
    let [worker] = page.items.as_slice() else { panic!("{page:?}") };
    assert_eq!((worker.name.as_str(), worker.kind), ("mill:1:1.1", WorkerKind::Worker));
    assert_eq!(
        (&worker.queues, &worker.executors),
        (&vec!["default".to_owned()], &["human", "noop", "run"].map(str::to_owned).to_vec())
    );
    assert_eq!(worker.version, env!("CARGO_PKG_VERSION"));
    assert!(worker.seen <= now && now < worker.until);
    let (thread, _, _) = begin(runner);
    thread.join().unwrap().unwrap();
    assert_eq!(plans.workers(None, 10).unwrap().0.total, 0);
}

#[test]
fn a_worker_whose_plan_is_purged_stops_its_programs_and_goes_on_with_the_others() {
    let place = Place::new();
    let plans = place.plans();
    let purged = submit(&plans, "p", 2);
    let other = submit(&plans, "q", 1);
    let line = "echo $$ >> noted; while [ ! -e go ]; do sleep 0.02; done";
    let text = config(3, line, "[lease]\nseconds = 6\nheartbeat_seconds = 1\n");
    let (thread, _, heard) = begin(place.worker("mill", &text, ExitPolicy::UntilIdle));
    until("three programs", || place.noted().len() == 3);
    purge(&plans, &purged);
    let is_alive = |program: &String| {
        let stat = fs::read_to_string(format!("/proc/{program}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    until("the end of two programs", || {
        place.noted().iter().filter(|program| is_alive(program)).count() == 1
    });
    fs::write(place.root.join("work/go"), "").unwrap();
    thread.join().unwrap().unwrap();
    assert_eq!(plans.with_plan(&other, |plan| plan.state().phase).unwrap(), Phase::Completed);
    let remarks = heard.remarks.lock().unwrap();
    let lost = |remark: &&RunWarning| matches!(remark, RunWarning::PlanLost { plan, .. } if *plan == purged);
    assert_eq!(remarks.iter().filter(lost).count(), 1, "{remarks:?}");
    assert_eq!(remarks.len(), 1, "no lease went to others: {remarks:?}");
}

#[test]
fn a_run_of_a_plan_that_is_purged_ends_with_an_error_that_says_so() {
    let place = Place::new();
    let plans = place.plans();
    let purged = submit(&plans, "p", 2);
    let text = config(1, "echo $$ >> noted; while [ ! -e go ]; do sleep 0.02; done", "");
    let config = loaded(&text);
    let runner = own_plan::runner(&plans, &config, place.around("mill"), &purged).unwrap();
    let (thread, _, _) = begin(runner);
    until("a program", || place.noted().len() == 1);
    purge(&plans, &purged);
    fs::write(place.root.join("work/go"), "").unwrap();
    let error = thread.join().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "plan p was purged while it ran; what ran of it was stopped");
}

/// More plans than a worker follows at the same time.
const MANY: usize = 36;
/// Writes down its plan, and waits until it may end.
const GATED: &str = "echo $WAYPOST_PLAN >> noted; while [ ! -e go ]; do sleep 0.02; done";

impl Heard {
    fn until_it_follows(&self, plan: &PlanId) {
        until("following", || self.followed.lock().unwrap().contains(plan));
    }
}

#[test]
fn an_urgent_plan_takes_the_place_of_a_less_urgent_one_and_starts_next() {
    let place = Place::new();
    let plans = place.plans();
    for number in 0..MANY {
        submit(&plans, &format!("p{number}"), 2);
    }
    let text = config(1, GATED, "");
    let (thread, controller, heard) = begin(place.worker("mill", &text, ExitPolicy::UntilAsked));
    until("a program", || place.noted().len() == 1);
    let last = PlanId::new(format!("p{}", MANY - 1)).unwrap();
    let waits = why(&plans, None, &last, &id("t1")).unwrap().reasons;
    assert_eq!(
        waits.iter().map(|reason| reason.words.as_str()).collect::<Vec<_>>(),
        [
            "its turn in queue default, the most urgent first: other plans with ready tasks: 35, tasks in progress: 1"
        ]
    );
    let urgent = submit_with(&plans, "urgent", &[100]);
    own_plan::start(&plans, &loaded(&text), &urgent);
    heard.until_it_follows(&urgent);
    fs::write(place.root.join("work/go"), "").unwrap();
    until("the next program", || place.noted().len() > 1);
    controller.say(Control::Stop);
    thread.join().unwrap().unwrap();
    assert_eq!(place.noted()[1], "urgent");
}

#[test]
fn a_plan_is_followed_once_the_plans_before_it_have_only_less_urgent_tasks_left() {
    let place = Place::new();
    let plans = place.plans();
    for number in 0..MANY - 1 {
        submit_with(&plans, &format!("p{number}"), &[10, 0]);
    }
    let middle = submit_with(&plans, "middle", &[5]);
    let gated = "[ $WAYPOST_TASK = t0 ] || while [ ! -e go ]; do sleep 0.02; done";
    let text = config(1, &format!("echo $WAYPOST_PLAN/$WAYPOST_TASK >> noted; {gated}"), "");
    let (thread, _, heard) = begin(place.worker("mill", &text, ExitPolicy::UntilIdle));
    heard.until_it_follows(&middle);
    fs::write(place.root.join("work/go"), "").unwrap();
    thread.join().unwrap().unwrap();
    let noted = place.noted();
    assert_eq!(noted.len(), 2 * MANY - 1, "a worker that ends when it is idle has done everything");
    let turn = noted.iter().position(|task| task == "middle/t0").unwrap();
    let before = noted[..turn].iter().filter(|task| task.ends_with("/t1")).count();
    assert!(before <= 1, "at most the one that ran already: {noted:?}");
}

#[test]
fn a_worker_whose_plans_all_have_running_tasks_follows_one_more() {
    let place = Place::new();
    let plans = place.plans();
    for number in 0..MANY {
        submit(&plans, &format!("p{number}"), 1);
    }
    let text = config(2 * MANY as u32, GATED, "");
    let (thread, _, _) = begin(place.worker("mill", &text, ExitPolicy::UntilIdle));
    until("a program of each plan", || place.noted().len() == MANY);
    fs::write(place.root.join("work/go"), "").unwrap();
    thread.join().unwrap().unwrap();
}

#[test]
fn why_names_what_a_task_of_a_run_waits_for_and_not_a_lack_of_workers() {
    let place = Place::new();
    let plans = place.plans();
    let by = Actor::person("ada");
    let mut reported = job("c", &[], &[]);
    reported.work = None;
    let (executor, inputs) = ("look".to_owned(), waypost_core::Json::empty_object());
    reported.check = Some(Box::new(waypost_core::Work { executor, inputs, shape: None }));
    let draft = plan_of([job("a", &[], &[]), job("b", &[], &[]), reported]);
    let new = NewPlan { id: Some(PlanId::new("p").unwrap()), by: by.clone(), draft, approval_required: None };
    let plan = direct_writes::create(&plans, new).plan;
    let text = config(1, GATED, "[checks.look]\ncommand = [\"true\"]\n");
    let runner = own_plan::runner(&plans, &loaded(&text), place.around("mill"), &plan).unwrap();
    let (thread, controller, _) = begin(runner);
    until("a program", || place.noted().len() == 1);
    let outcome = waypost_core::Outcome::Done { result: None, output: None, evidence: None };
    let done = Command::FinishTask { task: id("c"), attempt: None, outcome, retry: None };
    let (of, commands) = (plan.clone(), vec![done]);
    let request = WriteRequest { plan: of, by, commands, known_version: None, lease_seconds: None };
    direct_writes::write(&plans, request);
    let kinds = |task: &str| -> Vec<&str> {
        why(&plans, None, &plan, &id(task)).unwrap().reasons.iter().map(|reason| reason.kind).collect()
    };
    assert_eq!(kinds("b"), ["turn"]);
    assert_eq!(kinds("c"), ["check"], "the run makes the check as soon as it has a slot");
    controller.say(Control::Drain);
    until("the registry", || plans.workers(None, 10).unwrap().0.items[0].draining);
    let waits = why(&plans, None, &plan, &id("b")).unwrap().reasons;
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!(
        (waits[0].kind, waits[0].words.as_str()),
        ("no_worker", "a worker: those of queue default that are alive (1) drain and start nothing more")
    );
    fs::write(place.root.join("work/go"), "").unwrap();
    thread.join().unwrap().unwrap();
}

#[test]
fn a_worker_that_cannot_write_its_logs_says_so_before_it_starts_anything() {
    let place = Place::new();
    let plans = place.plans();
    let plan = submit(&plans, "p", 1);
    let around = place.around("mill");
    fs::create_dir_all(around.logs.parent().unwrap()).unwrap();
    fs::write(&around.logs, "in the way").unwrap();
    let folder = around.logs.display().to_string();
    let error = own_plan::runner(&plans, &loaded(&config(1, "true", "")), around, &plan).err().unwrap();
    assert!(
        error.to_string().starts_with(&format!("the logs folder {folder} cannot be written: ")),
        "{error}"
    );
    assert_eq!(plans.workers(None, 10).unwrap().0.total, 0, "it is not registered");
}
