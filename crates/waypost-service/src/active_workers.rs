//! The workers of a queue, on any machine. Registry rows in the store decide, except that a worker whose process on
//! this machine has exited is dead.

use waypost_core::Timestamp;
use waypost_store::{PlanStore, StoreError, WORKERS_PAGE_MAX, Worker, WorkerState};

/// Returns the state of a worker. A worker whose process on this machine has exited is dead, even if its registry row
/// is still fresh.
pub fn worker_state(worker: &Worker, now: Timestamp) -> WorkerState {
    if waypost_store::is_dead(&worker.name) { WorkerState::Dead } else { worker.state(now) }
}

/// Returns the workers that take tasks of this queue: alive or silent, and not draining.
pub fn workers_of(plans: &PlanStore, queue: &str) -> Result<Vec<Worker>, StoreError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (page, now) = plans.workers(after.as_deref(), WORKERS_PAGE_MAX)?;
        let takes = |worker: &Worker| {
            let takes_up = match worker_state(worker, now) {
                WorkerState::Alive | WorkerState::Silent => !worker.draining,
                WorkerState::Draining | WorkerState::Dead => false,
            };
            takes_up && worker.serves(queue)
        };
        found.extend(page.items.into_iter().filter(takes));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(found),
        }
    }
}

/// The message for a queue that no live worker serves.
pub fn no_worker(queue: &str) -> String {
    format!("no worker of queue {queue} is alive, here or on another machine")
}
