//! Work that several processes share: `submit`, `worker`, `watch`, `events --follow`, and queues that hold across them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::run::{configure, text};
use crate::transcript::Workspace;

/// How long a test waits for other processes before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

fn plan(id: &str, tasks: usize, executor: &str) -> String {
    let task = |number: usize| serde_json::json!({ "id": format!("t{number}"), "work": { "executor": executor, "inputs": {} } });
    let tasks: Vec<serde_json::Value> = (0..tasks).map(task).collect();
    serde_json::json!({ "format": "waypost/1", "id": id, "title": id, "tasks": tasks }).to_string()
}

fn put(workspace: &Workspace, name: &str, text: &str) {
    fs::write(workspace.work().join(name), text).unwrap();
}

/// A process of the program that is ended with the test.
struct Running(Child);

impl Running {
    fn start(workspace: &Workspace, words: &[&str]) -> Self {
        let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
        Self(command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.0.stdout.take().unwrap()).lines().map_while(Result::ok)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.0.id() as i32).unwrap(), signal).unwrap();
    }

    /// The exit code, which comes within a bounded time.
    fn ends(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "the process does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
        if let Some(stderr) = self.0.stderr.as_mut().filter(|_| std::thread::panicking()) {
            let mut said = String::new();
            let _lost = stderr.read_to_string(&mut said);
            let _lost = writeln!(std::io::stderr(), "the process said: {said}");
        }
    }
}

const QUICK: &str = "[executors.run]\nkind = \"process\"\ncommand = [\"true\"]\n";

#[test]
fn a_file_that_is_submitted_twice_is_one_plan_and_another_content_is_a_conflict() {
    let workspace = Workspace::new();
    configure(&workspace, QUICK);
    put(&workspace, "p.json", &plan("p", 2, "run"));
    let first = workspace.waypost(&["submit", "p.json"]);
    let (out, err) = text(&first);
    assert_eq!(first.status.code(), Some(0), "{err}");
    assert!(out.contains("submitted") && out.contains("ready next: t0, t1"), "{out}");
    assert!(err.contains("start one with `waypost worker --queue default`"), "{err}");
    let again = workspace.waypost(&["submit", "p.json", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again.status.code(), Some(0));
    assert_eq!((&answer["created"], &answer["phase"]), (&false.into(), &"active".into()), "{answer}");
    assert_eq!(answer["version"], 2, "nothing was written again");
    put(&workspace, "p.json", &plan("p", 3, "run"));
    let other = workspace.waypost(&["submit", "p.json"]);
    let (_, err) = text(&other);
    assert_eq!(other.status.code(), Some(1), "{err}");
    assert!(err.contains("+ t2") && err.contains("waypost update p --from-file p.json"), "{err}");
}

#[test]
fn an_agents_plan_waits_for_a_person_and_then_for_nobody() {
    let workspace = Workspace::new();
    configure(&workspace, QUICK);
    put(&workspace, "p.json", &plan("p", 1, "run"));
    let mut worker = Running::start(&workspace, &["worker"]);
    let mut lines = worker.lines();
    let submitted = workspace.waypost(&["--as", "agent:x", "submit", "p.json", "--yes"]);
    let (out, err) = text(&submitted);
    assert_eq!(submitted.status.code(), Some(0), "{err}");
    assert!(out.contains("waits for a person's approval") && err.contains("waypost approve p"), "{out}{err}");
    assert!(workspace.at_terminal(&["approve", "p"]).status.success());
    assert_eq!(lines.next().as_deref(), Some("start    p/t0"));
    assert!(lines.next().unwrap().starts_with("done     p/t0"));
    assert_eq!(lines.next().as_deref(), Some("plan     p is completed"));
    worker.signal(Signal::TERM);
    assert_eq!(lines.by_ref().last().as_deref(), Some("the worker ended: 1 task done, 0 failed"));
    assert_eq!(worker.ends(), Some(0));
}

#[test]
fn a_worker_runs_what_comes_and_whoever_watches_sees_it() {
    let workspace = Workspace::new();
    configure(&workspace, &format!("{QUICK}[queues.slow]\nconcurrency = 1\n"));
    put(&workspace, "first.json", &plan("first", 1, "run"));
    assert!(workspace.waypost(&["submit", "first.json"]).status.success());
    let mut worker = Running::start(&workspace, &["worker", "--queue", "default"]);
    let mut lines = worker.lines();
    assert_eq!(lines.next().as_deref(), Some("start    first/t0"));
    let mut events = Running::start(&workspace, &["events", "--follow", "--cursor", "0"]);
    let mut followed = events.lines();
    assert!(followed.next().unwrap().contains("first v1"));
    put(&workspace, "other.json", &plan("other", 1, "run"));
    assert!(workspace.waypost(&["submit", "other.json", "--queue", "slow"]).status.success());
    put(&workspace, "second.json", &plan("second", 30, "run"));
    let (_, err) = text(&workspace.waypost(&["submit", "second.json"]));
    assert!(!err.contains("no worker"), "{err}");
    let watched = workspace.waypost(&["watch", "second"]);
    let (out, err) = text(&watched);
    assert_eq!(watched.status.code(), Some(0), "{err}");
    assert!(out.ends_with("30 done\n"), "{out}");
    assert!(followed.any(|line| line.contains(" second v1 ")), "the log is followed as it is written");
    let (show, _) = text(&workspace.waypost(&["show", "other", "--json"]));
    let other: serde_json::Value = serde_json::from_str(&show).unwrap();
    assert_eq!(other["counts"]["ready"], 1, "a plan of another queue is left alone");
    worker.signal(Signal::INT);
    assert_eq!(worker.ends(), Some(0));
}

#[test]
fn a_failed_plan_is_watched_to_its_end_with_exit_code_1() {
    let workspace = Workspace::new();
    configure(&workspace, "[executors.run]\nkind = \"process\"\ncommand = [\"false\"]\n");
    put(&workspace, "p.json", &plan("p", 2, "run"));
    assert!(workspace.waypost(&["submit", "p.json"]).status.success());
    let mut watch = Running::start(&workspace, &["watch", "p", "--json"]);
    let (sender, lines) = std::sync::mpsc::channel();
    let printed = watch.lines();
    std::thread::spawn(move || printed.for_each(|line| drop(sender.send(line))));
    // Until it watches, it tells of nothing.
    let mut heard: Vec<String> = Vec::new();
    while heard.is_empty() {
        assert!(workspace.waypost(&["pause", "p"]).status.success());
        assert!(workspace.at_terminal(&["resume", "p"]).status.success());
        heard.extend(lines.try_iter());
    }
    assert_eq!(workspace.waypost(&["worker", "--until-idle"]).status.code(), Some(0));
    heard.extend(lines);
    let events: Vec<serde_json::Value> =
        heard.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(watch.ends(), Some(1));
    assert_eq!(events.last().unwrap()["phase"], "failed", "{events:?}");
    assert_eq!(events.iter().filter(|event| event["status"] == "failed").count(), 2, "{events:?}");
}

#[test]
fn a_worker_takes_only_what_it_is_told_to_and_leaves_what_it_does_not_know() {
    let workspace = Workspace::new();
    let all = format!("{QUICK}[executors.odd]\nkind = \"process\"\ncommand = [\"true\"]\n");
    configure(&workspace, &all);
    let mut value: serde_json::Value = serde_json::from_str(&plan("p", 2, "run")).unwrap();
    value["tasks"][1]["work"]["executor"] = "odd".into();
    put(&workspace, "p.json", &value.to_string());
    assert!(workspace.waypost(&["submit", "p.json"]).status.success());
    let counts = || {
        let (show, _) = text(&workspace.waypost(&["show", "p", "--json"]));
        let shown: serde_json::Value = serde_json::from_str(&show).unwrap();
        (shown["counts"]["done"].as_u64().unwrap(), shown["counts"]["ready"].as_u64().unwrap())
    };
    assert!(workspace.waypost(&["worker", "--until-idle", "--executor", "noop"]).status.success());
    assert_eq!(counts(), (0, 2));
    assert!(workspace.waypost(&["worker", "--until-idle", "--executor", "odd"]).status.success());
    assert_eq!(counts(), (1, 1));
    configure(&workspace, "[executors.odd]\nkind = \"process\"\ncommand = [\"true\"]\n");
    assert!(workspace.waypost(&["worker", "--until-idle"]).status.success());
    assert_eq!(counts(), (1, 1), "somebody else may know the executor");
    // A worker that does not know all executors of a plan would run something else than what the person started.
    configure(&workspace, &all);
    assert!(workspace.waypost(&["worker", "--until-idle"]).status.success());
    assert_eq!(counts(), (2, 0));
    let wrong = workspace.waypost(&["worker", "--queue", "none"]);
    assert_eq!(wrong.status.code(), Some(4));
    assert!(text(&wrong).1.contains("no queue is called none"), "{wrong:?}");
}

/// What the programs of the tasks noted, in the order in which they did: 1 for a start, -1 for an end.
fn noted(workspace: &Workspace) -> Vec<i32> {
    let lines = fs::read_to_string(workspace.work().join("noted")).unwrap();
    lines.lines().map(|line| if line == "start" { 1 } else { -1 }).collect()
}

#[test]
fn workers_share_a_plan_and_a_queues_bound_holds_for_all_of_them() {
    let workspace = Workspace::new();
    let line = "echo start >> noted; sleep 0.03; echo end >> noted";
    configure(
        &workspace,
        &format!(
            "[queues.default]\nconcurrency = 2\n[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line:?}]\n"
        ),
    );
    put(&workspace, "p.json", &plan("p", 40, "run"));
    put(&workspace, "q.json", &plan("q", 20, "run"));
    assert!(workspace.waypost(&["submit", "p.json"]).status.success());
    let words = ["worker", "--until-idle", "--json"];
    let mut workers: Vec<Running> = (0..3).map(|_| Running::start(&workspace, &words)).collect();
    let mut run = Running::start(&workspace, &["run", "q.json"]);
    let outputs: Vec<Vec<String>> = workers.iter_mut().map(|worker| worker.lines().collect()).collect();
    for worker in &mut workers {
        assert_eq!(worker.ends(), Some(0));
    }
    let told: Vec<String> = run.lines().collect();
    assert_eq!(run.ends(), Some(0), "{told:?}");
    let mut most = 0;
    let mut now = 0;
    for change in noted(&workspace) {
        now += change;
        most = most.max(now);
    }
    assert_eq!(most, 2, "two run at the same time, and never more");
    assert_eq!(noted(&workspace).len(), 2 * 60, "every task ran once");
    let at_work = outputs.iter().filter(|lines| lines.iter().any(|line| line.contains("task_started")));
    assert!(at_work.count() >= 2, "they share the work: {outputs:?}");
}

#[test]
fn a_run_is_the_worker_of_its_plan() {
    let workspace = Workspace::new();
    let line = "while [ ! -e go ]; do sleep 0.02; done";
    let executor = format!("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line:?}]\n");
    configure(&workspace, &format!("[queues.default]\nconcurrency = 1\n{executor}"));
    put(&workspace, "p.json", &plan("p", 9, "run"));
    let mut run = Running::start(&workspace, &["run", "p.json"]);
    let is_running = || {
        let shown = workspace.waypost(&["show", "p", "--json"]);
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        shown["counts"]["running"] == 1
    };
    let began = Instant::now();
    while !is_running() {
        assert!(began.elapsed() < PATIENCE, "nothing starts");
    }
    let (why, _) = text(&workspace.waypost(&["why", "p", "t8"]));
    assert!(why.starts_with("t8 is ") && !why.contains("no worker"), "{why}");
    put(&workspace, "go", "");
    assert_eq!(run.ends(), Some(0));
}

#[test]
fn a_task_that_waits_for_another_plan_starts_when_another_process_has_done_that() {
    let workspace = Workspace::new();
    configure(&workspace, QUICK);
    let mut app: serde_json::Value = serde_json::from_str(&plan("app", 1, "run")).unwrap();
    app["tasks"][0]["depends_on"] = serde_json::json!([{ "plan": "lib", "task": "t0" }]);
    put(&workspace, "app.json", &app.to_string());
    put(&workspace, "lib.json", &plan("lib", 1, "run"));
    let submitted = workspace.waypost(&["submit", "app.json"]);
    assert!(submitted.status.success(), "{submitted:?}");
    let mut worker = Running::start(&workspace, &["worker"]);
    let mut lines = worker.lines();
    assert_eq!(workspace.waypost(&["run", "lib.json"]).status.code(), Some(0));
    let started = lines.find(|line| line.starts_with("start    app/"));
    assert_eq!(started.as_deref(), Some("start    app/t0"));
}

/// The workers as the program lists them.
fn listed(workspace: &Workspace) -> Vec<serde_json::Value> {
    let (out, err) = text(&workspace.waypost(&["workers", "--json"]));
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    answer["workers"].as_array().unwrap().clone()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} does not come about");
        std::thread::yield_now();
    }
}

/// Tasks that note their attempt and wait until a file is there.
const PATIENT: &str = "[executors.run]\nkind = \"process\"\nshell = true\n\
    command = [\"echo $WAYPOST_TASK.$WAYPOST_ATTEMPT >> noted; while [ ! -e go ]; do sleep 0.02; done\"]\n";

#[test]
fn a_worker_is_listed_with_what_it_runs_and_drained_from_anywhere() {
    let workspace = Workspace::new();
    configure(&workspace, PATIENT);
    put(&workspace, "p.json", &plan("p", 2, "run"));
    assert!(workspace.waypost(&["submit", "p.json"]).status.success());
    let (why, _) = text(&workspace.waypost(&["why", "p", "t0"]));
    assert!(why.contains("no worker of queue default is alive"), "{why}");
    let mut worker = Running::start(&workspace, &["worker", "-j", "1"]);
    let mut lines = worker.lines();
    until("its first task", || listed(&workspace).first().is_some_and(|one| one["running"][0].is_object()));
    let one = listed(&workspace).remove(0);
    assert_eq!(
        (&one["state"], &one["capacity"], &one["kind"]),
        (&"alive".into(), &1.into(), &"worker".into())
    );
    assert_eq!(
        (&one["running"][0]["plan"], &one["running"][0]["attempt"]),
        (&"p".into(), &1.into()),
        "{one}"
    );
    let (why, _) = text(&workspace.waypost(&["why", "p", "t1"]));
    assert!(!why.contains("no worker"), "{why}");
    let name = one["name"].as_str().unwrap();
    let refused = workspace.waypost(&["--as", "agent:x", "workers", "drain", name]);
    assert!(text(&refused).1.contains("only a person can drain a worker"), "{refused:?}");
    assert_eq!(workspace.waypost(&["workers", "drain", "nobody"]).status.code(), Some(5));
    let drained = workspace.waypost(&["workers", "drain", name]);
    assert!(text(&drained).0.contains("is draining"), "{drained:?}");
    assert_eq!(listed(&workspace)[0]["state"], "draining");
    assert!(lines.any(|line| line.contains("this worker was told to drain")), "it hears of it");
    put(&workspace, "go", "");
    assert_eq!(worker.ends(), Some(0));
    assert_eq!(fs::read_to_string(workspace.work().join("noted")).unwrap().lines().count(), 1);
    assert_eq!(listed(&workspace).len(), 0, "it has said farewell");
}

#[test]
fn a_worker_on_a_store_that_a_newer_build_migrated_says_so_finishes_and_exits() {
    let workspace = Workspace::new();
    configure(&workspace, &format!("{PATIENT}[lease]\nseconds = 9\nheartbeat_seconds = 1\n"));
    put(&workspace, "p.json", &plan("p", 2, "run"));
    let waypost = |words: &[&str]| workspace.waypost(&[&["--store", "file:plans"], words].concat());
    assert!(waypost(&["submit", "p.json"]).status.success());
    let mut worker = Running::start(&workspace, &["--store", "file:plans", "worker", "-j", "1"]);
    let mut lines = worker.lines();
    assert_eq!(lines.next().as_deref(), Some("start    p/t0"));
    until("its program", || workspace.work().join("noted").exists());
    until("the drain", || {
        // Once more if the worker has just written the file.
        let store = fs::read_to_string(workspace.work().join("plans/store.json")).unwrap();
        put(&workspace, "newer.json", &store.replace("waypost-file-store/2", "waypost-file-store/3"));
        fs::rename(workspace.work().join("newer.json"), workspace.work().join("plans/store.json")).unwrap();
        let (listed, _) = text(&waypost(&["workers", "--json"]));
        listed.contains("\"state\":\"draining\"")
    });
    let told = "a newer Waypost has migrated the store to schema 3: running tasks finish, and no task starts";
    assert!(lines.any(|line| line.contains(told)));
    put(&workspace, "go", "");
    assert_eq!(worker.ends(), Some(6));
    assert_eq!(fs::read_to_string(workspace.work().join("noted")).unwrap(), "t0.1\n");
    let (show, _) = text(&waypost(&["show", "p", "--json"]));
    let shown: serde_json::Value = serde_json::from_str(&show).unwrap();
    assert_eq!((&shown["counts"]["done"], &shown["counts"]["ready"]), (&1.into(), &1.into()));
    let refused = waypost(&["worker"]);
    assert_eq!(refused.status.code(), Some(6));
    assert!(text(&refused).1.contains("has schema 3, and this build knows schemas up to 2"), "{refused:?}");
}

#[test]
fn a_second_signal_gives_the_work_back_at_once() {
    let workspace = Workspace::new();
    configure(&workspace, PATIENT);
    put(&workspace, "p.json", &plan("p", 1, "run"));
    assert!(workspace.waypost(&["submit", "p.json"]).status.success());
    let mut worker = Running::start(&workspace, &["worker"]);
    let mut lines = worker.lines();
    assert_eq!(lines.next().as_deref(), Some("start    p/t0"));
    worker.signal(Signal::TERM);
    assert!(lines.next().unwrap().starts_with("ending   no further tasks start"));
    worker.signal(Signal::TERM);
    assert!(lines.any(|line| line.starts_with("back     t0 is released")));
    assert_eq!(worker.ends(), Some(130));
    let (show, _) = text(&workspace.waypost(&["show", "p", "--json"]));
    let shown: serde_json::Value = serde_json::from_str(&show).unwrap();
    assert_eq!((&shown["counts"]["ready"], &shown["counts"]["running"]), (&1.into(), &0.into()));
}

#[test]
fn a_worker_that_slept_longer_than_its_lease_drops_what_it_lost_and_goes_on() {
    let workspace = Workspace::new();
    configure(&workspace, &format!("{PATIENT}[lease]\nseconds = 2\nheartbeat_seconds = 1\n"));
    put(&workspace, "p.json", &plan("p", 1, "run"));
    assert!(workspace.waypost(&["submit", "p.json"]).status.success());
    let mut sleeper = Running::start(&workspace, &["worker"]);
    let mut told = sleeper.lines();
    assert_eq!(told.next().as_deref(), Some("start    p/t0"));
    let noted = || fs::read_to_string(workspace.work().join("noted")).unwrap_or_default();
    until("its program", || noted().contains("t0.1"));
    sleeper.signal(Signal::STOP);
    let mut other = Running::start(&workspace, &["worker"]);
    until("the next attempt", || noted().contains("t0.2"));
    let dead = listed(&workspace).into_iter().filter(|one| one["state"] == "dead").count();
    assert_eq!(dead, 1, "its time is over");
    sleeper.signal(Signal::CONT);
    let words = told.next().unwrap();
    assert!(words.starts_with("note     the lease of p/t0 (attempt 1) is over"), "{words}");
    put(&workspace, "go", "");
    until("the end of the plan", || {
        let (show, _) = text(&workspace.waypost(&["show", "p", "--json"]));
        show.contains("\"phase\":\"completed\"")
    });
    put(&workspace, "q.json", &plan("q", 1, "run"));
    other.signal(Signal::TERM);
    assert_eq!(other.ends(), Some(0));
    assert!(workspace.waypost(&["submit", "q.json"]).status.success());
    assert!(told.any(|line| line.starts_with("done     q/t0")), "it goes on as a worker");
    sleeper.signal(Signal::TERM);
    assert_eq!(sleeper.ends(), Some(0));
    assert_eq!(noted().lines().collect::<Vec<_>>(), ["t0.1", "t0.2", "t0.1"]);
}
