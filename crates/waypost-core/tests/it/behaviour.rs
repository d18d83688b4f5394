//! What a plan does, as examples: the name of each is the sentence that is true.

use waypost_core::{
    Actor, Approval, Command, Dependency, Digest, Draft, Elsewhere, Event, Json, Outcome, Phase, Plan,
    PlanChanges, PlanId, Received, Refinement, Refusal, Retry, Standing, Status, Task, TaskChanges, TaskSpec,
    Waiting, When, Where, differences,
};
use waypost_testkit::{chain, fan_out, id, plan_of, task};

use crate::kit::{Desk, ada, agent, ask, at, done, failed, plan_id, skipped, system, work, worker};

fn child(name: &str, parent: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec { parent: Some(id(parent)), ..task(name, depends_on) }
}

fn when(when: When, name: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec { when, ..task(name, depends_on) }
}

fn passed_over(name: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec { skip: true, ..task(name, depends_on) }
}

fn by_machine(name: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec { work: Some(work()), ..task(name, depends_on) }
}

fn trying(attempts: u32, name: &str) -> TaskSpec {
    let retry = Retry { attempts, backoff_seconds: 10, backoff_seconds_max: 30 };
    TaskSpec { retry: Some(Box::new(retry)), ..by_machine(name, &[]) }
}

fn there(agent: Option<&str>, plan: Option<&str>, task: &str) -> Elsewhere {
    Elsewhere {
        agent: agent.map(str::to_owned),
        plan: plan.map(|plan| PlanId::new(plan).unwrap()),
        task: id(task),
    }
}

fn after(name: &str, from: Elsewhere) -> TaskSpec {
    TaskSpec { depends_on: vec![Dependency::Elsewhere(Box::new(from))], ..task(name, &[]) }
}

fn withdraw(task: &str, from: &Elsewhere) -> Command {
    Command::WithdrawOutput { task: id(task), from: from.clone() }
}

fn hear(task: &str, from: Elsewhere, status: Status, output: Option<Json>) -> Command {
    Command::ReceiveOutput {
        task: id(task),
        from,
        received: Received { status, output, ..Received::default() },
    }
}

fn add(tasks: Vec<TaskSpec>) -> Command {
    Command::AddTasks { tasks, place: Where::Last }
}

fn order(desk: &Desk) -> String {
    desk.plan
        .tasks()
        .map(|(task, depth)| format!("{}{}", "-".repeat(depth), task.spec.id))
        .collect::<Vec<_>>()
        .join(" ")
}

// Readiness

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
    let mut desk =
        Desk::with(plan_of([task("a", &[]), task("b", &[]), when(When::AllFinished, "c", &["a", "b"])]));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standing("c"), Standing::Blocked);
    desk.does(ask::cancel("b"));
    assert_eq!(desk.standing("c"), Standing::Ready);
}

#[test]
fn a_task_may_be_content_with_one_that_is_done() {
    let draft = || plan_of([task("a", &[]), task("b", &[]), when(When::AnyDone, "c", &["a", "b"])]);
    let mut desk = Desk::with(draft());
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standing("c"), Standing::Blocked);
    desk.does(ask::finish("b", done()));
    assert_eq!(desk.standing("c"), Standing::Ready);
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

// Failure

#[test]
fn a_failure_skips_what_needed_it_and_what_needed_that_while_other_branches_go_on() {
    let draft = plan_of([
        task("a", &[]),
        task("b", &["a"]),
        task("c", &["b"]),
        task("other", &[]),
        task("last", &["other"]),
    ]);
    let mut desk = Desk::with(draft);
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standings(), "a:failed b:skipped c:skipped other:ready last:blocked");
    assert_eq!(desk.because_of("b").as_deref(), Some("a"));
    assert_eq!(desk.because_of("c").as_deref(), Some("a"), "the whole cascade points at its beginning");
    assert_eq!(desk.plan.task("c").unwrap().state.why().as_deref(), Some("a did not succeed"));
    desk.does(ask::finish("other", done()));
    desk.does(ask::finish("last", done()));
    assert_eq!(desk.plan.state().phase, Phase::Failed);
}

#[test]
fn a_failure_that_skips_99_999_tasks_is_one_event() {
    let mut desk = Desk::with(chain(100_000));
    let events = desk.does(ask::finish("t0", failed()));
    assert_eq!(events.len(), 1);
    assert_eq!(desk.plan.counts().skipped, 99_999);
    assert_eq!(desk.because_of("t99999").as_deref(), Some("t0"));
    assert_eq!(desk.plan.take_touched().finished.len(), 100_000);
}

#[test]
fn of_several_causes_the_first_in_depends_on_is_named() {
    let draft =
        plan_of([task("z", &[]), task("a", &[]), task("group", &[]), child("x", "group", &["z", "a"])]);
    let mut desk = Desk::made_by(&ada(), draft);
    desk.does(ask::cancel("a"));
    desk.does(ask::cancel("z"));
    desk.does(Command::Activate);
    assert_eq!(desk.because_of("x").as_deref(), Some("z"));
    assert_eq!(desk.because_of("group").as_deref(), Some("z"));
}

#[test]
fn a_cause_is_kept_as_long_as_it_is_one() {
    let mut desk =
        Desk::with(plan_of([task("a", &[]), task("b", &[]), task("x", &["a", "b"]), task("y", &["x"])]));
    desk.does(ask::finish("b", failed()));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.because_of("y").as_deref(), Some("b"));
    desk.does(ask::retry("b"));
    assert_eq!(desk.standings(), "a:failed b:ready x:skipped y:skipped");
    assert_eq!(desk.because_of("x").as_deref(), Some("a"));
    assert_eq!(desk.because_of("y").as_deref(), Some("a"));
}

#[test]
fn a_retry_brings_back_what_was_skipped_because_of_it() {
    let mut desk =
        Desk::with(plan_of([task("a", &[]), task("b", &["a"]), task("c", &["b"]), task("d", &[])]));
    desk.does(ask::finish("d", skipped()));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.plan.state().phase, Phase::Failed);
    let refusal = desk.refuses(ask::retry("c"));
    assert_eq!(refusal, Refusal::Blocked { task: "c".into(), waits_for: vec!["a".into()] });
    desk.does(ask::retry("a"));
    assert_eq!(desk.standings(), "a:ready b:blocked c:blocked d:skipped");
    assert_eq!(desk.plan.state().phase, Phase::Active);
    assert_eq!(desk.because_of("c"), None);
}

#[test]
fn retrying_a_plan_sets_back_all_that_failed_or_was_cancelled() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"]), task("c", &[]), task("d", &[])]));
    desk.does(ask::finish("a", failed()));
    desk.does(ask::cancel("c"));
    desk.does(ask::finish("d", done()));
    desk.does(Command::RetryPlan);
    assert_eq!(desk.standings(), "a:ready b:blocked c:ready d:done");
    assert!(matches!(desk.refuses(Command::RetryPlan), Refusal::WrongPhase { .. }));
}

#[test]
fn a_finished_task_can_be_done_again() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    desk.does(ask::finish(
        "a",
        Outcome::Done { result: Some("fine".into()), output: Some(Json::of(&1)), evidence: None },
    ));
    desk.does(ask::retry("a"));
    assert_eq!(desk.standings(), "a:ready b:blocked");
    let state = &desk.plan.task("a").unwrap().state;
    assert_eq!((&state.result, &state.output, state.finished_at), (&None, &None, None));
}

#[test]
fn what_a_task_no_longer_depends_on_no_longer_keeps_it_skipped() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"]), task("c", &[])]));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standing("b"), Standing::Skipped);
    desk.does(ask::remove("a", true));
    assert_eq!(desk.standings(), "b:ready c:ready");
}

// Skipping

#[test]
fn a_task_to_be_skipped_is_passed_over_after_what_it_depends_on() {
    let mut desk = Desk::with(plan_of([task("a", &[]), passed_over("b", &["a"]), task("c", &["b"])]));
    assert_eq!(desk.standings(), "a:ready b:blocked c:blocked");
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.standings(), "a:done b:skipped c:ready");
    assert_eq!(desk.because_of("b"), None);
}

#[test]
fn a_task_to_be_skipped_hands_on_a_failure() {
    let mut desk = Desk::with(plan_of([task("a", &[]), passed_over("b", &["a"]), task("c", &["b"])]));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standings(), "a:failed b:skipped c:skipped");
    assert_eq!(desk.because_of("c").as_deref(), Some("a"));
}

#[test]
fn nothing_is_skipped_before_the_plan_begins() {
    let mut desk = Desk::made_by(&ada(), plan_of([passed_over("a", &[]), task("b", &["a"])]));
    assert_eq!(desk.standings(), "a:blocked b:blocked");
    assert!(matches!(desk.refuses(ask::start("a")), Refusal::WrongStatus { status: Status::Skipped, .. }));
    desk.does(Command::Activate);
    assert_eq!(desk.standings(), "a:skipped b:ready");
}

#[test]
fn what_is_no_longer_to_be_skipped_comes_back() {
    let mut desk = Desk::with(plan_of([passed_over("a", &[]), task("b", &[])]));
    assert!(matches!(desk.refuses(ask::retry("a")), Refusal::WrongStatus { status: Status::Skipped, .. }));
    desk.does(ask::revise("a", TaskChanges { skip: Some(false), ..TaskChanges::default() }));
    assert_eq!(desk.standings(), "a:ready b:ready");
}

#[test]
fn a_group_to_be_skipped_takes_its_children_along_and_lets_others_go_on() {
    let group = passed_over("g", &["a"]);
    let draft = plan_of([
        task("a", &[]),
        task("f", &[]),
        group,
        child("x", "g", &[]),
        child("y", "g", &["f"]),
        task("b", &["g"]),
    ]);
    let mut desk = Desk::with(draft);
    assert_eq!(desk.standings(), "a:ready f:ready g:blocked x:blocked y:blocked b:blocked");
    desk.does(ask::finish("f", failed()));
    assert_eq!(desk.standing("y"), Standing::Skipped);
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.standings(), "a:done f:failed g:skipped x:skipped y:skipped b:ready");
    desk.does(ask::revise("g", TaskChanges { skip: Some(false), ..TaskChanges::default() }));
    assert_eq!(desk.standing("x"), Standing::Ready);
    assert_eq!(desk.standing("b"), Standing::Blocked);
}

#[test]
fn whoever_works_on_a_task_may_find_it_unnecessary() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    desk.does(ask::start("a"));
    desk.does(ask::finish("a", Outcome::Skipped { reason: Some("it was there already".into()) }));
    assert_eq!(desk.standings(), "a:skipped b:ready");
    assert_eq!(desk.plan.task("a").unwrap().state.why().as_deref(), Some("it was there already"));
}

// Groups

#[test]
fn children_wait_for_what_their_parent_depends_on() {
    let draft = plan_of([
        task("a", &[]),
        task("p", &["a"]),
        child("x", "p", &[]),
        child("q", "p", &[]),
        child("y", "q", &["x"]),
    ]);
    let mut desk = Desk::with(draft);
    assert_eq!(desk.standings(), "a:ready p:blocked x:blocked q:blocked y:blocked");
    assert_eq!(
        desk.refuses(ask::start("x")),
        Refusal::Blocked { task: "x".into(), waits_for: vec!["a".into()] }
    );
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.standings(), "a:done p:ready x:ready q:ready y:blocked");
    desk.does(ask::start("x"));
    assert_eq!(desk.standings(), "a:done p:running x:running q:ready y:blocked");
}

#[test]
fn a_group_is_not_worked_on_itself() {
    let mut desk = Desk::with(plan_of([task("p", &[]), child("x", "p", &[])]));
    let is_parent = Refusal::IsParent { task: "p".into() };
    assert_eq!(desk.refuses(ask::start("p")), is_parent);
    assert_eq!(desk.refuses(ask::finish("p", done())), is_parent);
    assert_eq!(desk.plan.counts().total, 1);
}

#[test]
fn a_group_ends_when_its_children_have_ended_and_as_they_ended() {
    let end = |first: fn() -> Outcome, second: fn() -> Outcome| {
        let draft = plan_of([task("p", &[]), child("x", "p", &[]), child("y", "p", &[]), task("z", &["p"])]);
        let mut desk = Desk::with(draft);
        desk.does(ask::finish("x", first()));
        assert_eq!(desk.standing("p"), Standing::Running);
        desk.does(ask::finish("y", second()));
        (desk.standing("p"), desk.standing("z"))
    };
    assert_eq!(end(done, done), (Standing::Done, Standing::Ready));
    assert_eq!(end(done, skipped), (Standing::Done, Standing::Ready));
    assert_eq!(end(skipped, skipped), (Standing::Skipped, Standing::Ready));
    assert_eq!(end(failed, done), (Standing::Failed, Standing::Skipped));
    let mut desk =
        Desk::with(plan_of([task("p", &[]), child("x", "p", &[]), child("y", "p", &[]), task("z", &["p"])]));
    desk.does(ask::finish("x", done()));
    desk.does(ask::cancel("y"));
    assert_eq!(desk.standings(), "p:cancelled x:done y:cancelled z:skipped");
}

#[test]
fn a_group_that_cannot_happen_takes_its_children_along() {
    let draft = plan_of([
        task("a", &[]),
        task("p", &["a"]),
        child("q", "p", &[]),
        child("x", "q", &[]),
        task("z", &["p"]),
    ]);
    let mut desk = Desk::with(draft);
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.standings(), "a:failed p:skipped q:skipped x:skipped z:skipped");
    desk.does(ask::retry("a"));
    assert_eq!(desk.standings(), "a:ready p:blocked q:blocked x:blocked z:blocked");
}

#[test]
fn a_group_that_gets_something_to_do_opens_again() {
    let mut desk = Desk::with(plan_of([task("p", &[]), child("x", "p", &[]), task("z", &["p"])]));
    desk.does(ask::finish("x", done()));
    assert_eq!(desk.standings(), "p:done x:done z:ready");
    desk.does(add(vec![child("y", "p", &[])]));
    assert_eq!(desk.standings(), "p:running x:done y:ready z:blocked");
    desk.does(ask::finish("y", failed()));
    assert_eq!(desk.standings(), "p:failed x:done y:failed z:skipped");
    desk.does(ask::retry("p"));
    assert_eq!(desk.standings(), "p:running x:done y:ready z:blocked");
    desk.does(ask::finish("y", done()));
    desk.does(ask::retry("p"));
    assert_eq!(
        desk.standings(),
        "p:ready x:ready y:ready z:blocked",
        "when all of it went well, all of it is done again"
    );
}

#[test]
fn a_group_without_its_failed_child_did_not_fail() {
    let mut desk =
        Desk::with(plan_of([task("p", &[]), child("x", "p", &[]), child("y", "p", &[]), task("z", &["p"])]));
    desk.does(ask::finish("x", done()));
    desk.does(ask::finish("y", failed()));
    desk.does(add(vec![task("w", &[])]));
    desk.does(ask::remove("y", false));
    assert_eq!(desk.standings(), "p:done x:done z:ready w:ready");
}

#[test]
fn a_group_that_lost_all_its_children_is_a_task_again() {
    let mut desk = Desk::with(plan_of([task("p", &[]), child("x", "p", &[])]));
    desk.does(ask::remove("x", false));
    assert_eq!(desk.standings(), "p:ready");
    assert_eq!(desk.plan.counts().total, 1);
}

#[test]
fn a_child_that_fails_under_a_group_that_became_impossible_is_not_tried_again() {
    let draft =
        plan_of([task("a", &[]), task("p", &[]), TaskSpec { parent: Some(id("p")), ..trying(3, "x") }]);
    let mut desk = Desk::with(draft);
    desk.does(ask::start("x"));
    desk.does(ask::finish("a", failed()));
    let depends_on = Some(vec![Dependency::Task(id("a"))]);
    desk.does(ask::revise("p", TaskChanges { depends_on, ..TaskChanges::default() }));
    assert_eq!(desk.standing("x"), Standing::Running, "what runs goes on");
    desk.does(ask::finish("x", failed()));
    assert_eq!(desk.standings(), "a:failed p:skipped x:skipped");
}

#[test]
fn inside_a_group_that_is_impossible_for_another_reason_the_other_reason_is_named() {
    let draft = plan_of([
        task("a", &[]),
        task("b", &[]),
        task("p", &["a", "b"]),
        child("x", "p", &[]),
        task("other", &[]),
    ]);
    let mut desk = Desk::with(draft);
    desk.does(ask::finish("a", failed()));
    desk.does(ask::finish("b", failed()));
    assert_eq!(desk.because_of("x").as_deref(), Some("a"));
    desk.does(ask::retry("a"));
    assert_eq!(desk.because_of("x").as_deref(), Some("b"));
    assert_eq!(desk.because_of("p").as_deref(), Some("b"));
}

#[test]
fn a_group_does_not_end_while_its_last_open_task_moves_to_another_place_inside_it() {
    let draft = plan_of([
        task("p", &[]),
        child("q", "p", &[]),
        child("y", "q", &[]),
        child("x", "p", &[]),
        passed_over("s", &["p"]),
        task("z", &["s"]),
    ]);
    let mut desk = Desk::with(draft);
    desk.does(ask::finish("y", done()));
    desk.does(Command::MoveTask { task: id("x"), parent: Some(Some(id("q"))), place: Where::Last });
    assert_eq!(desk.standings(), "p:running q:running y:done x:ready s:blocked z:blocked");
}

// Attempts

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
    let progress = Command::ReportProgress { task: id("a"), attempt: 1, progress: "half".into() };
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

// Cancelling and ending

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
    assert_eq!(desk.plan.waiting("c", desk.now), [Waiting::Phase(Phase::Paused)]);
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
    assert_eq!(desk.refuses(ask::retry("a")), Refusal::Archived {});
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

// Approval

fn agents_plan() -> Desk {
    Desk::made_by(&agent(), plan_of([by_machine("a", &[]), task("b", &["a"])]))
}

fn approve(desk: &Desk) -> Command {
    Command::Approve { version: desk.plan.version(), note: "fine".into() }
}

#[test]
fn an_agents_plan_with_work_for_machines_runs_nothing_until_a_person_approves() {
    let mut desk = agents_plan();
    assert_eq!(desk.refuses(Command::Activate), Refusal::NeedsApproval {});
    assert_eq!(desk.asks(&worker(), ask::start("a")).unwrap_err(), Refusal::NeedsApproval {});
    assert_eq!(desk.plan.waiting("a", desk.now), [Waiting::Approval]);
    for by in [agent(), worker(), system()] {
        let only_a_person = Refusal::OnlyAPerson { what: "approve a plan", by: by.kind };
        assert_eq!(desk.asks(&by, approve(&desk)).unwrap_err(), only_a_person);
    }
    desk.does(approve(&desk));
    let approval = desk.plan.state().approval.clone().unwrap();
    assert_eq!(approval, Approval { by: ada(), at: desk.now, version: 1, note: "fine".into() });
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
    draft.state.approval = Some(Approval { by: ada(), at: at(0), version: 0, note: String::new() });
    draft.state.approval_required = false;
    let mut desk = Desk::made_by(&agent(), draft);
    assert_eq!(desk.plan.state().approval, None);
    assert_eq!(desk.asks(&worker(), ask::start("a")).unwrap_err(), Refusal::NeedsApproval {});
}

#[test]
fn approval_is_of_the_version_that_was_looked_at() {
    let mut desk = agents_plan();
    let looked_at = approve(&desk);
    desk.asks(&agent(), ask::revise("a", TaskChanges { notes: Some("!".into()), ..TaskChanges::default() }))
        .unwrap();
    assert_eq!(desk.refuses(looked_at), Refusal::NotWhatWasLookedAt { looked_at: 1, current: 2 });
}

#[test]
fn a_rejected_plan_runs_nothing_even_if_nobody_had_to_be_asked() {
    let mut desk = Desk::made_by(&ada(), plan_of([by_machine("a", &[])]));
    desk.does(Command::Reject { reason: "too bold".into() });
    assert_eq!(desk.asks(&worker(), ask::start("a")).unwrap_err(), Refusal::NeedsApproval {});
    assert_eq!(desk.plan.state().reason, "too bold");
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
    assert!(!voids(&agent(), ask::revise("a", provides)));
    assert!(!voids(&agent(), ask::revise("b", words)), "no machine is told of b");
    assert!(!voids(&agent(), Command::RevisePlan(Box::new(status))));
    assert!(!voids(&agent(), ask::revise("b", depends_on)), "no machine runs b");
    assert!(!voids(&agent(), add(vec![task("c", &[])])));
}

#[test]
fn an_agent_that_gives_machines_work_in_a_persons_plan_asks() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[])]));
    desk.does(add(vec![by_machine("b", &[])]));
    assert_eq!(desk.plan.state().phase, Phase::Active, "the person is the one who would be asked");
    desk.asks(&agent(), add(vec![by_machine("c", &[])])).unwrap();
    assert_eq!(desk.plan.state().phase, Phase::AwaitingApproval);
    assert_eq!(desk.asks(&worker(), ask::start("a")).unwrap_err(), Refusal::NeedsApproval {});
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
    assert_eq!(desk.asks(&agent(), ask::start("b")).unwrap_err(), Refusal::NeedsApproval {});
}

// Edits

#[test]
fn tasks_are_added_where_they_are_wanted_all_or_none() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    let put = |names: &[&str], place| Command::AddTasks {
        tasks: names.iter().map(|name| task(name, &[])).collect(),
        place,
    };
    desk.does(put(&["c", "d"], Where::First));
    desk.does(put(&["e"], Where::After(id("a"))));
    desk.does(put(&["f"], Where::Before(id("a"))));
    assert_eq!(order(&desk), "c d f a e b");
    let refusal = desk.refuses(add(vec![task("g", &[]), task("a", &[])]));
    assert!(matches!(refusal, Refusal::Invalid { .. }));
    assert_eq!(order(&desk), "c d f a e b");
    desk.does(add(vec![child("y", "x", &["z"]), task("x", &[]), task("z", &[])]));
    assert_eq!(order(&desk), "c d f a e b x -y z");
    assert_eq!(desk.standing("y"), Standing::Blocked);
}

#[test]
fn what_others_depend_on_is_removed_only_when_they_are_detached() {
    let mut desk = Desk::with(plan_of([
        task("a", &[]),
        task("p", &[]),
        child("x", "p", &["a"]),
        task("b", &["x", "a"]),
    ]));
    let refusal = desk.refuses(ask::remove("p", false));
    assert_eq!(refusal, Refusal::HasDependants { task: "p".into(), dependants: vec!["b".into()] });
    desk.does(ask::remove("p", true));
    assert_eq!(desk.standings(), "a:ready b:blocked");
    assert_eq!(desk.plan.task("b").unwrap().spec.depends_on, [Dependency::Task(id("a"))]);
    desk.does(ask::start("a"));
    assert!(matches!(desk.refuses(ask::remove("a", true)), Refusal::StillRunning { .. }));
}

#[test]
fn tasks_move_with_all_below_them() {
    let mut desk = Desk::with(plan_of([
        task("a", &[]),
        task("p", &["a"]),
        child("x", "p", &[]),
        child("y", "x", &[]),
        task("q", &[]),
    ]));
    let put = |name: &str, parent: Option<Option<&str>>, place| Command::MoveTask {
        task: id(name),
        parent: parent.map(|parent| parent.map(id)),
        place,
    };
    assert_eq!(desk.standing("y"), Standing::Blocked);
    desk.does(put("x", Some(Some("q")), Where::Last));
    assert_eq!(order(&desk), "a p q -x --y");
    assert_eq!(desk.standings(), "a:ready p:blocked q:ready x:ready y:ready");
    desk.does(put("x", Some(None), Where::First));
    assert_eq!(order(&desk), "x -y a p q");
    assert_eq!(desk.does(put("x", None, Where::First)), [], "it stands there already");
    desk.does(put("x", None, Where::After(id("p"))));
    assert_eq!(order(&desk), "a p x -y q");
    assert!(matches!(desk.refuses(put("x", None, Where::After(id("y")))), Refusal::NoSuchTask { .. }));
}

#[test]
fn a_task_with_work_or_that_runs_gets_no_children() {
    let mut desk = Desk::with(plan_of([by_machine("a", &[]), task("b", &[])]));
    assert!(matches!(desk.refuses(add(vec![child("x", "a", &[])])), Refusal::Invalid { .. }));
    desk.does(ask::start("b"));
    assert!(matches!(desk.refuses(add(vec![child("x", "b", &[])])), Refusal::WrongStatus { .. }));
}

#[test]
fn what_has_begun_keeps_its_work_and_dependencies() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    desk.does(ask::start("a"));
    let depend = TaskChanges { depends_also_on: vec![Dependency::Task(id("b"))], ..TaskChanges::default() };
    assert!(matches!(desk.refuses(ask::revise("a", depend.clone())), Refusal::WrongStatus { .. }));
    desk.does(ask::finish("a", done()));
    assert!(matches!(desk.refuses(ask::revise("a", depend)), Refusal::WrongStatus { .. }));
    desk.does(ask::revise("a", TaskChanges { notes: Some("well done".into()), ..TaskChanges::default() }));
}

#[test]
fn a_change_that_changes_nothing_is_no_event() {
    let mut desk = Desk::with(plan_of([task("a", &[])]));
    let same = TaskChanges { description: Some("do a".into()), priority: Some(0), ..TaskChanges::default() };
    assert_eq!(desk.does(ask::revise("a", same)), []);
    assert_eq!(desk.does(Command::Replace(Box::new(desk.plan.to_draft()))), []);
    assert_eq!(desk.does(Command::RevisePlan(Box::default())), []);
}

#[test]
fn a_task_is_broken_down_into_children() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    let children = vec![task("a1", &[]), task("a2", &["a1"]), child("a21", "a2", &[])];
    let reasoning = Some("two steps".to_owned());
    desk.does(Command::DecomposeTask { task: id("a"), children, reasoning, tokens: 40 });
    assert_eq!(order(&desk), "a -a1 -a2 --a21 b");
    assert_eq!(desk.standings(), "a:ready a1:ready a2:blocked a21:blocked b:blocked");
    let thinking = desk.plan.task("a").unwrap().spec.thinking.clone().unwrap();
    assert_eq!((thinking.refinement, thinking.tokens), (Some(Refinement::Decomposed), 40));
    assert_eq!(thinking.reasoning.as_deref(), Some("two steps"));
}

#[test]
fn tokens_are_counted_for_the_task_and_for_the_plan() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    let refine = |task: &str, tokens| Command::RefineTask {
        task: id(task),
        refinement: Refinement::Atomic,
        reasoning: None,
        tokens,
    };
    desk.does(refine("a", 10));
    desk.does(refine("a", 5));
    desk.does(refine("b", 1));
    let digest = Digest {
        summary: "it went well".into(),
        key_decisions: vec!["keep it small".into()],
        artifacts: vec!["a.rs".into()],
        compression_ratio: Some(0.05),
        fidelity_score: Some(0.9),
    };
    desk.does(ask::finish("a", done()));
    desk.does(Command::AttachDigest { task: id("a"), digest: digest.clone(), tokens: 4 });
    let thinking = desk.plan.task("a").unwrap().spec.thinking.clone().unwrap();
    assert_eq!((thinking.tokens, thinking.digest), (19, Some(digest)));
    assert_eq!(desk.plan.state().tokens_used, 20);
    assert_eq!(desk.status("a"), Status::Done, "a digest changes nothing else");
}

// Replace

fn replaced(desk: &mut Desk, change: impl FnOnce(&mut Draft)) -> Vec<Event> {
    let mut draft = desk.plan.to_draft();
    change(&mut draft);
    desk.does(Command::Replace(Box::new(draft)))
}

#[test]
fn a_replaced_plan_keeps_what_happened_to_tasks_that_ask_the_same() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[]), task("c", &["a", "b"])]));
    desk.does(ask::finish("a", Outcome::Done { result: Some("fine".into()), output: None, evidence: None }));
    desk.does(ask::finish("b", done()));
    desk.does(ask::start("c"));
    replaced(&mut desk, |draft| {
        draft.spec.title = "another".into();
        draft.tasks[0].spec.notes = "seen".into();
        draft.tasks[1].spec.description = "do b otherwise".into();
        // What a text says has happened is not believed.
        draft.tasks[0].state = Default::default();
        draft.state.phase = Phase::Cancelled;
    });
    assert_eq!(desk.standings(), "a:done b:ready c:running");
    assert_eq!(desk.plan.task("a").unwrap().state.result.as_deref(), Some("fine"));
    assert_eq!(desk.plan.spec().title, "another");
    assert_eq!(desk.plan.state().phase, Phase::Active);
}

#[test]
fn a_replaced_plan_has_the_tasks_order_and_parents_of_the_draft() {
    let mut desk = Desk::with(plan_of([
        task("a", &[]),
        task("b", &["a"]),
        task("p", &[]),
        child("x", "p", &[]),
        child("y", "p", &[]),
    ]));
    replaced(&mut desk, |draft| {
        let mut spec = |name: &str| {
            let place = draft.tasks.iter().position(|task| task.spec.id.as_str() == name).unwrap();
            draft.tasks.remove(place).spec
        };
        let (mut a, mut x, mut y, p) = (spec("a"), spec("x"), spec("y"), spec("p"));
        a.parent = Some(id("y"));
        y.parent = None;
        x.depends_on = vec![Dependency::Task(id("n"))];
        x.parent = Some(id("n2"));
        draft.tasks =
            [task("n2", &[]), x, p, y, a, child("n", "p", &[])].into_iter().map(Task::new).collect();
    });
    assert_eq!(order(&desk), "n2 -x p -n y -a");
    assert_eq!(desk.standings(), "n2:ready x:blocked p:ready n:ready y:ready a:ready");
}

#[test]
fn a_replaced_plan_may_turn_parents_upside_down() {
    let mut desk = Desk::with(plan_of([task("a", &[]), child("b", "a", &[]), child("c", "b", &[])]));
    replaced(&mut desk, |draft| {
        let parents = [Some(id("b")), Some(id("c")), None];
        for (task, parent) in draft.tasks.iter_mut().zip(parents) {
            task.spec.parent = parent;
        }
        draft.tasks.reverse();
    });
    assert_eq!(order(&desk), "c -b --a");
    assert_eq!(desk.plan.counts().total, 1);
}

#[test]
fn a_replaced_plan_drops_nothing_that_runs() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    desk.does(ask::start("a"));
    let still_running = Refusal::StillRunning { running: vec!["a".into()] };
    let mut without = desk.plan.to_draft();
    without.tasks.remove(0);
    assert_eq!(desk.refuses(Command::Replace(Box::new(without))), still_running);
    let mut other = desk.plan.to_draft();
    other.tasks[0].spec.description = "do it otherwise".into();
    assert_eq!(desk.refuses(Command::Replace(Box::new(other))), still_running);
    let mut group = desk.plan.to_draft();
    group.tasks[1].spec.parent = Some(id("a"));
    assert_eq!(desk.refuses(Command::Replace(Box::new(group))), still_running);
}

#[test]
fn a_replaced_plan_stays_paused() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    desk.does(ask::finish("a", done()));
    desk.does(Command::Pause { reason: "lunch".into() });
    replaced(&mut desk, |draft| {
        draft.tasks.remove(1);
        draft.tasks[0].spec.description = "do it again".into();
    });
    assert_eq!(desk.standings(), "a:ready");
    assert_eq!(desk.plan.state().phase, Phase::Paused);
}

#[test]
fn a_draft_with_problems_replaces_nothing() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    let mut draft = desk.plan.to_draft();
    draft.tasks[0].spec.depends_on = vec![Dependency::Task(id("b"))];
    assert!(matches!(desk.refuses(Command::Replace(Box::new(draft))), Refusal::Invalid { .. }));
}

// Elsewhere

#[test]
fn a_task_goes_on_with_what_it_received_from_elsewhere() {
    let far = there(Some("builder"), None, "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone())]));
    assert_eq!(desk.standing("a"), Standing::Blocked);
    assert_eq!(desk.plan.waiting("a", desk.now), [Waiting::Dependencies(vec!["builder:far".into()])]);
    let not_awaited = desk.refuses(hear("a", there(None, Some("p9"), "far"), Status::Done, None));
    assert_eq!(not_awaited, Refusal::NotAwaited { task: "a".into(), dependency: "p9/far".into() });
    assert!(matches!(
        desk.refuses(hear("a", far.clone(), Status::Running, None)),
        Refusal::NotAwaited { .. }
    ));
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&42))));
    assert_eq!(desk.does(hear("a", far, Status::Done, Some(Json::of(&42)))), [], "it knows that already");
    assert_eq!(desk.standing("a"), Standing::Ready);
    assert_eq!(desk.plan.outputs_for("a"), [("builder:far".to_owned(), Json::of(&42))]);
}

#[test]
fn what_fails_elsewhere_skips_here_and_what_is_done_after_all_brings_back() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone()), task("b", &["a"]), task("c", &[])]));
    desk.does(hear("a", far.clone(), Status::Failed, None));
    assert_eq!(desk.standings(), "a:skipped b:skipped c:ready");
    assert_eq!(desk.because_of("b").as_deref(), Some("other/far"));
    desk.does(hear("a", far, Status::Done, None));
    assert_eq!(desk.standings(), "a:ready b:blocked c:ready");
}

#[test]
fn a_plan_that_was_cut_off_elsewhere_is_not_completed_and_goes_on_when_that_goes_well_after_all() {
    let far = there(None, Some("other"), "far");
    let group = [after("g", far.clone()), child("a", "g", &[]), task("b", &["g"])];
    for tasks in [vec![after("a", far.clone()), task("b", &["a"])], group.to_vec()] {
        let mut desk = Desk::with(plan_of(tasks));
        let waits = if desk.plan.task("g").is_some() { "g" } else { "a" };
        desk.does(hear(waits, far.clone(), Status::Cancelled, None));
        assert_eq!(desk.plan.state().phase, Phase::Failed);
        // It is to be done again, so that the plan waits again.
        desk.does(withdraw(waits, &far));
        assert_eq!(desk.plan.state().phase, Phase::Active);
        assert_eq!((desk.standing("a"), desk.standing("b")), (Standing::Blocked, Standing::Blocked));
        desk.does(hear(waits, far.clone(), Status::Failed, None));
        assert_eq!(desk.plan.state().phase, Phase::Failed);
        desk.does(hear(waits, far.clone(), Status::Done, None));
        assert_eq!(desk.plan.state().phase, Phase::Active);
        assert_eq!((desk.standing("a"), desk.standing("b")), (Standing::Ready, Standing::Blocked));
    }
}

#[test]
fn a_plan_that_its_author_ended_is_not_opened_from_elsewhere_and_can_be_retried() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone())]));
    desk.does(hear("a", far.clone(), Status::Failed, None));
    desk.does(Command::FinishPlan { phase: Phase::Failed, summary: "without it there is no point".into() });
    desk.does(withdraw("a", &far));
    desk.does(hear("a", far, Status::Done, None));
    assert_eq!(desk.plan.state().phase, Phase::Failed, "its author has the last word");
    let why = desk.plan.task("a").unwrap().state.why().unwrap();
    assert_eq!(why, "other/far had not succeeded when the plan ended; it has since");
    desk.does(Command::RetryPlan);
    assert_eq!(desk.standings(), "a:ready");
    assert!(!desk.plan.state().closed);
}

#[test]
fn what_is_to_be_done_again_elsewhere_is_waited_for_again_unless_the_task_has_begun() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone()), task("b", &["a"])]));
    assert_eq!(desk.does(withdraw("a", &far)), [], "it has heard nothing yet");
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&1))));
    desk.does(withdraw("a", &far));
    assert_eq!(desk.standing("a"), Standing::Blocked);
    assert_eq!(desk.plan.outputs_for("a"), []);
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&2))));
    assert_eq!(desk.plan.outputs_for("a"), [("other/far".to_owned(), Json::of(&2))]);
    desk.does(ask::start("a"));
    assert_eq!(desk.does(withdraw("a", &far)), [], "it works with what it was given");
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.does(withdraw("a", &far)), []);
    assert_eq!(desk.standings(), "a:done b:ready");
}

#[test]
fn steps_of_one_name_in_two_plans_of_an_agent_are_two() {
    let (first, second) = (there(Some("x"), Some("p1"), "far"), there(Some("x"), Some("p2"), "far"));
    let both = vec![first.clone(), second.clone()].into_iter().map(|on| Dependency::Elsewhere(Box::new(on)));
    let mut desk = Desk::with(plan_of([TaskSpec { depends_on: both.collect(), ..task("a", &[]) }]));
    desk.does(hear("a", first, Status::Done, Some(Json::of(&1))));
    assert_eq!(desk.standing("a"), Standing::Blocked);
    desk.does(hear("a", second, Status::Done, Some(Json::of(&2))));
    assert_eq!(desk.standing("a"), Standing::Ready);
    assert_eq!(desk.plan.outputs_for("a").len(), 2);
}

#[test]
fn what_came_from_a_dependency_that_was_taken_away_is_forgotten() {
    let far = there(None, Some("other"), "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone())]));
    desk.does(hear("a", far.clone(), Status::Done, Some(Json::of(&1))));
    let dependency = vec![Dependency::Elsewhere(Box::new(far))];
    desk.does(ask::revise(
        "a",
        TaskChanges { depends_no_more_on: dependency.clone(), ..TaskChanges::default() },
    ));
    assert_eq!(desk.plan.outputs_for("a"), []);
    desk.does(ask::revise("a", TaskChanges { depends_also_on: dependency, ..TaskChanges::default() }));
    assert_eq!(desk.standing("a"), Standing::Blocked);
}

#[test]
fn a_cause_elsewhere_with_a_very_long_name_is_still_a_cause() {
    let far = there(Some(&"builder".repeat(60)), None, "far");
    let mut desk = Desk::with(plan_of([after("a", far.clone()), task("b", &["a"])]));
    desk.does(hear("a", far, Status::Failed, None));
    assert_eq!(desk.because_of("b").as_deref(), Some("far"));
}

// Questions

#[test]
fn outputs_come_under_the_name_that_they_are_provided_as() {
    let named = TaskSpec { provides: Some("schema".into()), ..task("a", &[]) };
    let mut desk = Desk::with(plan_of([named, task("b", &[]), task("c", &["b", "a"]), task("d", &[])]));
    desk.does(ask::finish("a", Outcome::Done { result: None, output: Some(Json::of(&"x")), evidence: None }));
    desk.does(ask::finish("b", Outcome::Done { result: None, output: Some(Json::of(&2)), evidence: None }));
    let wanted = [("b".to_owned(), Json::of(&2)), ("schema".to_owned(), Json::of(&"x"))];
    assert_eq!(desk.plan.outputs_for("c"), wanted);
    assert_eq!(desk.plan.outputs_for("d"), []);
    assert_eq!(desk.plan.outputs_for("nobody"), []);
}

#[test]
fn everything_that_keeps_a_task_from_starting_is_said() {
    let draft = plan_of([task("a", &[]), task("p", &["a"]), child("x", "p", &["b"]), task("b", &[])]);
    let mut desk = Desk::made_by(&ada(), draft);
    let on = |name: &str| Waiting::Dependencies(vec![name.to_owned()]);
    assert_eq!(desk.plan.waiting("x", desk.now), [on("b"), on("a")]);
    desk.does(Command::RequestApproval { message: "?".into() });
    assert_eq!(desk.plan.waiting("x", desk.now), [Waiting::Approval, on("b"), on("a")]);
    desk.does(approve(&desk));
    desk.does(ask::finish("a", done()));
    assert_eq!(desk.plan.waiting("x", desk.now), [on("b")]);
    desk.does(ask::finish("b", done()));
    assert_eq!(desk.plan.waiting("x", desk.now), []);
    assert_eq!(desk.plan.waiting("a", desk.now), [], "what has ended waits for nothing");
}

#[test]
fn who_waits_for_all_to_finish_does_not_wait_for_what_failed() {
    let mut desk =
        Desk::with(plan_of([task("a", &[]), task("b", &[]), when(When::AllFinished, "c", &["a", "b"])]));
    desk.does(ask::finish("a", failed()));
    assert_eq!(desk.plan.waiting("c", desk.now), [Waiting::Dependencies(vec!["b".into()])]);
}

#[test]
fn a_free_id_is_one_that_no_task_has_had() {
    let mut desk = Desk::with(plan_of([task("t1", &[]), task("t7", &[]), task("t09", &[]), task("x", &[])]));
    assert_eq!(desk.plan.free_task_id(), id("t8"));
    desk.does(add(vec![task("t8", &[])]));
    desk.does(ask::remove("t8", false));
    assert_eq!(desk.plan.free_task_id(), id("t9"));
    let again = Plan::from_snapshot(desk.plan.snapshot().to_vec()).unwrap();
    assert_eq!(again.free_task_id(), id("t9"));
}

#[test]
fn a_task_is_found_by_its_name_or_an_unambiguous_beginning() {
    let desk = Desk::with(plan_of([task("build", &[]), task("build-all", &[]), task("test", &[])]));
    assert_eq!(desk.plan.resolve("te"), Ok(id("test")));
    assert_eq!(desk.plan.resolve("build"), Ok(id("build")), "the whole name wins");
    assert_eq!(desk.plan.resolve("bu"), Err(vec![id("build"), id("build-all")]));
    assert_eq!(desk.plan.resolve("x"), Err(vec![]));
}

#[test]
fn an_unknown_task_comes_with_the_nearest_name() {
    let mut desk = Desk::with(plan_of([task("build", &[])]));
    let refusal = desk.refuses(ask::start("buil"));
    assert_eq!(refusal.to_string(), "no task is called buil");
    assert_eq!(refusal.hint(), "did you mean build?");
}

#[test]
fn counts_and_dependants_are_kept() {
    let mut desk = Desk::with(fan_out(3));
    desk.does(ask::finish("root", done()));
    desk.does(ask::start("m0"));
    let counts = desk.plan.counts();
    assert_eq!((counts.total, counts.done, counts.running, counts.ready, counts.blocked), (5, 1, 1, 2, 1));
    assert_eq!(counts.finished(), 1);
    let names: Vec<&str> = desk.plan.dependants("root").iter().map(|task| task.spec.id.as_str()).collect();
    assert_eq!(names, ["m0", "m1", "m2"]);
    assert_eq!((desk.plan.len(), desk.plan.is_empty()), (5, false));
    assert_eq!(desk.plan.children("root"), Vec::<&Task>::new());
}

#[test]
fn a_tower_of_groups_has_a_standing_without_recursion() {
    let levels = waypost_core::limits::DEPTH_MAX;
    let mut desk = Desk::with(plan_of((0..=levels).map(|level| match level {
        0 => task("t0", &[]),
        level => child(&format!("t{level}"), &format!("t{}", level - 1), &[]),
    })));
    assert_eq!(desk.standing("t0"), Standing::Ready);
    desk.does(ask::start(&format!("t{levels}")));
    assert_eq!(desk.standing("t0"), Standing::Running);
    desk.does(ask::finish(&format!("t{levels}"), done()));
    assert_eq!(desk.standing("t0"), Standing::Done);
}

#[test]
fn what_differs_between_two_states_is_said_in_words() {
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &["a"])]));
    let before = desk.plan.to_draft();
    assert_eq!(differences(&before, &before), []);
    desk.does(ask::finish("a", done()));
    desk.does(add(vec![task("c", &[])]));
    let found = serde_json::to_value(differences(&before, &desk.plan.to_draft())).unwrap();
    let wanted = serde_json::json!([
        { "change": "task", "task": "a", "field": "status", "before": "pending", "after": "done" },
        { "change": "added", "task": "c", "description": "do c" },
    ]);
    assert_eq!(found, wanted);
}
