//! What the native tools cost, in tokens of two tokenizers that many models use or come close to; the dearer one counts.
//! Text and structured content are counted apart: a client shows the model one of them.

use std::sync::OnceLock;

use serde_json::{Value, json};
use tiktoken_rs::{CoreBPE, cl100k_base, o200k_base};
use waypost_core::Actor;
use waypost_mcp::Toolset;
use waypost_store::NewPlan;

use super::{begin, plan};
use crate::direct_writes;
use crate::session::{Told, World};

fn tokens(text: &str) -> usize {
    static TOKENIZERS: OnceLock<[CoreBPE; 2]> = OnceLock::new();
    let tokenizers = TOKENIZERS.get_or_init(|| [cl100k_base().unwrap(), o200k_base().unwrap()]);
    tokenizers.iter().map(|tokenizer| tokenizer.encode_ordinary(text).len()).max().unwrap()
}

/// What a model pays for an answer, whichever of the two it is shown.
fn cost(told: &Told) -> usize {
    tokens(&told.text).max(tokens(&told.value.to_string()))
}

#[track_caller]
fn at_most(limit: usize, told: &Told) {
    let found = cost(told);
    assert!(found <= limit, "{found} tokens are more than {limit}: {}\n{}", told.text, told.value);
}

#[test]
fn all_definitions_cost_at_most_1500_tokens() {
    let (_world, session) = begin();
    let wire = json!({ "tools": session.tools() }).to_string();
    let found = tokens(&wire);
    println!("all definitions: {found} tokens");
    assert!(found <= 1_500, "{found} tokens: {wire}");
}

#[test]
fn schemas_of_answers_are_left_out_unless_somebody_wants_them() {
    let (_world, session) = begin();
    assert!(session.tools().iter().all(|tool| tool.output_schema.is_none()));
}

/// Fifty tasks, each of which depends on the one before.
fn fifty() -> Value {
    let task = |number: usize| match number {
        1 => json!({ "description": "step 1 of the migration of the user database" }),
        _ => json!({
            "description": format!("step {number} of the migration of the user database"),
            "depends_on": [format!("t{}", number - 1)],
        }),
    };
    (1..=50).map(task).collect()
}

#[test]
fn making_fifty_dependent_tasks_is_answered_in_at_most_150_tokens() {
    let (_world, session) = begin();
    at_most(150, &session.call("plan_create", json!({ "title": "Migration", "tasks": fifty() })));
    // The dearest names that somebody may give, and what is wrong with the rest.
    let odd: Vec<Value> =
        (0..50).map(|number| json!({ "id": format!("шаг-{number}-🦀-{}", "x".repeat(200)) })).collect();
    at_most(150, &session.call("plan_create", json!({ "title": "Odd", "tasks": odd })));
}

#[test]
fn taking_a_task_costs_at_most_70_tokens_beside_its_text() {
    let (_world, session) = begin();
    session.call("plan_create", json!({ "title": "Migration", "tasks": fifty() }));
    let text = "step 1 of the migration of the user database";
    at_most(70 + tokens(text), &session.call("task_next", json!({})));
    session.call("task_report", json!({ "task": "t1", "status": "done", "output": { "rows": 12 } }));
    let told = session.call("task_next", json!({}));
    at_most(70 + tokens(text) + tokens("{\"rows\":12}"), &told);
    at_most(70, &session.call("task_next", json!({})));
}

#[test]
fn reporting_done_costs_at_most_15_tokens_and_30_as_data() {
    let (_world, session) = begin();
    plan(&session, json!((0..40).map(|number| format!("do {number}")).collect::<Vec<_>>()));
    for number in 1..=40 {
        session.call("task_next", json!({}));
        let report = json!({ "task": format!("t{number}"), "status": "done", "text": "ok" });
        let told = session.call("task_report", report);
        assert!(tokens(&told.text) <= 15, "{}", told.text);
        // A random id costs 5 to 8 of them.
        at_most(23 + tokens(told.value["plan"].as_str().unwrap()), &told);
    }
    let long: Vec<Value> =
        (0..5).map(|number| json!({ "id": format!("{}-{number}", "long-name".repeat(9)) })).collect();
    session.call("plan_create", json!({ "title": "long", "tasks": long }));
    let task = session.call("task_next", json!({})).value["task"].clone();
    let told = session.call("task_report", json!({ "task": task, "status": "done" }));
    let named = tokens(task.as_str().unwrap());
    assert!(tokens(&told.value.to_string()) <= 30 + named, "{}", told.value);
}

#[test]
fn an_overview_costs_at_most_100_tokens_whatever_the_size_of_the_plan() {
    let world = World::new();
    for size in [10, 1_000, 10_000] {
        let session = world.session(Toolset::Native, "main");
        let mut draft = waypost_testkit::layered(size, 1, 20, 7);
        "Migrate the user database to the new cluster without downtime, then tell everybody"
            .clone_into(&mut draft.spec.title);
        "waiting for the review of the second half by the platform team".clone_into(&mut draft.spec.status);
        "main".clone_into(&mut draft.spec.owner);
        draft.spec.body = "x".repeat(100_000);
        let new = NewPlan { id: None, by: Actor::agent("main"), draft, approval_required: None };
        let made = direct_writes::create(&world.plans, new);
        world.wait(1);
        // As many words as there can be: done, running, ready, blocked, failed and skipped.
        let report = |task: &str, status: &str| {
            session.call("task_report", json!({ "task": task, "status": status, "text": "x" }));
        };
        session.call("task_next", json!({}));
        report("t0", "done");
        for _ in 0..3 {
            session.call("task_next", json!({}));
        }
        report("t1", "failed");
        let told = session.call("plan_get", json!({ "plan": made.plan }));
        assert_eq!((&told.value["total"], &told.value["failed"]), (&json!(size), &json!(1)));
        at_most(100, &told);
    }
    let ids = ["🦀1", "шаг-2", "誰も3", "🦀🦀4", "z5"];
    let odd: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "check": { "executor": "noop" } })).collect();
    let titles = json!({ "title": "🦀 шаг".repeat(200), "status": "誰も知らない".repeat(100), "tasks": odd });
    let session = world.session(Toolset::Native, "main");
    let told = session.call("plan_create", titles);
    let id = told.value["plan"].as_str().unwrap();
    session.call("plan_start", json!({ "wait": 0 }));
    at_most(100, &session.call("plan_get", json!({})));
    world.approve(id);
    for _ in 0..3 {
        session.call("task_next", json!({}));
    }
    at_most(100, &session.call("plan_get", json!({})));
}
