//! What clido and frctl were seen to do with answers: never worse than that. Read in place, when it is there.

use std::path::Path;

use serde_json::Value;
use waypost_core::Refinement;
use waypost_planner::prose_plan::steps_of_text;
use waypost_planner::{AnswerKind, Bounds, Generate, Generated, PlanBrief, PromptPolicy, Repair};
use waypost_testkit::observed_data;

use crate::kit::{Desk, answer, script, session, take};

fn cases(root: &Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(root.join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn with_data(check: impl FnOnce(&Path)) {
    match observed_data() {
        Some(root) => check(&root),
        None => eprintln!("no observed data beside this checkout: nothing was compared"),
    }
}

#[test]
fn every_step_that_clido_found_in_a_text_is_found() {
    with_data(|root| {
        for case in cases(root, "clido/text-plan-cases.jsonl") {
            let text = case["text"].as_str().unwrap();
            let ours: Vec<String> = steps_of_text(text)
                .map(|(steps, _)| steps)
                .unwrap_or_default()
                .into_iter()
                .map(|step| step.description)
                .collect();
            let theirs: Vec<&str> = case["steps"]
                .as_array()
                .unwrap()
                .iter()
                .map(|step| step.as_str().unwrap().trim_end_matches('*'))
                .collect();
            let mut left = ours.iter();
            for step in theirs {
                assert!(left.any(|own| own == step), "{step} is not in {ours:?} of {text:?}");
            }
        }
    });
}

#[test]
fn every_answer_that_clido_took_for_a_plan_is_taken_or_explained() {
    with_data(|root| {
        for case in cases(root, "clido/parse-cases.jsonl") {
            let Some(text) = case["input"].as_str() else { continue };
            let mut conversation =
                Generate::new(PromptPolicy::default(), PlanBrief::new("the goal"), "generate").unwrap();
            let heard = conversation.interpret(&answer(text));
            let found = case["expected"]["plan"]["tasks"].as_array().map_or(0, Vec::len);
            // One task or none is a plan to clido; here it is told to the model.
            let distinct = |tasks: &Value| {
                let tasks = tasks.as_array().unwrap();
                let mut words: Vec<&str> =
                    tasks.iter().map(|task| task["description"].as_str().unwrap()).collect();
                words.sort_unstable();
                words.dedup();
                words.len() == tasks.len() && words.iter().all(|text| !text.is_empty())
            };
            let sound = found > 1 && found <= 20 && distinct(&case["expected"]["plan"]["tasks"]);
            match heard {
                Generated::Plan(planned) => assert!(planned.draft.tasks.len() >= found, "{case}"),
                Generated::Again { problems } => {
                    assert!(!problems.is_empty());
                    assert!(!sound, "{case}: {problems:?}");
                }
                Generated::GaveUp(gave_up) => panic!("{gave_up:?}"),
            }
        }
    });
}

#[test]
fn atomicity_is_read_as_frctl_did_or_better() {
    with_data(|root| {
        for case in cases(root, "frctl/atomicity-response-cases.jsonl") {
            let name = case["name"].as_str().unwrap();
            let mut desk = Desk::of_goal("Some goal description");
            let mut session = session(Bounds::default());
            let ask = session.next(&desk.plan)[0].clone();
            let heard = session.interpret(&desk.plan, &ask, &answer(case["response"].as_str().unwrap()));
            let meaning = heard.kind.clone();
            take(&mut crate::kit::Trace::default(), &mut desk, ask, heard);
            let expected = match name {
                // frctl takes the text "false" for true, and nothing at all for an answer.
                "string false" => Some(Refinement::Decomposing),
                "empty" => None,
                _ if case["expected"]["truthy"] == true => Some(Refinement::Atomic),
                _ => Some(Refinement::Decomposing),
            };
            assert_eq!(desk.refinement("t1"), expected, "{name}");
            assert_eq!(matches!(meaning, AnswerKind::Again { .. }), name == "empty", "{name}");
            if name == "prose with braces after" || name == "plain true" {
                assert_eq!(desk.reasoning("t1"), "r", "{name}");
            }
        }
    });
}

#[test]
fn children_are_read_as_frctl_did_or_better() {
    with_data(|root| {
        for case in cases(root, "frctl/decompose-response-cases.jsonl") {
            let name = case["name"].as_str().unwrap();
            let mut desk = Desk::of_goal("Some goal description");
            let response = case["response"].as_str().unwrap();
            let lines = [
                ("atomicity/t1", r#"{"is_atomic": false, "reasoning": "r"}"#),
                ("decompose/t1", response),
                ("dependencies/t1", r#"{"dependencies": []}"#),
            ];
            let mut session = session(Bounds::default());
            let mut trace = crate::kit::Trace::default();
            let mut model = script(&lines, "");
            for _ in 0..3 {
                let ask = session.next(&desk.plan)[0].clone();
                let given = model(&ask);
                let heard = session.interpret(&desk.plan, &ask, &given);
                take(&mut trace, &mut desk, ask, heard);
            }
            let children: Vec<&str> =
                desk.plan.children("t1").iter().map(|task| task.spec.description.as_str()).collect();
            match name {
                "plain" => assert_eq!(children, ["A", "B"]),
                // frctl fails the goal for texts where objects were asked for.
                "strings not objects" => {
                    assert_eq!(children, ["A", "B"]);
                    assert!(trace.repairs.contains(&Repair::TextAsObject));
                }
                // It drops two of nine silently, and invents children for garbage. The model is told instead.
                "nine goals truncated to 7" | "garbage" | "sub_goals null" => {
                    assert!(
                        matches!(trace.meanings[1], AnswerKind::Again { .. }),
                        "{name}: {:?}",
                        trace.meanings
                    );
                    assert_eq!(children, [""; 0], "{name}");
                }
                other => panic!("{other} is new: say what is right for it"),
            }
        }
    });
}
