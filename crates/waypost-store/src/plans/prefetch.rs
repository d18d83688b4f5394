//! Predicts what a group of jobs will read from the store, as far as the cache allows. Reads nothing.

use waypost_core::{Command, PlanId};

use super::cache::Cache;
use super::request::{Job, Write, WriteRequest};
use crate::store::ReadHints;

/// Returns what these jobs will read.
pub(super) fn of_jobs(jobs: &[Job], cache: &Cache) -> ReadHints {
    let mut expected = ReadHints::default();
    for job in jobs {
        match job {
            Job::Create(None, _, _) => {}
            Job::Create(Some(plan), _, _) => add(&mut expected, cache, plan),
            Job::Purge(purge) => add(&mut expected, cache, &purge.plan),
            Job::Shared(write) => add(&mut expected, cache, &write.plan),
            Job::Write(write) => {
                let Write { request, slots, .. } = &**write;
                add(&mut expected, cache, &request.plan);
                add_locks(&mut expected, cache, request);
                let starts = |command: &Command| {
                    matches!(command, Command::StartTask { .. } | Command::QueueTask { .. })
                };
                let bounded = slots.as_ref().filter(|slots| slots.concurrency.is_some());
                if let Some(slots) = bounded.filter(|_| request.commands.iter().any(starts))
                    && !expected.queues.contains(&slots.queue)
                {
                    expected.queues.push(slots.queue.clone());
                }
            }
        }
    }
    expected
}

/// Returns what a read of one plan needs.
pub(super) fn of_plan(plan: &PlanId, cache: &Cache) -> ReadHints {
    let mut expected = ReadHints::default();
    add(&mut expected, cache, plan);
    expected
}

fn add(expected: &mut ReadHints, cache: &Cache, plan: &PlanId) {
    if expected.plans.iter().all(|(other, _)| other != plan) {
        // A cached plan needs the versions since; for any other, a snapshot is looked up first.
        expected.plans.push((plan.clone(), cache.get(plan).map(|plan| plan.version())));
    }
}

/// Adds the locks of tasks that the request starts.
fn add_locks(expected: &mut ReadHints, cache: &Cache, request: &WriteRequest) {
    let Some(plan) = cache.get(&request.plan) else { return };
    for command in &request.commands {
        let (Command::StartTask { task, .. } | Command::QueueTask { task, .. }) = command else { continue };
        let Some(task) = plan.task(task.as_str()) else { continue };
        for lock in &task.spec.locks {
            if !expected.locks.contains(&lock.key) {
                expected.locks.push(lock.key.clone());
            }
        }
    }
}
