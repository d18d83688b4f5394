//! Resolves the executor that a task names to a configured worker.

use std::borrow::Cow;

use waypost_core::{Json, ProblemKind, Work};

use crate::executor::Worker;
use crate::settings::{Config, Executor};

/// Like [`resolve`] for a task's check, which may also name a configured check. Work never resolves to one: a plan must
/// not run a program as work that was only allowed to inspect.
pub fn resolve_check<'a>(config: &'a Config, check: &Work) -> Result<ResolvedWork<'a>, ProblemKind> {
    match (config.executors.contains_key(&check.executor), config.checks.get(&check.executor)) {
        (false, Some(worker)) => Ok(ResolvedWork::Worker(worker)),
        (true, _) | (false, None) => resolve(config, check),
    }
}

/// The result of resolving a task's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolvedWork<'a> {
    /// There is nothing to do.
    Noop,
    Human,
    /// A configured worker.
    Worker(&'a Worker),
}

/// Finds the executor of a task's work. For a dispatch executor, `inputs.subagent` chooses the worker.
pub fn resolve<'a>(config: &'a Config, work: &Work) -> Result<ResolvedWork<'a>, ProblemKind> {
    match config.executors.get(&work.executor) {
        None => Err(ProblemKind::UnknownExecutor { executor: work.executor.clone() }),
        Some(Executor::Noop) => Ok(ResolvedWork::Noop),
        Some(Executor::Human) => Ok(ResolvedWork::Human),
        Some(Executor::Worker(worker)) => Ok(ResolvedWork::Worker(worker)),
        Some(Executor::Dispatch(workers)) => {
            let inputs = work.inputs.value();
            let Some(name) =
                inputs.get("subagent").and_then(|name| name.as_str()).filter(|name| !name.is_empty())
            else {
                return Err(ProblemKind::Missing { field: "work.inputs.subagent".to_owned() });
            };
            match workers.get(name) {
                Some(worker) => Ok(ResolvedWork::Worker(worker)),
                None => Err(ProblemKind::UnknownExecutor { executor: format!("{}/{name}", work.executor) }),
            }
        }
    }
}

/// The inputs that the worker receives: the task's, or only `workerInput` for a dispatched worker.
pub fn inputs<'a>(config: &Config, work: &'a Work) -> Cow<'a, Json> {
    match config.executors.get(&work.executor) {
        Some(Executor::Dispatch(_)) => {
            let inputs = work.inputs.value();
            Cow::Owned(inputs.get("workerInput").map_or_else(Json::empty_object, Json::of))
        }
        Some(Executor::Noop | Executor::Human | Executor::Worker(_)) | None => Cow::Borrowed(&work.inputs),
    }
}
