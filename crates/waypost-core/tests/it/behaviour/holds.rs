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

fn move_under(task: &str, parent: Option<&str>) -> Command {
    Command::MoveTask { task: id(task), parent: Some(parent.map(id)), place: Position::Last }
}

/// A group with the tasks `a` and `b`, work that waits for it, and tasks of their own.
fn grouped() -> Desk {
    let tasks = [
        task("h", &[]),
        child("g", "h", &[]),
        child("a", "g", &[]),
        child("b", "g", &[]),
        by_machine("go", &["h"]),
        task("open", &[]),
        task("ended", &[]),
    ];
    let mut desk = Desk::with(plan_of(tasks));
    desk.does(ask::finish("ended", done()));
    desk
}

#[test]
fn no_agent_moves_what_a_person_has_held_out_of_its_group_or_ends_it_by_children() {
    let mut desk = grouped();
    desk.does(ask::hold("a"));
    desk.does(ask::hold("open"));
    let moves = [("a", None), ("a", Some("h")), ("g", None), ("ended", Some("a")), ("ended", Some("open"))];
    for (task, parent) in moves {
        let refusal = desk.asks(&agent(), move_under(task, parent)).unwrap_err();
        assert!(is_stopped(&refusal), "{task} to {parent:?}: {refusal}");
    }
    // Within its group, and beside it, things may be moved.
    desk.asks(&agent(), move_under("b", None)).unwrap();
    desk.asks(&agent(), Command::MoveTask { task: id("a"), parent: None, place: Position::First }).unwrap();
    desk.does(move_under("a", None));
}

#[test]
fn no_agent_moves_what_a_person_has_cancelled_or_adds_to_it_whoever_ended_the_plan() {
    let mut desk = grouped();
    desk.does(ask::cancel("a"));
    let refusal = desk.asks(&agent(), move_under("a", None)).unwrap_err();
    assert!(is_stopped(&refusal), "{refusal}");
    let more =
        |parent: &str| Command::AddTasks { tasks: vec![child("c", parent, &[])], place: Position::Last };
    assert!(is_stopped(&desk.asks(&agent(), more("a")).unwrap_err()));
    desk.asks(&agent(), Command::FinishPlan { phase: Phase::Cancelled, summary: String::new() }).unwrap();
    assert!(is_stopped(&desk.asks(&agent(), more("a")).unwrap_err()));
    desk.asks(&agent(), more("b")).unwrap();
}

#[test]
fn nothing_ends_by_a_move_in_a_plan_that_a_person_has_stopped() {
    for stop in [
        Command::Pause { reason: "freeze".into() },
        Command::FinishPlan { phase: Phase::Cancelled, summary: "no".into() },
    ] {
        let mut desk = grouped();
        desk.does(stop);
        for (task, parent) in [("ended", Some("open")), ("a", None)] {
            assert!(is_stopped(&desk.asks(&agent(), move_under(task, parent)).unwrap_err()), "{task}");
        }
    }
    let mut desk = grouped();
    desk.asks(&agent(), Command::Pause { reason: "a moment".into() }).unwrap();
    desk.asks(&agent(), move_under("a", None)).unwrap();
}

#[test]
fn no_agent_gives_children_to_a_task_with_a_check() {
    let checked = TaskSpec { check: Some(work()), ..task("b", &[]) };
    let mut desk = Desk::with(plan_of([checked, by_machine("go", &["b"]), task("ended", &[])]));
    desk.does(ask::finish("ended", done()));
    let more = || Command::AddTasks { tasks: vec![child("k", "b", &[])], place: Position::Last };
    let mut with = desk.plan.to_draft();
    with.tasks.push(Task { spec: child("k", "b", &[]), state: Default::default() });
    for edit in [more(), move_under("ended", Some("b")), Command::Replace(Box::new(with))] {
        let refusal = desk.asks(&agent(), edit).unwrap_err();
        assert!(matches!(refusal, Refusal::OnlyAPerson { .. }), "{refusal}");
    }
    desk.does(more());
    assert_eq!(desk.asks(&agent(), ask::finish("k", done())).map(drop), Ok(()));
}

#[test]
fn no_agent_has_work_wait_for_less_than_what_a_person_has_held() {
    let tasks = [task("mid", &[]), task("between", &["mid"]), by_machine("go", &["between"]), task("x", &[])];
    let mut desk = Desk::with(plan_of(tasks));
    desk.does(ask::hold("mid"));
    let waits_for = |names: &[&str]| TaskChanges {
        depends_on: Some(names.iter().map(|name| Dependency::Task(id(name))).collect()),
        ..TaskChanges::default()
    };
    for (task, waits) in [("between", waits_for(&[])), ("go", waits_for(&[]))] {
        let refusal = desk.asks(&agent(), ask::revise(task, waits)).unwrap_err();
        assert!(is_stopped(&refusal), "{task}: {refusal}");
    }
    desk.asks(&agent(), ask::revise("between", waits_for(&["mid", "x"]))).unwrap();
    desk.asks(&agent(), ask::revise("between", waits_for(&["mid"]))).unwrap();
    desk.does(ask::revise("between", waits_for(&[])));
}
