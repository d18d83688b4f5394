//! Several sessions of one agent, and what others do to an agent's plan.

use rmcp::model::GetPromptRequestParams;
use serde_json::{Value, json};
use waypost_mcp::Toolset;

use super::{agent, set, start, started, step, text};
use crate::session::{Session, World};

fn create(session: &Session, title: &str) -> Value {
    session.call("createPlan", json!({ "title": title, "steps": ["a", "b"] })).value
}

#[test]
fn two_sessions_of_one_agent_have_plans_of_their_own() {
    let world = World::new();
    let (first, second) = (agent(&world, "host"), agent(&world, "host"));
    let one = text(&create(&first, "One")["plan_id"]);
    world.wait(1);
    // The second session looks around before it begins, as models do.
    second.call("getPlanStatus", json!({}));
    let made = create(&second, "Two");
    let two = text(&made["plan_id"]);
    assert_eq!(made.get("replaced"), None, "{made}");
    assert_eq!(made["other_open_plans"], json!([{ "plan_id": one, "title": "One", "status": "pending" }]));
    // Each starts its own plan, reports on its own steps and reads its own progress.
    assert_eq!(start(&world, &first, &one, json!({})).value["plan_id"], json!(one));
    assert_eq!(start(&world, &second, &two, json!({})).value["plan_id"], json!(two));
    set(&first, "step_1", "completed");
    assert_eq!(step(&first, "step_1")["status"], "completed");
    assert_eq!(step(&second, "step_1")["status"], "pending");
    let shown = |session: &Session| {
        let (client, runtime) = session.raw();
        let prompt = runtime.block_on(client.get_prompt(GetPromptRequestParams::new("plan"))).unwrap();
        serde_json::to_string(&prompt.messages).unwrap()
    };
    assert!(shown(&first).contains("Current Plan: One") && shown(&second).contains("Current Plan: Two"));
    // A session whose plan has ended does not go on with that of the other.
    first.call("completePlan", json!({ "status": "failed", "summary": "enough" }));
    assert_eq!(
        first.refused("setStepStatus", json!({ "step_id": "step_2", "status": "completed" })),
        "No active plan. Create a plan first with createPlan. (agent=host)"
    );
    assert_eq!(first.call("getPlanStatus", json!({})).value["title"], "One");
    assert_eq!(step(&second, "step_2")["status"], "pending");
    // A new session of the agent goes on with the plan that is open.
    let third = agent(&world, "host");
    set(&third, "step_1", "completed");
    assert_eq!(step(&second, "step_1")["status"], "completed");
}

#[test]
fn an_approval_that_came_while_nobody_waited_is_confirmed() {
    let world = World::new();
    let main = agent(&world, "main");
    let plan = text(&create(&main, "T")["plan_id"]);
    assert_eq!(main.call("startPlan", json!({ "timeout": 0 })).value["confirmed"], false);
    world.approve(&plan);
    let told = main.call("startPlan", json!({})).value;
    assert_eq!((&told["confirmed"], &told["plan_id"]), (&json!(true), &json!(plan)));
    // It is told once.
    assert_eq!(main.refused("startPlan", json!({})), "Plan already started. Proceed with setStepStatus.");
}

#[test]
fn another_agent_does_not_archive_a_plan_that_is_worked_on_and_the_owner_hears_who_did() {
    let world = World::new();
    let main = agent(&world, "main");
    let plan = started(&world, &main, "Mine", &["a", "b"]);
    let other = world.session(Toolset::Native, "other");
    let archive = json!({ "plan": plan, "ops": [{ "op": "plan", "archived": true }] });
    let told = other.ask("plan_edit", archive.clone());
    assert!(told.is_error);
    assert_eq!(
        told.text,
        "the plan belongs to main and has open tasks; agent:other cannot archive it; ask its owner or a person to do it"
    );
    assert_eq!(told.value["code"], "not_its_plan");
    set(&main, "step_1", "completed");
    assert_eq!(main.call("getPlanStatus", json!({})).value.get("archived_by"), None);
    // A person may; the owner hears who it was.
    world.person(&plan, waypost_core::Command::Archive);
    let told = main.ask("setStepStatus", json!({ "step_id": "step_2", "status": "completed" }));
    assert!(told.is_error);
    let expected = format!("Your plan 'Mine' ({plan}) was archived by person:ada. No active plan.");
    assert!(told.text.starts_with(&expected), "{}", told.text);
    assert_eq!(told.value["archived"], json!(plan));
    assert_eq!(main.call("getPlanStatus", json!({})).value["archived_by"], "person:ada");
    // A plan that is over is anybody's to put away, and its owner may put away its own.
    let next = started(&world, &main, "Next", &["a"]);
    set(&main, "step_1", "completed");
    other.call("plan_edit", json!({ "plan": next, "ops": [{ "op": "plan", "archived": true }] }));
    let own = world.session(Toolset::Native, "other");
    let made = text(&own.call("plan_create", json!({ "title": "O", "tasks": ["a"] })).value["plan"]);
    own.call("plan_start", json!({}));
    own.call("plan_edit", json!({ "plan": made, "ops": [{ "op": "plan", "archived": true }] }));
    let seen = own.call("plan_get", json!({ "plan": made }));
    assert_eq!(seen.value["archived_by"], "agent:other", "{}", seen.text);
}

#[test]
fn an_argument_that_a_tool_does_not_have_is_named() {
    let world = World::new();
    let main = agent(&world, "main");
    let made =
        main.call("createPlan", json!({ "title": "T", "steps": ["a", "b"], "priority": "high" })).value;
    assert_eq!(made["ignored_arguments"], json!(["priority"]));
    start(&world, &main, &text(&made["plan_id"]), json!({}));
    let said = json!({ "step_id": "step_1", "status": "completed", "summary": "all green", "mood": 1 });
    let told = main.call("setStepStatus", said).value;
    assert_eq!((&told["result"], &told["ignored_arguments"]), (&json!("all green"), &json!(["mood"])));
    for said in [
        json!({ "step_id": "step_2", "status": "in_progress", "summary": "half" }),
        json!({ "step_id": "step_2", "status": "completed", "summary": "half", "result": "whole" }),
    ] {
        let told = main.call("setStepStatus", said).value;
        assert_eq!(told["ignored_arguments"], json!(["summary"]), "{told}");
    }
    let events = main.call("getTaskEvents", json!({ "wait_seconds": 3 })).value;
    assert_eq!(events["ignored_arguments"], json!(["wait_seconds"]));
    assert_eq!(main.call("getPlanStatus", json!({})).value.get("ignored_arguments"), None);
}
