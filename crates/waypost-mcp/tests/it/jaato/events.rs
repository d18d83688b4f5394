//! Events of the plugin: who hears of what, and reading on from where one was.

use serde_json::{Value, json};

use super::{agent, set, started, text};
use crate::session::{Session, World};

fn kinds(events: &Value) -> Vec<String> {
    events.as_array().unwrap().iter().map(|event| text(&event["event_type"])).collect()
}

fn recent(session: &Session, arguments: Value) -> Value {
    session.call("getTaskEvents", arguments).value
}

#[test]
fn everything_that_happens_to_a_plan_has_its_word() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "T", &["a", "b", "c"]);
    set(&main, "step_1", "in_progress");
    set(&main, "step_1", "completed");
    main.call("setStepStatus", json!({ "step_id": "step_2", "status": "failed", "error": "no" }));
    let on = json!([{ "agent_id": "child", "step_id": "step_1" }]);
    main.call("addDependentStep", json!({ "description": "d", "depends_on": on }));
    set(&main, "step_3", "skipped");
    main.call("completePlan", json!({ "status": "failed", "summary": "gave up" }));
    let told = recent(&main, json!({}));
    assert_eq!(
        kinds(&told["events"]),
        [
            "plan_created",
            "plan_started",
            "step_started",
            "step_completed",
            "step_failed",
            "step_added",
            "step_blocked",
            "step_skipped",
            "plan_failed"
        ]
    );
    assert_eq!((&told["count"], &told["last_event_id"]), (&json!(9), &told["events"][8]["event_id"]));
    let failed = &told["events"][4];
    assert_eq!((&failed["source_agent"], &failed["source_plan_title"]), (&json!("main"), &json!("T")));
    assert_eq!((&failed["source_step_id"], &failed["source_step_sequence"]), (&json!("step_2"), &json!(2)));
    assert_eq!(failed["payload"]["error"], "no");
    assert_eq!(told["events"][6]["payload"]["blocked_by"], on);
    assert_eq!(told["events"][8]["payload"]["summary"], "gave up");
    // What followed from the end of the plan does not take the place of what is told.
    let last = recent(&main, json!({ "limit": 2 }));
    assert_eq!(kinds(&last["events"]), ["step_skipped", "plan_failed"]);
}

#[test]
fn events_are_read_by_type_agent_and_place() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a", "b"]);
    started(&world, &child, "C", &["c"]);
    set(&main, "step_1", "completed");
    set(&child, "step_1", "completed");
    let of_child = recent(&main, json!({ "agent_id": "child" }));
    assert_eq!(
        kinds(&of_child["events"]),
        ["plan_created", "plan_started", "step_completed", "plan_completed"]
    );
    let completed = recent(&main, json!({ "event_types": ["step_completed"], "agent_id": "*" }));
    assert_eq!(completed["count"], 2);
    let last = recent(&main, json!({ "event_types": ["step_completed"], "limit": 1 }));
    assert_eq!((&last["count"], &last["events"][0]["source_agent"]), (&json!(1), &json!("child")));
    // From the first one on, one by one, until there is nothing more.
    let mut place = completed["events"][0]["event_id"].clone();
    let mut seen = Vec::new();
    loop {
        let next = recent(&main, json!({ "after_event": place, "limit": 1 }));
        if next["count"] == 0 {
            assert_eq!(next.get("last_event_id"), None);
            break;
        }
        seen.extend(kinds(&next["events"]));
        place = next["last_event_id"].clone();
    }
    assert_eq!(seen, ["step_completed", "plan_completed"]);
}

#[test]
fn a_call_can_wait_for_what_happens_next() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &child, "C", &["c"]);
    let told = std::thread::scope(|scope| {
        let waits = scope.spawn(|| recent(&main, json!({ "event_types": ["step_started"], "timeout": 30 })));
        set(&child, "step_1", "in_progress");
        waits.join().unwrap()
    });
    assert_eq!(kinds(&told["events"]), ["step_started"]);
    let nothing = recent(&main, json!({ "after_event": told["last_event_id"], "timeout": 0.01 }));
    assert_eq!((&nothing["count"], nothing.get("last_event_id")), (&json!(0), None));
}

#[test]
fn what_was_shown_otherwise_is_not_told_again() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    main.call("subscribeToTasks", json!({ "event_types": ["plan_created"], "agent_id": "child" }));
    started(&world, &child, "C", &["c"]);
    assert_eq!(recent(&main, json!({ "agent_id": "child" }))["events"][0]["event_type"], "plan_created");
    assert_eq!(main.call("listSubscriptions", json!({})).value.get("events"), None);
}

#[test]
fn nobody_hears_of_its_own_deeds_and_who_subscribes_late_misses_nothing_since_its_plan() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &child, "Before", &["c"]);
    started(&world, &main, "M", &["a", "b"]);
    set(&child, "step_1", "in_progress");
    set(&main, "step_1", "in_progress");
    let told =
        main.call("subscribeToTasks", json!({ "event_types": ["plan_created", "step_started"] })).value;
    assert_eq!(kinds(&told["events"]), ["step_started"]);
    assert_eq!(told["events"][0]["source_agent"], "child");
}

#[test]
fn subscriptions_belong_to_their_owner() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    let wanted = json!({ "event_types": ["step_failed", "plan_failed"], "plan_id": "p", "step_id": "s" });
    let id = main.call("subscribeToTasks", wanted).value["subscription_id"].clone();
    let listed = main.call("listSubscriptions", json!({})).value;
    assert_eq!(
        listed["subscriptions"][0]["filter"],
        json!({ "agent_id": "*", "plan_id": "p", "step_id": "s", "event_types": ["plan_failed", "step_failed"] })
    );
    assert_eq!(child.call("listSubscriptions", json!({})).value["count"], 0);
    let theirs = child.call("unsubscribe", json!({ "subscription_id": id })).value;
    assert_eq!((&theirs["success"], &theirs["message"]), (&json!(false), &json!("Subscription not found")));
    let mine = main.call("unsubscribe", json!({ "subscription_id": id })).value;
    assert_eq!((&mine["success"], &mine["message"]), (&json!(true), &json!("Subscription removed")));
}

#[test]
fn the_end_of_a_plan_is_told_once_wherever_a_page_ends() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &child, "C", &["c", "d"]);
    child.call("completePlan", json!({ "status": "failed", "summary": "gave up" }));
    let all = kinds(&recent(&main, json!({ "agent_id": "child" }))["events"]);
    assert_eq!(all, ["plan_created", "plan_started", "plan_failed"]);
    let first = recent(&main, json!({ "agent_id": "child", "event_types": ["plan_created"] }));
    let mut place = first["last_event_id"].clone();
    let mut seen = Vec::new();
    loop {
        let next = recent(&main, json!({ "after_event": place, "limit": 1 }));
        if next["count"] == 0 {
            break;
        }
        seen.extend(kinds(&next["events"]));
        place = next["last_event_id"].clone();
    }
    assert_eq!(seen, ["plan_started", "plan_failed"]);
}

#[test]
fn an_event_says_what_was_true_when_it_happened() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    let awaited = started(&world, &main, "M", &["a"]);
    main.call("subscribeToTasks", json!({ "event_types": ["step_completed", "step_blocked"] }));
    let plan = started(&world, &child, "Before", &["b", "c"]);
    set(&child, "step_1", "completed");
    let on = json!([{ "agent_id": "main", "step_id": "step_1" }]);
    child.call("addDependentStep", json!({ "step_id": "step_2", "depends_on": on }));
    child.call("addStep", json!({ "description": "first of all", "after_step_id": "step_1" }));
    let native = world.session(waypost_mcp::Toolset::Native, "child");
    let ops = json!([
        { "op": "plan", "title": "After" },
        { "op": "revise", "task": "step_2", "description": "something else" }
    ]);
    native.call("plan_edit", json!({ "plan": plan, "ops": ops }));
    let told = set(&main, "step_1", "completed").value;
    let events = told["events"].as_array().unwrap();
    assert_eq!(kinds(&told["events"]), ["step_completed", "step_blocked"]);
    assert_eq!(events[0]["source_plan_title"], "Before");
    let blocked = &events[1];
    assert_eq!(
        (&blocked["source_step_description"], &blocked["source_step_sequence"]),
        (&json!("c"), &json!(2))
    );
    let on = json!([{ "agent_id": "main", "step_id": "step_1", "plan_id": awaited }]);
    assert_eq!(blocked["payload"]["blocked_by"], on, "it was blocked then: {blocked}");
}

#[test]
fn a_plan_that_is_cancelled_has_its_own_word() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "T", &["a"]);
    main.call("completePlan", json!({ "status": "cancelled", "summary": "no longer needed" }));
    let told = recent(&main, json!({ "event_types": ["plan_cancelled"] }));
    assert_eq!(kinds(&told["events"]), ["plan_cancelled"]);
    assert_eq!(told["events"][0]["payload"]["summary"], "no longer needed");
}

#[test]
fn twenty_events_are_read_unless_another_number_is_asked_for() {
    let world = World::new();
    let main = agent(&world, "main");
    let steps: Vec<String> = (0..30).map(|number| format!("step number {number}")).collect();
    started(&world, &main, "T", &steps.iter().map(String::as_str).collect::<Vec<_>>());
    for number in 1..=30 {
        set(&main, &format!("step_{number}"), "completed");
    }
    assert_eq!(recent(&main, json!({}))["count"], 20);
    assert_eq!(recent(&main, json!({ "limit": 25 }))["count"], 25);
    assert_eq!(recent(&main, json!({ "event_types": ["step_completed"], "limit": 100 }))["count"], 30);
}
