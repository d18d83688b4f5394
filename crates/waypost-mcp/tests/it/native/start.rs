//! Starting plans.

use serde_json::json;
use waypost_core::{Command, Phase};
use waypost_mcp::Toolset;

use super::{begin, plan};
use crate::session::{Told, World};

#[test]
fn a_plan_that_needs_no_approval_becomes_active() {
    let (_world, session) = begin();
    let id = plan(&session, json!(["a", "b"]));
    let told = session.call("plan_start", json!({}));
    assert_eq!(told.value, json!({ "plan": id, "phase": "active", "next": ["t1", "t2"] }));
    assert_eq!(told.text, "active; next t1, t2");
    assert_eq!(session.call("plan_start", json!({})).value["phase"], "active", "twice is once");
}

#[test]
fn a_person_is_asked_and_nobody_else_answers() {
    let world = World::with_config("approval = \"all\"\n");
    let session = world.session(Toolset::Native, "main");
    let id = plan(&session, json!(["a"]));
    let told = session.call("plan_start", json!({ "message": "please", "wait": 0 }));
    let then = format!("a person runs `waypost approve {id}`; plan_start again waits for it");
    assert_eq!(told.value, json!({ "plan": id, "phase": "awaiting_approval", "then": then }));
    assert_eq!(
        told.text,
        format!("awaiting_approval: a person runs `waypost approve {id}`; plan_start again waits for it")
    );
    assert_eq!(
        session.call("task_next", json!({})).text,
        "nothing: the plan needs a person's approval: plan_start requests it"
    );
    world.approve(&id);
    assert_eq!(session.call("plan_start", json!({ "wait": 0 })).value["phase"], "active");
    assert_eq!(session.call("task_next", json!({})).value["task"], "t1");
}

/// Starts a plan that needs approval, and lets a person say `word` while the call waits.
fn while_it_waits(word: impl FnOnce(&World, &str)) -> Told {
    let world = World::with_config("approval = \"all\"\n");
    let session = world.session(Toolset::Native, "main");
    let id = plan(&session, json!(["a"]));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| session.call("plan_start", json!({ "wait": 60 })));
        world.until(&id, |plan| plan.state().phase == Phase::AwaitingApproval);
        word(&world, &id);
        waiting.join().unwrap()
    })
}

#[test]
fn who_waits_is_told_of_an_approval() {
    let told = while_it_waits(World::approve);
    let plan = &told.value["plan"];
    assert_eq!(told.value, json!({ "plan": plan, "phase": "active", "next": ["t1"] }));
}

#[test]
fn who_waits_is_told_of_a_rejection_and_its_reason() {
    let told =
        while_it_waits(|world, id| world.person(id, Command::Reject { reason: "too risky".to_owned() }));
    let then = "change the plan, then ask again";
    let plan = &told.value["plan"];
    assert_eq!(told.value, json!({ "plan": plan, "phase": "rejected", "reason": "too risky", "then": then }));
    assert_eq!(told.text, format!("rejected: \"too risky\"; {then}"));
}

#[test]
fn who_did_not_wait_hears_of_a_rejection_too_and_only_a_changed_plan_is_asked_for_again() {
    let world = World::with_config("approval = \"all\"\n");
    let session = world.session(Toolset::Native, "main");
    let id = plan(&session, json!(["a"]));
    session.call("plan_start", json!({ "wait": 0 }));
    world.person(&id, Command::Reject { reason: "too risky".to_owned() });
    assert_eq!(session.call("plan_start", json!({ "wait": 0 })).value["reason"], "too risky");
    session.call("plan_edit", json!({ "ops": [{ "op": "add", "description": "with care" }] }));
    assert_eq!(session.call("plan_start", json!({ "wait": 0 })).value["phase"], "awaiting_approval");
}

#[test]
fn two_sessions_of_one_agent_work_on_their_own_plans() {
    let world = World::new();
    let (one, two) = (world.session(Toolset::Native, "main"), world.session(Toolset::Native, "main"));
    let first = plan(&one, json!(["of the first"]));
    world.wait(1);
    let second = plan(&two, json!(["of the second"]));
    assert_eq!(one.call("task_next", json!({})).value["plan"], json!(first));
    assert_eq!(two.call("task_next", json!({})).value["plan"], json!(second));
}
