//! Hearing of what happened.

use serde_json::{Value, json};
use waypost_mcp::Toolset;

use super::{begin, done, plan, take};

fn kinds(told: &Value) -> Vec<String> {
    let events = told["events"].as_array().unwrap();
    events.iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_subscription_is_read_once_and_outlives_its_session() {
    let (world, session) = begin();
    let id = plan(&session, json!([{ "id": "a", "description": "x" }, { "id": "b", "description": "y" }]));
    let other = world.session(Toolset::Native, "other");
    let told =
        other.call("events", json!({ "action": "subscribe", "plans": [id], "kinds": ["task_done"] })).value;
    let subscription = told["subscription"].clone();
    drop(other);
    take(&session);
    session.call("task_report", json!({ "task": "a", "status": "done", "text": "ok" }));
    let again = world.session(Toolset::Native, "other");
    let listed = again.call("events", json!({ "action": "list" })).value;
    assert_eq!(listed["subscriptions"][0]["subscription"], subscription);
    let told = again.call("events", json!({ "subscription": subscription }));
    assert_eq!(kinds(&told.value), ["task_done"]);
    assert_eq!(told.value["events"][0]["task"], "a");
    assert!(
        told.text.starts_with(&format!("task_done {id}/a by agent:main: result ok\ncursor ")),
        "{}",
        told.text
    );
    let told = again.call("events", json!({ "subscription": subscription }));
    assert_eq!(kinds(&told.value), Vec::<String>::new());
    assert!(told.text.starts_with("nothing new\ncursor "), "{}", told.text);
    let told = again.call("events", json!({ "subscription": subscription, "cursor": "0" }));
    assert_eq!(kinds(&told.value), ["task_done"], "the log is there to be read again");
    let nobodys = session.refused("events", json!({ "subscription": subscription }));
    assert!(nobodys.starts_with("agent:main has no subscription"), "{nobodys}");
    again.call("events", json!({ "action": "subscribe" }));
    let said = again.refused("events", json!({ "action": "unsubscribe" }));
    assert!(said.starts_with("you have 2 subscriptions; name one"), "{said}");
    let named = json!({ "action": "unsubscribe", "subscription": subscription });
    assert_eq!(again.call("events", named).value, json!({ "ended": 1 }));
    let only_one = again.call("events", json!({ "action": "unsubscribe" }));
    assert_eq!(only_one.value, json!({ "ended": 1 }), "there is no other");
}

#[test]
fn whoever_waits_is_told_when_it_happens() {
    let (world, session) = begin();
    plan(&session, json!(["a"]));
    take(&session);
    let other = world.session(Toolset::Native, "other");
    let told = other.call(
        "events",
        json!({ "action": "subscribe", "agents": ["main"], "kinds": ["plan_finished", "task_done"] }),
    );
    let subscription = told.value["subscription"].clone();
    let told = std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| other.call("events", json!({ "subscription": subscription, "wait": 60 })));
        done(&session, "t1");
        waiting.join().unwrap()
    });
    assert_eq!(kinds(&told.value)[0], "task_done", "{}", told.text);
}

#[test]
fn the_log_is_read_from_a_cursor_in_pages() {
    let (_world, session) = begin();
    plan(&session, json!(["a", "b"]));
    take(&session);
    done(&session, "t1");
    let first = session.call("events", json!({ "cursor": "0", "limit": 1 })).value;
    assert_eq!(kinds(&first), ["plan_created"]);
    assert_eq!(first["more"], true);
    let rest =
        session.call("events", json!({ "cursor": first["cursor"], "kinds": ["task_started", "task_done"] }));
    assert_eq!(kinds(&rest.value), ["task_started", "task_done"]);
    let now = session.call("events", json!({}));
    assert_eq!(kinds(&now.value), Vec::<String>::new(), "without a place: what comes from now on");
}

#[test]
fn filters_and_limits_are_checked() {
    let (_world, session) = begin();
    let refused = |arguments: Value| session.refused("events", arguments);
    assert!(refused(json!({ "kinds": ["task_dun"] })).starts_with("no event is called \"task_dun\"; "));
    assert!(refused(json!({ "limit": 101 })).starts_with("limit: must be from 1 to 100"));
    assert!(refused(json!({ "limit": 0 })).starts_with("limit: must be from 1 to 100"));
    assert!(refused(json!({ "wait": 601 })).starts_with("wait: must be at most 600 seconds"));
    assert!(refused(json!({ "cursor": "x" })).starts_with("cursor: \"x\" is not a cursor of the log"));
    assert!(
        refused(json!({ "action": "listen" }))
            .starts_with("action cannot be \"listen\"; did you mean list? use one of read")
    );
    assert!(refused(json!({ "plans": ["nope"] })).starts_with("no plan is called nope"));
    assert!(!session.ask("events", json!({ "limit": 100 })).is_error);
}
