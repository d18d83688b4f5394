//! Starts, retries, and who may report an outcome.

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
    let progress = |attempt| desk.plan.check_progress(&worker(), &id("a"), Some(attempt), "half");
    assert!(matches!(progress(1), Err(Refusal::StaleAttempt { .. })));
    assert_eq!(progress(2), Ok(2));
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
    // The number of an attempt is not secret and proves nothing.
    let named = Command::FinishTask { task: id("a"), attempt: Some(1), outcome: done(), retry: None };
    assert!(matches!(desk.asks(&bob, named), Err(Refusal::AlreadyRunning { .. })));
    assert!(desk.plan.check_progress(&bob, &id("a"), Some(1), "half").is_err());
    assert_eq!(desk.plan.check_progress(&ada, &id("a"), Some(1), "half"), Ok(1));
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
        matches!(waiting[..], [BlockReason::Until(until)] if until >= at(10) && until <= at(13)),
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

#[test]
fn a_queued_task_is_taken_but_does_not_run_until_its_start_is_recorded() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[]), by_machine("b", &[])]));
    desk.now = at(10);
    desk.asks(&worker(), ask::queue("a")).unwrap();
    assert_eq!(desk.standings(), "a:queued b:ready");
    assert_eq!((desk.plan.counts().queued, desk.plan.counts().running), (1, 0));
    assert_eq!((desk.plan.in_progress().count(), desk.plan.running().count()), (1, 0));
    assert_eq!(desk.plan.task("a").unwrap().state.started_at, None);
    let taken = Refusal::AlreadyRunning { task: "a".into(), worker: "host-1".into() };
    assert_eq!(desk.refuses(ask::start("a")), taken);
    assert_eq!(desk.refuses(ask::queue("a")), taken);
    let record = |started_at| Command::RecordStart { task: id("a"), attempt: 1, started_at };
    desk.now = at(12);
    let other = desk.asks(&Actor::worker("host-2"), record(at(11)));
    assert_eq!(other, Err(taken), "only whoever queued it knows when it began");
    desk.asks(&worker(), record(at(11))).unwrap();
    assert_eq!(desk.standings(), "a:running b:ready");
    assert_eq!((desk.plan.counts().queued, desk.plan.counts().running), (0, 1));
    assert_eq!(desk.plan.task("a").unwrap().state.started_at, Some(at(11)));
    let version = desk.plan.version();
    desk.asks(&worker(), record(at(12))).unwrap();
    assert_eq!(desk.plan.version(), version, "a start is recorded once");
}

#[test]
fn a_start_is_recorded_as_after_its_reservation_and_before_its_record() {
    for (said, recorded) in [(at(1), at(2)), (at(3), at(3)), (at(9), at(5))] {
        let mut desk = Desk::with(plan_of([by_machine("a", &[])]));
        desk.now = at(2);
        desk.asks(&worker(), ask::queue("a")).unwrap();
        desk.now = at(5);
        let record = Command::RecordStart { task: id("a"), attempt: 1, started_at: said };
        desk.asks(&worker(), record).unwrap();
        assert_eq!(desk.plan.task("a").unwrap().state.started_at, Some(recorded));
    }
}

#[test]
fn a_worker_that_is_lost_with_a_queued_task_may_have_begun_it() {
    let mut desk = Desk::with(plan_of([trying(2, "a")]));
    desk.asks(&worker(), ask::queue("a")).unwrap();
    desk.asks(&system(), Command::LoseTask { task: id("a"), attempt: 1, retry: None }).unwrap();
    let state = &desk.plan.task("a").unwrap().state;
    assert_eq!((state.status, state.attempt, state.tries), (Status::Pending, 1, 1), "the attempt counts");
    let error = "host-1 was lost when attempt 1 was queued: it may have begun";
    assert_eq!(state.error.as_deref(), Some(error));
    let late = Command::RecordStart { task: id("a"), attempt: 1, started_at: at(1) };
    assert!(matches!(desk.asks(&worker(), late), Err(Refusal::WrongStatus { .. })));
}

#[test]
fn a_task_that_is_cancelled_while_it_is_queued_may_have_begun() {
    let release = Command::ReleaseTask { task: id("a"), attempt: Some(1), reason: String::new() };
    for (before, expected) in [(None, true), (Some(release), false)] {
        let mut desk = Desk::with(plan_of([by_machine("a", &[])]));
        desk.asks(&worker(), ask::queue("a")).unwrap();
        if let Some(command) = before {
            desk.asks(&worker(), command).unwrap();
        }
        desk.does(ask::cancel("a"));
        assert_eq!(desk.plan.task("a").unwrap().state.may_have_begun(), expected);
    }
}

#[test]
fn a_queued_task_can_be_given_back_cancelled_and_reported_on() {
    let ends: [(Command, &str); 3] = [
        (Command::ReleaseTask { task: id("a"), attempt: Some(1), reason: "enough".into() }, "a:ready"),
        (ask::cancel("a"), "a:cancelled"),
        (ask::finish("a", failed()), "a:failed"),
    ];
    for (command, standing) in ends {
        let mut desk = Desk::with(plan_of([by_machine("a", &[])]));
        desk.asks(&worker(), ask::queue("a")).unwrap();
        desk.does(command);
        assert_eq!(desk.standings(), standing);
        assert_eq!(desk.plan.counts().queued, 0);
    }
}

#[test]
fn a_queued_task_is_still_queued_after_a_snapshot() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[])]));
    desk.asks(&worker(), ask::queue("a")).unwrap();
    let again = waypost_core::Plan::from_snapshot(desk.plan.snapshot().to_vec()).unwrap();
    assert_eq!(again.counts(), desk.plan.counts());
    assert_eq!(again.effective_status("a"), Some(EffectiveStatus::Queued));
}

#[test]
fn the_number_of_an_attempt_speaks_for_programs_of_the_plan_and_against_workers_only() {
    let cases = [
        ("host-1", Actor::worker("p"), false),
        ("host-1", Actor::worker("program"), true),
        ("host-1", Actor::agent("p"), true),
        ("host-1", Actor::agent("planner"), true),
        ("agent:planner", Actor::worker("p"), true),
        ("person:grace", Actor::worker("p"), true),
    ];
    for (holder, by, refused) in cases {
        let mut desk = Desk::made_by(&ada(), plan_of([task("a", &[])]));
        desk.does(Command::StartTask { task: id("a"), worker: holder.into() });
        let is_refused = |found: Result<(), Refusal>, act: &str| {
            let is_other = matches!(found, Err(Refusal::AlreadyRunning { .. }));
            assert_eq!(is_other, refused, "{act}, {holder}, {by}: {found:?}");
        };
        is_refused(desk.plan.check_progress(&by, &id("a"), Some(1), "half").map(|_| ()), "progress");
        let Command::AskQuestion { ask: words, .. } = ask::question("a", &[]) else { unreachable!() };
        let question = Command::AskQuestion { task: id("a"), attempt: Some(1), ask: words };
        is_refused(desk.plan.decide(&by, at(9), &question).map(|_| ()), "ask");
        let finish = Command::FinishTask { task: id("a"), attempt: Some(1), outcome: done(), retry: None };
        is_refused(desk.asks(&by, finish).map(|_| ()), "done");
    }
}

#[test]
fn a_worker_name_says_which_agent_or_person_works_in_which_session() {
    let agent = Actor::agent("rev");
    assert_eq!(Actor::of_worker("agent:rev#s1"), Some(agent.clone()));
    assert_eq!(Actor::of_worker("agent:rev"), Some(agent));
    assert_eq!(Actor::of_worker("person:ada"), Some(Actor::person("ada")));
    assert_eq!(Actor::of_worker("vm:1:ab"), None);
    assert_eq!(Actor::of_worker("worker:vm"), None);
}
