//! Goals that are broken down.

use std::sync::mpsc::{channel, sync_channel};

use super::*;
use waypost_core::Refinement;

/// How many calls the machine takes.
pub(super) const MACHINE_CALLS: usize = 22;

fn refinement(plan: &Plan, task: &str) -> Option<Refinement> {
    plan.task(task).unwrap().spec.thinking.as_ref().and_then(|thinking| thinking.refinement)
}

#[test]
fn a_goal_is_broken_down_until_every_leaf_is_small_enough() {
    let stage = Stage::directed(machine);
    let answer = stage.does(&["decompose", MACHINE]);
    assert_eq!(answer["ending"], "over", "{answer}");
    let plan = stage.plan(&stage.only());
    assert_eq!(plan.len(), 10);
    let leaves = plan.tasks().filter(|(task, _)| plan.children(task.spec.id.as_str()).is_empty());
    let leaves: Vec<String> = leaves.map(|(task, _)| task.spec.id.to_string()).collect();
    assert_eq!(leaves, ["goal.1.1", "goal.1.2", "goal.2.1", "goal.2.2", "goal.3.1", "goal.3.2"]);
    for leaf in &leaves {
        assert_eq!(refinement(&plan, leaf), Some(Refinement::Atomic));
    }
    let second = &plan.task("goal.2").unwrap().spec;
    assert_eq!(second.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>(), ["goal.1"]);
    assert!(plan.task("goal").unwrap().spec.thinking.as_ref().unwrap().reasoning.is_some());
    assert_eq!(stage.server.asked(), MACHINE_CALLS);
    stage.tokens_are_true(plan.id().as_str());
}

#[test]
fn the_real_parents_intent_and_the_chain_above_reach_the_model() {
    let stage = Stage::directed(machine);
    stage.does(&["decompose", MACHINE]);
    let seen = stage.server.seen();
    let of_step = seen
        .iter()
        .find(|seen| purpose(seen) == "atomicity" && data(seen, "goal").starts_with("step frame one"));
    let told = told(of_step.unwrap());
    assert!(told.contains("part frame: bolt beams together") && told.contains(MACHINE), "{told}");
}

#[test]
fn a_task_of_a_plan_is_broken_down_where_it_is() {
    let stage = Stage::directed(machine);
    stage.does(&["new", "works", "--task", "part frame: bolt beams", "--task", "paint it red", "--id", "w"]);
    stage.does(&["decompose", "w", "t1"]);
    let plan = stage.plan("w");
    assert_eq!(plan.children("t1").len(), 2);
    assert!(plan.children("t2").is_empty() && refinement(&plan, "t2").is_none());
    stage.tokens_are_true("w");
}

#[test]
fn a_plan_that_is_generated_can_be_broken_down_at_once() {
    let stage = Stage::directed(|seen| match purpose(seen).as_str() {
        "generate" => say(json!({ "goal": "g", "tasks": [
            { "id": "a", "description": "part frame: bolt beams", "depends_on": [] },
            { "id": "b", "description": "step alone: sweep the floor", "depends_on": ["a"] },
        ] })),
        _ => machine(seen),
    });
    stage.does(&["plan", MACHINE, "--decompose"]);
    let id = stage.only();
    let plan = stage.plan(&id);
    assert_eq!((plan.len(), plan.children("a").len()), (4, 2));
    stage.tokens_are_true(&id);
}

/// A model for which nothing is ever small enough.
fn endless() -> impl FnMut(&Seen) -> ScriptedReply + Send + 'static {
    let mut number = 0;
    move |seen: &Seen| match purpose(seen).as_str() {
        "decompose" => {
            let mut child = || {
                number += 1;
                json!({ "description": format!("plant{number} water{number} prune{number}"), "complexity": "high", "notes": "" })
            };
            say(json!({ "reasoning": "more", "sub_goals": [child(), child(), child()] }))
        }
        "atomicity" => say(json!({ "reasoning": "far too large", "is_atomic": false })),
        "dependencies" => say(json!({ "reasoning": "none", "dependencies": [] })),
        _ => machine(seen),
    }
}

#[test]
fn a_model_that_never_stops_is_bounded_by_depth_and_goals() {
    let stage = Stage::directed(endless());
    let answer = stage.does(&["decompose", MACHINE, "--max-depth", "2"]);
    assert_eq!((answer["ending"].as_str(), answer["goals"]["total"].as_u64()), (Some("over"), Some(13)));
    assert_eq!(answer["goals"]["stopped"].as_array().unwrap().len(), 9, "{answer}");
    assert!(answer["goals"]["stopped"][0]["why"].as_str().unwrap().contains("max_depth is 2"));
    let stage = Stage::directed(endless());
    let answer = stage.does(&["decompose", MACHINE, "--max-goals", "30", "--max-depth", "50"]);
    let total = answer["goals"]["total"].as_u64().unwrap();
    assert!(total <= 30, "{answer}");
    assert!(answer["goals"]["stopped"][0]["why"].as_str().unwrap().contains("max_goals is 30"), "{answer}");
    stage.tokens_are_true(&stage.only());
}

#[test]
fn goals_that_a_bound_keeps_are_gone_on_with_when_it_is_raised() {
    let stage = Stage::directed(endless());
    let error = stage.fails(1, &["decompose", "Build a smaller thing", "--max-calls", "1"]);
    let open = stage.only();
    assert!(error["hint"].as_str().unwrap().contains(&format!("waypost plan continue {open} --max-calls N")));
    let answer = stage.does(&["decompose", MACHINE, "--max-depth", "1"]);
    let bounded = answer["id"].as_str().unwrap().to_owned();
    assert_eq!((answer["ending"].as_str(), answer["goals"]["total"].as_u64()), (Some("over"), Some(4)));
    let hint = answer["goals"]["stopped"][0]["hint"].as_str().unwrap();
    assert!(hint.contains(&format!("`waypost plan continue {bounded} --max-depth N`")), "{hint}");
    // What waits for a raised bound keeps nobody from what is open.
    let error = stage.fails(1, &["continue", "--max-calls", "2"]);
    assert!(error["hint"].as_str().unwrap().contains(&open), "{error}");
    stage.does(&["archive", &open]);
    let answer = stage.does(&["continue", "--max-depth", "2"]);
    assert_eq!(
        (answer["id"].as_str(), answer["goals"]["total"].as_u64()),
        (Some(bounded.as_str()), Some(13))
    );
    stage.tokens_are_true(&bounded);
}

#[test]
fn one_task_that_is_broken_down_leaves_the_rest_of_the_plan_unfinished() {
    let stage = Stage::directed(machine);
    stage.fails(1, &["decompose", MACHINE, "--max-calls", "3", "--parallel", "1"]);
    let id = stage.only();
    let answer = stage.does(&["decompose", &id, "goal.3"]);
    assert_eq!(answer["ending"], "over");
    let notes = answer["notes"].to_string();
    assert!(notes.contains(&format!("waypost plan continue {id}")), "{answer}");
    assert_eq!(stage.plan(&id).len(), 6);
    let answer = stage.does(&["continue", "--max-calls", "1000"]);
    assert_eq!((answer["ending"].as_str(), answer["goals"]["open"].as_u64()), (Some("over"), Some(0)));
    assert_eq!(stage.plan(&id).len(), 10);
    stage.tokens_are_true(&id);
    assert_eq!(stage.fails(5, &["continue"])["message"], "no planning is unfinished");
}

#[test]
fn a_model_without_a_price_is_not_helped_by_more_money() {
    let server = ModelServer::directed(machine);
    let free = format!("[models.free]\napi = \"openai\"\nbase_url = {:?}\nmodel = \"m\"\n", server.openai());
    let stage = Stage::configured(server, "retries = 0\n", &free);
    for words in [["decompose", MACHINE], ["plan", GOAL]] {
        let error = stage.fails(1, &[&words[..], &["--model", "free", "--cost", "1"]].concat());
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("price_in") && !hint.contains("--cost AMOUNT"), "{hint}");
    }
    let id = stage.only();
    stage.fails(1, &["continue", &id]);
    assert_eq!(stage.server.asked(), 0);
    stage.does(&["decompose", &id, "--model", "free"]);
    assert_eq!(stage.server.asked(), MACHINE_CALLS, "as the hint has it");
}

#[test]
fn a_goal_that_no_answer_helps_is_given_up_with_its_reason_and_the_others_go_on() {
    let stage = Stage::directed(|seen| {
        if purpose(seen) == "decompose" && data(seen, "goal").starts_with("part cover") {
            let same = data(seen, "goal");
            let twice = json!([{ "description": same }, { "description": same }]);
            return say(json!({ "reasoning": "hm", "sub_goals": twice }));
        }
        machine(seen)
    });
    let answer = stage.does(&["decompose", MACHINE]);
    assert_eq!(answer["goals"]["stopped"][0]["task"], "goal.3", "{answer}");
    let plan = stage.plan(&stage.only());
    assert_eq!(plan.children("goal.1").len(), 2);
    let thinking = plan.task("goal.3").unwrap().spec.thinking.clone().unwrap();
    assert_ne!(thinking.refinement, Some(Refinement::Atomic), "never taken for small enough in silence");
    assert!(thinking.reasoning.unwrap().contains("restates"));
    stage.tokens_are_true(plan.id().as_str());
}

#[test]
fn a_goal_that_is_given_up_as_a_whole_is_a_failure() {
    let stage = Stage::directed(|seen| {
        if purpose(seen) == "decompose" {
            let same = data(seen, "goal");
            let twice = json!([{ "description": same }, { "description": same }]);
            return say(json!({ "reasoning": "hm", "sub_goals": twice }));
        }
        machine(seen)
    });
    let error = stage.fails(1, &["decompose", MACHINE]);
    assert_eq!(error["code"], "given_up", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("goal goal was given up: ") && message.contains("restates"), "{error}");
    stage.fails(1, &["continue", &stage.only()]);
    stage.does(&["new", "works", "--task", "part frame: bolt beams", "--task", "paint it red", "--id", "w"]);
    let error = stage.fails(1, &["decompose", "w", "t1"]);
    assert_eq!(error["code"], "given_up", "the task that was named: {error}");
}

#[test]
fn unknown_ids_and_cycles_among_siblings_are_returned_with_the_reason() {
    let mut first = true;
    let stage = Stage::directed(move |seen| {
        if purpose(seen) == "dependencies" && std::mem::take(&mut first) {
            let edges = json!([
                { "goal_id": "goal.1", "depends_on": ["goal.2", "ghost"] },
                { "goal_id": "goal.2", "depends_on": ["goal.1"] },
            ]);
            return say(json!({ "reasoning": "hm", "dependencies": edges }));
        }
        machine(seen)
    });
    stage.does(&["decompose", MACHINE]);
    assert_eq!(stage.server.asked(), MACHINE_CALLS + 1);
    let seen = stage.server.seen();
    let again = seen.iter().map(told).find(|told| told.contains("ghost") && told.contains("goal.1 → goal.2"));
    assert!(again.is_some(), "the model is told of both");
    stage.tokens_are_true(&stage.only());
}

#[test]
fn calls_and_tokens_are_bounded_before_a_call_and_more_of_them_go_on() {
    let stage = Stage::directed(machine);
    let error = stage.fails(1, &["decompose", MACHINE, "--max-calls", "3"]);
    assert_eq!((error["code"].as_str(), error["bound"].as_str()), (Some("bound"), Some("max_calls")));
    assert_eq!(stage.server.asked(), 3);
    let id = stage.only();
    let used = stage.tokens_are_true(&id);
    let error = stage.fails(1, &["continue", "--max-calls", "1000", "--budget", &(used + 100).to_string()]);
    assert_eq!(error["bound"], "token_budget");
    assert_eq!(stage.server.asked(), 3, "the next call would have gone over the budget");
    assert!(error["hint"].as_str().unwrap().contains("--budget"), "{error}");
    let answer = stage.does(&["continue", "--budget", "1000000"]);
    assert_eq!((answer["ending"].as_str(), stage.server.asked()), (Some("over"), MACHINE_CALLS));
    assert_eq!(answer["token_budget"], 1_000_000);
    stage.tokens_are_true(&id);
}

#[test]
fn steps_are_made_one_by_one() {
    let stage = Stage::directed(machine);
    let answer = stage.does(&["decompose", MACHINE, "--step", "--parallel", "1"]);
    assert_eq!((answer["ending"].as_str(), stage.server.asked()), (Some("stepped"), 1));
    for asked in 2..=5 {
        stage.does(&["continue", "--step"]);
        assert_eq!(stage.server.asked(), asked);
        stage.tokens_are_true(&stage.only());
    }
}

#[test]
fn a_rollback_takes_the_whole_subtree_and_the_model_is_asked_anew() {
    let stage = Stage::directed(machine);
    stage.does(&["decompose", MACHINE]);
    let id = stage.only();
    let before = stage.tokens_are_true(&id);
    let answer = stage.does(&["rollback", &id, "goal"]);
    assert_eq!(answer["removed"], 9);
    let plan = stage.plan(&id);
    assert_eq!((plan.len(), refinement(&plan, "goal")), (1, None));
    assert_eq!(plan.tasks().map(|(_, depth)| depth).max(), Some(0));
    assert_eq!(stage.tokens_are_true(&id), before, "what was spent stays spent");
    let answer = stage.does(&["continue", &id]);
    assert_eq!((answer["recalled"].as_u64(), stage.server.asked()), (Some(0), 2 * MACHINE_CALLS));
    assert_eq!(stage.plan(&id).len(), 10);
    stage.tokens_are_true(&id);
}

#[test]
fn a_record_of_goals_that_were_rolled_back_and_reworded_can_be_replayed() {
    let stage = Stage::directed(machine);
    stage.does(&["decompose", MACHINE]);
    let id = stage.only();
    stage.does(&["rollback", &id, "goal.3"]);
    stage.does(&["task", "revise", &id, "goal.3", "--description", "step cover only: leave it plain"]);
    stage.does(&["continue", &id, "--record", "record.jsonl"]);
    let asked = stage.server.asked();
    let again = stage.does(&["decompose", MACHINE, "--replay", "record.jsonl"]);
    assert_eq!((again["ending"].as_str(), stage.server.asked()), (Some("over"), asked));
    assert_eq!(stage.plan(again["id"].as_str().unwrap()).len(), 10, "as it was the first time");
}

#[test]
fn a_pause_ends_the_thinking_after_what_is_under_way() {
    let (asked, hear_asked) = channel();
    let (go, wait) = sync_channel::<()>(0);
    let mut count = 0;
    let stage = Stage::directed(move |seen| {
        count += 1;
        if count == 4 {
            asked.send(()).unwrap();
            wait.recv_timeout(PATIENCE).unwrap();
        }
        machine(seen)
    });
    let mut thinking = stage.begins(&["decompose", MACHINE, "--parallel", "1"]);
    hear_asked.recv_timeout(PATIENCE).unwrap();
    let id = stage.only();
    stage.does(&["pause", &id, "--reason", "lunch"]);
    go.send(()).unwrap();
    assert_eq!(thinking.wait().unwrap().code(), Some(1));
    assert_eq!(stage.server.asked(), 4, "the answer that was under way is kept, and nothing more is asked");
    let plan = stage.plan(&id);
    assert_eq!(plan.state().phase, waypost_core::Phase::Paused);
    stage.tokens_are_true(&id);
    let answer = stage.does(&["continue"]);
    assert_eq!((answer["ending"].as_str(), stage.server.asked()), (Some("over"), MACHINE_CALLS));
    assert_eq!(stage.plan(&id).state().phase, waypost_core::Phase::Draft);
    stage.tokens_are_true(&id);
}

#[test]
fn only_one_process_thinks_about_a_plan() {
    let (asked, hear_asked) = channel();
    let stage = Stage::directed(move |_| {
        let _test_is_over = asked.send(());
        ScriptedReply::Hang
    });
    let mut first = stage.begins(&["decompose", MACHINE]);
    hear_asked.recv_timeout(PATIENCE).unwrap();
    let id = stage.only();
    let error = stage.fails(1, &["decompose", &id]);
    assert_eq!(error["code"], "held", "{error}");
    assert!(error["message"].as_str().unwrap().contains(&first.id().to_string()), "{error}");
    let version = stage.plan(&id).version();
    for words in [["decompose", &id], ["continue", &id], ["digest", &id]] {
        let error = stage.fails(1, &[&words[..], &["--budget", "777"]].concat());
        assert_eq!(error["code"], "held", "{error}");
    }
    let plan = stage.plan(&id);
    assert_eq!((plan.spec().token_budget, plan.version()), (None, version), "who is refused changes nothing");
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn who_cannot_be_asked_leaves_a_paused_plan_paused() {
    let stage = Stage::directed(machine);
    stage.fails(1, &["decompose", MACHINE, "--max-calls", "1"]);
    let id = stage.only();
    stage.does(&["pause", &id]);
    let order = stage.workspace.work().join(format!(".waypost/planning/{id}.json"));
    let (before, order_before) = (stage.plan(&id), fs::read_to_string(&order).unwrap());
    for command in ["decompose", "continue", "digest"] {
        let output = stage.run(&[command, &id, "--budget", "777", "--replay", "not-there.jsonl"]);
        assert!(!output.status.success(), "{command}: {}", said(&output));
    }
    let after = stage.plan(&id);
    assert_eq!((after.version(), after.state().phase), (before.version(), waypost_core::Phase::Paused));
    assert_eq!(fs::read_to_string(&order).unwrap(), order_before);
    stage.does(&["continue", &id, "--max-calls", "1000"]);
    assert_eq!(stage.plan(&id).len(), 10);
}

#[test]
fn what_a_person_changes_meanwhile_is_respected_and_asked_about_anew() {
    let (asked, hear_asked) = channel();
    let (go, wait) = sync_channel::<()>(0);
    let mut held = false;
    let stage = Stage::directed(move |seen| {
        let goal = data(seen, "goal");
        if purpose(seen) == "atomicity"
            && goal.starts_with("part cover")
            && !std::mem::replace(&mut held, true)
        {
            asked.send(()).unwrap();
            wait.recv_timeout(PATIENCE).unwrap();
        }
        machine(seen)
    });
    let mut thinking = stage.begins(&["decompose", MACHINE]);
    hear_asked.recv_timeout(PATIENCE).unwrap();
    let id = stage.only();
    stage.does(&["task", "revise", &id, "goal.3", "--description", "step cover only: leave it plain"]);
    stage.does(&["add", &id, "oil everything", "--id", "oil"]);
    go.send(()).unwrap();
    until("the thinking ends", || thinking.try_wait().unwrap().is_some());
    let plan = stage.plan(&id);
    assert_eq!(plan.task("goal.3").unwrap().spec.description, "step cover only: leave it plain");
    let about: Vec<String> = stage
        .server
        .seen()
        .iter()
        .filter(|seen| purpose(seen) == "atomicity")
        .map(|seen| data(seen, "goal"))
        .filter(|goal| goal.contains("leave it plain"))
        .collect();
    assert!(!about.is_empty(), "the model was asked about the goal as it is now");
    assert_eq!(refinement(&plan, "goal.3"), Some(Refinement::Atomic));
    assert!(plan.task("oil").is_some());
    stage.tokens_are_true(&id);
}

#[test]
fn thinking_is_reviewed_and_counted() {
    let stage = Stage::directed(machine);
    stage.does(&["decompose", MACHINE]);
    let id = stage.only();
    let review = stage.does(&["review", &id, "goal.2", "--calls"]);
    assert_eq!(review["ancestors"], json!(["goal"]));
    assert_eq!(review["task"]["children"], json!(["goal.2.1", "goal.2.2"]));
    let slots: Vec<&str> =
        review["calls"].as_array().unwrap().iter().map(|call| call["slot"].as_str().unwrap()).collect();
    assert_eq!(slots, ["refine/goal.2", "atomicity/goal.2", "decompose/goal.2", "dependencies/goal.2"]);
    assert!(review["calls"][0]["turns"][0]["text"].as_str().unwrap().contains("thought through"));
    let shown = said(&stage.run(&["review", &id, "goal.2"]));
    for word in ["broken down", "above", "refine/goal.2"] {
        assert!(shown.contains(word), "{word} is not in {shown}");
    }
    let cost = stage.does(&["cost", &id]);
    assert_eq!(cost["calls"], MACHINE_CALLS);
    assert_eq!(cost["tokens"], cost["tokens_used"]);
    assert_eq!(cost["by_purpose"]["atomicity"]["calls"], 10);
    assert_ne!(cost["cost"], "0.000000");
    assert_eq!(stage.does(&["cost"])["all"]["calls"], MACHINE_CALLS);
}

#[test]
fn a_word_that_is_no_plan_is_not_taken_for_a_goal() {
    let stage = Stage::directed(machine);
    stage.fails(5, &["decompose", "kq3"]);
    assert_eq!(stage.server.asked(), 0);
}
