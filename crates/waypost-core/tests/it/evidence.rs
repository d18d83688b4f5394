//! Which outcomes are accepted: reports, checks and their evidence, released tasks, waits between attempts.

use waypost_core::{
    BlockReason, Command, EffectiveStatus, Event, Evidence, Json, Outcome, Plan, Position, Refusal, Retry,
    Status, TaskChanges, TaskSpec, limits,
};
use waypost_testkit::{id, plan_of, task};

use crate::kit::{Desk, ada, agent, ask, at, done, failed, plan_id, skipped, system, work, worker};

fn checked(name: &str) -> TaskSpec {
    let mut spec = task(name, &[]);
    spec.check = Some(work());
    spec
}

fn evidence(passed: bool) -> Option<Box<Evidence>> {
    Some(Box::new(Evidence {
        passed,
        check: "shell".into(),
        worker: "host-1".into(),
        at: None,
        outcome: "it ended with exit code 1".into(),
        output: None,
        log_tail: Some("1 of 2 failed".into()),
        digest: "sha256:0".into(),
    }))
}

fn passes() -> Outcome {
    Outcome::Done { result: None, output: None, evidence: evidence(true) }
}

fn fails() -> Outcome {
    Outcome::Failed { error: "the check: exit code 1".into(), evidence: evidence(false) }
}

/// The agent claims the task.
fn take() -> Command {
    Command::StartTask { task: id("a"), worker: agent().to_string() }
}

/// Reports the result of a check as attempt `attempt`.
fn check(attempt: u32, outcome: Outcome, attempts: u32) -> Command {
    let retry = Some(Retry { attempts, backoff_seconds: 0, backoff_seconds_max: 0 });
    Command::FinishTask { task: id("a"), attempt: Some(attempt), outcome, retry }
}

/// A plan with one reported task `a` and one that depends on it.
fn reported() -> Desk {
    let mut desk = Desk::with(plan_of([checked("a"), task("after", &["a"])]));
    desk.asks(&agent(), take()).unwrap();
    let outcome = Outcome::Done { result: Some("fine".into()), output: Some(Json::of(&1)), evidence: None };
    let events = desk.asks(&agent(), ask::finish("a", outcome)).unwrap();
    assert!(matches!(events.as_slice(), [Event::TaskReported { .. }]), "{events:?}");
    desk
}

#[test]
fn done_is_only_reported_until_the_check_has_passed() {
    let mut desk = reported();
    let state = &desk.plan.task("a").unwrap().state;
    assert_eq!((state.status, &state.worker, &state.result), (Status::Pending, &None, &None));
    let report = state.reported().unwrap();
    assert_eq!((report.result.as_deref(), &report.by), (Some("fine"), &agent()));
    assert_eq!(desk.standings(), "a:reported after:blocked");
    assert_eq!(desk.plan.ready().count(), 1, "a run finds it");
    assert_eq!(desk.plan.claimable().count(), 0, "nobody else is offered it");

    desk.asks(&worker(), ask::start("a")).unwrap();
    assert!(desk.plan.task("a").unwrap().state.reported().is_some(), "it is what is being checked");
    desk.asks(&worker(), check(2, passes(), 1)).unwrap();
    let state = &desk.plan.task("a").unwrap().state;
    assert_eq!((state.result.as_deref(), &state.output), (Some("fine"), &Some(Json::of(&1))));
    assert_eq!((state.reported(), state.evidence().unwrap().at), (None, Some(at(0))));
    assert_eq!(desk.standings(), "a:done after:ready");
}

#[test]
fn nobody_but_a_machine_goes_on_with_a_reported_task() {
    let mut desk = reported();
    for by in [agent(), ada()] {
        for command in [ask::start("a"), ask::finish("a", done()), ask::finish("a", failed())] {
            let refusal = desk.asks(&by, command).unwrap_err();
            let expected = Refusal::AwaitsCheck { task: "a".into(), reported_by: "agent:planner".into() };
            assert_eq!(refusal, expected);
        }
    }
    assert!(matches!(desk.asks(&agent(), ask::finish("a", skipped())), Err(Refusal::AwaitsCheck { .. })));
    // While the check runs, a person's report does not count either.
    desk.asks(&worker(), ask::start("a")).unwrap();
    assert!(matches!(desk.refuses(ask::finish("a", done())), Refusal::AwaitsCheck { .. }));
}

#[test]
fn a_person_can_pass_over_cancel_or_retry_what_is_reported() {
    let mut desk = reported();
    desk.does(ask::finish("a", skipped()));
    assert_eq!(desk.standings(), "a:skipped after:ready");
    let mut desk = reported();
    desk.does(ask::cancel("a"));
    assert_eq!(desk.plan.task("a").unwrap().state.reported(), None);
    let mut desk = reported();
    desk.does(ask::retry("a"));
    assert_eq!(desk.standings(), "a:ready after:blocked");
    assert_eq!(desk.plan.task("a").unwrap().state.reported(), None, "it is to be done again");
}

#[test]
fn a_failed_check_sends_the_task_back_with_the_log_and_fails_it_at_last() {
    let mut desk = reported();
    for attempt in [2, 4] {
        desk.asks(&worker(), ask::start("a")).unwrap();
        desk.asks(&worker(), check(attempt, fails(), 3)).unwrap();
        assert_eq!(desk.standing("a"), EffectiveStatus::Ready);
        let state = &desk.plan.task("a").unwrap().state;
        assert_eq!(state.reported(), None);
        assert_eq!(state.evidence().unwrap().log_tail.as_deref(), Some("1 of 2 failed"));
        assert_eq!(state.error.as_deref(), Some("the check: exit code 1"));
        assert_eq!(desk.plan.claimable().count(), 1);
        desk.asks(&agent(), take()).unwrap();
        desk.asks(&agent(), ask::finish("a", done())).unwrap();
    }
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&worker(), check(6, fails(), 3)).unwrap();
    assert_eq!(desk.standings(), "a:failed after:skipped");
    assert_eq!(desk.plan.task("a").unwrap().state.tries, 3);
}

#[test]
fn a_check_that_could_not_be_made_leaves_the_report_as_it_is() {
    let mut desk = reported();
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&worker(), check(2, failed(), 3)).unwrap();
    assert_eq!(desk.standing("a"), EffectiveStatus::Reported);
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&system(), Command::LoseTask { task: id("a"), attempt: 3, retry: Some(three()) }).unwrap();
    assert_eq!(desk.standing("a"), EffectiveStatus::Reported);
}

#[test]
fn what_is_reported_once_more_is_checked_without_a_wait() {
    let mut desk = reported();
    desk.asks(&worker(), ask::start("a")).unwrap();
    let retry = Some(Retry { attempts: 3, backoff_seconds: 60, backoff_seconds_max: 60 });
    let command = Command::FinishTask { task: id("a"), attempt: Some(2), outcome: fails(), retry };
    desk.asks(&worker(), command).unwrap();
    desk.asks(&agent(), ask::finish("a", done())).unwrap();
    assert_eq!(desk.plan.waiting("a", desk.now), [BlockReason::Check]);
    desk.asks(&worker(), ask::start("a")).unwrap();
}

fn three() -> Retry {
    Retry { attempts: 3, backoff_seconds: 0, backoff_seconds_max: 0 }
}

#[test]
fn evidence_is_a_machines_and_says_what_the_outcome_says() {
    let mut desk = Desk::with(plan_of([checked("a"), task("free", &[])]));
    let why = |refusal: Refusal| match refusal {
        Refusal::NoEvidence { why, .. } => why,
        other => panic!("{other:?}"),
    };
    for by in [ada(), agent()] {
        let refusal = desk.asks(&by, ask::finish("a", passes())).unwrap_err();
        assert_eq!(why(refusal), "only a run of Waypost brings it");
    }
    let outcome = Outcome::Done { result: None, output: None, evidence: evidence(false) };
    desk.asks(&worker(), ask::start("a")).unwrap();
    let refusal = desk.asks(&worker(), check(1, outcome, 1)).unwrap_err();
    assert_eq!(why(refusal), "it contradicts the outcome");
    let refusal = desk.asks(&worker(), ask::finish("free", passes())).unwrap_err();
    assert_eq!(why(refusal), "the task has no check");
    desk.asks(&worker(), check(1, passes(), 1)).unwrap();
    assert_eq!(desk.status("a"), Status::Done, "work and check in one attempt");
}

#[test]
fn evidence_has_bounds() {
    let mut desk = Desk::with(plan_of([checked("a")]));
    desk.asks(&worker(), ask::start("a")).unwrap();
    let of = |change: &dyn Fn(&mut Evidence)| {
        let mut evidence = evidence(true);
        change(evidence.as_mut().unwrap());
        check(1, Outcome::Done { result: None, output: None, evidence }, 1)
    };
    let text = |bytes: usize| "x".repeat(bytes);
    let output = |bytes: usize| Some(Json::of(&text(bytes - 2)));
    let too_much = [
        of(&|evidence| evidence.log_tail = Some(text(limits::EVIDENCE_LOG_BYTES_MAX + 1))),
        of(&|evidence| evidence.output = output(limits::EVIDENCE_OUTPUT_BYTES_MAX + 1)),
        of(&|evidence| evidence.outcome = text(limits::LINE_BYTES_MAX + 1)),
    ];
    for command in too_much {
        assert!(matches!(desk.asks(&worker(), command), Err(Refusal::Invalid { .. })));
    }
    let most = of(&|evidence| {
        evidence.log_tail = Some(text(limits::EVIDENCE_LOG_BYTES_MAX));
        evidence.output = output(limits::EVIDENCE_OUTPUT_BYTES_MAX);
    });
    desk.asks(&worker(), most).unwrap();
}

#[test]
fn a_report_is_for_what_was_asked_then() {
    let mut desk = reported();
    let notes = TaskChanges { notes: Some("mind the gap".into()), ..TaskChanges::default() };
    desk.does(ask::revise("a", notes));
    assert_eq!(desk.standing("a"), EffectiveStatus::Reported);
    let other = TaskChanges { check: Some(None), ..TaskChanges::default() };
    desk.does(ask::revise("a", other));
    assert_eq!(desk.standing("a"), EffectiveStatus::Ready, "nobody would check it any more");
    desk.asks(&agent(), ask::finish("a", done())).unwrap();
    assert_eq!(desk.status("a"), Status::Done);
}

#[test]
fn a_draft_brings_no_proofs_along() {
    let desk = reported();
    let mut draft = desk.plan.to_draft();
    draft.tasks[0].state.status = Status::Done;
    let mut evidence = evidence(true);
    let aside = draft.tasks[0].state.aside.as_mut().unwrap();
    aside.evidence = evidence.take().map(|evidence| *evidence);
    let copy = Desk::made_by(&agent(), draft);
    let state = &copy.plan.task("a").unwrap().state;
    assert_eq!((state.status, state.evidence()), (Status::Pending, None));
    assert_eq!(state.reported().map(|report| report.by.clone()), Some(agent()), "it is to be checked here");
    assert_eq!(copy.status("after"), Status::Pending);
}

#[test]
fn what_is_kept_aside_survives_text_and_bytes() {
    let mut desk = reported();
    let again: waypost_core::Draft =
        serde_json::from_str(&serde_json::to_string(&desk.plan.to_draft()).unwrap()).unwrap();
    assert_eq!(again, desk.plan.to_draft());
    let json = serde_json::to_value(&desk.plan.task("a").unwrap().state).unwrap();
    assert_eq!(json["reported"]["result"], "fine");
    let bytes = desk.plan.snapshot().to_vec();
    let loaded = Plan::from_snapshot(bytes).unwrap();
    assert_eq!(loaded.effective_status("a"), Some(EffectiveStatus::Reported));
    assert_eq!(loaded.to_draft(), desk.plan.to_draft());
}

// Release

#[test]
fn whoever_gives_a_task_back_costs_it_no_attempt() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    desk.asks(&agent(), Command::StartTask { task: id("a"), worker: "agent:planner".into() }).unwrap();
    let release = |attempt| Command::ReleaseTask { task: id("a"), attempt, reason: "lunch".into() };
    let other = waypost_core::Actor::agent("other");
    assert!(matches!(desk.asks(&other, release(None)), Err(Refusal::AlreadyRunning { .. })));
    assert!(matches!(desk.asks(&other, release(Some(7))), Err(Refusal::StaleAttempt { .. })));
    desk.asks(&agent(), release(None)).unwrap();
    let state = &desk.plan.task("a").unwrap().state;
    assert_eq!((state.tries, state.attempt, state.not_before), (0, 1, None));
    assert_eq!((state.reason.as_deref(), &state.worker), (Some("lunch"), &None));
    desk.does(ask::start("a"));
    assert_eq!(desk.plan.task("a").unwrap().state.attempt, 2);
    assert_eq!(desk.plan.task("a").unwrap().state.reason, None);
    desk.does(release(None));
    assert!(matches!(desk.refuses(release(None)), Refusal::WrongStatus { .. }));
}

// Waits

#[test]
fn waits_between_attempts_differ_a_little_and_always_in_the_same_way() {
    let wait = |name: &str, seconds: u32, max: u32| {
        let mut spec = task(name, &[]);
        let (backoff_seconds, backoff_seconds_max) = (seconds, max);
        spec.retry = Some(Box::new(Retry { attempts: 9, backoff_seconds, backoff_seconds_max }));
        let mut desk = Desk::with(plan_of([spec]));
        desk.does(ask::start(name));
        desk.does(ask::finish(name, failed()));
        let again = desk.plan.task(name).unwrap().state.not_before.unwrap();
        again.as_micros() - at(0).as_micros()
    };
    assert_eq!(wait("a", 0, 10), 0);
    let names: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
    let waits: Vec<i64> = names.iter().map(|name| wait(name, 8, 6)).collect();
    assert!(waits.iter().all(|wait| (6_000_000..=7_500_000).contains(wait)), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait < 6_400_000) && waits.iter().any(|wait| *wait > 7_100_000));
    let again: Vec<i64> = names.iter().map(|name| wait(name, 8, 6)).collect();
    assert_eq!(waits, again);
}

// Reused ids

#[test]
fn the_number_of_an_attempt_never_means_two_even_when_a_name_comes_back() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    desk.does(ask::start("a"));
    desk.does(ask::finish("a", failed()));
    desk.does(ask::remove("a", false));
    desk.plan = Plan::from_snapshot(desk.plan.snapshot().to_vec()).unwrap();
    desk.does(Command::AddTasks { tasks: vec![task("a", &[])], place: Position::Last });
    desk.does(ask::start("a"));
    let late = Command::FinishTask { task: id("a"), attempt: Some(1), outcome: done(), retry: None };
    assert_eq!(
        desk.asks(&worker(), late).unwrap_err(),
        Refusal::StaleAttempt { task: "a".into(), given: 1, current: 2 }
    );
}

// Waived approval

#[test]
fn where_the_operator_asks_for_no_approval_an_agents_edit_does_not_either() {
    let machine = |name: &str| {
        let mut spec = task(name, &[]);
        spec.work = Some(work());
        spec
    };
    let add = || Command::AddTasks { tasks: vec![machine("new")], place: Position::Last };
    for (approval_required, voided) in [(Some(false), false), (None, true)] {
        let mut desk = Desk { plan: Plan::blank(plan_id()), now: at(0) };
        let draft = plan_of([task("a", &[])]).into();
        desk.does(Command::Create { draft, approval_required });
        desk.does(Command::Activate);
        let events = desk.asks(&agent(), add()).unwrap();
        assert_eq!(events.contains(&Event::ApprovalVoided {}), voided, "{approval_required:?}");
    }
    // After a rejection, approval is required from then on.
    let mut desk = Desk { plan: Plan::blank(plan_id()), now: at(0) };
    let draft = plan_of([task("a", &[])]).into();
    desk.does(Command::Create { draft, approval_required: Some(false) });
    desk.does(Command::Reject { reason: "too bold".into() });
    let version = desk.plan.version();
    desk.does(Command::Approve { version, note: String::new(), work: None });
    let events = desk.asks(&agent(), add()).unwrap();
    assert!(events.contains(&Event::ApprovalVoided {}));
}
