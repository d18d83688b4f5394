//! The scheduler as data in and data out.

use waypost_config::SealRule;
use waypost_core::{
    Actor, ApprovedWork, Command, Json, Phase, Position, Retry, Status, TaskSpec, Timestamp, Work,
};
use waypost_run::{Action, AfterFailure, AttemptKey, AttemptOutcome, Control, Force, Idleness, Input};
use waypost_service::start_refusal_text;
use waypost_testkit::{id, plan_of};

use crate::world::{Fate, World, config, job};

fn world(concurrency: u32, tasks: impl IntoIterator<Item = TaskSpec>) -> World {
    let mut world = World::new(config(concurrency), plan_of(tasks));
    world.settle();
    world
}

fn with_executor(mut spec: TaskSpec, executor: &str) -> TaskSpec {
    spec.work =
        Some(Box::new(Work { executor: executor.to_owned(), inputs: Json::empty_object(), shape: None }));
    spec
}

fn cancel(task: &str) -> Command {
    Command::CancelTask { task: id(task), reason: "no".to_owned() }
}

#[test]
fn three_edits_overlap_and_verify_comes_after_all_of_them() {
    let edits = ["a", "b", "c"].map(|name| job(name, &[], &[name]));
    let mut world = world(4, edits.into_iter().chain([job("verify", &["a", "b", "c"], &[])]));
    assert_eq!(world.running(), ["a", "b", "c"]);
    world.done("a");
    world.done("c");
    assert_eq!(world.running(), ["b"]);
    world.done("b");
    assert_eq!(world.running(), ["verify"]);
    world.done("verify");
    assert_eq!((world.truth.state().phase, world.rest()), (Phase::Completed, Idleness::Over));
}

#[test]
fn a_finish_and_the_starts_that_follow_are_one_version() {
    let mut world = world(4, [job("a", &[], &[]), job("b", &["a"], &[]), job("c", &["a"], &[])]);
    let (version, writes) = (world.truth.version(), world.writes);
    world.done("a");
    assert_eq!(world.running(), ["b", "c"]);
    assert_eq!((world.truth.version(), world.writes), (version + 1, writes + 1));
}

#[test]
fn tasks_with_a_common_lock_never_overlap() {
    let mut world = world(4, ["a", "b", "c"].map(|name| job(name, &[], &["x"])));
    for task in ["a", "b", "c"] {
        assert_eq!(world.running(), [task]);
        world.done(task);
    }
    assert_eq!(world.truth.state().phase, Phase::Completed);
}

#[test]
fn a_task_that_needs_two_locks_is_not_starved() {
    let small = (0..20).map(|number| {
        let name = format!("s{number:02}");
        let lock = if number % 2 == 0 { "x" } else { "y" };
        (name, lock)
    });
    let mut tasks: Vec<TaskSpec> = small.map(|(name, lock)| job(&name, &[], &[lock])).collect();
    tasks.insert(2, job("both", &[], &["x", "y"]));
    let mut world = world(4, tasks);
    let mut turns = 0;
    while !world.order.contains(&"both".to_owned()) {
        // The two locks are never free at the same time unless somebody keeps newcomers out.
        let first = world.running().first().map(ToString::to_string).unwrap();
        world.pass(6);
        world.done(&first);
        turns += 1;
        assert!(turns < 10, "both waits for ever: {:?}", world.order);
    }
    while world.truth.state().phase != Phase::Completed {
        let first = world.running().first().map(ToString::to_string).unwrap();
        world.done(&first);
    }
}

#[test]
fn a_queue_runs_no_more_than_it_may_and_the_urgent_go_first() {
    let mut urgent = job("urgent", &[], &[]);
    urgent.priority = 5;
    let mut world = world(2, [job("a", &[], &[]), job("b", &[], &[]), job("c", &[], &[]), urgent]);
    assert_eq!(world.order, ["urgent", "a"]);
    world.done("a");
    world.done("urgent");
    assert_eq!(world.order, ["urgent", "a", "b", "c"]);
}

#[test]
fn a_failure_is_tried_again_after_its_wait_and_then_is_final() {
    let mut flaky = job("flaky", &[], &[]);
    flaky.retry = Some(Box::new(Retry { attempts: 2, backoff_seconds: 30, backoff_seconds_max: 60 }));
    let mut world = world(2, [flaky, job("after", &["flaky"], &[]), job("beside", &[], &[])]);
    world.fails("flaky");
    assert_eq!(world.running(), ["beside"]);
    assert_eq!(world.rest(), Idleness::Busy);
    world.pass(29);
    assert_eq!(world.running(), ["beside"]);
    // A wait is longer by up to a quarter.
    world.pass(9);
    assert_eq!(world.running(), ["beside", "flaky"]);
    world.fails("flaky");
    assert_eq!((world.status("flaky"), world.status("after")), (Status::Failed, Status::Skipped));
    world.done("beside");
    assert_eq!((world.truth.state().phase, world.rest()), (Phase::Failed, Idleness::Over));
}

#[test]
fn a_worker_that_asks_to_be_tried_again_is() {
    let mut world = world(1, [job("a", &[], &[])]);
    world.ends("a", AttemptOutcome::TryAgain { error: "busy".to_owned() });
    world.settle();
    assert_eq!(world.status("a"), Status::Pending);
    world.pass(3);
    assert_eq!(world.running(), ["a"]);
}

#[test]
fn what_takes_too_long_is_asked_to_end_then_killed_and_has_failed() {
    let mut slow = job("slow", &[], &[]);
    slow.timeout_seconds = Some(10);
    let mut world = world(1, [slow]);
    world.pass(9);
    assert_eq!(world.programs.values().next(), Some(&None));
    world.pass(1);
    assert_eq!(world.programs.values().next(), Some(&Some(Force::Ask)));
    world.pass(5);
    assert_eq!(world.programs.values().next(), Some(&Some(Force::Kill)));
    world.fails("slow");
    assert_eq!(world.status("slow"), Status::Failed);
    let error = world.truth.task("slow").unwrap().state.error.clone();
    assert_eq!(error.as_deref(), Some("it took longer than 10 s and was stopped"));
}

#[test]
fn a_cancelled_task_is_stopped_stays_cancelled_and_keeps_its_lock_until_it_has_ended() {
    let mut world = world(2, [job("a", &[], &["x"]), job("b", &[], &["x"])]);
    world.person(cancel("a")).unwrap();
    world.look();
    world.settle();
    assert_eq!(world.programs.values().next(), Some(&Some(Force::Ask)));
    assert_eq!(world.running(), ["a"], "b waits for the lock that a's program may still use");
    world.fails("a");
    assert_eq!((world.status("a"), world.running()), (Status::Cancelled, vec!["b"]));
}

#[test]
fn a_paused_plan_starts_nothing_new() {
    let mut world = world(1, [job("a", &[], &[]), job("b", &[], &[])]);
    world.person(Command::Pause { reason: String::new() }).unwrap();
    world.look();
    world.done("a");
    assert!(world.running().is_empty());
    assert_eq!((world.status("a"), world.rest()), (Status::Done, Idleness::Waiting));
    world.person(Command::Resume).unwrap();
    world.look();
    world.settle();
    assert_eq!(world.running(), ["b"]);
}

#[test]
fn a_held_task_does_not_start_and_what_runs_goes_on() {
    let mut world = world(2, [job("a", &[], &[]), job("b", &["a"], &[]), job("c", &["a"], &[])]);
    for task in ["a", "b"] {
        world.person(Command::HoldTask { task: id(task), reason: String::new() }).unwrap();
    }
    world.look();
    world.done("a");
    assert_eq!((world.status("a"), world.running()), (Status::Done, vec!["c"]));
    world.person(Command::UnholdTask { task: id("b") }).unwrap();
    world.look();
    world.settle();
    assert_eq!(world.running(), ["b", "c"]);
}

/// Replaces the approval of a plan, and returns why the worker starts nothing when `a` has ended.
fn refusal_after_a(change: impl FnOnce(&mut Option<Box<ApprovedWork>>, Timestamp)) -> (World, String) {
    // The records of these tests are not sealed again.
    let mut config = config(1);
    config.approval.seal = SealRule::Off;
    let mut world = World::new(config, plan_of([job("a", &[], &[]), job("b", &["a"], &[])]));
    world.settle();
    assert_eq!(world.running(), ["a"]);
    let mut work = world.truth.state().approval.clone().unwrap().work;
    change(&mut work, world.now);
    let approve = Command::Approve { version: world.truth.version(), note: String::new(), work };
    world.commit(&Actor::person("ada"), &[approve]).unwrap();
    world.look();
    world.pass(120);
    assert_eq!(world.running(), ["a"], "what runs goes on");
    world.done("a");
    assert_eq!((world.status("a"), world.running().len()), (Status::Done, 0));
    let said = world.truth.state().start_refusals.iter();
    let said = said.map(|refusal| start_refusal_text(&world.truth, refusal)).collect();
    (world, said)
}

#[test]
fn an_approval_that_expires_during_an_attempt_starts_nothing_more() {
    let (_, said) = refusal_after_a(|work, now| {
        let attestation = work.as_mut().unwrap().attestation.as_mut().unwrap();
        attestation.expires_at = Some(now.plus_seconds(60));
    });
    assert_eq!(said, "the approval of plan p ended on 1970-01-01");
}

#[test]
fn after_an_upgrade_what_runs_ends_well_and_nothing_starts_until_it_is_approved_once_more() {
    let (mut world, said) = refusal_after_a(|work, _| *work = None);
    assert_eq!(said, "plan p was approved by an earlier version of Waypost");
    world.person(Command::HoldTask { task: id("b"), reason: String::new() }).unwrap();
    world.person(Command::UnholdTask { task: id("b") }).unwrap();
    world.look();
    world.settle();
    assert_eq!(world.running(), ["b"], "the person's record is there again");
}

#[test]
fn a_person_at_the_run_can_let_it_drain_or_stop_it_and_it_goes_on_later() {
    let mut world = world(2, [job("a", &[], &[]), job("b", &[], &[]), job("c", &[], &[])]);
    world.control(Control::Drain);
    world.done("a");
    assert_eq!((world.running(), world.rest()), (vec!["b"], Idleness::Busy));
    world.control(Control::Stop);
    assert_eq!(world.programs.values().next(), Some(&Some(Force::Ask)));
    world.fails("b");
    assert_eq!((world.status("b"), world.rest()), (Status::Pending, Idleness::Over));
    world.crash();
    world.settle();
    assert_eq!(world.running(), ["b", "c"]);
}

#[test]
fn tasks_of_dead_runs_are_taken_over_at_once_and_a_late_report_is_refused() {
    let mut world = world(2, [job("a", &[], &[]), job("b", &["a"], &[])]);
    world.crash();
    world.settle();
    assert_eq!(world.running(), ["a"]);
    assert_eq!(world.truth.task("a").unwrap().state.attempt, 2);
    let late = Command::FinishTask {
        task: id("a"),
        attempt: Some(1),
        outcome: waypost_core::Outcome::Done { result: None, output: None, evidence: None },
        retry: None,
    };
    assert!(world.person(late).is_err());
    world.done("a");
    assert_eq!(world.running(), ["b"]);
}

#[test]
fn a_write_of_which_nobody_knows_what_became_of_it_is_read_off_the_store() {
    for fate in [Fate::FailsBefore, Fate::FailsAfter] {
        let mut world = world(2, [job("a", &[], &["x"]), job("b", &["a"], &["x"])]);
        world.fate = fate;
        world.done("a");
        assert_eq!((world.status("a"), world.running()), (Status::Done, vec!["b"]), "{fate:?}");
        assert_eq!(world.order, ["a", "b"], "{fate:?}");
    }
}

#[test]
fn what_ends_at_once_takes_no_slot_and_a_chain_of_it_is_one_write() {
    let chain = (0..500).map(|number| {
        let before = format!("n{}", number - 1);
        let depends: Vec<&str> = if number == 0 { Vec::new() } else { vec![before.as_str()] };
        with_executor(job(&format!("n{number}"), &depends, &[]), "noop")
    });
    let world = world(1, chain);
    assert_eq!((world.truth.state().phase, world.writes), (Phase::Completed, 1));
}

#[test]
fn work_for_people_is_waited_for_and_what_is_nobodys_is_not() {
    let asked = with_executor(job("ask", &[], &[]), "ask");
    let mut world = world(1, [asked, job("after", &["ask"], &[]), waypost_testkit::task("todo", &[])]);
    assert_eq!((world.running(), world.rest()), (Vec::new(), Idleness::Waiting));
    world.tick_off("ask");
    assert_eq!(world.running(), ["after"]);
    world.done("after");
    assert_eq!((world.status("todo"), world.rest()), (Status::Pending, Idleness::Over));
}

#[test]
fn an_executor_that_came_in_after_the_check_fails_its_task_and_runs_nothing() {
    let world = world(1, [with_executor(job("a", &[], &[]), "rm-rf"), job("b", &["a"], &[])]);
    assert!(world.order.is_empty());
    assert_eq!((world.status("a"), world.status("b")), (Status::Failed, Status::Skipped));
    let error = world.truth.task("a").unwrap().state.error.clone();
    assert_eq!(error.as_deref(), Some("task a: no executor is called rm-rf"));
}

#[test]
fn after_a_failure_nothing_new_starts_when_so_wished() {
    let tasks = [job("a", &[], &[]), job("b", &[], &[]), job("c", &[], &[])];
    let mut world = World::with(config(2), plan_of(tasks), AfterFailure::FailFast);
    world.settle();
    world.fails("a");
    assert_eq!(world.running(), ["b"]);
    world.done("b");
    assert_eq!((world.status("c"), world.rest()), (Status::Pending, Idleness::Over));
}

#[test]
fn plans_that_change_while_they_run_are_followed() {
    let mut world = world(4, [job("a", &[], &[]), job("b", &["a"], &[])]);
    let place = waypost_core::Position::Last;
    world.person(Command::AddTasks { tasks: vec![job("new", &[], &[])], place }).unwrap();
    world.look();
    world.settle();
    assert_eq!(world.running(), ["a", "new"]);
    // Somebody writes between a look and our own write: the write is decided on the plan as it is.
    world.person(cancel("b")).unwrap();
    world.done("a");
    assert_eq!((world.status("b"), world.running()), (Status::Cancelled, vec!["new"]));
}

#[test]
fn short_tasks_are_queued_ahead_and_several_ends_are_one_write() {
    let mut world = world(2, (0..100).map(|number| job(&format!("t{number:02}"), &[], &[])));
    while !world.programs.is_empty() {
        let first = world.running()[0].to_owned();
        world.now = waypost_core::Timestamp::from_micros(world.now.as_micros() + 100);
        world.done(&first);
    }
    world.pass(1);
    while !world.programs.is_empty() {
        let first = world.running()[0].to_owned();
        world.done(&first);
    }
    world.pass(1);
    assert_eq!((world.truth.state().phase, world.truth.counts().done), (Phase::Completed, 100));
    assert!(world.writes < 40, "{} writes", world.writes);
    assert_eq!(world.running_max, 2, "what has no slot does not run");
}

#[test]
fn a_pending_attempt_that_began_and_ended_before_the_next_step_is_not_started_again() {
    let mut world = world(1, (0..40).map(|number| job(&format!("t{number:02}"), &[], &[])));
    while world.pending().len() < 2 {
        let task = world.running()[0].to_owned();
        world.done(&task);
    }
    // The messages of a slow event loop come together: one attempt ends, and the next two take its slot by themselves.
    let running = world.programs.keys().next().unwrap().clone();
    let [first, second] = [world.pending()[0].clone(), world.pending()[1].clone()];
    let done = || AttemptOutcome::Done { result: None, output: None };
    let mut tell = |input| world.scheduler.handle(world.now, input);
    tell(Input::Ended(running.clone(), done()));
    tell(Input::Began(first.clone(), Some(running)));
    tell(Input::Ended(first.clone(), done()));
    tell(Input::Began(second.clone(), Some(first.clone())));
    let actions = world.scheduler.step(world.now);
    let started = |key: &AttemptKey| actions.contains(&Action::Start(key.clone()));
    assert!(!started(&first) && !started(&second), "{actions:?}");
}

#[test]
fn what_was_queued_ahead_is_given_back_when_the_run_is_stopped_and_dropped_when_it_is_cancelled() {
    let mut world = world(2, (0..60).map(|number| job(&format!("t{number:02}"), &[], &[])));
    while world.truth.counts().in_progress() < 10 {
        let first = world.running()[0].to_owned();
        world.done(&first);
    }
    let ahead: Vec<String> = world
        .truth
        .in_progress()
        .map(|task| task.spec.id.to_string())
        .filter(|task| !world.running().contains(&task.as_str()))
        .collect();
    world.person(cancel(&ahead[0])).unwrap();
    world.look();
    world.settle();
    world.control(Control::Stop);
    while let Some(first) = world.running().first().map(ToString::to_string) {
        world.fails(&first);
    }
    world.pass(1);
    assert_eq!((world.truth.counts().in_progress(), world.rest()), (0, Idleness::Over));
    assert!(!world.order.contains(&ahead[0]) && !world.order.contains(&ahead[1]), "neither was started");
    assert_eq!((world.status(&ahead[0]), world.status(&ahead[1])), (Status::Cancelled, Status::Pending));
}

/// A run with tasks that are queued ahead of their slots.
fn with_queued_ahead() -> World {
    let mut world = world(2, (0..60).map(|number| job(&format!("t{number:02}"), &[], &[])));
    while world.pending().len() < 10 {
        let first = world.running()[0].to_owned();
        world.done(&first);
    }
    world
}

#[test]
fn what_was_queued_ahead_does_not_begin_in_a_paused_or_draining_run() {
    let pause = |world: &mut World| {
        world.person(Command::Pause { reason: String::new() }).unwrap();
        world.look();
        world.settle();
    };
    let drain = |world: &mut World| world.control(Control::Drain);
    for hold in [&pause as &dyn Fn(&mut World), &drain] {
        let mut world = with_queued_ahead();
        let begun = world.order.len();
        hold(&mut world);
        assert_eq!((world.pending().len(), world.truth.counts().in_progress()), (0, 2));
        while let Some(first) = world.running().first().map(ToString::to_string) {
            world.done(&first);
        }
        world.pass(1);
        assert_eq!((world.order.len(), world.truth.counts().in_progress()), (begun, 0));
    }
}

#[test]
fn a_task_is_queued_until_its_start_is_recorded_with_the_moment_in_which_it_began() {
    let mut world = world(1, [job("a", &[], &[])]);
    let (began, version) = (world.now, world.truth.version());
    assert_eq!((world.running(), world.standing("a")), (vec!["a"], "queued"));
    world.pass_millis(99);
    assert_eq!((world.standing("a"), world.truth.version()), ("queued", version));
    world.pass_millis(1);
    assert_eq!((world.standing("a"), world.truth.version()), ("running", version + 1));
    assert_eq!(world.truth.task("a").unwrap().state.started_at, Some(began));
    world.pass_millis(1_000);
    assert_eq!(world.truth.version(), version + 1, "once");
}

#[test]
fn the_start_of_a_short_task_is_written_with_its_end() {
    let mut world = world(1, [job("a", &[], &[]), job("b", &["a"], &[])]);
    let (began, version) = (world.now, world.truth.version());
    world.pass_millis(5);
    world.done("a");
    assert_eq!(world.truth.version(), version + 1);
    assert_eq!(world.latest_events(), ["task_started", "task_done", "task_queued"]);
    assert_eq!(world.truth.task("a").unwrap().state.started_at, Some(began));
}

#[test]
fn a_start_is_written_with_whatever_else_is_written() {
    let mut world = world(2, [job("a", &[], &[]), job("b", &[], &[])]);
    world.pass_millis(5);
    world.done("b");
    assert_eq!(world.latest_events(), ["task_started", "task_done", "task_started"]);
    assert_eq!((world.standing("a"), world.standing("b")), ("running", "done"));
}

#[test]
fn a_run_that_dies_between_a_start_and_its_record_costs_an_attempt() {
    let counted = |attempts| {
        let mut spec = job("a", &[], &[]);
        spec.retry = Some(Box::new(Retry { attempts, backoff_seconds: 0, backoff_seconds_max: 0 }));
        spec
    };
    let mut once = world(1, [counted(1)]);
    assert_eq!((once.running(), once.standing("a")), (vec!["a"], "queued"));
    once.crash();
    once.settle();
    assert_eq!(
        (once.status("a"), once.order.len()),
        (Status::Failed, 1),
        "it may have begun, and may not again"
    );
    let error = once.truth.task("a").unwrap().state.error.clone();
    assert_eq!(error.as_deref(), Some("w0 was lost when attempt 1 was queued: it may have begun"));

    let mut twice = world(1, [counted(2)]);
    twice.crash();
    twice.settle();
    let state = &twice.truth.task("a").unwrap().state;
    assert_eq!((state.attempt, state.tries, twice.running()), (2, 1, vec!["a"]));
}

#[test]
fn a_start_whose_record_was_lost_is_recorded_again() {
    for fate in [Fate::FailsBefore, Fate::FailsAfter] {
        let mut world = world(1, [job("a", &[], &[])]);
        let began = world.now;
        world.fate = fate;
        world.pass_millis(150);
        assert_eq!(world.standing("a"), "running", "{fate:?}");
        assert_eq!(world.truth.task("a").unwrap().state.started_at, Some(began), "{fate:?}");
    }
}

#[test]
fn what_runs_of_a_lost_plan_is_killed_and_nothing_of_it_is_left() {
    let mut world =
        World::new(config(2), plan_of([job("a", &[], &["x"]), job("b", &[], &[]), job("c", &[], &[])]));
    world.settle();
    assert_eq!(world.running(), ["a", "b"]);
    let writes = world.writes;
    world.scheduler.handle(world.now, Input::PlanLost(world.truth.id().clone()));
    world.settle();
    assert!(world.programs.values().all(|asked| *asked == Some(Force::Kill)), "{:?}", world.programs);
    assert_eq!(world.rest(), Idleness::Busy);
    world.ends("a", AttemptOutcome::Failed { error: "killed".to_owned() });
    world.ends("b", AttemptOutcome::Failed { error: "killed".to_owned() });
    world.settle();
    assert_eq!((world.rest(), world.writes), (Idleness::Over, writes));
    assert_eq!(world.scheduler.held().count(), 0);
    // Its slots and locks are free.
    let again = Input::Adopted(Box::new(world.truth.clone()));
    world.scheduler.handle(world.now, again);
    world.settle();
    assert_eq!(world.running().len(), 2);
}

#[test]
fn what_others_did_is_told_although_a_write_of_the_run_came_too_late() {
    // A person cancels a task before the run has recorded its start, and the run does not look before it writes.
    let mut world = world(2, [job("a", &[], &[]), job("b", &["a"], &[]), job("c", &[], &[])]);
    world.person(cancel("a")).unwrap();
    world.pass(1);
    assert_eq!(world.told_ends("a"), [Status::Cancelled]);
    assert_eq!(world.told_ends("b"), [Status::Skipped]);
    world.done("c");
    assert_eq!(world.told_ends("c"), [Status::Done]);
    assert_eq!((world.told_ends("a").len(), world.told_ends("b").len()), (1, 1), "once");
}

#[test]
fn an_end_is_told_once_whether_its_write_was_answered_or_not() {
    for fate in [Fate::FailsBefore, Fate::FailsAfter] {
        let mut world = world(2, [job("a", &[], &[]), job("b", &["a"], &[])]);
        world.fate = fate;
        world.done("a");
        assert_eq!(world.told_ends("a"), [Status::Done]);
        world.done("b");
        assert_eq!(world.told_ends("b"), [Status::Done]);
    }
}

#[test]
fn the_time_since_when_a_task_could_start_is_that_of_the_last_thing_it_waited_for() {
    let mut world = world(1, [job("a", &[], &[]), job("b", &["a"], &[]), job("c", &[], &[])]);
    let ready = |world: &World, task: &str| {
        world.scheduler.ready_since(&AttemptKey::new(world.truth.id(), &id(task), 1))
    };
    let started = world.truth.state().started_at;
    assert_eq!((ready(&world, "a"), ready(&world, "c")), (started, started));
    world.pass(10);
    world.done("a");
    let ended = world.truth.task("a").unwrap().state.finished_at;
    assert!(ended > started);
    assert_eq!(ready(&world, "b"), ended);
    assert_eq!(ready(&world, "c"), started, "it waited for a slot");
    world.pass(10);
    world
        .person(Command::AddTasks { tasks: vec![job("late", &[], &[])], place: Position::default() })
        .unwrap();
    world.look();
    assert_eq!(ready(&world, "late"), Some(world.now));
    assert_eq!(ready(&world, "c"), started);
}
