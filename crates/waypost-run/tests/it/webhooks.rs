//! Webhooks that are told of the log, by a server on loopback that takes events or does not.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use waypost_config::{Config, ExecutionEnv, Layer, Origin};
use waypost_core::{Actor, Command, Draft, Outcome, PlanId, Timestamp};
use waypost_run::{WebhookOutbox, payload, reporter_owner};
use waypost_store::{
    Cursor, Durability, EventFilter, Finding, MemoryStore, NewPlan, PlanStore, SqliteStore, Store,
    WriteRequest,
};
use waypost_testkit::{chain, id};

use crate::committed;
use crate::direct_writes;
use crate::server::{Request, Server};

const SECRET: &str = "hunter2-hunter2";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn config(server: &Server, keys: &str) -> Arc<Config> {
    let text = format!(
        "[reporters.hook]\nkind = \"webhook\"\nurl = \"http://{}/hook\"\nbackoff_seconds = 0\n{keys}\n",
        server.address
    );
    let layer = Layer { origin: Origin::User, name: "config.toml".to_owned(), text };
    Arc::new(Config::load(&[layer], []).unwrap())
}

fn around() -> ExecutionEnv {
    let folder = std::env::temp_dir();
    let variables = BTreeMap::from([("SECRET_SOURCE".to_owned(), SECRET.to_owned())]);
    ExecutionEnv {
        workspace: folder.clone(),
        logs: folder.join("logs"),
        remote_notes: folder.join("notes"),
        variables,
        worker: "w".to_owned(),
    }
}

fn plans() -> Arc<PlanStore> {
    Arc::new(PlanStore::new(Arc::new(MemoryStore::new())))
}

fn create(plans: &PlanStore, name: &str, draft: Draft) {
    let (id, by) = (Some(PlanId::new(name).unwrap()), Actor::person("ada"));
    direct_writes::create(plans, NewPlan { id, by, draft, approval_required: None });
}

fn write(plans: &PlanStore, name: &str, command: Command) {
    write_as(plans, name, command, Actor::worker("host-1"));
}

fn write_as(plans: &PlanStore, name: &str, command: Command, by: Actor) {
    let plan = PlanId::new(name).unwrap();
    let request =
        WriteRequest { plan, by, commands: vec![command], known_version: None, lease_seconds: None };
    direct_writes::write(plans, request);
}

/// Does a task of a plan.
fn work(plans: &PlanStore, name: &str, task: &str) {
    write(plans, name, Command::StartTask { task: id(task), worker: "host-1".to_owned() });
    let outcome = Outcome::Done { result: Some("well".to_owned()), output: None, evidence: None };
    write(plans, name, Command::FinishTask { task: id(task), attempt: None, outcome, retry: None });
}

/// Two plans at work at the same time.
fn two_plans(plans: &PlanStore) {
    create(plans, "a", chain(3));
    create(plans, "b", chain(3));
    for task in ["t0", "t1", "t2"] {
        work(plans, "a", task);
        work(plans, "b", task);
    }
}

/// The ids of all events of the log, in their order.
fn ids(plans: &PlanStore) -> Vec<String> {
    let page = plans.events(Cursor::default(), &EventFilter::default(), 1_000).unwrap();
    assert!(!page.more);
    page.events.iter().map(|event| payload(event, "")["id"].as_str().unwrap().to_owned()).collect()
}

fn key(request: &Request) -> String {
    request.headers["idempotency-key"].clone()
}

fn keys(server: &Server) -> Vec<String> {
    server.requests().iter().map(key).collect()
}

/// Waits until it is so.
#[track_caller]
fn until(so: impl Fn() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "it never came about");
        std::thread::yield_now();
    }
}

#[test]
fn every_event_is_posted_once_in_the_order_of_the_log_as_it_happens() {
    let server = Server::start(|_, _, reply| reply.send(204, &[], ""));
    let plans = plans();
    let relay = WebhookOutbox::start(&plans, &config(&server, ""), &around(), 0).unwrap();
    two_plans(&plans);
    until(|| server.requests().len() == ids(&plans).len());
    assert_eq!(relay.finish(), [""; 0]);
    assert_eq!(keys(&server), ids(&plans));
    let last: Value = serde_json::from_str(&server.requests().last().unwrap().body).unwrap();
    assert_eq!(
        (&last["kind"], &last["plan"], &last["title"]),
        (&"plan_completed".into(), &"b".into(), &"a plan".into())
    );
    assert_eq!(
        plans.subscriptions(&reporter_owner("hook")).unwrap()[0].cursor,
        Cursor::after(plans.latest().unwrap())
    );
}

#[test]
fn an_event_that_is_not_taken_holds_back_those_behind_it_until_it_is() {
    // Every event is taken at its third try only.
    let server =
        Server::start(|before, _, reply| reply.send(if before % 3 == 2 { 200 } else { 500 }, &[], "no"));
    let plans = plans();
    let relay = WebhookOutbox::start(&plans, &config(&server, ""), &around(), 0).unwrap();
    two_plans(&plans);
    let expected: Vec<String> = ids(&plans).into_iter().flat_map(|id| [id.clone(), id.clone(), id]).collect();
    until(|| server.requests().len() == expected.len());
    assert_eq!(relay.finish(), [""; 0]);
    assert_eq!(keys(&server), expected);
    for tries in server.requests().chunks(3) {
        assert!(tries.iter().all(|one| one.body == tries[0].body), "the same is said each time");
    }
}

#[expect(clippy::disallowed_methods, reason = "no service is needed to look for damage")]
fn doctor(plans: &PlanStore, repair: bool) -> Vec<Finding> {
    plans.doctor(repair).unwrap()
}

#[test]
fn requests_are_signed_and_secrets_are_said_to_nobody_else() {
    let server = Server::start(|_, _, reply| reply.send(403, &[], "who are you?"));
    let plans = plans();
    let keys = "headers.Authorization = { variable = \"SECRET_SOURCE\" }\nhmac = { variable = \"SECRET_SOURCE\" }\nattempts = 1";
    let relay = WebhookOutbox::start(&plans, &config(&server, keys), &around(), 0).unwrap();
    create(&plans, "p", chain(1));
    until(|| !doctor(&plans, false).is_empty());
    let said = relay.finish();
    assert!(said[0].starts_with("reporter hook: 1 event was given up"), "{said:?}");
    let request = &server.requests()[0];
    let header = |name: &str| request.headers[name].as_str();
    assert_eq!((header("authorization"), header("content-type")), (SECRET, "application/json"));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let signed = format!("{}.{}", header("x-waypost-timestamp"), request.body);
    let signature = header("x-waypost-signature").strip_prefix("sha256=").unwrap();
    let byte = |at: usize| u8::from_str_radix(&signature[at..at + 2], 16).unwrap();
    let tag: Vec<u8> = (0..signature.len()).step_by(2).map(byte).collect();
    ring::hmac::verify(&key, signed.as_bytes(), &tag).unwrap();
    let findings = doctor(&plans, false);
    assert!(findings[0].what.contains("reporter:hook gave up on 1 event"), "{findings:?}");
    assert!(findings[0].what.contains("answered 403"), "{findings:?}");
    assert!(!format!("{findings:?}{said:?}{}", request.body).contains(SECRET));
}

#[test]
fn what_is_never_taken_is_given_up_and_the_rest_is_told() {
    let server = Server::start(|_, request, reply| {
        let stuck = key(request) == "a.2.0";
        reply.send(if stuck { 500 } else { 200 }, &[], "");
    });
    let plans = plans();
    let relay = WebhookOutbox::start(&plans, &config(&server, "attempts = 3"), &around(), 0).unwrap();
    create(&plans, "a", chain(1));
    work(&plans, "a", "t0");
    let last = ids(&plans).pop().unwrap();
    until(|| keys(&server).last() == Some(&last));
    let said = relay.finish();
    assert_eq!(said, ["reporter hook: 1 event was given up; `waypost doctor` says more"]);
    let told = keys(&server);
    assert_eq!(told.iter().filter(|key| *key == "a.2.0").count(), 3);
    let mut once = told.clone();
    once.dedup();
    assert_eq!(once, ids(&plans));
    assert_eq!(doctor(&plans, true).len(), 1);
    assert_eq!(doctor(&plans, false), []);
}

#[test]
fn only_the_kinds_that_are_asked_for_are_told() {
    let server = Server::start(|_, _, reply| reply.send(200, &[], ""));
    let plans = plans();
    let events = "events = [\"task_unblocked\", \"plan_completed\"]";
    let relay = WebhookOutbox::start(&plans, &config(&server, events), &around(), 0).unwrap();
    create(&plans, "a", chain(2));
    work(&plans, "a", "t0");
    work(&plans, "a", "t1");
    assert_eq!(relay.finish(), [""; 0]);
    let kinds: Vec<String> = server
        .requests()
        .iter()
        .map(|request| serde_json::from_str::<Value>(&request.body).unwrap()["kind"].to_string())
        .collect();
    assert_eq!(kinds, ["\"task_unblocked\"", "\"plan_completed\""]);
}

#[test]
fn a_new_reporter_begins_where_it_is_told_to_and_an_old_one_where_it_was() {
    let server = Server::start(|_, _, reply| reply.send(200, &[], ""));
    let plans = plans();
    create(&plans, "before", chain(1));
    let relay =
        WebhookOutbox::start(&plans, &config(&server, ""), &around(), plans.latest().unwrap()).unwrap();
    create(&plans, "first", chain(1));
    drop(relay);
    create(&plans, "between", chain(1));
    let relay =
        WebhookOutbox::start(&plans, &config(&server, ""), &around(), plans.latest().unwrap()).unwrap();
    create(&plans, "last", chain(1));
    assert_eq!(relay.finish(), [""; 0]);
    assert_eq!(keys(&server), ["first.1.0", "between.1.0", "last.1.0"]);
}

#[test]
fn one_process_sends_and_another_takes_over_what_it_has_left() {
    let folder: PathBuf = std::env::temp_dir().join(format!("waypost-relay-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let open = || {
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(&folder.join("waypost.db"), Durability::Relaxed).unwrap());
        Arc::new(PlanStore::new(store))
    };
    let takes = Arc::new(AtomicBool::new(true));
    let said = Arc::clone(&takes);
    let server = Server::start(move |_, _, reply| {
        reply.send(if said.load(Ordering::Acquire) { 200 } else { 503 }, &[], "");
    });
    let (one, other) = (open(), open());
    let config = config(&server, "attempts = 1000");
    let first = WebhookOutbox::start(&one, &config, &around(), 0).unwrap();
    create(&one, "a", chain(1));
    until(|| keys(&server) == ["a.1.0"]);
    let second = WebhookOutbox::start(&other, &config, &around(), 0).unwrap();
    takes.store(false, Ordering::Release);
    create(&one, "b", chain(1));
    until(|| keys(&server).len() > 2);
    let left = first.finish();
    assert!(left[0].contains("answered 503; the rest is sent by the next run or worker"), "{left:?}");
    takes.store(true, Ordering::Release);
    create(&other, "c", chain(1));
    until(|| keys(&server).last().is_some_and(|key| key == "c.1.0"));
    assert_eq!(second.finish(), [""; 0]);
    let mut once = keys(&server);
    once.dedup();
    assert_eq!(once, ["a.1.0", "b.1.0", "c.1.0"], "in order, and nothing else twice");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_posted_has_the_shape_that_it_always_had() {
    let clock = || Timestamp::from_micros(1_700_000_000_000_000);
    let plans = PlanStore::new(Arc::new(MemoryStore::with_clock(Arc::new(clock))));
    let mut draft = chain(3);
    draft.spec.owner = "planner".to_owned();
    draft.tasks[0].spec.notes = "not for everybody".to_owned();
    create(&plans, "p", draft);
    work(&plans, "p", "t0");
    write(&plans, "p", Command::StartTask { task: id("t1"), worker: "host-1".to_owned() });
    let outcome = Outcome::Failed { error: "it broke".to_owned(), evidence: None };
    write(&plans, "p", Command::FinishTask { task: id("t1"), attempt: None, outcome, retry: None });
    write_as(&plans, "p", Command::RetryTask { task: id("t1") }, Actor::person("ada"));
    let page = plans.events(Cursor::default(), &EventFilter::default(), 100).unwrap();
    let lines: String = page.events.iter().map(|event| payload(event, "a plan").to_string() + "\n").collect();
    assert!(!lines.contains("not for everybody"), "{lines}");
    committed::check("tests/golden/webhook.jsonl", &lines, "Others read this: add fields, never change one.");
    let whole: String =
        page.events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect();
    committed::check("tests/golden/events.jsonl", &whole, "Others read this: add fields, never change one.");
}
