//! The native tools: good and bad cases, limits, and what they cost.

mod create;
mod edit;
mod events;
mod exchange;
mod fuzz;
mod get;
mod reference;
mod sessions;
mod start;
mod tokens;
mod transcript;
mod words;
mod work;

use serde_json::{Value, json};
use waypost_mcp::Toolset;

use crate::session::{Session, World};

/// A world, and a session of the agent `main` in it.
fn begin() -> (World, Session) {
    let world = World::new();
    let session = world.session(Toolset::Native, "main");
    (world, session)
}

/// Makes a plan of these tasks and says its id.
#[track_caller]
fn plan(session: &Session, tasks: Value) -> String {
    let told = session.call("plan_create", json!({ "title": "a plan", "tasks": tasks }));
    told.value["plan"].as_str().unwrap().to_owned()
}

/// Takes the next task and says which.
#[track_caller]
fn take(session: &Session) -> String {
    let told = session.call("task_next", json!({}));
    told.value["task"].as_str().unwrap_or_else(|| panic!("{}", told.text)).to_owned()
}

/// Reports a task as done.
#[track_caller]
fn done(session: &Session, task: &str) {
    session.call("task_report", json!({ "task": task, "status": "done" }));
}

#[test]
fn a_new_store_lists_no_plans() {
    let (_world, session) = begin();
    let told = session.call("plan_list", json!({}));
    assert_eq!(told.value, json!({ "plans": [], "total": 0 }));
    assert_eq!(told.text, "no plans of yours; all: true lists others'");
}

#[test]
fn documents_and_task_plans_are_told_apart_in_the_list() {
    let (world, session) = begin();
    let document =
        session.call("plan_create", json!({ "title": "notes", "body": "# Notes" })).value["plan"].clone();
    world.wait(1);
    let tasks = plan(&session, json!(["a"]));
    let told = session.call("plan_list", json!({}));
    let ids: Vec<(&Value, Option<&Value>)> = told.value["plans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| (&plan["id"], plan.get("document")))
        .collect();
    assert_eq!(ids, [(&json!(tasks), None), (&document, Some(&json!(true)))]);
    let document = document.as_str().unwrap();
    assert_eq!(told.text, format!("{tasks} draft 0/1 \"a plan\"\n{document} draft document \"notes\""));
}

#[test]
fn all_wrong_arguments_of_a_call_are_named_at_once() {
    let (_world, session) = begin();
    plan(&session, json!(["a"]));
    for (tool, arguments, named) in [
        (
            "plan_edit",
            json!({ "ops": "x", "known_version": "y", "zzz": 1 }),
            &["ops: must be a list", "known_version: must be", "unknown argument zzz"][..],
        ),
        (
            "events",
            json!({ "action": "zip", "wait": "x", "limit": "y" }),
            &["action cannot be \"zip\"", "wait: must be", "limit: must be"],
        ),
        ("task_next", json!({ "any": "yes", "take_over": "no" }), &["any: must be", "take_over: must be"]),
        (
            "plan_get",
            json!({ "full": 1, "since": "x", "nope": 1 }),
            &["full: must be", "since: must be", "unknown argument nope"],
        ),
        (
            "plan_export",
            json!({ "fle": "plan.md", "format": "zip", "overwrite": 1 }),
            &["unknown argument fle", "file is missing", "format cannot be \"zip\"", "overwrite: must be"],
        ),
        ("plan_list", json!({ "all": 1, "phase": "zip" }), &["all: must be", "phase cannot be \"zip\""]),
        ("plan_start", json!({ "wait": "x", "message": 1 }), &["wait: must be", "message: must be"]),
    ] {
        let said = session.refused(tool, arguments);
        for word in named {
            assert_eq!(said.matches(word).count(), 1, "{tool}: {word}: {said}");
        }
    }
}

#[test]
fn every_unknown_argument_and_every_wrong_task_is_named_at_once() {
    let (_world, session) = begin();
    let said = session.refused("plan_list", json!({ "owner": "x", "sort": 1 }));
    assert!(said.starts_with("unknown arguments owner, sort; known arguments: all, phase"), "{said}");
    let tasks = json!([{ "description": "a", "colour": "red" }, 7, { "notes": "b" }]);
    let said = session.refused("plan_create", json!({ "title": "t", "tasks": tasks }));
    for place in
        ["tasks[0].colour", "tasks[1]: must be an object or text, not a number", "tasks[2]: a task needs"]
    {
        assert!(said.contains(place), "{place}: {said}");
    }
    // What does not fit is named in words.
    let tasks = json!([
        { "description": "a", "work": "cargo test" },
        { "description": "b", "priority": "high" },
    ]);
    let said = session.refused("plan_create", json!({ "title": "t", "tasks": tasks }));
    assert!(!said.contains("struct") && !said.contains("i32") && !said.contains("expected Work"), "{said}");
    for word in ["task t1: `work`", "must be an object", "task t2: `priority`", "must be a whole number"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn an_unknown_executor_is_answered_with_those_that_are_known_and_every_wrong_op_is_named() {
    let world =
        World::with_config("[executors.tests]\nkind = \"process\"\ncommand = [\"cargo\", \"test\"]\n");
    let session = world.session(Toolset::Native, "main");
    let tasks = json!([{ "description": "a", "work": { "executor": "test" } }, "b"]);
    let told = session.call("plan_create", json!({ "title": "t", "tasks": tasks }));
    assert_eq!(
        told.value["notes"],
        json!([
            "known executors: human, noop, tests",
            "not runnable with this configuration: task t1: no executor is called test"
        ])
    );
    let ops = json!([
        { "op": "revise", "task": "t1", "priority": "high" },
        { "op": "remove", "tasks": "t2" },
        { "op": "plan", "title": 7 },
    ]);
    let said = session.refused("plan_edit", json!({ "ops": ops }));
    for place in [
        "ops[0].priority: must be a whole number",
        "unknown argument ops[1].tasks",
        "ops[2].title: must be text",
    ] {
        assert!(said.contains(place), "{place}: {said}");
    }
}

#[test]
fn an_unknown_argument_hides_no_other_problem_and_programs_get_each() {
    let (_world, session) = begin();
    plan(&session, json!(["a"]));
    let tasks = json!([
        { "id": "t1", "descr": "one", "work": { "executor": 5 }, "locks": ["a", { "key": 3 }] },
        { "id": "t2", "description": "b", "check": { "inputs": {} } },
    ]);
    let told = session.ask("plan_create", json!({ "title": 5, "titl": "x", "tasks": tasks }));
    assert_eq!(
        (&told.value["code"], &told.value["hint"]),
        (&json!("bad_request"), &json!("fix all of them, then retry"))
    );
    let problems = told.value["problems"].as_array().unwrap();
    let messages: Vec<&str> = problems.iter().map(|problem| problem["message"].as_str().unwrap()).collect();
    assert_eq!(
        messages,
        [
            "unknown argument titl",
            "unknown argument tasks[0].descr",
            "task t1: `work.executor` has the wrong type: must be text, not `5`",
            "task t1: `locks[1].key` has the wrong type: must be text, not `3`",
            "task t2: `check.executor` is missing",
            "title: must be text, not 5",
        ]
    );
    assert_eq!((&problems[0]["hint"], &problems[2]["task"]), (&json!("did you mean title?"), &json!("t1")));
    for message in messages {
        assert!(told.text.contains(message), "{message}: {}", told.text);
    }
    let ops = json!([
        { "op": "revise", "task": "t1", "zork": 1, "priority": "high", "work": { "executor": 5 } },
        { "op": "add", "description": "c", "retry": { "attempts": "x" }, "zork": 1 },
    ]);
    let said = session.refused("plan_edit", json!({ "ops": ops, "zork": 1 }));
    for place in [
        "unknown argument zork",
        "unknown argument ops[0].zork",
        "ops[0].priority: must be a whole number",
        "ops[0].work.executor: must be text",
        "unknown argument ops[1].zork",
        "`retry.attempts` has the wrong type",
    ] {
        assert!(said.contains(place), "{place}: {said}");
    }
    let wrong = json!({ "task": "t1", "status": "finished", "text": 3, "zork": 1 });
    let said = session.refused("task_report", wrong);
    for place in ["unknown argument zork", "status cannot be \"finished\"", "text: must be text"] {
        assert!(said.contains(place), "{place}: {said}");
    }
    // A refusal of the service has its code, its facts, its text and its hint.
    let told = session.ask("plan_get", json!({ "plan": "nope" }));
    assert_eq!(
        told.value,
        json!({
            "code": "no_such_plan", "plan": "nope", "detail": "no plan is called nope",
            "hint": "plan_list with all: true lists the plans",
        })
    );
}

#[test]
fn plans_are_listed_a_page_at_a_time_and_only_ones_own() {
    let (world, session) = begin();
    for number in 0..21 {
        session.call("plan_create", json!({ "title": format!("plan {number}") }));
        world.wait(1);
    }
    world.session(Toolset::Native, "other").call("plan_create", json!({ "title": "theirs" }));
    assert!(session.refused("plan_list", json!({ "cursor": "x" })).contains("is not a cursor of this list"));
    let first = session.call("plan_list", json!({}));
    assert_eq!(first.value["plans"].as_array().unwrap().len(), 20);
    assert_eq!(first.value["total"], 21);
    assert_eq!(first.value["plans"][0]["title"], "plan 20");
    let last = session.call("plan_list", json!({ "cursor": first.value["cursor"] }));
    assert_eq!(last.value["plans"].as_array().unwrap().len(), 1);
    assert_eq!(last.value.get("cursor"), None);
    let theirs = session.call("plan_list", json!({ "all": true, "text": "THEIRS" }));
    assert_eq!(theirs.value["plans"][0]["owner"], "other");
    let none = session.call("plan_list", json!({ "phase": "active" }));
    assert_eq!(none.value["total"], 0);
}

#[test]
fn unknown_arguments_and_wrong_types_are_named() {
    let (_world, session) = begin();
    plan(&session, json!(["a"]));
    let check = |tool: &str, arguments: Value, expected: &str| {
        assert_eq!(session.refused(tool, arguments), expected, "{tool}");
    };
    check("plan_list", json!({ "phse": "active" }), "unknown argument phse; did you mean phase?");
    check(
        "plan_list",
        json!({ "zzzzzzz": 1 }),
        "unknown argument zzzzzzz; known arguments: all, phase, text, cursor",
    );
    let schema = "see the tool's schema, or the native format";
    check("plan_list", json!({ "all": "yes" }), &format!("all: must be true or false, not text; {schema}"));
    check(
        "plan_get",
        json!({ "since": -1 }),
        &format!("since: must be a whole number from 0, not -1; {schema}"),
    );
    check(
        "plan_list",
        json!({ "phase": "running" }),
        "phase cannot be \"running\"; use one of draft, awaiting_approval, active, paused, completed, failed, cancelled",
    );
    check("task_report", json!({ "task": "t1" }), "status is missing; give status");
    check(
        "plan_edit",
        json!({ "ops": [3] }),
        "ops[0]: must be an object, not a number; write {\"op\": \"revise\", \"task\": \"t1\", …}",
    );
    check(
        "plan_edit",
        json!({ "ops": [{ "op": "revise", "task": "t1", "desciption": "x" }] }),
        "unknown argument ops[0].desciption; did you mean description?",
    );
    check(
        "plan_get",
        json!({ "plan": "nope" }),
        "no plan is called nope; plan_list with all: true lists the plans",
    );
}

#[test]
fn annotations_say_what_a_tool_does() {
    let (_world, session) = begin();
    let tools = session.tools();
    let reads: Vec<&str> = tools
        .iter()
        .filter(|tool| tool.annotations.as_ref().unwrap().read_only_hint == Some(true))
        .map(|tool| &*tool.name)
        .collect();
    assert_eq!(reads, ["plan_get", "plan_list"]);
    let destroys: Vec<&str> = tools
        .iter()
        .filter(|tool| tool.annotations.as_ref().unwrap().destructive_hint == Some(true))
        .map(|tool| &*tool.name)
        .collect();
    assert_eq!(destroys, ["plan_export"], "it may replace a file of which there is no other version");
}
