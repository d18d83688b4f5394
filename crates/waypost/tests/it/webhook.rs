//! Webhooks of whole runs: nothing is lost when a run is killed, and secrets stay where they are.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use waypost_store::{Cursor, Durability, EventFilter, PlanStore, open};

use crate::run::{configure, text};
use crate::server::{Request, Server};
use crate::transcript::Workspace;

const SECRET: &str = "hunter2-hunter2";
const PLAN: &str = r#"{ "format": "waypost/1", "id": "p", "title": "Ship it", "tasks": [
  { "id": "a", "work": { "executor": "run", "inputs": { "password": "swordfish" } } },
  { "id": "b", "work": { "executor": "run" }, "depends_on": ["a"] },
  { "id": "c", "work": { "executor": "run" }, "depends_on": ["b"] } ] }"#;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn prepare(server: &Server) -> Workspace {
    let workspace = Workspace::new();
    let address = &server.address;
    configure(&workspace, "[executors.run]\nkind = \"process\"\ncommand = [\"echo\", \"1\"]\n");
    // A workspace's file cannot send a secret anywhere.
    workspace.configure_user(
        &format!(
            "[reporters.hook]\nkind = \"webhook\"\nurl = \"http://{address}/hook\"\nhmac = {{ variable = \"HOOK_SECRET\" }}\nheaders.Authorization = {{ variable = \"HOOK_SECRET\" }}\nbackoff_seconds = 0\nattempts = 1000\n"
        ),
    );
    fs::write(workspace.work().join("p.json"), PLAN).unwrap();
    workspace
}

fn key(request: &Request) -> String {
    request.headers["idempotency-key"].clone()
}

/// The ids of all events of the log, in their order.
fn ids(workspace: &Workspace) -> Vec<String> {
    let store = format!("sqlite:{}", workspace.work().join(".waypost/waypost.db").display());
    let plans = PlanStore::new(open(&store, Durability::default()).unwrap());
    let page = plans.events(Cursor::default(), &EventFilter::default(), 1_000).unwrap();
    page.events.iter().map(|event| format!("{}.{}.{}", event.plan, event.version, event.index)).collect()
}

/// Which requests were taken, without those that were taken twice.
fn taken(server: &Server, refused: &dyn Fn(usize) -> bool) -> Vec<String> {
    let mut taken = Vec::new();
    for (place, request) in server.requests().iter().enumerate().filter(|(place, _)| !refused(*place)) {
        let key = key(request);
        assert!(!key.is_empty(), "request {place} has an id");
        if !taken.contains(&key) {
            taken.push(key);
        }
    }
    taken
}

#[test]
fn a_run_tells_a_webhook_everything_in_order_and_no_secret_shows() {
    let server =
        Server::start(|before, _, reply| reply.send(if before == 1 { 500 } else { 204 }, &[], SECRET));
    let workspace = prepare(&server);
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let output = command.args(["run", "p.json"]).env("HOOK_SECRET", SECRET).output().unwrap();
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert_eq!(taken(&server, &|place| place == 1), ids(&workspace));
    assert_eq!(server.requests().len(), ids(&workspace).len() + 1);
    let bodies: String = server.requests().iter().map(|request| request.body.clone()).collect();
    assert!(!bodies.contains("swordfish") && !bodies.contains(SECRET), "{bodies}");
    let first: Value = serde_json::from_str(&server.requests()[0].body).unwrap();
    assert_eq!((&first["kind"], &first["title"]), (&"plan_created".into(), &"Ship it".into()));
    for words in [&["events", "--json"][..], &["doctor"], &["history", "p"], &["show", "p", "--json"]] {
        let (out, err) = text(&workspace.waypost(words));
        assert!(!format!("{out}{err}").contains(SECRET), "{words:?}: {out}{err}");
    }
    let database = fs::read(workspace.work().join(".waypost/waypost.db")).unwrap();
    assert!(!database.windows(SECRET.len()).any(|bytes| bytes == SECRET.as_bytes()));
}

#[test]
fn what_a_killed_run_has_not_sent_is_sent_by_the_next_one() {
    let takes = Arc::new(AtomicBool::new(true));
    let (told, said) = (Arc::clone(&takes), Arc::new(AtomicUsize::new(usize::MAX)));
    let stopped_at = Arc::clone(&said);
    let server = Server::start(move |before, _, reply| {
        // Takes two events, then no more until it is told to.
        if before == 2 {
            told.store(false, Ordering::Release);
            stopped_at.store(before, Ordering::Release);
        }
        reply.send(if told.load(Ordering::Acquire) { 200 } else { 503 }, &[], "");
    });
    let workspace = prepare(&server);
    // The run cannot end by itself: its last task waits for a refused event, then kills it.
    let line = "[ $WAYPOST_TASK != c ] || [ $WAYPOST_ATTEMPT = 2 ] || \
        { until [ -e refused ]; do sleep 0.02; done; kill -9 $PPID; }";
    let line = serde_json::to_string(line).unwrap();
    configure(
        &workspace,
        &format!("[executors.run]\nkind = \"process\"\nshell = true\ncommand = [{line}]\n"),
    );
    let mut plan: Value = serde_json::from_str(PLAN).unwrap();
    plan["tasks"][2]["retry"] = serde_json::json!({ "attempts": 2, "backoff_seconds": 0 });
    fs::write(workspace.work().join("p.json"), plan.to_string()).unwrap();
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.args(["run", "p.json"]).env("HOOK_SECRET", SECRET);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while server.requests().len() < 4 {
        assert!(began.elapsed() < PATIENCE, "the run sends nothing: {:?}", server.lines());
        std::thread::yield_now();
    }
    fs::write(workspace.work().join("refused"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it was killed while it tried to send");
    let refused_from = said.load(Ordering::Acquire);
    let before = server.requests().len();
    takes.store(true, Ordering::Release);
    let mut command = workspace.command(env!("CARGO_BIN_EXE_waypost"));
    let output = command.args(["worker", "--until-idle"]).env("HOOK_SECRET", SECRET).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    let events = ids(&workspace);
    assert_eq!(taken(&server, &|place| (refused_from..before).contains(&place)), events);
    // What was told twice was told in the same words under the same id.
    let mut bodies: BTreeMap<String, String> = BTreeMap::new();
    for request in server.requests() {
        let first = bodies.entry(key(&request)).or_insert_with(|| request.body.clone());
        assert_eq!(*first, request.body);
    }
    assert_eq!(bodies.len(), events.len());
    let (out, err) = text(&workspace.waypost(&["doctor"]));
    assert!(err.contains("is sound"), "{out}{err}");
}

#[test]
fn a_todo_json_in_the_folder_is_taken_over() {
    let server = Server::start(|_, _, reply| reply.send(200, &[], ""));
    let workspace = prepare(&server);
    fs::remove_file(workspace.work().join(".waypost/config.toml")).unwrap();
    let todo = serde_json::json!({
        "reporter_type": "webhook",
        "reporter_config": { "url": format!("http://{}/jaato", server.address), "headers": { "X-Service": "jaato" } },
        "storage_type": "file", "storage_path": ".jaato/plans.json",
    });
    fs::write(workspace.work().join(".waypost/todo.json"), todo.to_string()).unwrap();
    fs::remove_file(workspace.root.join("home/.config/waypost/config.toml")).unwrap();
    workspace.trust();
    let plan = PLAN.replace("\"executor\": \"run\"", "\"executor\": \"noop\"");
    fs::write(workspace.work().join("p.json"), plan).unwrap();
    let output = workspace.waypost(&["run", "p.json"]);
    assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
    assert!(workspace.work().join(".jaato/plans/history/p.jsonl").is_file());
    assert!(!workspace.work().join(".waypost/waypost.db").exists());
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.line() == "POST /jaato"), "{:?}", server.lines());
    assert_eq!(requests[0].headers["x-service"], "jaato");
    let last: Value = serde_json::from_str(&requests.last().unwrap().body).unwrap();
    assert_eq!(last["kind"], "plan_completed");
}
