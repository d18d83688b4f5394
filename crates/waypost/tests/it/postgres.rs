//! The program with a PostgreSQL that several folders share as several machines would: nothing in common but the URL.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use waypost_store::{Cursor, Durability, EventFilter, PlanStore, open};
use waypost_testkit::Proxy;
use waypost_testkit::postgres::{PostgresDatabase, PostgresServer};

use crate::run::{configure, text};
use crate::server::Server;
use crate::transcript::Workspace;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// A folder of its own, and the URL of the store that it shares.
struct Machine<'a> {
    workspace: Workspace,
    url: &'a str,
}

impl<'a> Machine<'a> {
    fn new(url: &'a str, config: &str) -> Self {
        let workspace = Workspace::new();
        configure(&workspace, config);
        Self { workspace, url }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.args(["--store", self.url]).args(words);
        command
    }

    fn waypost(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn start(&self, words: &[&str]) -> Running {
        let mut command = self.command(words);
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn submit(&self, id: &str, tasks: usize) {
        let task =
            |number: usize| serde_json::json!({ "id": format!("t{number}"), "work": { "executor": "run" } });
        let tasks: Vec<Value> = (0..tasks).map(task).collect();
        let plan = serde_json::json!({ "format": "waypost/1", "id": id, "title": id, "tasks": tasks });
        fs::write(self.workspace.work().join("plan.json"), plan.to_string()).unwrap();
        let submitted = self.waypost(&["submit", "plan.json"]);
        assert!(submitted.status.success(), "{:?}", text(&submitted));
    }

    fn shown(&self, id: &str) -> Value {
        let output = self.waypost(&["show", id, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{:?}", text(&output)))
    }
}

/// A process of the program that is ended with the test.
struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.0.id() as i32).unwrap(), signal).unwrap();
    }

    fn ends(&mut self) -> Option<i32> {
        let mut ended = None;
        until("the end of the process", || {
            ended = self.0.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} does not come about");
        std::thread::yield_now();
    }
}

/// What the programs noted of their own starts and ends, in the order of time.
fn notes(path: &Path) -> Vec<(u128, i32)> {
    let noted = fs::read_to_string(path).unwrap_or_default();
    let mut notes: Vec<(u128, i32)> = noted
        .lines()
        .map(|line| {
            let (what, at) = line.split_once(' ').unwrap();
            (at.parse().unwrap(), if what == "start" { 1 } else { -1 })
        })
        .collect();
    notes.sort();
    notes
}

fn starts(path: &Path) -> usize {
    notes(path).iter().filter(|(_, change)| *change == 1).count()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn workers_on_several_machines_keep_a_queues_bound_through_a_restart_of_the_server_and_drain() {
    let server = PostgresServer::start().unwrap();
    let database = server.database();
    let noted = Workspace::new();
    let times = noted.work().join("times");
    let note = |what: &str| format!("echo \"{what} $(date +%s%N)\" >> {}", times.display());
    let line = format!("{}; echo words of the task >&2; sleep 0.4; {}", note("start"), note("end"));
    let config = format!(
        "[queues.default]\nconcurrency = 2\n[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line:?}]\n"
    );
    let machines = [(); 3].map(|()| Machine::new(database.url(), &config));
    assert!(machines[0].waypost(&["list"]).status.success(), "it makes the tables");
    // Each does one task at a time, so that two at a time are the work of two machines.
    let start = |machine: &Machine<'_>| machine.start(&["worker", "--jobs", "1"]);
    let mut workers: Vec<Running> = machines.iter().map(start).collect();
    let registered = "SELECT count(*) FROM waypost_workers";
    until("that all are known", || database.sql(registered) == ["3"]);
    machines[0].submit("p", 20);
    until("that some tasks have run", || starts(&times) >= 6);
    server.control(&["-m", "immediate", "restart"]).unwrap();
    until("the end of the plan", || machines[1].shown("p")["phase"] == "completed");
    assert_eq!(machines[0].shown("p")["counts"]["done"], 20);
    let (mut now, mut most) = (0, 0);
    for (_, change) in notes(&times) {
        now += change;
        most = most.max(now);
    }
    assert_eq!((now, most), (0, 2), "two machines work at the same time, and never more");
    assert_eq!(starts(&times), 20, "every task ran once");
    // Somebody who has neither of the folders reads a log.
    let third = Machine::new(database.url(), &config);
    for task in ["t0", "t7", "t19"] {
        let log = || text(&third.waypost(&["log", "p", task])).0;
        until("the copy of a log", || log() == "words of the task\n");
    }
    let before = starts(&times);
    machines[0].submit("q", 20);
    until("that two more run", || starts(&times) >= before + 2);
    for worker in &workers {
        worker.signal(Signal::TERM);
    }
    for worker in &mut workers {
        assert_eq!(worker.ends(), Some(0));
    }
    let (counts, begun) = (third.shown("q")["counts"].clone(), starts(&times) - before);
    assert_eq!((&counts["running"], &counts["failed"]), (&0.into(), &0.into()), "{counts}");
    assert_eq!(counts["done"], begun, "what was begun was finished");
    assert!(begun < 20, "and nothing more was taken");
    assert_eq!(notes(&times).iter().map(|(_, change)| change).sum::<i32>(), 0);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_worker_behind_a_slow_and_lossy_line_gets_its_share() {
    let server = PostgresServer::start().unwrap();
    let database = server.database();
    let proxy = Proxy::to(server.port());
    let behind = database.url().replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
    let folder = Workspace::new();
    let noted = folder.work().join("workers");
    let line = format!("echo $WAYPOST_WORKER >> {}; sleep 0.2", noted.display());
    let config = format!("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line:?}]\n");
    let (near, far) = (Machine::new(database.url(), &config), Machine::new(&behind, &config));
    assert!(near.waypost(&["list"]).status.success(), "it makes the tables");
    let mut workers = vec![near.start(&["worker", "--jobs", "1"])];
    let registered = || database.sql("SELECT name FROM waypost_workers");
    until("that the near one is known", || registered().len() == 1);
    let name = registered();
    workers.push(far.start(&["worker", "--jobs", "1"]));
    until("that both are known", || registered().len() == 2);
    // The near one writes a version of the plan in about the time that the far one waits for one answer.
    proxy.lossy(Duration::from_millis(100));
    // More than the near one does while anybody waits here.
    near.submit("p", 1_000);
    let is_far = |worker: &str| worker != name[0];
    let has_share = || fs::read_to_string(&noted).is_ok_and(|noted| noted.lines().any(is_far));
    until("a share of the far one, some packets lost", || has_share() && proxy.lost() > 0);
    for worker in &workers {
        worker.signal(Signal::TERM);
    }
    for worker in &mut workers {
        assert_eq!(worker.ends(), Some(0));
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn one_process_of_all_posts_to_a_webhook_and_another_takes_over_when_it_is_killed() {
    let database = PostgresDatabase::new();
    let server = Server::start(|_, _, reply| reply.send(204, &[], ""));
    let config = format!(
        "[executors.run]\nkind = \"process\"\ncommand = [\"true\"]\n[reporters.hook]\nkind = \"webhook\"\nurl = \"http://{}/hook\"\nbackoff_seconds = 0\n",
        server.address
    );
    let machines = [Machine::new(database.url(), &config), Machine::new(database.url(), &config)];
    let ids = || -> Vec<String> {
        let plans = PlanStore::new(open(database.url(), Durability::default()).unwrap());
        let page = plans.events(Cursor::default(), &EventFilter::default(), 1_000).unwrap();
        page.events.iter().map(|event| format!("{}.{}.{}", event.plan, event.version, event.index)).collect()
    };
    let keys = || -> Vec<String> {
        server.requests().iter().map(|request| request.headers["idempotency-key"].clone()).collect()
    };
    let holders = "SELECT count(*) FROM waypost_held";
    let mut first = machines[0].start(&["worker"]);
    until("that the first is the one that sends", || {
        database.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'waypost_held'") == ["1"]
            && database.sql(holders) == ["1"]
    });
    let second = machines[1].start(&["worker"]);
    until("that both are there", || database.sql("SELECT count(*) FROM waypost_workers") == ["2"]);
    machines[0].submit("p", 6);
    until("the end of the plan", || machines[0].shown("p")["phase"] == "completed");
    until("that all is told", || keys().len() >= ids().len());
    assert_eq!(keys(), ids(), "each event once, in the order of the log");
    first.signal(Signal::KILL);
    assert_eq!(first.ends(), None);
    machines[1].submit("q", 3);
    until("that the second takes over", || {
        let keys = keys();
        ids().iter().all(|id| keys.contains(id))
    });
    until("the end of the second plan", || machines[1].shown("q")["phase"] == "completed");
    until("that all is told", || ids().iter().all(|id| keys().contains(id)));
    let mut told = keys();
    told.dedup();
    let mut sorted = told.clone();
    sorted.sort();
    sorted.dedup();
    // What was sent within the last second before the kill may be sent again, under the same id.
    assert_eq!(sorted.len(), ids().len());
    drop(second);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_doctor_tells_how_the_server_keeps_its_promises_and_who_is_not_heard_of() {
    let database = PostgresDatabase::new();
    let machine = Machine::new(database.url(), "[executors.run]\nkind = \"process\"\ncommand = [\"true\"]\n");
    machine.submit("p", 1);
    let mut worker = machine.start(&["worker"]);
    until("that the worker is there", || database.sql("SELECT count(*) FROM waypost_workers") == ["1"]);
    let output = machine.waypost(&["doctor", "--json"]);
    let told: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{:?}", text(&output)));
    let about = &told["about"];
    let version = &database.sql("SHOW server_version")[0];
    assert_eq!(about["server"], *version, "{told}");
    assert_eq!(about["schema"], database.sql("SELECT schema FROM waypost_control")[0], "{told}");
    assert_eq!((&about["synchronous_commit"], &about["fsync"]), (&"on".into(), &"on".into()), "{told}");
    let (used, most) = about["connections"].as_str().unwrap().split_once(" of ").unwrap();
    assert!(used.parse::<u32>().unwrap() >= 2 && most == "300", "{told}");
    assert!(about["notify"].as_str().unwrap().starts_with("received after"), "{told}");
    assert_eq!((&told["workers_unheard"], &told["clock_ahead_seconds"]), (&serde_json::json!([]), &0.into()));
    worker.signal(Signal::KILL);
    assert_eq!(worker.ends(), None);
    let (out, err) = text(&machine.waypost(&["doctor"]));
    assert!(err.contains(" is dead: last heartbeat at "), "{out}{err}");
    assert!(err.contains("notify: received after") && err.contains("is sound"), "{out}{err}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_that_asks_for_a_password_gets_it_from_the_url_the_variable_or_a_file_and_nobody_sees_it() {
    let server = PostgresServer::start().unwrap();
    server.ask_for_password("ada", "s3cret").unwrap();
    let database = server.database();
    let (start, end) = database.url().split_once("postgres@").unwrap();
    let with = |who: &str| format!("{start}{who}@{end}");
    let bare = with("ada");
    let machine = Machine::new(&bare, "");
    let files = machine.workspace.work();
    let port = server.port();
    fs::write(files.join("right"), format!("localhost:{port}:*:ada:s3cret\n")).unwrap();
    fs::write(files.join("wrong"), format!("localhost:{port}:*:ada:guess-1\n")).unwrap();
    let ask = |url: &str, variable: Option<(&str, &str)>| {
        let mut command = machine.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        command.args(["--store", url, "new", "A plan", "--task", "one"]).envs(variable);
        let output = command.output().unwrap();
        let (out, err) = text(&output);
        assert!(!format!("{out}{err}").contains("s3cret") && !err.contains("guess"), "{out}{err}");
        (output.status.code(), err)
    };
    let right = files.join("right").display().to_string();
    let let_in = [
        (with("ada:s3cret"), None),
        (bare.clone(), Some(("PGPASSWORD", "s3cret"))),
        (bare.clone(), Some(("PGPASSFILE", right.as_str()))),
        (format!("{bare}&passfile={right}"), None),
    ];
    for (url, variable) in let_in {
        let (code, err) = ask(&url, variable);
        assert_eq!(code, Some(0), "{err}");
    }
    let wrong = files.join("wrong").display().to_string();
    let refused = [
        (with("ada:guess-2"), None),
        (bare.clone(), None),
        (bare.clone(), Some(("PGPASSWORD", "guess-3"))),
        (bare.clone(), Some(("PGPASSFILE", wrong.as_str()))),
    ];
    let name = database.url().split(['/', '?']).nth(3).unwrap();
    for (url, variable) in refused {
        let (code, err) = ask(&url, variable);
        assert_eq!(code, Some(1), "{err}");
        let who = format!("PostgreSQL at localhost:{port} (database {name}, user ada)");
        assert!(err.contains(&who) && err.contains("password"), "{err}");
        assert!(err.contains("PGPASSWORD") && err.contains("PGPASSFILE"), "{err}");
    }
    assert_eq!(database.sql("SELECT count(*) FROM waypost_plans"), ["4"]);
    let shown = "SELECT count(*) FROM waypost_log WHERE events LIKE '%s3cret%'";
    assert_eq!(database.sql(shown), ["0"]);
}
