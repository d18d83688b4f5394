//! One agent and its plan: the document's own example, honest reports, approval, and what belongs to whom.

use serde_json::{Value, json};
use waypost_core::{Actor, Command, Draft, Phase, PlanId, Status, Task};
use waypost_store::NewPlan;
use waypost_testkit::task;

use super::{agent, set, start, started, step, text};
use crate::direct_writes;
use crate::session::World;

const STEPS: [&str; 4] = [
    "Review current auth implementation",
    "Extract token validation to separate module",
    "Add unit tests for new module",
    "Update imports in dependent files",
];

#[test]
fn the_example_of_the_document_goes_as_it_says() {
    let world = World::new();
    let main = agent(&world, "main");
    let made = main.call("createPlan", json!({ "title": "Refactor auth module", "steps": STEPS })).value;
    let plan = text(&made["plan_id"]);
    assert_eq!((&made["title"], &made["status"]), (&json!("Refactor auth module"), &json!("pending")));
    assert_eq!(made["message"], "Plan created. Call startPlan to request approval.");
    assert_eq!(
        made["steps"][0],
        json!({ "id": "step_1", "step_id": "step_1", "sequence": 1, "description": STEPS[0], "status": "pending" })
    );
    let confirmed = start(&world, &main, &plan, json!({ "message": "Ready to proceed?" })).value;
    assert_eq!((&confirmed["confirmed"], &confirmed["message"]), (&json!(true), &json!("Ready to proceed?")));
    let found = "Found 3 auth-related files: auth.py, tokens.py, session.py";
    main.call("setStepStatus", json!({ "step_id": "step_1", "status": "completed", "result": found }));
    set(&main, "step_2", "completed");
    set(&main, "step_3", "in_progress");
    let status = main.call("getPlanStatus", json!({})).value;
    assert_eq!(status["status"], "in_progress");
    assert_eq!(status["current_step"], 3);
    let progress = &status["progress"];
    assert_eq!(
        (&progress["completed"], &progress["total"], &progress["percentage"]),
        (&json!(2), &json!(4), &json!(50))
    );
    let words: Vec<&Value> = status["steps"].as_array().unwrap().iter().map(|step| &step["status"]).collect();
    assert_eq!(words, ["completed", "completed", "in_progress", "pending"]);
    assert_eq!(status["steps"][0]["result"], found);
    let draft = world.plans.with_plan(&PlanId::new(plan).unwrap(), waypost_core::Plan::to_draft).unwrap();
    let shown = waypost_formats::render_plan_command(&draft);
    assert!(shown.ends_with("  [>] step_3: Add unit tests for new module\n  [ ] step_4: Update imports in dependent files\n\nProgress: 2/4 (50%)\n"), "{shown}");
    set(&main, "step_3", "completed");
    let last = set(&main, "step_4", "completed").value;
    assert_eq!(last["instruction"], "All steps completed. Call completePlan to finalize.");
    let ended =
        main.call("completePlan", json!({ "status": "completed", "summary": "Refactoring done" })).value;
    assert_eq!((&ended["status"], &ended["summary"]), (&json!("completed"), &json!("Refactoring done")));
    // The most recent plan stays in sight, but nobody works on it.
    assert_eq!(main.call("getPlanStatus", json!({})).value["summary"], "Refactoring done");
    assert_eq!(
        main.refused("addStep", json!({ "description": "more" })),
        "No active plan. Create a plan first with createPlan."
    );
}

#[test]
fn a_completed_step_whose_result_says_otherwise_is_answered_with_a_nudge() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "T", &["a", "b"]);
    let result = "Unable to update 2 of 5 imports due to circular dependencies";
    let told = main
        .call("setStepStatus", json!({ "step_id": "step_1", "status": "completed", "result": result }))
        .value;
    let warning = text(&told["warning"]);
    assert!(
        warning.contains("'unable to'") && warning.contains("setStepStatus(status='failed')"),
        "{warning}"
    );
    assert_eq!((&told["status"], told.get("instruction")), (&json!("completed"), None));
    // And it can be put right.
    let told =
        main.call("setStepStatus", json!({ "step_id": "step_1", "status": "failed", "error": result })).value;
    assert_eq!(
        (&told["status"], &told["error"], told.get("warning")),
        (&json!("failed"), &json!(result), None)
    );
    let output =
        json!({ "step_id": "step_2", "output": { "passed": false }, "result": "Could not run the tests" });
    let warned = main.call("completeStepWithOutput", output).value;
    assert!(text(&warned["warning"]).contains("'could not'"));
    let tool = main.tools().into_iter().find(|tool| tool.name == "setStepStatus").unwrap();
    let description = tool.description.unwrap();
    assert!(description.contains("the status MUST be failed"), "{description}");
}

#[test]
fn who_is_not_answered_is_told_so_and_a_rejection_is_no_approval() {
    let world = World::new();
    let main = agent(&world, "main");
    let plan = text(&main.call("createPlan", json!({ "title": "T", "steps": ["a"] })).value["plan_id"]);
    let waiting = main.call("startPlan", json!({ "timeout": 0 })).value;
    assert_eq!((&waiting["confirmed"], &waiting["status"]), (&json!(false), &json!("pending")));
    assert!(text(&waiting["message"]).starts_with("Still waiting for the user's approval."));
    assert_eq!(
        main.refused("setStepStatus", json!({ "step_id": "step_1", "status": "in_progress" })),
        "Plan not started. Call startPlan first to confirm the plan."
    );
    world.person(&plan, Command::Reject { reason: "too risky".to_owned() });
    assert_eq!(
        main.refused("setStepStatus", json!({ "step_id": "step_1", "status": "in_progress" })),
        "Plan not started. Call startPlan first to confirm the plan."
    );
    // Nobody is asked again for the same; another plan is asked for, and rejected while the call waits.
    let told = main.ask("startPlan", json!({ "timeout": 0 }));
    assert!(told.is_error && told.text.starts_with("Plan rejected by the user: too risky."), "{}", told.text);
    let plan = text(&main.call("createPlan", json!({ "title": "T", "steps": ["b"] })).value["plan_id"]);
    let told = std::thread::scope(|scope| {
        scope.spawn(|| {
            let id = PlanId::new(plan.as_str()).unwrap();
            let mut watch = world.plans.watch().unwrap();
            for _ in 0..60 {
                if world.plans.with_plan(&id, |plan| plan.state().phase).unwrap() == Phase::AwaitingApproval {
                    return world.person(&plan, Command::Reject { reason: "still too risky".to_owned() });
                }
                watch.wait(std::time::Duration::from_secs(1)).unwrap();
            }
        });
        main.ask("startPlan", json!({}))
    });
    assert!(told.is_error);
    assert!(told.text.starts_with("Plan rejected by the user: still too risky."), "{}", told.text);
    assert_eq!(told.value["confirmed"], false);
    main.call("completePlan", json!({ "status": "cancelled", "summary": "rejected" }));
}

#[test]
fn where_the_operator_asks_nobody_a_plan_starts_at_once() {
    let world = World::new();
    let mut draft = Draft::new("T");
    draft.spec.owner = "main".to_owned();
    draft.tasks.push(Task::new(task("step_1", &[])));
    let waived = NewPlan { id: None, by: Actor::agent("main"), draft, approval_required: Some(false) };
    direct_writes::create(&world.plans, waived);
    let main = agent(&world, "main");
    assert_eq!(main.call("startPlan", json!({})).value["confirmed"], true);
    assert_eq!(set(&main, "step_1", "completed").value["plan_status"], "completed");
}

#[test]
fn a_plan_that_was_never_started_is_replaced_and_not_left_behind() {
    let world = World::new();
    let main = agent(&world, "main");
    let old = text(&main.call("createPlan", json!({ "title": "First", "steps": ["a"] })).value["plan_id"]);
    world.wait(1);
    let new = main.call("createPlan", json!({ "title": "Second", "steps": ["a"] })).value;
    assert_eq!(new["replaced"], json!(old));
    let phase = world.plans.with_plan(&PlanId::new(old).unwrap(), |plan| plan.state().phase).unwrap();
    assert_eq!(phase, Phase::Cancelled);
    assert_eq!(main.call("getPlanStatus", json!({})).value["title"], "Second");
}

#[test]
fn each_agent_has_its_own_plan_and_sees_others_by_id() {
    let world = World::new();
    let (main, other) = (agent(&world, "main"), agent(&world, "other"));
    let plan = started(&world, &main, "Mine", &["a"]);
    started(&world, &other, "Theirs", &["a"]);
    assert_eq!(main.call("getPlanStatus", json!({})).value["title"], "Mine");
    let seen = other.call("getPlanStatus", json!({ "plan_id": plan })).value;
    assert_eq!((&seen["title"], &seen["agent_id"]), (&json!("Mine"), &json!("main")));
    set(&other, "step_1", "completed");
    assert_eq!(step(&main, "step_1")["status"], "pending");
}

#[test]
fn steps_are_added_where_they_belong_and_ids_stay() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "T", &["a", "b"]);
    let added = main.call("addStep", json!({ "description": "between", "after_step_id": "step_1" })).value;
    assert_eq!(
        (&added["step_id"], &added["sequence"], &added["total_steps"]),
        (&json!("step_3"), &json!(2), &json!(3))
    );
    let last = main.call("addStep", json!({ "description": "last" })).value;
    assert_eq!((&last["step_id"], &last["sequence"]), (&json!("step_4"), &json!(4)));
    let steps = main.call("getPlanStatus", json!({})).value["steps"].clone();
    let ids: Vec<&Value> = steps.as_array().unwrap().iter().map(|step| &step["id"]).collect();
    assert_eq!(ids, ["step_1", "step_3", "step_2", "step_4"]);
    // A plan whose last step has ended goes on with a new one.
    for id in ["step_1", "step_2", "step_3", "step_4"] {
        set(&main, id, "completed");
    }
    assert_eq!(main.call("getPlanStatus", json!({})).value["status"], "completed");
    main.call("addStep", json!({ "description": "one more" }));
    assert_eq!(main.call("getPlanStatus", json!({})).value["status"], "in_progress");
}

#[test]
fn calls_at_the_same_time_lose_no_step() {
    let world = World::new();
    let main = agent(&world, "main");
    let plan = started(&world, &main, "T", &["a"]);
    let sessions: Vec<_> = (0..4).map(|_| agent(&world, "main")).collect();
    std::thread::scope(|scope| {
        for session in &sessions {
            scope.spawn(move || {
                for _ in 0..5 {
                    session.call("addStep", json!({ "description": "more" }));
                }
            });
        }
    });
    let total = world.plans.with_plan(&PlanId::new(plan).unwrap(), waypost_core::Plan::len).unwrap();
    assert_eq!(total, 21);
}

#[test]
fn a_long_plan_is_shown_in_parts() {
    let world = World::new();
    let main = agent(&world, "main");
    let steps: Vec<String> = (1..=250).map(|number| format!("Step number {number}")).collect();
    main.call("createPlan", json!({ "title": "Long", "steps": steps }));
    let first = main.call("getPlanStatus", json!({})).value;
    assert_eq!(first["steps"].as_array().unwrap().len(), 200);
    let rest = main.call("getPlanStatus", json!({ "after_step_id": first["after_step_id"] })).value;
    assert_eq!(rest["steps"].as_array().unwrap().len(), 50);
    assert_eq!((&rest["steps"][0]["sequence"], rest.get("after_step_id")), (&json!(201), None));
}

#[test]
fn an_agent_that_is_not_heard_of_loses_its_step_and_may_still_report() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "Wait", &["wait"]);
    let plan = started(&world, &child, "Work", &["work"]);
    set(&child, "step_1", "in_progress");
    let on = json!([{ "agent_id": "child", "step_id": "step_1" }]);
    main.call("addDependentStep", json!({ "step_id": "step_1", "depends_on": on }));
    let why = main.call("getBlockedSteps", json!({})).value["blocked_steps"][0]["why"][0].clone();
    assert_eq!(why, json!(format!("child:step_1 (plan {plan}) is running, agent:child works on it")));
    // Saying again that it is in progress is a sign of life.
    world.wait(1_000);
    set(&child, "step_1", "in_progress");
    world.wait(1_000);
    main.call("getBlockedSteps", json!({}));
    assert_eq!(step(&child, "step_1")["status"], "in_progress");
    world.wait(1_801);
    let blocked = main.call("getBlockedSteps", json!({})).value;
    assert_eq!(
        blocked["blocked_steps"][0]["why"][0],
        json!(format!("child:step_1 (plan {plan}) is ready; agent:child was lost during attempt 1"))
    );
    assert_eq!(step(&child, "step_1")["status"], "pending");
    assert_eq!(step(&main, "step_1")["status"], "blocked");
    set(&child, "step_1", "completed");
    assert_eq!(step(&main, "step_1")["status"], "pending");
    let state =
        world.plans.with_plan(&PlanId::new(plan).unwrap(), |plan| plan.task("step_1").unwrap().state.status);
    assert_eq!(state.unwrap(), Status::Done);
}

#[test]
fn a_long_plan_is_answered_with_its_first_steps_and_where_the_others_are() {
    let world = World::new();
    let main = agent(&world, "main");
    let steps: Vec<String> = (0..201).map(|number| format!("step {number}")).collect();
    let made = main.call("createPlan", json!({ "title": "Long", "steps": steps })).value;
    assert_eq!(made["steps"].as_array().unwrap().len(), 200);
    assert_eq!(made["more"], "200 of 201 steps; getPlanStatus with after_step_id has the others");
    let short = main.call("createPlan", json!({ "title": "Short", "steps": steps[..200] })).value;
    assert_eq!((short["steps"].as_array().unwrap().len(), short.get("more")), (200, None));
}
