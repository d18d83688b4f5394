//! Changing plans.

use serde_json::{Value, json};
use waypost_core::Command;
use waypost_mcp::Toolset;

use super::{begin, plan};

#[test]
fn operations_of_one_call_are_one_version() {
    let (_world, session) = begin();
    plan(&session, json!(["a", "b", "c"]));
    let told = session.call(
        "plan_edit",
        json!({ "ops": [
            { "op": "add", "description": "later", "depends_on": ["t5"] },
            { "op": "add", "description": "between" },
            { "op": "add", "id": "first", "description": "at the top", "first": true },
            { "op": "revise", "task": "t2", "description": "B", "depends_on": ["t1"], "priority": 5, "complexity": "high" },
            { "op": "move", "task": "t3", "before": "t1" },
            { "op": "status", "task": "t1", "status": "done", "result": "was easy" },
            { "op": "plan", "goal": "better", "status": "in review" },
        ] }),
    );
    assert_eq!(told.value["version"], 2);
    assert_eq!(told.value["added"], "t4-t5, first");
    let tasks = session.call("plan_get", json!({ "full": true })).value;
    let ids: Vec<&str> =
        tasks["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["first", "t3", "t1", "t2", "t4", "t5"]);
    assert_eq!(tasks["about"]["goal"], "better");
    let t2 = session.call("plan_get", json!({ "task": "t2" })).value;
    assert_eq!(
        (&t2["description"], &t2["complexity"], &t2["status"]),
        (&json!("B"), &json!("high"), &json!("ready"))
    );
}

#[test]
fn one_bad_operation_writes_nothing() {
    let (_world, session) = begin();
    plan(&session, json!(["a", "b"]));
    let ops =
        json!([{ "op": "revise", "task": "t1", "description": "changed" }, { "op": "remove", "task": "t9" }]);
    let said = session.refused("plan_edit", json!({ "ops": ops }));
    assert_eq!(said, "no task is called t9; did you mean t1?");
    assert_eq!(session.call("plan_get", json!({ "task": "t1" })).value["description"], "a");
    assert_eq!(session.call("plan_get", json!({})).value["version"], 1);
}

#[test]
fn the_id_of_a_removed_task_is_not_given_again() {
    let (_world, session) = begin();
    plan(&session, json!(["a", "b", "c"]));
    let ops = json!([{ "op": "remove", "task": "t3" }]);
    session.call("plan_edit", json!({ "ops": ops }));
    let add = json!({ "ops": [{ "op": "add", "description": "d" }] });
    assert_eq!(session.call("plan_edit", add).value["added"], "t4");
}

#[test]
fn sessions_that_add_tasks_at_the_same_time_keep_them_all() {
    let (world, session) = begin();
    let id = plan(&session, json!(["a"]));
    let add = json!({ "plan": id, "ops": [{ "op": "add", "description": "x" }] });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (other, add) = (world.session(Toolset::Native, "other"), add.clone());
            scope.spawn(move || (0..25).for_each(|_| drop(other.call("plan_edit", add.clone()))));
        }
    });
    assert_eq!(session.call("plan_get", json!({})).value["total"], 101);
}

#[test]
fn a_task_beside_a_child_gets_its_parent() {
    let (_world, session) = begin();
    plan(
        &session,
        json!([{ "id": "read", "description": "r" }, { "id": "part", "description": "p", "parent": "read" }]),
    );
    session.call(
        "plan_edit",
        json!({ "ops": [{ "op": "add", "id": "new", "description": "n", "before": "part" }] }),
    );
    assert_eq!(session.call("plan_get", json!({ "task": "new" })).value["parent"], "read");
}

#[test]
fn a_refusal_has_a_stable_code_and_facts() {
    let (_world, session) = begin();
    plan(&session, json!(["a", { "description": "b", "depends_on": ["t1"] }]));
    let check = |tool: &str, arguments: Value, code: &str| {
        let told = session.ask(tool, arguments);
        assert!(told.is_error, "{}", told.text);
        assert_eq!(told.value["code"], code, "{}", told.text);
        told.value
    };
    check("plan_get", json!({ "plan": "nope" }), "no_such_plan");
    check("plan_get", json!({ "since": 99 }), "no_such_version");
    let facts = check("task_next", json!({ "task": "t2" }), "blocked");
    assert_eq!(facts["waits_for"], json!(["t1"]));
    let cycle = json!({ "ops": [{ "op": "revise", "task": "t1", "depends_on": ["t2"] }] });
    check("plan_edit", cycle, "invalid");
}

#[test]
fn null_takes_a_field_away() {
    let (_world, session) = begin();
    plan(&session, json!([{ "description": "a", "notes": "n", "complexity": "low", "provides": "x" }]));
    let ops = json!([{ "op": "revise", "task": "t1", "notes": null, "complexity": null, "provides": null }]);
    session.call("plan_edit", json!({ "ops": ops }));
    let task = session.call("plan_get", json!({ "task": "t1" })).value;
    assert_eq!(task, json!({ "id": "t1", "description": "a", "status": "ready" }));
}

#[test]
fn a_stale_version_is_answered_with_what_changed_since() {
    let (world, session) = begin();
    let id = plan(&session, json!(["a", "b"]));
    let other = world.session(Toolset::Native, "other");
    other.call(
        "plan_edit",
        json!({ "plan": id, "ops": [{ "op": "revise", "task": "t2", "description": "theirs" }] }),
    );
    let mine =
        json!({ "known_version": 1, "ops": [{ "op": "revise", "task": "t2", "description": "mine" }] });
    let told = session.ask("plan_edit", mine);
    assert!(told.is_error);
    assert_eq!(
        told.text,
        format!(
            "plan {id} is at version 2, not 1; changed since: t2: description=theirs; nothing was written; read the changes, then retry"
        )
    );
    assert_eq!(
        told.value,
        json!({
            "code": "conflict", "version": 2, "changed": ["t2: description=theirs"],
            "detail": format!("plan {id} is at version 2, not 1; changed since: t2: description=theirs"),
            "hint": "nothing was written; read the changes, then retry",
        })
    );
    assert_eq!(session.call("plan_get", json!({ "task": "t2" })).value["description"], "theirs");
}

#[test]
fn statuses_are_set_and_set_back() {
    let (_world, session) = begin();
    plan(&session, json!(["a", "b", "c", { "description": "d", "depends_on": ["t3"] }]));
    let set = |task: &str, status: &str, more: Value| {
        let mut op = json!({ "op": "status", "task": task, "status": status });
        for (name, value) in more.as_object().unwrap() {
            op[name] = value.clone();
        }
        session.call("plan_edit", json!({ "ops": [op] }));
        session.call("plan_get", json!({ "task": task })).value["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(set("t1", "running", json!({})), "running");
    assert_eq!(set("t1", "pending", json!({ "reason": "not now" })), "ready");
    assert_eq!(set("t1", "done", json!({})), "done");
    assert_eq!(set("t1", "pending", json!({})), "ready");
    assert_eq!(set("t2", "skipped", json!({ "reason": "no need" })), "skipped");
    assert_eq!(set("t3", "failed", json!({ "error": "broke" })), "failed");
    assert_eq!(session.call("plan_get", json!({ "task": "t4" })).value["status"], "skipped");
    assert_eq!(set("t1", "cancelled", json!({})), "cancelled");
    let said = session
        .refused("plan_edit", json!({ "ops": [{ "op": "status", "task": "t1", "status": "failed" }] }));
    assert_eq!(said, "ops[0].error is missing; give error");
}

#[test]
fn a_plan_is_paused_and_goes_on_and_ends() {
    let (_world, session) = begin();
    let id = plan(&session, json!(["a", "b"]));
    session.call("plan_start", json!({}));
    let phase = |phase: &str| {
        session.call("plan_edit", json!({ "plan": id, "ops": [{ "op": "plan", "phase": phase }] }));
        session.call("plan_get", json!({ "plan": id })).value["phase"].as_str().unwrap().to_owned()
    };
    assert_eq!(phase("paused"), "paused");
    assert_eq!(session.call("task_next", json!({})).text, "nothing: the plan is paused");
    assert!(session.refused("plan_start", json!({})).contains("is paused"));
    assert_eq!(phase("active"), "active");
    assert_eq!(phase("cancelled"), "cancelled");
    let archive = json!({ "plan": id, "ops": [{ "op": "plan", "archived": true }] });
    session.call("plan_edit", archive);
    assert_eq!(session.call("plan_list", json!({})).value["total"], 0);
}

#[test]
fn no_operation_starts_a_plan_past_its_approval() {
    let (_world, session) = begin();
    let id = plan(&session, json!([{ "description": "x", "work": { "executor": "noop" } }]));
    let resume = json!({ "plan": id, "ops": [{ "op": "plan", "phase": "active" }] });
    let said = session.refused("plan_edit", resume);
    assert!(said.starts_with("the plan is draft, and so cannot be resumed; plan_start starts it"), "{said}");
    for phase in ["awaiting_approval", "draft"] {
        let ops = json!([{ "op": "plan", "phase": phase }]);
        let said = session.refused("plan_edit", json!({ "plan": id, "ops": ops }));
        assert!(said.starts_with("ops[0].phase: use plan_start"), "{said}");
    }
    assert!(
        session
            .refused("plan_edit", json!({ "ops": [{ "op": "approve" }] }))
            .contains("cannot be \"approve\"")
    );
}

#[test]
fn work_that_is_changed_after_approval_needs_another() {
    let (world, session) = begin();
    let id = plan(&session, json!([{ "description": "x", "work": { "executor": "noop" } }]));
    session.call("plan_start", json!({ "wait": 0 }));
    world.approve(&id);
    assert_eq!(session.call("plan_start", json!({ "wait": 0 })).value["phase"], "active");
    let ops = json!([{ "op": "revise", "task": "t1", "work": { "executor": "human" } }]);
    let told = session.call("plan_edit", json!({ "ops": ops }));
    assert_eq!(told.value["approval"], "needed", "{}", told.text);
}

#[test]
fn a_call_takes_so_many_operations_and_no_more() {
    let (_world, session) = begin();
    plan(&session, json!(["a"]));
    let ops = |count: usize| -> Vec<Value> {
        (0..count).map(|_| json!({ "op": "add", "description": "x" })).collect()
    };
    assert_eq!(session.call("plan_edit", json!({ "ops": ops(1_000) })).value["added"], "t2-t1001");
    let said = session.refused("plan_edit", json!({ "ops": ops(1_001) }));
    assert!(said.starts_with("1001 operations exceed the limit of 1000"), "{said}");
    let said = session.refused("plan_edit", json!({ "ops": [] }));
    assert_eq!(said, "ops is an empty list; give at least one operation");
    assert_eq!(session.refused("plan_edit", json!({})), "ops is missing; give ops");
}

#[test]
fn what_is_done_is_not_done_when_its_result_says_otherwise() {
    let (_world, session) = begin();
    plan(&session, json!(["a"]));
    let op = |sure: bool| json!({ "ops": [{ "op": "status", "task": "t1", "status": "done", "result": "could not", "sure": sure }] });
    assert!(
        session
            .refused("plan_edit", op(false))
            .starts_with("task t1 was not recorded as done: the result says \"could not\"; ")
    );
    session.call("plan_edit", op(true));
    assert_eq!(session.call("plan_get", json!({})).value["phase"], "completed");
}

#[test]
fn an_agent_holds_a_task_and_lifts_its_own_hold_but_not_a_persons() {
    let (world, session) = begin();
    let id = plan(&session, json!(["a"]));
    let edit = |ops: Value| session.ask("plan_edit", json!({ "ops": [ops] }));
    assert!(!edit(json!({ "op": "hold", "task": "t1", "reason": "not before the freeze ends" })).is_error);
    let told = session.ask("task_next", json!({ "task": "t1" }));
    assert!(told.is_error && told.text.contains("not before the freeze ends"), "{}", told.text);
    assert!(!edit(json!({ "op": "unhold", "task": "t1" })).is_error);
    assert_eq!(session.call("task_next", json!({})).value["task"], "t1");
    session.call("task_report", json!({ "task": "t1", "status": "release" }));
    let hold = Command::HoldTask { task: waypost_testkit::id("t1"), reason: "ask me".to_owned() };
    world.person(&id, hold);
    let told = edit(json!({ "op": "unhold", "task": "t1" }));
    assert_eq!((told.is_error, &told.value["code"]), (true, &json!("stopped_by_person")), "{}", told.text);
    let told = edit(json!({ "op": "hold", "task": "t1", "until": "noon" }));
    assert!(told.text.starts_with("unknown argument ops[0].until"), "{}", told.text);
}

#[test]
fn all_refused_operations_are_named_with_their_places() {
    let (_world, session) = begin();
    let id = plan(&session, json!(["a"]));
    let ops = json!([
        { "op": "add", "id": "n", "description": "new" },
        { "op": "add", "id": "m", "description": "newer" },
        { "op": "remove", "task": "x" },
        { "op": "plan", "title": "T" },
        { "op": "hold", "task": "y" },
    ]);
    let told = session.ask("plan_edit", json!({ "plan": id, "ops": ops }));
    let expected = "ops[2]: no task is called x; did you mean m?; ops[4]: no task is called y; did you mean m?; fix all of them, then retry";
    assert_eq!(told.text, expected);
    assert_eq!(told.value["problems"][1]["hint"], "did you mean m?", "{}", told.value);
    assert_eq!(told.value["code"], "no_such_task", "{}", told.value);
}
