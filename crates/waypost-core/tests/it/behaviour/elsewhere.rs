//! What comes from other plans.

use super::*;

#[test]
fn a_task_goes_on_with_what_it_received_from_elsewhere() {
    let far = there(Some("builder"), None, "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone())]));
    assert_eq!(desk.standing("a"), Standing::Blocked);
    assert_eq!(desk.plan.waiting("a", desk.now), [Waiting::Dependencies(vec!["builder:far".into()])]);
    let not_awaited = desk.refuses(hear("a", there(None, Some("p9"), "far"), Status::Done, None));
    assert_eq!(not_awaited, Refusal::NotAwaited { task: "a".into(), dependency: "p9/far".into() });
    assert!(matches!(
        desk.refuses(hear("a", far.clone(), Status::Running, None)),
        Refusal::NotAwaited { .. }
    ));
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&42))));
    assert_eq!(desk.does(hear("a", far, Status::Done, Some(Json::of(&42)))), [], "it knows that already");
    assert_eq!(desk.standing("a"), Standing::Ready);
    assert_eq!(desk.plan.outputs_for("a"), [("builder:far".to_owned(), Json::of(&42))]);
}

#[test]
fn what_fails_elsewhere_skips_here_and_what_is_done_after_all_brings_back() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone()), task("b", &["a"]), task("c", &[])]));
    desk.does(hear("a", far.clone(), Status::Failed, None));
    assert_eq!(desk.standings(), "a:skipped b:skipped c:ready");
    assert_eq!(desk.because_of("b").as_deref(), Some("other/far"));
    desk.does(hear("a", far, Status::Done, None));
    assert_eq!(desk.standings(), "a:ready b:blocked c:ready");
}

#[test]
fn a_plan_that_was_cut_off_elsewhere_is_not_completed_and_waits_to_be_retried() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone())]));
    desk.does(hear("a", far.clone(), Status::Cancelled, None));
    assert_eq!(desk.plan.state().phase, Phase::Failed);
    desk.does(hear("a", far, Status::Done, None));
    assert_eq!(desk.plan.state().phase, Phase::Failed, "what has ended stays so until somebody opens it");
    desk.does(Command::RetryPlan);
    assert_eq!(desk.standings(), "a:ready");
}

#[test]
fn what_came_from_a_dependency_that_was_taken_away_is_forgotten() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone())]));
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&1))));
    let dependency = vec![Dependency::Elsewhere(Box::new(far))];
    desk.does(ask::revise(
        "a",
        TaskChanges { depends_no_more_on: dependency.clone(), ..TaskChanges::default() },
    ));
    assert_eq!(desk.plan.outputs_for("a"), []);
    desk.does(ask::revise("a", TaskChanges { depends_also_on: dependency, ..TaskChanges::default() }));
    assert_eq!(desk.standing("a"), Standing::Blocked);
}

#[test]
fn a_cause_elsewhere_with_a_very_long_name_is_still_a_cause() {
    let far = there(Some(&"builder".repeat(60)), None, "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone()), task("b", &["a"])]));
    desk.does(hear("a", far, Status::Failed, None));
    assert_eq!(desk.because_of("b").as_deref(), Some("far"));
}
