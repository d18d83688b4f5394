//! Starting, trying again, and who may say how it ended.

use super::*;

#[test]
fn a_worker_that_was_thought_dead_is_refused() {
    let mut desk = Desk::with(plan_of([trying(3, "a")]));
    let report =
        |attempt| Command::FinishTask { task: id("a"), attempt: Some(attempt), outcome: done(), retry: None };
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&system(), Command::LoseTask { task: id("a"), attempt: 1, retry: None }).unwrap();
    assert_eq!(desk.status("a"), Status::Pending);
    desk.now = at(100);
    desk.asks(&worker(), ask::start("a")).unwrap();
    let refusal = desk.asks(&worker(), report(1)).unwrap_err();
    assert_eq!(refusal, Refusal::StaleAttempt { task: "a".into(), given: 1, current: 2 });
    let progress = Command::ReportProgress { task: id("a"), attempt: Some(1), progress: "half".into() };
    assert!(matches!(desk.asks(&worker(), progress), Err(Refusal::StaleAttempt { .. })));
    desk.asks(&worker(), report(2)).unwrap();
    assert_eq!(desk.status("a"), Status::Done);
}

#[test]
fn nobody_but_a_person_ends_what_somebody_else_works_on() {
    let (ada, bob) = (Actor::agent("ada"), Actor::agent("bob"));
    let start = || Command::StartTask { task: id("a"), worker: ada.to_string() };
    let finish = || Command::FinishTask { task: id("a"), attempt: None, outcome: done(), retry: None };
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.asks(&ada, start()).unwrap();
    let refusal = desk.asks(&bob, finish()).unwrap_err();
    assert_eq!(refusal, Refusal::AlreadyRunning { task: "a".into(), worker: "agent:ada".into() });
    desk.asks(&ada, finish()).unwrap();
    assert_eq!(desk.status("a"), Status::Done);

    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.asks(&ada, start()).unwrap();
    desk.asks(&Actor::person("eve"), finish()).unwrap();
    assert_eq!(desk.status("a"), Status::Done);
}

#[test]
fn between_attempts_the_wait_doubles_up_to_its_maximum() {
    let retry = Retry { attempts: 9, backoff_seconds: 10, backoff_seconds_max: 30 };
    let waits: Vec<u64> = (1..6).map(|tries| retry.wait_seconds(tries)).collect();
    assert_eq!(waits, [10, 20, 30, 30, 30]);
    assert_eq!(retry.wait_seconds(u32::MAX), 30);

    let mut desk = Desk::with(plan_of([trying(2, "a")]));
    desk.does(ask::start("a"));
    desk.does(ask::finish("a", failed()));
    let waiting = desk.plan.waiting("a", desk.now);
    assert!(
        matches!(waiting[..], [Waiting::Until(until)] if until >= at(10) && until <= at(13)),
        "{waiting:?}"
    );
    desk.now = at(9);
    assert!(matches!(desk.refuses(ask::start("a")), Refusal::Blocked { .. }));
    desk.now = at(13);
    assert_eq!(desk.plan.waiting("a", desk.now), []);
    desk.does(ask::start("a"));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.status("a"), Status::Failed, "after the last attempt");
    assert_eq!(desk.plan.task("a").unwrap().state.tries, 2);
}

#[test]
fn a_task_need_not_wait_for_its_next_attempt_when_somebody_retries_it() {
    let mut desk = Desk::with(plan_of([trying(2, "a")]));
    desk.does(ask::start("a"));
    desk.does(ask::finish("a", failed()));
    desk.does(ask::retry("a"));
    desk.does(ask::start("a"));
    assert_eq!(desk.plan.task("a").unwrap().state.attempt, 2);
}

#[test]
fn the_configuration_says_how_often_to_try_where_a_task_does_not() {
    let policy = Some(Retry { attempts: 2, backoff_seconds: 1, backoff_seconds_max: 1 });
    let fail = |retry| Command::FinishTask { task: id("a"), attempt: None, outcome: failed(), retry };
    let mut desk = Desk::with(plan_of([by_machine("a", &[])]));
    desk.does(ask::start("a"));
    desk.does(fail(policy));
    assert_eq!(desk.status("a"), Status::Pending);
    let mut desk = Desk::with(plan_of([trying(1, "a")]));
    desk.does(ask::start("a"));
    desk.does(fail(policy));
    assert_eq!(desk.status("a"), Status::Failed, "the task's own word counts");
}

#[test]
fn what_an_agent_left_goes_back_on_the_list() {
    let mut desk = Desk::with(plan_of([task("a", &[]), by_machine("b", &[])]));
    let lose = |task: &str| Command::LoseTask { task: id(task), attempt: 1, retry: None };
    desk.asks(&agent(), ask::start("a")).unwrap();
    desk.asks(&worker(), ask::start("b")).unwrap();
    desk.asks(&system(), lose("a")).unwrap();
    desk.asks(&system(), lose("b")).unwrap();
    assert_eq!(desk.standings(), "a:ready b:failed", "a machine had one attempt");
    assert_eq!(desk.plan.task("b").unwrap().state.error.as_deref(), Some("host-1 was lost during attempt 1"));
}

#[test]
fn a_task_that_runs_is_not_started_twice() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.does(ask::start("a"));
    assert_eq!(
        desk.refuses(ask::start("a")),
        Refusal::AlreadyRunning { task: "a".into(), worker: "host-1".into() }
    );
}

#[test]
fn an_agent_does_not_pretend_to_have_done_a_machines_work() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[])]));
    assert!(matches!(desk.asks(&agent(), ask::finish("a", done())), Err(Refusal::MachineWork { .. })));
    assert!(matches!(desk.asks(&agent(), ask::start("a")), Err(Refusal::MachineWork { .. })));
    desk.asks(&ada(), ask::finish("a", done())).unwrap();
}
