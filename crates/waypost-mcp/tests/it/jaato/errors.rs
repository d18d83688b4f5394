//! Every refusal is an object with an `error`, in the plugin's words; the text says the same.

use serde_json::{Value, json};

use super::{agent, set, started};
use crate::session::{Session, World};

fn check(session: &Session, cases: &[(&str, Value, &str)]) {
    for (tool, arguments, error) in cases {
        let told = session.ask(tool, arguments.clone());
        assert!(told.is_error, "{tool} {arguments}: {}", told.text);
        assert_eq!(
            (told.value["error"].as_str(), told.text.as_str()),
            (Some(*error), *error),
            "{tool} {arguments}"
        );
    }
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let world = World::new();
    let main = agent(&world, "main");
    let on = json!([{ "agent_id": "a", "step_id": "s" }]);
    check(
        &main,
        &[
            ("createPlan", json!({ "steps": ["a"] }), "title is required"),
            ("createPlan", json!({ "title": " ", "steps": ["a"] }), "title is required"),
            ("createPlan", json!({ "title": 1, "steps": ["a"] }), "title must be a string"),
            ("createPlan", json!({ "title": "T" }), "steps must be a non-empty array"),
            (
                "createPlan",
                json!({ "title": 5, "steps": "abc", "bogus": 1 }),
                "title must be a string; steps must be a non-empty array; unknown: bogus",
            ),
            ("createPlan", json!({ "titel": "x", "steps": ["a"] }), "title is required; unknown: titel"),
            ("setStepStatus", json!({}), "step_id is required; status is required"),
            ("completeStepWithOutput", json!({}), "step_id is required; output is required"),
            (
                "addDependentStep",
                json!({ "description": "x", "depends_on": [{ "agent_id": "a", "step": "b" }], "after": 1 }),
                "Each dependency must have agent_id and step_id; unknown: step; unknown: after",
            ),
            ("createPlan", json!({ "title": "T", "steps": [] }), "steps must be a non-empty array"),
            ("createPlan", json!({ "title": "T", "steps": ["a", 1] }), "all steps must be strings"),
            (
                "createPlan",
                json!({ "title": "T", "steps": ["a", " "] }),
                "steps must not be empty: step 2 is",
            ),
            (
                "completeStepWithOutput",
                json!({ "step_id": "step_1", "output": "done" }),
                "output must be an object, such as {\"result\": ...}",
            ),
            ("setStepStatus", json!({ "status": "failed" }), "step_id is required"),
            ("setStepStatus", json!({ "step_id": "step_1" }), "status is required"),
            (
                "setStepStatus",
                json!({ "step_id": "step_1", "status": "blocked" }),
                "Invalid status: blocked. Must be one of: in_progress, completed, failed, skipped",
            ),
            ("completePlan", json!({}), "status is required"),
            (
                "completePlan",
                json!({ "status": "done" }),
                "Invalid status: done. Must be one of: completed, failed, cancelled",
            ),
            ("addStep", json!({ "description": "" }), "description is required"),
            (
                "addDependentStep",
                json!({ "depends_on": on }),
                "step_id is required, or description for a new step",
            ),
            (
                "addDependentStep",
                json!({ "step_id": "s", "description": "d", "depends_on": on }),
                "Give step_id (one of your steps) or description (a new step), not both.",
            ),
            ("addDependentStep", json!({ "step_id": "s" }), "depends_on is required and must not be empty"),
            (
                "addDependentStep",
                json!({ "description": "d", "depends_on": [{ "agent_id": "a" }] }),
                "Each dependency must have agent_id and step_id",
            ),
            ("completeStepWithOutput", json!({ "output": {} }), "step_id is required"),
            ("completeStepWithOutput", json!({ "step_id": "s" }), "output is required"),
            ("completeStepWithOutput", json!({ "step_id": "s", "output": null }), "output is required"),
            ("subscribeToTasks", json!({ "event_types": [] }), "event_types is required"),
            ("subscribeToTasks", json!({ "event_types": ["x"] }), "Invalid event type: x"),
            ("getTaskEvents", json!({ "event_types": ["x"] }), "Invalid event type: x"),
            (
                "getTaskEvents",
                json!({ "timeout": 1 }),
                "timeout requires at least one of: agent_id, event_types, or after_event. Say what you wait for.",
            ),
            (
                "getTaskEvents",
                json!({ "after_event": "x" }),
                "after_event is not an event_id: x. Pass an event_id from an earlier reply.",
            ),
            ("unsubscribe", json!({}), "subscription_id is required"),
        ],
    );
}

#[test]
fn without_a_plan_one_must_be_created_first() {
    let world = World::new();
    let on = json!([{ "agent_id": "a", "step_id": "s" }]);
    let none = "No active plan. Create a plan first with createPlan.";
    let cases = |named: &'static str, of: &'static str| {
        vec![
            ("startPlan", json!({}), none),
            ("setStepStatus", json!({ "step_id": "s", "status": "failed" }), named),
            ("getPlanStatus", json!({}), of),
            ("completePlan", json!({ "status": "failed" }), none),
            ("addStep", json!({ "description": "d" }), none),
            ("addDependentStep", json!({ "step_id": "s", "depends_on": on }), none),
            ("completeStepWithOutput", json!({ "step_id": "s", "output": {} }), none),
            ("getBlockedSteps", json!({}), "No plan found. Create a plan first with createPlan."),
            (
                "getPlanStatus",
                json!({ "plan_id": "nope" }),
                "Plan not found: nope. Leave plan_id out to see your own plan; events name the plans of others.",
            ),
        ]
    };
    check(
        &agent(&world, "main"),
        &cases(
            "No active plan. Create a plan first with createPlan. (agent=main)",
            "No plan found for this agent. Create a plan first with createPlan.",
        ),
    );
    check(
        &agent(&world, "tester"),
        &cases(
            "No active plan. Create a plan first with createPlan. (agent=tester)",
            "No plan found for this agent (agent: tester). Create a plan first with createPlan.",
        ),
    );
}

#[test]
fn before_a_person_has_said_yes_nothing_can_be_done_and_afterwards_not_twice() {
    let world = World::new();
    let main = agent(&world, "main");
    main.call("createPlan", json!({ "title": "T", "steps": ["a", "b"] }));
    let not_started = "Plan not started. Call startPlan first to confirm the plan.";
    let never = |word: &str| {
        format!(
            "Cannot mark plan as '{word}' - plan was never started. Use 'cancelled' if the plan was rejected."
        )
    };
    let on = json!([{ "agent_id": "a", "step_id": "s" }]);
    check(
        &main,
        &[
            ("setStepStatus", json!({ "step_id": "step_1", "status": "in_progress" }), not_started),
            ("addStep", json!({ "description": "c" }), not_started),
            ("addDependentStep", json!({ "description": "c", "depends_on": on }), not_started),
            ("completeStepWithOutput", json!({ "step_id": "step_1", "output": {} }), not_started),
            ("completePlan", json!({ "status": "completed" }), &never("completed")),
            ("completePlan", json!({ "status": "failed" }), &never("failed")),
        ],
    );
    main.call("completePlan", json!({ "status": "cancelled" }));
    started(&world, &main, "Refactor", &["a", "b", "c"]);
    set(&main, "step_1", "in_progress");
    check(
        &main,
        &[
            ("startPlan", json!({}), "Plan already started. Proceed with setStepStatus."),
            (
                "createPlan",
                json!({ "title": "T", "steps": ["a"] }),
                "An active plan already exists: 'Refactor' (2 pending, 1 in progress). Do NOT recreate the plan from \
                 scratch. Instead:\n- Use addStep(description, after_step_id?) to insert new steps\n- Use \
                 setStepStatus(step_id, status='skipped') to skip steps that are no longer needed\n- Use \
                 completePlan(status='failed') first if you truly need to abandon the plan",
            ),
            ("setStepStatus", json!({ "step_id": "nope", "status": "failed" }), "Step not found: nope"),
            ("completeStepWithOutput", json!({ "step_id": "nope", "output": {} }), "Step not found: nope"),
            ("addStep", json!({ "description": "d", "after_step_id": "nope" }), "Step not found: nope"),
            (
                "addDependentStep",
                json!({ "step_id": "nope", "depends_on": on }),
                "Step 'nope' not found in plan.",
            ),
            (
                "completePlan",
                json!({ "status": "completed" }),
                "Cannot mark plan as 'completed' - still in progress: step_1. Set their status first.",
            ),
        ],
    );
    main.call("setStepStatus", json!({ "step_id": "step_1", "status": "failed", "error": "no" }));
    check(
        &main,
        &[(
            "completePlan",
            json!({ "status": "completed" }),
            "Cannot mark plan as 'completed' - failed: step_1. Use 'failed', or set a step to 'skipped' if another one \
             took its place.",
        )],
    );
}

#[test]
fn a_refusal_of_the_plan_itself_is_an_error_of_the_same_shape() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "T", &["a"]);
    let blocked = json!({ "step_id": "step_1", "depends_on": [{ "agent_id": "b", "step_id": "step_1" }] });
    main.call("addDependentStep", blocked);
    check(
        &main,
        &[(
            "setStepStatus",
            json!({ "step_id": "step_1", "status": "in_progress" }),
            "task step_1 waits for b:step_1; finish those first",
        )],
    );
}

#[test]
fn a_step_that_is_not_there_comes_with_one_whose_name_is_close() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "T", &["a"]);
    check(
        &main,
        &[
            (
                "setStepStatus",
                json!({ "step_id": "stp_1", "status": "completed" }),
                "Step not found: stp_1. Did you mean step_1?",
            ),
            ("setStepStatus", json!({ "step_id": "zzz", "status": "completed" }), "Step not found: zzz"),
        ],
    );
}

#[test]
fn why_a_person_said_no_is_shown_as_long_as_it_stands() {
    let world = World::new();
    let main = agent(&world, "main");
    let made = main.call("createPlan", json!({ "title": "T", "steps": ["a"] })).value;
    main.call("startPlan", json!({ "timeout": 0 }));
    let plan = made["plan_id"].as_str().unwrap();
    world.person(plan, waypost_core::Command::Reject { reason: "too soon".to_owned() });
    assert_eq!(main.call("getPlanStatus", json!({})).value["rejection_reason"], "too soon");
    world.approve(plan);
    assert_eq!(main.call("getPlanStatus", json!({})).value.get("rejection_reason"), None);
}

#[test]
fn what_a_step_waits_for_is_named_up_to_a_bound() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "T", &["a"]);
    let on: Vec<Value> =
        (0..30).map(|number| json!({ "agent_id": "b", "step_id": format!("s{number}") })).collect();
    main.call("addDependentStep", json!({ "description": "wait", "depends_on": on }));
    let blocked = main.call("getBlockedSteps", json!({})).value;
    let step = &blocked["blocked_steps"][0];
    let count = |name: &str| step[name].as_array().unwrap().len();
    assert_eq!((count("depends_on"), count("blocked_by"), count("why")), (20, 20, 21));
    assert_eq!(step["why"][20], "10 more; getPlanStatus has them all");
}
