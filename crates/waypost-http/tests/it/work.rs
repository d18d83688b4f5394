//! Plans that a model writes, what ran over time, who works now, and what an agent changed.

use std::sync::{Arc, Mutex, mpsc};

use serde_json::{Value, json};
use waypost_core::PlanId;
use waypost_http::{ModelFailure, Models, PlanJob, PlanWish};

use crate::api::Desk;

/// A model whose answer the test decides.
struct Played {
    answers: Mutex<mpsc::Receiver<Result<PlanId, ModelFailure>>>,
    stopped: mpsc::Sender<()>,
}

impl Models for Played {
    fn planner(&self) -> Result<String, ModelFailure> {
        Ok("scripted".to_owned())
    }

    fn write_plan(&self, wish: &PlanWish, job: &PlanJob) -> Result<PlanId, ModelFailure> {
        let stopped = self.stopped.clone();
        job.on_stop(move || stopped.send(()).unwrap());
        job.say(&format!("asked for {}\u{1b}[31m", wish.goal));
        job.set_now("thinking");
        self.answers.lock().unwrap().recv().unwrap()
    }

    fn spent(&self, plan: Option<&PlanId>) -> Result<Value, ModelFailure> {
        Ok(json!({ "calls": 1, "of": plan }))
    }
}

type Answers = mpsc::Sender<Result<PlanId, ModelFailure>>;

fn desk() -> (Desk, Answers, mpsc::Receiver<()>) {
    let (answer, answers) = mpsc::channel();
    let (stop, stopped) = mpsc::channel();
    let played = Played { answers: Mutex::new(answers), stopped: stop };
    (Desk::with_models(Arc::new(played)), answer, stopped)
}

/// The job once it is in this state.
fn job_in(desk: &Desk, state: &str) -> Value {
    let end = std::time::Instant::now() + crate::api::BOUND;
    loop {
        let job = desk.get("/planner/jobs/1").ok();
        if job["state"] == state {
            return job;
        }
        assert!(std::time::Instant::now() < end, "{job} is not {state}");
        std::thread::yield_now();
    }
}

#[test]
fn a_person_has_a_model_write_a_plan_one_at_a_time() {
    let (desk, answer, _) = desk();
    assert_eq!(desk.get("/planner").ok()["model"], "scripted");
    let wish = json!({ "goal": " Refactor auth " });
    let job = desk.post("/planner/jobs", &wish);
    assert_eq!(job.status, 201, "{job:?}");
    assert_eq!(
        [&job.ok()["goal"], &job.ok()["state"], &job.ok()["by"]],
        ["Refactor auth", "running", "person:ada"]
    );
    assert!(desk.post("/planner/jobs", &wish).problem(409)["detail"].as_str().unwrap().contains("already"));
    answer.send(Ok(PlanId::new("q").unwrap())).unwrap();
    let job = job_in(&desk, "done");
    assert_eq!(job["plan"], "q");
    assert!(!job["progress"][0].as_str().unwrap().contains('\u{1b}'), "{job}");
    // The next one may begin, and fails in words.
    desk.post("/planner/jobs", &wish).ok();
    let failure = ModelFailure { message: "no plan".to_owned(), ..ModelFailure::default() };
    answer.send(Err(failure)).unwrap();
    let end = std::time::Instant::now() + crate::api::BOUND;
    while desk.get("/planner").ok()["jobs"][0]["failure"]["message"] != "no plan" {
        assert!(std::time::Instant::now() < end);
    }
}

#[test]
fn a_job_is_stopped_by_a_person() {
    let (desk, answer, stopped) = desk();
    desk.post("/planner/jobs", &json!({ "goal": "auth" })).ok();
    assert_eq!(desk.post("/planner/jobs/1/stop", &json!({})).ok()["state"], "stopping");
    stopped.recv_timeout(crate::api::BOUND).unwrap();
    answer.send(Err(ModelFailure::default())).unwrap();
    job_in(&desk, "stopped");
    desk.post("/planner/jobs/7/stop", &json!({})).problem(404);
}

#[test]
fn nobody_but_a_person_has_a_plan_written() {
    let (desk, _answer, _) = desk();
    for token in [&desk.agent, &desk.reader] {
        let refused = desk.by(token, "POST", "/planner/jobs", &[], &json!({ "goal": "auth" }));
        assert_eq!(refused.status, 403, "{refused:?}");
        assert_eq!(desk.by(token, "GET", "/planner/jobs/1", &[], &Value::Null).status, 403);
    }
    for goal in ["", "  ", &"x".repeat(16 * 1024 + 1)] {
        assert_eq!(desk.post("/planner/jobs", &json!({ "goal": goal })).status, 400);
    }
    let none = Desk::new();
    assert_eq!(none.get("/planner").ok()["model"], Value::Null);
    none.post("/planner/jobs", &json!({ "goal": "auth" })).problem(409);
}

#[test]
fn plans_with_the_same_title_are_runs_of_the_same_work() {
    let desk = Desk::new();
    let plan = |title: &str| json!({ "format": "waypost/1", "title": title, "tasks": [{ "id": "fetch" }, { "id": "build", "depends_on": ["fetch"] }] });
    for (id, title) in [("monday", "Nightly"), ("tuesday", "Nightly"), ("other", "Nightly packages")] {
        desk.post("/plans", &json!({ "id": id, "plan": plan(title) })).ok();
        desk.post(&format!("/plans/{id}/actions/start"), &json!({})).ok();
    }
    let act = |plan: &str, task: &str, action: &str, body: Value| {
        desk.post(&format!("/plans/{plan}/tasks/{task}/actions/{action}"), &body).ok();
    };
    act("monday", "fetch", "claim", json!({}));
    act("monday", "fetch", "fail", json!({ "error": "no mirror" }));
    desk.post("/plans/monday/actions/retry", &json!({})).ok();
    act("monday", "fetch", "claim", json!({}));
    act("monday", "fetch", "done", json!({}));
    act("tuesday", "fetch", "claim", json!({}));
    let found = desk.get("/plans/tuesday/runs").ok();
    let of = |name: &str| -> Vec<Value> {
        found["runs"].as_array().unwrap().iter().map(|run| run[name].clone()).collect()
    };
    assert_eq!(
        json!([of("plan"), of("attempts"), of("failed")]),
        json!([["monday", "tuesday"], [2, 1], [1, 0]])
    );
    assert_eq!(found["tasks"].as_array().unwrap().len(), 1, "{found}");
    let cells = &found["tasks"][0]["cells"];
    assert_eq!([&cells[0]["outcome"], &cells[1]["outcome"]], ["done", "running"]);
    assert_eq!(found["days"][0]["attempts"], 1);
    // One that did not run stands for itself.
    let own = desk.get("/plans/other/runs?limit=1").ok();
    assert_eq!(json!([own["runs"][0]["plan"], own["tasks"], own["days"]]), json!(["other", [], []]));
    assert_eq!(desk.get("/plans/tuesday/runs?limit=1").ok()["runs"][0]["plan"], "tuesday");
}

#[test]
fn the_list_of_agents_says_what_is_held_until_when() {
    let desk = Desk::new();
    desk.plan("q", &["a", "b"]);
    desk.post("/plans/q/actions/start", &json!({})).ok();
    let claim = desk.by(&desk.agent, "POST", "/plans/q/tasks/a/actions/claim", &[], &json!({}));
    claim.ok();
    let progress = json!({ "progress": "half of it" });
    desk.by(&desk.agent, "POST", "/plans/q/tasks/a/actions/progress", &[], &progress).ok();
    let agents = desk.get("/agents").ok();
    let own = &agents["agents"][0];
    assert_eq!([&own["name"], &own["kind"]], ["planner", "agent"]);
    let held = &own["running"][0];
    assert_eq!([&held["plan_title"], &held["label"], &held["progress"]], ["q", "a", "half of it"]);
    assert!(held["since"].is_string() && held["until"].is_string(), "{held}");
    assert_eq!(held["worktree"], false);
}

#[test]
fn changes_are_for_people_and_of_attempts_that_there_were() {
    let desk = Desk::new();
    desk.plan("q", &["a"]);
    desk.post("/plans/q/actions/start", &json!({})).ok();
    desk.get("/plans/q/tasks/a/changes").problem(404);
    desk.post("/plans/q/tasks/a/actions/claim", &json!({})).ok();
    let found = desk.get("/plans/q/tasks/a/changes").ok();
    assert_eq!([&found["place"], &found["branch"]], ["nowhere", "waypost/q/a.1"]);
    assert!(found["note"].is_string());
    desk.get("/plans/q/tasks/a/changes?attempt=2").problem(404);
    for token in [&desk.agent, &desk.reader] {
        assert_eq!(desk.by(token, "GET", "/plans/q/tasks/a/changes", &[], &Value::Null).status, 403);
    }
}
