//! Validation of drafts: all problems are reported at once, with their location, and limits are exact to the byte.

use waypost_core::{
    Command, Dependency, Draft, ExternalTaskRef, Json, Lock, LockMode, Outcome, Plan, PlanId, Position,
    Problem, ProblemKind, ProblemLocation, Refusal, Retry, Task, TaskId, TaskSpec, limits, validate,
};
use waypost_testkit::{chain, id, layered, plan_of, task};

use crate::kit::{Desk, ada, ask, at, done, plan_id, work, worker};

/// Checks the problems of a plan with these tasks, as shown to people.
#[track_caller]
fn check(tasks: impl IntoIterator<Item = TaskSpec>, wanted: &[&str]) {
    let draft = plan_of(tasks);
    let found: Vec<String> = validate(&draft).iter().map(ToString::to_string).collect();
    assert_eq!(found, wanted);
    let refused = Plan::blank(plan_id()).decide(&ada(), at(0), &ask::create(draft));
    match refused {
        Ok(_) => assert!(wanted.is_empty(), "a plan with problems is not made"),
        Err(Refusal::Invalid { problems }) => assert_eq!(problems.len(), wanted.len()),
        Err(other) => panic!("refused for another reason: {other}"),
    }
}

fn child(name: &str, parent: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec { parent: Some(id(parent)), ..task(name, depends_on) }
}

fn with(name: &str, change: impl FnOnce(&mut TaskSpec)) -> TaskSpec {
    let mut spec = task(name, &[]);
    change(&mut spec);
    spec
}

fn lock(key: &str) -> Lock {
    Lock { key: key.to_owned(), mode: LockMode::Exclusive }
}

#[test]
fn a_sound_plan_has_no_problems() {
    check([], &[]);
    check([task("a", &[]), task("b", &["a"]), child("c", "b", &["a"]), child("d", "b", &["c"])], &[]);
    check([task("b", &["a"]), child("c", "b", &[]), task("a", &[])], &[]);
}

#[test]
fn two_tasks_of_one_name_are_named() {
    check([task("a", &[]), task("b", &[]), task("a", &[])], &["task a: another task has the same id"]);
}

#[test]
fn an_unknown_dependency_comes_with_the_nearest_name() {
    check([task("build", &[]), task("test", &["buld"])], &["task test: depends on unknown task buld"]);
    let problems = validate(&plan_of([task("build", &[]), task("test", &["buld"])]));
    assert_eq!(problems[0].hint(), "did you mean build?");
    let problems = validate(&plan_of([task("build", &[]), task("test", &["deploy"])]));
    assert_eq!(problems[0].hint(), "add that task, or take it out of depends_on");
}

#[test]
fn a_task_that_depends_on_itself_is_told_so_and_not_called_a_cycle() {
    check([task("a", &["a"])], &["task a: depends on itself"]);
}

#[test]
fn a_cycle_is_reported_as_a_path() {
    check(
        [task("a", &["c"]), task("b", &["a"]), task("c", &["b"]), task("d", &["c"])],
        &["task a: tasks depend on each other: a → c → b → a"],
    );
    check(
        [task("a", &["b"]), task("b", &["a"]), task("c", &["d"]), task("d", &["c"])],
        &["task a: tasks depend on each other: a → b → a", "task c: tasks depend on each other: c → d → c"],
    );
}

#[test]
fn a_parent_that_is_not_there_is_an_orphans() {
    check([child("a", "nobody", &[])], &["task a: its parent nobody is not in the plan"]);
}

#[test]
fn parents_in_a_ring_are_reported_once_and_as_such() {
    check([child("a", "a", &[])], &["task a: parents form a ring: a → a"]);
    check(
        [child("a", "b", &[]), child("b", "c", &[]), child("c", "a", &[]), task("d", &[])],
        &["task a: parents form a ring: a → b → c → a"],
    );
}

#[test]
fn a_cycle_may_lead_over_parents() {
    // A child begins after its parent may begin, and a parent ends after its children.
    check([task("p", &[]), child("c", "p", &["p"])], &["task c: tasks depend on each other: c → p → c"]);
    check(
        [task("p", &["x"]), child("c", "p", &[]), task("x", &["c"])],
        &["task p: tasks depend on each other: p → x → c → p"],
    );
    check(
        [task("p", &[]), child("c", "p", &["y"]), task("y", &["q"]), task("q", &[]), child("d", "q", &["p"])],
        &["task c: tasks depend on each other: c → y → q → d → p → c"],
    );
}

#[test]
fn a_parent_has_no_work_of_its_own() {
    check(
        [with("p", |spec| spec.work = Some(work())), child("c", "p", &[])],
        &["task p: has both children and work"],
    );
}

#[test]
fn inputs_are_an_object() {
    let mut other = work();
    other.inputs = Json::of(&[1, 2]);
    check(
        [
            with("a", |spec| spec.work = Some(other.clone())),
            with("b", |spec| spec.check = Some(other.clone())),
        ],
        &[
            "task a: `work.inputs` has the wrong type: an object is expected",
            "task b: `check.inputs` has the wrong type: an object is expected",
        ],
    );
}

#[test]
fn a_lock_is_named_once() {
    check(
        [with("a", |spec| spec.locks = vec![lock("db"), lock("disk"), lock("db")])],
        &["task a: names lock db twice"],
    );
}

#[test]
fn all_problems_are_reported_at_once() {
    let mut both = with("e", |spec| spec.locks = vec![lock("db"), lock("db")]);
    both.work = Some(work());
    check(
        [
            task("a", &["b"]),
            task("b", &["a"]),
            task("c", &["c", "nobody"]),
            child("d", "none", &[]),
            both,
            child("f", "e", &[]),
            task("f", &[]),
        ],
        &[
            "task f: another task has the same id",
            "task d: its parent none is not in the plan",
            "task c: depends on itself",
            "task c: depends on unknown task nobody",
            "task e: names lock db twice",
            "task e: has both children and work",
            "task a: tasks depend on each other: a → b → a",
        ],
    );
}

#[test]
fn every_problem_says_what_to_do() {
    let all = [
        ProblemKind::DuplicateId,
        ProblemKind::BadId { rule: "no".into() },
        ProblemKind::UnknownDependency { dependency: "x".into(), nearest: None },
        ProblemKind::SelfDependency,
        ProblemKind::Cycle { path: vec!["a".into(), "b".into(), "a".into()] },
        ProblemKind::OrphanParent { parent: "x".into() },
        ProblemKind::ParentCycle { path: vec!["a".into(), "a".into()] },
        ProblemKind::WorkOnParent,
        ProblemKind::WrongType { field: "x".into(), detail: "y".into() },
        ProblemKind::DuplicateLock { key: "x".into() },
        ProblemKind::OverLimit { what: "x".into(), found: 2, max: 1 },
    ];
    for wrong in all {
        let problem = Problem { place: ProblemLocation::Task("a".into()), wrong };
        assert!(!problem.hint().is_empty(), "{problem}");
        assert!(problem.to_string().starts_with("task a: "), "{problem}");
    }
}

/// A draft with `size` of something must be valid at the limit and reported one past it.
#[track_caller]
fn check_limit(what: &str, max: usize, draft_of: impl Fn(usize) -> Draft) {
    assert_eq!(validate(&draft_of(max)), [], "{what} at its limit");
    let wanted = ProblemKind::OverLimit { what: what.to_owned(), found: max + 1, max };
    let found: Vec<ProblemKind> =
        validate(&draft_of(max + 1)).into_iter().map(|problem| problem.wrong).collect();
    assert_eq!(found, [wanted], "one past the limit");
}

fn one(spec: TaskSpec) -> Draft {
    plan_of([spec])
}

#[test]
fn limits_hold_to_the_byte() {
    let text = |size: usize| "x".repeat(size);
    let json = |size: usize| Json::of(&"x".repeat(size - 2));
    let object = |size: usize| Json::parse(&format!("{{\"x\":\"{}\"}}", "x".repeat(size - 8))).unwrap();
    let plan = |change: &dyn Fn(&mut Draft)| {
        let mut draft = plan_of([]);
        change(&mut draft);
        draft
    };
    let (line, long) = (limits::LINE_BYTES_MAX, limits::TEXT_BYTES_MAX);
    check_limit("bytes of the title", line, |n| plan(&|draft| draft.spec.title = text(n)));
    check_limit("bytes of the goal", long, |n| plan(&|draft| draft.spec.goal = text(n)));
    check_limit("bytes of the status", line, |n| plan(&|draft| draft.spec.status = text(n)));
    check_limit("bytes of the owner", line, |n| plan(&|draft| draft.spec.owner = text(n)));
    check_limit("bytes of the queue", line, |n| plan(&|draft| draft.spec.queue = text(n)));
    check_limit("bytes of the body", limits::BODY_BYTES_MAX, |n| plan(&|draft| draft.spec.body = text(n)));
    check_limit("bytes of the description", long, |n| one(with("a", |spec| spec.description = text(n))));
    check_limit("bytes of the notes", long, |n| one(with("a", |spec| spec.notes = text(n))));
    check_limit("bytes of the reasoning", long, |n| {
        one(with("a", |spec| spec.thinking.get_or_insert_default().reasoning = Some(text(n))))
    });
    check_limit("bytes of a lock's key", line, |n| one(with("a", |spec| spec.locks = vec![lock(&text(n))])));
    check_limit("bytes of the inputs", limits::JSON_BYTES_MAX, |n| {
        let mut work = work();
        work.inputs = object(n);
        one(with("a", |spec| spec.work = Some(work)))
    });
    check_limit("locks", limits::LOCKS_MAX, |n| {
        one(with("a", |spec| spec.locks = (0..n).map(|key| lock(&key.to_string())).collect()))
    });
    check_limit("attempts", limits::ATTEMPTS_MAX as usize, |n| {
        let retry = Retry { attempts: n as u32, backoff_seconds: 0, backoff_seconds_max: 0 };
        one(with("a", |spec| spec.retry = Some(Box::new(retry))))
    });
    check_limit("dependencies", limits::DEPENDENCIES_MAX, |n| {
        let there =
            |n: usize| ExternalTaskRef { agent: Some("b".into()), plan: None, task: id(&format!("t{n}")) };
        one(with("a", |spec| {
            spec.depends_on = (0..n).map(|n| Dependency::External(Box::new(there(n)))).collect()
        }))
    });
    check_limit("levels of parents", limits::DEPTH_MAX, tower);
    let past = |change: &dyn Fn(&mut Task)| {
        let mut draft = plan_of([task("a", &[])]);
        change(&mut draft.tasks[0]);
        draft
    };
    check_limit("bytes of the result", long, |n| past(&|task| task.state.result = Some(text(n))));
    check_limit("bytes of the error", long, |n| past(&|task| task.state.error = Some(text(n))));
    check_limit("bytes of the reason", long, |n| past(&|task| task.state.reason = Some(text(n))));
    check_limit("bytes of the output", limits::JSON_BYTES_MAX, |n| {
        past(&|task| task.state.output = Some(json(n)))
    });
}

/// A task with `levels` ancestors.
fn tower(levels: usize) -> Draft {
    plan_of((0..=levels).map(|level| match level {
        0 => task("t0", &[]),
        level => child(&format!("t{level}"), &format!("t{}", level - 1), &[]),
    }))
}

#[test]
fn ids_have_their_limits_too() {
    let (task_max, plan_max) = (limits::TASK_ID_BYTES_MAX, limits::PLAN_ID_BYTES_MAX);
    assert!(TaskId::new("x".repeat(task_max)).is_ok() && TaskId::new("x".repeat(task_max + 1)).is_err());
    assert!(PlanId::new("x".repeat(plan_max)).is_ok() && PlanId::new("x".repeat(plan_max + 1)).is_err());
    assert!(TaskId::new("").is_err() && PlanId::new("").is_err());
    assert!(TaskId::new("two words, ünd möre").is_ok() && TaskId::new("a\nb").is_err());
    assert!(PlanId::new("a.b_c-1").is_ok());
    for bad in [".hidden", "-x", "a/b", "a b", "ü"] {
        assert!(PlanId::new(bad).is_err(), "{bad:?} would not be safe as a file name");
    }
}

#[test]
fn a_report_lists_only_so_many_problems() {
    let tasks = (0..limits::PROBLEMS_MAX + 5).map(|n| task(&format!("t{n}"), &["nobody"]));
    assert_eq!(validate(&plan_of(tasks)).len(), limits::PROBLEMS_MAX);
    let tasks = (0..limits::PROBLEMS_MAX + 5).map(|n| task(&format!("t{n}"), &["nobody"])).collect();
    let mut desk = Desk::with(plan_of([]));
    let Refusal::Invalid { problems } = desk.refuses(Command::AddTasks { tasks, place: Position::Last })
    else {
        panic!("refused for what is wrong with them");
    };
    assert_eq!(problems.len(), limits::PROBLEMS_MAX);
}

#[test]
fn what_came_of_a_task_has_limits() {
    let over = |refusal: Refusal| match refusal {
        Refusal::Invalid { problems } => problems[0].to_string(),
        other => panic!("refused for another reason: {other}"),
    };
    let (text, json) =
        ("x".repeat(limits::TEXT_BYTES_MAX), Json::of(&"x".repeat(limits::JSON_BYTES_MAX - 2)));
    let longer = || format!("{text}x");
    let mut desk = Desk::with(plan_of([task("a", &[]), task("b", &[])]));
    let result = Outcome::Done { result: Some(longer()), output: None, evidence: None };
    assert!(over(desk.refuses(ask::finish("a", result))).contains("bytes of the result: 262145 is over"));
    let output = Outcome::Done {
        result: None,
        output: Some(Json::of(&"x".repeat(limits::JSON_BYTES_MAX))),
        evidence: None,
    };
    assert!(over(desk.refuses(ask::finish("a", output))).contains("bytes of the output"));
    assert!(
        over(desk.refuses(ask::finish("a", Outcome::Failed { error: longer(), evidence: None })))
            .contains("bytes of the error")
    );
    let reason = Outcome::Skipped { reason: Some(longer()) };
    assert!(over(desk.refuses(ask::finish("a", reason))).contains("bytes of the reason"));
    desk.does(ask::finish("a", Outcome::Done { result: Some(text), output: Some(json), evidence: None }));
}

#[test]
fn edits_find_the_cycles_that_they_would_close() {
    let path = |refusal: Refusal| match refusal {
        Refusal::Invalid { problems } => problems[0].to_string(),
        other => panic!("refused for another reason: {other}"),
    };
    let draft = || {
        plan_of([task("a", &[]), task("b", &["a"]), task("p", &["b"]), child("c", "p", &[]), task("q", &[])])
    };
    let add = |tasks: Vec<TaskSpec>| Command::AddTasks { tasks, place: Position::Last };
    let depend = |name: &str, on: &str| {
        let add_dependencies = vec![Dependency::Task(id(on))];
        ask::revise(name, waypost_core::TaskChanges { add_dependencies, ..Default::default() })
    };
    let put = |name: &str, parent: &str| Command::MoveTask {
        task: id(name),
        parent: Some(Some(id(parent))),
        place: Position::Last,
    };
    let found = |command: Command| path(Desk::with(draft()).refuses(command));
    assert_eq!(found(depend("a", "b")), "task a: tasks depend on each other: a → b → a");
    assert_eq!(found(depend("a", "p")), "task a: tasks depend on each other: a → p → b → a");
    assert_eq!(found(depend("c", "p")), "task c: tasks depend on each other: c → p → c");
    assert_eq!(found(put("p", "c")), "task p: parents form a ring: p → c → p");
    assert_eq!(found(put("a", "p")), "task a: tasks depend on each other: a → p → b → a");
    assert_eq!(found(put("p", "b")), "task p: tasks depend on each other: p → b → p");
    // Among the new tasks alone, through one existing parent, and through two.
    assert_eq!(
        found(add(vec![task("x", &["y"]), task("y", &["x"])])),
        "task x: tasks depend on each other: x → y → x"
    );
    assert_eq!(
        found(add(vec![child("x", "y", &[]), child("y", "x", &[])])),
        "task x: parents form a ring: x → y → x"
    );
    assert_eq!(
        found(add(vec![child("x", "a", &["b"])])),
        "task x: tasks depend on each other: x → b → a → x"
    );
    let two = draft_with_two_groups();
    let crossed = vec![child("x", "p", &["after_q"]), child("y", "q", &["after_p"])];
    assert_eq!(
        path(Desk::with(two).refuses(add(crossed))),
        "task x: tasks depend on each other: x → after_q → q → y → after_p → p → x"
    );
}

fn draft_with_two_groups() -> Draft {
    plan_of([task("p", &[]), task("q", &[]), task("after_p", &["p"]), task("after_q", &["q"])])
}

#[test]
fn a_move_is_not_refused_for_a_cycle_that_it_undoes() {
    let mut desk = Desk::with(plan_of([
        task("old", &[]),
        child("t", "old", &[]),
        task("new", &["old"]),
        child("u", "old", &[]),
    ]));
    desk.does(Command::MoveTask { task: id("t"), parent: Some(Some(id("new"))), place: Position::Last });
    assert_eq!(desk.plan.task("t").unwrap().spec.parent, Some(id("new")));
}

#[test]
fn no_edit_builds_a_tower_that_is_too_high() {
    let mut desk = Desk::with(tower(limits::DEPTH_MAX - 1));
    let top = format!("t{}", limits::DEPTH_MAX - 1);
    let over = |refusal: Refusal| match refusal {
        Refusal::Invalid { problems } => problems[0].to_string(),
        other => panic!("refused for another reason: {other}"),
    };
    let add = |tasks: Vec<TaskSpec>| Command::AddTasks { tasks, place: Position::Last };
    let two = add(vec![child("y", "x", &[]), child("x", &top, &[])]);
    assert_eq!(over(desk.refuses(two)), "task y: levels of parents: 1001 is over the limit of 1000");
    desk.does(add(vec![task("r", &[]), child("s", "r", &[])]));
    let move_it = Command::MoveTask { task: id("r"), parent: Some(Some(id(&top))), place: Position::Last };
    assert_eq!(over(desk.refuses(move_it)), "task r: levels of parents: 1001 is over the limit of 1000");
    desk.does(add(vec![child("x", &top, &[])]));
}

#[test]
fn a_chain_of_a_million_tasks_is_sound_and_one_more_is_too_many() {
    let mut draft = chain(limits::TASKS_MAX);
    assert_eq!(validate(&draft), []);
    draft.tasks.push(Task::new(task("more", &[])));
    let wanted = ProblemKind::OverLimit {
        what: "tasks in a plan".into(),
        found: limits::TASKS_MAX + 1,
        max: limits::TASKS_MAX,
    };
    assert_eq!(validate(&draft), [Problem::plan(wanted)]);
}

#[test]
fn a_chain_of_a_hundred_thousand_tasks_runs_through() {
    const COUNT: usize = 100_000;
    let mut desk = Desk::with(chain(COUNT));
    for number in 0..COUNT {
        let task = format!("t{number}");
        assert_eq!(desk.plan.ready().next().unwrap().spec.id.as_str(), task);
        desk.asks(&worker(), ask::start(&task)).unwrap();
        desk.asks(&worker(), ask::finish(&task, done())).unwrap();
    }
    assert_eq!(desk.plan.counts().done as usize, COUNT);
    assert!(desk.plan.state().phase.is_finished());
}

#[test]
fn a_cycle_of_a_hundred_thousand_tasks_is_found_without_recursion() {
    const COUNT: usize = 100_000;
    let mut draft = chain(COUNT);
    draft.tasks[0].spec.depends_on = vec![Dependency::Task(id(&format!("t{}", COUNT - 1)))];
    let problems = validate(&draft);
    let [Problem { wrong: ProblemKind::Cycle { path }, .. }] = problems.as_slice() else {
        panic!("one cycle is found")
    };
    assert_eq!(path.len(), COUNT + 1);
    let mut desk = Desk::with(chain(COUNT));
    let add_dependencies = vec![Dependency::Task(id(&format!("t{}", COUNT - 1)))];
    let close = ask::revise("t0", waypost_core::TaskChanges { add_dependencies, ..Default::default() });
    assert!(matches!(desk.refuses(close), Refusal::Invalid { .. }));
}

#[test]
fn a_wide_plan_is_sound_and_made() {
    let desk = Desk::with(layered(20_000, 5, 500, 7));
    assert_eq!(desk.plan.len(), 20_000);
}
