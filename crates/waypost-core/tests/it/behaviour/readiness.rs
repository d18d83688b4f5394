//! When a task is ready to start.

use super::*;

#[test]
fn a_task_is_ready_when_all_that_it_depends_on_is_done() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[]), task("c", &["a", "b"])]));
    assert_eq!(desk.standings(), "a:ready b:ready c:blocked");
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.standings(), "a:done b:ready c:blocked");
    desk.does(ask::finish("b", done()));
    assert_eq!(desk.standings(), "a:done b:done c:ready");
}

#[test]
fn a_task_may_wait_for_all_to_finish_however_they_end() {
    let mut desk = Desk::with(plan_of([
        task("a", &[]),
        task("b", &[]),
        when(DependencyRule::AllFinished, "c", &["a", "b"]),
    ]));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standing("c"), EffectiveStatus::Blocked);
    desk.does(ask::cancel("b"));
    assert_eq!(desk.standing("c"), EffectiveStatus::Ready);
}

#[test]
fn a_task_may_be_content_with_one_that_is_done() {
    let draft = || plan_of([task("a", &[]), task("b", &[]), when(DependencyRule::AnyDone, "c", &["a", "b"])]);
    let mut desk = Desk::with(draft());
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standing("c"), EffectiveStatus::Blocked);
    desk.does(ask::finish("b", done()));
    assert_eq!(desk.standing("c"), EffectiveStatus::Ready);
    let mut desk = Desk::with(draft());
    desk.does(ask::finish("a", failed()));
    desk.does(ask::finish("b", failed()));
    assert_eq!(desk.standings(), "a:failed b:failed c:skipped");
}

#[test]
fn the_most_urgent_comes_first() {
    let urgent = |name: &str, priority| TaskSpec { priority, ..task(name, &[]) };
    let mut desk = Desk::with(plan_of([urgent("low", -1), urgent("some", 0), urgent("high", 7)]));
    let ready =
        |desk: &Desk| -> Vec<String> { desk.plan.ready().map(|task| task.spec.id.to_string()).collect() };
    assert_eq!(ready(&desk), ["high", "some", "low"]);
    desk.does(ask::revise("low", TaskChanges { priority: Some(9), ..TaskChanges::default() }));
    assert_eq!(ready(&desk), ["low", "high", "some"]);
}
