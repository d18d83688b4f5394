//! Holds: a held task does not start until the hold is lifted.

use super::*;

fn unhold(task: &str) -> Command {
    Command::UnholdTask { task: id(task) }
}

fn is_held(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Held { by, .. } if by == "person:ada")
}

fn is_stopped(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::StoppedByPerson { by, .. } if by == "person:ada")
}

#[test]
fn a_held_task_does_not_start_until_the_hold_is_lifted() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[]), by_machine("b", &[])]));
    let digest = desk.plan.work_digest();
    desk.does(ask::hold("a"));
    assert_eq!(desk.does(ask::hold("a")), [], "it is held already");
    assert_eq!(desk.standings(), "a:held b:ready");
    let held =
        BlockReason::Held { task: "a".into(), by: "person:ada".into(), reason: "not before Monday".into() };
    assert_eq!(desk.plan.waiting("a", desk.now), [held]);
    let refusal = desk.asks(&worker(), ask::start("a")).unwrap_err();
    assert_eq!(refusal.to_string(), "task a is held by person:ada (\"not before Monday\")");
    assert!(is_held(&desk.asks(&worker(), ask::queue("a")).unwrap_err()));
    assert!(is_held(&desk.refuses(ask::finish("a", done()))));
    assert_eq!(desk.plan.work_digest(), digest, "a hold changes no work");
    let reloaded = Plan::from_snapshot(desk.plan.snapshot().to_vec()).unwrap();
    assert_eq!(reloaded.ready().count(), 1);
    desk.does(unhold("a"));
    assert_eq!(desk.does(unhold("a")), [], "it is not held any more");
    assert_eq!(desk.standings(), "a:ready b:ready");
}

#[test]
fn what_a_person_holds_only_a_person_lets_start() {
    let draft = || plan_of([task("g", &[]), child("a", "g", &[]), task("b", &["g"]), task("c", &[])]);
    let mut desk = Desk::with(draft());
    desk.does(ask::hold("a"));
    let skip = TaskChanges { skip: Some(true), ..TaskChanges::default() };
    let mut without = desk.plan.to_draft();
    without.tasks.retain(|task| task.spec.id != id("a"));
    let undoes = [
        unhold("a"),
        ask::remove("a", true),
        ask::finish("a", skipped()),
        ask::revise("a", skip),
        Command::Replace(Box::new(without)),
    ];
    for undo in undoes {
        let refusal = desk.asks(&agent(), undo.clone()).unwrap_err();
        assert!(is_stopped(&refusal), "{undo:?}: {refusal}");
    }
    desk.does(unhold("a"));
    // An agent's hold binds nobody.
    desk.asks(&agent(), ask::hold("a")).unwrap();
    desk.asks(&agent(), unhold("a")).unwrap();
    // A person makes it their own.
    desk.asks(&agent(), ask::hold("a")).unwrap();
    desk.does(ask::hold("a"));
    assert!(is_stopped(&desk.asks(&agent(), unhold("a")).unwrap_err()));
}

#[test]
fn a_held_group_holds_all_its_tasks_also_later_ones() {
    let mut desk = Desk::with(plan_of([task("g", &[]), child("a", "g", &[]), task("b", &["g"])]));
    desk.does(ask::hold("g"));
    let more = Command::AddTasks { tasks: vec![child("c", "g", &[])], place: Position::Last };
    desk.asks(&agent(), more).unwrap();
    assert_eq!(desk.standings(), "g:held a:blocked c:blocked b:blocked");
    assert!(is_held(&desk.asks(&agent(), ask::start("c")).unwrap_err()));
    let out = Command::MoveTask { task: id("a"), parent: Some(None), place: Position::Last };
    assert!(is_stopped(&desk.asks(&agent(), out).unwrap_err()));
    desk.does(unhold("g"));
    assert_eq!(desk.standings(), "g:ready a:ready c:ready b:blocked");
}

#[test]
fn what_runs_goes_on_and_a_hold_survives_a_failure_and_a_retry() {
    let mut desk = Desk::with(plan_of([trying(2, "a")]));
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.does(ask::hold("a"));
    desk.asks(&worker(), ask::finish("a", failed())).unwrap();
    desk.now = at(60);
    assert!(is_held(&desk.asks(&worker(), ask::start("a")).unwrap_err()));
    desk.does(ask::cancel("a"));
    desk.does(ask::retry("a"));
    assert_eq!(desk.standings(), "a:held");
    desk.does(unhold("a"));
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&worker(), ask::finish("a", done())).unwrap();
    let refusal = desk.refuses(ask::hold("a"));
    assert_eq!(refusal.to_string(), "task a is done, and so cannot be held");
}
