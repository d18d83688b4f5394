//! Two sessions under one agent's name, at once and one after the other.

use serde_json::json;
use waypost_mcp::Toolset;

use super::{begin, done, plan, take};

#[test]
fn a_task_that_one_session_took_is_not_reported_by_another_unless_it_takes_it_over() {
    let (world, first) = begin();
    let second = world.session(Toolset::Native, "main");
    let id = plan(&first, json!(["a", "b"]));
    assert_eq!(take(&first), "t1");
    for status in ["done", "failed", "progress", "release", "question"] {
        let report = json!({ "task": "t1", "status": status, "text": "x" });
        let said = second.refused("task_report", report);
        assert!(
            said.starts_with("task t1 is held by another session of main, until 2026-01-01 00:15:00 UTC"),
            "{said}"
        );
        assert!(
            said.ends_with("send the same with take_over: true; otherwise task_next claims another"),
            "{said}"
        );
    }
    assert_eq!(first.call("plan_get", json!({})).value["yours"], json!(["t1"]));
    let seen = second.call("plan_get", json!({ "plan": id })).value;
    assert_eq!((&seen["yours"], &seen["other_session"]), (&json!(null), &json!(["t1"])));
    let told = second.call("task_report", json!({ "task": "t1", "status": "done", "take_over": true }));
    assert_eq!(told.text, "t1 done; next t2");
    // The first one hears that it has lost it.
    let said = first.refused("task_report", json!({ "task": "t1", "status": "failed", "text": "x" }));
    assert!(said.starts_with("task t1 is done, and so cannot be failed"), "{said}");
}

#[test]
fn each_of_two_sessions_works_on_its_own_task() {
    let (world, first) = begin();
    let second = world.session(Toolset::Native, "main");
    plan(&first, json!(["a", "b"]));
    assert_eq!((take(&first), take(&second)), ("t1".to_owned(), "t2".to_owned()));
    let told = first.call("task_next", json!({}));
    assert_eq!(
        told.text,
        "nothing: 2 running (t1 by you, t2 by you in another session), \
         if that session is gone, task_next with task and take_over: true"
    );
    done(&second, "t2");
    done(&first, "t1");
}

#[test]
fn an_agent_that_was_started_again_takes_its_task_back_by_its_name() {
    let (world, before) = begin();
    plan(&before, json!(["a", { "id": "b", "description": "b", "depends_on": ["t1"] }]));
    assert_eq!(take(&before), "t1");
    drop(before);
    let after = world.session(Toolset::Native, "main");
    let said = after.refused("task_next", json!({ "task": "t1" }));
    assert!(said.contains("take_over: true"), "{said}");
    let told = after.call("task_next", json!({ "task": "t1", "take_over": true }));
    assert_eq!((&told.value["task"], &told.value["attempt"]), (&json!("t1"), &json!(2)));
    // It is the same one's now, who may ask for it again and again.
    let again = after.call("task_next", json!({ "task": "t1" }));
    assert_eq!(again.value["attempt"], 2);
    done(&after, "t1");
    let said = after.refused("task_next", json!({ "task": "t1" }));
    assert!(said.starts_with("task t1 is done, and so cannot be started; plan_edit"), "{said}");
    assert_eq!(after.call("task_next", json!({ "task": "b" })).value["task"], "b");
}

#[test]
fn a_session_that_was_not_heard_of_for_too_long_has_lost_its_task() {
    let (world, before) = begin();
    plan(&before, json!(["a"]));
    assert_eq!(take(&before), "t1");
    world.wait(14 * 60);
    before.call("task_report", json!({ "task": "t1", "status": "progress", "text": "half" }));
    world.wait(14 * 60);
    let after = world.session(Toolset::Native, "main");
    assert!(after.ask("task_report", json!({ "task": "t1", "status": "done" })).is_error);
    world.wait(2 * 60);
    done(&after, "t1");
}

#[test]
fn the_attempt_that_it_was_told_speaks_for_whoever_took_the_task() {
    let (world, before) = begin();
    plan(&before, json!(["a"]));
    assert_eq!(take(&before), "t1");
    let after = world.session(Toolset::Native, "main");
    let report = |attempt: u32| json!({ "task": "t1", "status": "done", "attempt": attempt });
    assert!(after.refused("task_report", report(2)).contains("task t1 has no attempt 2"));
    after.call("task_report", report(1));
}

#[test]
fn what_another_agent_works_on_is_not_taken_over() {
    let (world, main) = begin();
    let id = plan(&main, json!(["a"]));
    assert_eq!(take(&main), "t1");
    let other = world.session(Toolset::Native, "other");
    for tool in ["task_next", "task_report"] {
        let mut arguments = json!({ "plan": id, "task": "t1", "take_over": true });
        if tool == "task_report" {
            arguments["status"] = json!("done");
        }
        let said = other.refused(tool, arguments);
        assert!(said.starts_with("task t1 is being worked on by agent:main#"), "{said}");
        assert!(said.ends_with("task_next claims another"), "{said}");
    }
}
