//! The API as programs and the dashboard use it: over a real socket, with tokens and cookies.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use waypost_config::{Config, NotTrusted};
use waypost_core::{Actor, Command, PlanId, StartRefusal, StartRefusalReason, TaskId, Timestamp};
use waypost_http::{
    Api, BODY_BYTES_MAX, BODY_PARTS_MAX, HostOriginGuard, Models, NewToken, Role, Site, openapi, serve,
};
use waypost_service::{Record, Service};
use waypost_store::{MemoryStore, PlanStore, Worker, WorkerKind};

use super::{Folder, ada, for_agent, tokens_in};

/// Long enough for everything that has to happen, and reached only by what does not.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// A server with the API, and one token of each role.
pub(crate) struct Desk {
    pub(crate) runtime: Runtime,
    pub(crate) at: SocketAddr,
    pub(crate) service: Service,
    pub(crate) folder: Arc<Folder>,
    client: Client<HttpConnector, Full<Bytes>>,
    pub(crate) person: String,
    pub(crate) agent: String,
    pub(crate) reader: String,
    worker: String,
    pub(crate) scraper: String,
    /// The code of the sign-in link.
    pub(crate) code: String,
    _stop: oneshot::Sender<()>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: hyper::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn head(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// An error in the form of RFC 9457.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.head("content-type"), "application/problem+json", "{self:?}");
        let value = self.json();
        assert_eq!(value["status"], json!(status));
        assert!(value["code"].as_str().is_some_and(|code| !code.is_empty()), "{value}");
        assert!(value["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{value}");
        value
    }

    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.json()
    }
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        Self::serving(Service::new(plans, Arc::new(config)), Arc::new(Folder::new()))
    }

    /// Another server of the same store, with tokens of its own.
    pub(crate) fn again(&self) -> Self {
        Self::serving(self.service.clone(), Arc::clone(&self.folder))
    }

    fn serving(service: Service, folder: Arc<Folder>) -> Self {
        Self::serving_with(service, folder, None)
    }

    /// A server whose plans these models write.
    pub(crate) fn with_models(models: Arc<dyn Models>) -> Self {
        let plans = Arc::new(PlanStore::new(Arc::new(MemoryStore::new())));
        let service = Service::new(plans, Arc::new(Config::default()));
        Self::serving_with(service, Arc::new(Folder::new()), Some(models))
    }

    fn serving_with(service: Service, folder: Arc<Folder>, models: Option<Arc<dyn Models>>) -> Self {
        let tokens = tokens_in(folder.path());
        let (by, when) = (Actor::person("ada"), Timestamp::from_micros(1_767_225_600_000_000));
        let make =
            |role, name: &str| tokens.make(NewToken { role, ..for_agent(name) }, &ada(), when).unwrap().1;
        let (person, agent, reader) =
            (make(Role::Person, "ada"), make(Role::Agent, "planner"), make(Role::Reader, "guest"));
        let worker = make(Role::Worker, "builder");
        let only = NewToken { role: Role::Reader, only: Some("/metrics"), ..for_agent("prometheus") };
        let scraper = tokens.make(only, &ada(), when).unwrap().1;
        let lent = tokens.lend(Role::Person, "ada", &by, when).unwrap();
        let logs: PathBuf = folder.path().join("logs");
        let api = Api::new(service.clone(), logs, "desk".to_owned());
        let api = match models {
            Some(models) => api.with_models(models),
            None => api,
        };
        let site = Site::new(HostOriginGuard::local(), tokens, Vec::new()).with_api(api);
        let code = site.login_code(&lent).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let at = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            tokio::spawn(serve(listener, site, async {
                let _dropped = stopped.await;
            }));
            at
        });
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self {
            runtime,
            at,
            service,
            folder,
            client,
            person,
            agent,
            reader,
            worker,
            scraper,
            code,
            _stop: stop,
        }
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let mut request = hyper::Request::builder().method(method).uri(format!("http://{}{path}", self.at));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let asked = async {
            let response = self.client.request(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let text = String::from_utf8_lossy(&body.collect().await.unwrap().to_bytes()).into_owned();
            Answer { status: parts.status.as_u16(), headers: parts.headers, text }
        };
        self.runtime.block_on(async { tokio::time::timeout(BOUND, asked).await.unwrap() })
    }

    pub(crate) fn by(
        &self,
        token: &str,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(more);
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        if !body.is_null() {
            headers.push(("content-type", "application/json"));
        }
        self.send(method, &format!("/api/v1{path}"), &headers, bytes)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.by(&self.person, "GET", path, &[], &Value::Null)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.by(&self.person, "POST", path, &[], body)
    }

    /// Answers what a task asks now.
    pub(crate) fn answer(&self, plan: &str, task: &str, answer: &str) -> Answer {
        let path = format!("/plans/{plan}/tasks/{task}");
        let digest = self.get(&path).ok()["question_digest"].take();
        self.post(&format!("{path}/actions/answer"), &json!({ "answer": answer, "digest": digest }))
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.person)
    }

    /// A plan with tasks one after another.
    pub(crate) fn plan(&self, id: &str, tasks: &[&str]) {
        let mut before: Option<&str> = None;
        let tasks: Vec<Value> = tasks
            .iter()
            .map(|task| {
                let on: Vec<&str> = before.replace(task).into_iter().collect();
                json!({ "id": task, "description": task, "depends_on": on })
            })
            .collect();
        let plan = json!({ "format": "waypost/1", "title": id, "tasks": tasks });
        self.post("/plans", &json!({ "id": id, "plan": plan })).ok();
    }
}

#[test]
fn plans_are_listed_on_pages_and_those_that_wait_for_a_person_come_first() {
    let desk = Desk::new();
    for id in ["one", "two", "three", "four"] {
        desk.plan(id, &["a"]);
    }
    desk.post("/plans/one/actions/request-approval", &json!({ "message": "look" })).ok();
    desk.post("/plans/two/actions/start", &json!({})).ok();
    desk.by(&desk.person, "PATCH", "/plans/four", &[], &json!({ "goal": "last" })).ok();
    let ids = |page: &Value| -> Vec<String> {
        page["plans"].as_array().unwrap().iter().map(|plan| plan["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&desk.get("/plans?sort=attention").ok()), ["one", "two", "four", "three"]);
    desk.post("/plans/three/actions/start", &json!({})).ok();
    desk.post("/plans/three/tasks/a/actions/claim", &json!({})).ok();
    desk.post("/plans/three/tasks/a/actions/ask", &json!({ "question": "which one?" })).ok();
    desk.by(&desk.person, "PATCH", "/plans/two", &[], &json!({ "goal": "later" })).ok();
    let all = |sort: &str| {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = desk.get(&format!("/plans?sort={sort}&limit=1{after}")).ok();
            assert_eq!((&page["total"], page["plans"].as_array().unwrap().len()), (&json!(4), 1));
            seen.extend(ids(&page));
            let Some(next) = page["next"].as_str() else { return seen };
            after = format!("&after={next}");
        }
    };
    assert_eq!(all("id"), ["four", "one", "three", "two"]);
    assert_eq!(
        all("attention"),
        ["one", "three", "two", "four"],
        "approval, a question, what runs, the rest"
    );
    desk.get("/plans?limit=0").problem(400);
    desk.get("/plans?sort=colour").problem(400);
    desk.get("/plans?colour=red").problem(400);
}

#[test]
fn comments_labels_and_assignees_are_written_found_and_listed() {
    let desk = Desk::new();
    desk.plan("release", &["build", "deploy"]);
    let edit = |token: &str, operations: Value| {
        desk.by(token, "POST", "/plans/release/edits", &[], &json!({ "operations": operations }))
    };
    let both = json!([
        { "op": "comment", "task": "deploy", "text": "mind the mirror" },
        { "op": "label", "task": "deploy", "labels": ["risky", "frontend", "risky"] },
        { "op": "assign", "task": "deploy", "assignee": "person:ada" },
    ]);
    assert_eq!(edit(&desk.agent, both).ok()["version"], json!(2), "one version for all of them");
    let state = desk.get("/plans/release/tasks/deploy").ok()["state"].take();
    assert_eq!(state["comments"][0]["by"], json!("agent:planner"));
    assert_eq!(state["comments"][0]["text"], json!("mind the mirror"));
    assert_eq!((&state["labels"], &state["assignee"]), (&json!(["frontend", "risky"]), &json!("person:ada")));
    let labels = json!([
        { "op": "label", "task": "deploy", "add": ["late"] },
        { "op": "label", "task": "deploy", "add": ["later"], "remove": ["late", "frontend"] },
    ]);
    edit(&desk.agent, labels).ok();
    let state = desk.get("/plans/release/tasks/deploy").ok()["state"].take();
    assert_eq!(state["labels"], json!(["later", "risky"]));
    let page = desk.get("/plans/release/tasks?annotated=true").ok();
    assert_eq!(page["total"], json!(1));
    let row = &page["tasks"][0];
    assert_eq!(
        (&row["id"], &row["comments"], &row["assignee"]),
        (&json!("deploy"), &json!(1), &json!("person:ada"))
    );
    let found = desk.get("/search?text=deploy&label=risky&assignee=person:ada&standing=blocked").ok();
    assert_eq!((&found["total"], &found["more"]), (&json!(1), &json!(false)), "{found}");
    assert_eq!(found["tasks"][0]["plan"], json!("release"));
    assert_eq!(desk.get("/search?text=deploy&label=safe").ok()["total"], json!(0));
    assert_eq!(desk.by(&desk.reader, "GET", "/search?text=build", &[], &Value::Null).ok()["total"], json!(1));
    desk.get("/search?standing=lovely").problem(400);
    desk.get("/search?limit=0").problem(400);
    desk.get("/search?limit=201").problem(400);
    edit(&desk.person, json!([{ "op": "comment", "task": "deploy", "text": " " }])).problem(422);
    edit(&desk.person, json!([{ "op": "comment", "task": "none", "text": "x" }])).problem(404);
    let worker = edit(&desk.worker, json!([{ "op": "comment", "task": "deploy", "text": "x" }]));
    assert_eq!(worker.problem(403)["code"], json!("not_for_workers"));
    edit(&desk.reader, json!([{ "op": "comment", "task": "deploy", "text": "x" }])).problem(403);
}

#[test]
fn a_text_that_is_validated_is_shown_as_it_is_understood() {
    let desk = Desk::new();
    let text = "# Release\n\n- [x] a: First\n- [ ] b: Second  (after: a)\n";
    let found = desk.post("/validate", &json!({ "text": text })).ok();
    assert_eq!((&found["title"], &found["total"]), (&json!("Release"), &json!(2)));
    assert_eq!(
        found["tasks"][1],
        json!({
            "id": "b", "description": "Second", "depends_on": ["a"], "parent": null, "status": "pending",
            "executor": null,
        })
    );
    assert_eq!(found["tasks"][0]["status"], json!("done"));
}

#[test]
fn a_key_sent_twice_makes_one_plan() {
    let desk = Desk::new();
    let body = json!({ "plan": { "format": "waypost/1", "title": "Once", "tasks": [{ "id": "a" }] } });
    let make = |token: &str| desk.by(token, "POST", "/plans", &[("idempotency-key", "k-1")], &body);
    let (first, second) = (make(&desk.agent), make(&desk.agent));
    assert_eq!((first.status, second.status), (201, 201), "{second:?}");
    assert_eq!(first.ok()["id"], second.ok()["id"]);
    let id = first.ok()["id"].as_str().unwrap().to_owned();
    assert_eq!(first.head("location"), format!("/api/v1/plans/{id}"));
    assert_eq!(first.head("etag"), "\"1\"");
    assert_ne!(make(&desk.person).ok()["id"], json!(id), "the key of another is another key");
    assert_eq!(desk.get("/plans").ok()["total"], json!(2));
}

#[test]
fn what_changes_when_a_text_is_read_is_noted() {
    let desk = Desk::new();
    let text = r#"{"goal":"g","size":123456789012345678901,"tasks":[{"id":"a","description":"d"}]}"#;
    let made = desk.post("/plans", &json!({ "text": text })).ok();
    let note =
        "line 1: the number 123456789012345678901 has too many digits; it is kept as 123456789012345680000";
    assert_eq!(made["notes"], json!([note]));
}

#[test]
fn what_its_author_skips_keeps_nothing_waiting_before_the_plan_starts() {
    let desk = Desk::new();
    let task = |id: &str, on: &[&str], skip: bool| json!({ "id": id, "depends_on": on, "skip": skip });
    let tasks = [task("a", &[], true), task("b", &["a"], false), task("c", &["b"], false)];
    let plan = json!({ "format": "waypost/1", "title": "P", "tasks": tasks });
    desk.post("/plans", &json!({ "id": "p", "plan": plan })).ok();
    let standings = |rows: &Value| -> Vec<String> {
        rows.as_array().unwrap().iter().map(|row| row["standing"].as_str().unwrap().to_owned()).collect()
    };
    let rows = desk.get("/plans/p/tasks").ok();
    assert_eq!(standings(&rows["tasks"]), ["skipped", "ready", "blocked"]);
    assert_eq!(desk.get("/plans/p/tasks?standing=ready").ok()["tasks"][0]["id"], json!("b"));
    let task = desk.get("/plans/p/tasks/b").ok();
    assert_eq!((&task["standing"], &task["why"]), (&json!("ready"), &json!([])));
    assert_eq!(desk.get("/plans/p/graph").ok()["standing"], json!("srb"));
    let counts = desk.get("/plans/p").ok()["counts"].clone();
    assert_eq!([&counts["skipped"], &counts["ready"], &counts["blocked"]], [1, 1, 1], "{counts}");
    assert_eq!(standings(&desk.get("/next?plan=p").ok()["tasks"]), ["ready"]);
}

#[test]
fn who_writes_over_what_others_wrote_is_told_what_changed() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let plan = desk.get("/plans/p");
    assert_eq!(plan.head("etag"), "\"1\"");
    let again = desk.by(&desk.person, "GET", "/plans/p", &[("if-none-match", "\"1\"")], &Value::Null);
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    let revise = |token: &str, known: &str, title: &str| {
        desk.by(token, "PATCH", "/plans/p", &[("if-match", known)], &json!({ "title": title }))
    };
    assert_eq!(revise(&desk.agent, "\"1\"", "By the agent").ok()["version"], json!(2));
    let conflict = revise(&desk.person, "\"1\"", "By the person").problem(412);
    assert_eq!(conflict["code"], json!("conflict"));
    assert_eq!((&conflict["conflict"]["known"], &conflict["conflict"]["current"]), (&json!(1), &json!(2)));
    assert!(conflict["conflict"]["differences"].to_string().contains("By the agent"), "{conflict}");
    assert!(conflict["conflict"]["writers"].to_string().contains("planner"), "{conflict}");
    revise(&desk.person, "yesterday", "x").problem(400);
    assert_eq!(desk.get("/plans/p").ok()["title"], json!("By the agent"));
}

#[test]
fn tasks_that_a_worker_has_queued_do_not_run() {
    let desk = Desk::new();
    let plan = json!({ "format": "waypost/1", "title": "p", "tasks": [{ "id": "a" }, { "id": "b" }, { "id": "c" }] });
    desk.post("/plans", &json!({ "id": "p", "plan": plan })).ok();
    desk.post("/plans/p/actions/start", &json!({})).ok();
    let mut row = Worker::new("mill:1", "mill", WorkerKind::Worker, vec!["default".to_owned()]);
    desk.service.register_worker(&mut row, 60).unwrap();
    let (task, worker) = (|id: &str| TaskId::new(id).unwrap(), || row.name.clone());
    let commands = vec![
        Command::StartTask { task: task("a"), worker: worker() },
        Command::QueueTask { task: task("b"), worker: worker() },
        Command::QueueTask { task: task("c"), worker: worker() },
    ];
    let (plan, by) = (PlanId::new("p").unwrap(), Actor::worker("mill:1"));
    let record = Record { plan, by, commands, known_version: None, lease_seconds: Some(60) };
    desk.service.record(record).unwrap();
    let worker = &desk.get("/workers").ok()["workers"][0];
    let tasks = |list: &Value| -> Vec<Value> {
        list.as_array().unwrap().iter().map(|lease| lease["task"].clone()).collect()
    };
    assert_eq!(tasks(&worker["running"]), [json!("a")], "{worker}");
    assert_eq!(tasks(&worker["queued"]), [json!("b"), json!("c")], "{worker}");
}

#[test]
fn a_plan_that_names_no_queue_is_of_the_default_queue() {
    let desk = Desk::new();
    for id in ["one", "two"] {
        desk.plan(id, &["a"]);
        desk.post(&format!("/plans/{id}/actions/start"), &json!({})).ok();
    }
    desk.by(&desk.person, "PATCH", "/plans/two", &[], &json!({ "queue": "default" })).ok();
    let queues = desk.get("/queues").ok();
    let default = &queues["queues"][0];
    assert_eq!((&default["name"], &default["ready"]), (&json!("default"), &json!(2)), "{queues}");
    assert_eq!(desk.get("/plans?queue=default").ok()["total"], 2);
    desk.get("/plans?after=zzz").problem(400);
}

#[test]
fn all_that_is_wrong_with_a_plan_is_said_at_once() {
    let desk = Desk::new();
    let list = desk.post("/plans", &json!({ "plan": [1] })).problem(422);
    assert_eq!(list["detail"], json!("the text: line 1, column 1: must be an object, not a list"));
    let plan = json!({ "format": "waypost/1", "title": "Bad", "tasks": [
        { "id": "a", "depends_on": ["b"] }, { "id": "b", "depends_on": ["a"] }, { "id": "c", "depends_on": ["none"] },
    ] });
    let problem = desk.post("/plans", &json!({ "plan": plan })).problem(422);
    assert!(problem["problems"].as_array().unwrap().len() >= 2, "{problem}");
    let valid = desk.post("/validate", &json!({ "text": plan.to_string() })).problem(422);
    assert!(valid["problems"].as_array().unwrap().len() >= 2, "{valid}");
    desk.post("/plans", &json!({})).problem(400);
    desk.post("/plans", &json!({ "text": "{", "format": "native" })).problem(422);
}

#[test]
fn what_the_rules_of_a_plan_forbid_is_refused_in_words() {
    let desk = Desk::new();
    desk.plan("p", &["a", "b"]);
    let refusal = desk.post("/plans/p/actions/resume", &json!({})).problem(409);
    assert!(refusal["hint"].is_string(), "{refusal}");
    assert_eq!((&refusal["code"], &refusal["facts"]["phase"]), (&json!("wrong_phase"), &json!("draft")));
    desk.post("/plans/p/tasks/a/actions/progress", &json!({ "progress": "half" })).problem(409);
    desk.post("/plans/p/tasks/zzz/actions/done", &json!({})).problem(404);
    desk.post("/plans/p/actions/dance", &json!({})).problem(404);
    desk.post("/plans/none/actions/start", &json!({})).problem(404);
}

#[test]
fn a_path_names_plans_and_tasks_by_unambiguous_prefixes() {
    let desk = Desk::new();
    desk.plan("auth-jwt", &["alpha", "beta", "berry"]);
    desk.plan("auth-key", &["a"]);
    assert_eq!(desk.get("/plans/auth-j").ok()["id"], "auth-jwt");
    assert_eq!(desk.get("/plans/auth-j/tasks/al").ok()["id"], "alpha");
    desk.post("/plans/auth-j/tasks/al/actions/claim", &json!({})).ok();
    let several = desk.get("/plans/auth").problem(409);
    assert_eq!(several["code"], "ambiguous");
    assert_eq!(several["facts"]["candidates"], json!(["auth-jwt", "auth-key"]));
    assert_eq!(desk.get("/plans/auth-jwt/tasks/be").problem(409)["code"], "ambiguous");
    assert_eq!(desk.get("/plans/auth-jwt/tasks/none").problem(404)["code"], "no_such_task");
    assert_eq!(desk.get("/next?plan=none").problem(404)["code"], "no_such_plan");
    desk.by(&desk.person, "DELETE", "/plans/auth-j?purge=true", &[], &Value::Null).problem(404);
}

#[test]
fn a_request_that_does_not_fit_is_told_where_in_plain_words() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let edit = |operation: Value| desk.post("/plans/p/edits", &json!({ "operations": [operation] }));
    let cases = [
        (
            desk.post("/plans", &json!({ "txt": "x" })),
            "the body: `txt` is not a known field; use one of text, format, plan, id",
        ),
        (
            edit(json!({ "op": "remove", "task": "a", "detach": 3 })),
            "operations[0].detach: must be true or false, not `3`",
        ),
        (edit(json!({ "op": "dance" })), "operations[0].op cannot be \"dance\""),
        (edit(json!("x")), "operations[0] must be an object"),
        (desk.get("/plans?limit=many"), "limit: must be a whole number"),
        (desk.get("/plans?phase=zz"), "phase: \"zz\" is not a known value"),
        (desk.get("/plans/p/tasks?standing=ready,zz"), "standing: \"zz\" is not a known value"),
    ];
    for (answer, expected) in cases {
        assert_eq!(answer.problem(400)["detail"], expected);
    }
    let unlike =
        edit(json!({ "op": "add", "task": { "description": "x", "depends_on": "t1" } })).problem(422);
    assert_eq!(unlike["code"], "invalid", "{unlike}");
    assert!(unlike["detail"].as_str().unwrap().contains("depends_on"), "{unlike}");
    let hint = &desk.get("/plans/p/tasks?standing=zz").problem(400)["hint"];
    assert!(hint.as_str().unwrap().contains("blocked, ready"), "{hint}");
    let log = desk.get("/plans/p/tasks/a/log").problem(404);
    assert_eq!(log["detail"], "task a has never been started");
}

#[test]
fn what_others_wrote_cannot_control_the_terminal_of_the_reader() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let wicked = "\u{1b}]52;c;AAAA\u{7}\u{202e}\u{200b}";
    desk.by(&desk.person, "PATCH", "/plans/p", &[], &json!({ "title": wicked })).ok();
    let plan = desk.get("/plans/p");
    assert!(!plan.text.contains(waypost_text::is_unsafe_char), "{:?}", plan.text);
    assert_eq!(plan.ok()["title"], wicked, "programs get every character");
    let task = json!({ "description": "x", "depends_on": ["a\u{202e}\u{200b}"] });
    let add = json!({ "operations": [{ "op": "add", "task": task }] });
    let refused = desk.post("/plans/p/edits", &add);
    let problem = refused.problem(422);
    assert!(!problem["detail"].as_str().unwrap().contains(waypost_text::is_unsafe_char), "{problem}");
    // In ids, inputs and choices.
    let id = "g\u{202e}\u{200b}";
    let tasks = json!([
        { "id": id, "description": "x", "work": { "executor": "human", "inputs": { "key": wicked } } },
        { "id": "ask", "description": "x" },
    ]);
    let plan = json!({ "format": "waypost/1", "title": "Q", "tasks": tasks });
    desk.post("/plans", &json!({ "id": "q", "plan": plan })).ok();
    desk.post("/plans/q/actions/start", &json!({})).ok();
    desk.by(&desk.agent, "POST", "/plans/q/tasks/ask/actions/claim", &[], &json!({})).ok();
    let question = json!({ "question": "left?", "choices": [wicked, "right"] });
    desk.by(&desk.agent, "POST", "/plans/q/tasks/ask/actions/ask", &[], &question).ok();
    for path in
        ["/plans/q", "/plans/q/tasks", "/plans/q/preview", "/plans/q/tasks/ask", "/next", "/plans/q/graph"]
    {
        let found = desk.get(path);
        assert!(!found.text.contains(waypost_text::is_unsafe_char), "{path}: {:?}", found.text);
    }
    let neither = desk.answer("q", "ask", "neither");
    let path = format!("/plans/q/tasks/{}/actions/done", "g%E2%80%AE%E2%80%8B");
    for refused in [neither, desk.by(&desk.agent, "POST", &path, &[], &json!({}))] {
        let problem = refused.problem(refused.status);
        for words in ["detail", "hint"] {
            assert!(!problem[words].as_str().unwrap().contains(waypost_text::is_unsafe_char), "{problem}");
        }
    }
}

#[test]
fn a_reader_reads_an_agent_cannot_approve_and_only_a_person_purges() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let reader = |method: &str, path: &str, body: &Value| desk.by(&desk.reader, method, path, &[], body);
    assert_eq!(reader("GET", "/plans/p", &Value::Null).status, 200);
    reader("PATCH", "/plans/p", &json!({ "title": "x" })).problem(403);
    reader("POST", "/plans/p/actions/start", &json!({})).problem(403);
    reader("DELETE", "/plans/p", &Value::Null).problem(403);
    desk.post("/plans/p/actions/request-approval", &json!({})).ok();
    desk.by(&desk.agent, "POST", "/plans/p/actions/approve", &[], &json!({})).problem(403);
    desk.by(&desk.agent, "DELETE", "/plans/p?purge=true", &[], &Value::Null).problem(403);
    desk.post("/plans/p/actions/approve", &json!({ "note": "fine" })).problem(428);
    let preview = desk.get("/plans/p/preview").ok();
    let seen = json!({ "version": preview["version"], "digest": preview["digest"], "note": "fine" });
    for token in [&desk.agent, &desk.worker, &desk.reader, &desk.scraper] {
        desk.by(token, "POST", "/plans/p/actions/approve", &[], &seen).problem(403);
    }
    for part in ["version", "digest"] {
        let mut less = seen.clone();
        less.as_object_mut().unwrap().remove(part);
        desk.post("/plans/p/actions/approve", &less).problem(428);
    }
    let mut other = seen.clone();
    other["digest"] = json!("sha256:0");
    desk.post("/plans/p/actions/approve", &other).problem(409);
    let approved = desk.post("/plans/p/actions/approve", &seen).ok();
    assert_eq!(approved["id"], json!("p"));
    assert_eq!(desk.by(&desk.person, "DELETE", "/plans/p", &[], &Value::Null).status, 200);
    assert_eq!(desk.by(&desk.person, "DELETE", "/plans/p?purge=true", &[], &Value::Null).status, 204);
    desk.get("/plans/p").problem(404);
    desk.by(&desk.scraper, "GET", "/plans", &[], &Value::Null).problem(403);
}

#[test]
fn what_a_person_decides_about_hides_nothing() {
    let desk = Desk::new();
    let hidden = "é\u{e0163}é\u{e0175} \u{202e}";
    let tasks = json!([{ "id": "a", "description": hidden, "work": { "executor": "noop", "inputs": { "x": hidden } } }]);
    let plan = json!({ "format": "waypost/1", "title": hidden, "tasks": tasks });
    desk.post("/plans", &json!({ "id": "p", "plan": plan })).ok();
    desk.post("/plans/p/actions/request-approval", &json!({ "message": hidden })).ok();
    for path in ["/plans/p/preview", "/plans/p/approval"] {
        let shown = desk.get(path).ok().to_string();
        assert!(!shown.contains(['\u{e0163}', '\u{e0175}', '\u{202e}']), "{path}: {shown}");
        assert!(shown.contains(r"u{e0163}") && shown.contains(r"u{202e}"), "{path}: {shown}");
    }
    let warnings = desk.get("/plans/p/preview").ok()["groups"][0]["warnings"].to_string();
    assert!(warnings.contains("invisible characters"), "{warnings}");
}

#[test]
fn the_end_of_a_log_is_read_and_a_plan_leaves_in_any_format() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    desk.get("/plans/p/tasks/a/log").problem(404);
    desk.post("/plans/p/actions/start", &json!({})).ok();
    desk.post("/plans/p/tasks/a/actions/claim", &json!({})).ok();
    let (plan, task) = (PlanId::new("p").unwrap(), TaskId::new("a").unwrap());
    let path = waypost_store::log_path(&desk.folder.path().join("logs"), &plan, &task, 1);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "first\nsecond\n").unwrap();
    assert_eq!(desk.get("/plans/p/tasks/a/log").text, "first\nsecond\n");
    assert!(desk.get("/plans/p/tasks/a/log?tail=10").text.ends_with("second\n"));
    let end = desk.get("/plans/p/tasks/a/log?tail=10");
    assert!(!end.text.contains("first"));
    assert_eq!(end.head("x-waypost-log-bytes"), "13", "what is left out can be told");
    assert_eq!(end.head("x-waypost-log-line"), "2", "lines keep their numbers");
    // Of a huge one they are not counted: nobody waits for that.
    let huge = |bytes| std::fs::File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    huge(257 * 1024 * 1024);
    assert_eq!(desk.get("/plans/p/tasks/a/log?tail=10").head("x-waypost-log-line"), "");
    huge(13);
    assert_eq!(
        desk.get("/plans/p/tasks/a/log/times").ok()["times"],
        json!([]),
        "a log of an earlier version"
    );
    std::fs::write(waypost_store::log_times_path(&path), "0 1500\n6 61000\n13 9").unwrap();
    let times = desk.get("/plans/p/tasks/a/log/times?attempt=1").ok();
    let at = |second: &str| format!("1970-01-01T00:{second}Z");
    assert_eq!(
        times["times"],
        json!([{ "from": 0, "at": at("00:01.5") }, { "from": 6, "at": at("01:01") }]),
        "a crash cut the last one off"
    );
    desk.get("/plans/p/tasks/a/log/times?attempt=2").problem(404);
    // More than one piece, more than the longest end, and not of one byte a character.
    let long = "größer\n".repeat(1_000_000);
    std::fs::write(&path, &long).unwrap();
    let end = desk.get("/plans/p/tasks/a/log?tail=100000000");
    assert!(end.text.len() < long.len() && long.ends_with(&end.text), "{}", end.text.len());
    assert_eq!(end.head("x-waypost-log-bytes"), long.len().to_string());
    let whole = desk.get("/plans/p/tasks/a/log?whole=true");
    assert!(whole.text == long, "{}", whole.text.len());
    assert_eq!(whole.head("content-disposition"), "attachment");
    let bearer = desk.bearer();
    let headers = [("authorization", bearer.as_str()), ("accept-encoding", "gzip")];
    let packed = desk.send("GET", "/api/v1/plans/p/tasks/a/log?whole=true", &headers, Vec::new());
    assert_eq!((packed.status, packed.head("content-encoding")), (200, "gzip"), "it arrives to its end");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(desk.get("/plans/p/tasks/a/log?whole=true").text, "");
    for format in ["native", "clido", "markdown", "mermaid", "svg", "graphml", "dot"] {
        let file = desk.get(&format!("/plans/p/export?format={format}"));
        assert_eq!(file.status, 200, "{format}: {file:?}");
        assert!(file.head("content-disposition").starts_with("attachment"), "{format}");
    }
    desk.get("/plans/p/export?format=smoke").problem(400);
}

#[test]
fn whoever_read_a_version_learns_what_authors_changed_since() {
    let desk = Desk::new();
    desk.plan("p", &["a", "b"]);
    let read = desk.get("/plans/p").ok()["version"].as_u64().unwrap();
    let since = || desk.get(&format!("/plans/p/approval?since={read}")).ok()["since_read"].clone();
    assert_eq!(since(), json!({ "version": read, "differences": [], "differences_total": 0 }));
    let set = json!({ "description": "safe\u{202e}gnp.exe" });
    let edit = json!({ "operations": [{ "op": "revise", "task": "a", "set": set }] });
    desk.post("/plans/p/edits", &edit).ok();
    // That it runs is no change of what was read.
    desk.post("/plans/p/actions/start", &json!({})).ok();
    assert_eq!(since()["differences_total"], json!(1));
    let difference = &since()["differences"][0];
    assert_eq!((&difference["task"], &difference["field"]), (&json!("a"), &json!("description")));
    assert_eq!(difference["after"], json!("safe\\u{202e}gnp.exe"), "nothing is hidden");
    assert_eq!(desk.get("/plans/p/approval").ok()["since_read"], Value::Null);
}

#[test]
fn a_comparison_with_an_earlier_version_tells_what_a_restore_would_do() {
    let desk = Desk::new();
    desk.plan("p", &["a", "b", "c"]);
    let edit = |operation: Value| desk.post("/plans/p/edits", &json!({ "operations": [operation] })).ok();
    desk.post("/plans/p/actions/start", &json!({})).ok();
    edit(json!({ "op": "revise", "task": "a", "set": { "description": "other" } }));
    edit(json!({ "op": "remove", "task": "c" }));
    edit(json!({ "op": "add", "task": { "id": "d", "description": "d" } }));
    for task in ["a", "b", "d"] {
        let result = json!({ "result": format!("{task} is done"), "output": { "by": task } });
        desk.post(&format!("/plans/p/tasks/{task}/actions/done"), &result).ok();
    }
    let latest = desk.get("/plans/p").ok()["version"].as_u64().unwrap();
    let found = desk.get(&format!("/plans/p/diff?from={latest}&to=1")).ok();
    let expected = json!({ "reset": ["a"], "added": ["c"], "removed": ["d"], "outputs_lost": ["a", "d"] });
    assert_eq!(found["restore"], expected);
    assert_eq!(desk.get(&format!("/plans/p/diff?from=1&to={latest}")).ok()["restore"], Value::Null);
    desk.by(&desk.person, "POST", "/plans/p/restore", &[], &json!({ "version": 1 })).ok();
    let standing = |task: &str| desk.get(&format!("/plans/p/tasks/{task}")).ok()["state"]["result"].clone();
    assert_eq!((standing("a"), standing("b")), (Value::Null, json!("b is done")), "as it was told");
}

#[test]
fn whatever_goes_wrong_is_a_problem_in_words() {
    let desk = Desk::new();
    desk.get("/nowhere").problem(404);
    desk.get("/plans/nowhere").problem(404);
    desk.by(&desk.person, "PUT", "/plans", &[], &json!({})).problem(405);
    let nobody = desk.send("GET", "/api/v1/plans", &[], Vec::new());
    nobody.problem(401);
    assert_eq!(nobody.head("www-authenticate"), "Bearer");
    let bearer = desk.bearer();
    let kind = |kind: &str, body: Vec<u8>| {
        let headers = [("authorization", bearer.as_str()), ("content-type", kind)];
        desk.send("POST", "/api/v1/plans", &headers, body)
    };
    kind("text/plain", b"hello".to_vec()).problem(415);
    kind("application/json", b"{".to_vec()).problem(400);
    kind("application/json", vec![b' '; BODY_BYTES_MAX + 1]).problem(413);
    let many = kind("application/json", b"{".repeat(BODY_PARTS_MAX + 1));
    assert!(many.problem(413).to_string().contains("more than 100000 objects and lines"), "{many:?}");
    let strange = [("authorization", bearer.as_str()), ("host", "evil.example")];
    desk.send("GET", "/api/v1/plans", &strange, Vec::new()).problem(403);
}

#[test]
fn answers_are_compressed_for_those_who_can_read_it_but_streams_are_not() {
    let desk = Desk::new();
    let ask = |path: &str, encoding: &str| {
        let headers = [("authorization", desk.bearer()), ("accept-encoding", encoding.to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        desk.send("GET", path, &headers, Vec::new())
    };
    assert_eq!(ask("/api/v1/openapi.json", "gzip").head("content-encoding"), "gzip");
    assert_eq!(ask("/assets/app.js", "br, gzip").head("content-encoding"), "gzip");
    assert_eq!(ask("/api/v1/openapi.json", "identity").head("content-encoding"), "");
    let request = hyper::Request::get(format!("http://{}/api/v1/events", desk.at))
        .header("authorization", desk.bearer())
        .header("accept-encoding", "gzip, br")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = desk.runtime.block_on(desk.client.request(request)).unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(!response.headers().contains_key("content-encoding"));
}

#[test]
fn the_document_describes_what_is_there() {
    let desk = Desk::new();
    let document = openapi();
    assert_eq!(desk.get("/openapi.json").ok(), document);
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1").unwrap();
        let path = path.replace("{plan}", "none").replace("{task}", "none").replace("{version}", "1");
        for method in ["get", "post", "put", "patch", "delete"] {
            let is_said = operations.get(method).is_some();
            if is_said && path == "/events" {
                // It does not end; that it is there is seen where it is listened to.
                continue;
            }
            let answer = desk.by(&desk.person, &method.to_uppercase(), &path, &[], &json!({}));
            assert_ne!(answer.status, 500, "{method} {path}: {answer:?}");
            assert_eq!(answer.status != 405, is_said, "{method} {path}: {answer:?}");
            assert!(!answer.text.contains("no such path"), "{method} {path}: {answer:?}");
        }
    }
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&document).unwrap());
    if std::env::var_os("WAYPOST_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&file, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == text,
        "docs/openapi.json is old: WAYPOST_UPDATE=1 cargo test -p waypost-http document writes it anew"
    );
}

#[test]
fn what_can_be_worked_on_is_listed_taken_and_ended_by_whoever_took_it() {
    let desk = Desk::new();
    desk.plan("p", &["a", "b"]);
    desk.get("/next?plan=none").problem(404);
    desk.get("/next?limit=0").problem(400);
    desk.post("/plans/p/actions/start", &json!({})).ok();
    let listed = desk.get("/next").ok();
    assert_eq!((&listed["tasks"][0]["plan"], &listed["tasks"][0]["id"]), (&json!("p"), &json!("a")));
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1);
    desk.by(&desk.reader, "POST", "/next", &[], &json!({})).problem(403);
    let take = |body: &Value| desk.by(&desk.agent, "POST", "/next", &[], body).ok();
    assert_eq!(take(&json!({ "queue": "elsewhere" }))["task"], Value::Null);
    let taken = take(&json!({ "plan": "p" }));
    assert_eq!((&taken["plan"], &taken["task"]["id"]), (&json!("p"), &json!("a")));
    assert_eq!(taken["task"]["state"]["worker"], json!("agent:planner"));
    assert_eq!(take(&json!({}))["task"], Value::Null, "nothing else is ready");
    let act = |action: &str, body: Value| {
        desk.by(&desk.agent, "POST", &format!("/plans/p/tasks/a/actions/{action}"), &[], &body)
    };
    act("ask", json!({})).problem(422);
    act("ask", json!({ "question": "which?", "choices": ["this", "that"] })).ok();
    let asking = desk.get("/plans/p").ok();
    assert_eq!(asking["questions"][0]["choices"], json!(["this", "that"]), "{asking}");
    act("answer", json!({ "answer": "this" })).problem(403);
    desk.answer("p", "a", "this").ok();
    assert_eq!(take(&json!({}))["task"]["state"]["attempt"], json!(2));
    let by_other =
        desk.by(&desk.worker, "POST", "/plans/p/tasks/a/actions/done", &[], &json!({})).problem(409);
    assert_eq!(by_other["code"], json!("already_running"), "only the holder and people report");
    assert_eq!(act("claim", json!({})).ok()["attempt"], json!(2), "the holder renews its lease");
    assert_eq!(act("done", json!({ "attempt": 1 })).problem(409)["code"], json!("stale_attempt"));
    assert_eq!(act("done", json!({ "attempt": 2 })).ok()["standing"], json!("done"));
    assert_eq!(desk.get("/next").ok()["tasks"][0]["id"], json!("b"));
    let of_b = |by: &str, action: &str, body: Value| {
        desk.by(by, "POST", &format!("/plans/p/tasks/b/actions/{action}"), &[], &body).ok();
    };
    take(&json!({}));
    of_b(&desk.agent, "fail", json!({ "error": "the disk broke" }));
    of_b(&desk.person, "retry", json!({}));
    assert_eq!(take(&json!({}))["last_error"], json!("the disk broke"), "whoever tries it next is told");
}

#[test]
fn an_edit_takes_any_place_and_replies_with_what_its_author_should_know() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let edit = |operation: Value| desk.post("/plans/p/edits", &json!({ "operations": [operation] }));
    let added = edit(json!({ "op": "add", "task": { "description": "new" }, "first": true })).ok();
    assert_eq!(added["added"], json!(["t1"]));
    let ids = desk.get("/plans/p/tasks").ok()["tasks"].clone();
    assert_eq!((&ids[0]["id"], &ids[1]["id"]), (&json!("t1"), &json!("a")));
    edit(json!({ "op": "move", "task": "a", "first": true, "after": "t1" })).problem(400);
    let work = json!({ "executor": "robot", "inputs": {} });
    let unknown = edit(json!({ "op": "revise", "task": "a", "set": { "work": work } })).ok();
    assert!(unknown["notes"].to_string().contains("robot"), "{unknown}");
    let waits = json!([{ "plan": "later", "task": "x" }]);
    let warned = edit(json!({ "op": "revise", "task": "t1", "set": { "depends_on": waits } })).ok();
    assert!(warned["warnings"].to_string().contains("later"), "{warned}");
    let text =
        json!({ "format": "waypost/1", "title": "p", "tasks": [{ "id": "a", "description": "other" }] });
    let updated =
        desk.by(&desk.agent, "PUT", "/plans/p/content", &[], &json!({ "text": text.to_string() })).ok();
    assert_eq!((&updated["approval_voided"], &updated["again"]), (&json!(false), &json!([])));
    assert!(updated["changes"].is_object() && updated["notes"].is_array(), "{updated}");
}

#[test]
fn the_list_tells_documents_from_plans_with_tasks() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    desk.plan("words", &[]);
    let listed = desk.get("/plans?sort=id").ok();
    let documents = |at: usize| (listed["plans"][at]["id"].clone(), listed["plans"][at].get("document"));
    assert_eq!(documents(0), (json!("p"), None));
    assert_eq!(documents(1), (json!("words"), Some(&json!(true))));
}

#[test]
fn a_text_with_two_plans_is_refused_everywhere_and_writes_nothing() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    let before = desk.get("/plans/p").ok();
    let one = |goal: &str| json!({ "goal": goal, "tasks": [{ "id": "a", "description": "d" }] });
    let objects = format!("{}\n{}\n", one("g"), one("h"));
    let fences = format!("```json\n{}\n```\nor\n```json\n{}\n```\n", one("g"), one("h"));
    for text in [objects, fences] {
        let body = json!({ "text": text });
        for (method, path) in [("PUT", "/plans/p/content"), ("POST", "/plans"), ("POST", "/validate")] {
            let problem = desk.by(&desk.person, method, path, &[], &body).problem(400);
            assert_eq!(problem["code"], "not_one_plan", "{path}: {problem}");
            assert_eq!(problem["detail"], "the text holds 2 plans, and one is needed", "{path}");
        }
    }
    assert_eq!(desk.get("/plans/p").ok(), before);
    assert_eq!(desk.get("/plans").ok()["plans"].as_array().map(Vec::len), Some(1));
}

/// A plan with a task for a person, and tasks of which `b` waits for `a`.
fn gated(desk: &Desk) {
    let tasks = json!([
        { "id": "gate", "description": "deploy?", "work": { "executor": "human" } },
        { "id": "a", "description": "a" },
        { "id": "b", "description": "b", "depends_on": ["a"] },
    ]);
    let plan = json!({ "format": "waypost/1", "title": "P", "tasks": tasks });
    desk.by(&desk.person, "POST", "/plans", &[], &json!({ "id": "p", "plan": plan })).ok();
    desk.post("/plans/p/actions/start", &json!({})).ok();
}

#[test]
fn a_workers_token_claims_and_reports_on_what_it_holds_and_does_nothing_else() {
    let desk = Desk::new();
    gated(&desk);
    let send = |method: &str, path: &str, body: Value| desk.by(&desk.worker, method, path, &[], &body);
    let act = |task: &str, action: &str, body: Value| {
        send("POST", &format!("/plans/p/tasks/{task}/actions/{action}"), body)
    };
    assert_eq!(send("GET", "/plans/p", Value::Null).status, 200);
    let before = desk.get("/plans/p").ok()["version"].clone();
    let plan = json!({ "format": "waypost/1", "title": "Q", "tasks": [] });
    let edit = json!({ "operations": [{ "op": "add", "task": { "description": "more" } }] });
    let refused = [
        send("POST", "/plans", json!({ "plan": plan })),
        send("PATCH", "/plans/p", json!({ "title": "x" })),
        send("DELETE", "/plans/p", Value::Null),
        send("POST", "/plans/p/edits", edit),
        send("PUT", "/plans/p/content", json!({ "text": plan.to_string() })),
        send("POST", "/plans/p/restore", json!({ "version": 1 })),
        act("a", "skip", json!({})),
        act("a", "retry", json!({})),
        act("a", "cancel", json!({})),
    ];
    let actions = ["request-approval", "reject", "start", "pause", "cancel", "retry", "archive", "finish"];
    let on_plan = actions.map(|action| send("POST", &format!("/plans/p/actions/{action}"), json!({})));
    for answer in refused.into_iter().chain(on_plan) {
        assert_eq!(answer.problem(403)["code"], json!("not_for_workers"), "{answer:?}");
    }
    let reports = [
        ("done", "result"),
        ("fail", "error"),
        ("release", "reason"),
        ("ask", "question"),
        ("progress", "progress"),
    ];
    for (action, field) in reports {
        let body = json!({ field: "x" });
        assert_eq!(act("a", action, body).problem(409)["code"], json!("wrong_status"), "nobody works on it");
    }
    assert_eq!(desk.get("/plans/p").ok()["version"], before);

    act("a", "claim", json!({})).ok();
    act("a", "claim", json!({ "lease_seconds": 60 })).ok();
    act("a", "progress", json!({ "progress": "half" })).ok();
    act("a", "skip", json!({})).problem(403);
    act("a", "release", json!({})).ok();
    act("a", "claim", json!({})).ok();
    act("a", "ask", json!({ "question": "left?" })).ok();
    desk.answer("p", "a", "yes").ok();
    // An attempt of someone else is not its own, whoever knows the number.
    desk.by(&desk.agent, "POST", "/plans/p/tasks/a/actions/claim", &[], &json!({})).ok();
    for (action, field) in reports {
        let body = json!({ "attempt": 3, field: "x" });
        assert_eq!(act("a", action, body).problem(409)["code"], json!("already_running"), "{action}");
    }
    desk.by(&desk.agent, "POST", "/plans/p/tasks/a/actions/release", &[], &json!({})).ok();
    assert_eq!(send("POST", "/next", json!({ "plan": "p" })).ok()["task"]["id"], json!("a"));
    assert_eq!(act("a", "done", json!({})).ok()["standing"], json!("done"));
    act("b", "claim", json!({})).ok();
    assert_eq!(act("b", "fail", json!({ "error": "it broke" })).ok()["standing"], json!("failed"));
    act("b", "retry", json!({})).problem(403);
}

#[test]
fn only_a_person_ends_a_task_for_people() {
    let desk = Desk::new();
    gated(&desk);
    for token in [&desk.agent, &desk.worker] {
        let act = |action: &str, body: Value| {
            desk.by(token, "POST", &format!("/plans/p/tasks/gate/actions/{action}"), &[], &body)
        };
        for (action, body) in [
            ("claim", json!({})),
            ("done", json!({})),
            ("fail", json!({ "error": "no" })),
            ("skip", json!({})),
            ("cancel", json!({})),
        ] {
            let problem = act(action, body).problem(403);
            assert_eq!(problem["code"], json!("human_gate"), "{action}: {problem}");
            let hint =
                "ask a person to answer task gate of plan p, in the dashboard or with a person's token";
            assert_eq!(problem["hint"], json!(hint));
        }
        let answer = act("answer", json!({ "answer": "yes" })).problem(403);
        assert_eq!(answer["code"], json!("needs_person"), "{answer}");
    }
    desk.by(&desk.reader, "POST", "/plans/p/tasks/gate/actions/answer", &[], &json!({})).problem(403);
    assert_eq!(desk.get("/plans/p/tasks/gate").ok()["state"]["gate"], Value::Null);
    let done = desk.answer("p", "gate", "yes").ok();
    assert_eq!(done["standing"], json!("done"));
    let history = desk.get("/plans/p/history").ok().to_string();
    assert!(history.contains("vouched for gate"), "{history}");
}

#[test]
fn an_answer_counts_only_for_the_question_that_was_read() {
    let desk = Desk::new();
    gated(&desk);
    let read = || desk.get("/plans/p/tasks/gate").ok()["question_digest"].take();
    let act = |action: &str, body: Value| desk.post(&format!("/plans/p/tasks/gate/actions/{action}"), &body);
    let unnamed = act("answer", json!({ "answer": "yes" })).problem(428);
    assert_eq!(unnamed["code"], json!("seen_missing"), "{unnamed}");
    let seen = read();
    let inbox = desk.get("/inbox").ok();
    let is_gate = |item: &&Value| item["kind"] == "task";
    let listed = inbox["items"].as_array().unwrap().iter().find(is_gate).unwrap();
    assert_eq!(listed["digest"], seen, "the inbox names it too");
    let revise = json!({ "operations": [{ "op": "revise", "task": "gate", "set": { "description": "delete it all?" } }] });
    desk.by(&desk.agent, "POST", "/plans/p/edits", &[], &revise).ok();
    for (action, body) in
        [("answer", json!({ "answer": "yes", "digest": seen })), ("done", json!({ "digest": seen }))]
    {
        let problem = act(action, body).problem(409);
        assert_eq!(problem["code"], json!("changed_since_seen"), "{action}: {problem}");
        assert_eq!(problem["facts"]["question"], json!("delete it all?"), "{problem}");
    }
    assert_eq!(desk.get("/plans/p/tasks/gate").ok()["standing"], json!("ready"));
    // What was changed needs approval first.
    let preview = desk.get("/plans/p/preview").ok();
    let seen = json!({ "version": preview["version"], "digest": preview["digest"] });
    desk.post("/plans/p/actions/approve", &seen).ok();
    let version = desk.get("/plans/p").ok()["version"].to_string();
    let match_version = [("if-match", format!("\"{version}\""))];
    let headers: Vec<(&str, &str)> =
        match_version.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let path = "/plans/p/tasks/gate/actions/answer";
    desk.by(&desk.person, "POST", path, &headers, &json!({ "answer": "yes" })).ok();
}

#[test]
fn hints_name_what_a_caller_over_http_can_do_and_no_commands() {
    let desk = Desk::new();
    gated(&desk);
    let by_agent = |path: &str| desk.by(&desk.agent, "POST", path, &[], &json!({}));
    let approve = by_agent("/plans/p/actions/approve").problem(403);
    let hint = "ask a person to approve plan p, in the dashboard or with a person's token";
    assert_eq!((&approve["code"], &approve["hint"]), (&json!("needs_person"), &json!(hint)));
    desk.post("/plans/p/actions/pause", &json!({ "reason": "wrong database" })).ok();
    let resume = by_agent("/plans/p/actions/resume").problem(409);
    assert_eq!((&resume["code"], &resume["hint"]), (&json!("stopped_by_person"), &json!("ask ada")));
}

#[test]
fn an_action_takes_only_what_it_needs() {
    let desk = Desk::new();
    gated(&desk);
    let pause = desk.post("/plans/p/actions/pause", &json!({ "digest": "x" })).problem(400);
    let told = (&pause["code"], &pause["detail"], &pause["hint"]);
    assert_eq!(told, (&json!("bad_request"), &json!("pause takes no digest"), &json!("pause takes reason")));
    let done = desk.post("/plans/p/tasks/a/actions/done", &json!({ "lease_seconds": 5 })).problem(400);
    assert_eq!(done["detail"], json!("done takes no lease_seconds"));
    assert_eq!(desk.get("/plans/p").ok()["version"], json!(2));
}

#[test]
fn what_is_wrong_has_the_code_of_the_other_front_ends() {
    let desk = Desk::new();
    gated(&desk);
    let edit = |operation: Value| desk.post("/plans/p/edits", &json!({ "operations": [operation] }));
    let tasks = [
        json!({ "id": "", "description": "x" }),
        json!({ "id": "x".repeat(300), "description": "x" }),
        json!({ "description": 5 }),
        json!({ "description": "x", "depends_on": "a" }),
        json!({ "description": "x", "depends_on": [""] }),
    ];
    for task in tasks {
        let problem = edit(json!({ "op": "add", "task": task })).problem(422);
        assert_eq!(problem["code"], json!("invalid"), "{task}");
    }
    for operation in [json!({ "op": "move", "task": "a" }), json!({ "op": "revise", "task": "a", "set": {} })]
    {
        assert_eq!(edit(operation.clone()).problem(400)["code"], json!("bad_request"), "{operation}");
    }
    edit(json!({ "op": "move", "task": "a", "last": true })).ok();
    edit(json!({ "op": "revise", "task": "a", "set": { "notes": "n" } })).ok();
    edit(json!({ "op": "revise", "task": "a", "set": { "notes": null } })).ok();
    assert_eq!(desk.get("/plans/p/tasks/a").ok()["notes"], Value::Null);
    desk.by(&desk.person, "PATCH", "/plans/p", &[], &json!({})).problem(400);
    assert_eq!(desk.get("/plans/p/tasks?after=nope").problem(404)["code"], json!("no_such_task"));
    let json_only = [("accept", "application/json")];
    let events =
        |query: &str| desk.by(&desk.person, "GET", &format!("/events?{query}"), &json_only, &Value::Null);
    assert_eq!(events("plan=nope").problem(404)["code"], json!("no_such_plan"));
    for query in ["limit=0", "limit=100000", "newest=0"] {
        assert_eq!(events(query).problem(400)["code"], json!("bad_request"), "{query}");
    }
}

#[test]
fn a_wrong_value_in_an_edit_is_named_with_its_place_in_plain_words() {
    let desk = Desk::new();
    gated(&desk);
    let add = |task: Value| json!({ "op": "add", "task": task });
    let revise = |set: Value| json!({ "op": "revise", "task": "a", "set": set });
    let fine = add(json!({ "description": "fine" }));
    let cases = [
        (add(json!({ "description": "" })), 422, "operations[2].task.description is missing"),
        (add(json!({ "description": 5 })), 422, "operations[2].task.description: must be text, not `5`"),
        (
            add(json!({ "description": "x", "depends_on": "a" })),
            422,
            "operations[2].task.depends_on: must be a list, not \"a\"",
        ),
        (revise(json!({ "description": 5 })), 422, "operations[2].set.description: must be text, not `5`"),
        (revise(json!({ "tools": 5 })), 422, "operations[2].set.tools: must be a list, not `5`"),
        (
            revise(json!({ "priority": "high" })),
            422,
            "operations[2].set.priority: must be a whole number from -2147483648 to 2147483647, not \"high\"",
        ),
        (revise(json!({ "complexity": 5 })), 422, "operations[2].set.complexity: must be text, not `5`"),
        (
            revise(json!({ "complexity": "huge" })),
            422,
            "operations[2].set.complexity: `huge` is not a known value; use one of low, medium, high",
        ),
        (json!({ "op": "remove", "task": 5 }), 400, "operations[2].task: must be text, not `5`"),
        (json!({ "op": "remove" }), 400, "operations[2]: `task` is missing"),
        (json!({ "op": 5 }), 400, "operations[2].op must be text"),
        (json!({ "op": "rename" }), 400, "operations[2].op cannot be \"rename\""),
        (json!({}), 400, "operations[2].op is missing"),
        (json!(5), 400, "operations[2] must be an object"),
    ];
    for (operation, status, detail) in cases {
        let edits = json!({ "operations": [fine, fine, operation] });
        let problem = desk.post("/plans/p/edits", &edits).problem(status);
        assert_eq!(problem["detail"], json!(detail), "{problem}");
        let code = if status == 422 { "invalid" } else { "bad_request" };
        assert_eq!(problem["code"], json!(code), "{problem}");
    }
    // All of one task at once.
    let set = json!({ "timeout_seconds": 1.5, "locks": [{ "key": 1 }], "retry": { "attempts": 3, "backoff_seconds": "x" } });
    let problem = desk.post("/plans/p/edits", &json!({ "operations": [revise(set)] })).problem(422);
    let messages: Vec<&str> =
        problem["problems"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect();
    let places: Vec<&str> = messages.iter().filter_map(|message| message.split(": ").next()).collect();
    assert_eq!(
        places,
        [
            "operations[0].set.timeout_seconds",
            "operations[0].set.locks[0].key",
            "operations[0].set.retry.backoff_seconds",
        ],
        "{problem}"
    );
}

#[test]
fn all_wrong_operations_of_an_edit_are_named_at_once() {
    let desk = Desk::new();
    gated(&desk);
    let remove = |task: &str| json!({ "op": "remove", "task": task });
    let messages = |operations: Value, status: u16| -> Vec<String> {
        let problem = desk.post("/plans/p/edits", &json!({ "operations": operations })).problem(status);
        let problems = problem["problems"].as_array().unwrap_or_else(|| panic!("{problem}"));
        assert_eq!(problem["detail"], json!(format!("{} operations are wrong", problems.len())));
        let message = |one: &Value| {
            assert_ne!(one["hint"].as_str().unwrap_or_default(), "", "{problem}");
            one["message"].as_str().unwrap().to_owned()
        };
        problems.iter().map(message).collect()
    };
    // Their shapes, whatever is wrong with each.
    let operations = json!([
        { "op": "dance" },
        remove("a"),
        { "op": "revise", "task": "a", "set": { "priority": "high" } },
        { "op": "add", "task": { "description": "x", "depend_on": ["a"] } },
        5,
    ]);
    assert_eq!(
        messages(operations, 422),
        [
            "operations[0].op cannot be \"dance\"",
            "operations[2].set.priority: must be a whole number from -2147483648 to 2147483647, not \"high\"",
            "operations[3].task.depend_on is not a field of a new task",
            "operations[4] must be an object",
        ]
    );
    let wrong = |set: Value| json!({ "op": "revise", "task": "a", "set": set });
    let operations = json!([wrong(json!({ "skip": 1 })), wrong(json!({ "skip": 2 }))]);
    assert_eq!(messages(operations, 422).len(), 2);
    // What the plan refuses.
    assert_eq!(
        messages(json!([remove("x"), { "op": "add", "task": { "description": "fine" } }, remove("y")]), 404),
        ["operations[0]: no task is called x", "operations[2]: no task is called y"]
    );
}

#[test]
fn what_does_not_start_yet_is_said_with_the_new_plan_and_the_offered_task() {
    let desk = Desk::new();
    let work = json!([{ "id": "a", "description": "a", "work": { "executor": "x" } }]);
    let plan = json!({ "format": "waypost/1", "title": "P", "tasks": work });
    let made = desk.by(&desk.agent, "POST", "/plans", &[], &json!({ "plan": plan })).ok();
    assert_eq!(made["awaits_approval"], json!(true), "{made}");
    gated(&desk);
    desk.post("/plans/p/actions/pause", &json!({})).ok();
    let offered = desk.get("/next?plan=p").ok();
    assert_eq!(offered["tasks"][0]["waits_for"], json!(["the plan, which is paused"]), "{offered}");
}

#[test]
fn who_asks_learns_that_the_folder_is_not_trusted() {
    assert_eq!(Desk::new().get("/me").ok()["untrusted"], Value::Null);
    let not_trusted = NotTrusted { file: ".waypost/config.toml".to_owned(), changed: Vec::new() };
    let desk = Desk::with(Config { not_trusted: Some(not_trusted), ..Config::default() });
    let untrusted = desk.get("/me").ok()["untrusted"].clone();
    assert!(untrusted.as_str().unwrap().starts_with(".waypost/config.toml is not trusted"), "{untrusted}");
}

#[test]
fn a_plan_that_a_worker_refuses_says_why_and_what_to_do() {
    let desk = Desk::new();
    desk.plan("p", &["a"]);
    desk.post("/plans/p/actions/start", &json!({})).ok();
    let refusal = StartRefusal {
        worker: "mill:1".to_owned(),
        reason: StartRefusalReason::NoRecord,
        digest: String::new(),
        differences: Vec::new(),
    };
    let (plan, by) = (PlanId::new("p").unwrap(), Actor::worker("mill:1"));
    let commands = vec![Command::RefuseStart(Box::new(refusal))];
    desk.service.record(Record { plan, by, commands, known_version: None, lease_seconds: None }).unwrap();
    for path in ["/plans/p/approval", "/plans/p"] {
        let found = desk.get(path).ok();
        let approval = if path == "/plans/p" { &found["approval"] } else { &found };
        let refused = &approval["start_refusals"][0];
        assert_eq!(refused["reason"], json!("no_record"), "{found}");
        assert_eq!(refused["message"], json!("nobody has approved plan p"));
        let hint = "a person approves plan p, in the dashboard or with a person's token";
        assert_eq!(refused["hint"], json!(hint));
    }
}

#[test]
fn a_plan_says_what_needs_somebody_most_and_the_inbox_lists_it() {
    let desk = Desk::new();
    let tasks = json!([
        { "id": "a", "description": "Fetch" },
        { "id": "b", "description": "Build", "depends_on": ["a"] },
    ]);
    desk.post("/plans", &json!({ "id": "p", "plan": { "title": "P", "tasks": tasks } })).ok();
    desk.post("/plans/p/actions/start", &json!({})).ok();
    let states =
        || [desk.get("/plans").ok()["plans"][0]["state"].clone(), desk.get("/plans/p").ok()["state"].clone()];
    for state in states() {
        assert_eq!((&state["name"], &state["label"]), (&json!("idle"), &json!("idle: waits for an agent")));
        assert_eq!(state["needs_you"], false);
    }
    assert_eq!(desk.get("/plans?needs_you=true").ok()["total"], 0);
    desk.post("/plans/p/tasks/a/actions/fail", &json!({ "error": "no disk" })).ok();
    let failed =
        json!({ "name": "failed", "label": "failed", "detail": "Fetch: no disk", "needs_you": true });
    assert_eq!(states(), [failed.clone(), failed]);
    assert_eq!(desk.get("/plans?needs_you=true").ok()["plans"][0]["id"], "p");
    let inbox = desk.get("/inbox").ok();
    assert_eq!(inbox["total"], 1);
    let item = &inbox["items"][0];
    assert_eq!(
        (&item["kind"], &item["plan"], &item["tasks"]),
        (&json!("failure"), &json!("p"), &json!(["a"]))
    );
    assert_eq!((&item["error"], &item["holds_up"]), (&json!("no disk"), &json!(1)));
}
