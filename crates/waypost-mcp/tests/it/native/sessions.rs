//! Two sessions under one agent's name, at once and one after the other.

use serde_json::json;
use waypost_core::Command;
use waypost_mcp::Toolset;

use super::{begin, done, plan, take};
use crate::session::Session;

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

/// Makes and starts a plan of two tasks.
fn started(session: &Session) -> String {
    let id = plan(session, json!(["a", "b"]));
    session.call("plan_start", json!({}));
    id
}

#[test]
fn a_session_whose_plan_has_ended_stays_on_it() {
    let (world, first) = begin();
    let second = world.session(Toolset::Native, "main");
    let theirs = started(&second);
    world.wait(1);
    let own = started(&first);
    done(&first, "t1");
    done(&first, "t2");
    let said = first.refused("task_report", json!({ "task": "t1", "status": "failed", "text": "again" }));
    assert!(said.starts_with("task t1 is done, and so cannot be failed"), "{said}");
    let told = first.call("task_next", json!({}));
    assert_eq!((&told.value["task"], &told.value["plan"]), (&json!(null), &json!(own)), "{}", told.text);
    assert!(told.text.contains("completed"), "{}", told.text);
    assert_eq!(first.call("plan_get", json!({})).value["plan"], json!(own));
    let edited = first.call("plan_edit", json!({ "ops": [{ "op": "plan", "goal": "looked back" }] }));
    assert_eq!(edited.value["plan"], json!(own));
    assert_eq!(second.call("plan_get", json!({})).value["done"], 0);
    // A session without a plan of its own begins with the agent's open one, and stays on it too.
    let third = world.session(Toolset::Native, "main");
    assert_eq!(third.call("plan_get", json!({})).value["plan"], json!(theirs));
    world.wait(1);
    let latest = started(&first);
    done(&third, "t1");
    done(&third, "t2");
    assert_eq!(third.call("plan_get", json!({})).value["phase"], "completed");
    third.refused("task_report", json!({ "task": "t1", "status": "failed", "text": "x" }));
    assert_eq!(first.call("plan_get", json!({ "plan": latest })).value["done"], 0);
}

#[test]
fn a_task_that_another_session_holds_under_the_same_id_is_not_meant() {
    let (world, first) = begin();
    let second = world.session(Toolset::Native, "main");
    let theirs = started(&second);
    assert_eq!(take(&second), "t1");
    world.wait(1);
    let own = started(&first);
    let report = json!({ "task": "t1", "status": "done", "take_over": true });
    assert_eq!(first.call("task_report", report).value["plan"], json!(own));
    assert_eq!(second.call("plan_get", json!({ "plan": theirs })).value["yours"], json!(["t1"]));
}

#[test]
fn a_session_that_only_looked_goes_on_with_the_plan_that_is_made_next() {
    let (world, first) = begin();
    started(&first);
    done(&first, "t1");
    done(&first, "t2");
    let second = world.session(Toolset::Native, "main");
    assert_eq!(second.call("task_next", json!({})).value["task"], json!(null));
    world.wait(1);
    let next = started(&first);
    assert_eq!(second.call("task_next", json!({})).value["plan"], json!(next));
}

#[test]
fn an_agent_whose_plan_was_archived_is_told_by_whom() {
    let (world, first) = begin();
    let second = world.session(Toolset::Native, "main");
    let theirs = started(&second);
    world.wait(1);
    let own = started(&first);
    world.person(&own, Command::Archive);
    let archived = format!("plan {own} was archived by person:ada; ask a person to restore it");
    for (tool, arguments) in [
        ("task_report", json!({ "task": "t1", "status": "done" })),
        ("task_next", json!({ "task": "t1" })),
        ("plan_edit", json!({ "ops": [{ "op": "add", "description": "c" }] })),
    ] {
        let told = first.ask(tool, arguments);
        assert!(told.is_error, "{tool}: {}", told.text);
        assert_eq!(told.text, archived, "{tool}");
        assert_eq!((&told.value["code"], &told.value["plan"]), (&json!("archived"), &json!(own)), "{tool}");
        assert_eq!(told.value["archived_by"], "person:ada");
    }
    let told = first.call("task_next", json!({}));
    assert_eq!(told.text, "nothing: the plan is archived by person:ada");
    assert_eq!(told.value["archived_by"], "person:ada");
    let told = first.call("plan_get", json!({}));
    assert!(told.text.ends_with("; archived by person:ada"), "{}", told.text);
    assert_eq!(told.value["plan"], json!(own));
    let told = first.call("plan_list", json!({}));
    assert!(told.text.ends_with(&format!("\n{own} archived by person:ada \"a plan\"")), "{}", told.text);
    assert_eq!(told.value["archived"], json!({ "id": own, "title": "a plan", "by": "person:ada" }));
    assert_eq!(second.call("plan_get", json!({})).value["done"], 0);
    // A new session without any other plan is told as well.
    world.person(&theirs, Command::Archive);
    let third = world.session(Toolset::Native, "main");
    let said = third.refused("plan_get", json!({}));
    assert!(
        said.starts_with(&format!(
            "agent:main has no plan; its plan {own} \"a plan\" was archived by person:ada"
        )),
        "{said}"
    );
}
