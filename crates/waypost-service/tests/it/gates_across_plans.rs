//! Gates that stand in another plan than the work behind them.

use waypost_core::{
    Actor, Dependency, DependencyRule, EffectiveStatus, ExternalTaskRef, Phase, Plan, PlanChanges, PlanId,
    Position, TaskChanges, TaskSpec,
};
use waypost_service::{Caller, ClaimOptions, CreateOptions, EditOp, Guard, NewTask, ServiceError, TaskRef};
use waypost_testkit::{id, plan_of, task};

use crate::gates::{
    Desk, agent, code, done, no_more_waits, noted, present, skipped, unattended, with_work, work,
};

fn elsewhere(agent: Option<&str>, plan: Option<PlanId>, task: &str) -> Dependency {
    let agent = agent.map(str::to_owned);
    Dependency::External(Box::new(ExternalTaskRef { agent, plan, task: id(task) }))
}

/// What a task of another plan waits for in vain, if it depends on this task.
fn held(desk: &Desk, on: &str, when: DependencyRule) -> Vec<String> {
    let there = elsewhere(None, Some(desk.plan.clone()), on);
    let spec = TaskSpec { depends_on: vec![there], when, ..with_work("next", "build", &[]) };
    let plan = desk.service.create(&present(), plan_of([spec]), CreateOptions::default()).unwrap().plan;
    desk.service.activate(&present(), &plan, Guard::NONE).unwrap();
    let waiting = desk.service.read(&plan, Plan::clone).unwrap();
    let behind = desk.service.behind_gates_of_others(&waiting, &[id("next")]).unwrap();
    behind.into_iter().map(|(_, there)| there).collect()
}

#[test]
fn an_end_by_an_agent_opens_no_gate_for_other_plans() {
    type Ends = fn(&Desk, &Caller);
    let ends: [Ends; 3] = [
        |desk, by| drop(desk.service.finish(by, &desk.plan, Phase::Cancelled, "", Guard::NONE).unwrap()),
        |desk, by| drop(desk.service.finish(by, &desk.plan, Phase::Completed, "", Guard::NONE).unwrap()),
        |desk, by| drop(desk.service.archive(by, &desk.plan, Guard::NONE).unwrap()),
    ];
    let plan = || {
        plan_of([with_work("gate", "human", &[]), with_work("after", "build", &["gate"]), task("free", &[])])
    };
    for end in ends {
        for (by, opens) in [(agent(), false), (unattended(), false), (present(), true)] {
            for on in ["gate", "after", "free"] {
                let desk = Desk::of(&present(), plan());
                desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
                end(&desk, &by);
                let expected =
                    if opens || on == "free" { vec![] } else { vec![format!("{}/{on}", desk.plan)] };
                assert_eq!(held(&desk, on, DependencyRule::AllFinished), expected, "{} {on}", by.actor);
            }
        }
    }
    let desk = Desk::of(&present(), plan());
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    desk.answer(&present(), "gate", "yes").unwrap();
    assert_eq!(held(&desk, "gate", DependencyRule::AllDone), Vec::<String>::new());
}

#[test]
fn a_name_of_an_agent_opens_no_gate() {
    let named = |tasks: Vec<TaskSpec>| {
        let mut draft = plan_of(tasks);
        draft.spec.owner = "robin".to_owned();
        draft
    };
    let desk = Desk::of(&present(), named(vec![with_work("gate", "human", &[])]));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    // Another agent writes that owner's name, and ends a task of that name.
    let evil = Caller::new(Actor::agent("mallory"));
    let tasks = vec![task("gate", &[]), task("open", &[])];
    let forged = desk.service.create(&evil, named(tasks), CreateOptions::default()).unwrap().plan;
    let spec = TaskSpec {
        depends_on: vec![elsewhere(Some("robin"), None, "gate")],
        ..with_work("next", "build", &[])
    };
    let plan = desk.service.create(&present(), plan_of([spec]), CreateOptions::default()).unwrap().plan;
    desk.service.activate(&present(), &plan, Guard::NONE).unwrap();
    let of = TaskRef { plan: &forged, task: &id("gate"), attempt: None, take_over: false, seen: None };
    desk.service.report(&evil, of, done(), Guard::NONE).unwrap();
    let waiting = desk.service.read(&plan, Plan::clone).unwrap();
    let behind = desk.service.behind_gates_of_others(&waiting, &[id("next")]).unwrap();
    assert_eq!(behind, [(id("next"), "robin:gate".to_owned())]);
}

#[test]
fn an_agent_that_calls_itself_like_the_owner_opens_no_gate() {
    let of_robin = |tasks: Vec<TaskSpec>| {
        let mut draft = plan_of(tasks);
        draft.spec.owner = "robin".to_owned();
        draft
    };
    let tasks = vec![with_work("gate", "human", &[]), task("mid", &["gate"])];
    let desk = Desk::of(&present(), of_robin(tasks));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    let robin = Caller::new(Actor::agent("robin"));
    let tasks = vec![task("mid", &[]), task("open", &[])];
    let forged = desk.service.create(&robin, of_robin(tasks), CreateOptions::default()).unwrap().plan;
    let on = vec![elsewhere(Some("robin"), None, "mid")];
    let spec = TaskSpec { depends_on: on, ..with_work("deploy", "build", &[]) };
    let plan = desk.service.create(&present(), plan_of([spec]), CreateOptions::default()).unwrap().plan;
    desk.service.activate(&present(), &plan, Guard::NONE).unwrap();
    let of = TaskRef { plan: &forged, task: &id("mid"), attempt: None, take_over: false, seen: None };
    desk.service.report(&robin, of, done(), Guard::NONE).unwrap();
    let held = || {
        let waiting = desk.service.read(&plan, Plan::clone).unwrap();
        desk.service.behind_gates_of_others(&waiting, &[id("deploy")]).unwrap()
    };
    assert_eq!(held(), [(id("deploy"), "robin:mid".to_owned())]);
    desk.answer(&present(), "gate", "yes").unwrap();
    assert_eq!(held(), []);
}

#[test]
fn a_plan_that_is_forged_after_the_meant_one_has_started_answers_nobody() {
    let of_robin = |tasks: Vec<TaskSpec>| {
        let mut draft = plan_of(tasks);
        draft.spec.owner = "robin".to_owned();
        draft
    };
    let desk = Desk::of(&present(), of_robin(vec![task("mid", &[])]));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    let on = vec![elsewhere(Some("robin"), None, "mid")];
    let spec = TaskSpec { depends_on: on, ..with_work("deploy", "build", &[]) };
    let plan = desk.service.create(&present(), plan_of([spec]), CreateOptions::default()).unwrap().plan;
    desk.service.activate(&present(), &plan, Guard::NONE).unwrap();
    let status = || desk.service.read(&plan, |plan| plan.effective_status("deploy")).unwrap();
    let ends = |by: &Caller, plan: &PlanId| {
        let of = TaskRef { plan, task: &id("mid"), attempt: None, take_over: false, seen: None };
        desk.service.report(by, of, done(), Guard::NONE).unwrap();
    };
    let evil = Caller::new(Actor::agent("mallory"));
    let tasks = vec![task("mid", &[]), task("open", &[])];
    let forged = desk.service.create(&evil, of_robin(tasks), CreateOptions::default()).unwrap().plan;
    ends(&evil, &forged);
    assert_eq!(status(), Some(EffectiveStatus::Blocked));
    ends(&present(), &desk.plan);
    assert_eq!(status(), Some(EffectiveStatus::Ready));
}

/// A plan whose work waits for a task of another plan through a task without work.
fn waits_through_plain_task(desk: &Desk, when: DependencyRule) -> PlanId {
    let pre =
        TaskSpec { depends_on: vec![elsewhere(None, Some(desk.plan.clone()), "note")], ..task("pre", &[]) };
    let deploy = TaskSpec { when, ..with_work("deploy", "build", &["pre"]) };
    let draft = plan_of([pre, deploy]);
    let plan = desk.service.create(&present(), draft, CreateOptions::default()).unwrap().plan;
    desk.service.activate(&present(), &plan, Guard::NONE).unwrap();
    plan
}

#[test]
fn no_agent_ends_a_task_without_work_that_waits_for_a_gate_of_another_plan() {
    let desk = noted(Vec::new());
    let plan = waits_through_plain_task(&desk, DependencyRule::AllDone);
    let of = TaskRef { plan: &plan, task: &id("pre"), attempt: None, take_over: false, seen: None };
    let skip = desk.service.report(&agent(), of, skipped(), Guard::NONE).map(drop);
    assert_eq!(code(skip), "human_gate");
    let cancel = desk.service.cancel_task(&agent(), &plan, &id("pre"), "", Guard::NONE).map(drop);
    assert_eq!(code(cancel), "human_gate");
    // Nothing starts behind it, however it has ended.
    desk.service.report(&present(), of, skipped(), Guard::NONE).unwrap();
    let held = || {
        let waiting = desk.service.read(&plan, Plan::clone).unwrap();
        desk.service.behind_gates_of_others(&waiting, &[id("pre")]).unwrap().len()
    };
    assert_eq!(held(), 1);
    desk.answer(&present(), "gate", "yes").unwrap();
    assert_eq!(held(), 0);
}

#[test]
fn no_agent_ends_a_task_further_on_that_waits_for_a_gate_of_another_plan() {
    let desk = noted(Vec::new());
    let pre =
        TaskSpec { depends_on: vec![elsewhere(None, Some(desk.plan.clone()), "note")], ..task("pre", &[]) };
    let draft = plan_of([pre, task("step", &["pre"]), with_work("deploy", "build", &["step"])]);
    let plan = desk.service.create(&present(), draft, CreateOptions::default()).unwrap().plan;
    desk.service.activate(&present(), &plan, Guard::NONE).unwrap();
    let of = TaskRef { plan: &plan, task: &id("step"), attempt: None, take_over: false, seen: None };
    let skip = |by: &Caller| desk.service.report(by, of, skipped(), Guard::NONE).map(drop);
    assert_eq!(code(skip(&agent())), "human_gate");
    // However it was ended, nothing starts behind it.
    skip(&present()).unwrap();
    let waiting = desk.service.read(&plan, Plan::clone).unwrap();
    assert_eq!(desk.service.behind_gates_of_others(&waiting, &[id("pre")]).unwrap().len(), 1);
}

#[test]
fn more_plans_than_are_looked_at_open_no_gate() {
    let of_ann = |tasks: Vec<TaskSpec>| {
        let mut draft = plan_of(tasks);
        draft.spec.owner = "ann".to_owned();
        draft
    };
    let desk = Desk::of(&present(), of_ann(vec![with_work("gate", "human", &[]), task("ok", &["gate"])]));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    let on = vec![elsewhere(Some("ann"), None, "ok")];
    let middle = plan_of([TaskSpec { depends_on: on, ..task("mid", &[]) }]);
    let middle = desk.service.create(&present(), middle, CreateOptions::default()).unwrap().plan;
    desk.service.activate(&present(), &middle, Guard::NONE).unwrap();
    let on = vec![elsewhere(None, Some(middle.clone()), "mid")];
    let spec = TaskSpec { depends_on: on, ..with_work("deploy", "build", &[]) };
    let plan = desk.service.create(&present(), plan_of([spec]), CreateOptions::default()).unwrap().plan;
    desk.service.activate(&present(), &plan, Guard::NONE).unwrap();
    let ann = Caller::new(Actor::agent("ann"));
    let forged = of_ann(vec![task("ok", &[]), task("open", &[])]);
    let forged = desk.service.create(&ann, forged, CreateOptions::default()).unwrap().plan;
    for _ in 0..205 {
        desk.service.create(&ann, of_ann(Vec::new()), CreateOptions::default()).unwrap();
    }
    for (plan, task) in [(&forged, "ok"), (&middle, "mid")] {
        let of = TaskRef { plan, task: &id(task), attempt: None, take_over: false, seen: None };
        desk.service.report(&ann, of, done(), Guard::NONE).unwrap();
    }
    let waiting = desk.service.read(&plan, Plan::clone).unwrap();
    assert_eq!(desk.service.behind_gates_of_others(&waiting, &[id("deploy")]).unwrap().len(), 1);
}

#[test]
fn no_agent_gives_what_others_wait_for_to_another_owner_even_without_a_gate() {
    let mut draft = plan_of([with_work("gate", "human", &[]), task("mid", &["gate"])]);
    draft.spec.owner = "robin".to_owned();
    let desk = Desk::of(&present(), draft);
    let on = vec![elsewhere(Some("robin"), None, "mid")];
    let spec = TaskSpec { depends_on: on, ..with_work("deploy", "build", &[]) };
    desk.service.create(&present(), plan_of([spec]), CreateOptions::default()).unwrap();
    let remove = vec![EditOp::RemoveTask { task: id("gate"), drop_dependencies: true }];
    desk.edit(&present(), remove).unwrap();
    let changes = PlanChanges { owner: Some("zed".to_owned()), ..PlanChanges::default() };
    let renamed = |by: &Caller| desk.edit(by, vec![EditOp::RevisePlan(Box::new(changes.clone()))]);
    assert_eq!(code(renamed(&agent())), "human_gate");
    renamed(&present()).unwrap();
}

#[test]
fn an_end_of_another_plan_opens_no_gate_for_work_behind_a_task_without_work() {
    for (by, count) in [(unattended(), 1), (present(), 0)] {
        let desk = noted(Vec::new());
        let plan = waits_through_plain_task(&desk, DependencyRule::AllFinished);
        desk.service.finish(&by, &desk.plan, Phase::Cancelled, "", Guard::NONE).unwrap();
        let waiting = desk.service.read(&plan, Plan::clone).unwrap();
        assert!(waiting.task("pre").unwrap().state.status.is_finished());
        let held = desk.service.behind_gates_of_others(&waiting, &[id("pre")]).unwrap();
        assert_eq!(held.len(), count, "{}", by.actor);
    }
}

/// A plan of its own with one task that waits for a task of another plan.
fn waits_for(desk: &Desk, spec: TaskSpec, plan: &PlanId, on: &str) -> PlanId {
    let spec = TaskSpec { depends_on: vec![elsewhere(None, Some(plan.clone()), on)], ..spec };
    desk.service.create(&agent(), plan_of([spec]), CreateOptions::default()).unwrap().plan
}

#[test]
fn what_other_plans_wait_for_stays_behind_gates() {
    let remove = |task: &str| vec![EditOp::RemoveTask { task: id(task), drop_dependencies: true }];
    let plain = |task: &str| {
        let changes =
            TaskChanges { work: Some(None), depends_on: Some(Vec::new()), ..TaskChanges::default() };
        vec![EditOp::ReviseTask { task: id(task), changes: Box::new(changes) }]
    };
    // Nobody else waits for it, so it is the plan's own business.
    noted(Vec::new()).edit(&agent(), remove("note")).unwrap();
    let desk = noted(vec![with_work("built", "build", &["gate"]), task("late", &["built"])]);
    for on in ["note", "built", "late"] {
        waits_for(&desk, with_work("deploy", "build", &[]), &desk.plan, on);
    }
    for ops in [remove("note"), no_more_waits("late"), remove("late"), remove("built"), plain("built")] {
        let refused = desk.edit(&agent(), ops.clone()).unwrap_err();
        assert_eq!(refused.code(), "human_gate", "{ops:?}: {refused}");
    }
    // What ended with the plan could be written anew.
    let cancel = |desk: &Desk, by: &Caller| {
        desk.service.finish(by, &desk.plan, Phase::Cancelled, "", Guard::NONE).map(drop)
    };
    assert_eq!(code(cancel(&desk, &agent())), "human_gate");
    let archive = desk.service.archive(&agent(), &desk.plan, Guard::NONE).map(drop);
    assert_eq!(code(archive), "human_gate");
    cancel(&noted(Vec::new()), &agent()).unwrap();
    desk.edit(&present(), remove("note")).unwrap();
    cancel(&desk, &present()).unwrap();

    // Through plans that have no gates of their own, and whoever wrote them.
    let desk = noted(Vec::new());
    let link = waits_for(&desk, task("link", &[]), &desk.plan, "note");
    let chain = waits_for(&desk, task("chain", &[]), &link, "link");
    let detach = |plan: &PlanId, by: &Caller, task: &str| {
        desk.service.edit(by, plan, no_more_waits(task), Guard::NONE).map(drop)
    };
    waits_for(&desk, with_work("deploy", "build", &[]), &chain, "chain");
    for (plan, task) in [(&link, "link"), (&chain, "chain")] {
        assert_eq!(code(detach(plan, &agent(), task)), "human_gate", "{task}");
        let skip = desk.service.cancel_task(&agent(), plan, &id(task), "", Guard::NONE).map(drop);
        assert_eq!(code(skip), "human_gate", "{task}");
    }
    let free = waits_for(&desk, task("free", &[]), &desk.plan, "note");
    detach(&free, &agent(), "free").unwrap();
    desk.answer(&present(), "gate", "yes").unwrap();
    desk.report(&agent(), "note", done()).unwrap();
    detach(&chain, &agent(), "chain").unwrap();
}

/// What an agent does, refused or not.
fn tries(desk: &Desk, ops: Vec<EditOp>) {
    let _refused = desk.edit(&agent(), ops);
}

fn revised(task: &str, changes: TaskChanges) -> Vec<EditOp> {
    vec![EditOp::ReviseTask { task: id(task), changes: Box::new(changes) }]
}

fn moved(task: &str) -> Vec<EditOp> {
    vec![EditOp::MoveTask { task: id(task), parent: Some(None), position: Position::Last }]
}

#[test]
fn no_change_of_another_plan_opens_a_gate_that_was_there_when_a_person_approved() {
    type Attack = fn(&Desk);
    fn end(desk: &Desk, task: &str) {
        let _refused = desk.report(&agent(), task, done());
    }
    fn add(task_id: &str) -> Vec<EditOp> {
        vec![EditOp::AddTasks {
            tasks: vec![NewTask::named(task(task_id, &[]))],
            position: Position::default(),
        }]
    }
    fn remove(task: &str) -> Vec<EditOp> {
        vec![EditOp::RemoveTask { task: id(task), drop_dependencies: true }]
    }
    fn no(desk: &Desk) {
        desk.answer(&present(), "gate", "no").unwrap();
    }
    fn no_work() -> TaskChanges {
        TaskChanges { work: Some(None), ..TaskChanges::default() }
    }
    let attacks: [(&str, &str, DependencyRule, Attack); 11] = [
        ("after a no, added again", "mid", DependencyRule::AllDone, |desk| {
            no(desk);
            tries(desk, remove("mid"));
            tries(desk, add("mid"));
            end(desk, "mid");
        }),
        ("after a no, moved out", "kid", DependencyRule::AllDone, |desk| {
            no(desk);
            tries(desk, moved("kid"));
            let _refused = desk.service.retry_task(&agent(), &desk.plan, &id("kid"), Guard::NONE);
            end(desk, "kid");
        }),
        ("content with any", "mid", DependencyRule::AllDone, |desk| {
            tries(desk, add("free"));
            let on = Some(vec![Dependency::Task(id("gate")), Dependency::Task(id("free"))]);
            let when = Some(DependencyRule::AnyDone);
            tries(desk, revised("mid", TaskChanges { when, depends_on: on, ..TaskChanges::default() }));
            end(desk, "free");
            end(desk, "mid");
        }),
        ("content with a no", "mid", DependencyRule::AllDone, |desk| {
            let when = Some(DependencyRule::AllFinished);
            tries(desk, revised("mid", TaskChanges { when, ..TaskChanges::default() }));
            no(desk);
            end(desk, "mid");
        }),
        ("a gate that leaves its group", "box", DependencyRule::AllDone, |desk| {
            end(desk, "other");
            tries(desk, moved("inner"));
        }),
        ("what waits for a gate leaves its group", "set", DependencyRule::AllDone, |desk| {
            end(desk, "ready");
            tries(desk, moved("waits"));
            tries(desk, remove("waits"));
        }),
        ("a gate that is removed from its group", "box", DependencyRule::AllDone, |desk| {
            end(desk, "other");
            tries(desk, remove("inner"));
        }),
        ("a gate without work", "box", DependencyRule::AllDone, |desk| {
            end(desk, "other");
            tries(desk, revised("inner", no_work()));
            tries(desk, moved("inner"));
        }),
        ("a gate that is cancelled as a plain task", "gate", DependencyRule::AllFinished, |desk| {
            tries(desk, revised("gate", no_work()));
            let _refused = desk.service.cancel_task(&agent(), &desk.plan, &id("gate"), "", Guard::NONE);
        }),
        ("a plan that has ended", "gate", DependencyRule::AllFinished, |desk| {
            tries(
                desk,
                revised(
                    "gate",
                    TaskChanges { work: Some(work("build").map(|work| *work)), ..TaskChanges::default() },
                ),
            );
            let _refused = desk.service.finish(&agent(), &desk.plan, Phase::Cancelled, "", Guard::NONE);
        }),
        ("a gate that is removed", "mid", DependencyRule::AllFinished, |desk| {
            tries(desk, remove("gate"));
            let _refused = desk.service.cancel_task(&agent(), &desk.plan, &id("mid"), "", Guard::NONE);
        }),
    ];
    for (name, on, when, attack) in attacks {
        let tasks = [
            with_work("gate", "human", &[]),
            task("mid", &["gate"]),
            task("grp", &["gate"]),
            TaskSpec { parent: Some(id("grp")), ..task("kid", &[]) },
            task("box", &[]),
            TaskSpec { parent: Some(id("box")), ..with_work("inner", "human", &[]) },
            TaskSpec { parent: Some(id("box")), ..task("other", &[]) },
            task("set", &[]),
            TaskSpec { parent: Some(id("set")), ..task("waits", &["gate"]) },
            TaskSpec { parent: Some(id("set")), ..task("ready", &[]) },
        ];
        let desk = Desk::of(&present(), plan_of(tasks));
        desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
        let there = elsewhere(None, Some(desk.plan.clone()), on);
        let spec = TaskSpec { depends_on: vec![there], when, ..with_work("deploy", "build", &[]) };
        let plan = desk.service.create(&present(), plan_of([spec]), CreateOptions::default()).unwrap().plan;
        desk.service.activate(&present(), &plan, Guard::NONE).unwrap();
        attack(&desk);
        let waiting = desk.service.read(&plan, Plan::clone).unwrap();
        let is_ready = waiting.ready().any(|task| task.spec.id == id("deploy"));
        let behind = desk.service.behind_gates_of_others(&waiting, &[id("deploy")]).unwrap();
        assert!(!is_ready || !behind.is_empty(), "{name}");
    }
}

#[test]
fn whoever_approves_sees_the_gates_of_other_plans_and_no_agent_detaches_them_meanwhile() {
    let tasks = [
        with_work("gate", "human", &[]),
        task("set", &[]),
        TaskSpec { parent: Some(id("set")), ..task("waits", &["gate"]) },
        TaskSpec { parent: Some(id("set")), ..task("ready", &[]) },
        task("late", &["set"]),
    ];
    let desk = Desk::of(&present(), plan_of(tasks));
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    let plans = ["set", "late"].map(|on| waits_for(&desk, with_work("deploy", "build", &[]), &desk.plan, on));
    let shown = |plan: &PlanId| {
        let about = desk.service.preview(plan).unwrap().about;
        about.into_iter().find(|(name, _)| *name == "waits for people in other plans").map(|(_, text)| text)
    };
    for plan in &plans {
        assert_eq!(shown(plan), Some(format!("{}/gate \"do gate\" (before deploy)", desk.plan)));
    }
    desk.report(&agent(), "ready", done()).unwrap();
    for ops in [moved("waits"), vec![EditOp::RemoveTask { task: id("waits"), drop_dependencies: true }]] {
        let refused = desk.edit(&agent(), ops).unwrap_err();
        assert_eq!(refused.code(), "human_gate", "{refused}");
    }
    desk.answer(&present(), "gate", "yes").unwrap();
    assert_eq!(shown(&plans[0]), None);
    desk.edit(&agent(), moved("waits")).unwrap();
}

#[test]
fn what_counts_is_what_stood_there_at_the_approval() {
    let desk = Desk::of(&agent(), plan_of([with_work("gate", "human", &[]), task("mid", &[])]));
    let plan = waits_for(&desk, with_work("deploy", "build", &[]), &desk.plan, "mid");
    let on = Some(vec![Dependency::Task(id("gate"))]);
    desk.edit(&agent(), revised("mid", TaskChanges { depends_on: on, ..TaskChanges::default() })).unwrap();
    for plan in [&desk.plan, &plan] {
        let seen = desk.service.preview(plan).unwrap().seen();
        desk.service.approve(&present(), plan, seen, "", Guard::NONE).unwrap();
    }
    desk.answer(&present(), "gate", "no").unwrap();
    desk.service.restore(&agent(), &desk.plan, 1, Guard::NONE).unwrap();
    let _refused = desk.report(&agent(), "mid", done());
    let waiting = desk.service.read(&plan, Plan::clone).unwrap();
    let behind = desk.service.behind_gates_of_others(&waiting, &[id("deploy")]).unwrap();
    assert!(waiting.ready().next().is_none() || !behind.is_empty(), "a person said no");
}

#[test]
fn an_approval_names_all_gates_of_other_plans() {
    let gates = [
        with_work("first", "human", &[]),
        with_work("second", "human", &["first"]),
        task("end", &["second"]),
    ];
    let desk = Desk::of(&present(), plan_of(gates));
    let plan = waits_for(&desk, with_work("deploy", "build", &[]), &desk.plan, "end");
    let seen = desk.service.preview(&plan).unwrap().seen();
    desk.service.approve(&present(), &plan, seen, "", Guard::NONE).unwrap();
    let named = desk.service.read(&plan, |plan| {
        let work = plan.state().approval.as_ref().and_then(|approval| approval.work.clone()).unwrap();
        work.gates.into_iter().map(|gate| (gate.plan, gate.task, gate.before)).collect::<Vec<_>>()
    });
    let gate = |name: &str| (desk.plan.clone(), id(name), vec![id("deploy")]);
    assert_eq!(named.unwrap(), [gate("first"), gate("second")]);
}

#[test]
fn a_plan_of_the_same_owner_passes_no_check_and_does_no_machines_work() {
    let checked = TaskSpec { check: work("build"), ..task("tests", &[]) };
    for agreed in [checked, with_work("tests", "build", &[])] {
        let owned = |spec: TaskSpec| {
            let mut draft = plan_of([spec]);
            draft.spec.owner = "alice".to_owned();
            draft
        };
        let desk = Desk::of(&present(), owned(agreed));
        let spec = TaskSpec {
            depends_on: vec![elsewhere(Some("alice"), None, "tests")],
            ..with_work("deploy", "build", &[])
        };
        let plan = desk.service.create(&agent(), plan_of([spec]), CreateOptions::default()).unwrap().plan;
        let seen = desk.service.preview(&plan).unwrap().seen();
        desk.service.approve(&present(), &plan, seen, "", Guard::NONE).unwrap();
        let other = owned(task("tests", &[]));
        let other = desk.service.create(&agent(), other, CreateOptions::default()).unwrap().plan;
        desk.service.activate(&agent(), &other, Guard::NONE).unwrap();
        desk.service.claim(&agent(), &other, &id("tests"), ClaimOptions::default(), Guard::NONE).unwrap();
        let tests = id("tests");
        let tests = TaskRef { plan: &other, task: &tests, attempt: None, take_over: false, seen: None };
        desk.service.report(&agent(), tests, done(), Guard::NONE).unwrap();
        let waiting = desk.service.read(&plan, Plan::clone).unwrap();
        assert!(waiting.ready().any(|task| task.spec.id == id("deploy")), "the name is met");
        let behind = desk.service.behind_gates_of_others(&waiting, &[id("deploy")]).unwrap();
        assert_eq!(behind, [(id("deploy"), "alice:tests".to_owned())]);
    }
}

#[test]
fn no_agent_hides_a_plan_that_others_wait_for_by_its_owners_name() {
    let desk = noted(Vec::new());
    let there = elsewhere(None, Some(desk.plan.clone()), "note");
    let mut draft = plan_of([TaskSpec { depends_on: vec![there], ..task("link", &[]) }]);
    draft.spec.owner = "ops".to_owned();
    let link = desk.service.create(&agent(), draft, CreateOptions::default()).unwrap().plan;
    let spec = TaskSpec {
        depends_on: vec![elsewhere(Some("ops"), None, "link")],
        ..with_work("deploy", "build", &[])
    };
    desk.service.create(&present(), plan_of([spec]), CreateOptions::default()).unwrap();
    let rename = || {
        let changes = PlanChanges { owner: Some("other".to_owned()), ..PlanChanges::default() };
        vec![EditOp::RevisePlan(Box::new(changes))]
    };
    assert_eq!(code(desk.service.edit(&agent(), &link, rename(), Guard::NONE).map(drop)), "human_gate");
    desk.service.edit(&present(), &link, rename(), Guard::NONE).unwrap();
}

#[test]
fn a_preview_names_the_gates_of_other_plans_that_no_longer_hold_the_work_back() {
    let desk = Desk::of(
        &present(),
        plan_of([with_work("gate", "human", &[]), task("mid", &["gate"]), with_work("late", "human", &[])]),
    );
    desk.service.activate(&present(), &desk.plan, Guard::NONE).unwrap();
    let there = elsewhere(None, Some(desk.plan.clone()), "mid");
    let spec = TaskSpec { depends_on: vec![there], ..with_work("next", "build", &[]) };
    let plan = desk.service.create(&agent(), plan_of([spec]), CreateOptions::default()).unwrap().plan;
    let preview = || desk.service.preview(&plan).unwrap();
    let approve = || desk.service.approve(&present(), &plan, preview().seen(), "", Guard::NONE).unwrap();
    approve();
    assert_eq!((preview().since_approval, preview().changes), (Vec::new(), None));
    // The other plan changes, and this one as well, so that somebody is asked.
    let waits =
        TaskChanges { depends_on: Some(vec![Dependency::Task(id("late"))]), ..TaskChanges::default() };
    desk.edit(&present(), vec![EditOp::ReviseTask { task: id("mid"), changes: Box::new(waits) }]).unwrap();
    let words = TaskChanges { notes: Some("quickly".into()), ..TaskChanges::default() };
    let ops = vec![EditOp::ReviseTask { task: id("next"), changes: Box::new(words) }];
    desk.service.edit(&agent(), &plan, ops, Guard::NONE).unwrap();
    let other = &desk.plan;
    let expected = [
        format!("no longer waits for {other}/gate, which no person has ended"),
        format!("now waits for {other}/late"),
    ];
    assert_eq!(preview().since_approval, expected);
    approve();
    assert_eq!(preview().since_approval, [""; 0], "a person has seen it");
    // What a person ended is not missing.
    desk.answer(&present(), "late", "yes").unwrap();
    let words = TaskChanges { notes: Some("slowly".into()), ..TaskChanges::default() };
    let ops = vec![EditOp::ReviseTask { task: id("next"), changes: Box::new(words) }];
    desk.service.edit(&agent(), &plan, ops, Guard::NONE).unwrap();
    assert_eq!(preview().since_approval, [""; 0]);
    approve();
    // A dependency on another plan that an agent drops.
    let none = TaskChanges { depends_on: Some(Vec::new()), ..TaskChanges::default() };
    let ops = vec![EditOp::ReviseTask { task: id("next"), changes: Box::new(none) }];
    desk.service.edit(&agent(), &plan, ops, Guard::NONE).unwrap();
    let (_, changes) = preview().changes.unwrap();
    assert_eq!(changes, [format!("~ next depends_on: {other}/mid → (none)")]);
}

#[test]
fn an_approval_counts_for_the_gates_and_checks_of_other_plans_that_were_seen() {
    let owned = |tasks: Vec<TaskSpec>| {
        let mut draft = plan_of(tasks);
        draft.spec.owner = "alice".to_owned();
        draft
    };
    let gated = vec![with_work("gate", "human", &[]), task("mid", &["gate"])];
    let checked = vec![TaskSpec { check: work("build"), ..task("mid", &[]) }];
    for (tasks, line) in
        [(gated, "waits for people in other plans: was "), (checked, "waits for work in other plans: was ")]
    {
        let desk = Desk::of(&agent(), owned(tasks));
        let spec = TaskSpec {
            depends_on: vec![elsewhere(Some("alice"), None, "mid")],
            ..with_work("deploy", "build", &[])
        };
        let plan = desk.service.create(&agent(), plan_of([spec]), CreateOptions::default()).unwrap().plan;
        let seen = desk.service.preview(&plan).unwrap().seen();
        // Nobody has approved alice's plan, so alice writes it anew.
        let plain = TaskChanges {
            depends_on: Some(Vec::new()),
            work: Some(None),
            check: Some(None),
            ..TaskChanges::default()
        };
        let by = if line.contains("people") { present() } else { agent() };
        desk.edit(&by, revised("mid", plain)).unwrap();
        let refused = desk.service.approve(&present(), &plan, seen.clone(), "", Guard::NONE).unwrap_err();
        let ServiceError::ChangedSinceSeen { changes, .. } = &refused else { panic!("{refused}") };
        assert!(changes.iter().any(|change| change.starts_with(line)), "{changes:?}");
        assert_ne!(desk.service.preview(&plan).unwrap().digest, seen.digest);
    }
}

#[test]
fn another_question_under_the_name_of_a_gate_opens_nothing() {
    for is_seen_before in [true, false] {
        let desk = Desk::of(&agent(), plan_of([with_work("gate", "human", &[]), task("mid", &["gate"])]));
        let plan = waits_for(&desk, with_work("deploy", "build", &[]), &desk.plan, "mid");
        let seen = desk.service.preview(&plan).unwrap().seen();
        let ask = || {
            let words =
                TaskChanges { description: Some("Do you like tea?".into()), ..TaskChanges::default() };
            desk.edit(&present(), revised("gate", words)).unwrap();
        };
        if !is_seen_before {
            ask();
            let refused = desk.service.approve(&present(), &plan, seen, "", Guard::NONE).unwrap_err();
            assert_eq!(refused.code(), "changed_since_seen");
            continue;
        }
        desk.service.approve(&present(), &plan, seen, "", Guard::NONE).unwrap();
        ask();
        let seen = desk.service.preview(&desk.plan).unwrap().seen();
        desk.service.approve(&present(), &desk.plan, seen, "", Guard::NONE).unwrap();
        desk.answer(&present(), "gate", "yes").unwrap();
        let waiting = desk.service.read(&plan, Plan::clone).unwrap();
        let behind = desk.service.behind_gates_of_others(&waiting, &[id("deploy")]).unwrap();
        assert!(waiting.ready().next().is_none() || !behind.is_empty(), "a person agreed to tea");
        // Whoever reads that approves it anew.
        desk.service.claim(&agent(), &desk.plan, &id("mid"), ClaimOptions::default(), Guard::NONE).unwrap();
        desk.report(&agent(), "mid", done()).unwrap();
        let waiting = desk.service.read(&plan, Plan::clone).unwrap();
        let behind = desk.service.behind_gates_of_others(&waiting, &[id("deploy")]).unwrap();
        assert_eq!(behind.len(), 1, "{behind:?}");
    }
}

#[test]
fn what_a_person_refused_is_asked_again_only_by_a_person_who_is_there() {
    let desk = Desk::of(&agent(), plan_of([with_work("gate", "human", &[]), task("mid", &["gate"])]));
    let seen = desk.service.preview(&desk.plan).unwrap().seen();
    desk.service.approve(&present(), &desk.plan, seen, "", Guard::NONE).unwrap();
    desk.answer(&present(), "gate", "no, never").unwrap();
    for by in [unattended(), present()] {
        let task = desk.service.retry_task(&by, &desk.plan, &id("gate"), Guard::NONE).map(drop);
        match by.is_present() {
            false => {
                assert_eq!(code(task), "needs_terminal");
                assert_eq!(
                    code(desk.service.retry_plan(&by, &desk.plan, Guard::NONE).map(drop)),
                    "needs_terminal"
                );
            }
            true => task.unwrap(),
        }
    }
}
