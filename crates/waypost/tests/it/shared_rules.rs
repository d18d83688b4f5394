//! Rules that hold whichever front end is used: who adds a task gets an id that nobody else gets, now or later; only the
//! holder of an attempt reports on it; a report renews the lease and never shortens it; an answer speaks the language of
//! the front end that it came through.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use waypost_core::Timestamp;
use waypost_store::{Durability, LeaseFilter, open};

use crate::front_ends::{Caller, FrontEnds, McpClient, Reply, Request};
use Caller::{Agent, OtherAgent, Person, Worker};

/// The longest that something may take to come about on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A plan of a person with the tasks `t1`, `t2` and `t3`.
fn create(front_ends: &FrontEnds, plan: &str) {
    let words = ["new", "P", "--id", plan, "--task", "one", "--task", "two", "--task", "three"];
    front_ends.cli(Person, &words).accepted();
}

fn task_ids(front_ends: &FrontEnds, plan: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut page = front_ends.read(&format!("/plans/{plan}/tasks?limit=1000"));
    loop {
        let rows = page["tasks"].as_array().unwrap();
        ids.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { return ids };
        page = front_ends.read(&format!("/plans/{plan}/tasks?limit=1000&after={next}"));
    }
}

fn add_to(plan: &str) -> Value {
    json!({ "plan": plan, "ops": [{ "op": "add", "description": "more" }] })
}

fn add_over_http(plan: &str) -> Request {
    let operation = json!({ "op": "add", "task": { "description": "more" } });
    Request::post(format!("/plans/{plan}/edits"), json!({ "operations": [operation] }))
}

/// The id that the answer to an addition names: the answers of the front ends have a shape of their own.
#[track_caller]
fn added(reply: Reply) -> String {
    let answer = reply.accepted();
    let (cli, mcp, http) = (&answer["task"], &answer["added"], &answer["added"][0]);
    let named = [cli, mcp, http].into_iter().find_map(Value::as_str);
    named.unwrap_or_else(|| panic!("no id in {answer}")).to_owned()
}

/// Nothing was refused, each answer names an id of its own, and all of them are in the plan.
#[track_caller]
fn check_all_kept(front_ends: &FrontEnds, plan: &str, replies: Vec<Reply>) {
    let total = replies.len();
    let refused: Vec<String> =
        replies.iter().filter(|reply| matches!(reply, Reply::Refused { .. })).map(Reply::code).collect();
    assert!(refused.is_empty(), "{} of {total} refused, for example {}", refused.len(), refused[0]);
    let named: BTreeSet<String> = replies.into_iter().map(added).collect();
    assert_eq!(named.len(), total, "two got the same id");
    let kept = task_ids(front_ends, plan);
    assert!(named.is_subset(&kept), "{:?} are missing", named.difference(&kept).collect::<Vec<_>>());
    assert_eq!(kept.len(), total + 3, "nothing is there that nobody added");
}

#[test]
fn four_mcp_servers_add_tasks_to_one_plan_and_all_are_kept() {
    const SERVERS: usize = 4;
    const ADDS: usize = 250;
    let front_ends = FrontEnds::start();
    create(&front_ends, "p");
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let servers: Vec<_> = (0..SERVERS)
            .map(|number| {
                let workspace = &front_ends.workspace;
                scope.spawn(move || {
                    // All in flight at once.
                    let mut client = McpClient::start(workspace, &format!("agent-{number}"));
                    client.call_all("plan_edit", vec![add_to("p"); ADDS])
                })
            })
            .collect();
        servers.into_iter().flat_map(|server| server.join().unwrap()).collect()
    });
    assert_eq!(replies.len(), SERVERS * ADDS);
    check_all_kept(&front_ends, "p", replies);
}

#[test]
fn one_mcp_server_adds_tasks_of_many_calls_in_flight_and_all_are_kept() {
    const CALLS: usize = 20;
    let front_ends = FrontEnds::start();
    create(&front_ends, "p");
    let replies = front_ends.mcp(Agent).call_all("plan_edit", vec![add_to("p"); CALLS]);
    check_all_kept(&front_ends, "p", replies);
}

#[test]
fn requests_to_the_http_api_add_tasks_at_the_same_time_and_all_are_kept() {
    // Of more requests at once, a server may refuse some of one token with 429 and a time to wait.
    const AT_ONCE: usize = 10;
    let front_ends = FrontEnds::start();
    create(&front_ends, "p");
    let wave = || front_ends.http_all(Agent, vec![add_over_http("p"); AT_ONCE]);
    let replies = [wave(), wave()].into_iter().flatten().collect();
    check_all_kept(&front_ends, "p", replies);
}

#[test]
fn all_front_ends_add_tasks_to_one_plan_at_the_same_time_and_all_are_kept() {
    const ADDS: usize = 15;
    let front_ends = &FrontEnds::start();
    create(front_ends, "p");
    let replies = std::thread::scope(|scope| {
        let by_commands = scope
            .spawn(|| (0..ADDS).map(|_| front_ends.cli(Person, &["add", "p", "more"])).collect::<Vec<_>>());
        let by_calls = scope.spawn(|| front_ends.mcp(Agent).call_all("plan_edit", vec![add_to("p"); ADDS]));
        let by_requests = scope.spawn(|| front_ends.http_all(OtherAgent, vec![add_over_http("p"); ADDS]));
        [by_commands, by_calls, by_requests].into_iter().flat_map(|adds| adds.join().unwrap()).collect()
    });
    check_all_kept(front_ends, "p", replies);
}

/// A front end that programs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrontEnd {
    Cli,
    Mcp,
    Http,
}

impl FrontEnd {
    const ALL: [Self; 3] = [Self::Cli, Self::Mcp, Self::Http];
}

#[test]
fn the_id_of_a_removed_task_is_not_given_to_another() {
    let front_ends = FrontEnds::start();
    let mut wrong = Vec::new();
    for (number, (remove, add)) in pairs().into_iter().enumerate() {
        let plan = format!("p{number}");
        create(&front_ends, &plan);
        let operation = json!({ "op": "remove", "task": "t3" });
        match remove {
            FrontEnd::Cli => front_ends.cli(Agent, &["task", "remove", &plan, "t3"]),
            FrontEnd::Mcp => {
                front_ends.mcp(Agent).call("plan_edit", json!({ "plan": plan, "ops": [operation] }))
            }
            FrontEnd::Http => front_ends.http(
                Agent,
                Request::post(format!("/plans/{plan}/edits"), json!({ "operations": [operation] })),
            ),
        }
        .accepted();
        let id = added(match add {
            FrontEnd::Cli => front_ends.cli(Agent, &["add", &plan, "more"]),
            FrontEnd::Mcp => front_ends.mcp(Agent).call("plan_edit", add_to(&plan)),
            FrontEnd::Http => front_ends.http(Agent, add_over_http(&plan)),
        });
        if id != "t4" {
            wrong.push(format!("removed by {remove:?}, added by {add:?}: {id}"));
        }
    }
    assert!(wrong.is_empty(), "t4 is expected:\n{}", wrong.join("\n"));
}

fn pairs() -> Vec<(FrontEnd, FrontEnd)> {
    FrontEnd::ALL.into_iter().flat_map(|one| FrontEnd::ALL.map(|other| (one, other))).collect()
}

/// What is said of a task that somebody works on: at the command line, to MCP, to HTTP.
const REPORTS: [(&str, &[&str], &str, &str); 5] = [
    ("progress", &["half"], r#"{"status":"progress","text":"half"}"#, r#"{"progress":"half"}"#),
    ("done", &[], r#"{"status":"done"}"#, "{}"),
    ("fail", &["--error", "it broke"], r#"{"status":"failed","text":"it broke"}"#, r#"{"error":"it broke"}"#),
    ("release", &[], r#"{"status":"release"}"#, "{}"),
    ("ask", &["which?"], r#"{"status":"question","text":"which?"}"#, r#"{"question":"which?"}"#),
];

/// Sends a report on `t1`, in the name of an attempt or not.
fn report(
    front_ends: &FrontEnds,
    front_end: FrontEnd,
    caller: Caller,
    plan: &str,
    (action, words, arguments, body): (&str, &[&str], &str, &str),
    attempt: Option<u32>,
) -> Reply {
    let with_attempt = |text: &str| {
        let mut value: Value = serde_json::from_str(text).unwrap();
        if let Some(attempt) = attempt {
            value["attempt"] = attempt.into();
        }
        value
    };
    match front_end {
        FrontEnd::Cli => {
            let named = attempt.map(|attempt| attempt.to_string());
            let mut all = [&[action, plan, "t1"], words].concat();
            all.extend(named.iter().flat_map(|attempt| ["--attempt", attempt]));
            front_ends.cli(caller, &all)
        }
        FrontEnd::Mcp => {
            let mut arguments = with_attempt(arguments);
            (arguments["plan"], arguments["task"]) = (plan.into(), "t1".into());
            front_ends.mcp(caller).call("task_report", arguments)
        }
        FrontEnd::Http => {
            let path = format!("/plans/{plan}/tasks/t1/actions/{action}");
            front_ends.http(caller, Request::post(path, with_attempt(body)))
        }
    }
}

/// Reports of every kind through every front end, on a task whose second attempt `agent:robin` works on. Each is refused
/// with this code, and nothing is written.
#[track_caller]
fn check_refused(callers: &[Caller], attempt: Option<u32>, code: &str) {
    let front_ends = FrontEnds::start();
    let mut wrong = Vec::new();
    for words in REPORTS {
        for &caller in callers {
            for front_end in FrontEnd::ALL {
                if front_end == FrontEnd::Mcp && !caller.is_agent() {
                    continue;
                }
                let cell = format!("{}-{}-{front_end:?}", words.0, caller.name());
                let plan = cell.to_lowercase();
                create(&front_ends, &plan);
                for action in ["claim", "release", "claim"] {
                    let path = format!("/plans/{plan}/tasks/t1/actions/{action}");
                    front_ends.http(Agent, Request::post(path, json!({}))).accepted();
                }
                let before = front_ends.read(&format!("/plans/{plan}/tasks/t1"));
                let found = report(&front_ends, front_end, caller, &plan, words, attempt).code();
                let after = front_ends.read(&format!("/plans/{plan}/tasks/t1"));
                if found != code {
                    wrong.push(format!("{cell}: {found}"));
                } else if before != after {
                    wrong.push(format!("{cell}: {found}, but {before} became {after}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{code} is expected:\n{}", wrong.join("\n"));
}

#[test]
fn whoever_does_not_hold_an_attempt_reports_nothing_on_it() {
    check_refused(&[OtherAgent, Worker], None, "already_running");
}

#[test]
fn a_report_in_the_name_of_an_attempt_that_is_over_is_refused() {
    check_refused(&[Person, Agent, OtherAgent, Worker], Some(1), "stale_attempt");
}

/// When the lease of `t1` ends; nothing for one that never does.
fn lease_end(front_ends: &FrontEnds, plan: &str) -> Option<Timestamp> {
    let file = front_ends.workspace.work().join(".waypost/waypost.db");
    let store = open(&format!("sqlite:{}", file.display()), Durability::default()).unwrap();
    let mut leases = Vec::new();
    store
        .read(&mut |read| {
            leases = read.leases(&LeaseFilter::All, 1_000)?;
            Ok(())
        })
        .unwrap();
    let lease = leases.into_iter().find(|lease| lease.plan.as_str() == plan && lease.task.as_str() == "t1");
    lease.expect("the task is leased").until
}

#[test]
fn progress_renews_the_lease_for_as_long_as_it_was_taken() {
    let front_ends = FrontEnds::start();
    let mut wrong = Vec::new();
    for front_end in FrontEnd::ALL {
        for (lease, seconds) in
            [("5m", Some(5 * 60)), ("15m", Some(15 * 60)), ("2h", Some(2 * 3_600)), ("0", None)]
        {
            let plan = format!("{front_end:?}-{lease}").to_lowercase();
            create(&front_ends, &plan);
            front_ends.cli(Agent, &["start", &plan, "t1", "--lease", lease]).accepted();
            let before = lease_end(&front_ends, &plan);
            report(&front_ends, front_end, Agent, &plan, REPORTS[0], None).accepted();
            let after = lease_end(&front_ends, &plan);
            let is_right = match (before, after, seconds) {
                (None, None, None) => true,
                // Later, but by no more than the span itself: it began before and ends now.
                (Some(before), Some(after), Some(seconds)) => {
                    before < after && after < before.plus_seconds(seconds)
                }
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{front_end:?}, --lease {lease}: from {before:?} to {after:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_claim_over_http_is_renewed_by_progress_over_http() {
    let front_ends = FrontEnds::start();
    create(&front_ends, "p");
    front_ends.http(Agent, Request::post("/plans/p/tasks/t1/actions/claim", json!({}))).accepted();
    let before = lease_end(&front_ends, "p").unwrap();
    report(&front_ends, FrontEnd::Http, Agent, "p", REPORTS[0], None).accepted();
    let after = lease_end(&front_ends, "p").unwrap();
    assert!(before < after, "from {before} to {after}");
}

/// Claims `t1` again through a front end that names no lease.
fn claim_again(front_ends: &FrontEnds, front_end: FrontEnd, plan: &str) {
    let answer = match front_end {
        FrontEnd::Cli => front_ends.cli(Agent, &["start", plan, "t1"]),
        FrontEnd::Mcp => front_ends.mcp(Agent).call("task_next", json!({ "plan": plan, "task": "t1" })),
        FrontEnd::Http => {
            front_ends.http(Agent, Request::post(format!("/plans/{plan}/tasks/t1/actions/claim"), json!({})))
        }
    };
    answer.accepted();
}

#[test]
fn a_task_that_is_claimed_again_keeps_the_longer_lease() {
    let front_ends = FrontEnds::start();
    let mut wrong = Vec::new();
    for front_end in FrontEnd::ALL {
        for lease in ["5m", "2h", "0"] {
            let plan = format!("{front_end:?}-{lease}").to_lowercase();
            create(&front_ends, &plan);
            front_ends.cli(Agent, &["start", &plan, "t1", "--lease", lease]).accepted();
            let before = lease_end(&front_ends, &plan);
            claim_again(&front_ends, front_end, &plan);
            let after = lease_end(&front_ends, &plan);
            let is_right = match (before, after) {
                (None, None) => true,
                (Some(before), Some(after)) => before < after,
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{front_end:?}, --lease {lease}: from {before:?} to {after:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_lease_that_is_asked_for_may_be_shorter_and_progress_never_shortens_one() {
    let front_ends = FrontEnds::start();
    create(&front_ends, "p");
    let start = |lease: &str| {
        front_ends.cli(Agent, &["start", "p", "t1", "--lease", lease]).accepted();
        lease_end(&front_ends, "p").unwrap()
    };
    let (long, short) = (start("2h"), start("5m"));
    assert!(short < long, "from {long} to {short}");
    let longest = start("4h");
    report(&front_ends, FrontEnd::Http, Agent, "p", REPORTS[0], None).accepted();
    let after = lease_end(&front_ends, "p").unwrap();
    assert!(after > longest, "it was taken for two hours and then for four: {after} is not behind {longest}");
    assert!(start("0") > longest.plus_seconds(365 * 24 * 3_600));
}

/// A worker process, which ends with the test.
struct RunningWorker(Child);

impl Drop for RunningWorker {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _waited = self.0.wait();
    }
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WAIT_MAX, "{what} does not come about");
        std::thread::yield_now();
    }
}

#[test]
fn progress_on_the_task_of_a_worker_leaves_the_lease_as_short_as_the_worker_renews_it() {
    /// It ends with the file, and does not outlive the workspace.
    const PATIENT: &str = "[executors.run]\nkind = \"process\"\nshell = true\n\
        command = [\"touch $WAYPOST_PLAN; while [ ! -e go ] && [ -e $WAYPOST_PLAN ]; do sleep 0.02; done\"]\n";
    /// A worker's lease lasts a minute; between two readings a heartbeat may have renewed it.
    const RENEWAL_SECONDS_MAX: u64 = 5 * 60;
    let cells = [("cli", FrontEnd::Cli), ("http", FrontEnd::Http)];
    let front_ends = FrontEnds::start_with(PATIENT);
    let folder = front_ends.workspace.work();
    for (plan, ..) in cells {
        let task = json!({ "id": "t1", "work": { "executor": "run", "inputs": {} } });
        let text = json!({ "format": "waypost/1", "id": plan, "title": "P", "tasks": [task] });
        std::fs::write(folder.join("plan.json"), text.to_string()).unwrap();
        front_ends.cli(Person, &["submit", "plan.json"]).accepted();
    }
    let mut command = front_ends.workspace.command(env!("CARGO_BIN_EXE_waypost"));
    command.args(["worker", "-j", "2"]).stdout(Stdio::null()).stderr(Stdio::null());
    let worker = RunningWorker(command.spawn().unwrap());
    let mut wrong = Vec::new();
    for (plan, front_end) in cells {
        wait_until("the start of the task", || folder.join(plan).exists());
        let before = lease_end(&front_ends, plan).unwrap();
        // Everybody can read the number of an attempt: it speaks for no agent.
        for front_end in FrontEnd::ALL {
            for words in REPORTS {
                let found = report(&front_ends, front_end, Agent, plan, words, Some(1));
                assert_eq!(found.code(), "already_running", "{front_end:?}: {}", words.0);
            }
        }
        report(&front_ends, front_end, Person, plan, REPORTS[0], Some(1)).accepted();
        let after = lease_end(&front_ends, plan);
        if after.is_none_or(|after| after >= before.plus_seconds(RENEWAL_SECONDS_MAX)) {
            wrong.push(format!("{front_end:?}: from {before:?} to {after:?}"));
        }
    }
    std::fs::write(folder.join("go"), "").unwrap();
    for (plan, ..) in cells {
        let path = format!("/plans/{plan}");
        wait_until("the end of the plan", || front_ends.read(&path)["phase"] == "completed");
    }
    drop(worker);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_refusal_has_the_same_code_through_every_front_end() {
    let front_ends = FrontEnds::start();
    create(&front_ends, "p");
    front_ends.cli(Person, &["add", "p", "four"]).accepted();
    let stale = |mut arguments: Value| {
        arguments["known_version"] = 1.into();
        arguments
    };
    let mcp = |tool: &str, arguments: Value| front_ends.mcp(Agent).call(tool, arguments);
    let plan_update = json!({ "plan": "p", "file": "no-plan.json" });
    std::fs::write(front_ends.workspace.work().join("no-plan.json"), "{\"tasks\": 7}").unwrap();
    let cells = [
        ("conflict", "Cli", front_ends.cli(Agent, &["add", "p", "more", "--expect-version", "1"])),
        ("conflict", "Mcp", mcp("plan_edit", stale(add_to("p")))),
        ("conflict", "Http", front_ends.http(Agent, add_over_http("p").if_at(1))),
        ("no_such_plan", "Cli", front_ends.cli(Agent, &["add", "nope", "more"])),
        ("no_such_plan", "Mcp", mcp("plan_edit", add_to("nope"))),
        ("no_such_plan", "Http", front_ends.http(Agent, add_over_http("nope"))),
        ("no_such_version", "Cli", front_ends.cli(Agent, &["restore", "p", "99"])),
        (
            "no_such_version",
            "Http",
            front_ends.http(Agent, Request::post("/plans/p/restore", json!({ "version": 99 }))),
        ),
        ("invalid", "Cli", front_ends.cli(Agent, &["update", "p", "--from-file", "no-plan.json"])),
        ("invalid", "Mcp", mcp("plan_update", plan_update)),
        (
            "invalid",
            "Http",
            front_ends
                .http(Agent, Request::new("PUT", "/plans/p/content", json!({ "text": "{\"tasks\": 7}" }))),
        ),
        ("already_exists", "Cli", front_ends.cli(Agent, &["new", "P", "--id", "p"])),
        (
            "already_exists",
            "Http",
            front_ends.http(
                Agent,
                Request::post(
                    "/plans",
                    json!({ "id": "p", "plan": { "format": "waypost/1", "title": "P", "tasks": [] } }),
                ),
            ),
        ),
    ];
    let wrong: Vec<String> = cells
        .into_iter()
        .filter(|(code, _, reply)| reply.code() != *code)
        .map(|(code, front_end, reply)| format!("{code} · {front_end}: {}", reply.code()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_answer_over_http_names_no_command_of_the_command_line() {
    let front_ends = FrontEnds::start();
    create(&front_ends, "p");
    let work = json!({ "executor": "run", "inputs": {} });
    let unapproved = json!({ "format": "waypost/1", "title": "U", "tasks": [{ "id": "t1", "work": work }] });
    let create_unapproved = Request::post("/plans", json!({ "id": "u", "plan": unapproved }));
    front_ends.http(Agent, create_unapproved).accepted();
    create(&front_ends, "asking");
    front_ends.cli(Agent, &["start", "asking", "t1"]).accepted();
    front_ends.cli(Agent, &["ask", "asking", "t1", "which?"]).accepted();
    let requests = [
        Request::get("/plans/nope"),
        Request::get("/plans/nope/tasks"),
        Request::get("/plans/nope/history"),
        Request::get("/plans/nope/approval"),
        Request::get("/plans/p/tasks/nope"),
        Request::get("/plans/p/versions/99"),
        Request::get("/plans/p/diff?from=98&to=99"),
        Request::get("/next?plan=nope"),
        // What a task waits for is told in words, too.
        Request::get("/plans/u/tasks/t1"),
        Request::get("/plans/asking/tasks/t1"),
        Request::post("/plans/nope/actions/pause", json!({})),
        Request::post("/plans/nope/tasks/t1/actions/done", json!({})),
        add_over_http("nope"),
        Request::new("PUT", "/plans/nope/content", json!({ "text": "# A plan" })),
        Request::post("/plans/p/restore", json!({ "version": 99 })),
        Request::post("/plans/p/tasks/nope/actions/done", json!({})),
        Request::post("/plans/p/actions/approve", json!({})),
        Request::post("/plans/u/actions/start", json!({})),
        Request::post("/plans/u/tasks/t1/actions/claim", json!({})),
        Request::post("/plans/asking/tasks/t1/actions/claim", json!({})),
        Request::post("/plans/asking/actions/resume", json!({})),
        Request::post("/plans", json!({ "id": "p", "text": "# A plan" })),
        Request::post("/plans", json!({ "text": "" })),
    ];
    let replies =
        requests.into_iter().map(|request| (format!("{request:?}"), front_ends.http(Agent, request)));
    let reader = front_ends.token("reader", "eve");
    let read_only = front_ends.http_with(&reader, vec![add_over_http("p")]).remove(0);
    let mut wrong = Vec::new();
    for (request, reply) in replies.chain([("a write by a reader".to_owned(), read_only)]) {
        let (Reply::Accepted(answer) | Reply::Refused { answer, .. }) = reply;
        if answer.to_string().contains("waypost ") {
            wrong.push(format!("{request} is answered {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_task_is_taken_over_from_another_session_of_the_agent_through_every_front_end() {
    let front_ends = FrontEnds::start();
    let words = ["new", "P", "--id", "p", "--task", "a", "--task", "b", "--task", "c", "--task", "d"];
    front_ends.cli(Person, &words).accepted();
    for task in ["t1", "t2", "t3", "t4"] {
        front_ends.mcp(Agent).call("task_next", json!({ "plan": "p", "task": task })).accepted();
    }
    let held = front_ends.cli(Agent, &["start", "p", "t1"]);
    assert_eq!(held.code(), "held_by_other_session");
    let Reply::Refused { answer, .. } = held else { unreachable!() };
    assert!(answer["hint"].as_str().unwrap().ends_with("with --take-over"), "{answer}");
    let started = front_ends.cli(Agent, &["start", "p", "t1", "--take-over"]).accepted();
    assert_eq!(started["attempt"], 2);
    let done = front_ends.cli(Agent, &["done", "p", "t2", "--take-over"]).accepted();
    assert_eq!(done["standing"], "done");
    let claim = Request::post("/plans/p/tasks/t3/actions/claim", json!({ "take_over": true }));
    assert_eq!(front_ends.http(Agent, claim).accepted()["attempt"], 2);
    let done = Request::post("/plans/p/tasks/t4/actions/done", json!({ "take_over": true }));
    assert_eq!(front_ends.http(Agent, done).accepted()["standing"], "done");
    // Only an agent has sessions.
    let other = front_ends.cli(OtherAgent, &["done", "p", "t1", "--take-over"]);
    assert_eq!(other.code(), "already_running");
}

/// Why the next task of the plan cannot be claimed, as each front end says it.
#[track_caller]
fn check_nothing_to_claim(front_ends: &FrontEnds, plan: &str, expected: &[&str]) {
    let cli = front_ends.cli(OtherAgent, &["next", plan, "--claim"]).accepted();
    let http = front_ends.http(OtherAgent, Request::post("/next", json!({ "plan": plan }))).accepted();
    let mcp = front_ends.mcp(OtherAgent).call("task_next", json!({ "plan": plan })).accepted();
    assert_eq!((&cli["task"], &http["task"], &mcp["task"]), (&json!(null), &json!(null), &json!(null)));
    assert_eq!(cli["reasons"], json!(expected));
    assert_eq!(http["reasons"], json!(expected));
    assert!(mcp["why"].as_str().unwrap().starts_with(&expected.join(", ")), "{mcp}");
}

#[test]
fn every_front_end_says_why_there_is_nothing_to_claim() {
    let front_ends = FrontEnds::start();
    create(&front_ends, "held");
    front_ends.cli(Person, &["hold", "held", "t1", "t2", "t3"]).accepted();
    check_nothing_to_claim(&front_ends, "held", &["3 held"]);
    front_ends.cli(Person, &["new", "P", "--id", "running", "--task", "one"]).accepted();
    front_ends.cli(Agent, &["start", "running", "t1"]).accepted();
    check_nothing_to_claim(&front_ends, "running", &["1 running (t1 by agent:robin)"]);
    create(&front_ends, "paused");
    front_ends.cli(Person, &["pause", "paused"]).accepted();
    check_nothing_to_claim(&front_ends, "paused", &["the plan is paused"]);
    front_ends.cli(Agent, &["done", "running", "t1"]).accepted();
    check_nothing_to_claim(&front_ends, "running", &["the plan is completed, 1 of 1 done"]);
    front_ends.cli(Person, &["archive", "running"]).accepted();
    check_nothing_to_claim(&front_ends, "running", &["the plan is archived"]);
}

#[test]
fn no_front_end_offers_tasks_of_a_plan_that_needs_approval() {
    let front_ends = FrontEnds::start();
    let work = json!({ "executor": "run", "inputs": {} });
    for plan in ["cli", "mcp", "http"] {
        create(&front_ends, plan);
        let operation = json!({ "op": "add", "task": { "description": "more", "work": work } });
        let add = Request::post(format!("/plans/{plan}/edits"), json!({ "operations": [operation] }));
        let added = front_ends.http(Agent, add).accepted();
        assert_eq!(added["awaits_approval"], true, "{added}");
    }
    let cli = front_ends.cli(Agent, &["add", "cli", "more"]).accepted();
    assert_eq!((&cli["ready"], &cli["awaits_approval"]), (&json!([]), &json!(true)), "{cli}");
    let mcp = front_ends.mcp(Agent).call("plan_edit", add_to("mcp")).accepted();
    assert_eq!((&mcp["next"], &mcp["approval"]), (&json!(null), &json!("needed")), "{mcp}");
    let http = front_ends.http(Agent, add_over_http("http")).accepted();
    assert_eq!(http["awaits_approval"], true, "{http}");
    check_nothing_to_claim(&front_ends, "http", &["the plan needs a person's approval"]);
}

#[test]
fn the_history_names_a_restore_in_every_front_end() {
    let front_ends = FrontEnds::start();
    create(&front_ends, "p");
    front_ends.cli(Person, &["add", "p", "more"]).accepted();
    let restored = front_ends.cli(Person, &["restore", "p", "1"]).accepted();
    assert_eq!(restored["changed"], true);
    let again = Request::post("/plans/p/restore", json!({ "version": 1 }));
    assert_eq!(front_ends.http(Person, again).accepted()["changed"], false);
    let expected = "restored version 1; removed t4";
    let cli = front_ends.cli(Person, &["history", "p"]).accepted();
    let http = front_ends.read("/plans/p/history");
    for versions in [&cli["versions"], &http["versions"]] {
        let latest = &versions[0];
        assert_eq!((&latest["version"], &latest["summary"]), (&json!(3), &json!(expected)), "{versions}");
        assert_eq!(latest["command"], "restore");
    }
    let events = front_ends.read("/events?plan=p&limit=100");
    assert!(events.to_string().contains("\"plan_restored\""), "{events}");
}

#[test]
fn a_name_that_is_almost_right_is_answered_with_the_right_one() {
    let front_ends = FrontEnds::start();
    create(&front_ends, "sign-in");
    let agent = |arguments: Value| front_ends.mcp(Agent).call("plan_get", arguments);
    let replies = [
        (front_ends.cli(Person, &["show", "sing-in"]), "sign-in"),
        (front_ends.cli(Person, &["why", "sign-in", "t11"]), "t1"),
        (agent(json!({ "plan": "sing-in" })), "sign-in"),
        (agent(json!({ "plan": "sign-in", "task": "t11" })), "t1"),
        (front_ends.http(Person, Request::get("/plans/sing-in")), "sign-in"),
        (front_ends.http(Person, Request::get("/plans/sign-in/tasks/t11")), "t1"),
    ];
    for (reply, nearest) in replies {
        let Reply::Refused { answer, .. } = reply else { panic!("{reply:?}") };
        assert!(answer.to_string().contains(&format!("did you mean {nearest}?")), "{answer}");
    }
    let Reply::Refused { answer, .. } = front_ends.cli(Person, &["show", "other"]) else {
        panic!("accepted")
    };
    assert!(answer["hint"].as_str().unwrap().contains("waypost list"), "{answer}");
}
