//! Tasks without work between tasks with work: their order was approved, and nobody but a person changes it.

use super::*;

/// `gate` and `deploy` are work; `note` stands between them, and is all that `deploy` names.
fn between() -> Draft {
    plan_of([
        by_machine("gate", &[]),
        task("note", &["gate"]),
        by_machine("deploy", &["note"]),
        task("free", &[]),
    ])
}

fn approved(draft: Draft) -> Desk {
    let mut desk = Desk::made_by(&agent(), draft);
    desk.does(approve(&desk));
    desk
}

fn is_approved(desk: &Desk) -> bool {
    desk.plan.state().approval.is_some()
}

fn waits_for(names: &[&str]) -> TaskChanges {
    let depends_on = names.iter().map(|name| Dependency::Task(id(name))).collect();
    TaskChanges { depends_on: Some(depends_on), ..TaskChanges::default() }
}

fn move_under(task: &str, parent: Option<&str>) -> Command {
    Command::MoveTask { task: id(task), parent: Some(parent.map(id)), place: Position::Last }
}

#[test]
fn what_a_task_between_work_waits_for_is_approved_with_the_work() {
    let any = TaskChanges { when: Some(DependencyRule::AnyDone), ..TaskChanges::default() };
    let changes = [
        ask::revise("note", waits_for(&[])),
        ask::revise("note", waits_for(&["free"])),
        ask::revise("note", any),
        ask::remove("note", true),
        move_under("note", Some("free")),
    ];
    for change in changes {
        let mut desk = approved(between());
        let digest = desk.plan.work_digest();
        desk.asks(&agent(), change.clone()).unwrap();
        assert!(!is_approved(&desk), "{change:?}");
        assert_ne!(desk.plan.work_digest(), digest, "{change:?}");
    }
}

#[test]
fn what_no_work_waits_behind_is_free() {
    let words = TaskChanges { description: Some("say it".into()), ..TaskChanges::default() };
    let changes = [
        ask::revise("note", words),
        ask::revise("free", waits_for(&["gate"])),
        add(vec![task("more", &["deploy"])]),
        ask::remove("free", false),
    ];
    for change in changes {
        let mut desk = approved(between());
        let digest = desk.plan.work_digest();
        desk.asks(&agent(), change.clone()).unwrap();
        assert!(is_approved(&desk), "{change:?}");
        assert_eq!(desk.plan.work_digest(), digest, "{change:?}");
    }
    // What waits for nothing is an agent's own, even if work waits for it.
    let mut desk = approved(plan_of([task("own", &[]), task("other", &[]), by_machine("deploy", &["own"])]));
    desk.asks(&agent(), ask::revise("own", waits_for(&["other"]))).unwrap();
    assert!(is_approved(&desk));
}

#[test]
fn groups_are_followed_in_both_directions() {
    let plan = || {
        plan_of([
            by_machine("gate", &[]),
            task("group", &["gate"]),
            child("part", "group", &[]),
            task("whole", &[]),
            child("piece", "whole", &["part"]),
            by_machine("deploy", &["whole"]),
            task("loose", &[]),
        ])
    };
    let changes = [
        ask::revise("group", waits_for(&[])),
        ask::revise("piece", waits_for(&[])),
        move_under("part", None),
        move_under("piece", None),
        add(vec![child("more", "whole", &["gate"])]),
    ];
    for change in changes {
        let mut desk = approved(plan());
        let digest = desk.plan.work_digest();
        desk.asks(&agent(), change.clone()).unwrap();
        assert!(!is_approved(&desk), "{change:?}");
        assert_ne!(desk.plan.work_digest(), digest, "{change:?}");
    }
    let mut desk = approved(plan());
    desk.asks(&agent(), move_under("loose", Some("group"))).unwrap();
    assert!(!is_approved(&desk), "a group waits for its parts");
}

#[test]
fn only_a_person_passes_over_what_stands_between_work() {
    let blocked = Refusal::Blocked { task: "note".into(), waits_for: vec!["gate".into()] };
    let mut desk = approved(between());
    assert_eq!(desk.asks(&agent(), ask::finish("note", skipped())).unwrap_err(), blocked);
    // What is cancelled lets nothing start that waits for a good end.
    desk.asks(&agent(), ask::cancel("note")).unwrap();
    assert_eq!(desk.status("deploy"), Status::Skipped);
    let mut desk = approved(between());
    desk.does(ask::finish("note", skipped()));
    // In its turn it is an agent's.
    let mut desk = approved(between());
    desk.asks(&worker(), ask::start("gate")).unwrap();
    desk.asks(&worker(), ask::finish("gate", done())).unwrap();
    desk.asks(&agent(), ask::finish("note", skipped())).unwrap();
    assert_eq!(desk.standing("deploy"), EffectiveStatus::Ready);
    // However it ends, it lets the next one start.
    let last = TaskSpec { when: DependencyRule::AllFinished, ..by_machine("tidy", &["note"]) };
    let mut desk = approved(plan_of([by_machine("gate", &[]), task("note", &["gate"]), last]));
    assert_eq!(desk.asks(&agent(), ask::cancel("note")).unwrap_err(), blocked);
    desk.does(ask::cancel("note"));
}

#[test]
fn what_a_person_holds_no_agent_cancels() {
    let mut desk = approved(between());
    desk.does(ask::hold("free"));
    for by in [agent(), worker()] {
        let refusal = desk.asks(&by, ask::cancel("free")).unwrap_err();
        assert!(matches!(refusal, Refusal::StoppedByPerson { .. }), "{refusal}");
    }
    desk.does(ask::cancel("free"));
}

#[test]
fn an_id_is_found_by_its_beginning_unless_that_cuts_a_number() {
    let desk = Desk::with(plan_of([task("t10", &[]), task("read-2", &[])]));
    assert_eq!(desk.plan.resolve("t1"), Err(vec![]));
    assert_eq!(desk.plan.resolve("t"), Ok(id("t10")));
    assert_eq!(desk.plan.resolve("read-"), Ok(id("read-2")));
    assert_eq!(desk.plan.resolve(""), Err(vec![]));
}
