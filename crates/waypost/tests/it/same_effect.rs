//! One table of acts × callers: the same act by the same caller has the same effect through the command line, MCP, HTTP
//! and the terminal UI. It is accepted by all or refused by all with the same stable code; plan, tasks and history are
//! the same afterwards.
//!
//! A row names the words of each front end for one act, the plan that it meets, what comes of it, and who is refused.
//! The plan has the tasks `t1`, `t2` (which depends on `t1`) and `t3`; see [`Given`].

mod acts;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use acts::{edits, phases, work};

use crate::front_ends::{Caller, FrontEnds, Reply, Request};
use crate::tmux::Tmux;
use Caller::{Agent, OtherAgent, Person, Worker};

/// How long the terminal UI may take to write what a key asked for.
const WRITE_WAIT_MAX: Duration = Duration::from_secs(30);

/// How the terminal UI shows the refusals with the codes `needs_person` and `stopped_by_person`.
const ONLY_A_PERSON_WORDS: &str = "only a person";

/// How the terminal UI shows the refusal with the code `human_gate`.
const HUMAN_GATE_WORDS: &str = "is for a person;";

/// What stands for the id of the plan in the words of the command line.
const PLAN: &str = "PLAN";
/// What stands for the digest of what the plan would run.
const SEEN: &str = "SEEN";

/// The plan that an act meets. Whatever was done to it, `agent:robin` did, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    /// No plan: the act makes one.
    Nothing,
    /// A person wrote it; nothing has begun.
    Draft,
    /// It is active, and nobody works on it.
    Active,
    /// `agent:robin` works on `t1`.
    Claimed,
    /// `t1` waits for an answer.
    Asking,
    /// `t1` has failed, so `t2` was skipped.
    Failed,
    Paused,
    /// It was completed.
    Completed,
    Archived,
    /// The description of `t1` was another one at version 1.
    Revised,
    /// `t3` was removed.
    Shrunk,
    /// The tasks are `read`, `write` (a part of `read`) and `tell`, with the descriptions one, two and three.
    Grouped,
    /// `agent:robin` wrote it and owns it, and `t1` is work for a machine, so a person has to approve.
    Unapproved,
    /// The same, and approval was requested.
    AwaitingApproval,
    /// The same, and a person rejected it.
    Rejected,
    /// A person wrote it, and `t1` is work for a machine.
    OwnWork,
    /// Active; `t1` is work for a person.
    HumanTask,
    /// A person paused it.
    PausedByPerson,
    /// A person archived it.
    ArchivedByPerson,
    /// Active; a person cancelled `t1`.
    CancelledByPerson,
    /// Active; `t1` is held.
    Held,
    /// Active; a person holds `t1`.
    HeldByPerson,
}

impl Given {
    /// Makes such a plan, by requests of those who may do so.
    fn make(self, front_ends: &FrontEnds, id: &str) {
        let http = |caller, request: Request| {
            front_ends.http(caller, request).accepted();
        };
        let of_plan = |action: &str| {
            http(Agent, Request::post(format!("/plans/{id}/actions/{action}"), json!({})));
        };
        let of_task = |action: &str, words: Value| {
            http(Agent, Request::post(format!("/plans/{id}/tasks/t1/actions/{action}"), words));
        };
        let edit = |operation: Value| {
            http(Agent, Request::post(format!("/plans/{id}/edits"), json!({ "operations": [operation] })));
        };
        let create_from = |caller, tasks: Value| {
            let plan = json!({ "format": "waypost/1", "title": "P", "tasks": tasks });
            http(caller, Request::post("/plans", json!({ "id": id, "plan": plan })));
        };
        let create = |caller, work: Value| {
            let mut first = json!({ "id": "t1", "description": "one" });
            if !work.is_null() {
                first["work"] = work;
            }
            let second = json!({ "id": "t2", "description": "two", "depends_on": ["t1"] });
            create_from(caller, json!([first, second, { "id": "t3", "description": "three" }]));
        };
        match self {
            Self::Nothing => {}
            Self::Draft => create(Person, Value::Null),
            Self::Active => {
                create(Person, Value::Null);
                of_plan("start");
            }
            Self::Claimed => {
                create(Person, Value::Null);
                of_task("claim", json!({}));
            }
            Self::Asking => {
                Self::Claimed.make(front_ends, id);
                of_task("ask", json!({ "question": "left or right?" }));
            }
            Self::Failed => {
                Self::Claimed.make(front_ends, id);
                of_task("fail", json!({ "error": "it broke" }));
            }
            Self::Paused => {
                Self::Active.make(front_ends, id);
                of_plan("pause");
            }
            Self::Completed => {
                Self::Active.make(front_ends, id);
                of_plan("finish");
            }
            Self::Rejected => {
                Self::AwaitingApproval.make(front_ends, id);
                let body = json!({ "reason": "no" });
                http(Person, Request::post(format!("/plans/{id}/actions/reject"), body));
            }
            Self::Archived => {
                create(Person, Value::Null);
                of_plan("archive");
            }
            Self::Revised => {
                create(Person, Value::Null);
                edit(json!({ "op": "revise", "task": "t1", "set": { "description": "other" } }));
            }
            Self::Shrunk => {
                create(Person, Value::Null);
                edit(json!({ "op": "remove", "task": "t3" }));
            }
            Self::Grouped => create_from(
                Person,
                json!([
                    { "id": "read", "description": "one" },
                    { "id": "write", "description": "two", "parent": "read" },
                    { "id": "tell", "description": "three" },
                ]),
            ),
            Self::Unapproved => create(Agent, json!({ "executor": "run", "inputs": {} })),
            Self::AwaitingApproval => {
                Self::Unapproved.make(front_ends, id);
                of_plan("request-approval");
            }
            Self::OwnWork => create(Person, json!({ "executor": "run", "inputs": {} })),
            Self::HumanTask => {
                create(Person, json!({ "executor": "human" }));
                of_plan("start");
            }
            Self::PausedByPerson => {
                Self::Active.make(front_ends, id);
                http(Person, Request::post(format!("/plans/{id}/actions/pause"), json!({})));
            }
            Self::ArchivedByPerson => {
                create(Person, Value::Null);
                http(Person, Request::post(format!("/plans/{id}/actions/archive"), json!({})));
            }
            Self::Held => {
                Self::Active.make(front_ends, id);
                of_task("hold", json!({}));
            }
            Self::HeldByPerson => {
                Self::Active.make(front_ends, id);
                http(Person, Request::post(format!("/plans/{id}/tasks/t1/actions/hold"), json!({})));
            }
            Self::CancelledByPerson => {
                Self::Active.make(front_ends, id);
                http(Person, Request::post(format!("/plans/{id}/tasks/t1/actions/cancel"), json!({})));
            }
        }
    }
}

/// A tool and its arguments, without the plan.
enum Mcp {
    Tool(&'static str, Value),
    /// An operation of `plan_edit`.
    Edit(Value),
    /// Why there is none.
    NotOffered(&'static str),
}

/// A method, a path under the plan, and a body.
enum Http {
    Send(&'static str, &'static str, Value),
    /// An operation of `/edits`.
    Edit(Value),
}

/// The screen that is opened, and what is done there: a key, `=TEXT` to type, `?TEXT` to wait for.
enum Tui {
    Plans(&'static [&'static str]),
    Editor(&'static [&'static str]),
    Run(&'static [&'static str]),
    /// Why there is none.
    NotOffered(&'static str),
}

/// One row of the table.
struct Act {
    name: &'static str,
    given: Given,
    cli: &'static [&'static str],
    mcp: Mcp,
    http: Http,
    tui: Tui,
    /// What comes of it: the plan; its tasks; the events of the history. `CALLER` stands for who acted.
    then: &'static str,
    /// Who is refused, and the code.
    refused: &'static [(Caller, &'static str)],
}

/// Everyone is refused, with the same code.
const fn everyone(code: &'static str) -> [(Caller, &'static str); 4] {
    [(Person, code), (Agent, code), (OtherAgent, code), (Worker, code)]
}

const ONLY_A_PERSON: &[(Caller, &str)] =
    &[(Agent, "needs_person"), (OtherAgent, "needs_person"), (Worker, "needs_person")];
const HUMAN_GATE: &[(Caller, &str)] =
    &[(Agent, "human_gate"), (OtherAgent, "human_gate"), (Worker, "human_gate")];
const STOPPED_BY_PERSON: &[(Caller, &str)] =
    &[(Agent, "stopped_by_person"), (OtherAgent, "stopped_by_person"), (Worker, "stopped_by_person")];
/// Nobody speaks for another's attempt but a person.
const ONLY_THE_HOLDER: &[(Caller, &str)] = &[(OtherAgent, "already_running"), (Worker, "already_running")];
/// What a worker may do: claim, and report on what it holds. What is for people is refused as such. It does nothing else.
const AS_ELSEWHERE: &[&str] = &[
    "claim",
    "claim the next task",
    "claim what agent:robin works on",
    "claim what is blocked",
    "claim in a paused plan",
    "claim before it is approved",
    "claim a task that is held",
    "progress",
    "progress on what nobody works on",
    "done",
    "done, with a result that says otherwise",
    "fail",
    "ask",
    "release",
    "answer",
    "answer a task for a person",
    "answer what asks nothing",
    "claim a task for a person",
    "done, on a task for a person",
    "fail a task for a person",
    "skip a task for a person",
    "cancel a task for a person",
    "approve",
    "approve and hold",
    "approve a draft",
    // Not even looked at as an edit.
    "add a task without a description",
];
/// A worker reports only on what it holds.
const REPORT_UNHELD: &str = "done, where nobody works on it";
/// The text that a plan is updated from, and the file that holds it.
const TEXT: &str = r#"{"format":"waypost/1","title":"P","tasks":[{"id":"t1","description":"other"},{"id":"t2","description":"two","depends_on":["t1"]},{"id":"t3","description":"three"}]}"#;
const TEXT_FILE: &str = "other.json";
/// A file that a plan is created from. It says something else each time: the same file would be the same plan.
const NEW_FILE: &str = "new.json";
/// The same change, made by an editor.
const EDITOR: &str = "sed -i s/one/other/ \"$1\"\n";
const EDITOR_FILE: &str = "editor";

const MCP_IS_FOR_AGENTS: &str = "an agent asks, a person decides elsewhere";
const TUI_IS_FOR_PEOPLE: &str = "a person looks, decides and edits there, and works on no task";

/// A front end, in the order of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrontEnd {
    Cli,
    Mcp,
    McpOverHttp,
    Http,
    Tui,
}

impl Act {
    /// Whether somebody can do it there at all.
    fn is_offered(&self, front_end: FrontEnd, caller: Caller) -> bool {
        match front_end {
            FrontEnd::Cli | FrontEnd::Http => true,
            // Whoever calls there is an agent.
            FrontEnd::Mcp => caller.is_agent() && !matches!(self.mcp, Mcp::NotOffered(_)),
            // Files are for agents on the machine.
            FrontEnd::McpOverHttp => match &self.mcp {
                Mcp::Tool(_, arguments) => caller.is_agent() && arguments.get("file").is_none(),
                Mcp::Edit(_) => caller.is_agent(),
                Mcp::NotOffered(_) => false,
            },
            // A worker is a program, and has no screen.
            FrontEnd::Tui => caller != Worker && !matches!(self.tui, Tui::NotOffered(_)),
        }
    }

    fn code(&self, caller: Caller) -> Option<&'static str> {
        if caller == Worker && !AS_ELSEWHERE.contains(&self.name) {
            return Some(if self.name == REPORT_UNHELD { "wrong_status" } else { "not_for_workers" });
        }
        self.refused.iter().find(|(refused, _)| *refused == caller).map(|(_, code)| *code)
    }

    /// The effect that the table promises.
    fn expected(&self, caller: Caller) -> String {
        let owner = if caller.is_agent() { format!(" of {}", caller.name()) } else { String::new() };
        self.then.replace(" OWNER", &owner).replace("CALLER", &caller.actor())
    }

    /// Does it, and says how it was answered.
    fn perform(&self, bench: &Bench<'_>, front_end: FrontEnd, caller: Caller, plan: &str) -> Reply {
        let front_ends = bench.front_ends;
        let seen = |found: &Value| found.as_str().unwrap().to_owned();
        let digest = match self.cli.contains(&SEEN) {
            true if !self.cli.contains(&"approve") => {
                seen(&front_ends.cli(Person, &["answer", plan]).accepted()["waiting"][0]["digest"])
            }
            true => seen(&front_ends.cli(Person, &["preview", plan]).accepted()["digest"]),
            false => String::new(),
        };
        match front_end {
            FrontEnd::Cli => {
                let meant = |word: &&'static str| match *word {
                    PLAN => plan.to_owned(),
                    SEEN => digest.clone(),
                    word => word.to_owned(),
                };
                let words: Vec<String> = self.cli.iter().map(meant).collect();
                front_ends.cli(caller, &words.iter().map(String::as_str).collect::<Vec<_>>())
            }
            FrontEnd::Mcp | FrontEnd::McpOverHttp => {
                let (tool, mut arguments) = match &self.mcp {
                    Mcp::Tool(tool, arguments) => (*tool, arguments.clone()),
                    Mcp::Edit(operation) => ("plan_edit", json!({ "ops": [operation] })),
                    Mcp::NotOffered(why) => panic!("{}: {why}", self.name),
                };
                if self.given != Given::Nothing {
                    arguments["plan"] = plan.into();
                }
                match front_end {
                    FrontEnd::McpOverHttp => front_ends.mcp_over_http(caller, tool, arguments),
                    _ => front_ends.mcp(caller).call(tool, arguments),
                }
            }
            FrontEnd::Http => {
                let (method, path, body) = match &self.http {
                    Http::Send(method, path, body) => (*method, *path, body.clone()),
                    Http::Edit(operation) => ("POST", "/edits", json!({ "operations": [operation] })),
                };
                let path = match path {
                    "/plans" | "/next" => path.to_owned(),
                    below => format!("/plans/{plan}{below}"),
                };
                let body = body.to_string().replace(PLAN, plan).replace(SEEN, &digest);
                front_ends.http(caller, Request::new(method, path, serde_json::from_str(&body).unwrap()))
            }
            FrontEnd::Tui => self.press_keys(bench, caller, plan),
        }
    }

    /// Opens the screen, presses the keys, and waits until something is written or a refusal is shown.
    fn press_keys(&self, bench: &Bench<'_>, caller: Caller, plan: &str) -> Reply {
        let (open, keys) = match self.tui {
            Tui::Plans(keys) => ("tui".to_owned(), keys),
            Tui::Editor(keys) => (format!("tui {plan}"), keys),
            Tui::Run(keys) => (format!("tui {plan} --watch"), keys),
            Tui::NotOffered(why) => panic!("{}: {why}", self.name),
        };
        let tmux = bench.tmux.as_ref().unwrap();
        let before = latest(bench.front_ends);
        let program = format!("EDITOR='sh {EDITOR_FILE}' waypost --as {} {open}", caller.actor());
        tmux.line(&format!("clear; {program}; echo left-$?"));
        for key in keys {
            // Words that stand there before are no answer.
            assert!(!tmux.screen().contains(ONLY_A_PERSON_WORDS), "{}", tmux.screen());
            match (key.strip_prefix('?'), key.strip_prefix('=')) {
                (Some(text), _) => drop(tmux.wait(text)),
                (None, Some(text)) => tmux.type_in(text),
                (None, None) => tmux.press(&[key]),
            }
        }
        let refused = self.code(caller);
        match refused {
            // The screen shows words, not codes.
            Some("needs_person" | "stopped_by_person") => drop(tmux.wait(ONLY_A_PERSON_WORDS)),
            Some("human_gate") => drop(tmux.wait(HUMAN_GATE_WORDS)),
            Some(code) => panic!("{}: no words are known for {code}", self.name),
            None => {
                let begun = Instant::now();
                while latest(bench.front_ends) == before {
                    let waited = begun.elapsed();
                    assert!(waited < WRITE_WAIT_MAX, "{}: nothing is written\n{}", self.name, tmux.screen());
                }
                // Before that, the editor would ask what to do with unsaved edits.
                if let Tui::Editor(_) = self.tui {
                    tmux.wait("saved as version");
                }
            }
        }
        tmux.press(&["C-c"]);
        tmux.wait("left-0");
        match refused {
            Some(code) => Reply::Refused { code: Some(code.to_owned()), answer: Value::Null },
            None => Reply::Accepted(Value::Null),
        }
    }
}

/// What acts are performed with.
struct Bench<'a> {
    front_ends: &'a FrontEnds,
    /// A terminal, where the terminal UI is wanted.
    tmux: Option<Tmux<'a>>,
}

/// The place of the latest event in the log.
fn latest(front_ends: &FrontEnds) -> String {
    let events = front_ends.read("/events?newest=1");
    events["cursor"].as_str().unwrap().to_owned()
}

/// What stands in the store: the plan; its tasks; who wrote which events from a version on.
fn observe(front_ends: &FrontEnds, plan: &str, after: u64, caller: Caller) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = front_ends.read(&format!("/plans/{plan}"));
    let mut told = text(&found["phase"]);
    if found["archived"] == true {
        told.push_str(" archived");
    }
    if found["owner"] != "" {
        told.push_str(&format!(" of {}", text(&found["owner"])));
    }
    let rows = front_ends.read(&format!("/plans/{plan}/tasks"));
    let tasks: Vec<String> = rows["tasks"].as_array().unwrap().iter().map(task_words).collect();
    let page = front_ends.read(&format!("/events?plan={plan}&limit=100"));
    let mut events = Vec::new();
    for event in page["events"].as_array().unwrap() {
        // What follows from the graph is not written down.
        if event["derived"] == true || event["version"].as_u64().unwrap() <= after {
            continue;
        }
        let actor = text(&event["actor"]);
        let by = if actor == caller.actor() { String::new() } else { format!(" by {actor}") };
        events.push(format!("{}{by}", text(&event["kind"])));
    }
    format!("{told}; {}; {}", tasks.join(", "), events.join(" "))
}

/// A task in the words of the table: `t2<parent(t1) 'another description' running 1 agent:robin: how far`.
fn task_words(row: &Value) -> String {
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let mut told = text("id");
    if let Some(parent) = row["parent"].as_str() {
        told.push_str(&format!("<{parent}"));
    }
    if let Some(dependencies) = row["depends_on"].as_array() {
        let names: Vec<&str> = dependencies.iter().filter_map(Value::as_str).collect();
        told.push_str(&format!("({})", names.join(" ")));
    }
    if !["one", "two", "three"].contains(&text("description").as_str()) {
        told.push_str(&format!(" '{}'", text("description")));
    }
    told.push_str(&format!(" {}", text("standing")));
    if let Some(attempt) = row["attempt"].as_u64() {
        told.push_str(&format!(" {attempt}"));
    }
    // An MCP server adds its session to the name.
    if let Some(worker) = text("worker").split('#').next().filter(|worker| !worker.is_empty()) {
        told.push_str(&format!(" {worker}"));
    }
    if let Some(progress) = row["progress"].as_str() {
        told.push_str(&format!(": {progress}"));
    }
    told
}

/// One cell: what is wrong with it, if anything is.
fn wrong(bench: &Bench<'_>, act: &Act, front_end: FrontEnd, caller: Caller) -> Option<String> {
    let front_ends = bench.front_ends;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut plan = format!("plan-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    act.given.make(front_ends, &plan);
    let (mut version, mut before) = (0, String::new());
    let newest = || {
        let newest = front_ends.read("/plans?sort=created&limit=1");
        newest["plans"][0]["id"].as_str().map(str::to_owned)
    };
    if act.given != Given::Nothing {
        version = front_ends.read(&format!("/plans/{plan}"))["version"].as_u64().unwrap();
        before = observe(front_ends, &plan, version, caller);
    } else if let Some(newest) = newest() {
        before = observe(front_ends, &newest, version, caller);
    }
    let reply = act.perform(bench, front_end, caller, &plan);
    if act.given == Given::Nothing {
        plan = newest().unwrap();
    }
    let found = observe(front_ends, &plan, version, caller);
    let answer = reply.code();
    let (expected_answer, expected) = match act.code(caller) {
        Some(code) => (code, before),
        None => ("accepted", act.expected(caller)),
    };
    (answer != expected_answer || found != expected).then(|| {
        format!(
            "{} · {caller:?} · {front_end:?}\n    expected {expected_answer}: {expected}\n    found    {answer}: {found}",
            act.name
        )
    })
}

/// Performs every act as every caller through these front ends, and names all cells that are wrong.
#[track_caller]
fn check(acts: &[Act], through: &[FrontEnd]) {
    let front_ends = FrontEnds::start();
    for (name, text) in [(TEXT_FILE, TEXT), (EDITOR_FILE, EDITOR)] {
        std::fs::write(front_ends.workspace.work().join(name), text).unwrap();
    }
    let tmux = through.contains(&FrontEnd::Tui).then(|| Tmux::new(&front_ends.workspace, 120, 35));
    let bench = Bench { front_ends: &front_ends, tmux };
    let mut wrongs = Vec::new();
    for act in acts {
        for caller in Caller::ALL {
            for &front_end in through.iter().filter(|&&front_end| act.is_offered(front_end, caller)) {
                let text = TEXT.replace("\"P\"", &format!("\"P\",\"goal\":\"{caller:?} {front_end:?}\""));
                std::fs::write(front_ends.workspace.work().join(NEW_FILE), text).unwrap();
                wrongs.extend(wrong(&bench, act, front_end, caller));
            }
        }
    }
    assert!(wrongs.is_empty(), "{} cells are wrong:\n{}", wrongs.len(), wrongs.join("\n"));
}

const PROGRAMS: &[FrontEnd] = &[FrontEnd::Cli, FrontEnd::Mcp, FrontEnd::McpOverHttp, FrontEnd::Http];

#[test]
fn an_edit_has_the_same_effect_through_every_front_end() {
    check(&edits(), PROGRAMS);
}

#[test]
fn work_on_a_task_has_the_same_effect_through_every_front_end() {
    check(&work(), PROGRAMS);
}

#[test]
fn a_decision_about_a_plan_has_the_same_effect_through_every_front_end() {
    check(&phases(), PROGRAMS);
}

#[test]
#[ignore = "needs tmux"]
fn an_edit_on_the_screen_has_the_effect_of_every_other_front_end() {
    check(&edits(), &[FrontEnd::Tui]);
}

#[test]
#[ignore = "needs tmux"]
fn work_and_decisions_on_the_screen_have_the_effect_of_every_other_front_end() {
    check(&work(), &[FrontEnd::Tui]);
    check(&phases(), &[FrontEnd::Tui]);
}
