//! Tasks with children.

use super::*;

#[test]
fn children_wait_for_what_their_parent_depends_on() {
    let draft = plan_of([
        task("a", &[]),
        task("p", &["a"]),
        child("x", "p", &[]),
        child("q", "p", &[]),
        child("y", "q", &["x"]),
    ]);
    let mut desk = Desk::with(draft);
    assert_eq!(desk.standings(), "a:ready p:blocked x:blocked q:blocked y:blocked");
    assert_eq!(
        desk.refuses(ask::start("x")),
        Refusal::Blocked { task: "x".into(), waits_for: vec!["a".into()] }
    );
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.standings(), "a:done p:ready x:ready q:blocked y:blocked");
    desk.does(ask::start("x"));
    assert_eq!(desk.standings(), "a:done p:running x:running q:blocked y:blocked");
}

#[test]
fn an_open_group_shows_what_happens_in_it_and_runs_only_while_something_runs() {
    let draft =
        plan_of([task("p", &[]), child("x", "p", &[]), child("y", "p", &[]), child("z", "p", &["x", "y"])]);
    let mut desk = Desk::with(draft);
    desk.does(ask::start("x"));
    desk.does(ask::question("x", &[]));
    assert_eq!(desk.standings(), "p:asking x:asking y:ready z:blocked");
    desk.does(ask::start("y"));
    assert_eq!(desk.standing("p"), EffectiveStatus::Running);
    desk.does(ask::finish("y", done()));
    desk.does(ask::finish("x", skipped()));
    desk.does(ask::hold("z"));
    assert_eq!(desk.standings(), "p:blocked x:skipped y:done z:held");
    desk.does(ask::hold("p"));
    assert_eq!(desk.standing("p"), EffectiveStatus::Held, "its own hold is the one to lift");
}

#[test]
fn a_group_is_not_worked_on_itself() {
    let mut desk = Desk::with(plan_of([task("p", &[]), child("x", "p", &[])]));
    let is_parent = Refusal::IsParent { task: "p".into() };
    assert_eq!(desk.refuses(ask::start("p")), is_parent);
    assert_eq!(desk.refuses(ask::finish("p", done())), is_parent);
    assert_eq!(desk.plan.counts().total, 1);
}

#[test]
fn a_group_ends_when_its_children_have_ended_and_as_they_ended() {
    let end = |first: fn() -> Outcome, second: fn() -> Outcome| {
        let draft = plan_of([task("p", &[]), child("x", "p", &[]), child("y", "p", &[]), task("z", &["p"])]);
        let mut desk = Desk::with(draft);
        desk.does(ask::finish("x", first()));
        assert_eq!(desk.standing("p"), EffectiveStatus::Ready);
        desk.does(ask::finish("y", second()));
        (desk.standing("p"), desk.standing("z"))
    };
    assert_eq!(end(done, done), (EffectiveStatus::Done, EffectiveStatus::Ready));
    assert_eq!(end(done, skipped), (EffectiveStatus::Done, EffectiveStatus::Ready));
    assert_eq!(end(skipped, skipped), (EffectiveStatus::Skipped, EffectiveStatus::Ready));
    assert_eq!(end(failed, done), (EffectiveStatus::Failed, EffectiveStatus::Skipped));
    let mut desk =
        Desk::with(plan_of([task("p", &[]), child("x", "p", &[]), child("y", "p", &[]), task("z", &["p"])]));
    desk.does(ask::finish("x", done()));
    desk.does(ask::cancel("y"));
    assert_eq!(desk.standings(), "p:cancelled x:done y:cancelled z:skipped");
}

#[test]
fn a_group_that_cannot_happen_takes_its_children_along() {
    let draft = plan_of([
        task("a", &[]),
        task("p", &["a"]),
        child("q", "p", &[]),
        child("x", "q", &[]),
        task("z", &["p"]),
    ]);
    let mut desk = Desk::with(draft);
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standings(), "a:failed p:skipped q:skipped x:skipped z:skipped");
    desk.does(ask::retry("a"));
    assert_eq!(desk.standings(), "a:ready p:blocked q:blocked x:blocked z:blocked");
}

#[test]
fn a_group_that_gets_something_to_do_opens_again() {
    let mut desk = Desk::with(plan_of([task("p", &[]), child("x", "p", &[]), task("z", &["p"])]));
    desk.does(ask::finish("x", done()));
    assert_eq!(desk.standings(), "p:done x:done z:ready");
    desk.does(add(vec![child("y", "p", &[])]));
    assert_eq!(desk.standings(), "p:ready x:done y:ready z:blocked");
    desk.does(ask::finish("y", failed()));
    assert_eq!(desk.standings(), "p:failed x:done y:failed z:skipped");
    desk.does(ask::retry("p"));
    assert_eq!(desk.standings(), "p:ready x:done y:ready z:blocked");
    desk.does(ask::finish("y", done()));
    desk.does(ask::retry("p"));
    assert_eq!(
        desk.standings(),
        "p:ready x:ready y:ready z:blocked",
        "when all of it went well, all of it is done again"
    );
}

#[test]
fn a_group_without_its_failed_child_did_not_fail() {
    let mut desk =
        Desk::with(plan_of([task("p", &[]), child("x", "p", &[]), child("y", "p", &[]), task("z", &["p"])]));
    desk.does(ask::finish("x", done()));
    desk.does(ask::finish("y", failed()));
    desk.does(add(vec![task("w", &[])]));
    desk.does(ask::remove("y", false));
    assert_eq!(desk.standings(), "p:done x:done z:ready w:ready");
}

#[test]
fn a_group_that_lost_all_its_children_is_a_task_again() {
    let mut desk = Desk::with(plan_of([task("p", &[]), child("x", "p", &[])]));
    desk.does(ask::remove("x", false));
    assert_eq!(desk.standings(), "p:ready");
    assert_eq!(desk.plan.counts().total, 1);
}

#[test]
fn a_child_that_fails_under_a_group_that_became_impossible_is_not_tried_again() {
    let draft =
        plan_of([task("a", &[]), task("p", &[]), TaskSpec { parent: Some(id("p")), ..trying(3, "x") }]);
    let mut desk = Desk::with(draft);
    desk.does(ask::start("x"));
    desk.does(ask::finish("a", failed()));
    let depends_on = Some(vec![Dependency::Task(id("a"))]);
    desk.does(ask::revise("p", TaskChanges { depends_on, ..TaskChanges::default() }));
    assert_eq!(desk.standing("x"), EffectiveStatus::Running, "what runs goes on");
    desk.does(ask::finish("x", failed()));
    assert_eq!(desk.standings(), "a:failed p:skipped x:skipped");
}

#[test]
fn inside_a_group_that_is_impossible_for_another_reason_the_other_reason_is_named() {
    let draft = plan_of([
        task("a", &[]),
        task("b", &[]),
        task("p", &["a", "b"]),
        child("x", "p", &[]),
        task("other", &[]),
    ]);
    let mut desk = Desk::with(draft);
    desk.does(ask::finish("a", failed()));
    desk.does(ask::finish("b", failed()));
    assert_eq!(desk.because_of("x").as_deref(), Some("a"));
    desk.does(ask::retry("a"));
    assert_eq!(desk.because_of("x").as_deref(), Some("b"));
    assert_eq!(desk.because_of("p").as_deref(), Some("b"));
}

#[test]
fn a_group_does_not_end_while_its_last_open_task_moves_to_another_place_inside_it() {
    let draft = plan_of([
        task("p", &[]),
        child("q", "p", &[]),
        child("y", "q", &[]),
        child("x", "p", &[]),
        passed_over("s", &["p"]),
        task("z", &["s"]),
    ]);
    let mut desk = Desk::with(draft);
    desk.does(ask::finish("y", done()));
    desk.does(Command::MoveTask { task: id("x"), parent: Some(Some(id("q"))), place: Position::Last });
    assert_eq!(desk.standings(), "p:ready q:ready y:done x:ready s:blocked z:blocked");
}
