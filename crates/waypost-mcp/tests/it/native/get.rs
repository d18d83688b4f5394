//! Looking at plans.

use serde_json::{Value, json};
use waypost_mcp::Toolset;

use super::{begin, done, plan, take};

#[test]
fn an_overview_says_how_the_plan_stands() {
    let (_world, session) = begin();
    let id = plan(&session, json!(["a", { "description": "b", "depends_on": ["t1"] }, "c", "d"]));
    take(&session);
    done(&session, "t1");
    take(&session);
    let told = session.call("plan_get", json!({}));
    assert_eq!(
        told.text,
        format!("plan {id} v4 active \"a plan\": 1/4 done, 1 running, 2 ready; yours: t2; next: t3, t4")
    );
    assert_eq!(
        told.value,
        json!({
            "plan": id, "title": "a plan", "version": 4, "phase": "active", "done": 1, "total": 4,
            "running": 1, "ready": 2, "yours": ["t2"], "next": ["t3", "t4"],
        })
    );
}

#[test]
fn the_default_is_the_sessions_plan_or_ones_own_open_one_and_others_are_named() {
    let (world, session) = begin();
    assert_eq!(
        session.refused("plan_get", json!({})),
        "agent:main has no plan; create one with plan_create, or name another agent's with plan"
    );
    let first = plan(&session, json!(["a"]));
    world.wait(1);
    let second = plan(&session, json!(["b"]));
    assert_eq!(session.call("plan_get", json!({})).value["plan"], second.as_str());
    take(&session);
    done(&session, "t1");
    assert_eq!(session.call("plan_get", json!({})).value["plan"], second.as_str(), "it has ended");
    let again = world.session(Toolset::Native, "main");
    assert_eq!(again.call("plan_get", json!({})).value["plan"], first.as_str(), "the second has ended");
    let other = world.session(Toolset::Native, "other");
    assert_eq!(other.call("plan_get", json!({ "plan": first })).value["plan"], first.as_str());
    assert!(other.ask("plan_get", json!({})).is_error);
}

#[test]
fn one_task_is_told_in_full_with_what_it_gets_and_what_it_waits_for() {
    let (_world, session) = begin();
    plan(
        &session,
        json!([
            { "id": "a", "description": "find", "provides": "found" },
            { "id": "b", "description": "use", "depends_on": ["a"], "notes": "carefully" },
            { "id": "c", "description": "end", "depends_on": ["b"] },
        ]),
    );
    let waits = session.call("plan_get", json!({ "task": "b" })).value;
    assert_eq!((&waits["status"], &waits["waits_for"]), (&json!("blocked"), &json!(["a (ready)"])));
    take(&session);
    session.call(
        "task_report",
        json!({ "task": "a", "status": "done", "text": "three", "output": { "files": 3 } }),
    );
    let told = session.call("plan_get", json!({ "task": "b" })).value;
    let expected = json!({
        "id": "b", "description": "use", "depends_on": ["a"], "notes": "carefully", "status": "ready",
        "inputs": { "found": { "files": 3 } }, "needed_by": ["c"],
    });
    assert_eq!(told, expected);
    let a = session.call("plan_get", json!({ "task": "a" })).value;
    assert_eq!((&a["result"], &a["output"]), (&json!("three"), &json!({ "files": 3 })));
    assert!(a["worker"].as_str().unwrap().starts_with("agent:main#"), "{a}");
    assert_eq!(session.refused("plan_get", json!({ "task": "bb" })), "no task is called bb; did you mean b?");
}

#[test]
fn a_task_is_told_up_to_a_bound() {
    let (_world, session) = begin();
    plan(&session, json!([{ "description": "x".repeat(200_000), "notes": "short" }]));
    let told = session.call("plan_get", json!({ "task": "t1" }));
    assert!(told.text.len() <= 64 * 1024 + 100, "{}", told.text.len());
    assert_eq!(told.value["notes"], "short");
    assert_eq!(told.value["cut"], "plan_export writes all of it to a file");
}

#[test]
fn all_tasks_are_told_page_by_page() {
    let (_world, session) = begin();
    let tasks: Vec<Value> = (0..120).map(|number| json!(format!("do {number}"))).collect();
    session.call("plan_create", json!({ "title": "many", "goal": "all of it", "tasks": tasks }));
    let (mut seen, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let page = session.call("plan_get", json!({ "full": true, "cursor": cursor }));
        assert!(page.text.len() < 16_000, "{}", page.text.len());
        assert_eq!(page.value.get("about").is_some(), pages == 0);
        seen.extend(page.value["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()));
        pages += 1;
        cursor = page.value.get("cursor").cloned().unwrap_or_default();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, (1..=120).map(|number| json!(format!("t{number}"))).collect::<Vec<_>>());
    assert_eq!(pages, 3);
    let gone = session.refused("plan_get", json!({ "cursor": "t999" }));
    assert_eq!(gone, "cursor: task t999 does not exist; start again with full: true");
}

#[test]
fn a_page_ends_when_it_is_large_enough() {
    let (_world, session) = begin();
    let tasks: Vec<Value> =
        (0..40).map(|_| json!({ "description": "x".repeat(5_000), "notes": "y".repeat(5_000) })).collect();
    plan(&session, json!(tasks));
    let page = session.call("plan_get", json!({ "full": true }));
    assert!(page.text.len() < 16_000, "{}", page.text.len());
    assert!(page.value["cursor"].is_string());
}

#[test]
fn changes_since_a_version_are_told_in_few_words() {
    let (_world, session) = begin();
    let id = plan(&session, json!(["a", "b", "c"]));
    session.call(
        "plan_edit",
        json!({ "ops": [
            { "op": "revise", "task": "t2", "description": "better", "notes": "n" },
            { "op": "remove", "task": "t3" },
            { "op": "add", "description": "new" },
            { "op": "plan", "title": "renamed", "body": "one\ntwo" },
        ] }),
    );
    let told = session.call("plan_get", json!({ "since": 1 }));
    assert_eq!(
        told.text,
        format!(
            "plan {id} v1 to v2:\ntitle=renamed\nbody +2 -0 lines\n-t3\nt2: description=better, notes=n\n+t4 \"new\""
        )
    );
    assert_eq!(session.call("plan_get", json!({ "since": 2 })).text, format!("plan {id} v2 to v2: nothing"));
    let wrong = session.refused("plan_get", json!({ "since": 9 }));
    assert!(wrong.contains("has versions 1 to 2, and no version 9"), "{wrong}");
    let both = session.refused("plan_get", json!({ "since": 1, "task": "t1" }));
    assert_eq!(both, "task, full and since exclude each other; give one of them");
}

#[test]
fn many_changes_are_counted_beyond_a_bound() {
    let (_world, session) = begin();
    plan(&session, json!(["a"]));
    let add: Vec<Value> = (0..100).map(|_| json!({ "op": "add", "description": "more" })).collect();
    session.call("plan_edit", json!({ "ops": add }));
    let told = session.call("plan_get", json!({ "since": 1 })).value;
    assert_eq!((told["changes"].as_array().unwrap().len(), &told["more"]), (30, &json!(70)));
}

#[test]
fn what_its_author_skips_keeps_nothing_waiting_before_the_plan_starts() {
    let (_world, session) = begin();
    let tasks = json!([
        { "id": "a", "description": "x", "skip": true },
        { "id": "b", "description": "y", "depends_on": ["a"] },
        { "id": "c", "description": "z", "depends_on": ["b"] },
    ]);
    let made = session.call("plan_create", json!({ "title": "P", "tasks": tasks })).value;
    assert_eq!(made["ready"], json!(["b"]), "{made}");
    let about = session.call("plan_get", json!({})).value;
    let counted = ["skipped", "ready", "blocked"].map(|word| about[word].clone());
    assert_eq!((counted, &about["next"]), ([json!(1), json!(1), json!(1)], &json!(["b"])), "{about}");
    let rows = session.call("plan_get", json!({ "full": true })).value;
    let statuses: Vec<&Value> = rows["tasks"].as_array().unwrap().iter().map(|row| &row["status"]).collect();
    assert_eq!(statuses, ["skipped", "ready", "blocked"]);
    assert_eq!(session.call("plan_get", json!({ "task": "b" })).value["status"], "ready");
    assert_eq!(session.call("task_next", json!({})).value["task"], "b");
}
