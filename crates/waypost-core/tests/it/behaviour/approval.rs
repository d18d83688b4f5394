//! Approvals and stops by people.

use waypost_core::{ApprovalKind, ApprovedWork, Proof, StartRefusal, StartRefusalReason, limits};

use super::*;

fn agents_plan() -> Desk {
    Desk::made_by(&agent(), plan_of([by_machine("a", &[]), task("b", &["a"])]))
}

#[test]
fn an_agents_plan_with_work_for_machines_runs_nothing_until_a_person_approves() {
    let mut desk = agents_plan();
    assert_eq!(desk.refuses(Command::Activate), Refusal::NeedsApproval { rejection: String::new() });
    assert_eq!(
        desk.asks(&worker(), ask::start("a")).unwrap_err(),
        Refusal::NeedsApproval { rejection: String::new() }
    );
    assert_eq!(desk.plan.waiting("a", desk.now), [BlockReason::Approval]);
    for by in [agent(), worker(), system()] {
        let only_a_person = Refusal::OnlyAPerson { what: "approve a plan", by: by.clone() };
        assert_eq!(desk.asks(&by, approve(&desk)).unwrap_err(), only_a_person);
    }
    desk.does(approve(&desk));
    let approval = desk.plan.state().approval.clone().unwrap();
    assert_eq!(approval, Approval { by: ada(), at: desk.now, version: 1, note: "fine".into(), work: None });
    desk.asks(&worker(), ask::start("a")).unwrap();
}

#[test]
fn an_agents_plan_without_work_for_machines_and_a_persons_plan_need_no_approval() {
    let mut desk = Desk::made_by(&agent(), plan_of([task("a", &[])]));
    desk.asks(&agent(), ask::start("a")).unwrap();
    let mut desk = Desk::made_by(&ada(), plan_of([by_machine("a", &[])]));
    desk.asks(&worker(), ask::start("a")).unwrap();
}

#[test]
fn a_draft_cannot_bring_its_own_approval() {
    let mut draft = plan_of([by_machine("a", &[])]);
    draft.state.phase = Phase::Active;
    draft.state.approval =
        Some(Approval { by: ada(), at: at(0), version: 0, note: String::new(), work: None });
    draft.state.approval_required = false;
    let mut desk = Desk::made_by(&agent(), draft);
    assert_eq!(desk.plan.state().approval, None);
    assert_eq!(
        desk.asks(&worker(), ask::start("a")).unwrap_err(),
        Refusal::NeedsApproval { rejection: String::new() }
    );
}

#[test]
fn approval_is_of_the_version_that_was_looked_at() {
    let mut desk = agents_plan();
    let looked_at = approve(&desk);
    desk.asks(&agent(), ask::revise("a", TaskChanges { notes: Some("!".into()), ..TaskChanges::default() }))
        .unwrap();
    assert_eq!(desk.refuses(looked_at), Refusal::NotWhatWasLookedAt { looked_at: 1, current: 2 });
}

fn approve_digest(desk: &Desk, digest: &str) -> Command {
    let work = ApprovedWork {
        digest: digest.to_owned(),
        definitions: waypost_core::Json::empty_object(),
        proof: Proof::Presence,
        via: "terminal".to_owned(),
        kind: ApprovalKind::Explicit,
        attestation: None,
        gates: Vec::new(),
        as_of: None,
    };
    Command::Approve { version: desk.plan.version(), note: String::new(), work: Some(Box::new(work)) }
}

fn refusal(worker: &str, digest: &str) -> StartRefusal {
    StartRefusal {
        worker: worker.to_owned(),
        reason: StartRefusalReason::DigestMismatch,
        digest: digest.to_owned(),
        differences: (0..=limits::REFUSAL_DIFFERENCES_MAX).map(|number| number.to_string()).collect(),
    }
}

fn digest(desk: &Desk) -> Option<String> {
    Some(desk.plan.state().approval.as_ref()?.work.as_ref()?.digest.clone())
}

#[test]
fn a_running_plan_is_approved_again_for_another_digest_only() {
    let mut desk = agents_plan();
    desk.does(approve_digest(&desk, "sha256:1"));
    let again = desk.asks(&ada(), approve_digest(&desk, "sha256:1")).unwrap();
    assert_eq!(again, [], "the same digest changes nothing");
    desk.does(approve_digest(&desk, "sha256:2"));
    assert_eq!((digest(&desk), desk.plan.state().phase), (Some("sha256:2".to_owned()), Phase::Active));
    desk.does(Command::Pause { reason: String::new() });
    desk.does(approve_digest(&desk, "sha256:3"));
    assert_eq!(desk.plan.state().phase, Phase::Paused, "an approval does not resume");
    assert!(matches!(
        desk.asks(&agent(), approve_digest(&desk, "sha256:4")),
        Err(Refusal::OnlyAPerson { .. })
    ));
}

#[test]
fn a_workers_refusal_is_recorded_once_and_holds_until_it_starts_or_a_person_approves() {
    let mut desk = agents_plan();
    desk.does(approve_digest(&desk, "sha256:1"));
    let refuse = |worker: &str, digest: &str| Command::RefuseStart(Box::new(refusal(worker, digest)));
    let events = desk.asks(&worker(), refuse("w1", "sha256:2")).unwrap();
    assert!(matches!(&events[..], [Event::StartRefused { .. }]), "{events:?}");
    let known = &desk.plan.state().start_refusals;
    assert_eq!(known[0].differences.len(), limits::REFUSAL_DIFFERENCES_MAX);
    desk.asks(&worker(), Command::RefuseStart(Box::new(known[0].clone()))).unwrap();
    assert_eq!(desk.plan.version(), 3, "it is recorded once");
    desk.asks(&worker(), refuse("w1", "sha256:3")).unwrap();
    assert_eq!(desk.plan.state().start_refusals.len(), 1, "the latest of each worker counts");
    for number in 0..=limits::START_REFUSALS_MAX {
        desk.asks(&worker(), refuse(&format!("v{number}"), "sha256:2")).unwrap();
    }
    let known = &desk.plan.state().start_refusals;
    assert_eq!((known.len(), known[0].worker.as_str()), (limits::START_REFUSALS_MAX, "v1"));
    desk.does(approve_digest(&desk, "sha256:2"));
    assert_eq!(desk.plan.state().start_refusals, []);
    let of_worker = refusal("host-1", "sha256:4");
    desk.asks(&worker(), Command::RefuseStart(Box::new(of_worker))).unwrap();
    desk.asks(&worker(), ask::start("a")).unwrap();
    assert_eq!(desk.plan.state().start_refusals, [], "a worker that starts a task no longer refuses");
    let mut desk = agents_plan();
    desk.does(approve_digest(&desk, "sha256:1"));
    desk.asks(&worker(), ask::queue("a")).unwrap();
    desk.asks(&worker(), refuse("host-1", "sha256:5")).unwrap();
    let started = Command::RecordStart { task: id("a"), attempt: 1, started_at: at(9) };
    desk.asks(&worker(), started).unwrap();
    assert_eq!(desk.plan.state().start_refusals.len(), 1, "the start was reserved before the refusal");
    assert!(matches!(
        agents_plan().asks(&worker(), refuse("w1", "sha256:2")),
        Err(Refusal::WrongPhase { .. })
    ));
}

#[test]
fn a_rejected_plan_runs_nothing_even_if_nobody_had_to_be_asked() {
    let mut desk = Desk::made_by(&ada(), plan_of([by_machine("a", &[])]));
    desk.does(Command::Reject { reason: "too bold".into() });
    let refused = desk.asks(&worker(), ask::start("a")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the plan needs a person's approval before anything runs; person:ada rejected it (\"too bold\")"
    );
    assert_eq!(desk.plan.state().reason, "too bold");
    let words = TaskChanges { description: Some("less bold".into()), ..TaskChanges::default() };
    desk.asks(&agent(), ask::revise("a", words)).unwrap();
    desk.asks(&agent(), Command::RequestApproval { message: "better now".into() }).unwrap();
    desk.does(approve(&desk));
}

#[test]
fn changing_what_machines_run_after_approval_asks_again() {
    let voids = |by: &Actor, command: Command| {
        let mut desk = agents_plan();
        desk.does(approve(&desk));
        let events = desk.asks(by, command).unwrap();
        assert_eq!(
            events.contains(&Event::ApprovalVoided {}),
            desk.plan.state().phase == Phase::AwaitingApproval
        );
        desk.plan.state().approval.is_none()
    };
    let other = TaskChanges {
        work: Some(Some(waypost_core::Work { executor: "other".into(), ..*work() })),
        ..TaskChanges::default()
    };
    let depends_on = TaskChanges { depends_on: Some(Vec::new()), ..TaskChanges::default() };
    let words = TaskChanges { description: Some("!".into()), ..TaskChanges::default() };
    let notes = TaskChanges { notes: Some("!".into()), ..TaskChanges::default() };
    let provides = TaskChanges { provides: Some(Some("!".into())), ..TaskChanges::default() };
    let renamed = || PlanChanges { title: Some("!".into()), ..PlanChanges::default() };
    let status = PlanChanges { status: Some("!".into()), ..PlanChanges::default() };
    assert!(voids(&agent(), ask::revise("a", other.clone())));
    assert!(voids(&ada(), ask::revise("a", other)), "the person who approved sees what it is now");
    assert!(voids(&agent(), add(vec![by_machine("c", &[])])));
    assert!(voids(&agent(), ask::remove("a", true)));
    assert!(
        voids(&agent(), ask::revise("a", words.clone())),
        "whoever does the work is told the description"
    );
    assert!(voids(&agent(), ask::revise("a", notes)), "and the notes");
    assert!(voids(&agent(), Command::RevisePlan(Box::new(renamed()))), "and what the plan is about");
    assert!(voids(&agent(), ask::revise("a", provides)), "and the name of what it gives to others");
    let retry = Retry { attempts: 50, backoff_seconds: 0, backoff_seconds_max: 0 };
    let retry = TaskChanges { retry: Some(Some(retry)), ..TaskChanges::default() };
    assert!(voids(&agent(), ask::revise("a", retry)));
    let timeout = TaskChanges { timeout_seconds: Some(Some(1)), ..TaskChanges::default() };
    assert!(voids(&agent(), ask::revise("a", timeout)));
    let inputs = |number: &str| {
        let inputs = waypost_core::Json::parse(&format!(r#"{{"number":{number}}}"#)).unwrap();
        let work = waypost_core::Work { inputs, ..*work() };
        ask::revise("a", TaskChanges { work: Some(Some(work)), ..TaskChanges::default() })
    };
    let mut desk = agents_plan();
    desk.asks(&agent(), inputs("9007199254740992")).unwrap();
    desk.does(approve(&desk));
    desk.asks(&agent(), inputs("9007199254740993")).unwrap();
    assert_eq!(desk.plan.state().approval, None, "two numbers that are one as a double");
    let queue = PlanChanges { queue: Some("gpu".into()), ..PlanChanges::default() };
    assert!(voids(&agent(), Command::RevisePlan(Box::new(queue))));
    let priority = TaskChanges { priority: Some(9), ..TaskChanges::default() };
    assert!(!voids(&agent(), ask::revise("a", priority)));
    assert!(!voids(&agent(), ask::revise("b", words)), "no machine is told of b");
    assert!(!voids(&agent(), Command::RevisePlan(Box::new(status))));
    assert!(!voids(&agent(), ask::revise("b", depends_on)), "no machine runs b");
    assert!(!voids(&agent(), add(vec![task("c", &[])])));
}

fn is_stopped(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::StoppedByPerson { by, .. } if by == "person:ada")
}

#[test]
fn what_a_person_paused_or_archived_only_a_person_resumes_or_restores() {
    for by in [agent(), worker()] {
        let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
        desk.asks(&by, ask::start("a")).unwrap();
        desk.does(Command::Pause { reason: "wrong database".into() });
        let refusal = desk.asks(&by, Command::Resume).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "person:ada paused the plan (\"wrong database\"); only a person can resume it"
        );
        // A stop by an agent does not remove the person's stop.
        desk.asks(&by, Command::FinishPlan { phase: Phase::Cancelled, summary: String::new() }).unwrap();
        for undo in [Command::RetryPlan, ask::retry("a"), add(vec![task("c", &[])])] {
            assert!(is_stopped(&desk.asks(&by, undo).unwrap_err()));
        }
        desk.does(Command::Archive);
        assert!(is_stopped(&desk.asks(&by, Command::Unarchive).unwrap_err()));
        desk.does(Command::Unarchive);
        desk.does(Command::RetryPlan);
        desk.asks(&by, Command::Pause { reason: String::new() }).unwrap();
        desk.asks(&by, Command::Resume).unwrap();
    }
}

#[test]
fn what_a_person_cancelled_only_a_person_retries() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    desk.asks(&agent(), ask::start("b")).unwrap();
    desk.does(ask::cancel("a"));
    assert!(is_stopped(&desk.asks(&agent(), ask::retry("a")).unwrap_err()));
    let mut draft = desk.plan.to_draft();
    draft.tasks[0].spec.description = "the same in other words".into();
    assert!(is_stopped(&desk.asks(&agent(), Command::Replace(Box::new(draft))).unwrap_err()));
    desk.does(ask::retry("a"));
    desk.asks(&agent(), ask::cancel("a")).unwrap();
    desk.asks(&agent(), ask::retry("a")).unwrap();
}

#[test]
fn nobody_is_told_to_undo_what_only_a_person_can() {
    let stopped = || {
        let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
        desk.does(Command::Activate);
        desk
    };
    let cancelled = || Command::FinishPlan { phase: Phase::Cancelled, summary: String::new() };
    let stops = [
        (Command::Pause { reason: String::new() }, "resume it first", "only a person can resume it: ask ada"),
        (Command::Archive, "unarchive it first", "only a person can restore it: ask ada"),
        (ask::cancel("a"), "retry it to run it again", "only a person can run it again: ask ada"),
        (cancelled(), "retry it to run it again", "only a person can run it again: ask ada"),
    ];
    for (stop, next_of_person, next_of_agent) in stops {
        let mut desk = stopped();
        desk.does(stop.clone());
        assert_eq!(desk.refuses(ask::start("a")).hint(), next_of_person, "{stop:?}");
        assert_eq!(desk.asks(&agent(), ask::start("a")).unwrap_err().hint(), next_of_agent, "{stop:?}");
        let mut desk = stopped();
        desk.asks(&agent(), stop.clone()).unwrap();
        let hint = desk.asks(&agent(), ask::start("a")).unwrap_err().hint();
        assert_eq!(hint, next_of_person, "an agent's own stop: {stop:?}");
    }
    let hint = stopped().asks(&agent(), ask::retry("a")).unwrap_err().hint();
    assert_eq!(hint, "it has not ended, so it needs no retry");
}

#[test]
fn a_queued_task_is_not_said_to_run() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[]), by_machine("b", &[])]));
    desk.does(Command::Activate);
    desk.asks(&worker(), ask::queue("a")).unwrap();
    let depends_on = vec![Dependency::Task(id("b"))];
    let revise = TaskChanges { depends_on: Some(depends_on), ..TaskChanges::default() };
    let refusals = [ask::retry("a"), ask::remove("a", true), ask::revise("a", revise)]
        .map(|command| desk.refuses(command).to_string());
    let expected = [
        "task a is queued, and so cannot be retried",
        "task a is still in progress",
        "task a is queued, and so cannot be given other work or dependencies",
    ];
    assert_eq!(refusals, expected);
}

#[test]
fn a_person_makes_an_agents_stop_their_own() {
    let stops: [(Command, Command); 3] = [
        (Command::Pause { reason: String::new() }, Command::Resume),
        (Command::FinishPlan { phase: Phase::Cancelled, summary: String::new() }, Command::RetryPlan),
        (Command::Archive, Command::Unarchive),
    ];
    for (stop, undo) in stops {
        let mut desk = Desk::with(plan_of([task("a", &[])]));
        desk.does(Command::Activate);
        desk.asks(&agent(), stop.clone()).unwrap();
        desk.does(stop.clone());
        assert!(is_stopped(&desk.asks(&agent(), undo.clone()).unwrap_err()), "{undo:?}");
        assert_eq!(desk.does(stop), [], "it is theirs already");
        desk.does(undo);
    }
}

#[test]
fn a_plan_that_a_person_ended_is_not_reopened_by_an_agent() {
    for phase in [Phase::Completed, Phase::Failed, Phase::Cancelled] {
        let mut desk = Desk::with(plan_of([task("a", &[])]));
        desk.does(Command::FinishPlan { phase, summary: "stop this".into() });
        for undo in [Command::RetryPlan, ask::retry("a"), add(vec![task("c", &[])])] {
            assert!(is_stopped(&desk.asks(&agent(), undo).unwrap_err()), "{phase:?}");
        }
        desk.does(add(vec![task("c", &[])]));
    }
}

#[test]
fn what_a_person_cancelled_or_skipped_cannot_be_worked_around() {
    for stop in [ask::cancel("a"), ask::finish("a", skipped())] {
        let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
        desk.does(Command::Activate);
        desk.does(stop);
        let moved = Command::MoveTask { task: id("b"), parent: Some(Some(id("a"))), place: Position::Last };
        for undo in [ask::retry("a"), add(vec![child("c", "a", &[])]), ask::remove("a", false), moved] {
            assert!(is_stopped(&desk.asks(&agent(), undo.clone()).unwrap_err()), "{undo:?}");
        }
        desk.does(ask::remove("a", false));
    }
}

#[test]
fn a_persons_pause_holds_while_the_approval_is_void() {
    let mut desk = agents_plan();
    desk.does(approve(&desk));
    desk.does(Command::Pause { reason: "freeze".into() });
    desk.asks(&agent(), add(vec![by_machine("c", &[])])).unwrap();
    assert_eq!((desk.plan.state().phase, &desk.plan.state().approval), (Phase::Paused, &None));
    assert!(is_stopped(&desk.asks(&agent(), Command::Resume).unwrap_err()));
    desk.does(Command::Resume);
    assert_eq!(desk.plan.state().phase, Phase::Draft);
    assert_eq!(
        desk.asks(&worker(), ask::start("a")).unwrap_err(),
        Refusal::NeedsApproval { rejection: String::new() }
    );
}

#[test]
fn an_agent_does_not_rerun_machine_work_by_cancelling_it() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[]), by_machine("b", &[])]));
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&agent(), ask::cancel("a")).unwrap();
    let refusal = desk.asks(&agent(), ask::retry("a")).unwrap_err();
    assert!(matches!(refusal, Refusal::OnlyAPerson { .. }), "{refusal}");
    desk.asks(&agent(), ask::cancel("b")).unwrap();
    desk.asks(&agent(), ask::retry("b")).unwrap();
}

#[test]
fn the_name_under_which_work_receives_an_output_is_approved() {
    let named = |name: &str| {
        let changes = TaskChanges { provides: Some(Some(name.into())), ..TaskChanges::default() };
        ask::revise("h", changes)
    };
    for (waits, is_void) in [(by_machine("go", &["h"]), true), (task("go", &["h"]), false)] {
        let draft = plan_of([by_machine("build", &[]), task("h", &[]), waits]);
        let mut desk = Desk::made_by(&agent(), draft);
        desk.does(approve(&desk));
        desk.asks(&agent(), named("build")).unwrap();
        assert_eq!(desk.plan.state().approval.is_none(), is_void);
    }
}

#[test]
fn an_agent_does_not_repeat_attempts_of_machine_work_that_asks_or_waits() {
    let limited = |attempts: u32| TaskSpec {
        retry: Some(Box::new(Retry { attempts, backoff_seconds: 60, backoff_seconds_max: 60 })),
        ..by_machine("a", &[])
    };
    for attempts in [1, 2] {
        let mut desk = Desk::with(plan_of([limited(attempts), task("z", &[])]));
        for attempt in 1..=attempts {
            desk.asks(&worker(), ask::start("a")).unwrap();
            desk.asks(&worker(), ask::question("a", &[])).unwrap();
            let again = desk.asks(&agent(), ask::retry("a"));
            assert_eq!(again.is_ok(), attempt < attempts, "{attempt} of {attempts}: {again:?}");
        }
        assert_eq!(desk.standing("a"), EffectiveStatus::Asking, "the person still sees the question");
        desk.does(ask::answer("a", "yes"));
        desk.asks(&worker(), ask::start("a")).unwrap();
    }
    // What waits for its next attempt is retried by itself, and its failure counts.
    let mut desk = Desk::with(plan_of([limited(2), task("z", &[])]));
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&worker(), ask::finish("a", failed())).unwrap();
    assert_eq!(desk.asks(&agent(), ask::retry("a")), Ok(Vec::new()));
    assert_eq!(desk.plan.task("a").unwrap().state.tries, 1);
    desk.now = at(1_000);
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&worker(), ask::question("a", &[])).unwrap();
    assert!(matches!(desk.asks(&agent(), ask::retry("a")), Err(Refusal::OnlyAPerson { .. })));
    desk.does(ask::retry("a"));
}

#[test]
fn what_was_rejected_stays_so_when_an_edit_is_taken_back_and_the_oldest_is_forgotten() {
    let mut desk = agents_plan();
    let notes = |number: usize| TaskChanges { notes: Some(number.to_string()), ..TaskChanges::default() };
    let request = || Command::RequestApproval { message: String::new() };
    for number in 0..=limits::REJECTIONS_MAX {
        desk.asks(&agent(), ask::revise("a", notes(number))).unwrap();
        desk.does(Command::Reject { reason: "too bold".into() });
    }
    assert_eq!(desk.plan.state().rejections.len(), limits::REJECTIONS_MAX);
    desk.asks(&agent(), ask::revise("a", notes(1))).unwrap();
    assert_eq!(desk.plan.rejected_by(), Some(&ada()));
    assert!(matches!(desk.asks(&agent(), request()), Err(Refusal::StoppedByPerson { .. })));
    desk.asks(&agent(), ask::revise("a", notes(0))).unwrap();
    assert_eq!(desk.plan.rejected_by(), None, "the oldest is forgotten");
    // A person who changes their mind has the last word.
    desk.asks(&agent(), ask::revise("a", notes(2))).unwrap();
    desk.does(approve(&desk));
    assert_eq!(desk.plan.state().rejections.len(), limits::REJECTIONS_MAX - 1);
}

#[test]
fn what_a_person_rejected_is_asked_about_again_only_once_it_has_changed() {
    for (draft, edit) in [
        (plan_of([by_machine("a", &[])]), add(vec![by_machine("c", &[])])),
        (plan_of([task("a", &[])]), add(vec![task("c", &[])])),
    ] {
        let mut desk = Desk::made_by(&agent(), draft);
        let ask_again = || Command::RequestApproval { message: "please".into() };
        desk.does(Command::Reject { reason: "too bold".into() });
        assert!(is_stopped(&desk.asks(&agent(), ask_again()).unwrap_err()));
        desk.asks(&agent(), edit).unwrap();
        desk.asks(&agent(), ask_again()).unwrap();
        desk.does(approve(&desk));
    }
}

#[test]
fn machine_work_that_has_ended_runs_again_only_by_a_person() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[]), by_machine("b", &[]), by_machine("c", &[])]));
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&worker(), ask::finish("a", done())).unwrap();
    desk.asks(&worker(), ask::start("b")).unwrap();
    desk.asks(&worker(), ask::finish("b", failed())).unwrap();
    for task in ["a", "b"] {
        let refusal = desk.asks(&agent(), ask::retry(task)).unwrap_err();
        assert!(matches!(refusal, Refusal::OnlyAPerson { .. }), "{refusal}");
    }
    // A worker cannot end a task that no worker has started.
    for outcome in [done(), failed(), Outcome::Skipped { reason: None }] {
        let refusal = desk.asks(&worker(), ask::finish("c", outcome)).unwrap_err();
        assert!(matches!(refusal, Refusal::WrongStatus { .. }), "{refusal}");
    }
    desk.does(ask::retry("a"));
}

#[test]
fn an_agent_that_gives_machines_work_in_a_persons_plan_asks() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[])]));
    desk.does(add(vec![by_machine("b", &[])]));
    assert_eq!(desk.plan.state().phase, Phase::Active, "the person is the one who would be asked");
    desk.asks(&agent(), add(vec![by_machine("c", &[])])).unwrap();
    assert_eq!(desk.plan.state().phase, Phase::AwaitingApproval);
    assert_eq!(
        desk.asks(&worker(), ask::start("a")).unwrap_err(),
        Refusal::NeedsApproval { rejection: String::new() }
    );
    desk.does(approve(&desk));
    desk.asks(&worker(), ask::start("a")).unwrap();
}

#[test]
fn what_runs_goes_on_while_a_person_is_asked_again_and_the_plan_ends_after_it() {
    let mut desk = agents_plan();
    desk.does(approve(&desk));
    desk.asks(&worker(), ask::start("a")).unwrap();
    desk.asks(&agent(), add(vec![by_machine("c", &[])])).unwrap();
    desk.asks(&worker(), ask::finish("a", done())).unwrap();
    assert_eq!(desk.standings(), "a:done b:ready c:ready");
    assert_eq!(
        desk.asks(&agent(), ask::start("b")).unwrap_err(),
        Refusal::NeedsApproval { rejection: String::new() }
    );
}

fn own(desk: &Desk, digest: &str) -> Command {
    let Command::Approve { version, note, work: Some(mut work) } = approve_digest(desk, digest) else {
        panic!("an approval");
    };
    work.kind = ApprovalKind::Own;
    Command::Approve { version, note, work: Some(work) }
}

#[test]
fn a_persons_own_plan_starts_with_a_record_that_no_agent_can_use() {
    let mut desk = Desk::made_by(&ada(), plan_of([by_machine("a", &[]), task("b", &[])]));
    desk.does(own(&desk, "sha256:1"));
    assert_eq!(desk.plan.state().phase, Phase::Active);
    let notes = |text: &str| TaskChanges { notes: Some(text.into()), ..TaskChanges::default() };
    desk.does(ask::revise("a", notes("!")));
    assert!(desk.plan.state().approval.is_some(), "a person's edit voids nothing; the digest no longer fits");
    assert!(!desk.plan.state().approval_required);
    desk.does(own(&desk, "sha256:2"));
    assert_eq!(digest(&desk), Some("sha256:2".to_owned()));
    desk.asks(&agent(), ask::revise("a", notes("?"))).unwrap();
    let state = desk.plan.state();
    assert_eq!((state.phase, state.approval_required), (Phase::AwaitingApproval, true));
    assert_eq!(state.approval, None);
    assert_eq!(desk.refuses(own(&desk, "sha256:3")), Refusal::NeedsApproval { rejection: String::new() });
    desk.does(approve_digest(&desk, "sha256:3"));
}

#[test]
fn a_person_revokes_an_approval() {
    let mut desk = agents_plan();
    desk.does(approve_digest(&desk, "sha256:1"));
    assert!(matches!(desk.asks(&agent(), Command::Revoke), Err(Refusal::OnlyAPerson { .. })));
    desk.does(Command::Revoke);
    let state = desk.plan.state();
    assert_eq!((state.phase, &state.approval), (Phase::AwaitingApproval, &None));
    assert!(matches!(desk.asks(&ada(), Command::Revoke), Err(Refusal::WrongPhase { .. })));
}
