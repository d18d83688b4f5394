//! Runs that are killed while a service works for them: whatever step the kill comes at, the service never has two jobs
//! for one lock, and none that nobody wants.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use waypost_core::Status;

use crate::examples::stored;
use crate::run::{configure, text};
use crate::server::{Reply, Request, Server};
use crate::slurm::wait_for;
use crate::transcript::Workspace;

/// Polls of a job before it is done.
const POLLS: usize = 3;

/// When the service kills the run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// The request arrives, and the service does not take it.
    BeforeTheJob,
    /// The job has begun, and the answer is lost.
    BeforeTheAnswer,
    /// At the first poll.
    AtFirstPoll,
    /// When the job has reported progress.
    AfterProgress,
    /// The job is done, and the answer is lost.
    BeforeTheResult,
}

const STEPS: [Step; 5] = [
    Step::BeforeTheJob,
    Step::BeforeTheAnswer,
    Step::AtFirstPoll,
    Step::AfterProgress,
    Step::BeforeTheResult,
];

#[derive(Default)]
struct State {
    /// The run to kill, and when.
    victim: Option<(Pid, Step)>,
    /// Jobs by key: the number, the polls so far, and whether the job runs.
    jobs: BTreeMap<String, (usize, usize, bool)>,
    at_once: usize,
    /// Whether jobs stay as they are.
    endless: bool,
}

impl State {
    fn kill_at(&mut self, step: Step) -> bool {
        let Some((victim, _)) = self.victim.filter(|(_, at)| *at == step) else { return false };
        self.victim = None;
        kill_process(victim, Signal::KILL).unwrap();
        true
    }

    fn look(&mut self) {
        self.at_once = self.at_once.max(self.jobs.values().filter(|(_, _, runs)| *runs).count());
    }
}

fn serve(state: &Mutex<State>, request: &Request, reply: Reply<'_>) {
    let mut state = state.lock().unwrap();
    let key = request.headers["idempotency-key"].clone();
    if request.method == "POST" {
        if state.kill_at(Step::BeforeTheJob) {
            return;
        }
        let number = state.jobs.len() + 1;
        let job = *state.jobs.entry(key).or_insert((number, 0, true));
        state.look();
        if !state.kill_at(Step::BeforeTheAnswer) {
            reply.send(202, &[("location", &format!("/jobs/{}", job.0)), ("retry-after", "0")], "");
        }
        return;
    }
    let number: usize = request.path.strip_prefix("/jobs/").unwrap().parse().unwrap();
    let Some(polls) = state.jobs.values_mut().find(|job| job.0 == number) else {
        return reply.send(404, &[], "");
    };
    if request.method == "DELETE" {
        polls.2 = false;
        return reply.send(204, &[], "");
    }
    polls.1 += 1;
    let count = polls.1;
    if count >= POLLS && !state.endless {
        state.jobs.values_mut().filter(|job| job.0 == number).for_each(|job| job.2 = false);
        if !state.kill_at(Step::BeforeTheResult) {
            reply.json(200, &json!({ "job": number }));
        }
        return;
    }
    if (count == 1 && state.kill_at(Step::AtFirstPoll)) || (count == 2 && state.kill_at(Step::AfterProgress))
    {
        return;
    }
    let wait = if state.endless { "60" } else { "0" };
    reply.send(202, &[("retry-after", wait)], "{\"progress\": \"half\"}");
}

struct Place {
    workspace: Workspace,
    server: Server,
    state: Arc<Mutex<State>>,
}

impl Place {
    fn new(keys: &str) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let served = Arc::clone(&state);
        let server = Server::start(move |_, request, reply| serve(&served, request, reply));
        let workspace = Workspace::new();
        let address = &server.address;
        configure(
            &workspace,
            &format!(
                "[retry]\nbackoff_seconds = 0\n[executors.service]\nkind = \"http\"\nurl = \"http://{address}/jobs\"\n{keys}\n[executors.nothing]\nkind = \"noop\"\n"
            ),
        );
        Self { workspace, server, state }
    }

    fn put(&self, name: &str, tasks: Value) {
        let plan = json!({ "format": "waypost/1", "id": name, "title": name, "tasks": tasks });
        fs::write(self.workspace.work().join(format!("{name}.json")), plan.to_string()).unwrap();
    }

    fn start(&self) -> Child {
        let mut run = self.workspace.command(env!("CARGO_BIN_EXE_waypost"));
        run.args(["run", "p.json"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Starts a run that the service kills at this step, and waits until it is dead.
    fn run_until(&self, step: Step) {
        // The service must know its victim before the first request can come.
        let mut state = self.state.lock().unwrap();
        let mut run = self.start();
        state.victim = Some((Pid::from_raw(run.id() as i32).unwrap(), step));
        drop(state);
        assert_eq!(run.wait().unwrap().code(), None, "{step:?}");
    }

    fn requests(&self, line: &str) -> Vec<String> {
        let requests = self.server.requests();
        let found = requests.iter().filter(|request| request.line() == line);
        found.map(|request| request.headers["idempotency-key"].clone()).collect()
    }

    fn notes(&self) -> Vec<String> {
        let folders =
            fs::read_dir(self.workspace.root.join("home").join(".local/state/waypost/remote")).unwrap();
        let runs = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
        let names = runs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".remote")).collect()
    }
}

/// A task of the service that holds the lock.
fn locked(id: &str, priority: i32, depends_on: &[&str]) -> Value {
    json!({
        "id": id, "priority": priority, "depends_on": depends_on, "locks": ["k"],
        "work": { "executor": "service", "inputs": {} },
    })
}

#[test]
fn a_job_that_outlives_its_run_is_followed_by_the_next_one_and_keeps_its_lock() {
    for step in STEPS {
        let place = Place::new("");
        // `urgent` is ready as soon as the first task has the lock, and would take it if it were free for a moment.
        let first = json!({ "id": "begin", "work": { "executor": "nothing" } });
        place.put("p", json!([first, locked("a", 0, &[]), locked("urgent", 9, &["begin"])]));
        place.run_until(step);
        let output = place.workspace.waypost(&["run", "p.json"]);
        assert_eq!(output.status.code(), Some(0), "{step:?}: {:?}", text(&output));
        let plan = stored(&place.workspace, "p");
        let of = |task: &str| {
            let state = &plan.task(task).unwrap().state;
            (state.status, state.attempt, state.output.as_ref().unwrap().value()["job"].clone())
        };
        assert_eq!(of("a"), (Status::Done, 2, json!(1)), "{step:?}: the result is that of the first job");
        assert_eq!(of("urgent"), (Status::Done, 1, json!(2)), "{step:?}");
        let state = place.state.lock().unwrap();
        assert_eq!((state.jobs.len(), state.at_once), (2, 1), "{step:?}: {:?}", place.server.lines());
        let posts = place.requests("POST /jobs");
        assert!(posts[..posts.len() - 1].iter().all(|key| key == "p/a/1"), "{step:?}: {posts:?}");
        assert!(place.requests("DELETE /jobs/1").is_empty(), "{step:?}");
        // What is known is asked for, and nothing is sent again.
        let sent_again = matches!(step, Step::BeforeTheJob | Step::BeforeTheAnswer);
        assert_eq!(posts.len(), if sent_again { 3 } else { 2 }, "{step:?}: {posts:?}");
        assert_eq!(place.notes(), [""; 0], "{step:?}: nothing is noted of what has ended");
    }
}

#[test]
fn a_job_whose_task_was_cancelled_while_no_run_was_alive_is_cancelled_by_the_next_one() {
    for step in [Step::BeforeTheAnswer, Step::AtFirstPoll, Step::AfterProgress] {
        let place = Place::new("idempotent = true");
        place.put("p", json!([locked("a", 0, &[])]));
        place.run_until(step);
        assert!(place.workspace.waypost(&["cancel", "p"]).status.success());
        // A run of another plan is the next one.
        place.put("q", json!([{ "id": "b", "work": { "executor": "nothing" } }]));
        let output = place.workspace.waypost(&["run", "q.json"]);
        assert_eq!(output.status.code(), Some(0), "{step:?}: {:?}", text(&output));
        assert_eq!(place.requests("DELETE /jobs/1"), ["p/a/1"], "{step:?}: {:?}", place.server.lines());
        let state = place.state.lock().unwrap();
        assert!(!state.jobs["p/a/1"].2, "{step:?}");
        assert_eq!(state.jobs.len(), 1, "{step:?}");
        assert_eq!(place.notes(), [""; 0], "{step:?}");
    }
}

#[test]
fn a_run_of_the_plan_that_was_cancelled_ends_its_job_although_nothing_can_start() {
    let place = Place::new("idempotent = true");
    place.put("p", json!([locked("a", 0, &[])]));
    place.run_until(Step::AtFirstPoll);
    assert!(place.workspace.waypost(&["cancel", "p"]).status.success());
    let output = place.workspace.waypost(&["run", "p"]);
    assert_eq!(output.status.code(), Some(1), "{:?}", text(&output));
    assert_eq!(place.requests("DELETE /jobs/1"), ["p/a/1"], "{:?}", place.server.lines());
    assert_eq!(place.notes(), [""; 0]);
}

#[test]
fn a_job_that_cannot_be_followed_is_ended_before_its_lock_is_free() {
    // The author allows one attempt, or wants a pause before the next one.
    for (attempts, backoff_seconds) in [(1, 0), (9, 1)] {
        let place = Place::new("");
        place.state.lock().unwrap().endless = true;
        let task = |id: &str, attempts: u32| {
            let retry = json!({ "attempts": attempts, "backoff_seconds": backoff_seconds });
            json!({ "id": id, "locks": ["k"], "retry": retry, "work": { "executor": "service", "inputs": {} } })
        };
        place.put("p", json!([task("a", attempts), task("b", 1)]));
        place.run_until(Step::AtFirstPoll);
        let mut run = place.start();
        let is_second = || (place.requests("POST /jobs").len() == 2).then_some(());
        wait_for("the second job", is_second);
        assert_eq!(place.requests("DELETE /jobs/1"), ["p/a/1"]);
        assert_eq!(place.state.lock().unwrap().at_once, 1, "{:?}", place.server.lines());
        run.kill().unwrap();
        run.wait().unwrap();
    }
}
