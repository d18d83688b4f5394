//! Who is there to do the work, on whatever machine: the workers that the store knows, and what this machine knows better.

use waypost_core::Timestamp;
use waypost_store::{PlanStore, StoreError, WORKERS_PAGE_MAX, Worker, WorkerState};

/// What is known of a worker. One whose process on this machine is gone is dead, whatever it last said.
pub fn worker_state(worker: &Worker, now: Timestamp) -> WorkerState {
    if waypost_store::is_dead(&worker.name) { WorkerState::Dead } else { worker.state(now) }
}

/// Workers that take up tasks of this queue: they are alive, and not about to end.
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

/// What to say where nobody takes up tasks of a queue.
pub fn no_worker(queue: &str) -> String {
    format!("no worker of queue {queue} is alive, here or on another machine")
}
