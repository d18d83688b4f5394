//! Workers of the store, their leases, and the copies of their logs.

use waypost_core::{Plan, PlanId, TaskId, Timestamp};

use super::PlanStore;
use super::request::WriteError;
use crate::error::{Result, StoreError};
use crate::rows::{Lease, LeaseFilter, Page, PlanProgress, WorkerFilter};
use crate::store::Record;
use crate::workers::{AttemptLog, WORKERS_PAGE_MAX, Worker};

impl PlanStore {
    /// Returns workers sorted by name, at most `limit` after `after` and at most [`WORKERS_PAGE_MAX`], without what they
    /// publish for approvers; and the time by the clock of the store.
    pub fn workers(&self, after: Option<&str>, limit: usize) -> Result<(Page<Worker>, Timestamp)> {
        let (mut page, now) = self.store().query(|read| {
            Ok((read.workers(WorkerFilter::After(after), limit.min(WORKERS_PAGE_MAX))?, read.now()))
        })?;
        for worker in &mut page.items {
            worker.definitions = None;
        }
        Ok((page, now))
    }

    /// Returns the leases of a worker, at most `limit`.
    pub fn leases_of(&self, worker: &str, limit: usize) -> Result<Vec<Lease>> {
        self.store().query(|read| read.leases(&LeaseFilter::Worker(worker), limit))
    }

    /// Returns the latest progress of the running tasks of a plan.
    pub fn progress(&self, plan: &PlanId) -> Result<PlanProgress> {
        let leases = self.store().query(|read| read.leases(&LeaseFilter::Plan(plan), usize::MAX >> 1))?;
        Ok(PlanProgress::of(leases))
    }

    /// Calls `look` with the current state of a plan and the latest progress of its tasks.
    fn look_with_progress(&self, id: &PlanId, look: &mut dyn FnMut(&Plan)) -> Result<(), WriteError> {
        // Only tasks in progress have any.
        let mut is_idle = false;
        self.look_at(id, &mut |plan| {
            is_idle = plan.counts().in_progress() == 0;
            if is_idle {
                look(plan);
            }
        })?;
        if is_idle {
            return Ok(());
        }
        let progress = match self.progress(id) {
            // Progress is kept beside the plan, and damage to it does not hide the plan.
            Err(StoreError::Corrupt { .. }) => PlanProgress::default(),
            progress => progress?,
        };
        if progress.is_empty() {
            return self.look_at(id, look);
        }
        let mut plan = self.with_plan(id, Plan::clone)?;
        progress.show_in(&mut plan);
        look(&plan);
        Ok(())
    }

    /// Calls `look` with all that can be read of a plan and with a description of the damage to its files: its current
    /// state with the latest progress, or of a damaged plan the state that a repair would restore.
    pub fn view<R>(&self, id: &PlanId, look: impl FnOnce(&Plan, &[String]) -> R) -> Result<R, WriteError> {
        let (mut look, mut seen) = (Some(look), None);
        self.view_with(id, &mut |plan, warnings| seen = look.take().map(|look| look(plan, warnings)))?;
        seen.ok_or_else(|| WriteError::NotFound(id.to_string()))
    }

    fn view_with(&self, id: &PlanId, look: &mut dyn FnMut(&Plan, &[String])) -> Result<(), WriteError> {
        let damage = self.store().damage(id)?;
        let mut warnings: Vec<String> = damage.into_iter().collect();
        match self.look_with_progress(id, &mut |plan| look(plan, &warnings)) {
            Err(error @ WriteError::Store(StoreError::Corrupt { .. })) => {
                let Some((plan, source)) = self.store().intact(id)? else { return Err(error) };
                if warnings.is_empty() {
                    warnings.push(error.to_string());
                }
                warnings.push(source);
                look(&plan, &warnings);
                Ok(())
            }
            seen => seen,
        }
    }

    /// Asks a worker to take no new tasks and to exit when its running tasks have ended. Returns `false` if there is no
    /// such worker.
    pub fn drain(&self, worker: &str) -> Result<bool> {
        let mut found = false;
        self.store().write(&mut |transaction| {
            found = false;
            if let Some(worker) = transaction.workers(WorkerFilter::Name(worker), 1)?.items.pop() {
                found = true;
                let drained = Worker { draining: true, ..worker };
                transaction.put(Record::Worker(&drained.name, Some(&drained)))?;
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the copy of an attempt's log, if the store has one.
    pub fn attempt_log(&self, plan: &PlanId, task: &TaskId, attempt: u32) -> Result<Option<AttemptLog>> {
        // Logs are sorted by task and attempt, so the wanted one is the first after the previous attempt.
        let before = Some((task, attempt.saturating_sub(1)));
        let logs = self.store().query(|read| read.attempt_logs(plan, before, 1))?;
        Ok(logs.into_iter().find(|log| log.task == *task && log.attempt == attempt))
    }
}
