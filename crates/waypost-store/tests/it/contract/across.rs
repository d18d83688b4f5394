//! Tasks that wait for tasks of other plans hear of them: what has happened already, and what happens later.

use waypost_core::{
    Command, Dependency, Draft, EffectiveStatus, ExternalTaskRef, Json, Plan, Status, TaskChanges, TaskSpec,
};
use waypost_store::{NewPlan, PlanStore, TargetStatus};
use waypost_testkit::{id, plan_of, task};

use crate::kit::*;
use crate::place::Place;

fn waiting(name: &str, agent: Option<&str>, on: Option<&str>, for_task: &str) -> TaskSpec {
    let there = ExternalTaskRef { agent: agent.map(str::to_owned), plan: on.map(plan), task: id(for_task) };
    TaskSpec { depends_on: vec![Dependency::External(Box::new(there))], ..task(name, &[]) }
}

fn owned(owner: &str, mut draft: Draft) -> Draft {
    draft.spec.owner = owner.to_owned();
    draft
}

fn standing(plans: &PlanStore, name: &str, task: &str) -> Option<EffectiveStatus> {
    plans.with_plan(&plan(name), |plan| plan.effective_status(task)).unwrap()
}

fn output(plans: &PlanStore, name: &str, task: &str) -> Option<Json> {
    let find = |plan: &Plan| plan.task(task)?.state.received.values().next()?.output.clone();
    plans.with_plan(&plan(name), find).unwrap()
}

pub(super) fn what_ends_later_is_told_to_whoever_waits_for_it(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    create(&plans, "lib", owned("builder", plan_of([task("build", &[]), task("pack", &[])])));
    create(&plans, "app", plan_of([waiting("link", None, Some("lib"), "build")]));
    create(&plans, "doc", plan_of([waiting("print", Some("builder"), None, "build")]));
    create(&plans, "far", plan_of([waiting("read", None, Some("doc"), "print")]));
    for name in ["app", "doc", "far"] {
        write(&plans, name, Command::Activate).unwrap();
    }
    assert_eq!(standing(&other, "app", "link"), Some(EffectiveStatus::Blocked));
    write(&plans, "lib", finish("pack")).unwrap();
    assert_eq!(now(&other, "app").version(), 2, "nobody waits for that");
    write(&plans, "lib", finish("build")).unwrap();
    for plans in [&plans, &other] {
        assert_eq!(standing(plans, "app", "link"), Some(EffectiveStatus::Ready));
        assert_eq!(standing(plans, "doc", "print"), Some(EffectiveStatus::Ready));
        assert_eq!(output(plans, "app", "link"), Some(Json::of(&"build")));
        assert_eq!(standing(plans, "far", "read"), Some(EffectiveStatus::Blocked));
    }
    // What follows from the news is news again.
    let failed = waypost_core::Outcome::Failed { error: "no paper".to_owned(), evidence: None };
    let fail = Command::FinishTask { task: id("print"), attempt: None, outcome: failed, retry: None };
    write(&other, "doc", fail).unwrap();
    let heard = now(&plans, "far").task("read").unwrap().state.received.values().next().unwrap().status;
    assert_eq!(heard, Status::Failed);
    assert_ne!(standing(&plans, "far", "read"), Some(EffectiveStatus::Ready));
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

pub(super) fn what_has_ended_already_is_told_at_once(place: &Place) {
    let plans = place.plans();
    create(&plans, "lib", owned("builder", plan_of([task("build", &[])])));
    write(&plans, "lib", finish("build")).unwrap();
    let made = create(
        &plans,
        "app",
        plan_of([
            waiting("link", None, Some("lib"), "build"),
            waiting("print", Some("builder"), None, "build"),
            waiting("never", Some("builder"), None, "unheard-of"),
        ]),
    );
    assert_eq!(made.version, now(&plans, "app").version(), "the answer tells where the plan stands");
    write(&plans, "app", Command::Activate).unwrap();
    assert_eq!(standing(&plans, "app", "link"), Some(EffectiveStatus::Ready));
    // Whoever asks for an agent asks for what it does from now on.
    assert_eq!(standing(&plans, "app", "print"), Some(EffectiveStatus::Blocked));
    let print = ExternalTaskRef { agent: Some("builder".to_owned()), plan: None, task: id("build") };
    let found = plans.target_status(&plan("app"), None, &print).unwrap();
    let over = TargetStatus::OnlyInEnded { agent: "builder".to_owned(), plan: plan("lib") };
    assert_eq!(found, over);
    assert_eq!(standing(&plans, "app", "never"), Some(EffectiveStatus::Blocked));
    let added = Command::AddTasks {
        tasks: vec![waiting("late", None, Some("lib"), "build")],
        place: waypost_core::Position::Last,
    };
    write(&plans, "app", added).unwrap();
    assert_eq!(standing(&place.plans(), "app", "late"), Some(EffectiveStatus::Ready));
}

pub(super) fn plans_that_would_wait_for_each_other_are_refused_with_the_path(place: &Place) {
    let plans = place.plans();
    create(&plans, "app", owned("main", plan_of([waiting("link", Some("builder"), None, "build")])));
    // The plan that is waited for comes later, and would wait in turn: by way of another task of its own.
    let back = owned(
        "builder",
        plan_of([waiting("fetch", Some("main"), None, "link"), task("build", &["fetch"]), task("pack", &[])]),
    );
    let new = NewPlan { id: Some(plan("lib")), by: ada(), draft: back, approval_required: None };
    let refused = plans.create(new).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the plan would not be valid: task builder:lib/fetch: tasks depend on each other: \
         builder:lib/fetch → main:app/link → builder:lib/build → builder:lib/fetch"
    );
    // The same when the ring is closed by a change.
    let harmless =
        owned("builder", plan_of([waiting("fetch", Some("main"), None, "link"), task("build", &[])]));
    create(&plans, "lib", harmless);
    let on_fetch =
        TaskChanges { add_dependencies: vec![Dependency::Task(id("fetch"))], ..Default::default() };
    let refused = write(&place.plans(), "lib", revise_task("build", on_fetch)).unwrap_err();
    assert!(refused.to_string().contains("main:app/link → builder:lib/build"), "{refused}");
    assert_eq!(now(&plans, "lib").version(), 1);
    // What has ended closes no ring.
    write(&plans, "lib", finish("build")).unwrap();
    write(&plans, "lib", add_all([task("late", &["fetch"])])).unwrap();
}

pub(super) fn who_waits_for_an_agent_waits_for_the_plan_that_goes_on(place: &Place) {
    let plans = place.plans();
    create(&plans, "old", owned("builder", plan_of([task("build", &[])])));
    write(&plans, "old", finish("build")).unwrap();
    create(&plans, "first", owned("builder", plan_of([task("build", &[]), task("test", &[])])));
    create(&plans, "app", plan_of([waiting("link", Some("builder"), None, "build")]));
    write(&plans, "app", Command::Activate).unwrap();
    assert_eq!(
        standing(&plans, "app", "link"),
        Some(EffectiveStatus::Blocked),
        "the plan that has ended is not meant"
    );
    // The agent begins anew and drops its first plan: that is no answer yet.
    create(&plans, "second", owned("builder", plan_of([task("build", &[])])));
    let end = Command::FinishPlan { phase: waypost_core::Phase::Cancelled, summary: String::new() };
    write(&plans, "first", end).unwrap();
    assert_eq!(standing(&plans, "app", "link"), Some(EffectiveStatus::Blocked));
    write(&plans, "second", finish("build")).unwrap();
    assert_eq!(standing(&place.plans(), "app", "link"), Some(EffectiveStatus::Ready));
}

pub(super) fn what_failed_and_is_done_after_all_is_told_again(place: &Place) {
    let plans = place.plans();
    create(&plans, "lib", owned("builder", plan_of([task("build", &[])])));
    create(&plans, "app", plan_of([waiting("link", Some("builder"), None, "build"), task("else", &[])]));
    write(&plans, "app", Command::Activate).unwrap();
    let failed = waypost_core::Outcome::Failed { error: "no disk".to_owned(), evidence: None };
    let fail = Command::FinishTask { task: id("build"), attempt: None, outcome: failed, retry: None };
    write(&plans, "lib", fail).unwrap();
    assert_eq!(standing(&plans, "app", "link"), Some(EffectiveStatus::Skipped));
    assert_eq!(now(&plans, "app").task("link").unwrap().state.because_of, Some(id("builder:build")));
    write(&plans, "lib", Command::RetryTask { task: id("build") }).unwrap();
    write(&plans, "lib", finish("build")).unwrap();
    assert_eq!(standing(&place.plans(), "app", "link"), Some(EffectiveStatus::Ready));
    assert_eq!(output(&plans, "app", "link"), Some(Json::of(&"build")));
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

pub(super) fn of_commands_for_themselves_only_the_refused_are_left_out(place: &Place) {
    let plans = place.plans();
    create(&plans, "p", plan_of([task("a", &[]), task("b", &["a"]), task("c", &[])]));
    let asked = request("p", vec![start("a"), start("b"), finish("a"), start("b"), start("a"), start("c")]);
    let committed = plans.write_partial(asked, None).unwrap();
    let left_out: Vec<usize> = committed.rejected.iter().map(|(place, _)| *place).collect();
    assert_eq!((committed.version, left_out), (2, vec![1, 4]));
    let again = plans.write_partial(request("p", vec![start("b"), start("c")]), None).unwrap();
    assert_eq!((again.version, again.changed, again.rejected.len()), (2, false, 2));
    let fresh = now(&place.plans(), "p");
    let statuses: Vec<Status> = fresh.tasks().map(|(task, _)| task.state.status).collect();
    assert_eq!(statuses, [Status::Done, Status::Running, Status::Running]);
    assert_eq!(replayed(&plans, "p").to_draft(), fresh.to_draft());
}
