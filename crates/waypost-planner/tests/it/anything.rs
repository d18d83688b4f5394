//! Whatever a model answers, a session ends within its bounds, and the plan takes every command that it gives.

use waypost_core::{Refinement, TaskSpec, validate};
use waypost_planner::{
    Answer, Bounds, Decompose, Ended, Generate, Generated, ModelRequest, PlanBrief, PromptPolicy, Refining,
    Stopped,
};
use waypost_testkit::{SeededRng, id, plan_of, task};

use crate::kit::{Desk, answer, drive, take};

const WORDS: [&str; 12] =
    ["Build", "the", "login", "user", "table", "tests", "Refactor", "auth", "2", "API", "für", "日本"];

fn words(dice: &mut SeededRng) -> String {
    let count = dice.below(6);
    (0..count).map(|_| *dice.pick(&WORDS)).collect::<Vec<_>>().join(" ")
}

/// An id that may be there or not.
fn name(dice: &mut SeededRng, ask: &ModelRequest) -> String {
    let own = ask.task.as_ref().map(ToString::to_string).unwrap_or_default();
    match dice.below(6) {
        0 => own,
        1 => "t1".to_owned(),
        2 => "nobody".to_owned(),
        3 => dice.below(4).to_string(),
        _ => format!("{own}.{}", 1 + dice.below(4)),
    }
}

fn list(dice: &mut SeededRng, max: usize, mut item: impl FnMut(&mut SeededRng) -> String) -> String {
    let count = dice.below(max + 1);
    let items: Vec<String> = (0..count).map(|_| item(dice)).collect();
    format!("[{}]", items.join(", "))
}

/// Something of the form that is asked for, right or wrong.
fn form(dice: &mut SeededRng, ask: &ModelRequest) -> String {
    let texts = |dice: &mut SeededRng| list(dice, 3, |dice| format!("{:?}", name(dice, ask)));
    match ask.purpose.name() {
        "atomicity" => format!(r#"{{"reasoning": {:?}, "is_atomic": {}}}"#, words(dice), dice.chance(40)),
        "decompose" => {
            let goals =
                list(dice, 8, |dice| format!(r#"{{"description": {:?}, "complexity": "low"}}"#, words(dice)));
            format!(r#"{{"reasoning": "r", "sub_goals": {goals}}}"#)
        }
        "dependencies" => {
            let edges = list(dice, 4, |dice| {
                format!(r#"{{"goal_id": {:?}, "depends_on": {}}}"#, name(dice, ask), texts(dice))
            });
            format!(r#"{{"reasoning": "r", "dependencies": {edges}}}"#)
        }
        "refine" => {
            let revise = list(dice, 2, |dice| {
                format!(r#"{{"id": {:?}, "description": {:?}}}"#, name(dice, ask), words(dice))
            });
            let add = list(dice, 2, |dice| {
                format!(r#"{{"description": {:?}, "depends_on": {}}}"#, words(dice), texts(dice))
            });
            format!(r#"{{"reasoning": "r", "revise": {revise}, "drop": {}, "add": {add}}}"#, texts(dice))
        }
        _ => {
            let mut number = 0;
            let tasks = list(dice, 6, |dice| {
                number = if dice.chance(95) { number + 1 } else { dice.below(5) };
                let on =
                    if dice.chance(50) { String::new() } else { format!("\"t{}\"", dice.below(number + 1)) };
                let words = format!("{} {}", words(dice), words(dice));
                format!(r#"{{"id": "t{number}", "description": {words:?}, "depends_on": [{on}]}}"#)
            });
            format!(r#"{{"goal": "g", "tasks": {tasks}}}"#)
        }
    }
}

/// An answer: mostly of the right form, sometimes of another, cut, wrapped, or nonsense.
fn anything(dice: &mut SeededRng, ask: &ModelRequest) -> Answer {
    let mut text = form(dice, ask);
    match dice.below(12) {
        0 => text = format!("Sure:\n```json\n{text}\n```"),
        1 => {
            let end = text.char_indices().map(|(at, _)| at).nth(dice.below(60)).unwrap_or(text.len());
            text.truncate(end);
        }
        2 => text = (*dice.pick(&["", "no", "{}", "[]", "null", "{\"sub_goals\": 5}", "} {"])).to_owned(),
        3 => text = text.replace('"', "'"),
        _ => {}
    }
    let mut answer = answer(&text);
    if dice.chance(3) {
        answer.ended = *dice.pick(&[Ended::Cut, Ended::Refused]);
    }
    answer
}

fn start(dice: &mut SeededRng) -> Desk {
    let mut tasks =
        vec![TaskSpec::new(id("t1"), "Build the user login"), task("t2", &["t1"]), task("t3", &["t1"])];
    tasks[2].description = words(dice);
    tasks.truncate(1 + dice.below(3));
    let mut draft = plan_of(tasks);
    draft.spec.goal = words(dice);
    Desk::with(draft)
}

fn any_session(dice: &mut SeededRng) -> (Decompose, Bounds) {
    let bounds = Bounds {
        depth_max: dice.below(4),
        children_min: dice.below(4),
        children_max: dice.below(9),
        goals_max: dice.below(60),
        parallel_max: dice.below(5),
    };
    let refining = *dice.pick(&[Refining::Rest, Refining::Nothing]);
    (Decompose::new(PromptPolicy::default(), bounds.clone(), refining, None), bounds)
}

/// What is true of every plan that was thought through.
fn is_sound(desk: &Desk, session: &Decompose, bounds: &Bounds, first: usize, seed: u64) {
    assert!(desk.plan.len() <= bounds.goals_max.max(first), "seed {seed}: {}", desk.shape());
    let stopped = session.progress(&desk.plan).stopped;
    for (task, depth) in desk.plan.tasks() {
        let name = task.spec.id.as_str();
        assert!(depth <= bounds.depth_max, "seed {seed}: {name} stands at {depth}");
        if !desk.plan.children(name).is_empty() {
            continue;
        }
        // Every leaf is small enough, or says why it was left.
        match stopped.iter().find(|(id, _)| id.as_str() == name) {
            Some((_, Stopped::Bound { .. })) => {
                assert_eq!(desk.refinement(name), Some(Refinement::Decomposing), "seed {seed}: {name}");
            }
            Some((_, Stopped::GivenUp { .. })) => {
                assert!(desk.reasoning(name).starts_with("Given up: "), "seed {seed}: {name}");
            }
            None => assert_eq!(desk.refinement(name), Some(Refinement::Atomic), "seed {seed}: {name}"),
        }
    }
}

#[test]
fn any_answers_lead_to_a_bounded_end_and_the_plan_takes_every_command() {
    for seed in 0..1_500 {
        let mut dice = SeededRng::new(seed);
        let mut desk = start(&mut dice);
        let first = desk.plan.len();
        let (mut session, bounds) = any_session(&mut dice);
        drive(&mut session, &mut desk, &mut |ask| anything(&mut dice, ask));
        is_sound(&desk, &session, &bounds, first, seed);
    }
}

#[test]
fn the_same_holds_when_answers_cross_and_sessions_begin_anew() {
    for seed in 0..700 {
        let mut dice = SeededRng::new(seed);
        let mut desk = start(&mut dice);
        let first = desk.plan.len();
        let (mut session, bounds) = any_session(&mut dice);
        let fresh = session.clone();
        let mut kept: Vec<(String, Answer)> = Vec::new();
        let mut under_way: Vec<ModelRequest> = Vec::new();
        let mut trace = crate::kit::Trace::default();
        for round in 0.. {
            assert!(round < 20_000, "seed {seed} does not end");
            if dice.chance(2) {
                // The process dies: what it knew is gone, what was answered is kept.
                (session, under_way) = (fresh.clone(), Vec::new());
            }
            for ask in session.next(&desk.plan) {
                if !under_way.iter().any(|one| one.slot == ask.slot) {
                    under_way.push(ask);
                }
            }
            if under_way.is_empty() {
                break;
            }
            let ask = under_way.remove(dice.below(under_way.len()));
            let known = kept.iter().find(|(slot, _)| *slot == ask.slot).map(|(_, answer)| answer.clone());
            let answer = known.unwrap_or_else(|| {
                let answer = anything(&mut dice, &ask);
                kept.push((ask.slot.clone(), answer.clone()));
                answer
            });
            let heard = session.interpret(&desk.plan, &ask, &answer);
            take(&mut trace, &mut desk, ask, heard);
        }
        is_sound(&desk, &session, &bounds, first, seed);
    }
}

#[test]
fn any_answers_lead_to_a_sound_plan_or_to_a_refusal_with_all_of_them() {
    let (mut plans, mut refusals) = (0, 0);
    for seed in 0..3_000 {
        let mut dice = SeededRng::new(seed);
        let mut conversation =
            Generate::new(PromptPolicy::default(), PlanBrief::new("Build the login"), "generate").unwrap();
        let mut asked = 0;
        while let Some(ask) = conversation.next().cloned() {
            asked += 1;
            assert!(asked <= 3, "seed {seed}");
            match conversation.interpret(&anything(&mut dice, &ask)) {
                Generated::Plan(planned) => {
                    plans += 1;
                    assert_eq!(validate(&planned.draft), [], "seed {seed}");
                    assert!(planned.draft.tasks.len() >= 2, "seed {seed}");
                    Desk::with(planned.draft);
                }
                Generated::Again { problems } => assert!(!problems.is_empty(), "seed {seed}"),
                Generated::GaveUp(gave_up) => {
                    refusals += 1;
                    assert_eq!(gave_up.answers.len(), 3, "seed {seed}");
                    assert!(!gave_up.problems.is_empty(), "seed {seed}");
                }
            }
        }
    }
    assert!(plans > 20 && refusals > 20, "{plans} plans, {refusals} refusals: both are worth a test");
}
