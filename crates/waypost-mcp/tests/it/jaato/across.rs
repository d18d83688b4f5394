//! Agents that wait for each other's steps: every way in which that can end.

use serde_json::{Value, json};

use super::{agent, set, start, started, step, text};
use crate::session::{Session, World};

fn on(agent: &str, step: &str) -> Value {
    json!([{ "agent_id": agent, "step_id": step }])
}

fn wait_for(session: &Session, agent: &str, step: &str) -> Value {
    let review = json!({ "description": "Review implementation results", "depends_on": on(agent, step) });
    session.call("addDependentStep", review).value
}

#[test]
fn a_parent_and_its_subagent_work_as_the_document_shows() {
    let world = World::new();
    let parent = agent(&world, "main");
    parent.call("subscribeToTasks", json!({ "event_types": ["plan_created", "step_completed"] }));
    started(&world, &parent, "Parent", &["Prepare"]);
    let child = agent(&world, "implementer");
    started(&world, &child, "Implement", &["Write code", "Finish"]);
    // The parent sees the plan of its subagent with its next call.
    let told = parent.call("getPlanStatus", json!({})).value;
    let created = &told["events"][0];
    assert_eq!(
        (&created["event_type"], &created["source_agent"]),
        (&json!("plan_created"), &json!("implementer"))
    );
    let last = text(&created["payload"]["steps"][1]["step_id"]);
    let added = wait_for(&parent, "implementer", &last);
    assert_eq!(added["step_id"], "step_2");
    assert_eq!((&added["status"], &added["sequence"]), (&json!("blocked"), &json!(2)));
    let plan = &created["source_plan_id"];
    let means = json!([{ "agent_id": "implementer", "step_id": last, "plan_id": plan }]);
    assert_eq!(added["blocked_by"], means);
    assert_eq!(added["message"], "Step added with 1 dependencies (BLOCKED)");
    let blocked = parent.call("getBlockedSteps", json!({})).value;
    assert_eq!(blocked["count"], 1);
    assert_eq!(blocked["blocked_steps"][0]["received_outputs"], json!({}));
    let output = json!({ "passed": true, "results": ["file1.py created", "tests pass"], "errors": [] });
    let done =
        json!({ "step_id": last, "output": output, "result": "Implementation completed successfully" });
    let completed = child.call("completeStepWithOutput", done).value;
    assert_eq!(completed["message"], "Step completed with output. Dependent steps will be notified.");
    let blocked = parent.call("getBlockedSteps", json!({})).value;
    assert_eq!((&blocked["blocked_steps"], &blocked["message"]), (&json!([]), &json!("No blocked steps")));
    assert_eq!(blocked["events"][0]["event_type"], "step_completed");
    assert_eq!(blocked["events"][0]["payload"]["output"], output);
    let status = parent.call("getPlanStatus", json!({})).value;
    assert_eq!(status["received_outputs"]["implementer"], output);
    assert_eq!(status["steps"][1]["status"], "pending");
    assert_eq!(status["steps"][1]["received_outputs"]["implementer:step_2"], output);
    assert_eq!(status.get("events"), None, "told once");
}

#[test]
fn what_is_completed_already_blocks_nobody() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    started(&world, &child, "C", &["b", "c"]);
    child.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "n": 1 } }));
    let added = wait_for(&main, "child", "step_1");
    assert_eq!((&added["status"], &added["blocked_by"]), (&json!("pending"), &json!([])));
    assert_eq!(added["message"], "Step added with 1 dependencies (already completed: READY)");
    assert_eq!(added["received_outputs"]["child:step_1"], json!({ "n": 1 }));
}

#[test]
fn what_fails_is_skipped_or_cancelled_skips_whoever_waits_and_says_why() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    let plan = started(&world, &child, "C", &["fails", "skipped", "cancelled", "other"]);
    for step in ["step_1", "step_2", "step_3"] {
        wait_for(&main, "child", step);
    }
    child.call("setStepStatus", json!({ "step_id": "step_1", "status": "failed", "error": "compile error" }));
    child.call("setStepStatus", json!({ "step_id": "step_2", "status": "skipped", "result": "not needed" }));
    child.call("completePlan", json!({ "status": "cancelled" }));
    for (id, why) in [
        ("step_2", "step_1, which it waited for, was not accomplished: it failed"),
        ("step_3", "step_2, which it waited for, was skipped"),
        ("step_4", "step_3, which it waited for, was cancelled"),
    ] {
        let (step, why) = (step(&main, id), format!("child:{plan}/{why}"));
        assert_eq!((&step["status"], &step["result"]), (&json!("skipped"), &json!(why)), "{id}");
    }
    // The same when it has happened already, for a plan that is named.
    let over = json!([{ "agent_id": "child", "plan_id": plan, "step_id": "step_1" }]);
    let added = main.call("addDependentStep", json!({ "description": "Review", "depends_on": over })).value;
    assert_eq!(added["status"], "skipped");
    let expected = format!(
        "Step added with 1 dependencies (SKIPPED: child:{plan}/step_1, which it waited for, was not accomplished: it failed)"
    );
    assert_eq!(added["message"], json!(expected));
}

#[test]
fn a_failure_that_is_put_right_brings_back_whoever_waited() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    started(&world, &child, "C", &["b", "c"]);
    wait_for(&main, "child", "step_1");
    set(&child, "step_1", "failed");
    assert_eq!(step(&main, "step_2")["status"], "skipped");
    child.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "n": 2 } }));
    let step = step(&main, "step_2");
    assert_eq!(
        (&step["status"], &step["received_outputs"]["child:step_1"]),
        (&json!("pending"), &json!({ "n": 2 }))
    );
}

#[test]
fn who_waits_for_an_agent_without_a_plan_waits_until_it_has_one() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "M", &["a"]);
    assert_eq!(wait_for(&main, "later", "step_2")["status"], "blocked");
    let why = main.call("getBlockedSteps", json!({})).value["blocked_steps"][0]["why"].clone();
    assert_eq!(why, json!(["later:step_2: agent later has no plan so far"]));
    let later = agent(&world, "later");
    world.wait(1);
    let plan = text(&later.call("createPlan", json!({ "title": "L", "steps": ["x", "y"] })).value["plan_id"]);
    let why = main.call("getBlockedSteps", json!({})).value["blocked_steps"][0]["why"].clone();
    assert_eq!(why, json!([format!("later:step_2 (plan {plan}) is ready; its plan is not started")]));
    // It thinks again before it begins: the new plan is the one that is meant.
    world.wait(1);
    let again =
        text(&later.call("createPlan", json!({ "title": "L2", "steps": ["x", "y"] })).value["plan_id"]);
    assert_eq!(step(&main, "step_2")["status"], "blocked");
    start(&world, &later, &again, json!({}));
    set(&later, "step_2", "completed");
    assert_eq!(step(&main, "step_2")["status"], "pending");
}

#[test]
fn agents_that_would_wait_for_each_other_are_refused_with_the_path() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    let mine = started(&world, &main, "M", &["a"]);
    let theirs = started(&world, &child, "C", &["b"]);
    main.call("addDependentStep", json!({ "step_id": "step_1", "depends_on": on("child", "step_1") }));
    let told =
        child.ask("addDependentStep", json!({ "step_id": "step_1", "depends_on": on("main", "step_1") }));
    assert!(told.is_error);
    let path = format!("child:{theirs}/step_1 → main:{mine}/step_1 → child:{theirs}/step_1");
    assert!(told.text.contains(&path), "{}", told.text);
    assert_eq!(told.value["error"], json!(told.text));
    // Nor can a step wait for itself, or for one of the same plan that waits for it.
    child.refused("addDependentStep", json!({ "step_id": "step_1", "depends_on": on("child", "step_1") }));
    let after =
        child.call("addDependentStep", json!({ "description": "then", "depends_on": on("child", "step_1") }));
    assert_eq!(
        after.value["blocked_by"],
        json!([{ "agent_id": "child", "step_id": "step_1", "plan_id": theirs }])
    );
    set(&child, "step_1", "completed");
    assert_eq!(step(&child, "step_2")["status"], "pending");
    assert_eq!(step(&main, "step_1")["status"], "pending");
}

#[test]
fn a_step_that_is_worked_on_is_laid_down_to_wait() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "M", &["Await results"]);
    set(&main, "step_1", "in_progress");
    let linked =
        main.call("addDependentStep", json!({ "step_id": "step_1", "depends_on": on("child", "step_1") }));
    assert_eq!(linked.value["status"], "blocked");
    assert_eq!(linked.value["message"], "Added 1 dependencies to existing step (BLOCKED)");
}

#[test]
fn an_agent_that_restarts_finds_its_plan_its_subscriptions_and_what_it_has_not_heard() {
    let world = World::new();
    let first = agent(&world, "main");
    started(&world, &first, "M", &["a"]);
    let subscribed = json!({ "event_types": ["step_completed", "step_unblocked"], "agent_id": "*" });
    let subscription = first.call("subscribeToTasks", subscribed).value["subscription_id"].clone();
    wait_for(&first, "child", "step_1");
    drop(first);
    let child = agent(&world, "child");
    started(&world, &child, "C", &["b"]);
    child.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "n": 3 } }));
    let again = agent(&world, "main");
    let status = again.call("getPlanStatus", json!({})).value;
    assert_eq!(status["title"], "M");
    let kinds: Vec<&Value> =
        status["events"].as_array().unwrap().iter().map(|event| &event["event_type"]).collect();
    assert_eq!(kinds, ["step_completed", "step_unblocked"]);
    let unblocked = &status["events"][1];
    assert_eq!(
        (&unblocked["source_agent"], &unblocked["source_step_id"]),
        (&json!("main"), &json!("step_2"))
    );
    assert_eq!(unblocked["payload"]["received_outputs"]["child:step_1"], json!({ "n": 3 }));
    let listed = again.call("listSubscriptions", json!({})).value;
    assert_eq!(
        (&listed["count"], &listed["subscriptions"][0]["subscription_id"]),
        (&json!(1), &subscription)
    );
}

#[test]
fn what_is_not_there_so_far_is_said_at_once_and_what_can_never_be_is_refused() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    let added = wait_for(&main, "later", "step_9");
    assert_eq!(added["message"], "Step added with 1 dependencies (BLOCKED)");
    assert_eq!(
        added["warning"],
        "later:step_9: agent later has no plan so far. See that the names are right."
    );
    let colon = wait_for(&main, "kid:x", "step_1");
    assert_eq!(
        colon["warning"],
        "kid:x:step_1: agent kid:x has no plan so far, and no agent that calls has a colon in its name. \
         See that the names are right."
    );
    let own = wait_for(&main, "main", "step_99");
    let expected =
        "main:step_99: no plan of agent main has a task step_99 so far. See that the names are right.";
    assert_eq!(own["warning"], expected);
    let told =
        main.refused("addDependentStep", json!({ "description": "d", "depends_on": on("*", "step_1") }));
    assert!(told.contains("*:step_1, which can never be: \"*\" names no agent"), "{told}");
    started(&world, &child, "C", &["b"]);
    let theirs = child.call("getPlanStatus", json!({})).value["plan_id"].clone();
    let wrong = json!([{ "agent_id": "other", "plan_id": theirs, "step_id": "step_1" }]);
    let told = main.refused("addDependentStep", json!({ "description": "d", "depends_on": wrong }));
    assert!(told.contains("belongs to child, not to other"), "{told}");
    set(&child, "step_1", "completed");
    let missing = json!([{ "agent_id": "child", "plan_id": theirs, "step_id": "step_7" }]);
    let told = main.refused("addDependentStep", json!({ "description": "d", "depends_on": missing }));
    assert!(told.contains("has ended, and has no task step_7"), "{told}");
}

#[test]
fn a_completed_step_that_is_set_back_is_waited_for_again_and_a_second_output_replaces_the_first() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    started(&world, &child, "C", &["b", "c"]);
    wait_for(&main, "child", "step_1");
    let output = |n: u64| json!({ "step_id": "step_1", "output": { "n": n } });
    child.call("completeStepWithOutput", output(1));
    child.call("completeStepWithOutput", output(2));
    let waiting = step(&main, "step_2");
    assert_eq!(
        (&waiting["status"], &waiting["received_outputs"]["child:step_1"]),
        (&json!("pending"), &json!({ "n": 2 }))
    );
    set(&child, "step_1", "in_progress");
    let waiting = step(&main, "step_2");
    assert_eq!((&waiting["status"], waiting.get("received_outputs")), (&json!("blocked"), None));
    child.call("completeStepWithOutput", output(3));
    assert_eq!(step(&main, "step_2")["received_outputs"]["child:step_1"], json!({ "n": 3 }));
}

#[test]
fn a_plan_that_ended_for_a_failure_of_another_agent_goes_on_when_that_is_put_right() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    started(&world, &child, "C", &["b", "c"]);
    wait_for(&main, "child", "step_1");
    set(&main, "step_1", "completed");
    set(&child, "step_1", "failed");
    assert_eq!(main.call("getPlanStatus", json!({})).value["status"], "failed");
    child.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "n": 1 } }));
    let status = main.call("getPlanStatus", json!({})).value;
    assert_eq!(
        (&status["status"], &status["steps"][1]["status"]),
        (&json!("in_progress"), &json!("pending"))
    );
}

#[test]
fn a_plan_that_has_ended_answers_only_to_its_own_name() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    let old = started(&world, &child, "Old", &["b"]);
    child.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "run": "old" } }));
    let waits = wait_for(&main, "child", "step_1");
    assert_eq!((&waits["status"], waits.get("resolved_to")), (&json!("blocked"), None), "{waits}");
    let expected = format!(
        "child:step_1: no open plan of agent child has a task step_1 so far; plan {old} has one and is over, and counts only \
         when it is named. See that the names are right."
    );
    assert_eq!(waits["warning"], json!(expected));
    let named = json!([{ "agent_id": "child", "plan_id": old, "step_id": "step_1" }]);
    let named = main.call("addDependentStep", json!({ "description": "named", "depends_on": named })).value;
    assert_eq!(named["status"], "pending");
    assert_eq!(named["received_outputs"]["child:step_1"], json!({ "run": "old" }));
    assert_eq!(named["resolved_to"]["child:step_1"], json!(old));
    // Putting the old plan away is no answer either; the next plan is.
    world.person(&old, waypost_core::Command::Archive);
    assert_eq!(step(&main, "step_2")["status"], "blocked");
    let new = started(&world, &child, "New", &["b"]);
    let blocked = main.call("getBlockedSteps", json!({})).value;
    assert_eq!(blocked["blocked_steps"][0]["resolved_to"]["child:step_1"], json!(new), "{blocked}");
    child.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "run": "new" } }));
    let answered = step(&main, "step_2");
    assert_eq!(
        (&answered["status"], &answered["received_outputs"]["child:step_1"]),
        (&json!("pending"), &json!({ "run": "new" }))
    );
}

#[test]
fn a_plan_that_ends_while_it_is_waited_for_answers() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    let plan = started(&world, &child, "C", &["b", "c"]);
    assert_eq!(wait_for(&main, "child", "step_2")["resolved_to"]["child:step_2"], json!(plan));
    child.call("completePlan", json!({ "status": "cancelled" }));
    let skipped = step(&main, "step_2");
    assert_eq!(skipped["status"], "skipped", "{skipped}");
    let expected = format!("child:{plan}/step_2, which it waited for, was cancelled");
    assert_eq!(skipped["result"], json!(expected));
}

#[test]
fn a_plan_that_is_handed_over_is_followed() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    let plan = started(&world, &child, "C", &["b", "c"]);
    wait_for(&main, "child", "step_1");
    let named = json!([{ "agent_id": "child", "plan_id": plan, "step_id": "step_2" }]);
    main.call("addDependentStep", json!({ "description": "named", "depends_on": named }));
    let native = world.session(waypost_mcp::Toolset::Native, "child");
    native.call("plan_edit", json!({ "plan": plan, "ops": [{ "op": "plan", "owner": "heir" }] }));
    let blocked = main.call("getBlockedSteps", json!({})).value;
    assert_eq!(blocked["count"], 2, "{blocked}");
    assert_eq!(
        blocked["blocked_steps"][0]["blocked_by"],
        json!([{ "agent_id": "heir", "step_id": "step_1", "plan_id": plan }])
    );
    let heir = agent(&world, "heir");
    heir.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "n": 1 } }));
    heir.call("completeStepWithOutput", json!({ "step_id": "step_2", "output": { "n": 2 } }));
    let (first, second) = (step(&main, "step_2"), step(&main, "step_3"));
    assert_eq!(
        (&first["status"], &first["received_outputs"]["heir:step_1"]),
        (&json!("pending"), &json!({ "n": 1 })),
        "{first}"
    );
    assert_eq!(
        (&second["status"], &second["received_outputs"]["heir:step_2"]),
        (&json!("pending"), &json!({ "n": 2 })),
        "{second}"
    );
}

#[test]
fn steps_of_the_same_plan_deliver_their_outputs_as_well() {
    let world = World::new();
    let main = agent(&world, "main");
    started(&world, &main, "M", &["a", "b"]);
    wait_for(&main, "main", "step_1");
    main.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "n": 1 } }));
    let after = step(&main, "step_3");
    assert_eq!(
        (&after["status"], &after["received_outputs"]["main:step_1"]),
        (&json!("pending"), &json!({ "n": 1 })),
        "{after}"
    );
    assert_eq!(main.call("getPlanStatus", json!({})).value["received_outputs"]["main"], json!({ "n": 1 }));
}

#[test]
fn a_dependent_step_is_added_where_it_is_asked_for_and_provides_under_its_name() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["first", "second"]);
    started(&world, &child, "C", &["build", "wait"]);
    let middle = json!({
        "description": "between", "depends_on": on("child", "step_1"), "after_step_id": "step_1", "provides": "report",
    });
    let added = main.call("addDependentStep", middle).value;
    assert_eq!((&added["step_id"], &added["sequence"]), (&json!("step_3"), &json!(2)));
    let descriptions = |session: &Session| -> Vec<String> {
        let status = session.call("getPlanStatus", json!({})).value;
        status["steps"].as_array().unwrap().iter().map(|step| text(&step["description"])).collect()
    };
    assert_eq!(descriptions(&main), ["first", "between", "second"]);
    // Both have to end before what waits for both can begin.
    let both =
        json!([{ "agent_id": "child", "step_id": "step_1" }, { "agent_id": "main", "step_id": "step_3" }]);
    let last = json!({ "description": "last", "depends_on": both });
    assert_eq!(child.call("addDependentStep", last).value["status"], "blocked");
    child.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "n": 1 } }));
    assert_eq!(step(&child, "step_3")["status"], "blocked");
    main.call("completeStepWithOutput", json!({ "step_id": "step_3", "output": { "n": 2 } }));
    let step = step(&child, "step_3");
    assert_eq!(
        (&step["status"], &step["received_outputs"]["report"]),
        (&json!("pending"), &json!({ "n": 2 }))
    );
}

#[test]
fn the_blocked_steps_of_any_plan_can_be_asked_for() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    let plan = started(&world, &main, "M", &["first"]);
    started(&world, &child, "C", &["build"]);
    wait_for(&main, "child", "step_1");
    let blocked = child.call("getBlockedSteps", json!({ "plan_id": plan })).value;
    assert_eq!((&blocked["count"], &blocked["blocked_steps"][0]["step_id"]), (&json!(1), &json!("step_2")));
    assert_eq!(child.call("getBlockedSteps", json!({})).value["blocked_steps"], json!([]));
}

#[test]
fn a_dependency_waits_for_the_plan_that_the_reply_named() {
    let world = World::new();
    let (main, first, second) = (agent(&world, "main"), agent(&world, "child"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    started(&world, &first, "First", &["b", "c"]);
    world.wait(1);
    let named = started(&world, &second, "Second", &["b", "c"]);
    let waits = wait_for(&main, "child", "step_1");
    assert_eq!(waits["resolved_to"]["child:step_1"], json!(named));
    // Another plan of the same agent has a step of that name, whether it is older or newer.
    first.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "plan": "first" } }));
    assert_eq!(step(&main, "step_2")["status"], "blocked");
    world.wait(1);
    let third = agent(&world, "child");
    started(&world, &third, "Third", &["b", "c"]);
    third.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "plan": "third" } }));
    assert_eq!(step(&main, "step_2")["status"], "blocked");
    let blocked = main.call("getBlockedSteps", json!({})).value;
    assert_eq!(blocked["blocked_steps"][0]["resolved_to"]["child:step_1"], json!(named), "{blocked}");
    // The same dependency once more is the same dependency.
    let again = json!({ "step_id": "step_2", "depends_on": on("child", "step_1") });
    assert_eq!(main.call("addDependentStep", again).value["blocked_by"].as_array().map(Vec::len), Some(1));
    second.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "plan": "second" } }));
    let answered = step(&main, "step_2");
    assert_eq!(
        (&answered["status"], &answered["received_outputs"]["child:step_1"]),
        (&json!("pending"), &json!({ "plan": "second" })),
        "{answered}"
    );
}

#[test]
fn an_older_plan_does_not_answer_for_the_one_that_is_meant_but_has_not_started() {
    let world = World::new();
    let (main, first, second) = (agent(&world, "main"), agent(&world, "child"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    started(&world, &first, "First", &["b", "c"]);
    world.wait(1);
    let draft = second.call("createPlan", json!({ "title": "Second", "steps": ["b", "c"] })).value;
    let waits = wait_for(&main, "child", "step_1");
    assert_eq!(waits["resolved_to"]["child:step_1"], draft["plan_id"]);
    first.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "plan": "first" } }));
    assert_eq!(step(&main, "step_2")["status"], "blocked");
}

#[test]
fn a_dependency_stays_with_the_plan_that_the_reply_named_once_that_has_started() {
    let world = World::new();
    let (main, first, second) = (agent(&world, "main"), agent(&world, "child"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    let named =
        first.call("createPlan", json!({ "title": "First", "steps": ["b"] })).value["plan_id"].clone();
    world.wait(1);
    // As the document has it: the parent adds its step when it sees that the plan was created.
    assert_eq!(wait_for(&main, "child", "step_1")["resolved_to"]["child:step_1"], named);
    world.wait(1);
    start(&world, &first, &text(&named), json!({}));
    world.wait(1);
    started(&world, &second, "Second", &["b", "c"]);
    let blocked = main.call("getBlockedSteps", json!({})).value;
    assert_eq!(blocked["blocked_steps"][0]["resolved_to"]["child:step_1"], named, "{blocked}");
    second.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "plan": "second" } }));
    assert_eq!(step(&main, "step_2")["status"], "blocked");
    // Its only step ends the plan.
    first.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "plan": "first" } }));
    let answered = step(&main, "step_2");
    assert_eq!(
        (&answered["status"], &answered["received_outputs"]["child:step_1"]),
        (&json!("pending"), &json!({ "plan": "first" })),
        "{answered}"
    );
}

#[test]
fn a_plan_that_replaces_one_that_never_started_is_meant_instead() {
    let world = World::new();
    let (main, child) = (agent(&world, "main"), agent(&world, "child"));
    started(&world, &main, "M", &["a"]);
    child.call("createPlan", json!({ "title": "First", "steps": ["b"] }));
    wait_for(&main, "child", "step_1");
    world.wait(1);
    let second = started(&world, &child, "Second", &["b", "c"]);
    let blocked = main.call("getBlockedSteps", json!({})).value;
    assert_eq!(blocked["blocked_steps"][0]["resolved_to"]["child:step_1"], json!(second), "{blocked}");
    child.call("completeStepWithOutput", json!({ "step_id": "step_1", "output": { "n": 1 } }));
    assert_eq!(step(&main, "step_2")["received_outputs"]["child:step_1"], json!({ "n": 1 }));
}
