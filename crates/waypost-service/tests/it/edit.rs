//! Edits of several operations: all of those that are wrong are named at once.

use std::sync::Arc;

use waypost_config::Config;
use waypost_core::{Actor, Position, TaskChanges, TaskId, TaskSpec};
use waypost_service::{Caller, CreateOptions, EditOp, Guard, NewTask, Service, ServiceError};
use waypost_store::{MemoryStore, PlanStore};
use waypost_testkit::{id, plan_of, task};

fn remove(name: &str) -> EditOp {
    EditOp::RemoveTask { task: id(name), drop_dependencies: false }
}

fn add(spec: TaskSpec) -> EditOp {
    EditOp::AddTasks { tasks: vec![NewTask::named(spec)], position: Position::Last }
}

fn depend(name: &str, on: &str) -> EditOp {
    let on = waypost_core::Dependency::Task(TaskId::new(on).unwrap());
    let changes = TaskChanges { add_dependencies: vec![on], ..TaskChanges::default() };
    EditOp::ReviseTask { task: id(name), changes: Box::new(changes) }
}

#[test]
fn every_wrong_operation_is_named_and_none_that_only_follows_from_another() {
    let check = |ops: Vec<EditOp>, code: &str, expected: &[&str]| {
        let config = Arc::new(Config::load(&[], []).unwrap());
        let service = Service::new(Arc::new(PlanStore::new(Arc::new(MemoryStore::new()))), config);
        let by = Caller::new(Actor::agent("robin"));
        let draft = plan_of([task("a", &[]), task("b", &["a"])]);
        let plan = service.create(&by, draft, CreateOptions::default()).unwrap().plan;
        let error = service.edit(&by, &plan, ops, Guard::NONE).unwrap_err();
        let named: Vec<String> = match &error {
            ServiceError::WrongOperations(wrong) => {
                let last = &wrong[wrong.len() - 1];
                let words = format!("; operation {}: {}", last.index + 1, last.error);
                assert!(error.to_string().ends_with(&words), "{error}");
                wrong.iter().map(|one| format!("{}: {}", one.index, one.error)).collect()
            }
            one => vec![one.to_string()],
        };
        assert_eq!(
            (named, error.code().as_str()),
            (expected.iter().map(ToString::to_string).collect(), code)
        );
        assert_eq!(service.read(&plan, |plan| plan.version()).unwrap(), 1, "nothing was written");
    };
    let missing = "no_such_task";
    check(
        vec![remove("x"), add(task("n", &[])), remove("y")],
        missing,
        &["0: no task is called x", "2: no task is called y"],
    );
    // A single one is what it is without the others.
    check(vec![add(task("n", &[])), remove("y")], missing, &["no task is called y"]);
    // Different kinds: a task in use, and one that is not there.
    check(
        vec![remove("a"), depend("x", "a"), add(task("n", &[]))],
        "invalid",
        &["0: task b depends on task a", "1: no task is called x"],
    );
    // Without the task that the first one would add, the others say nothing about themselves.
    let after_itself = add(task("n", &["n"]));
    check(
        vec![after_itself, remove("n"), depend("b", "n"), remove("z")],
        "invalid",
        &[
            "0: the plan that this would make is not valid: task n: depends on itself",
            "3: no task is called z",
        ],
    );
}
