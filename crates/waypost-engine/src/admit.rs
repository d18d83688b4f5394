//! What of a plan the configuration allows: executors, workers, shapes and queues that it knows. Runs nothing.

use waypost_core::{Draft, Problem, TaskSpec, Work, Wrong};

use crate::config::{Config, Executor, Process};

/// Everything in a plan that names something which the configuration does not have, or gives it the wrong inputs.
pub fn problems(config: &Config, draft: &Draft) -> Vec<Problem> {
    let mut problems = Vec::new();
    let queue = Config::queue_name(&draft.spec.queue);
    if !config.queues.contains_key(queue) {
        problems.push(Problem::plan(Wrong::UnknownQueue { queue: queue.to_owned() }));
    }
    for task in &draft.tasks {
        problems.extend(task_problems(config, &task.spec));
    }
    problems
}

/// The same for one task.
pub fn task_problems(config: &Config, spec: &TaskSpec) -> Vec<Problem> {
    let work = spec.work.as_ref().and_then(|work| wrong_with(config, work, resolve));
    let check = spec.check.as_ref().and_then(|check| wrong_with(config, check, resolve_check));
    work.into_iter().chain(check).map(|wrong| Problem::task(&spec.id, wrong)).collect()
}

fn wrong_with<'a>(
    config: &'a Config,
    work: &Work,
    resolve: impl FnOnce(&'a Config, &Work) -> Result<Means<'a>, Wrong>,
) -> Option<Wrong> {
    if let Some(shape) = work.shape.as_ref().filter(|shape| !config.shapes.contains_key(*shape)) {
        return Some(Wrong::UnknownShape { shape: shape.clone() });
    }
    resolve(config, work).err()
}

/// The same for a task's check, which may also be one of the configured checks. Work never is: a plan cannot have done
/// what was only allowed to look.
pub(crate) fn resolve_check<'a>(config: &'a Config, check: &Work) -> Result<Means<'a>, Wrong> {
    match (config.executors.contains_key(&check.executor), config.checks.get(&check.executor)) {
        (false, Some(process)) => Ok(Means::Process(process)),
        (true, _) | (false, None) => resolve(config, check),
    }
}

/// What a task's work comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means<'a> {
    /// Nothing.
    Noop,
    /// A person.
    Human,
    /// This program.
    Process(&'a Process),
}

/// Finds the program that does a task's work.
pub(crate) fn resolve<'a>(config: &'a Config, work: &Work) -> Result<Means<'a>, Wrong> {
    match config.executors.get(&work.executor) {
        None => Err(Wrong::UnknownExecutor { executor: work.executor.clone() }),
        Some(Executor::Noop) => Ok(Means::Noop),
        Some(Executor::Human) => Ok(Means::Human),
        Some(Executor::Process(process)) => Ok(Means::Process(process)),
        Some(Executor::Dispatch(workers)) => {
            let inputs = work.inputs.value();
            let Some(name) =
                inputs.get("subagent").and_then(|name| name.as_str()).filter(|name| !name.is_empty())
            else {
                return Err(Wrong::Missing { field: "work.inputs.subagent".to_owned() });
            };
            match workers.get(name) {
                Some(process) => Ok(Means::Process(process)),
                None => Err(Wrong::UnknownExecutor { executor: format!("{}/{name}", work.executor) }),
            }
        }
    }
}

/// The inputs that the program gets: those of the task, or what a dispatched worker is sent of them.
pub(crate) fn inputs(config: &Config, work: &Work) -> serde_json::Value {
    let inputs = work.inputs.value();
    match config.executors.get(&work.executor) {
        Some(Executor::Dispatch(_)) => {
            inputs.get("workerInput").cloned().unwrap_or_else(|| serde_json::json!({}))
        }
        Some(Executor::Noop | Executor::Human | Executor::Process(_)) | None => inputs,
    }
}
