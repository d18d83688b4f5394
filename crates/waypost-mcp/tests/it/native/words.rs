//! What the native tools say beside yes and no.

use serde_json::json;
use waypost_core::Command;
use waypost_mcp::Toolset;

use super::{begin, done, plan, take};
use crate::session::World;

#[test]
fn whoever_ends_a_plan_is_told_what_was_cancelled_with_it() {
    let (_world, session) = begin();
    plan(&session, json!((1..=30).map(|number| format!("do {number}")).collect::<Vec<_>>()));
    take(&session);
    done(&session, "t1");
    let end = json!({ "ops": [{ "op": "plan", "phase": "cancelled", "summary": "no time" }] });
    let told = session.call("plan_edit", end.clone());
    assert!(told.text.ends_with("; cancelled 29 with it: t2-t30"), "{}", told.text);
    assert_eq!(told.value["cancelled"], json!({ "count": 29, "tasks": "t2-t30" }));
    let again = session.call("plan_edit", end);
    assert_eq!((again.value.get("cancelled"), &again.value["changed"]), (None, &json!(false)));
}

#[test]
fn a_rejection_is_shown_until_somebody_is_asked_anew() {
    let world = World::with_config("approval = \"all\"");
    let session = world.session(Toolset::Native, "main");
    let id = plan(&session, json!(["a"]));
    session.call("plan_start", json!({ "wait": 0 }));
    world.person(&id, Command::Reject { reason: "not on a Friday".to_owned() });
    let told = session.call("plan_get", json!({}));
    assert!(told.text.ends_with("; needs approval; rejected: \"not on a Friday\""), "{}", told.text);
    assert_eq!(told.value["rejected"], "not on a Friday");
    // Whoever is refused because of it learns the reason.
    let rejected = "person:ada rejected it (\"not on a Friday\")";
    let told = session.call("task_next", json!({}));
    assert_eq!(
        told.text,
        format!("nothing: the plan needs a person's approval; {rejected}; change the plan, then plan_start")
    );
    let told = session.ask("task_report", json!({ "task": "t1", "status": "done" }));
    assert!(told.is_error && told.text.contains(rejected), "{}", told.text);
    assert_eq!(told.value["rejection"], rejected);
    session
        .call("plan_edit", json!({ "ops": [{ "op": "revise", "task": "t1", "description": "on Monday" }] }));
    session.call("plan_start", json!({ "wait": 0 }));
    assert_eq!(session.call("plan_get", json!({})).value.get("rejected"), None);
}

#[test]
fn whoever_reads_no_subscription_is_told_which_one_has_something_new() {
    let (_world, session) = begin();
    plan(&session, json!(["a", "b"]));
    let subscribe = json!({ "action": "subscribe", "kinds": ["task_done"] });
    let subscription = session.call("events", subscribe).value["subscription"].clone();
    assert!(session.call("events", json!({})).text.starts_with("nothing new\n"));
    take(&session);
    done(&session, "t1");
    let told = session.call("events", json!({}));
    assert_eq!(told.value["unread"], json!([subscription]));
    let expected = format!("unread: subscription {}; events", subscription.as_str().unwrap());
    assert!(told.text.starts_with(&expected), "{}", told.text);
    session.call("events", json!({ "subscription": subscription }));
    assert_eq!(session.call("events", json!({})).value.get("unread"), None);
}

#[test]
fn what_an_event_says_stands_in_fields_of_their_own() {
    let (_world, session) = begin();
    plan(&session, json!(["a"]));
    take(&session);
    let report = json!({ "task": "t1", "status": "failed", "text": "x".repeat(1_000) });
    session.call("task_report", report);
    let told = session.call("events", json!({ "cursor": "0", "kinds": ["task_failed"] }));
    let event = &told.value["events"][0];
    assert_eq!((&event["kind"], &event["task"]), (&json!("task_failed"), &json!("t1")));
    let error = event["error"].as_str().unwrap();
    assert!(error.starts_with("xxxx") && error.len() <= 160, "{error}");
    assert!(told.text.contains("/t1 by agent:main: error \"xxxx"), "{}", told.text);
}

#[test]
fn what_is_meant_is_guessed_where_a_word_is_not_known() {
    let (_world, session) = begin();
    plan(&session, json!([{ "id": "build", "description": "a" }]));
    let check = |tool: &str, arguments: serde_json::Value, expected: &str| {
        let said = session.refused(tool, arguments);
        assert!(said.contains(expected), "{said}");
    };
    check("task_report", json!({ "task": "buid", "status": "done" }), "did you mean build?");
    check("task_next", json!({ "task": "buld" }), "did you mean build?");
    check("plan_get", json!({ "task": "buld" }), "did you mean build?");
    check(
        "task_report",
        json!({ "task": "build", "status": "don" }),
        "did you mean done? use one of progress",
    );
    check("task_report", json!({ "task": "build", "status": "done", "resutl": "x" }), "did you mean result?");
    check("plan_edit", json!({ "ops": [{ "op": "revize", "task": "build" }] }), "did you mean revise?");
    check(
        "plan_edit",
        json!({ "ops": [{ "op": "body", "body": "x" }] }),
        "use one of add, revise, remove, move, status, hold, unhold, comment, label, assign, plan",
    );
    check(
        "plan_edit",
        json!({ "ops": [{ "op": "status", "task": "buid", "status": "done" }] }),
        "did you mean build?",
    );
    check("plan_list", json!({ "phase": "activ" }), "did you mean active?");
    take(&session);
    check("task_report", json!({ "task": "build", "status": "failed" }), "the error is empty");
}

#[test]
fn hints_name_tools_that_are_there() {
    let (_world, session) = begin();
    let id = plan(&session, json!(["a"]));
    take(&session);
    done(&session, "t1");
    let said = session.refused("task_report", json!({ "task": "t1", "status": "failed", "text": "x" }));
    assert!(said.ends_with("plan_edit with op status, status pending reopens it"), "{said}");
    let said = session.refused("plan_get", json!({ "plan": id, "since": 99 }));
    assert!(said.ends_with("use a version from an earlier result"), "{said}");
}
