//! The effects of failures and skips on other tasks.

use super::*;

#[test]
fn a_failure_skips_what_needed_it_and_what_needed_that_while_other_branches_go_on() {
    let draft = plan_of([
        task("a", &[]),
        task("b", &["a"]),
        task("c", &["b"]),
        task("other", &[]),
        task("last", &["other"]),
    ]);
    let mut desk = Desk::with(draft);
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standings(), "a:failed b:skipped c:skipped other:ready last:blocked");
    assert_eq!(desk.because_of("b").as_deref(), Some("a"));
    assert_eq!(desk.because_of("c").as_deref(), Some("a"), "the whole cascade points at its beginning");
    assert_eq!(desk.plan.task("c").unwrap().state.why().as_deref(), Some("a did not succeed"));
    desk.does(ask::finish("other", done()));
    desk.does(ask::finish("last", done()));
    assert_eq!(desk.plan.state().phase, Phase::Failed);
}

#[test]
fn a_failure_that_skips_99_999_tasks_is_one_event() {
    let mut desk = Desk::with(chain(100_000));
    let events = desk.does(ask::finish("t0", failed()));
    assert_eq!(events.len(), 1);
    assert_eq!(desk.plan.counts().skipped, 99_999);
    assert_eq!(desk.because_of("t99999").as_deref(), Some("t0"));
    assert_eq!(desk.plan.take_touched().finished.len(), 100_000);
}

#[test]
fn of_several_causes_the_first_in_depends_on_is_named() {
    let draft =
        plan_of([task("z", &[]), task("a", &[]), task("group", &[]), child("x", "group", &["z", "a"])]);
    let mut desk = Desk::made_by(&ada(), draft);
    desk.does(ask::cancel("a"));
    desk.does(ask::cancel("z"));
    desk.does(Command::Activate);
    assert_eq!(desk.because_of("x").as_deref(), Some("z"));
    assert_eq!(desk.because_of("group").as_deref(), Some("z"));
}

#[test]
fn a_cause_is_kept_as_long_as_it_is_one() {
    let mut desk =
        Desk::with(plan_of([task("a", &[]), task("b", &[]), task("x", &["a", "b"]), task("y", &["x"])]));
    desk.does(ask::finish("b", failed()));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.because_of("y").as_deref(), Some("b"));
    desk.does(ask::retry("b"));
    assert_eq!(desk.standings(), "a:failed b:ready x:skipped y:skipped");
    assert_eq!(desk.because_of("x").as_deref(), Some("a"));
    assert_eq!(desk.because_of("y").as_deref(), Some("a"));
}

#[test]
fn a_retry_brings_back_what_was_skipped_because_of_it() {
    let mut desk =
        Desk::with(plan_of([task("a", &[]), task("b", &["a"]), task("c", &["b"]), task("d", &[])]));
    desk.does(ask::finish("d", skipped()));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.plan.state().phase, Phase::Failed);
    let refusal = desk.refuses(ask::retry("c"));
    assert_eq!(refusal, Refusal::Blocked { task: "c".into(), waits_for: vec!["a".into()] });
    desk.does(ask::retry("a"));
    assert_eq!(desk.standings(), "a:ready b:blocked c:blocked d:skipped");
    assert_eq!(desk.plan.state().phase, Phase::Active);
    assert_eq!(desk.because_of("c"), None);
}

#[test]
fn retrying_a_plan_sets_back_all_that_failed_or_was_cancelled() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"]), task("c", &[]), task("d", &[])]));
    desk.does(ask::finish("a", failed()));
    desk.does(ask::cancel("c"));
    desk.does(ask::finish("d", done()));
    desk.does(Command::RetryPlan);
    assert_eq!(desk.standings(), "a:ready b:blocked c:ready d:done");
    assert!(matches!(desk.refuses(Command::RetryPlan), Refusal::WrongPhase { .. }));
}

#[test]
fn a_finished_task_can_be_done_again() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    desk.does(ask::finish(
        "a",
        Outcome::Done { result: Some("fine".into()), output: Some(Json::of(&1)), evidence: None },
    ));
    desk.does(ask::retry("a"));
    assert_eq!(desk.standings(), "a:ready b:blocked");
    let state = &desk.plan.task("a").unwrap().state;
    assert_eq!((&state.result, &state.output, state.finished_at), (&None, &None, None));
}

#[test]
fn what_a_task_no_longer_depends_on_no_longer_keeps_it_skipped() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"]), task("c", &[])]));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standing("b"), EffectiveStatus::Skipped);
    desk.does(ask::remove("a", true));
    assert_eq!(desk.standings(), "b:ready c:ready");
}

// Skipping

#[test]
fn a_task_to_be_skipped_is_passed_over_after_what_it_depends_on() {
    let mut desk = Desk::with(plan_of([task("a", &[]), passed_over("b", &["a"]), task("c", &["b"])]));
    assert_eq!(desk.standings(), "a:ready b:blocked c:blocked");
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.standings(), "a:done b:skipped c:ready");
    assert_eq!(desk.because_of("b"), None);
}

#[test]
fn a_task_to_be_skipped_hands_on_a_failure() {
    let mut desk = Desk::with(plan_of([task("a", &[]), passed_over("b", &["a"]), task("c", &["b"])]));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standings(), "a:failed b:skipped c:skipped");
    assert_eq!(desk.because_of("c").as_deref(), Some("a"));
}

#[test]
fn nothing_is_skipped_before_the_plan_begins() {
    let mut desk = Desk::made_by(&ada(), plan_of([passed_over("a", &[]), task("b", &["a"])]));
    assert_eq!(desk.standings(), "a:blocked b:blocked");
    assert!(matches!(desk.refuses(ask::start("a")), Refusal::WrongStatus { status: Status::Skipped, .. }));
    desk.does(Command::Activate);
    assert_eq!(desk.standings(), "a:skipped b:ready");
}

#[test]
fn what_is_no_longer_to_be_skipped_comes_back() {
    let mut desk = Desk::with(plan_of([passed_over("a", &[]), task("b", &[])]));
    assert!(matches!(desk.refuses(ask::retry("a")), Refusal::WrongStatus { status: Status::Skipped, .. }));
    desk.does(ask::revise("a", TaskChanges { skip: Some(false), ..TaskChanges::default() }));
    assert_eq!(desk.standings(), "a:ready b:ready");
}

#[test]
fn a_group_to_be_skipped_takes_its_children_along_and_lets_others_go_on() {
    let group = passed_over("g", &["a"]);
    let draft = plan_of([
        task("a", &[]),
        task("f", &[]),
        group,
        child("x", "g", &[]),
        child("y", "g", &["f"]),
        task("b", &["g"]),
    ]);
    let mut desk = Desk::with(draft);
    assert_eq!(desk.standings(), "a:ready f:ready g:blocked x:blocked y:blocked b:blocked");
    desk.does(ask::finish("f", failed()));
    assert_eq!(desk.standing("y"), EffectiveStatus::Skipped);
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.standings(), "a:done f:failed g:skipped x:skipped y:skipped b:ready");
    desk.does(ask::revise("g", TaskChanges { skip: Some(false), ..TaskChanges::default() }));
    assert_eq!(desk.standing("x"), EffectiveStatus::Ready);
    assert_eq!(desk.standing("b"), EffectiveStatus::Blocked);
}

#[test]
fn whoever_works_on_a_task_may_find_it_unnecessary() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    desk.does(ask::start("a"));
    desk.does(ask::finish("a", Outcome::Skipped { reason: Some("it was there already".into()) }));
    assert_eq!(desk.standings(), "a:skipped b:ready");
    assert_eq!(desk.plan.task("a").unwrap().state.why().as_deref(), Some("it was there already"));
}
