//! The workers of a queue, on any machine. Registry rows in the store decide, except that a worker whose process on
//! this machine has exited is dead.

use waypost_config::Config;
use waypost_core::{EffectiveStatus, PlanId, Timestamp};
use waypost_store::{Lease, PlanStore, StoreError, WORKERS_PAGE_MAX, Worker, WorkerState, WriteError};

/// Returns the state of a worker. A worker whose process on this machine has exited is dead, even if its registry row
/// is still fresh; one whose process lives is not, even if its clock and `now` differ: other workers leave it its tasks.
pub fn worker_state(worker: &Worker, now: Timestamp) -> WorkerState {
    match worker.state(now) {
        _ if waypost_store::is_dead(&worker.name) => WorkerState::Dead,
        WorkerState::Dead if waypost_store::is_alive(&worker.name) => WorkerState::Silent,
        state @ (WorkerState::Alive | WorkerState::Draining | WorkerState::Silent | WorkerState::Dead) => {
            state
        }
    }
}

/// Returns the leases of a worker, at most `limit`: those of running tasks, and those of queued tasks.
pub fn work_of(
    plans: &PlanStore,
    worker: &str,
    limit: usize,
) -> Result<(Vec<Lease>, Vec<Lease>), StoreError> {
    let is_running = |lease: &Lease| {
        let status = plans.with_plan(&lease.plan, |plan| plan.effective_status(lease.task.as_str()));
        !matches!(status, Ok(Some(EffectiveStatus::Queued)))
    };
    Ok(plans.leases_of(worker, limit)?.into_iter().partition(is_running))
}

/// Returns the queue of a plan, and the workers that take its tasks: neither dead nor draining, and serving the queue or
/// running this plan.
pub fn workers_of(plans: &PlanStore, plan: &PlanId) -> Result<(String, Vec<Worker>), WriteError> {
    let queue = plans.view(plan, |plan, _| Config::queue_name(&plan.spec().queue).to_owned())?;
    let (mut found, now) = all_workers(plans)?;
    found.retain(|worker| takes_tasks_of(worker, now, &queue, plan));
    Ok((queue, found))
}

/// Whether a worker takes tasks of a plan in this queue.
pub(crate) fn takes_tasks_of(worker: &Worker, now: Timestamp, queue: &str, plan: &PlanId) -> bool {
    !worker.draining && is_alive_for(worker, now, queue, plan)
}

/// Whether a worker lives and serves the queue or runs this plan, even if it drains.
fn is_alive_for(worker: &Worker, now: Timestamp, queue: &str, plan: &PlanId) -> bool {
    let is_alive = match worker_state(worker, now) {
        WorkerState::Alive | WorkerState::Silent | WorkerState::Draining => true,
        WorkerState::Dead => false,
    };
    is_alive && (worker.serves(Config::queue_name(queue)) || worker.plans.contains(plan))
}

/// Returns how many workers would take tasks of a plan if they did not drain.
pub(crate) fn draining_of(plans: &PlanStore, plan: &PlanId, queue: &str) -> Result<usize, StoreError> {
    let (found, now) = all_workers(plans)?;
    let drains = |worker: &&Worker| worker.draining && is_alive_for(worker, now, queue, plan);
    Ok(found.iter().filter(drains).count())
}

/// Returns all workers registered in the store, and the store's current time.
pub fn all_workers(plans: &PlanStore) -> Result<(Vec<Worker>, Timestamp), StoreError> {
    let (mut found, mut after): (Vec<Worker>, Option<String>) = (Vec::new(), None);
    loop {
        let (page, now) = plans.workers(after.as_deref(), WORKERS_PAGE_MAX)?;
        found.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok((found, now)),
        }
    }
}

/// Returns the message for a queue without a live worker.
pub fn no_worker(queue: &str) -> String {
    format!("no worker of queue {queue} is alive, here or on another machine")
}

#[cfg(test)]
mod tests {
    use waypost_store::{WorkerKind, worker_name};

    use super::*;

    #[test]
    fn a_live_process_of_this_machine_is_not_dead_whatever_the_clock_says() {
        let state = |name: &str, now: i64| {
            let worker = Worker::new(name, "mill", WorkerKind::Worker, Vec::new());
            let (seen, until) = (Timestamp::from_micros(1_000_000), Timestamp::from_micros(61_000_000));
            worker_state(&Worker { seen, until, ..worker }, Timestamp::from_micros(now * 1_000_000))
        };
        let own = worker_name();
        assert_eq!(state(&own, 10), WorkerState::Alive);
        let expected = if cfg!(target_os = "linux") { WorkerState::Silent } else { WorkerState::Dead };
        assert_eq!(state(&own, 3_600), expected, "its clock is an hour behind");
        assert_eq!(state("elsewhere:1:1.1", 3_600), WorkerState::Dead);
    }
}
