//! One table of acts × callers: the same act by the same caller has the same effect through the command line, MCP, HTTP
//! and the terminal UI. It is accepted by all or refused by all with the same stable code; plan, tasks and history are
//! the same afterwards.
//!
//! A row names the words of each front end for one act, the plan that it meets, what comes of it, and who is refused.
//! The plan has the tasks `t1`, `t2` (which depends on `t1`) and `t3`; see [`Given`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::front_ends::{Caller, FrontEnds, Reply, Request};
use crate::tmux::Tmux;
use Caller::{Agent, OtherAgent, Person, Worker};

/// How long the terminal UI may take to write what a key asked for.
const WRITE_WAIT_MAX: Duration = Duration::from_secs(30);

/// How the terminal UI shows the refusal with the code `only_a_person`.
const ONLY_A_PERSON_WORDS: &str = "only a person";

/// What stands for the id of the plan in the words of the command line.
const PLAN: &str = "PLAN";

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
    /// Active; `t1` is work for a person.
    HumanTask,
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
            Self::HumanTask => {
                create(Person, json!({ "executor": "human" }));
                of_plan("start");
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

const ONLY_A_PERSON: &[(Caller, &str)] =
    &[(Agent, "only_a_person"), (OtherAgent, "only_a_person"), (Worker, "only_a_person")];
/// Nobody speaks for another's attempt but a person.
const ONLY_THE_HOLDER: &[(Caller, &str)] = &[(OtherAgent, "already_running"), (Worker, "already_running")];
/// The text that a plan is updated from, and the file that holds it.
const TEXT: &str = r#"{"format":"waypost/1","title":"P","tasks":[{"id":"t1","description":"other"},{"id":"t2","description":"two","depends_on":["t1"]},{"id":"t3","description":"three"}]}"#;
const TEXT_FILE: &str = "other.json";
/// The same change, made by an editor.
const EDITOR: &str = "sed -i s/one/other/ \"$1\"\n";
const EDITOR_FILE: &str = "editor";

const MCP_IS_FOR_AGENTS: &str = "an agent asks, a person decides elsewhere";
const TUI_IS_FOR_PEOPLE: &str = "a person looks, decides and edits there, and works on no task";

/// Making and editing plans.
fn edits() -> Vec<Act> {
    vec![
        Act {
            name: "create",
            given: Given::Nothing,
            cli: &["new", "P"],
            mcp: Mcp::Tool("plan_create", json!({ "title": "P" })),
            http: Http::Send(
                "POST",
                "/plans",
                json!({ "plan": { "format": "waypost/1", "title": "P", "tasks": [] } }),
            ),
            tui: Tui::Plans(&["?n new", "n", "?New plan", "=P", "Enter"]),
            then: "draft OWNER; ; plan_created",
            refused: &[],
        },
        Act {
            name: "add",
            given: Given::Draft,
            cli: &["add", PLAN, "four"],
            mcp: Mcp::Edit(json!({ "op": "add", "description": "four" })),
            http: Http::Edit(json!({ "op": "add", "task": { "description": "four" } })),
            tui: Tui::Editor(&["?three", "End", "n", "?Complexity", "=four", "Enter", "?four", "s"]),
            then: "draft; t1 ready, t2(t1) blocked, t3 ready, t4 'four' ready; tasks_added",
            refused: &[],
        },
        Act {
            name: "add after the last task was removed",
            given: Given::Shrunk,
            cli: &["add", PLAN, "four"],
            mcp: Mcp::Edit(json!({ "op": "add", "description": "four" })),
            http: Http::Edit(json!({ "op": "add", "task": { "description": "four" } })),
            tui: Tui::Editor(&["?two", "End", "n", "?Complexity", "=four", "Enter", "?four", "s"]),
            then: "draft; t1 ready, t2(t1) blocked, t4 'four' ready; tasks_added",
            refused: &[],
        },
        Act {
            name: "add to tasks with names of their own",
            given: Given::Grouped,
            cli: &["add", PLAN, "four"],
            mcp: Mcp::Edit(json!({ "op": "add", "description": "four" })),
            http: Http::Edit(json!({ "op": "add", "task": { "description": "four" } })),
            tui: Tui::Editor(&["?three", "End", "n", "?Complexity", "=four", "Enter", "?four", "s"]),
            then: "draft; read ready, write<read ready, tell ready, t1 'four' ready; tasks_added",
            refused: &[],
        },
        Act {
            name: "add before a part of another task",
            given: Given::Grouped,
            cli: &["add", PLAN, "four", "--id", "t4", "--before", "write"],
            mcp: Mcp::Edit(json!({ "op": "add", "id": "t4", "description": "four", "before": "write" })),
            http: Http::Edit(
                json!({ "op": "add", "task": { "id": "t4", "description": "four" }, "before": "write" }),
            ),
            tui: Tui::NotOffered("a new task is put below the chosen one"),
            then: "draft; read ready, t4<read 'four' ready, write<read ready, tell ready; tasks_added",
            refused: &[],
        },
        Act {
            name: "move before a part of another task",
            given: Given::Grouped,
            cli: &["task", "move", PLAN, "tell", "--before", "write"],
            mcp: Mcp::Edit(json!({ "op": "move", "task": "tell", "before": "write" })),
            http: Http::Edit(json!({ "op": "move", "task": "tell", "before": "write" })),
            tui: Tui::Editor(&["?three", "End", ">", "r", "s"]),
            then: "draft; read ready, tell<read ready, write<read ready; task_moved",
            refused: &[],
        },
        Act {
            name: "revise",
            given: Given::Draft,
            cli: &["task", "revise", PLAN, "t1", "--description", "other"],
            mcp: Mcp::Edit(json!({ "op": "revise", "task": "t1", "description": "other" })),
            http: Http::Edit(json!({ "op": "revise", "task": "t1", "set": { "description": "other" } })),
            tui: Tui::Editor(&["?three", "Enter", "?Complexity", "C-u", "=other", "Enter", "?other", "s"]),
            then: "draft; t1 'other' ready, t2(t1) blocked, t3 ready; task_revised",
            refused: &[],
        },
        Act {
            name: "remove",
            given: Given::Draft,
            cli: &["task", "remove", PLAN, "t3"],
            mcp: Mcp::Edit(json!({ "op": "remove", "task": "t3" })),
            http: Http::Edit(json!({ "op": "remove", "task": "t3" })),
            tui: Tui::Editor(&["?three", "End", "d", "s"]),
            then: "draft; t1 ready, t2(t1) blocked; tasks_removed",
            refused: &[],
        },
        Act {
            name: "move",
            given: Given::Draft,
            cli: &["task", "move", PLAN, "t3", "--before", "t1"],
            mcp: Mcp::Edit(json!({ "op": "move", "task": "t3", "before": "t1" })),
            http: Http::Edit(json!({ "op": "move", "task": "t3", "before": "t1" })),
            tui: Tui::Editor(&["?three", "End", "r", "r", "s"]),
            then: "draft; t3 ready, t1 ready, t2(t1) blocked; task_moved",
            refused: &[],
        },
        Act {
            name: "connect",
            given: Given::Draft,
            cli: &["task", "revise", PLAN, "t3", "--after", "t1"],
            mcp: Mcp::Edit(json!({ "op": "revise", "task": "t3", "depends_also_on": ["t1"] })),
            http: Http::Edit(json!({ "op": "connect", "from": "t1", "to": "t3" })),
            tui: Tui::Editor(&["?three", "End", "a", "=t1", "Tab", "Enter", "s"]),
            then: "draft; t1 ready, t2(t1) blocked, t3(t1) blocked; task_revised",
            refused: &[],
        },
        Act {
            name: "remove a task that another depends on",
            given: Given::Draft,
            cli: &["task", "remove", PLAN, "t1"],
            mcp: Mcp::Edit(json!({ "op": "remove", "task": "t1" })),
            http: Http::Edit(json!({ "op": "remove", "task": "t1" })),
            tui: Tui::NotOffered("the dialog names the dependants and detaches them"),
            then: "",
            refused: &[
                (Person, "has_dependants"),
                (Agent, "has_dependants"),
                (OtherAgent, "has_dependants"),
                (Worker, "has_dependants"),
            ],
        },
        Act {
            name: "connect to a cycle",
            given: Given::Draft,
            cli: &["task", "revise", PLAN, "t1", "--after", "t2"],
            mcp: Mcp::Edit(json!({ "op": "revise", "task": "t1", "depends_also_on": ["t2"] })),
            http: Http::Edit(json!({ "op": "connect", "from": "t2", "to": "t1" })),
            tui: Tui::NotOffered("the editor shows the cycle and does not save it"),
            then: "",
            refused: &[(Person, "invalid"), (Agent, "invalid"), (OtherAgent, "invalid"), (Worker, "invalid")],
        },
        Act {
            name: "revise a task that does not exist",
            given: Given::Draft,
            cli: &["task", "revise", PLAN, "t9", "--description", "other"],
            mcp: Mcp::Edit(json!({ "op": "revise", "task": "t9", "description": "other" })),
            http: Http::Edit(json!({ "op": "revise", "task": "t9", "set": { "description": "other" } })),
            tui: Tui::NotOffered("only tasks on the screen can be chosen"),
            then: "",
            refused: &[
                (Person, "no_such_task"),
                (Agent, "no_such_task"),
                (OtherAgent, "no_such_task"),
                (Worker, "no_such_task"),
            ],
        },
        Act {
            name: "update from text",
            given: Given::Draft,
            cli: &["update", PLAN, "--from-file", TEXT_FILE],
            mcp: Mcp::Tool("plan_update", json!({ "file": TEXT_FILE })),
            http: Http::Send("PUT", "/content", json!({ "text": TEXT })),
            tui: Tui::Editor(&["?three", "e", "?other", "s"]),
            then: "draft; t1 'other' ready, t2(t1) blocked, t3 ready; task_revised",
            refused: &[],
        },
        Act {
            name: "restore an earlier version",
            given: Given::Revised,
            cli: &["restore", PLAN, "1"],
            mcp: Mcp::NotOffered("an agent edits, and does not go back behind others' writes"),
            http: Http::Send("POST", "/restore", json!({ "version": 1 })),
            tui: Tui::Run(&[
                "?three",
                "h",
                "?Versions",
                "End",
                "?Version 1: created",
                "r",
                "?Restore version 1",
                "r",
            ]),
            then: "draft; t1 ready, t2(t1) blocked, t3 ready; task_revised",
            refused: &[],
        },
    ]
}

/// Working on tasks.
fn work() -> Vec<Act> {
    vec![
        Act {
            name: "claim",
            given: Given::Draft,
            cli: &["start", PLAN, "t1"],
            mcp: Mcp::Tool("task_next", json!({ "task": "t1" })),
            http: Http::Send("POST", "/tasks/t1/actions/claim", json!({})),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "active; t1 running 1 CALLER, t2(t1) blocked, t3 ready; plan_activated task_started",
            refused: &[],
        },
        Act {
            name: "claim the next task",
            given: Given::Active,
            cli: &["next", PLAN, "--claim"],
            mcp: Mcp::Tool("task_next", json!({})),
            http: Http::Send("POST", "/next", json!({ "plan": PLAN })),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "active; t1 running 1 CALLER, t2(t1) blocked, t3 ready; task_started",
            refused: &[],
        },
        Act {
            name: "claim what agent:robin works on",
            given: Given::Claimed,
            cli: &["start", PLAN, "t1"],
            mcp: Mcp::Tool("task_next", json!({ "task": "t1" })),
            http: Http::Send("POST", "/tasks/t1/actions/claim", json!({})),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            // Who claims what it has renews its lease.
            then: "active; t1 running 1 agent:robin, t2(t1) blocked, t3 ready; ",
            refused: &[
                (Person, "already_running"),
                (OtherAgent, "already_running"),
                (Worker, "already_running"),
            ],
        },
        Act {
            name: "claim what is blocked",
            given: Given::Active,
            cli: &["start", PLAN, "t2"],
            mcp: Mcp::Tool("task_next", json!({ "task": "t2" })),
            http: Http::Send("POST", "/tasks/t2/actions/claim", json!({})),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "",
            refused: &[(Person, "blocked"), (Agent, "blocked"), (OtherAgent, "blocked"), (Worker, "blocked")],
        },
        Act {
            name: "progress",
            given: Given::Claimed,
            cli: &["progress", PLAN, "t1", "half"],
            mcp: Mcp::Tool("task_report", json!({ "task": "t1", "status": "progress", "text": "half" })),
            http: Http::Send("POST", "/tasks/t1/actions/progress", json!({ "progress": "half" })),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "active; t1 running 1 agent:robin: half, t2(t1) blocked, t3 ready; ",
            refused: ONLY_THE_HOLDER,
        },
        Act {
            name: "progress on what nobody works on",
            given: Given::Active,
            cli: &["progress", PLAN, "t1", "half"],
            mcp: Mcp::Tool("task_report", json!({ "task": "t1", "status": "progress", "text": "half" })),
            http: Http::Send("POST", "/tasks/t1/actions/progress", json!({ "progress": "half" })),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "",
            refused: &[
                (Person, "wrong_status"),
                (Agent, "wrong_status"),
                (OtherAgent, "wrong_status"),
                (Worker, "wrong_status"),
            ],
        },
        Act {
            name: "done",
            given: Given::Claimed,
            cli: &["done", PLAN, "t1"],
            mcp: Mcp::Tool("task_report", json!({ "task": "t1", "status": "done" })),
            http: Http::Send("POST", "/tasks/t1/actions/done", json!({})),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "active; t1 done 1 agent:robin, t2(t1) ready, t3 ready; task_done",
            refused: ONLY_THE_HOLDER,
        },
        Act {
            name: "done, where nobody works on it",
            given: Given::Active,
            cli: &["done", PLAN, "t1"],
            mcp: Mcp::Tool("task_report", json!({ "task": "t1", "status": "done" })),
            http: Http::Send("POST", "/tasks/t1/actions/done", json!({})),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "active; t1 done, t2(t1) ready, t3 ready; task_done",
            refused: &[],
        },
        Act {
            name: "fail",
            given: Given::Claimed,
            cli: &["fail", PLAN, "t1", "--error", "it broke"],
            mcp: Mcp::Tool("task_report", json!({ "task": "t1", "status": "failed", "text": "it broke" })),
            http: Http::Send("POST", "/tasks/t1/actions/fail", json!({ "error": "it broke" })),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "active; t1 failed 1 agent:robin, t2(t1) skipped, t3 ready; task_failed",
            refused: ONLY_THE_HOLDER,
        },
        Act {
            name: "skip",
            given: Given::Claimed,
            cli: &["skip", PLAN, "t1"],
            mcp: Mcp::Tool("task_report", json!({ "task": "t1", "status": "skipped" })),
            http: Http::Send("POST", "/tasks/t1/actions/skip", json!({})),
            tui: Tui::NotOffered("the editor's skip is an edit of the plan"),
            then: "active; t1 skipped 1 agent:robin, t2(t1) ready, t3 ready; task_skipped",
            refused: ONLY_THE_HOLDER,
        },
        Act {
            name: "ask",
            given: Given::Claimed,
            cli: &["ask", PLAN, "t1", "left or right?"],
            mcp: Mcp::Tool(
                "task_report",
                json!({ "task": "t1", "status": "question", "text": "left or right?" }),
            ),
            http: Http::Send("POST", "/tasks/t1/actions/ask", json!({ "question": "left or right?" })),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "active; t1 asking 1, t2(t1) blocked, t3 ready; question_asked",
            refused: ONLY_THE_HOLDER,
        },
        Act {
            name: "answer",
            given: Given::Asking,
            cli: &["answer", PLAN, "t1", "left"],
            mcp: Mcp::NotOffered(MCP_IS_FOR_AGENTS),
            http: Http::Send("POST", "/tasks/t1/actions/answer", json!({ "answer": "left" })),
            tui: Tui::Run(&["?left or right?", "i", "?Answer t1", "=left", "Enter"]),
            then: "active; t1 ready 1, t2(t1) blocked, t3 ready; question_answered",
            refused: ONLY_A_PERSON,
        },
        Act {
            name: "answer a task for a person",
            given: Given::HumanTask,
            cli: &["answer", PLAN, "t1", "yes"],
            mcp: Mcp::NotOffered(MCP_IS_FOR_AGENTS),
            http: Http::Send("POST", "/tasks/t1/actions/answer", json!({ "answer": "yes" })),
            tui: Tui::Run(&["?three", "i", "?Answer t1", "=yes", "Enter"]),
            then: "active; t1 done, t2(t1) ready, t3 ready; task_done",
            refused: ONLY_A_PERSON,
        },
        Act {
            name: "answer what asks nothing",
            given: Given::Active,
            cli: &["answer", PLAN, "t1", "yes"],
            mcp: Mcp::NotOffered(MCP_IS_FOR_AGENTS),
            http: Http::Send("POST", "/tasks/t1/actions/answer", json!({ "answer": "yes" })),
            tui: Tui::NotOffered("only what is asked can be answered there"),
            then: "",
            refused: &[
                (Person, "no_question"),
                (Agent, "only_a_person"),
                (OtherAgent, "only_a_person"),
                (Worker, "only_a_person"),
            ],
        },
        Act {
            name: "release",
            given: Given::Claimed,
            cli: &["release", PLAN, "t1"],
            mcp: Mcp::Tool("task_report", json!({ "task": "t1", "status": "release" })),
            http: Http::Send("POST", "/tasks/t1/actions/release", json!({})),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "active; t1 ready 1, t2(t1) blocked, t3 ready; task_released",
            refused: ONLY_THE_HOLDER,
        },
        Act {
            name: "cancel a task",
            given: Given::Claimed,
            cli: &["cancel", PLAN, "t1"],
            mcp: Mcp::Edit(json!({ "op": "status", "task": "t1", "status": "cancelled" })),
            http: Http::Send("POST", "/tasks/t1/actions/cancel", json!({})),
            tui: Tui::Run(&["?three", "c", "?Cancel a task", "c"]),
            then: "active; t1 cancelled 1 agent:robin, t2(t1) skipped, t3 ready; tasks_cancelled",
            refused: &[],
        },
        Act {
            name: "retry a task",
            given: Given::Failed,
            cli: &["retry", PLAN, "t1"],
            mcp: Mcp::Edit(json!({ "op": "status", "task": "t1", "status": "pending" })),
            http: Http::Send("POST", "/tasks/t1/actions/retry", json!({})),
            tui: Tui::Run(&["?three", "t"]),
            then: "active; t1 ready 1 agent:robin, t2(t1) blocked, t3 ready; tasks_retried",
            refused: &[],
        },
    ]
}

/// The plan as a whole.
fn phases() -> Vec<Act> {
    vec![
        Act {
            name: "request approval",
            given: Given::Unapproved,
            cli: &["request-approval", PLAN],
            mcp: Mcp::Tool("plan_start", json!({ "wait": 0 })),
            http: Http::Send("POST", "/actions/request-approval", json!({})),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "awaiting_approval of robin; t1 ready, t2(t1) blocked, t3 ready; approval_requested",
            refused: &[],
        },
        Act {
            name: "approve",
            given: Given::AwaitingApproval,
            cli: &["approve", PLAN],
            mcp: Mcp::NotOffered(MCP_IS_FOR_AGENTS),
            http: Http::Send("POST", "/actions/approve", json!({})),
            tui: Tui::Run(&["?What will run", "a", "?b back", "a"]),
            then: "active of robin; t1 ready, t2(t1) blocked, t3 ready; plan_approved",
            refused: ONLY_A_PERSON,
        },
        Act {
            name: "reject",
            given: Given::AwaitingApproval,
            cli: &["reject", PLAN, "--reason", "no"],
            mcp: Mcp::NotOffered(MCP_IS_FOR_AGENTS),
            http: Http::Send("POST", "/actions/reject", json!({ "reason": "no" })),
            tui: Tui::Run(&["?What will run", "R", "?Reject the plan", "=no", "Enter"]),
            then: "draft of robin; t1 ready, t2(t1) blocked, t3 ready; plan_rejected",
            refused: ONLY_A_PERSON,
        },
        Act {
            name: "claim before it is approved",
            given: Given::Unapproved,
            cli: &["start", PLAN, "t3"],
            mcp: Mcp::NotOffered("task_next answers that there is nothing, and why"),
            http: Http::Send("POST", "/tasks/t3/actions/claim", json!({})),
            tui: Tui::NotOffered(TUI_IS_FOR_PEOPLE),
            then: "",
            refused: &[
                (Person, "needs_approval"),
                (Agent, "needs_approval"),
                (OtherAgent, "needs_approval"),
                (Worker, "needs_approval"),
            ],
        },
        Act {
            name: "pause",
            given: Given::Active,
            cli: &["pause", PLAN],
            mcp: Mcp::Edit(json!({ "op": "plan", "phase": "paused" })),
            http: Http::Send("POST", "/actions/pause", json!({})),
            tui: Tui::Run(&["?three", "p"]),
            then: "paused; t1 ready, t2(t1) blocked, t3 ready; plan_paused",
            refused: &[],
        },
        Act {
            name: "resume",
            given: Given::Paused,
            cli: &["resume", PLAN],
            mcp: Mcp::Edit(json!({ "op": "plan", "phase": "active" })),
            http: Http::Send("POST", "/actions/resume", json!({})),
            tui: Tui::Run(&["?paused", "p"]),
            then: "active; t1 ready, t2(t1) blocked, t3 ready; plan_resumed",
            refused: &[],
        },
        Act {
            name: "cancel the plan",
            given: Given::Active,
            cli: &["cancel", PLAN],
            mcp: Mcp::Edit(json!({ "op": "plan", "phase": "cancelled" })),
            http: Http::Send("POST", "/actions/cancel", json!({})),
            tui: Tui::Run(&["?three", "C", "?Cancel the plan", "c"]),
            then: "cancelled; t1 cancelled, t2(t1) cancelled, t3 cancelled; plan_finished",
            refused: &[],
        },
        Act {
            name: "retry the plan",
            given: Given::Failed,
            cli: &["retry", PLAN],
            mcp: Mcp::NotOffered("an agent names the task that it tries again"),
            http: Http::Send("POST", "/actions/retry", json!({})),
            tui: Tui::Run(&["?three", "T"]),
            then: "active; t1 ready 1 agent:robin, t2(t1) blocked, t3 ready; tasks_retried",
            refused: &[],
        },
        Act {
            name: "archive",
            given: Given::Draft,
            cli: &["archive", PLAN],
            mcp: Mcp::Edit(json!({ "op": "plan", "archived": true })),
            http: Http::Send("POST", "/actions/archive", json!({})),
            tui: Tui::NotOffered("archived plans are listed there, and neither made nor restored"),
            then: "draft archived; t1 ready, t2(t1) blocked, t3 ready; plan_archived",
            refused: &[],
        },
        Act {
            name: "archive while a task runs",
            given: Given::Claimed,
            cli: &["archive", PLAN],
            mcp: Mcp::Edit(json!({ "op": "plan", "archived": true })),
            http: Http::Send("POST", "/actions/archive", json!({})),
            tui: Tui::NotOffered("archived plans are listed there, and neither made nor restored"),
            then: "",
            refused: &[
                (Person, "still_running"),
                (Agent, "still_running"),
                (OtherAgent, "still_running"),
                (Worker, "still_running"),
            ],
        },
        Act {
            name: "restore from the archive",
            given: Given::Archived,
            cli: &["unarchive", PLAN],
            mcp: Mcp::Edit(json!({ "op": "plan", "archived": false })),
            http: Http::Send("POST", "/actions/unarchive", json!({})),
            tui: Tui::NotOffered("archived plans are listed there, and neither made nor restored"),
            then: "draft; t1 ready, t2(t1) blocked, t3 ready; plan_unarchived",
            refused: &[],
        },
    ]
}

/// A front end, in the order of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrontEnd {
    Cli,
    Mcp,
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
            FrontEnd::Tui => !matches!(self.tui, Tui::NotOffered(_)),
        }
    }

    fn code(&self, caller: Caller) -> Option<&'static str> {
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
        match front_end {
            FrontEnd::Cli => {
                let words: Vec<&str> =
                    self.cli.iter().map(|&word| if word == PLAN { plan } else { word }).collect();
                front_ends.cli(caller, &words)
            }
            FrontEnd::Mcp => {
                let (tool, mut arguments) = match &self.mcp {
                    Mcp::Tool(tool, arguments) => (*tool, arguments.clone()),
                    Mcp::Edit(operation) => ("plan_edit", json!({ "ops": [operation] })),
                    Mcp::NotOffered(why) => panic!("{}: {why}", self.name),
                };
                if self.given != Given::Nothing {
                    arguments["plan"] = plan.into();
                }
                front_ends.mcp(caller).call(tool, arguments)
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
                let body = body.to_string().replace(PLAN, plan);
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
            Some("only_a_person") => drop(tmux.wait(ONLY_A_PERSON_WORDS)),
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
    if act.given != Given::Nothing {
        version = front_ends.read(&format!("/plans/{plan}"))["version"].as_u64().unwrap();
        before = observe(front_ends, &plan, version, caller);
    }
    let reply = act.perform(bench, front_end, caller, &plan);
    if act.given == Given::Nothing {
        let newest = front_ends.read("/plans?sort=created&limit=1");
        plan = newest["plans"][0]["id"].as_str().unwrap().to_owned();
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
                wrongs.extend(wrong(&bench, act, front_end, caller));
            }
        }
    }
    assert!(wrongs.is_empty(), "{} cells are wrong:\n{}", wrongs.len(), wrongs.join("\n"));
}

const PROGRAMS: &[FrontEnd] = &[FrontEnd::Cli, FrontEnd::Mcp, FrontEnd::Http];

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
fn an_edit_on_the_screen_has_the_effect_of_every_other_front_end() {
    check(&edits(), &[FrontEnd::Tui]);
}

#[test]
fn work_and_decisions_on_the_screen_have_the_effect_of_every_other_front_end() {
    check(&work(), &[FrontEnd::Tui]);
    check(&phases(), &[FrontEnd::Tui]);
}
