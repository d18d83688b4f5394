//! Cancelling, pausing and ending a plan.

use super::*;

#[test]
fn a_cancelled_group_stops_all_that_is_left_of_it() {
    let draft = plan_of([
        task("p", &[]),
        child("x", "p", &[]),
        child("y", "p", &["x"]),
        child("z", "p", &[]),
        task("w", &["p"]),
    ]);
    let mut desk = Desk::with(draft);
    desk.does(ask::finish("z", done()));
    desk.does(ask::start("x"));
    desk.plan.take_touched();
    let events = desk.does(ask::cancel("p"));
    assert_eq!(events.len(), 1);
    assert_eq!(desk.standings(), "p:cancelled x:cancelled y:cancelled z:done w:skipped");
    assert_eq!(desk.plan.take_touched().stopped, [id("x")]);
    assert_eq!(desk.plan.state().phase, Phase::Cancelled);
    assert!(matches!(desk.refuses(ask::cancel("p")), Refusal::WrongStatus { .. }));
}

#[test]
fn a_cancelled_task_stays_so_whatever_its_worker_reports() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    desk.does(ask::start("a"));
    desk.does(ask::cancel("a"));
    let report = Command::FinishTask { task: id("a"), attempt: Some(1), outcome: done(), retry: None };
    assert!(matches!(
        desk.asks(&worker(), report),
        Err(Refusal::WrongStatus { status: Status::Cancelled, .. })
    ));
}

#[test]
fn a_paused_plan_starts_nothing_new_and_what_runs_goes_on() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[]), task("c", &["a"])]));
    desk.does(ask::start("a"));
    desk.does(Command::Pause { reason: "lunch".into() });
    assert!(matches!(desk.refuses(ask::start("b")), Refusal::WrongPhase { phase: Phase::Paused, .. }));
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.plan.waiting("c", desk.now), [BlockReason::Phase(Phase::Paused)]);
    desk.does(Command::Resume);
    desk.does(ask::start("c"));
}

#[test]
fn a_plan_ends_with_its_last_task_and_goes_on_when_it_gets_another() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.plan.state().phase, Phase::Completed);
    assert!(desk.plan.state().finished_at.is_some());
    desk.does(add(vec![task("b", &["a"])]));
    assert_eq!(desk.plan.state().phase, Phase::Active);
    assert_eq!(desk.plan.state().finished_at, None);
}

#[test]
fn ending_a_plan_cancels_what_is_left_and_keeps_the_summary() {
    let finish = |phase| Command::FinishPlan { phase, summary: "enough".into() };
    let mut desk =
        Desk::with(plan_of([task("a", &[]), task("b", &["a"]), task("p", &[]), child("c", "p", &[])]));
    desk.does(ask::start("a"));
    assert_eq!(desk.refuses(finish(Phase::Completed)), Refusal::StillRunning { running: vec!["a".into()] });
    assert!(matches!(desk.refuses(finish(Phase::Active)), Refusal::WrongPhase { .. }));
    desk.does(finish(Phase::Failed));
    assert_eq!(desk.standings(), "a:cancelled b:cancelled p:cancelled c:cancelled");
    assert_eq!((desk.plan.state().phase, desk.plan.state().summary.as_str()), (Phase::Failed, "enough"));
    assert_eq!(desk.does(finish(Phase::Failed)), [], "it is so already");
    assert!(matches!(desk.refuses(finish(Phase::Completed)), Refusal::WrongPhase { .. }));
}

#[test]
fn an_archived_plan_changes_only_when_it_is_taken_out_again() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(ask::start("a"));
    assert!(matches!(desk.refuses(Command::Archive), Refusal::StillRunning { .. }));
    desk.does(ask::finish("a", done()));
    desk.does(Command::Archive);
    assert_eq!(desk.does(Command::Archive), []);
    assert_eq!(desk.refuses(ask::retry("a")), Refusal::Archived { stopped_by: None });
    desk.does(Command::Unarchive);
    desk.does(ask::retry("a"));
}

#[test]
fn a_plan_is_made_once_and_before_anything_else() {
    let mut desk = Desk { plan: Plan::blank(plan_id()), now: at(0) };
    assert_eq!(desk.refuses(ask::start("a")), Refusal::NotCreated {});
    desk.does(ask::create(plan_of([task("a", &[])])));
    assert_eq!(desk.refuses(ask::create(plan_of([]))), Refusal::AlreadyExists {});
    assert_eq!(desk.plan.version(), 1);
}

#[test]
fn an_imported_plan_keeps_what_was_done_but_nobody_works_on_it_yet() {
    let mut draft = plan_of([task("a", &[]), task("b", &["a"]), task("p", &[]), child("x", "p", &[])]);
    draft.state.phase = Phase::Active;
    draft.tasks[0].state.status = Status::Running;
    draft.tasks[2].state.status = Status::Running;
    draft.tasks[3].state.status = Status::Done;
    let desk = Desk::made_by(&ada(), draft);
    assert_eq!(desk.standings(), "a:ready b:blocked p:done x:done");
}

#[test]
fn a_plan_that_has_ended_is_not_cancelled_and_one_that_was_stays_so() {
    let cancel = |summary: &str| Command::FinishPlan { phase: Phase::Cancelled, summary: summary.to_owned() };
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(ask::finish("a", done()));
    let ended = Refusal::wrong_phase(Phase::Completed, "cancelled");
    assert_eq!(desk.refuses(cancel("")), ended);
    assert!(ended.hint().starts_with("it has already ended"));
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(cancel("no time"));
    assert_eq!(desk.does(cancel("")), []);
    assert_eq!(desk.plan.state().summary, "no time");
}

#[test]
fn an_agent_speaks_for_what_it_works_on_in_any_of_its_sessions() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    let by = Actor::agent("planner");
    let start = Command::StartTask { task: id("a"), worker: by.in_session("k3f9") };
    desk.asks(&by, start).unwrap();
    assert!(desk.asks(&Actor::agent("plan"), ask::finish("a", done())).is_err());
    assert!(desk.asks(&Actor::agent("planner#k3f9x"), ask::finish("a", done())).is_err());
    desk.asks(&by, ask::finish("a", done())).unwrap();
}

#[test]
fn only_its_owner_or_a_person_archives_or_ends_a_started_plan_with_open_tasks() {
    let mut draft = plan_of([task("a", &[])]);
    "robin".clone_into(&mut draft.spec.owner);
    let mut desk = Desk::with(draft);
    assert_eq!(desk.plan.state().phase, Phase::Active);
    for other in [Actor::agent("mallory"), worker()] {
        let refused = desk.asks(&other, Command::Archive).unwrap_err();
        let (owner, by, wanted) = ("robin".to_owned(), other.to_string(), "archive it");
        assert_eq!(refused, Refusal::NotItsPlan { owner, by, wanted });
        for phase in [Phase::Completed, Phase::Failed, Phase::Cancelled] {
            let refused =
                desk.asks(&other, Command::FinishPlan { phase, summary: String::new() }).unwrap_err();
            let (owner, by, wanted) = ("robin".to_owned(), other.to_string(), "end it");
            assert_eq!(refused, Refusal::NotItsPlan { owner, by, wanted }, "{phase:?}");
        }
        // Who could make the plan its own could do all that.
        let owner = Some(other.name.clone());
        let take = Command::RevisePlan(Box::new(PlanChanges { owner, ..PlanChanges::default() }));
        let (owner, by, wanted) = ("robin".to_owned(), other.to_string(), "hand it over");
        assert_eq!(desk.asks(&other, take).unwrap_err(), Refusal::NotItsPlan { owner, by, wanted });
    }
    for may in [Actor::agent("robin"), Actor::person("ada")] {
        desk.asks(&may, Command::Archive).unwrap();
        desk.asks(&may, Command::Unarchive).unwrap();
    }
    desk.does(ask::finish("a", done()));
    desk.asks(&Actor::agent("mallory"), Command::Archive).unwrap();
}

#[test]
fn its_owner_and_a_person_end_a_started_plan_with_open_tasks() {
    for may in [Actor::agent("robin"), Actor::person("ada")] {
        let mut draft = plan_of([task("a", &[])]);
        "robin".clone_into(&mut draft.spec.owner);
        let mut desk = Desk::with(draft);
        desk.asks(&may, Command::FinishPlan { phase: Phase::Cancelled, summary: String::new() }).unwrap();
        assert_eq!(desk.plan.state().phase, Phase::Cancelled);
    }
}

#[test]
fn only_its_owner_a_person_and_its_holder_take_an_open_task_out_of_a_started_plan() {
    let made = || {
        let mut draft = plan_of([task("a", &[]), task("b", &[])]);
        "robin".clone_into(&mut draft.spec.owner);
        Desk::with(draft)
    };
    let skip = TaskChanges { skip: Some(true), ..TaskChanges::default() };
    let acts = [
        (ask::finish("a", skipped()), "skip its tasks"),
        (Command::ReviseTask { task: id("a"), changes: Box::new(skip) }, "skip its tasks"),
        (Command::CancelTask { task: id("a"), reason: String::new() }, "cancel its tasks"),
        (Command::RemoveTask { task: id("a"), detach: true }, "remove its tasks"),
    ];
    let mallory = Actor::agent("mallory");
    for (act, wanted) in acts {
        let refused = made().asks(&mallory, act.clone()).unwrap_err();
        let (owner, by) = ("robin".to_owned(), mallory.to_string());
        assert_eq!(refused, Refusal::NotItsPlan { owner, by, wanted });
        for may in [Actor::agent("robin"), Actor::person("ada")] {
            made().asks(&may, act.clone()).unwrap();
        }
    }
    // What an agent holds it may also skip, and what it does in a plan of nobody is its own affair.
    let mut desk = made();
    desk.asks(&mallory, Command::StartTask { task: id("a"), worker: mallory.to_string() }).unwrap();
    desk.asks(&mallory, ask::finish("a", skipped())).unwrap();
    desk.asks(&mallory, ask::finish("b", done())).unwrap();
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.asks(&mallory, ask::finish("a", skipped())).unwrap();
}
