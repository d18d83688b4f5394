//! Dependencies on other plans.

use super::*;

#[test]
fn a_task_goes_on_with_what_it_received_from_elsewhere() {
    let far = there(Some("builder"), None, "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone())]));
    assert_eq!(desk.standing("a"), EffectiveStatus::Blocked);
    assert_eq!(desk.plan.waiting("a", desk.now), [BlockReason::Dependencies(vec!["builder:far".into()])]);
    let not_awaited = desk.refuses(hear("a", there(None, Some("p9"), "far"), Status::Done, None));
    assert_eq!(not_awaited, Refusal::NotAwaited { task: "a".into(), dependency: "p9/far".into() });
    assert!(matches!(
        desk.refuses(hear("a", far.clone(), Status::Running, None)),
        Refusal::NotAwaited { .. }
    ));
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&42))));
    assert_eq!(desk.does(hear("a", far, Status::Done, Some(Json::of(&42)))), [], "it knows that already");
    assert_eq!(desk.standing("a"), EffectiveStatus::Ready);
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
fn a_plan_that_was_cut_off_elsewhere_is_not_completed_and_goes_on_when_that_goes_well_after_all() {
    let far = there(None, Some("other"), "far");
    let group = [after("g", far.clone()), child("a", "g", &[]), task("b", &["g"])];
    for tasks in [vec![after("a", far.clone()), task("b", &["a"])], group.to_vec()] {
        let mut desk = Desk::with(plan_of(tasks));
        let waits = if desk.plan.task("g").is_some() { "g" } else { "a" };
        desk.does(hear(waits, far.clone(), Status::Cancelled, None));
        assert_eq!(desk.plan.state().phase, Phase::Failed);
        // The external task is to be done again, so the plan waits again.
        desk.does(withdraw(waits, &far));
        assert_eq!(desk.plan.state().phase, Phase::Active);
        assert_eq!(
            (desk.standing("a"), desk.standing("b")),
            (EffectiveStatus::Blocked, EffectiveStatus::Blocked)
        );
        desk.does(hear(waits, far.clone(), Status::Failed, None));
        assert_eq!(desk.plan.state().phase, Phase::Failed);
        desk.does(hear(waits, far.clone(), Status::Done, None));
        assert_eq!(desk.plan.state().phase, Phase::Active);
        assert_eq!(
            (desk.standing("a"), desk.standing("b")),
            (EffectiveStatus::Ready, EffectiveStatus::Blocked)
        );
    }
}

#[test]
fn a_plan_that_its_author_ended_is_not_opened_from_elsewhere_and_can_be_retried() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone())]));
    desk.does(hear("a", far.clone(), Status::Failed, None));
    desk.does(Command::FinishPlan { phase: Phase::Failed, summary: "without it there is no point".into() });
    desk.does(withdraw("a", &far));
    desk.does(hear("a", far, Status::Done, None));
    assert_eq!(desk.plan.state().phase, Phase::Failed, "its author has the last word");
    let why = desk.plan.task("a").unwrap().state.why().unwrap();
    assert_eq!(why, "other/far had not succeeded when the plan ended; it has since");
    desk.does(Command::RetryPlan);
    assert_eq!(desk.standings(), "a:ready");
    assert!(!desk.plan.state().closed);
}

#[test]
fn what_is_to_be_done_again_elsewhere_is_waited_for_again_unless_the_task_has_begun() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone()), task("b", &["a"])]));
    assert_eq!(desk.does(withdraw("a", &far)), [], "it has heard nothing yet");
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&1))));
    desk.does(withdraw("a", &far));
    assert_eq!(desk.standing("a"), EffectiveStatus::Blocked);
    assert_eq!(desk.plan.outputs_for("a"), []);
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&2))));
    assert_eq!(desk.plan.outputs_for("a"), [("other/far".to_owned(), Json::of(&2))]);
    desk.does(ask::start("a"));
    assert_eq!(desk.does(withdraw("a", &far)), [], "it works with what it was given");
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.does(withdraw("a", &far)), []);
    assert_eq!(desk.standings(), "a:done b:ready");
}

#[test]
fn steps_of_one_name_in_two_plans_of_an_agent_are_two() {
    let (first, second) = (there(Some("x"), Some("p1"), "far"), there(Some("x"), Some("p2"), "far"));
    let both = vec![first.clone(), second.clone()].into_iter().map(|on| Dependency::External(Box::new(on)));
    let mut desk = Desk::with(plan_of([TaskSpec { depends_on: both.collect(), ..task("a", &[]) }]));
    desk.does(hear("a", first, Status::Done, Some(Json::of(&1))));
    assert_eq!(desk.standing("a"), EffectiveStatus::Blocked);
    desk.does(hear("a", second, Status::Done, Some(Json::of(&2))));
    assert_eq!(desk.standing("a"), EffectiveStatus::Ready);
    assert_eq!(desk.plan.outputs_for("a").len(), 2);
}

#[test]
fn what_came_from_a_dependency_that_was_taken_away_is_forgotten() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone())]));
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&1))));
    let dependency = vec![Dependency::External(Box::new(far))];
    desk.does(ask::revise(
        "a",
        TaskChanges { remove_dependencies: dependency.clone(), ..TaskChanges::default() },
    ));
    assert_eq!(desk.plan.outputs_for("a"), []);
    desk.does(ask::revise("a", TaskChanges { add_dependencies: dependency, ..TaskChanges::default() }));
    assert_eq!(desk.standing("a"), EffectiveStatus::Blocked);
}

#[test]
fn a_cause_elsewhere_with_a_very_long_name_is_still_a_cause() {
    let far = there(Some(&"builder".repeat(60)), None, "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone()), task("b", &["a"])]));
    desk.does(hear("a", far, Status::Failed, None));
    assert_eq!(desk.because_of("b").as_deref(), Some("far"));
}

#[test]
fn a_draft_brings_no_outcomes_of_other_plans_unless_it_is_history() {
    let far = there(None, Some("other"), "far");
    let came = |status: Status, phase: Phase| {
        let mut draft = plan_of([after("a", far.clone())]);
        draft.state.phase = phase;
        draft.tasks[0].state.status = status;
        let done = UpstreamResult { status: Status::Done, ..UpstreamResult::default() };
        draft.tasks[0].state.received.insert("other/far".to_owned(), done);
        Desk::made_by(&ada(), draft).plan.task("a").unwrap().state.received.len()
    };
    assert_eq!(came(Status::Pending, Phase::Draft), 0);
    assert_eq!(came(Status::Done, Phase::Active), 0, "it may be done again");
    assert_eq!(came(Status::Failed, Phase::Failed), 0, "it may be retried");
    assert_eq!(came(Status::Done, Phase::Completed), 1);
}
