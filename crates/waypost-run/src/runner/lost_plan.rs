//! Plans that can no longer be read or written: purged, or damaged. A worker goes on with its other plans.

use waypost_core::PlanId;
use waypost_store::WriteError;

use super::plan_error::lost_plan;
use super::{RunError, RunWarning, Runner};
use crate::scheduler::Input;

impl Runner {
    /// Forgets a plan, and kills what runs of it.
    pub(super) fn lose_plan(&mut self, id: &PlanId, error: WriteError) {
        if self.scheduler.plan(id).is_none() {
            return;
        }
        self.handle(Input::PlanLost(id.clone()));
        self.remarks.push(RunWarning::PlanLost { plan: id.clone(), why: lost_plan(id, &error) });
        self.lost = Some(RunError::PlanLost { plan: id.clone(), error: Box::new(error) });
    }

    /// Forgets a plan that is not in the store any more. Returns whether it did.
    pub(super) fn lose_purged(&mut self, id: &PlanId) -> bool {
        match self.plans.with_plan(id, |_| ()) {
            Err(error @ WriteError::NotFound(_)) => {
                self.lose_plan(id, error);
                true
            }
            Ok(()) | Err(_) => false,
        }
    }

    /// Returns why a run of named plans ends that has lost the last of them.
    pub(super) fn lost_run(&mut self) -> Option<RunError> {
        let has_none = self.offers.is_none() && self.scheduler.followed().next().is_none();
        self.lost.take_if(|_| has_none)
    }
}
