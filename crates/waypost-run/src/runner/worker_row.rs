//! The entry of a run among the workers of the store.

use waypost_core::{Json, PlanId};
use waypost_store::{PlanStore, Worker, WorkerKind};

use super::follow::Follow;
use crate::scheduler::TaskFilter;
use waypost_config::{Config, Definitions};
use waypost_store as identity;

/// Maximum bytes of the definitions that a worker publishes.
const DEFINITIONS_BYTES_MAX: usize = 256 * 1024;

/// Returns definitions as they are published, unless they are too large.
pub(super) fn published(definitions: &Definitions) -> Option<Json> {
    let definitions = Json::of(definitions);
    (definitions.as_str().len() <= DEFINITIONS_BYTES_MAX).then_some(definitions)
}

/// Builds the entry of a run. The store sets its times.
pub(super) fn of(
    plans: &PlanStore,
    config: &Config,
    name: &str,
    follow: &Follow,
    takes: &TaskFilter,
    jobs: Option<u32>,
) -> Worker {
    let (kind, queues, told) = match follow {
        Follow::Plans(ids) => {
            let queue = |id: &PlanId| {
                plans.with_plan(id, |plan| Config::queue_name(&plan.spec().queue).to_owned()).ok()
            };
            let mut queues: Vec<String> = ids.iter().filter_map(queue).collect();
            queues.dedup();
            (WorkerKind::Run, queues, ids.clone())
        }
        Follow::Queues(queues) => (WorkerKind::Worker, queues.clone(), Vec::new()),
    };
    let executors = match &takes.executors {
        Some(executors) => executors.iter().cloned().collect(),
        // A check is looked up among the executors first, then among the checks.
        None => config.executors.keys().chain(config.checks.keys()).cloned().collect(),
    };
    Worker {
        plans: told,
        executors,
        capacity: jobs,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        definitions: published(&Definitions::of(config)),
        ..Worker::new(name, &identity::host(), kind, queues)
    }
}
