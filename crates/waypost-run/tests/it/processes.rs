//! Real programs under the real loop, with a store in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use waypost_config::{Config, ExecutionEnv, Layer, Origin};
use waypost_config::{Executor, Worker};
use waypost_core::{Actor, Draft, Json, Phase, Plan, PlanId, Status, TaskSpec, Work};
use waypost_run::{Control, RunEvent, RunObserver, Summary, View};
use waypost_service::admission as admit;
use waypost_store::{MemoryStore, NewPlan, PlanStore};
use waypost_store::{log_path, worker_name};
use waypost_testkit::plan_of;

use crate::direct_writes;
use crate::own_plan;
use crate::world::job;

pub(crate) struct Place {
    pub(crate) root: PathBuf,
    plans: Arc<PlanStore>,
    pub(crate) variables: BTreeMap<String, String>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.root);
    }
}

#[derive(Default)]
struct Notices {
    all: Vec<RunEvent>,
    stop_at_progress: Option<waypost_run::Controller>,
}

impl RunObserver for Notices {
    fn on_event(&mut self, notice: &RunEvent) {
        self.all.push(notice.clone());
        if let (RunEvent::TaskProgressed { .. }, Some(controller)) = (notice, &self.stop_at_progress) {
            controller.say(Control::Stop);
        }
    }
    fn asked_to_end(&mut self, _: Control) {}
    fn on_tick(&mut self, _: &View<'_>) {}
    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("waypost-run-{}-{number}", std::process::id()));
        fs::create_dir_all(root.join("work")).unwrap();
        let variables = BTreeMap::from([
            ("PATH".to_owned(), waypost_testkit::program_path()),
            ("SECRET_SOURCE".to_owned(), "hunter2-hunter2".to_owned()),
            ("NOT_FOR_WORKERS".to_owned(), "private".to_owned()),
        ]);
        Self { root, plans: Arc::new(PlanStore::new(Arc::new(MemoryStore::new()))), variables }
    }

    pub(crate) fn around(&self) -> ExecutionEnv {
        ExecutionEnv {
            workspace: self.root.join("work"),
            logs: self.root.join("logs"),
            remote_notes: self.root.join("runs"),
            variables: self.variables.clone(),
            worker: worker_name(),
        }
    }

    pub(crate) fn create(&self, draft: Draft) -> PlanId {
        let by = Actor::person("ada");
        let new = NewPlan { id: None, by: by.clone(), draft, approval_required: None };
        let id = direct_writes::create(&self.plans, new).plan;
        self.write(&id, &by, vec![waypost_core::Command::Activate]);
        id
    }

    /// Runs a plan, and answers everything that is asked as a person beside it. Returns how often that was.
    pub(crate) fn run_and_answer(&self, config: Config, draft: Draft, answer: &str) -> (Plan, usize) {
        struct Person {
            plans: Arc<PlanStore>,
            answer: String,
            answered: usize,
        }
        impl RunObserver for Person {
            fn on_event(&mut self, notice: &RunEvent) {
                let RunEvent::QuestionAsked { plan, task, .. } = notice else { return };
                self.answered += 1;
                let command =
                    waypost_core::Command::AnswerQuestion { task: task.clone(), answer: self.answer.clone() };
                let request = waypost_store::WriteRequest {
                    plan: plan.clone(),
                    by: Actor::person("ada"),
                    commands: vec![command],
                    known_version: None,
                    lease_seconds: None,
                };
                direct_writes::write(&self.plans, request);
            }
            fn asked_to_end(&mut self, _: Control) {}
            fn on_tick(&mut self, _: &View<'_>) {}
            fn interval(&self) -> Duration {
                Duration::from_secs(1)
            }
        }
        let id = self.create(draft);
        let mut runner = own_plan::runner(&self.plans, &Arc::new(config), self.around(), &id).unwrap();
        let mut person = Person { plans: Arc::clone(&self.plans), answer: answer.to_owned(), answered: 0 };
        runner.run(&mut person).unwrap();
        (self.plans.with_plan(&id, Plan::clone).unwrap(), person.answered)
    }

    pub(crate) fn run(&self, config: Config, draft: Draft) -> (Plan, Summary, Vec<RunEvent>) {
        let id = self.create(draft);
        let mut runner = own_plan::runner(&self.plans, &Arc::new(config), self.around(), &id).unwrap();
        let mut notices = Notices::default();
        let summary = runner.run(&mut notices).unwrap();
        (self.plans.with_plan(&id, Plan::clone).unwrap(), summary, notices.all)
    }

    pub(crate) fn write(&self, plan: &PlanId, by: &Actor, commands: Vec<waypost_core::Command>) {
        let (plan, by) = (plan.clone(), by.clone());
        let request =
            waypost_store::WriteRequest { plan, by, commands, known_version: None, lease_seconds: None };
        direct_writes::write(&self.plans, request);
    }

    /// Runs a plan and stops the run when a task says how far it is.
    pub(crate) fn run_until_progress(&self, config: Config, id: &PlanId) -> Plan {
        let mut runner = own_plan::runner(&self.plans, &Arc::new(config), self.around(), id).unwrap();
        let mut notices = Notices { stop_at_progress: Some(runner.controller()), ..Notices::default() };
        assert_eq!(runner.run(&mut notices).unwrap().asked_to_end, Some(Control::Stop));
        self.plans.with_plan(id, Plan::clone).unwrap()
    }

    /// Looks at a plan once, as a run does that is told to end before it begins.
    pub(crate) fn run_briefly(&self, config: Config, id: &PlanId) -> Plan {
        let mut runner = own_plan::runner(&self.plans, &Arc::new(config), self.around(), id).unwrap();
        runner.controller().say(Control::Drain);
        runner.run(&mut Notices::default()).unwrap();
        self.plans.with_plan(id, Plan::clone).unwrap()
    }

    /// Runs a plan that is there already.
    pub(crate) fn run_again(&self, config: Config, id: &PlanId) -> Plan {
        let mut runner = own_plan::runner(&self.plans, &Arc::new(config), self.around(), id).unwrap();
        runner.run(&mut Notices::default()).unwrap();
        self.plans.with_plan(id, Plan::clone).unwrap()
    }

    pub(crate) fn log(&self, plan: &Plan, task: &str) -> String {
        let path = log_path(&self.root.join("logs"), plan.id(), &waypost_testkit::id(task), 1);
        fs::read_to_string(path).unwrap_or_default()
    }
}

pub(crate) fn configured(text: &str) -> Config {
    let layer = Layer { origin: Origin::User, name: "test".to_owned(), text: text.to_owned() };
    Config::load(&[layer], []).unwrap_or_else(|bad| panic!("{:?}", bad.problems))
}

/// An executor `run` that is this line of shell.
fn shell(line: &str) -> Config {
    let line = Json::of(&line);
    configured(&format!("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line}]\n"))
}

pub(crate) fn with_inputs(mut spec: TaskSpec, executor: &str, inputs: serde_json::Value) -> TaskSpec {
    spec.work =
        Some(Box::new(Work { executor: executor.to_owned(), inputs: Json::of(&inputs), shape: None }));
    spec
}

#[test]
fn a_worker_is_told_what_to_do_and_its_output_reaches_those_who_depend_on_it() {
    let place = Place::new();
    let (plan, _, notices) = place.run(shell("cat"), plan_of([job("a", &[], &[]), job("b", &["a"], &[])]));
    assert_eq!(plan.state().phase, Phase::Completed);
    let told = plan.task("b").unwrap().state.output.clone().unwrap().value();
    assert_eq!(
        (&told["task"], &told["attempt"], &told["description"]),
        (&"b".into(), &1.into(), &"do b".into())
    );
    assert_eq!(told["idempotency_key"], format!("{}/b/1", plan.id()));
    assert_eq!(told["outputs"]["a"]["task"], "a");
    assert!(
        matches!(notices.last(), Some(RunEvent::PlanPhaseChanged { phase: Phase::Completed, .. })),
        "{notices:?}"
    );
}

#[test]
fn exit_codes_output_and_log_mean_what_the_contract_says() {
    for (line, expected) in [
        ("exit 3", Err("it ended with exit code 3")),
        ("echo so >&2; exit 1", Err("it ended with exit code 1: so")),
        ("kill -9 $$", Err("it was ended by signal 9")),
        ("echo plain words", Ok((Some("plain words"), None))),
        ("echo '{\"a\": 1}'", Ok((None, Some("{\"a\":1}")))),
        ("true", Ok((None, None))),
        ("exec /no/such/program", Err("it ended with exit code 127")),
    ] {
        let place = Place::new();
        let (plan, _, _) = place.run(shell(line), plan_of([job("a", &[], &[])]));
        let state = &plan.task("a").unwrap().state;
        match expected {
            Ok((result, output)) => {
                assert_eq!(state.status, Status::Done, "{line}");
                let found = (state.result.as_deref(), state.output.as_ref().map(Json::as_str));
                assert_eq!(found, (result, output), "{line}");
            }
            Err(error) => {
                assert_eq!(state.status, Status::Failed, "{line}");
                assert!(state.error.as_deref().unwrap_or("").starts_with(error), "{line}: {:?}", state.error);
            }
        }
    }
}

#[test]
fn a_program_that_cannot_be_started_fails_its_task() {
    let place = Place::new();
    let config = configured("[executors.run]\nkind = \"process\"\ncommand = [\"/no/such/program\"]\n");
    let (plan, _, _) = place.run(config, plan_of([job("a", &[], &[])]));
    let error = plan.task("a").unwrap().state.error.clone().unwrap();
    assert!(error.starts_with("/no/such/program could not be started: "), "{error}");
}

#[test]
fn a_later_holder_of_a_lock_has_a_higher_fencing_number() {
    let place = Place::new();
    let config = shell("cat > $WAYPOST_TASK.json; echo $WAYPOST_FENCE");
    let tasks = [job("a", &[], &["k"]), job("b", &[], &["k"]), job("c", &["b"], &["k"])];
    let (plan, _, _) = place.run(config.clone(), plan_of(tasks));
    // Another plan of the same store.
    let (other, _, _) = place.run(config, plan_of([job("d", &[], &["k"])]));
    let fence = |plan: &Plan, task: &str| {
        let state = &plan.task(task).unwrap().state;
        let fence = state.output.as_ref().unwrap().value().as_u64().unwrap();
        let input = fs::read_to_string(place.root.join(format!("work/{task}.json"))).unwrap();
        let input: serde_json::Value = serde_json::from_str(&input).unwrap();
        assert_eq!(input["fence"], fence);
        (state.started_at.unwrap(), fence)
    };
    let mut fences = vec![fence(&plan, "a"), fence(&plan, "b"), fence(&plan, "c"), fence(&other, "d")];
    fences.sort_unstable();
    assert!(fences.windows(2).all(|pair| pair[0].1 < pair[1].1), "{fences:?}");
}

#[test]
fn exit_75_is_tried_again() {
    let place = Place::new();
    let mut config = shell("if [ \"$WAYPOST_ATTEMPT\" = 3 ]; then echo '\"third\"'; else exit 75; fi");
    config.retry.backoff_seconds = 0;
    let (plan, _, _) = place.run(config, plan_of([job("a", &[], &[])]));
    let state = &plan.task("a").unwrap().state;
    assert_eq!(
        (state.status, state.attempt, state.output.as_ref().map(Json::as_str)),
        (Status::Done, 3, Some("\"third\""))
    );
}

#[test]
fn workers_see_only_what_the_configuration_lets_through_and_secrets_are_never_kept() {
    let place = Place::new();
    let mut config = shell("env >&2; echo \"$TOKEN\"");
    let Some(Executor::Worker(Worker::Process(process))) = config.executors.get_mut("run") else { panic!() };
    let secret = waypost_config::Secret::Variable("SECRET_SOURCE".to_owned());
    Arc::make_mut(process).secrets.insert("TOKEN".to_owned(), secret);
    let (plan, _, _) = place.run(config, plan_of([job("a", &[], &[])]));
    let log = place.log(&plan, "a");
    let path = format!("PATH={}", waypost_testkit::program_path());
    assert!(log.contains(&path) && log.contains("TOKEN=***"), "{log}");
    assert!(!log.contains("private") && !log.contains("hunter2"), "{log}");
    assert_eq!(plan.task("a").unwrap().state.result.as_deref(), Some("***"));
}

#[test]
fn output_and_log_are_bounded() {
    let place = Place::new();
    let mut config =
        shell("head -c 200000 /dev/zero | tr '\\0' 'x' >&2; echo; head -c 5000 /dev/zero | tr '\\0' '1'");
    (config.output_bytes_max, config.log_bytes_max) = (4_000, 100_000);
    let (plan, _, _) = place.run(config, plan_of([job("a", &[], &[])]));
    let log = place.log(&plan, "a");
    assert!(log.len() < 101_000 && log.ends_with("size limit reached)\n"), "{} bytes", log.len());
    let error = plan.task("a").unwrap().state.error.clone();
    assert_eq!(error.as_deref(), Some("its output has more than 4000 bytes"));
}

#[test]
fn a_large_input_that_nobody_reads_does_not_block() {
    let place = Place::new();
    let big = "x".repeat(1_000_000);
    let task = with_inputs(job("a", &[], &[]), "run", serde_json::json!({ "big": big }));
    let (plan, _, _) = place.run(shell("sleep 0.1; echo 1"), plan_of([task]));
    assert_eq!(plan.task("a").unwrap().state.status, Status::Done);
    let task = with_inputs(job("a", &[], &[]), "run", serde_json::json!({ "big": big }));
    let (plan, _, _) = place.run(shell("wc -c"), plan_of([task]));
    let counted = plan.task("a").unwrap().state.output.clone().unwrap().value();
    assert!(counted.as_u64().unwrap() > 1_000_000, "{counted}");
}

#[test]
fn what_takes_too_long_is_ended_with_all_that_it_started() {
    let place = Place::new();
    let mut slow = job("slow", &[], &[]);
    slow.timeout_seconds = Some(1);
    let mut config = shell("trap '' TERM; (trap '' TERM; sleep 3600; touch late) & sleep 3600");
    config.stop_seconds = 0;
    let (plan, _, _) = place.run(config, plan_of([slow]));
    let error = plan.task("slow").unwrap().state.error.clone();
    assert_eq!(error.as_deref(), Some("it took longer than 1 s and was stopped"));
    assert!(!place.root.join("work/late").exists());
}

#[test]
fn what_a_worker_leaves_behind_ends_with_it() {
    let place = Place::new();
    // The pipes that it holds open are not waited for.
    let (plan, _, _) = place.run(shell("sleep 3600 & echo $!"), plan_of([job("a", &[], &[])]));
    let left = plan.task("a").unwrap().state.output.clone().unwrap();
    let stat = fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

/// The state of a process as a letter; `None` if there is no such process.
fn state(place: &Place, file: &str) -> Option<char> {
    let pid = fs::read_to_string(place.root.join("work").join(file)).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_that_is_stopped_is_ended_with_what_has_left_its_process_group() {
    let place = Place::new();
    // One is a child of the program, one was left by its parent, and one is the child of that in a third session.
    let line = "setsid sh -c 'echo $$ > child; exec sleep 3600' &
        (setsid sh -c 'setsid sleep 3600 & echo $! > grandchild; echo $$ > left; wait' &)
        while [ ! -s child ] || [ ! -s left ] || [ ! -s grandchild ]; do sleep 0.02; done
        echo waypost:progress ready >&2; sleep 3600";
    let id = place.create(plan_of([job("a", &[], &[])]));
    place.run_until_progress(shell(line), &id);
    for file in ["child", "left", "grandchild"] {
        assert_eq!(state(&place, file), None, "{file} lives, or is not reaped");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_program_leaves_in_another_session_on_purpose_is_reaped_when_it_ends() {
    let place = Place::new();
    let line = "setsid sh -c 'echo $$ > left; exec sleep 3600' & while [ ! -s left ]; do sleep 0.02; done";
    let (plan, _, _) = place.run(shell(line), plan_of([job("a", &[], &[])]));
    assert_eq!(plan.state().phase, Phase::Completed);
    assert!(matches!(state(&place, "left"), Some('S' | 'R' | 'D')), "{:?}", state(&place, "left"));
    let pid: i32 = fs::read_to_string(place.root.join("work/left")).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    // Another test may have a program that ends meanwhile, which reaps it.
    while !matches!(state(&place, "left"), None | Some('Z')) {
        std::thread::yield_now();
    }
    place.run(shell("true"), plan_of([job("a", &[], &[])]));
    assert_eq!(state(&place, "left"), None, "it is not reaped");
}

#[test]
fn dispatch_sends_the_workers_own_input_to_the_worker_that_is_named() {
    let place = Place::new();
    let config = configured(
        "[executors.dispatch]\nkind = \"dispatch\"\n[executors.dispatch.workers.echo]\ncommand = [\"cat\"]\n",
    );
    let inputs = serde_json::json!({ "subagent": "echo", "workerInput": { "file": "a.ts" } });
    let task = with_inputs(job("a", &[], &[]), "dispatch", inputs);
    assert_eq!(admit::problems(&config, &plan_of([task.clone()])), []);
    let (plan, _, _) = place.run(config.clone(), plan_of([task]));
    let told = plan.task("a").unwrap().state.output.clone().unwrap().value();
    assert_eq!(told["inputs"], serde_json::json!({ "file": "a.ts" }));
    let unknown = with_inputs(job("b", &[], &[]), "dispatch", serde_json::json!({ "subagent": "rm" }));
    let nameless = with_inputs(job("c", &[], &[]), "dispatch", serde_json::json!({}));
    let problems = admit::problems(&config, &plan_of([unknown, nameless]));
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["task b: no executor is called dispatch/rm", "task c: `work.inputs.subagent` is missing"]
    );
}

#[test]
fn a_folder_that_leads_out_of_the_workspace_runs_nothing() {
    let place = Place::new();
    std::os::unix::fs::symlink("/", place.root.join("work/out")).unwrap();
    let config = configured(
        "[executors.run]\nkind = \"process\"\ncommand = [\"touch\", \"ran\"]\ndirectory = \"out/tmp\"\n",
    );
    let (plan, _, _) = place.run(config, plan_of([job("a", &[], &[])]));
    let error = plan.task("a").unwrap().state.error.clone();
    assert_eq!(error.as_deref(), Some("the folder \"out/tmp\" leads out of the workspace"));
}

#[test]
fn a_check_decides_whether_done_is_believed() {
    let place = Place::new();
    let text = "[executors.run]\nkind = \"process\"\ncommand = [\"echo\", \"1\"]\n[executors.bad]\nkind = \"process\"\ncommand = [\"false\"]\n[executors.good]\nkind = \"process\"\ncommand = [\"true\"]\n";
    let checked = |name: &str, check: &str| {
        let mut spec = job(name, &[], &[]);
        spec.check = with_inputs(spec.clone(), check, serde_json::json!({})).work;
        spec
    };
    let (plan, _, _) = place.run(configured(text), plan_of([checked("a", "good"), checked("b", "bad")]));
    assert_eq!(plan.task("a").unwrap().state.status, Status::Done);
    assert_eq!(plan.task("a").unwrap().state.output.as_ref().map(Json::as_str), Some("1"));
    let error = plan.task("b").unwrap().state.error.clone();
    assert_eq!(error.as_deref(), Some("the check: it ended with exit code 1"));
}

#[test]
fn progress_is_told_and_work_is_stopped_on_request_and_can_go_on_later() {
    let place = Place::new();
    let config = Arc::new(shell(
        "if [ \"$WAYPOST_ATTEMPT\" = 2 ]; then exit 0; fi; echo 'waypost:progress half' >&2; sleep 30",
    ));
    let id = place.create(plan_of([job("a", &[], &[])]));
    let runner = || own_plan::runner(&place.plans, &config, place.around(), &id).unwrap();
    let mut first = runner();
    let mut notices = Notices { stop_at_progress: Some(first.controller()), ..Notices::default() };
    let summary = first.run(&mut notices).unwrap();
    assert_eq!(summary.asked_to_end, Some(Control::Stop));
    let task = |plan: &Plan| plan.task("a").unwrap().state.clone();
    assert_eq!(place.plans.with_plan(&id, task).unwrap().status, Status::Pending);
    runner().run(&mut Notices::default()).unwrap();
    let state = place.plans.with_plan(&id, task).unwrap();
    assert_eq!((state.status, state.attempt), (Status::Done, 2));
}

#[test]
fn progress_is_stored_while_the_work_runs_and_makes_no_version() {
    let place = Place::new();
    // Five hundred reports, then it waits until somebody has seen the last one.
    let script = "i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo \"waypost:progress $i of 500\" >&2; done; \
                  while [ ! -e seen ]; do sleep 0.02; done";
    let id = place.create(plan_of([job("a", &[], &[])]));
    let mut runner = own_plan::runner(&place.plans, &Arc::new(shell(script)), place.around(), &id).unwrap();
    let before = place.plans.latest().unwrap();
    std::thread::scope(|scope| {
        let run = scope.spawn(move || runner.run(&mut Notices::default()).unwrap());
        let mut watch = place.plans.watch().unwrap();
        let shown = |plan: &Plan| plan.task("a").unwrap().state.progress.clone();
        while place.plans.view(&id, |plan, _| shown(plan)).unwrap().as_deref() != Some("500 of 500") {
            assert!(!run.is_finished(), "it ends when its progress was seen");
            watch.wait(Duration::from_secs(1)).unwrap();
        }
        assert_eq!(place.plans.with_plan(&id, shown).unwrap(), None, "it is no part of the plan");
        std::fs::write(place.root.join("work/seen"), "").unwrap();
        run.join().unwrap();
    });
    let plan = place.plans.view(&id, |plan, _| plan.clone()).unwrap();
    assert_eq!(
        (plan.state().phase, plan.task("a").unwrap().state.progress.as_deref()),
        (Phase::Completed, None)
    );
    let entries = place.plans.history(&id, 0, 1_000).unwrap();
    let kinds: Vec<&str> =
        entries.iter().flat_map(|entry| &entry.events).map(waypost_core::Event::kind).collect();
    assert!(!kinds.contains(&"task_progressed") && plan.version() < 10, "{kinds:?}");
    // Before the run: created, activated, recorded as the person's own.
    assert_eq!(place.plans.latest().unwrap() - before, plan.version() - 3);
}

#[test]
fn ten_thousand_tasks_without_work_end_quickly() {
    let place = Place::new();
    let tasks = (0..10_000)
        .map(|number| with_inputs(job(&format!("n{number}"), &[], &[]), "noop", serde_json::json!({})));
    let (plan, _, _) = place.run(Config::default(), plan_of(tasks));
    assert_eq!(plan.counts().done, 10_000);
}

#[test]
fn whoever_shares_a_lock_never_overlaps_however_often_it_is_run() {
    for round in 0..30 {
        let place = Place::new();
        let edits = (0..4).map(|number| job(&format!("e{number}"), &[], &["x"]));
        let free = (0..3).map(|number| job(&format!("f{number}"), &[], &[]));
        let ends: Vec<String> = (0..4).map(|number| format!("e{number}")).collect();
        let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
        let (plan, _, _) =
            place.run(shell("sleep 0.005"), plan_of(edits.chain(free).chain([job("verify", &ends, &[])])));
        assert_eq!(plan.state().phase, Phase::Completed, "round {round}");
        let span = |name: &str| {
            let state = &plan.task(name).unwrap().state;
            (state.started_at.unwrap(), state.finished_at.unwrap())
        };
        let mut spans: Vec<_> = ends.iter().map(|name| span(name)).collect();
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "round {round}: {spans:?}");
        assert!(spans.iter().all(|span_of| span_of.1 <= span("verify").0), "round {round}");
    }
}

#[test]
fn no_version_says_of_a_short_task_that_it_started_before_its_program_did() {
    let place = Place::new();
    let mut config = configured("[executors.run]\nkind = \"process\"\ncommand = [\"date\", \"+%s%6N\"]\n");
    config.queues.insert("default".to_owned(), waypost_config::Queue { concurrency: 1 });
    let (plan, _, _) =
        place.run(config, plan_of((0..150).map(|number| job(&format!("t{number}"), &[], &[]))));
    assert_eq!(plan.counts().done, 150);
    for (task, _) in plan.tasks() {
        let own: i64 = task.state.output.as_ref().unwrap().as_str().parse().unwrap();
        let recorded = task.state.started_at.unwrap().as_micros();
        assert!(recorded <= own, "{} began at {own}, and {recorded} is recorded", task.spec.id);
    }
    // One slot: whatever a version says, no more than one runs, however many are queued.
    let mut replayed = Plan::blank(plan.id().clone());
    let mut queued_at = BTreeMap::new();
    for entry in place.plans.history(plan.id(), 0, 10_000).unwrap() {
        for event in &entry.events {
            match event {
                waypost_core::Event::TaskQueued { task, .. } => {
                    queued_at.insert(task.clone(), entry.at);
                }
                waypost_core::Event::TaskStarted { task, started_at, .. } => {
                    let started_at = started_at.unwrap();
                    assert!(queued_at[task] <= started_at && started_at <= entry.at, "{task}");
                }
                _ => {}
            }
        }
        replayed.advance(&entry.events, entry.at);
        let counts = replayed.counts();
        assert!(counts.running <= 1, "{counts:?}");
    }
}
