//! Queries about dependencies of a plan on tasks of other plans.

use waypost_core::{ExternalTaskRef, PlanId, TaskId};

use super::PlanStore;
use super::cache::catch_up;
use super::request::WriteError;
use crate::cross_plan::locate::{is_open, locate, waits_since};
use crate::cross_plan::target_status::TargetStatus;
use crate::rows::{Wait, WaitFilter};

impl PlanStore {
    /// Returns the current status of the task of another plan that a task of the plan `of` refers to: the task `waiting`, or one
    /// that begins to wait now.
    pub fn target_status(
        &self,
        of: &PlanId,
        waiting: Option<&TaskId>,
        on: &ExternalTaskRef,
    ) -> Result<TargetStatus, WriteError> {
        let mut found = TargetStatus::NoPlanOf(String::new());
        self.looking(&mut |read, cache| {
            let version = read.plan_state(of)?.version().filter(|_| waiting.is_some());
            if let Some(version) = version {
                catch_up(read, cache, of, version)?;
            }
            let since = waiting.and_then(|task| waits_since(cache, of, task));
            found = locate(read, cache, of, since, on)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the waits of a plan's pending tasks for other plans that lack a successful result, each with the status
    /// of its target; at most `limit`.
    pub fn external_waits(
        &self,
        plan: &PlanId,
        limit: usize,
    ) -> Result<Vec<(Wait, TargetStatus)>, WriteError> {
        let mut found = Vec::new();
        self.looking(&mut |read, cache| {
            let waits = read.waits(WaitFilter::Of(plan))?;
            let Some(version) = read.plan_state(plan)?.version() else { return Ok(()) };
            catch_up(read, cache, plan, version)?;
            let Some(waiting) = cache.get(plan) else { return Ok(()) };
            let open: Vec<Wait> =
                waits.into_iter().filter(|wait| is_open(waiting, wait)).take(limit).collect();
            found.clear();
            for wait in open {
                let since = waits_since(cache, plan, &wait.task);
                let whereabouts = locate(read, cache, plan, since, &wait.on)?;
                found.push((wait, whereabouts));
            }
            Ok(())
        })?;
        Ok(found)
    }
}
