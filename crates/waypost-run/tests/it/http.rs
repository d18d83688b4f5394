//! Workers that are called over HTTP, by a server on loopback that says what a test wants.

use serde_json::{Value, json};
use waypost_config::Config;
use waypost_core::{Json, Plan, Retry, Status};
use waypost_testkit::plan_of;

use crate::processes::{Place, configured};
use crate::server::Server;
use crate::world::job;

fn http(server: &Server, keys: &str) -> Config {
    let address = &server.address;
    configured(&format!("[executors.run]\nkind = \"http\"\nurl = \"http://{address}/jobs\"\n{keys}\n"))
}

/// Runs one task that is tried once.
fn run(place: &Place, config: Config) -> Plan {
    let mut task = job("a", &[], &[]);
    task.retry = Some(Box::new(Retry { attempts: 1, backoff_seconds: 0, backoff_seconds_max: 0 }));
    place.run(config, plan_of([task])).0
}

fn state(plan: &Plan) -> (Status, Option<&str>) {
    let state = &plan.task("a").unwrap().state;
    (
        state.status,
        state.error.as_deref().or(state.output.as_ref().map(Json::as_str)).or(state.result.as_deref()),
    )
}

#[test]
fn the_job_is_sent_signed_and_the_answer_is_the_output() {
    let place = Place::new();
    let server = Server::start(|_, request, reply| {
        let job: Value = serde_json::from_str(&request.body).unwrap();
        reply.json(200, &json!({ "did": job["task"], "token": request.headers["authorization"] }));
    });
    let keys = "headers.Authorization = { variable = \"SECRET_SOURCE\" }\nheaders.X-Team = \"a b\"\nhmac = { variable = \"SECRET_SOURCE\" }";
    let plan = run(&place, http(&server, keys));
    assert_eq!(state(&plan), (Status::Done, Some("{\"did\":\"a\",\"token\":\"***\"}")));
    let request = &server.requests()[0];
    let header = |name: &str| request.headers[name].as_str();
    assert_eq!((request.line().as_str(), header("content-type")), ("POST /jobs", "application/json"));
    assert_eq!((header("authorization"), header("x-team")), ("hunter2-hunter2", "a b"));
    assert_eq!(header("idempotency-key"), format!("{}/a/1", plan.id()));
    let job: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!((&job["description"], &job["attempt"]), (&"do a".into(), &1.into()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"hunter2-hunter2");
    let signed = format!("{}.{}", header("x-waypost-timestamp"), request.body);
    let signature = header("x-waypost-signature").strip_prefix("sha256=").unwrap();
    let byte = |at: usize| u8::from_str_radix(&signature[at..at + 2], 16).unwrap();
    let tag: Vec<u8> = (0..signature.len()).step_by(2).map(byte).collect();
    ring::hmac::verify(&key, signed.as_bytes(), &tag).unwrap();
    let began = plan.task("a").unwrap().state.started_at.unwrap().as_micros() / 1_000_000;
    let sent: i64 = header("x-waypost-timestamp").parse().unwrap();
    assert!((began..began + 20).contains(&sent), "{began} {sent}");
    assert_eq!(place.log(&plan, "a"), format!("POST http://{}/jobs: 200\n", server.address));
}

#[test]
fn work_that_goes_on_is_asked_for_until_it_is_done() {
    let place = Place::new();
    let server = Server::start(|before, _, reply| match before {
        0 => reply.send(202, &[("location", "/jobs/7"), ("retry-after", "0")], ""),
        1 => reply.send(202, &[("retry-after", "0")], "{\"progress\": \"half\"}"),
        2 => reply.send(503, &[("retry-after", "0")], ""),
        3 => reply.send(307, &[("location", "/results/7")], ""),
        _ => reply.send(200, &[], "seven in words"),
    });
    let plan = run(&place, http(&server, ""));
    assert_eq!(state(&plan), (Status::Done, Some("seven in words")));
    assert_eq!(server.lines(), ["POST /jobs", "GET /jobs/7", "GET /jobs/7", "GET /jobs/7", "GET /results/7"]);
    let keys: Vec<String> =
        server.requests().iter().map(|request| request.headers["idempotency-key"].clone()).collect();
    assert!(keys.iter().all(|key| *key == format!("{}/a/1", plan.id())), "{keys:?}");
}

#[test]
fn a_server_that_is_busy_is_asked_again_and_then_the_attempt_is_over() {
    let place = Place::new();
    let busy = |times: usize| {
        Server::start(move |before, _, reply| match before {
            before if before < times => reply.send(503, &[("retry-after", "0")], "busy"),
            _ => reply.send(200, &[], "1"),
        })
    };
    let server = busy(2);
    assert_eq!(state(&run(&place, http(&server, ""))), (Status::Done, Some("1")));
    assert_eq!(server.requests().len(), 3);
    let server = busy(100);
    let plan = run(&place, http(&server, "tries = 2"));
    let error = format!("http://{}/jobs answered 503: busy", server.address);
    assert_eq!(state(&plan), (Status::Failed, Some(error.as_str())));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn nobody_at_the_address_is_worth_another_attempt() {
    let place = Place::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        "[executors.run]\nkind = \"http\"\nurl = \"http://{free}/\"\ntries = 1\n[retry]\nbackoff_seconds = 0\n"
    );
    let mut task = job("a", &[], &[]);
    task.retry = Some(Box::new(Retry { attempts: 2, backoff_seconds: 0, backoff_seconds_max: 0 }));
    let plan = place.run(configured(&text), plan_of([task])).0;
    assert_eq!(plan.task("a").unwrap().state.attempt, 2);
    let (status, error) = state(&plan);
    assert_eq!(status, Status::Failed);
    assert!(error.unwrap().starts_with(&format!("http://{free}/ cannot be reached: ")), "{error:?}");
    assert!(error.unwrap().contains("onnection refused"), "{error:?}");
}

#[test]
fn an_answer_that_means_no_fails_and_nothing_goes_to_another_host() {
    let place = Place::new();
    let elsewhere = Server::start(|_, _, reply| reply.send(200, &[], "taken"));
    let there = format!("http://{}/x", elsewhere.address);
    for (status, header, body, error) in [
        (404, ("x", "y"), "no such queue", "answered 404: no such queue"),
        (302, ("location", there.as_str()), "", "answered 302"),
        (307, ("location", there.as_str()), "", "refused; only http://"),
        (202, ("location", there.as_str()), "", "only http://"),
        (202, ("x", "y"), "{}", "did not say where to ask"),
    ] {
        let (name, value) = (header.0, header.1.to_owned());
        let server = Server::start(move |_, _, reply| reply.send(status, &[(name, &value)], body));
        let plan = run(&place, http(&server, "tries = 1"));
        let (ended, said) = state(&plan);
        assert_eq!(ended, Status::Failed);
        assert!(said.unwrap().contains(error), "{said:?}");
        assert_eq!(server.requests().len(), 1);
    }
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn an_output_has_an_end() {
    let place = Place::new();
    let server = Server::start(|_, _, reply| reply.send(200, &[], &"1".repeat(5_001)));
    let mut config = http(&server, "");
    config.output_bytes_max = 5_000;
    let plan = run(&place, config.clone());
    assert_eq!(state(&plan), (Status::Failed, Some("its output has more than 5000 bytes")));
    config.output_bytes_max = 5_001;
    assert_eq!(state(&run(&place, config)).0, Status::Done);
}

#[test]
fn who_is_at_work_elsewhere_is_told_when_it_is_to_end() {
    let place = Place::new();
    let server = Server::start(|before, request, reply| match (before, request.method.as_str()) {
        (0, _) => reply.send(202, &[("location", "/jobs/7"), ("retry-after", "0")], "{\"progress\": 1}"),
        (_, "DELETE") => reply.send(204, &[], ""),
        (_, _) => reply.send(202, &[("retry-after", "60")], ""),
    });
    let id = place.create(plan_of([job("a", &[], &[])]));
    let plan = place.run_until_progress(http(&server, ""), &id);
    assert_eq!(plan.task("a").unwrap().state.status, Status::Pending);
    // A status request that was on its way may be noted after it.
    let lines = server.lines();
    assert!(lines.iter().any(|line| line == "DELETE /jobs/7"), "{lines:?}");
}

#[test]
fn a_timeout_ends_the_wait_for_an_answer() {
    let place = Place::new();
    let server = Server::start(|_, _, reply| {
        let (_kept, never) = std::sync::mpsc::channel::<()>();
        let _late = never.recv_timeout(std::time::Duration::from_secs(30));
        reply.send(200, &[], "late");
    });
    let plan = run(&place, http(&server, "timeout_seconds = 1"));
    assert_eq!(state(&plan), (Status::Failed, Some("it took longer than 1 s and was stopped")));
}
