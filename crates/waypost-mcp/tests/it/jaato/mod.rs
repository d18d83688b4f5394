//! The tools of the jaato todo plugin: its document's examples, its observed calls, and agents that wait for each other.

mod across;
mod definitions;
mod errors;
mod events;
mod replay;
mod sessions;
mod work;

use std::time::Duration;

use serde_json::{Value, json};
use waypost_core::{Phase, PlanId};
use waypost_mcp::Toolset;

use crate::session::{Session, Told, World};

/// How often a person looks whether somebody asks.
const LOOKS_MAX: usize = 60;

fn agent(world: &World, name: &str) -> Session {
    world.session(Toolset::Jaato, name)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}

/// Calls startPlan while a person waits to be asked, and says yes.
fn start(world: &World, session: &Session, plan: &str, arguments: Value) -> Told {
    let id = PlanId::new(plan).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut watch = world.plans.watch().unwrap();
            for _ in 0..LOOKS_MAX {
                if world.plans.with_plan(&id, |plan| plan.state().phase).unwrap() == Phase::AwaitingApproval {
                    return world.approve(plan);
                }
                watch.wait(Duration::from_secs(1)).unwrap();
            }
            panic!("nobody asked for approval of {plan}");
        });
        session.call("startPlan", arguments)
    })
}

/// A plan of this agent that a person has approved; its id.
fn started(world: &World, session: &Session, title: &str, steps: &[&str]) -> String {
    // Plans of one agent are told apart by when they were made.
    world.wait(1);
    let plan = text(&session.call("createPlan", json!({ "title": title, "steps": steps })).value["plan_id"]);
    assert_eq!(start(world, session, &plan, json!({})).value["confirmed"], true);
    plan
}

fn set(session: &Session, step: &str, status: &str) -> Told {
    session.call("setStepStatus", json!({ "step_id": step, "status": status }))
}

/// One step of the agent's plan, as getPlanStatus shows it.
fn step(session: &Session, id: &str) -> Value {
    let status = session.call("getPlanStatus", json!({})).value;
    let steps = status["steps"].as_array().unwrap();
    steps.iter().find(|step| step["id"] == id).cloned().unwrap_or(Value::Null)
}
