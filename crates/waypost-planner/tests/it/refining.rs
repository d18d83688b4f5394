use waypost_core::TaskSpec;
use waypost_planner::{AnswerKind, Bounds, Decompose, PromptPolicy, Refining};
use waypost_testkit::{id, plan_of, task};

use crate::kit::{Desk, Trace, answer, drive, said, script};

const ATOMIC: &str = r#"{"reasoning": "r", "is_atomic": true}"#;

fn session() -> Decompose {
    Decompose::new(PromptPolicy::default(), Bounds::default(), Refining::Rest, None)
}

/// A goal with four parts: `b` and `c` wait for `a`, `d` for `b`.
fn desk() -> Desk {
    let part = |name: &str, on: &[&str]| TaskSpec { parent: Some(id("p")), ..task(name, on) };
    let mut draft = plan_of([
        TaskSpec::new(id("p"), "Build a shop"),
        part("a", &[]),
        part("b", &["a"]),
        part("c", &["a"]),
        part("d", &["b"]),
    ]);
    draft.spec.goal = "Sell tea".into();
    Desk::with(draft)
}

fn run(desk: &mut Desk, lines: &[(&str, &str)]) -> Trace {
    let nothing = r#"{"reasoning": "r", "revise": [], "drop": [], "add": []}"#;
    let mut given = script(lines, "");
    drive(&mut session(), desk, &mut |ask| {
        let found = given(ask);
        match ask.purpose.name() {
            _ if !found.text.is_empty() => found,
            "refine" => answer(nothing),
            _ => answer(ATOMIC),
        }
    })
}

#[test]
fn before_a_goal_that_waited_is_looked_at_the_rest_is() {
    let mut desk = desk();
    let trace = run(&mut desk, &[]);
    assert_eq!(
        trace.slots,
        ["atomicity/a", "refine/b", "atomicity/b", "refine/c", "atomicity/c", "refine/d", "atomicity/d"]
    );
    let told = said(trace.ask("refine/b"));
    let (settled, rest) = told.split_once("The rest, which nobody has begun").unwrap();
    assert!(settled.contains("- a: do a") && settled.contains("- c: do c"), "{told}");
    assert!(
        rest.contains("- b: do b") && rest.contains("- d: do d") && !rest.contains("- a: do a"),
        "{told}"
    );
    assert!(told.contains("at most\n  3 goals"), "{told}");
}

#[test]
fn the_rest_is_revised_dropped_and_added_to() {
    let mut desk = desk();
    let change = r#"{"reasoning": "r", "revise": [{"id": "d", "description": "Do d with Adyen"}], "drop": ["b", "gone"],
        "add": [{"description": "Ask the bank", "depends_on": ["a", "c"]}]}"#;
    let trace = run(&mut desk, &[("refine/b", change)]);
    // What waited for the dropped one waits for what that waited for.
    assert_eq!(desk.shape(), "p a c(a) d(a) b-1(a,c)");
    assert_eq!(desk.task("d").spec.description, "Do d with Adyen");
    assert!(trace.slots.contains(&"atomicity/b-1".to_owned()), "{:?}", trace.slots);
}

#[test]
fn the_same_answer_twice_changes_nothing_more() {
    let change = r#"{"reasoning": "r", "revise": [{"id": "d", "description": "Do d with Adyen"}], "drop": [],
        "add": [{"description": "Ask the bank", "depends_on": ["a"]}]}"#;
    let mut desk = desk();
    let mut first = session();
    for text in [ATOMIC, change] {
        let ask = first.next(&desk.plan)[0].clone();
        for command in first.interpret(&desk.plan, &ask, &answer(text)).commands {
            desk.does(&command);
        }
    }
    let (shape, version) = (desk.shape(), desk.plan.version());
    // The process dies, and another hears the kept answer again.
    let mut second = session();
    let ask = second.next(&desk.plan)[0].clone();
    assert_eq!(ask.slot, "refine/b");
    let heard = second.interpret(&desk.plan, &ask, &answer(change));
    assert_eq!(heard.kind, AnswerKind::Taken);
    for command in &heard.commands {
        desk.does(command);
    }
    assert_eq!((desk.shape(), desk.plan.version()), (shape, version));
}

#[test]
fn what_is_settled_unknown_or_too_much_is_refused_with_the_reason() {
    let bad = r#"{"reasoning": "r", "drop": ["a"], "revise": [{"id": "c", "description": "x"}, {"id": "zz", "description": "x"}, {"id": "b", "description": "Build the shop!"}],
        "add": [{"description": "One more"}, {"description": "Two more", "depends_on": ["q"]}, {"description": "Three more"}, {"description": "Four more"}]}"#;
    let mut desk = desk();
    let trace = run(&mut desk, &[("refine/b", bad)]);
    let told = said(trace.ask("refine/b/2"));
    for text in [
        "goal a is settled and cannot be dropped",
        "goal c is settled and cannot be revised",
        "the id zz, which none of the rest has",
        "goal b restates the goal",
        "depends on q, which is not there",
        "4 goals are added, over the limit of 3",
    ] {
        assert!(told.contains(text), "{text} is not in {told}");
    }
    assert_eq!(desk.shape(), "p a b(a) c(a) d(b)");
}

#[test]
fn without_an_answer_the_rest_stays_as_it_was() {
    let lines = [("refine/b", "no"), ("refine/b/2", "no"), ("refine/b/3", "no")];
    let mut desk = desk();
    let trace = run(&mut desk, &lines);
    assert!(trace.meanings.iter().any(|meaning| matches!(meaning, AnswerKind::Without { .. })));
    assert_eq!(desk.shape(), "p a b(a) c(a) d(b)");
    assert!(trace.slots.contains(&"atomicity/b".to_owned()));
}

#[test]
fn a_model_that_adds_and_drops_for_ever_ends_at_the_number_of_children() {
    let mut desk = desk();
    let mut count = 0;
    let mut model = |ask: &waypost_planner::ModelRequest| match ask.purpose.name() {
        "refine" => {
            count += 1;
            let me = ask.task.as_ref().unwrap();
            answer(&format!(
                r#"{{"reasoning": "r", "revise": [], "drop": ["{me}"], "add": [{{"description": "Fresh idea number {count}", "depends_on": ["a"]}}]}}"#
            ))
        }
        _ => answer(ATOMIC),
    };
    let trace = drive(&mut session(), &mut desk, &mut model);
    assert!(desk.plan.children("p").len() <= 7, "{}", desk.shape());
    assert!(trace.slots.len() < 200, "{}", trace.slots.len());
}
