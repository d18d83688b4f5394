//! Who does a task's work: from the executor that it names to the worker that the configuration has.

use std::borrow::Cow;

use waypost_core::{Json, ProblemKind, Work};

use crate::executor::Worker;
use crate::settings::{Config, Executor};

/// The same for a task's check, which may also be one of the configured checks. Work never is: a plan cannot have done
/// what was only allowed to look.
pub fn resolve_check<'a>(config: &'a Config, check: &Work) -> Result<ResolvedWork<'a>, ProblemKind> {
    match (config.executors.contains_key(&check.executor), config.checks.get(&check.executor)) {
        (false, Some(worker)) => Ok(ResolvedWork::Worker(worker)),
        (true, _) | (false, None) => resolve(config, check),
    }
}

/// What a task's work comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolvedWork<'a> {
    /// Nothing.
    Noop,
    Human,
    /// This worker.
    Worker(&'a Worker),
}

/// Finds who does a task's work.
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

/// The inputs that the worker gets: those of the task, or what a dispatched worker is sent of them.
pub fn inputs<'a>(config: &Config, work: &'a Work) -> Cow<'a, Json> {
    match config.executors.get(&work.executor) {
        Some(Executor::Dispatch(_)) => {
            let inputs = work.inputs.value();
            Cow::Owned(inputs.get("workerInput").map_or_else(Json::empty_object, Json::of))
        }
        Some(Executor::Noop | Executor::Human | Executor::Worker(_)) | None => Cow::Borrowed(&work.inputs),
    }
}
