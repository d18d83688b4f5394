//! What becomes of tasks that wait for tasks of other plans when those are done again, set back, given up or lost.

use waypost_core::{
    Command, Dependency, Draft, EffectiveStatus, ExternalTaskRef, Json, Outcome, Phase, PlanChanges, Status,
    TaskChanges, TaskSpec,
};
use waypost_store::{NewPlan, PlanStore, TargetStatus};
use waypost_testkit::{SeededRng, id, plan_of, task};

use crate::kit::*;
use crate::place::Place;

fn on(agent: Option<&str>, on: Option<&str>, name: &str) -> ExternalTaskRef {
    ExternalTaskRef { agent: agent.map(str::to_owned), plan: on.map(plan), task: id(name) }
}

fn waiting(name: &str, there: ExternalTaskRef) -> TaskSpec {
    TaskSpec { depends_on: vec![Dependency::External(Box::new(there))], ..task(name, &[]) }
}

/// Makes a plan of `owner` and lets it run.
fn begin(plans: &PlanStore, name: &str, owner: &str, tasks: impl IntoIterator<Item = TaskSpec>) {
    create(plans, name, owned(owner, plan_of(tasks)));
    write(plans, name, Command::Activate).unwrap();
}

fn owned(owner: &str, mut draft: Draft) -> Draft {
    draft.spec.owner = owner.to_owned();
    draft
}

fn done(name: &str, output: u64) -> Command {
    let outcome = Outcome::Done { result: None, output: Some(Json::of(&output)), evidence: None };
    Command::FinishTask { task: id(name), attempt: None, outcome, retry: None }
}

fn fail(name: &str) -> Command {
    let outcome = Outcome::Failed { error: "no disk".to_owned(), evidence: None };
    Command::FinishTask { task: id(name), attempt: None, outcome, retry: None }
}

fn retry(name: &str) -> Command {
    Command::RetryTask { task: id(name) }
}

fn end(phase: Phase) -> Command {
    Command::FinishPlan { phase, summary: String::new() }
}

/// Where a task stands, and what it has been given.
fn stands(plans: &PlanStore, name: &str, task: &str) -> (EffectiveStatus, Option<u64>) {
    plans
        .with_plan(&plan(name), |plan| {
            let heard = plan.task(task).unwrap().state.received.values().next().cloned();
            let output = heard.and_then(|heard| heard.output?.value().as_u64());
            (plan.effective_status(task).unwrap(), output)
        })
        .unwrap()
}

fn why(plans: &PlanStore, name: &str, task: &str) -> String {
    now(plans, name).task(task).unwrap().state.why().unwrap()
}

fn phase(plans: &PlanStore, name: &str) -> Phase {
    now(plans, name).state().phase
}

pub(super) fn a_second_result_reaches_whoever_has_not_begun(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    begin(&plans, "lib", "builder", [task("build", &[]), task("pack", &[])]);
    let by_agent = || on(Some("builder"), None, "build");
    begin(
        &plans,
        "app",
        "main",
        [
            waiting("link", on(None, Some("lib"), "build")),
            waiting("print", by_agent()),
            waiting("begun", by_agent()),
            waiting("both", on(Some("builder"), Some("lib"), "build")),
        ],
    );
    write(&plans, "lib", done("build", 1)).unwrap();
    write(&plans, "app", start("begun")).unwrap();
    plans.write(request("lib", vec![retry("build"), done("build", 2)])).unwrap();
    for name in ["link", "print", "both"] {
        assert_eq!(stands(&other, "app", name), (EffectiveStatus::Ready, Some(2)), "{name}");
    }
    assert_eq!(
        stands(&other, "app", "begun"),
        (EffectiveStatus::Running, Some(1)),
        "it works with what it was given"
    );
    // It is given back, and has not begun any more.
    write(&plans, "app", Command::ReleaseTask { task: id("begun"), attempt: None, reason: String::new() })
        .unwrap();
    assert_eq!(stands(&other, "app", "begun"), (EffectiveStatus::Ready, Some(2)));
    let named = TaskChanges { provides: Some(Some("binary".to_owned())), ..TaskChanges::default() };
    write(&plans, "lib", revise_task("build", named)).unwrap();
    let names: Vec<String> =
        now(&other, "app").outputs_for("link").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["binary"]);
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

pub(super) fn what_is_set_back_is_waited_for_again_by_whoever_has_not_begun(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    begin(&plans, "lib", "builder", [task("build", &[])]);
    begin(
        &plans,
        "app",
        "main",
        [
            waiting("link", on(None, Some("lib"), "build")),
            waiting("print", on(Some("builder"), None, "build")),
            waiting("gone", on(None, Some("lib"), "build")),
        ],
    );
    write(&plans, "lib", done("build", 1)).unwrap();
    write(&plans, "app", done("gone", 7)).unwrap();
    write(&plans, "lib", retry("build")).unwrap();
    for name in ["link", "print"] {
        assert_eq!(stands(&other, "app", name), (EffectiveStatus::Blocked, None), "{name}");
    }
    assert_eq!(
        stands(&other, "app", "gone"),
        (EffectiveStatus::Done, Some(1)),
        "what has ended is not touched"
    );
    write(&plans, "lib", done("build", 2)).unwrap();
    for name in ["link", "print"] {
        assert_eq!(stands(&other, "app", name), (EffectiveStatus::Ready, Some(2)), "{name}");
    }
    // A task that is to be done again gets what there is then.
    write(&plans, "app", retry("gone")).unwrap();
    assert_eq!(stands(&other, "app", "gone"), (EffectiveStatus::Ready, Some(2)));
    // A later plan of the agent with a task of the same name takes nothing back.
    begin(&plans, "lib2", "builder", [task("build", &[])]);
    assert_eq!(stands(&other, "app", "print"), (EffectiveStatus::Ready, Some(2)));
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

pub(super) fn plans_that_ended_for_a_failure_elsewhere_go_on_when_it_is_put_right(place: &Place) {
    let (plans, other) = (place.plans(), place.plans());
    begin(&plans, "lib", "builder", [task("build", &[])]);
    begin(&plans, "app", "main", [waiting("link", on(Some("builder"), None, "build"))]);
    begin(&plans, "far", "far", [waiting("read", on(None, Some("app"), "link")), task("then", &["read"])]);
    begin(&plans, "said", "far", [waiting("read", on(None, Some("app"), "link"))]);
    write(&plans, "lib", fail("build")).unwrap();
    for name in ["app", "far", "said"] {
        assert_eq!(phase(&other, name), Phase::Failed, "{name}");
    }
    write(&plans, "said", end(Phase::Failed)).unwrap();
    // A new plan of the agent with a task of this name has nothing to do with what has ended.
    begin(&plans, "lib2", "builder", [task("build", &[])]);
    write(&plans, "lib2", done("build", 9)).unwrap();
    assert_eq!(phase(&other, "app"), Phase::Failed);
    write(&plans, "lib", retry("build")).unwrap();
    for (name, task) in [("app", "link"), ("far", "read"), ("far", "then")] {
        assert_eq!(stands(&other, name, task), (EffectiveStatus::Blocked, None), "{name}");
        assert_eq!(phase(&other, name), Phase::Active, "{name}");
    }
    write(&plans, "lib", done("build", 1)).unwrap();
    assert_eq!(stands(&other, "app", "link"), (EffectiveStatus::Ready, Some(1)));
    write(&plans, "app", done("link", 2)).unwrap();
    assert_eq!(stands(&other, "far", "read"), (EffectiveStatus::Ready, Some(2)));
    assert_eq!(phase(&other, "said"), Phase::Failed, "its author has the last word");
    assert_eq!(why(&other, "said", "read"), "app/link had not succeeded when the plan ended; it has since");
    write(&plans, "said", Command::RetryPlan).unwrap();
    assert_eq!(stands(&other, "said", "read"), (EffectiveStatus::Ready, Some(2)));
    for name in ["app", "far", "said"] {
        assert_eq!(replayed(&plans, name).to_draft(), now(&other, name).to_draft());
    }
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

pub(super) fn a_plan_that_is_named_with_its_agent_must_be_that_agents(place: &Place) {
    let plans = place.plans();
    begin(&plans, "lib", "builder", [task("build", &[])]);
    let draft = plan_of([waiting("link", on(Some("tester"), Some("lib"), "build"))]);
    let new = NewPlan { id: Some(plan("app")), by: ada(), draft, approval_required: None };
    assert_eq!(
        plans.create(new).unwrap_err().to_string(),
        "the plan would not be valid: task link: depends on tester:lib/build, which can never be: \
         plan lib belongs to builder, not to tester"
    );
    // A plan that comes later may turn out to be somebody else's.
    create(&plans, "app", plan_of([waiting("link", on(Some("tester"), Some("late"), "build"))]));
    write(&plans, "app", Command::Activate).unwrap();
    begin(&plans, "late", "builder", [task("build", &[])]);
    write(&plans, "late", done("build", 1)).unwrap();
    assert_eq!(stands(&plans, "app", "link"), (EffectiveStatus::Blocked, None));
    let [(wait, found)] = &plans.external_waits(&plan("app"), 10).unwrap()[..] else { panic!("one waits") };
    assert_eq!(found.describe(&wait.on), "plan late belongs to builder, not to tester");
    let notes = TaskChanges { notes: Some("patience".to_owned()), ..TaskChanges::default() };
    write(&plans, "app", revise_task("link", notes)).unwrap();
    let owner = PlanChanges { owner: Some("tester".to_owned()), ..PlanChanges::default() };
    write(&plans, "late", revise(owner)).unwrap();
    assert_eq!(stands(&place.plans(), "app", "link"), (EffectiveStatus::Ready, Some(1)));
}

pub(super) fn what_can_never_be_is_refused_and_what_may_yet_be_is_named(place: &Place) {
    let plans = place.plans();
    begin(&plans, "over", "builder", [task("build", &[])]);
    write(&plans, "over", done("build", 1)).unwrap();
    create_small(&plans, "lost");
    plans.purge(&plan("lost"), &ada()).unwrap();
    begin(&plans, "app", "main", [task("a", &[])]);
    for (there, why) in [
        (
            on(None, Some("over"), "test"),
            "over/test, which can never be: plan over has ended, and has no task test",
        ),
        (on(None, Some("lost"), "first"), "lost/first, which can never be: plan lost was purged"),
        (on(Some("*"), None, "build"), "*:build, which can never be: \"*\" names no agent"),
        (
            on(None, Some("app"), "a"),
            "app/a, which can never be: app is its own plan; a task of it is named by its id alone",
        ),
    ] {
        let refused = write(&plans, "app", add_all([waiting("b", there)])).unwrap_err();
        assert_eq!(refused.to_string(), format!("the plan would not be valid: task b: depends on {why}"));
    }
    let added = write(
        &plans,
        "app",
        add_all([
            waiting("b", on(None, Some("later"), "x")),
            waiting("c", on(Some("nobody"), None, "x")),
            waiting("d", on(Some("builder"), None, "x")),
            waiting("e", on(None, Some("over"), "build")),
        ]),
    )
    .unwrap();
    let words = [
        "b waits for later/x: there is no plan later so far",
        "c waits for nobody:x: agent nobody has no plan so far",
        "d waits for builder:x: no plan of agent builder has a task x so far",
    ];
    assert_eq!(added.warnings(), words);
    let notes = TaskChanges { notes: Some("patience".to_owned()), ..TaskChanges::default() };
    assert_eq!(write(&plans, "app", revise_task("b", notes)).unwrap().unresolved, [], "it is said once");
    let waits = plans.external_waits(&plan("app"), 10).unwrap();
    let named: Vec<String> =
        waits.iter().map(|(wait, found)| format!("{}: {}", wait.task, found.describe(&wait.on))).collect();
    assert_eq!(
        named,
        [
            "b: there is no plan later so far",
            "c: agent nobody has no plan so far",
            "d: no plan of agent builder has a task x so far"
        ]
    );
    // What is there when it comes is there.
    begin(&plans, "later", "nobody", [task("x", &[])]);
    let found = plans.target_status(&plan("app"), None, &on(Some("nobody"), None, "x")).unwrap();
    assert!(matches!(&found, TargetStatus::There { plan, .. } if plan.as_str() == "later"), "{found:?}");
    write(&plans, "later", done("x", 3)).unwrap();
    assert_eq!(stands(&plans, "app", "b"), (EffectiveStatus::Ready, Some(3)));
    assert_eq!(stands(&plans, "app", "c"), (EffectiveStatus::Ready, Some(3)));
}

pub(super) fn a_plan_that_ends_without_the_task_is_heard_of(place: &Place) {
    let plans = place.plans();
    begin(&plans, "lib", "builder", [task("build", &[])]);
    begin(&plans, "app", "main", [waiting("link", on(None, Some("lib"), "test")), task("else", &[])]);
    write(&plans, "lib", done("build", 1)).unwrap();
    assert_eq!(stands(&plans, "app", "link"), (EffectiveStatus::Skipped, None));
    assert_eq!(why(&plans, "app", "link"), "plan lib has ended, and has no task test");
    // It is given the task after all.
    write(&plans, "lib", add("test")).unwrap();
    assert_eq!(stands(&plans, "app", "link"), (EffectiveStatus::Blocked, None));
    write(&plans, "lib", done("test", 2)).unwrap();
    assert_eq!(stands(&place.plans(), "app", "link"), (EffectiveStatus::Ready, Some(2)));
    // A plan that is made with what somebody waits for, done already.
    begin(&plans, "early", "main", [waiting("link", on(None, Some("import"), "build"))]);
    let mut imported = plan_of([task("build", &[])]);
    imported.tasks[0].state.status = Status::Done;
    imported.tasks[0].state.output = Some(Json::of(&5));
    create(&plans, "import", imported);
    assert_eq!(stands(&plans, "early", "link"), (EffectiveStatus::Ready, Some(5)));
}

pub(super) fn who_waits_follows_a_plan_that_is_handed_over(place: &Place) {
    let plans = place.plans();
    begin(&plans, "old", "builder", [task("build", &[])]);
    begin(&plans, "lib", "builder", [task("build", &[]), task("test", &[])]);
    begin(
        &plans,
        "app",
        "main",
        [
            waiting("link", on(Some("builder"), None, "build")),
            waiting("check", on(Some("builder"), Some("lib"), "test")),
            waiting("other", on(Some("builder"), None, "unknown")),
        ],
    );
    let owner = |name: &str| revise(PlanChanges { owner: Some(name.to_owned()), ..PlanChanges::default() });
    write(&plans, "lib", owner("heir")).unwrap();
    write(&plans, "lib", owner("last")).unwrap();
    // Another plan of the former owner is not what was waited for.
    write(&plans, "old", done("build", 7)).unwrap();
    assert_eq!(stands(&plans, "app", "link"), (EffectiveStatus::Blocked, None));
    plans.write(request("lib", vec![done("build", 1), done("test", 2)])).unwrap();
    assert_eq!(stands(&plans, "app", "link"), (EffectiveStatus::Ready, Some(1)));
    assert_eq!(stands(&plans, "app", "check"), (EffectiveStatus::Ready, Some(2)));
    let of = |name: &str| now(&plans, "app").task(name).unwrap().spec.depends_on[0].to_string();
    assert_eq!(
        [of("link"), of("check"), of("other")],
        ["last:lib/build", "last:lib/test", "builder:unknown"]
    );
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

pub(super) fn plans_that_are_put_away_or_purged_are_heard_of(place: &Place) {
    let plans = place.plans();
    begin(&plans, "lib", "builder", [task("build", &[])]);
    begin(
        &plans,
        "app",
        "main",
        [
            waiting("link", on(None, Some("lib"), "build")),
            waiting("print", on(Some("builder"), None, "build")),
            waiting("other", on(None, Some("lib"), "unknown")),
            task("else", &[]),
        ],
    );
    write(&plans, "lib", Command::Archive).unwrap();
    for name in ["link", "print"] {
        assert_eq!(stands(&plans, "app", name).0, EffectiveStatus::Skipped, "{name}");
        assert_eq!(why(&plans, "app", name), "plan lib was archived");
    }
    assert_eq!(why(&plans, "app", "other"), "plan lib was archived, and has no task unknown");
    write(&plans, "lib", Command::Unarchive).unwrap();
    for name in ["link", "print", "other"] {
        assert_eq!(stands(&plans, "app", name), (EffectiveStatus::Blocked, None), "{name}");
    }
    // Who is put away hears nothing, and everything when it is taken out.
    write(&plans, "app", Command::Archive).unwrap();
    write(&plans, "lib", done("build", 1)).unwrap();
    assert_eq!(stands(&plans, "app", "link"), (EffectiveStatus::Blocked, None));
    write(&plans, "app", Command::Unarchive).unwrap();
    assert_eq!(stands(&plans, "app", "link"), (EffectiveStatus::Ready, Some(1)));
    assert_eq!(stands(&plans, "app", "print"), (EffectiveStatus::Ready, Some(1)));
    // What was given stays given; what was not, never comes.
    begin(&plans, "tool", "maker", [task("forge", &[])]);
    write(
        &plans,
        "app",
        add_all([
            waiting("cut", on(None, Some("tool"), "forge")),
            waiting("saw", on(Some("maker"), None, "forge")),
            waiting("elsewhere", on(Some("maker"), None, "paint")),
        ]),
    )
    .unwrap();
    plans.purge(&plan("lib"), &ada()).unwrap();
    plans.purge(&plan("tool"), &ada()).unwrap();
    for name in ["link", "print"] {
        assert_eq!(stands(&plans, "app", name), (EffectiveStatus::Ready, Some(1)), "{name}");
    }
    for name in ["cut", "saw"] {
        assert_eq!(stands(&plans, "app", name).0, EffectiveStatus::Skipped, "{name}");
        assert_eq!(why(&plans, "app", name), "plan tool was purged");
    }
    assert_eq!(
        stands(&plans, "app", "elsewhere"),
        (EffectiveStatus::Blocked, None),
        "it was never in that plan"
    );
    // The agent begins anew.
    begin(&plans, "tool2", "maker", [task("forge", &[])]);
    write(&plans, "tool2", done("forge", 2)).unwrap();
    assert_eq!(stands(&place.plans(), "app", "saw"), (EffectiveStatus::Ready, Some(2)));
    assert_eq!(place.plans().doctor(false).unwrap(), []);
}

pub(super) fn what_would_close_a_ring_is_not_set_back(place: &Place) {
    let plans = place.plans();
    begin(&plans, "lib", "builder", [task("fetch", &[]), task("build", &["fetch"]), task("pack", &[])]);
    begin(&plans, "app", "main", [waiting("link", on(None, Some("lib"), "build"))]);
    plans.write(request("lib", vec![done("fetch", 0), done("build", 1), retry("fetch")])).unwrap();
    // What has ended waits for nothing, so that nothing is wrong with this yet.
    let after_link = TaskChanges {
        add_dependencies: vec![Dependency::External(Box::new(on(None, Some("app"), "link")))],
        ..TaskChanges::default()
    };
    write(&plans, "lib", revise_task("fetch", after_link)).unwrap();
    let refused = write(&plans, "lib", retry("build")).unwrap_err();
    let path = "builder:lib/build → builder:lib/fetch → main:app/link → builder:lib/build";
    assert!(refused.to_string().contains(path), "{refused}");
    assert_eq!(stands(&plans, "app", "link"), (EffectiveStatus::Ready, Some(1)));
    // Nor does a plan that changes hands close one.
    begin(&plans, "one", "a", [waiting("x", on(Some("b"), None, "y"))]);
    begin(&plans, "two", "nobody", [waiting("y", on(None, Some("one"), "x"))]);
    let owner = PlanChanges { owner: Some("b".to_owned()), ..PlanChanges::default() };
    let refused = write(&plans, "two", revise(owner)).unwrap_err();
    assert!(refused.to_string().contains("b:two/y → a:one/x → b:two/y"), "{refused}");
}

/// Plans that wait for each other, at random: whoever has not begun knows the last end of what it waits for.
pub(super) fn whoever_has_not_begun_knows_how_things_stand(place: &Place) {
    const PLANS: usize = 5;
    const TASKS: usize = 3;
    let mut heard = 0;
    for seed in 0..(place.histories / 3).clamp(1, 6) {
        let plans = place.plans();
        let mut dice = SeededRng::new(seed);
        let name = |number: usize| format!("s{seed}-{number}");
        for number in 0..PLANS {
            let tasks = (0..TASKS).map(|at| {
                let mut spec = task(&format!("t{at}"), &[]);
                for _ in 0..dice.below(3) {
                    // Mostly what is there already, sometimes what comes later or never.
                    let far = dice.below(PLANS + 1);
                    if far != number {
                        let owner = format!("agent-{seed}-{far}");
                        let (agent, by_plan) = (dice.chance(40), dice.chance(70));
                        let there = on(
                            (agent || !by_plan).then_some(owner.as_str()),
                            by_plan.then_some(name(far)).as_deref(),
                            &format!("t{}", dice.below(TASKS + 1)),
                        );
                        spec.depends_on.push(Dependency::External(Box::new(there)));
                    }
                }
                spec
            });
            let draft = owned(&format!("agent-{seed}-{number}"), plan_of(tasks));
            let new = NewPlan { id: Some(plan(&name(number))), by: ada(), draft, approval_required: None };
            // A ring, or a plan that has ended without the task, is refused.
            if plans.create(new).is_ok() {
                write(&plans, &name(number), Command::Activate).unwrap();
            }
            for _ in 0..12 {
                random_write(&plans, &mut dice, &|dice| name(dice.below(number + 1)));
                heard += check_all(&plans, PLANS, &name);
            }
        }
        for number in 0..PLANS {
            if head(plans.store(), &name(number)).is_some() {
                assert_eq!(replayed(&plans, &name(number)).to_draft(), now(&plans, &name(number)).to_draft());
            }
        }
        assert_eq!(plans.doctor(false).unwrap(), []);
    }
    assert!(heard > 10, "there was something to hear: {heard}");
}

fn random_write(plans: &PlanStore, dice: &mut SeededRng, some_plan: &dyn Fn(&mut SeededRng) -> String) {
    let name = some_plan(dice);
    let (task, output) = (format!("t{}", dice.below(4)), dice.bits() % 1_000);
    let command = match dice.below(20) {
        0..6 => done(&task, output),
        6..9 => fail(&task),
        9..14 => retry(&task),
        14 => start(&task),
        15 => Command::ReleaseTask { task: id(&task), attempt: None, reason: String::new() },
        16 => Command::Archive,
        17 => Command::Unarchive,
        18 => add(&task),
        _ => Command::RemoveTask { task: id(&task), detach: true },
    };
    // Much of it is refused, and that is as it should be.
    let _refused = write(plans, &name, command);
}

/// Every task that has not begun must have heard what is so, and nothing else. Returns how much was heard.
fn check_all(plans: &PlanStore, count: usize, name: &dyn Fn(usize) -> String) -> usize {
    let mut all_heard = 0;
    for number in 0..count {
        if head(plans.store(), &name(number)).is_none() {
            continue;
        }
        let waiting = now(plans, &name(number));
        if waiting.state().archived {
            continue;
        }
        for (task, _) in waiting.tasks() {
            let listens = match task.state.status {
                Status::Pending => true,
                Status::Skipped => task.state.because_of.is_some(),
                Status::Running | Status::Done | Status::Failed | Status::Cancelled => false,
            };
            for there in task.spec.depends_on.iter().filter_map(Dependency::external).filter(|_| listens) {
                let heard = task.state.received.get(&there.key());
                all_heard += usize::from(heard.is_some());
                // Each agent has one plan here, so that an agent's name means that plan.
                let far = (0..=count).map(name).find(|far| {
                    there.plan.as_ref().is_some_and(|plan| plan.as_str() == far)
                        || there.agent.as_ref().is_some_and(|agent| agent.ends_with(&far[1..]))
                });
                let far = far.expect("every name means one of the plans");
                let what = format!("{}/{} on {}: {heard:?}", name(number), task.spec.id, there.key());
                let Some(cause) = head(plans.store(), &far).map(|_| now(plans, &far)) else {
                    assert_eq!(heard, None, "{what}");
                    continue;
                };
                let state = cause.task(there.task.as_str()).map(|task| &task.state);
                let given = heard.map(|heard| (heard.status, heard.output.clone()));
                // A plan that was over before somebody asked for its agent does not answer.
                let over = cause.state().phase.is_finished() || cause.state().archived;
                if there.plan.is_none() && over && heard.is_none() {
                    continue;
                }
                match state {
                    Some(state) if state.status.is_finished() => {
                        assert_eq!(given, Some((state.status, state.output.clone())), "{what}");
                    }
                    Some(_) if cause.state().archived => {
                        assert_eq!(given, Some((Status::Cancelled, None)), "{what}");
                    }
                    Some(_) => assert_eq!(given, None, "{what}"),
                    // What was given stays given, even if the task is taken out.
                    None => {
                        let is_good = heard.is_some_and(|heard| heard.status == Status::Done);
                        let of_plan = there.plan.is_some();
                        assert!(is_good || !of_plan || heard.is_some() == over, "{what}");
                    }
                }
            }
        }
    }
    all_heard
}
