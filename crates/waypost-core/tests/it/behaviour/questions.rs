//! Queries on a plan.

use waypost_core::{DiffStat, Difference, Work, differences_in_full};

use super::*;

#[test]
fn outputs_come_under_the_name_that_they_are_provided_as() {
    let named = TaskSpec { provides: Some("schema".into()), ..task("a", &[]) };
    let mut desk = Desk::with(plan_of([named, task("b", &[]), task("c", &["b", "a"]), task("d", &[])]));
    desk.does(ask::finish("a", Outcome::Done { result: None, output: Some(Json::of(&"x")), evidence: None }));
    desk.does(ask::finish("b", Outcome::Done { result: None, output: Some(Json::of(&2)), evidence: None }));
    let wanted = [("b".to_owned(), Json::of(&2)), ("schema".to_owned(), Json::of(&"x"))];
    assert_eq!(desk.plan.outputs_for("c"), wanted);
    assert_eq!(desk.plan.outputs_for("d"), []);
    assert_eq!(desk.plan.outputs_for("nobody"), []);
}

#[test]
fn no_task_takes_the_name_of_another_ones_output() {
    let provides = |name: &str, as_: &str| TaskSpec { provides: Some(as_.into()), ..task(name, &[]) };
    let given = |on: &[&str], without: &[&str]| {
        let mut desk = Desk::with(plan_of([
            by_machine("build", &[]),
            provides("a", "build"),
            provides("b", "notes"),
            provides("c", "notes"),
            by_machine("go", on),
        ]));
        for done in ["build", "a", "b", "c"].iter().filter(|name| !without.contains(name)) {
            let output = Some(Json::of(&format!("of {done}")));
            desk.does(ask::finish(done, Outcome::Done { result: None, output, evidence: None }));
        }
        let outputs = desk.plan.outputs_for("go");
        outputs.into_iter().map(|(name, output)| format!("{name}={output}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(given(&["build", "a"], &[]), r#"build="of build" a="of a""#);
    assert_eq!(given(&["a", "build"], &[]), r#"a="of a" build="of build""#, "the order does not matter");
    assert_eq!(given(&["a", "build"], &["build"]), r#"a="of a""#, "nor whether there is an output yet");
    assert_eq!(given(&["c", "b"], &[]), r#"c="of c" notes="of b""#);
    assert_eq!(given(&["a"], &[]), r#"build="of a""#);
}

#[test]
fn everything_that_keeps_a_task_from_starting_is_said() {
    let draft = plan_of([task("a", &[]), task("p", &["a"]), child("x", "p", &["b"]), task("b", &[])]);
    let mut desk = Desk::made_by(&ada(), draft);
    let on = |name: &str| BlockReason::Dependencies(vec![name.to_owned()]);
    assert_eq!(desk.plan.waiting("x", desk.now), [on("b"), on("a")]);
    desk.does(Command::RequestApproval { message: "?".into() });
    assert_eq!(desk.plan.waiting("x", desk.now), [BlockReason::Approval, on("b"), on("a")]);
    desk.does(approve(&desk));
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.plan.waiting("x", desk.now), [on("b")]);
    desk.does(ask::finish("b", done()));
    assert_eq!(desk.plan.waiting("x", desk.now), []);
    assert_eq!(desk.plan.waiting("a", desk.now), [], "what has ended waits for nothing");
}

#[test]
fn who_waits_for_all_to_finish_does_not_wait_for_what_failed() {
    let mut desk = Desk::with(plan_of([
        task("a", &[]),
        task("b", &[]),
        when(DependencyRule::AllFinished, "c", &["a", "b"]),
    ]));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.plan.waiting("c", desk.now), [BlockReason::Dependencies(vec!["b".into()])]);
}

#[test]
fn a_free_id_is_one_that_no_task_has_had() {
    let mut desk = Desk::with(plan_of([task("t1", &[]), task("t7", &[]), task("t09", &[]), task("x", &[])]));
    assert_eq!(desk.plan.free_task_ids().next(), Some(id("t8")));
    desk.does(add(vec![task("t8", &[])]));
    desk.does(ask::remove("t8", false));
    assert_eq!(desk.plan.free_task_ids().next(), Some(id("t9")));
    let again = Plan::from_snapshot(desk.plan.snapshot().to_vec()).unwrap();
    assert_eq!(again.free_task_ids().next(), Some(id("t9")));
    // If the largest possible number is taken, the search continues from the beginning.
    let desk = Desk::with(plan_of([task("t18446744073709551615", &[]), task("t1", &[])]));
    assert_eq!(desk.plan.free_task_ids().next(), Some(id("t2")));
}

#[test]
fn an_id_with_the_tag_of_a_clone_has_a_number_that_no_clone_has_given() {
    let desk =
        Desk::with(plan_of([task("t2", &[]), task("t7-k7f", &[]), task("t9x-1", &[]), task("t-8", &[])]));
    let next = |tag: &str| desk.plan.free_task_ids_of(Some(tag)).next();
    assert_eq!((next("k7f"), next("x9d")), (Some(id("t8-k7f")), Some(id("t8-x9d"))));
    assert_eq!(desk.plan.free_task_ids().next(), Some(id("t8")));
}

#[test]
fn a_number_behind_a_prefix_is_not_given_again_either() {
    let mut desk = Desk::with(plan_of([task("step_1", &[]), task("step_7", &[]), task("t3", &[])]));
    desk.does(ask::remove("step_7", false));
    let next = |plan: &Plan| plan.free_numbered_ids("step_").next();
    assert_eq!(next(&desk.plan), Some(id("step_8")));
    let reloaded = Plan::from_snapshot(desk.plan.snapshot().to_vec()).unwrap();
    assert_eq!(next(&reloaded), Some(id("step_8")));
    assert_eq!(desk.plan.free_numbered_ids("other").next(), Some(id("other3")), "above the number of tasks");
    assert_eq!(desk.plan.free_task_ids().next(), Some(id("t4")));
    // A repair makes the plan from its draft.
    desk.does(ask::remove("t3", false));
    let repaired = Plan::from_trusted_draft(plan_id(), desk.plan.to_draft());
    assert_eq!(repaired.free_task_ids().next(), Some(id("t4")));
    assert_eq!(next(&repaired), Some(id("step_8")));
}

#[test]
fn a_task_is_found_by_its_name_or_an_unambiguous_beginning() {
    let desk = Desk::with(plan_of([task("build", &[]), task("build-all", &[]), task("test", &[])]));
    assert_eq!(desk.plan.resolve("te"), Ok(id("test")));
    assert_eq!(desk.plan.resolve("build"), Ok(id("build")), "the whole name wins");
    assert_eq!(desk.plan.resolve("bu"), Err(vec![id("build"), id("build-all")]));
    assert_eq!(desk.plan.resolve("x"), Err(vec![]));
}

#[test]
fn an_unknown_task_comes_with_the_nearest_name() {
    let mut desk = Desk::with(plan_of([task("build", &[])]));
    let refusal = desk.refuses(ask::start("buil"));
    assert_eq!(refusal.to_string(), "no task is called buil");
    assert_eq!(refusal.hint(), "did you mean build?");
}

#[test]
fn counts_and_dependants_are_kept() {
    let mut desk = Desk::with(fan_out(3));
    desk.does(ask::finish("root", done()));
    desk.does(ask::start("m0"));
    let counts = desk.plan.counts();
    assert_eq!((counts.total, counts.done, counts.running, counts.ready, counts.blocked), (5, 1, 1, 2, 1));
    assert_eq!(counts.finished(), 1);
    let names: Vec<&str> = desk.plan.dependants("root").iter().map(|task| task.spec.id.as_str()).collect();
    assert_eq!(names, ["m0", "m1", "m2"]);
    assert_eq!((desk.plan.len(), desk.plan.is_empty()), (5, false));
    assert_eq!(desk.plan.children("root"), Vec::<&Task>::new());
}

#[test]
fn a_tower_of_groups_has_a_standing_without_recursion() {
    let levels = waypost_core::limits::DEPTH_MAX;
    let mut desk = Desk::with(plan_of((0..=levels).map(|level| match level {
        0 => task("t0", &[]),
        level => child(&format!("t{level}"), &format!("t{}", level - 1), &[]),
    })));
    assert_eq!(desk.standing("t0"), EffectiveStatus::Ready);
    desk.does(ask::start(&format!("t{levels}")));
    assert_eq!(desk.standing("t0"), EffectiveStatus::Running);
    desk.does(ask::finish(&format!("t{levels}"), done()));
    assert_eq!(desk.standing("t0"), EffectiveStatus::Done);
}

#[test]
fn people_see_what_an_added_task_would_run() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    let before = desk.plan.to_draft();
    let work = Work { executor: "shell".into(), inputs: Json::empty_object(), shape: None };
    desk.does(add(vec![TaskSpec { work: Some(Box::new(work)), ..task("b", &["a"]) }]));
    let after = desk.plan.to_draft();
    let found = differences_in_full(&before, &after);
    let fields: Vec<&str> = found
        .iter()
        .filter_map(|one| match one {
            Difference::Task { task, field, .. } if task.as_str() == "b" => Some(*field),
            _ => None,
        })
        .collect();
    assert_eq!(fields, ["depends_on", "work"]);
    assert_eq!(DiffStat::of(&found), DiffStat::of(&differences(&before, &after)));
}

#[test]
fn what_differs_between_two_states_is_said_in_words() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    let before = desk.plan.to_draft();
    assert_eq!(differences(&before, &before), []);
    desk.does(ask::finish("a", done()));
    desk.does(add(vec![task("c", &[])]));
    let found = serde_json::to_value(differences(&before, &desk.plan.to_draft())).unwrap();
    let wanted = serde_json::json!([
        { "change": "task", "task": "a", "field": "status", "before": "pending", "after": "done" },
        { "change": "added", "task": "c", "description": "do c" },
    ]);
    assert_eq!(found, wanted);
}
