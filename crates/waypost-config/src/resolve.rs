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

/// No executor has workers for a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no executor has workers for the target {target}")]
pub struct UnknownTarget {
    pub target: String,
    /// The targets that the configuration has.
    pub known: Vec<String>,
}

impl UnknownTarget {
    pub fn hint(&self) -> String {
        match self.known.as_slice() {
            [] => "add [executors.NAME.targets.TARGET.workers.WORKER] to the configuration".to_owned(),
            known => format!("name one of {}", known.join(", ")),
        }
    }
}

impl Config {
    /// Replaces the workers of dispatch executors by those of a target. Executors without workers for it stay as they are.
    pub fn use_target(&mut self, target: &str) -> Result<(), UnknownTarget> {
        let Some(chosen) = self.targets.get(target).filter(|executors| !executors.is_empty()) else {
            let known = self.targets.iter().filter(|(_, executors)| !executors.is_empty());
            let known = known.map(|(name, _)| name.clone()).collect();
            return Err(UnknownTarget { target: target.to_owned(), known });
        };
        for (executor, workers) in chosen {
            self.executors.insert(executor.clone(), Executor::Dispatch(workers.clone()));
            // A revision stands for what the executor was without the target.
            self.revisions.remove(executor);
        }
        Ok(())
    }
}

/// Returns the name of the worker that some work resolves to: `executor`, or `executor/worker` of a dispatch executor.
pub fn worker_name(config: &Config, work: &Work) -> String {
    let name = &work.executor;
    match config.executors.get(name) {
        Some(Executor::Dispatch(_)) => {
            let inputs = work.inputs.value();
            format!(
                "{name}/{}",
                inputs.get("subagent").and_then(|worker| worker.as_str()).unwrap_or_default()
            )
        }
        Some(Executor::Noop | Executor::Human | Executor::Worker(_)) | None => name.clone(),
    }
}

/// Returns the worker with this name, as [`worker_name`] returns it; of a check also a configured check.
pub fn worker_named<'a>(config: &'a Config, name: &str, is_check: bool) -> Option<&'a Worker> {
    let (executor, worker) = name.split_once('/').unwrap_or((name, ""));
    match config.executors.get(executor) {
        Some(Executor::Worker(found)) => Some(found),
        Some(Executor::Dispatch(workers)) => workers.get(worker),
        Some(Executor::Noop | Executor::Human) => None,
        None => config.checks.get(name).filter(|_| is_check),
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
