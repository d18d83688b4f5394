use waypost_core::{Command, Outcome, Refinement, TaskSpec};
use waypost_planner::decompose::GIVEN_UP;
use waypost_planner::{AnswerKind, Bound, Bounds, Decompose, PromptPolicy, Refining, Repair, Stopped};
use waypost_testkit::{id, plan_of, task};

use crate::kit::{Desk, answer, drive, said, script, session};

const ATOMIC: &str = r#"{"reasoning": "One file.", "is_atomic": true}"#;
const COMPOSITE: &str = r#"{"reasoning": "Two parts.", "is_atomic": false}"#;
const CHILDREN: &str = r#"{"reasoning": "Data first.", "sub_goals": [
    {"description": "Create the user table", "complexity": "low", "notes": "PostgreSQL"},
    {"description": "Write the login endpoint", "complexity": "medium", "notes": ""}]}"#;
const EDGES: &str = r#"{"reasoning": "r", "dependencies": [{"goal_id": "t1.2", "depends_on": ["t1.1"]}]}"#;
const GOAL: &str = "Build user authentication";

/// A model that breaks `t1` down once, and finds everything else small enough.
const ONCE: [(&str, &str); 3] =
    [("atomicity/t1", COMPOSITE), ("decompose/t1", CHILDREN), ("dependencies/t1", EDGES)];

#[test]
fn a_goal_is_judged_broken_down_and_linked() {
    let mut desk = Desk::of_goal(GOAL);
    let mut session = session(Bounds::default());
    let trace = drive(&mut session, &mut desk, &mut script(&ONCE, ATOMIC));
    assert_eq!(
        trace.slots,
        ["atomicity/t1", "decompose/t1", "dependencies/t1", "atomicity/t1.1", "atomicity/t1.2"]
    );
    assert_eq!(desk.shape(), "t1 t1.1 t1.2(t1.1)");
    assert_eq!(desk.refinement("t1"), Some(Refinement::Decomposed));
    assert_eq!(desk.reasoning("t1"), "Two parts.\nData first.", "both reasons are kept");
    assert_eq!(
        (desk.refinement("t1.1"), desk.reasoning("t1.1").as_str()),
        (Some(Refinement::Atomic), "One file.")
    );
    assert_eq!(desk.task("t1.1").spec.notes, "PostgreSQL");
    assert!(trace.meanings.iter().all(|meaning| *meaning == AnswerKind::Taken));
    let progress = session.progress(&desk.plan);
    assert_eq!((progress.goals, progress.decomposed, progress.atomic, progress.open), (3, 1, 2, 0));
    assert!(progress.stopped.is_empty());
}

#[test]
fn every_question_is_charged_to_its_goal_and_no_command_carries_tokens() {
    let mut desk = Desk::of_goal(GOAL);
    let trace = drive(&mut session(Bounds::default()), &mut desk, &mut script(&ONCE, ATOMIC));
    assert!(trace.asks.iter().all(|ask| ask.task.is_some()));
    assert_eq!(desk.plan.state().tokens_used, 0);
}

#[test]
fn the_prompt_has_the_parents_intent_the_ancestors_and_the_digests_of_siblings() {
    let mut draft = plan_of([
        TaskSpec::new(id("root"), "Build a shop"),
        TaskSpec { parent: Some(id("root")), ..TaskSpec::new(id("pay"), "Take payments") },
        TaskSpec { parent: Some(id("pay")), ..TaskSpec::new(id("api"), "Choose a provider") },
        TaskSpec { parent: Some(id("pay")), ..task("form", &["api"]) },
    ]);
    draft.spec.goal = "Sell tea online".into();
    let mut desk = Desk::with(draft);
    desk.does(&Command::FinishTask {
        task: id("api"),
        attempt: None,
        outcome: Outcome::Done { result: Some("chosen".into()), output: None, evidence: None },
        retry: None,
    });
    let digest = waypost_core::Digest {
        summary: "The provider is Adyen".into(),
        key_decisions: vec!["cards only".into()],
        artifacts: vec!["docs/pay.md".into()],
        compression_ratio: None,
        fidelity_score: None,
    };
    desk.does(&Command::AttachDigest { task: id("api"), digest, tokens: 0 });
    let session = session(Bounds::default());
    let asks = session.next(&desk.plan);
    assert_eq!(asks.len(), 1);
    let prompt = said(&asks[0]);
    assert_eq!(asks[0].slot, "atomicity/form");
    for text in [
        "- Sell tea online\n  - Build a shop\n    - Take payments",
        "The provider is Adyen",
        "cards only",
        "docs/pay.md",
    ] {
        assert!(prompt.contains(text), "{text} is not in {prompt}");
    }
}

#[test]
fn independent_goals_are_asked_about_at_once_and_dependent_ones_later() {
    let draft =
        plan_of([task("a", &[]), task("b", &[]), task("c", &["a"]), task("d", &["c"]), task("e", &[])]);
    let desk = Desk::with(draft);
    let slots = |parallel_max| -> Vec<String> {
        let session = session(Bounds { parallel_max, ..Bounds::default() });
        session.next(&desk.plan).into_iter().map(|ask| ask.slot).collect()
    };
    assert_eq!(slots(10), ["atomicity/a", "atomicity/b", "atomicity/e"]);
    assert_eq!(slots(2), ["atomicity/a", "atomicity/b"]);
}

#[test]
fn answers_may_come_in_any_order() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    let mut session = session(Bounds::default());
    let asks = session.next(&desk.plan);
    for ask in asks.iter().rev() {
        for command in session.interpret(&desk.plan, ask, &answer(ATOMIC)).commands {
            desk.does(&command);
        }
    }
    assert!(session.is_over(&desk.plan));
    // The same answer again is of no use.
    assert_eq!(session.interpret(&desk.plan, &asks[0], &answer(ATOMIC)).kind, AnswerKind::Stale);
}

#[test]
fn only_the_goal_that_was_named_is_broken_down() {
    let mut draft = plan_of([task("a", &[]), task("b", &[]), task("c", &[])]);
    draft.tasks[2].spec.parent = Some(id("b"));
    let desk = Desk::with(draft);
    let session = Decompose::new(PromptPolicy::default(), Bounds::default(), Refining::Rest, Some(id("b")));
    let slots: Vec<String> = session.next(&desk.plan).into_iter().map(|ask| ask.slot).collect();
    assert_eq!(slots, ["atomicity/c"]);
}

#[test]
fn machine_work_and_what_has_begun_is_not_thought_about() {
    let mut draft =
        plan_of([task("machine", &[]), task("passed", &[]), task("done", &[]), task("open", &[])]);
    let inputs = waypost_core::Json::empty_object();
    draft.tasks[0].spec.work =
        Some(Box::new(waypost_core::Work { executor: "shell".into(), inputs, shape: None }));
    draft.tasks[1].spec.skip = true;
    draft.tasks[2].state.status = waypost_core::Status::Done;
    let desk = Desk::with(draft);
    let slots: Vec<String> =
        session(Bounds::default()).next(&desk.plan).into_iter().map(|ask| ask.slot).collect();
    assert_eq!(slots, ["atomicity/open"]);
}

#[test]
fn wrong_dependencies_are_returned_with_the_reason_and_the_cycles_path() {
    let bad = r#"{"reasoning": "r", "dependencies": [
        {"goal_id": "t1.1", "depends_on": ["t1.2", "t1.1"]}, {"goal_id": "t1.2", "depends_on": ["t1.9"]}, {"goal_id": "t1", "depends_on": []}]}"#;
    let ring = r#"{"reasoning": "r", "dependencies": [
        {"goal_id": "t1.1", "depends_on": ["t1.2"]}, {"goal_id": "t1.2", "depends_on": ["t1.1"]}]}"#;
    let mut lines = ONCE.to_vec();
    lines[2] = ("dependencies/t1", bad);
    lines.extend([("dependencies/t1/2", ring), ("dependencies/t1/3", EDGES)]);
    let mut desk = Desk::of_goal(GOAL);
    let trace = drive(&mut session(Bounds::default()), &mut desk, &mut script(&lines, ATOMIC));
    let told = said(trace.ask("dependencies/t1/2"));
    for text in [
        "t1.1 depends on itself",
        "no goal of the list has the id t1.9",
        "(the ids are t1.1, t1.2)",
        "has the id t1 (the ids",
    ] {
        assert!(told.contains(text), "{text} is not in {told}");
    }
    let told = said(trace.ask("dependencies/t1/3"));
    assert!(told.contains("t1.1 → t1.2 → t1.1"), "{told}");
    assert_eq!(desk.shape(), "t1 t1.1 t1.2(t1.1)");
}

#[test]
fn without_sound_dependencies_children_follow_one_another_and_that_is_said() {
    let mut lines = ONCE.to_vec();
    lines.pop();
    let nonsense =
        r#"{"reasoning": "r", "is_atomic": true, "dependencies": [{"goal_id": "x", "depends_on": ["y"]}]}"#;
    let mut desk = Desk::of_goal(GOAL);
    let trace = drive(&mut session(Bounds::default()), &mut desk, &mut script(&lines, nonsense));
    assert_eq!(desk.shape(), "t1 t1.1 t1.2(t1.1)");
    assert_eq!(trace.repairs, [Repair::InOrder]);
    assert!(trace.meanings.iter().any(|meaning| matches!(meaning, AnswerKind::Without { .. })));
    assert!(desk.reasoning("t1").contains("gave no sound dependencies"), "{}", desk.reasoning("t1"));
}

#[test]
fn children_that_restate_goals_or_each_other_are_refused() {
    let mut desk = Desk::of_goal(GOAL);
    let inner = r#"{"reasoning": "r", "sub_goals": [{"description": "build user AUTHENTICATION."},
        {"description": "Write the login endpoint!"}, "Hash the passwords", {"description": "Hash passwords with the hash"}, {"description": "hash passwords"},
        {"description": "Create the user table"}]}"#;
    let good = r#"{"reasoning": "r", "sub_goals": ["Hash the passwords", "Check the passwords"]}"#;
    let none = r#"{"reasoning": "r", "dependencies": []}"#;
    let mut lines = ONCE.to_vec();
    lines.extend([
        ("atomicity/t1.1", COMPOSITE),
        ("decompose/t1.1", inner),
        ("decompose/t1.1/2", good),
        ("dependencies/t1.1", none),
    ]);
    let trace = drive(&mut session(Bounds::default()), &mut desk, &mut script(&lines, ATOMIC));
    let told = said(trace.ask("decompose/t1.1/2"));
    for text in [
        "goal 1 (build user AUTHENTICATION.) restates the goal t1 above it",
        "goal 2 (Write the login endpoint!) duplicates t1.2",
        "goal 5 (hash passwords) says the same as goal 3",
        "goal 6 (Create the user table) restates the goal that is to be broken down",
    ] {
        assert!(told.contains(text), "{text} is not in {told}");
    }
    assert!(!told.contains("goal 4"), "{told}");
    assert_eq!(trace.repairs, [Repair::TextAsObject]);
    assert_eq!(desk.shape(), "t1 t1.1 t1.1.1 t1.1.2 t1.2(t1.1)");
}

#[test]
fn too_few_and_too_many_children_are_told() {
    let of = |count: usize| {
        let goals: Vec<String> = (0..count).map(|n| format!("\"Do part number {n}\"")).collect();
        format!("{{\"reasoning\": \"r\", \"sub_goals\": [{}]}}", goals.join(","))
    };
    let (one, eight, seven) = (of(1), of(8), of(7));
    let lines = [
        ("atomicity/t1", COMPOSITE),
        ("decompose/t1", one.as_str()),
        ("decompose/t1/2", eight.as_str()),
        ("decompose/t1/3", seven.as_str()),
        ("dependencies/t1", r#"{"dependencies": []}"#),
    ];
    let mut desk = Desk::of_goal(GOAL);
    let trace = drive(&mut session(Bounds::default()), &mut desk, &mut script(&lines, ATOMIC));
    assert!(
        said(trace.ask("decompose/t1/2")).contains("there is only 1 goal, too few: give between 2 and 7")
    );
    assert!(said(trace.ask("decompose/t1/3")).contains("there are 8 goals, too many: give between 2 and 7"));
    assert_eq!(desk.plan.len(), 8);
}

#[test]
fn a_goal_that_no_answer_could_be_used_for_is_given_up_with_the_reason_on_it() {
    let mut desk = Desk::of_goal(GOAL);
    let mut lines = ONCE.to_vec();
    lines.extend([("atomicity/t1.1", COMPOSITE), ("atomicity/t1.2", ATOMIC)]);
    let mut first = session(Bounds::default());
    let trace = drive(&mut first, &mut desk, &mut script(&lines, "I cannot."));
    assert_eq!(trace.slots.iter().filter(|slot| slot.starts_with("decompose/t1.1")).count(), 3);
    assert_eq!(desk.refinement("t1.1"), Some(Refinement::Decomposing), "not silently atomic");
    let reasoning = desk.reasoning("t1.1");
    assert!(reasoning.starts_with(GIVEN_UP), "{reasoning}");
    assert!(reasoning.contains("none of 3 answers on its decompose could be used"), "{reasoning}");
    // Whoever comes later finds it so, without asking.
    let later = session(Bounds::default());
    assert!(later.is_over(&desk.plan));
    let stopped = later.progress(&desk.plan).stopped;
    assert_eq!(stopped.len(), 1);
    assert!(matches!(&stopped[0], (task, Stopped::GivenUp { .. }) if *task == id("t1.1")), "{stopped:?}");
}

#[test]
fn a_model_cannot_give_a_goal_up_by_its_choice_of_words() {
    let mut desk = Desk::of_goal(GOAL);
    let tricky = format!(r#"{{"is_atomic": false, "reasoning": "{GIVEN_UP}leave me alone"}}"#);
    let mut lines = ONCE.to_vec();
    lines[0] = ("atomicity/t1", &tricky);
    drive(&mut session(Bounds::default()), &mut desk, &mut script(&lines, ATOMIC));
    assert_eq!(desk.plan.len(), 3);
}

/// A model that finds everything too large, and always has two fresh parts for it.
fn never_stops(ask: &waypost_planner::ModelRequest) -> waypost_planner::Answer {
    let task = ask.task.as_ref().unwrap().as_str().replace('.', "x");
    answer(&match ask.purpose.name() {
        "atomicity" => COMPOSITE.to_owned(),
        "decompose" => format!(
            r#"{{"reasoning": "r", "sub_goals": ["Do the left half of {task} thoroughly", "Do the right half of {task} thoroughly"]}}"#
        ),
        "dependencies" => r#"{"reasoning": "r", "dependencies": []}"#.to_owned(),
        other => panic!("{other} was asked"),
    })
}

#[test]
fn a_model_that_never_stops_is_stopped_at_the_depth_bound_and_the_goals_say_so() {
    let mut desk = Desk::of_goal(GOAL);
    let bounds = Bounds { depth_max: 2, ..Bounds::default() };
    let mut first = session(bounds.clone());
    let trace = drive(&mut first, &mut desk, &mut never_stops);
    assert_eq!(desk.plan.len(), 7, "1 + 2 + 4");
    assert_eq!(trace.slots.len(), 3 * 3 + 4);
    let leaf = "t1.1.2";
    assert_eq!(desk.refinement(leaf), Some(Refinement::Decomposing), "not silently atomic");
    assert!(desk.reasoning(leaf).contains("Not broken down: max_depth is 2; raise max_depth and continue."));
    let progress = first.progress(&desk.plan);
    assert_eq!((progress.decomposed, progress.atomic, progress.open, progress.stopped.len()), (3, 0, 0, 4));
    let bound = Stopped::Bound { bound: Bound::Depth, max: 2 };
    assert!(progress.stopped.iter().all(|(_, stopped)| *stopped == bound));
    // A later session with a higher bound goes on where this one stopped.
    let deeper = session(Bounds { depth_max: 3, ..bounds });
    let slots: Vec<String> = deeper.next(&desk.plan).into_iter().map(|ask| ask.slot).collect();
    assert_eq!(slots[0], "decompose/t1.1.1");
}

#[test]
fn a_model_that_never_stops_is_stopped_at_the_number_of_goals() {
    let mut desk = Desk::of_goal(GOAL);
    let mut session = session(Bounds { depth_max: 50, goals_max: 20, ..Bounds::default() });
    drive(&mut session, &mut desk, &mut never_stops);
    assert_eq!(desk.plan.len(), 19, "one short of the bound, because a goal has at least two parts");
    let stopped = session.progress(&desk.plan).stopped;
    assert!(!stopped.is_empty());
    for (task, why) in stopped {
        assert_eq!(why, Stopped::Bound { bound: Bound::Goals, max: 20 });
        assert!(desk.refinement(task.as_str()) != Some(Refinement::Atomic), "{task} is not silently atomic");
    }
}

#[test]
fn a_model_that_always_says_composite_with_the_same_children_ends_in_refusals() {
    let mut desk = Desk::of_goal(GOAL);
    let mut model = |ask: &waypost_planner::ModelRequest| match ask.purpose.name() {
        "atomicity" => answer(COMPOSITE),
        "decompose" => answer(CHILDREN),
        _ => answer(r#"{"dependencies": []}"#),
    };
    let mut session = session(Bounds::default());
    let trace = drive(&mut session, &mut desk, &mut model);
    assert_eq!(desk.shape(), "t1 t1.1 t1.2");
    assert_eq!(trace.slots.len(), 3 + 2 * (1 + 3));
    assert_eq!(session.progress(&desk.plan).stopped.len(), 2);
}

#[test]
fn a_new_session_goes_on_from_the_plan_and_the_answers_alone() {
    // Whoever drives it keeps answers by their slots; here the process dies after each single answer.
    let mut kept: Vec<(String, String)> = Vec::new();
    let mut desk = Desk::of_goal(GOAL);
    let mut paid = 0;
    for _ in 0..100 {
        let mut session = session(Bounds { depth_max: 3, goals_max: 30, ..Bounds::default() });
        let mut new = 0;
        while let Some(ask) = session.next(&desk.plan).first().cloned() {
            let found = kept.iter().find(|(slot, _)| *slot == ask.slot).map(|(_, text)| text.clone());
            let text = found.unwrap_or_else(|| {
                (new, paid) = (new + 1, paid + 1);
                never_stops(&ask).text
            });
            kept.push((ask.slot.clone(), text.clone()));
            if new > 1 {
                break;
            }
            for command in session.interpret(&desk.plan, &ask, &answer(&text)).commands {
                desk.does(&command);
            }
        }
    }
    let mut straight = Desk::of_goal(GOAL);
    let mut one = session(Bounds { depth_max: 3, goals_max: 30, ..Bounds::default() });
    let trace = drive(&mut one, &mut straight, &mut never_stops);
    assert_eq!(desk.shape(), straight.shape());
    assert_eq!(paid, trace.slots.len(), "nothing is asked twice");
}

#[test]
fn a_goal_whose_commands_the_plan_refuses_is_left_and_not_asked_about_again() {
    let desk = Desk::of_goal(GOAL);
    let mut session = session(Bounds::default());
    session.refused(&id("t1"), "somebody works on it");
    assert!(session.is_over(&desk.plan));
    assert!(session.progress(&desk.plan).stopped[0].1.to_string().contains("somebody works on it"));
}

#[test]
fn slashes_in_ids_do_not_mix_slots_up() {
    let desk = Desk::with(plan_of([task("a", &[]), task("a/2", &[]), task("a%2F2", &[])]));
    let slots: Vec<String> =
        session(Bounds::default()).next(&desk.plan).into_iter().map(|ask| ask.slot).collect();
    assert_eq!(slots, ["atomicity/a", "atomicity/a%2F2", "atomicity/a%252F2"]);
}

#[test]
fn ids_that_would_be_too_long_give_way_to_short_ones() {
    let long = "x".repeat(waypost_core::limits::TASK_ID_BYTES_MAX);
    let mut desk = Desk::with(plan_of([TaskSpec::new(id(&long), GOAL)]));
    let mut model = |ask: &waypost_planner::ModelRequest| match ask.purpose.name() {
        "atomicity" if ask.task == Some(id(&long)) => answer(COMPOSITE),
        "atomicity" => answer(ATOMIC),
        "decompose" => answer(CHILDREN),
        _ => answer(r#"{"dependencies": []}"#),
    };
    drive(&mut session(Bounds::default()), &mut desk, &mut model);
    assert_eq!(desk.shape(), format!("{long} g1 g2"));
}

#[test]
fn a_huge_plan_makes_no_huge_prompt() {
    let mut tasks: Vec<TaskSpec> =
        (0..2_000).map(|n| TaskSpec::new(id(&format!("s{n}")), "long words ".repeat(200))).collect();
    tasks.insert(0, TaskSpec::new(id("first"), GOAL));
    let desk = Desk::with(plan_of(tasks));
    let asks = session(Bounds { parallel_max: 1, ..Bounds::default() }).next(&desk.plan);
    let prompt = said(&asks[0]);
    assert!(prompt.contains("and 1960 more"), "{}", prompt.len());
    assert!(prompt.len() < 40_000, "{}", prompt.len());
}
