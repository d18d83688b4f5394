//! Handing work to machines: submitting, approval, watching, stopping.

use serde_json::{Value, json};
use waypost_core::{Actor, Command, Outcome, Phase, PlanId, TaskId};
use waypost_mcp::Toolset;
use waypost_store::{NewPlan, Query, WriteRequest};

use crate::direct_writes;
use crate::session::{Session, World};

fn orchestrator(world: &World) -> Session {
    world.session(Toolset::Orchestrator, "boss")
}

fn task(id: &str, depends_on: &[&str]) -> Value {
    json!({ "id": id, "description": format!("do {id}"), "depends_on": depends_on, "work": { "executor": "noop" } })
}

/// A plan of three tasks in a row, as a text.
fn night() -> String {
    let tasks = [task("a", &[]), task("b", &["a"]), task("c", &["b"])];
    json!({ "format": "waypost/1", "id": "night", "title": "Night run", "tasks": tasks }).to_string()
}

/// What a worker writes.
fn worker(world: &World, command: Command) {
    let (plan, by) = (PlanId::new("night").unwrap(), Actor::worker("w"));
    let commands = vec![command];
    let request = WriteRequest { plan, by, commands, known_version: None, lease_seconds: None };
    direct_writes::write(&world.plans, request);
}

fn start(id: &str) -> Command {
    Command::StartTask { task: TaskId::new(id).unwrap(), worker: "w".to_owned() }
}

fn finish(id: &str, outcome: Outcome) -> Command {
    Command::FinishTask { task: TaskId::new(id).unwrap(), attempt: Some(1), outcome, retry: None }
}

fn done() -> Outcome {
    Outcome::Done { result: None, output: None, evidence: None }
}

#[test]
fn what_an_agent_submits_waits_for_a_person_and_the_answer_says_how() {
    let world = World::new();
    let session = orchestrator(&world);
    let told = session.call("run_submit", json!({ "text": night() })).value;
    assert_eq!((&told["id"], &told["phase"]), (&json!("night"), &json!("awaiting_approval")));
    assert_eq!((&told["created"], &told["workers"]), (&json!(true), &json!(0)));
    assert!(told["next"].as_str().unwrap().contains("`waypost approve night`"), "{told}");
    // Asking again makes nothing twice and opens nothing.
    let again = session.call("run_submit", json!({ "text": night() })).value;
    assert_eq!((&again["created"], &again["version"]), (&json!(false), &told["version"]));
    assert_eq!(again["phase"], "awaiting_approval");
    let why = session.call("run_why", json!({ "plan": "night", "task": "b" })).value;
    assert_eq!(why["standing"], "blocked");
    assert_eq!(why["waits_for"][0]["kind"], "approval");
    assert_eq!(why["waits_for"][1]["message"], "a (ready)");
    world.approve("night");
    let status = session.call("run_status", json!({ "plan": "ni" })).value;
    assert_eq!(
        (&status["phase"], &status["counts"]),
        (&json!("active"), &json!({ "total": 3, "ready": 1, "blocked": 2 }))
    );
    assert!(status["next"].as_str().unwrap().contains("no worker of queue default"), "{status}");
}

#[test]
fn the_same_id_with_other_tasks_is_refused_with_what_differs() {
    let world = World::new();
    let session = orchestrator(&world);
    std::fs::write(world.folder().join("night.json"), night()).unwrap();
    session.call("run_submit", json!({ "file": "night.json" }));
    let said = session.refused("run_submit", json!({ "text": night().replace("do c", "do more") }));
    assert!(said.contains("plan night is in the store already") && said.contains("1 task changed"), "{said}");
    let other = session.call("run_submit", json!({ "file": "night.json", "id": "second" })).value;
    assert_eq!((&other["id"], &other["created"]), (&json!("second"), &json!(true)));
}

#[test]
fn a_submission_names_one_plan_that_the_configuration_knows() {
    let world = World::new();
    let session = orchestrator(&world);
    for arguments in [json!({}), json!({ "text": night(), "plan": "x" })] {
        assert!(session.refused("run_submit", arguments).contains("exactly one of them"));
    }
    let unknown = night().replace("noop", "rocket");
    let said = session.refused("run_submit", json!({ "text": unknown }));
    assert!(said.contains("rocket") && said.contains("known executors: human, noop"), "{said}");
    let said = session.refused("run_submit", json!({ "text": night(), "queue": "fast" }));
    assert!(said.contains("fast"), "{said}");
    let ring = json!({ "format": "waypost/1", "tasks": [task("a", &["b"]), task("b", &["a"])] }).to_string();
    assert!(session.refused("run_submit", json!({ "text": ring })).contains("a → b → a"));
    assert!(session.refused("run_submit", json!({ "text": "hello", "format": "poem" })).contains("poem"));
    assert!(session.refused("run_submit", json!({ "file": "../x.json" })).contains("outside"));
    assert!(session.refused("run_status", json!({ "plan": "nothing" })).contains("nothing"));
    assert_eq!(world.plans.heads(&Query { limit: 9, ..Query::default() }).unwrap().total, 0);
}

#[test]
fn an_agent_does_not_start_a_person_s_plan_that_the_person_never_ran() {
    let world = World::new();
    let mut draft: waypost_core::Draft = serde_json::from_str(&night()).unwrap();
    let id = draft.id.take();
    let by = Actor::person("ada");
    direct_writes::create(&world.plans, NewPlan { id, by, draft, approval_required: None });
    let session = orchestrator(&world);
    let told = session.call("run_submit", json!({ "plan": "nig" })).value;
    assert_eq!((&told["phase"], &told["created"]), (&json!("awaiting_approval"), &json!(false)));
    assert!(told["next"].as_str().unwrap().contains("approv"), "{told}");
    assert!(session.refused("run_submit", json!({ "plan": "nig", "id": "x" })).contains("leave them out"));
}

#[test]
fn a_watch_tells_what_happened_since_and_waits_for_what_comes() {
    let world = World::new();
    let session = orchestrator(&world);
    let version = session.call("run_submit", json!({ "text": night() })).value["version"].clone();
    // Nothing happens: it answers when the time is over.
    let quiet = session.call("run_watch", json!({ "plan": "night", "since": version, "seconds": 0 })).value;
    assert_eq!((&quiet["happened"], &quiet["version"]), (&json!([]), &version));
    world.approve("night");
    worker(&world, start("a"));
    worker(&world, finish("a", done()));
    let told = session.call("run_watch", json!({ "plan": "night", "since": version })).value;
    assert_eq!(told["happened"], json!(["person:ada approved version 2", "a started", "a done"]));
    let since = told["version"].clone();
    let waited = std::thread::scope(|scope| {
        let watch = json!({ "plan": "night", "since": since, "seconds": 60, "until": "end" });
        let waiting = scope.spawn(|| session.call("run_watch", watch).value);
        worker(&world, start("b"));
        worker(&world, finish("b", Outcome::Failed { error: "no\nluck".to_owned(), evidence: None }));
        waiting.join().unwrap()
    });
    assert_eq!(waited["phase"], "failed");
    let happened = json!([
        "b started",
        "b failed: \"no luck\"",
        "c skipped: \"b did not succeed\"",
        "the plan is failed"
    ]);
    assert_eq!(waited["happened"], happened);
    let status = session.call("run_status", json!({ "plan": "night" })).value;
    assert_eq!(status["failed"], json!([{ "task": "b", "attempt": 1, "error": "no luck" }]));
    let said = session.refused("run_watch", json!({ "plan": "night", "since": 99 }));
    assert!(said.contains("there is no version 99"), "{said}");
}

#[test]
fn a_person_s_no_ends_a_watch_and_is_told_with_its_reason() {
    let world = World::new();
    let session = orchestrator(&world);
    session.call("run_submit", json!({ "text": night() }));
    let waited = std::thread::scope(|scope| {
        let watch = json!({ "plan": "night", "seconds": 60, "until": "end" });
        let waiting = scope.spawn(|| session.call("run_watch", watch).value);
        world.person("night", Command::Reject { reason: "not on a Friday".to_owned() });
        waiting.join().unwrap()
    });
    assert_eq!(waited["phase"], "draft");
    assert!(waited["next"].as_str().unwrap().contains("rejected it: \"not on a Friday\""), "{waited}");
    // Submitted again as it is, it is not asked for again: the answer stands.
    let again = session.call("run_submit", json!({ "text": night() })).value;
    assert_eq!(again["phase"], "draft");
    assert!(again["next"].as_str().unwrap().contains("not on a Friday"), "{again}");
}

#[test]
fn a_status_guesses_the_rest_when_three_have_ended_and_names_questions() {
    let world = World::new();
    let session = orchestrator(&world);
    let tasks: Vec<Value> = (0..6).map(|number| task(&format!("t{number}"), &[])).collect();
    let text = json!({ "format": "waypost/1", "id": "night", "tasks": tasks }).to_string();
    session.call("run_submit", json!({ "text": text }));
    world.approve("night");
    for number in 0..3 {
        let status = session.call("run_status", json!({ "plan": "night" })).value;
        assert_eq!(status.get("eta_seconds"), None, "{status}");
        worker(&world, start(&format!("t{number}")));
        world.wait(10);
        worker(&world, finish(&format!("t{number}"), done()));
    }
    worker(&world, start("t3"));
    let status = session.call("run_status", json!({ "plan": "night" })).value;
    assert_eq!(status["eta_seconds"], 30, "three in thirty seconds, and three are left");
    let ask = waypost_core::QuestionRequest {
        text: "which\none?".to_owned(),
        ..waypost_core::QuestionRequest::default()
    };
    let task = TaskId::new("t3").unwrap();
    worker(&world, Command::AskQuestion { task, attempt: Some(1), ask: Box::new(ask) });
    let status = session.call("run_status", json!({ "plan": "night" })).value;
    assert_eq!(status["asking"], json!([{ "task": "t3", "question": "which one?" }]));
}

#[test]
fn a_run_and_a_task_can_be_stopped() {
    let world = World::new();
    let session = orchestrator(&world);
    session.call("run_submit", json!({ "text": night() }));
    world.approve("night");
    worker(&world, start("a"));
    world.wait(7);
    let status = session.call("run_status", json!({ "plan": "night" })).value;
    assert_eq!(status["running"], json!([{ "task": "a", "attempt": 1, "seconds": 7 }]));
    let why = session.call("run_why", json!({ "plan": "night", "task": "a" })).value;
    assert_eq!(why["waits_for"][0]["message"], "w, who works on it (attempt 1)");
    let told =
        session.call("run_cancel", json!({ "plan": "night", "task": "b", "reason": "not needed" })).value;
    assert_eq!((&told["task"], &told["phase"]), (&json!("b"), &json!("active")));
    assert!(
        session
            .refused("run_cancel", json!({ "plan": "night", "task": "zz" }))
            .contains("no task is called zz")
    );
    let told = session.call("run_cancel", json!({ "plan": "night" })).value;
    assert_eq!(told["phase"], "cancelled");
    let end = session.call("run_watch", json!({ "plan": "night", "until": "end" })).value;
    assert_eq!(end["phase"], "cancelled");
    // Once more is the same; and what has ended otherwise stays what it was.
    assert_eq!(session.call("run_cancel", json!({ "plan": "night" })).value["version"], told["version"]);
    session.call("run_submit", json!({ "text": night(), "id": "other" }));
    world.person("other", Command::FinishPlan { phase: Phase::Failed, summary: String::new() });
    let said = session.refused("run_cancel", json!({ "plan": "other" }));
    assert!(said.contains("plan other has ended as failed already"), "{said}");
}

#[test]
fn the_end_of_a_log_is_bounded_and_begins_with_a_line() {
    let world = World::new();
    let session = orchestrator(&world);
    session.call("run_submit", json!({ "text": night() }));
    let said = session.refused("run_log", json!({ "plan": "night", "task": "a" }));
    assert!(said.contains("has not started"), "{said}");
    world.approve("night");
    worker(&world, start("a"));
    let nothing = session.call("run_log", json!({ "plan": "night", "task": "a" })).value;
    assert_eq!((&nothing["log"], &nothing["bytes"]), (&json!(""), &json!(0)));
    let logs = world.folder().join(".waypost/logs/night");
    std::fs::create_dir_all(&logs).unwrap();
    std::fs::write(logs.join("a.1.log"), "first line\nsecond line\nthird\n").unwrap();
    let all = session.call("run_log", json!({ "plan": "night", "task": "a" })).value;
    assert_eq!(all["log"], "first line\nsecond line\nthird\n");
    let end =
        session.call("run_log", json!({ "plan": "night", "task": "a", "attempt": 1, "bytes": 10 })).value;
    assert_eq!((&end["log"], &end["bytes"]), (&json!("third\n"), &json!(29)));
    assert!(
        session
            .refused("run_log", json!({ "plan": "night", "task": "a", "attempt": 2 }))
            .contains("attempt 2")
    );
}

#[test]
fn an_answer_about_ten_thousand_tasks_is_as_small_as_one_about_three() {
    let world = World::new();
    let session = orchestrator(&world);
    let tasks: Vec<Value> = (0..10_000).map(|number| task(&format!("t{number}"), &[])).collect();
    let text = json!({ "format": "waypost/1", "id": "night", "tasks": tasks }).to_string();
    let submitted = session.call("run_submit", json!({ "text": text }));
    assert!(submitted.text.len() < 500, "{}", submitted.text);
    world.approve("night");
    for number in 0..40 {
        worker(&world, start(&format!("t{number}")));
        let error = "long words ".repeat(100);
        worker(&world, finish(&format!("t{number}"), Outcome::Failed { error, evidence: None }));
    }
    for number in 40..80 {
        worker(&world, start(&format!("t{number}")));
    }
    let status = session.call("run_status", json!({ "plan": "night" }));
    assert_eq!(status.value["running"].as_array().unwrap().len(), 5);
    assert_eq!(status.value["failed"].as_array().unwrap().len(), 5);
    assert!(status.text.len() < 2_500, "{}", status.text);
    let watched = session.call("run_watch", json!({ "plan": "night", "since": 2 }));
    assert_eq!(watched.value["happened"].as_array().unwrap().len(), 20);
    assert!(watched.value["earlier"].as_u64().unwrap() > 0);
}

#[test]
fn a_watch_tells_what_persons_said() {
    let world = World::new();
    let session = orchestrator(&world);
    let version = session.call("run_submit", json!({ "text": night() })).value["version"].clone();
    world.person("night", Command::Reject { reason: "not tonight".to_owned() });
    world.person("night", Command::RequestApproval { message: "tomorrow?".to_owned() });
    world.approve("night");
    let told = session.call("run_watch", json!({ "plan": "night", "since": version, "seconds": 0 })).value;
    let happened: Vec<&str> =
        told["happened"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let said: Vec<&str> = happened.iter().copied().filter(|line| !line.starts_with("the plan is")).collect();
    assert_eq!(said[0], "person:ada rejected it: \"not tonight\"", "{happened:?}");
    assert_eq!(said[1], "approval was requested");
    assert!(said[2].starts_with("person:ada approved version "), "{happened:?}");
}

#[test]
fn a_run_without_work_for_machines_is_said_to_be_one() {
    let world = World::new();
    let session = orchestrator(&world);
    let words =
        json!({ "format": "waypost/1", "title": "Talk", "tasks": [{ "id": "a", "description": "talk" }] });
    let told = session.call("run_submit", json!({ "text": words.to_string() })).value;
    let next = told["next"].as_str().unwrap();
    assert!(next.starts_with("no remaining task is work for machines"), "{told}");
    let said = session.refused("run_why", json!({ "plan": told["id"], "task": "aa" }));
    assert!(said.ends_with("did you mean a?"), "{said}");
}
