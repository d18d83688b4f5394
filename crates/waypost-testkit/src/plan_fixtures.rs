//! Plans of common shapes.

use waypost_core::{Dependency, Draft, Task, TaskId, TaskSpec};

use crate::SeededRng;

/// Returns a task id; panics if the text is not valid.
pub fn id(text: &str) -> TaskId {
    TaskId::new(text).expect("a test's task id is valid")
}

/// Returns a task that depends on these tasks.
pub fn task(name: &str, depends_on: &[&str]) -> TaskSpec {
    let mut spec = TaskSpec::new(id(name), format!("do {name}"));
    spec.depends_on = depends_on.iter().map(|on| Dependency::Task(id(on))).collect();
    spec
}

/// Returns a draft with these tasks.
pub fn plan_of(tasks: impl IntoIterator<Item = TaskSpec>) -> Draft {
    let mut draft = Draft::new("a plan");
    draft.tasks = tasks.into_iter().map(Task::new).collect();
    draft
}

/// `t0 ← t1 ← t2 …`: each task depends on the one before.
pub fn chain(length: usize) -> Draft {
    plan_of((0..length).map(|n| {
        let before = if n == 0 { None } else { Some(format!("t{}", n - 1)) };
        task(&format!("t{n}"), &before.as_deref().into_iter().collect::<Vec<_>>())
    }))
}

/// One root, `width` tasks that depend on it, and one task that depends on all of those.
pub fn fan_out(width: usize) -> Draft {
    let middle: Vec<String> = (0..width).map(|n| format!("m{n}")).collect();
    let mut tasks = vec![task("root", &[])];
    tasks.extend(middle.iter().map(|name| task(name, &["root"])));
    tasks.push(task("end", &middle.iter().map(String::as_str).collect::<Vec<_>>()));
    plan_of(tasks)
}

/// `count` tasks, each with up to `dependencies` dependencies among the last `reach` tasks before it.
pub fn layered(count: usize, dependencies: usize, reach: usize, seed: u64) -> Draft {
    let mut dice = SeededRng::new(seed);
    plan_of((0..count).map(|n| {
        let mut before: Vec<String> = Vec::new();
        for _ in 0..dependencies.min(n) {
            let name = format!("t{}", n - 1 - dice.below(reach.min(n)));
            if !before.contains(&name) {
                before.push(name);
            }
        }
        task(&format!("t{n}"), &before.iter().map(String::as_str).collect::<Vec<_>>())
    }))
}
