//! Checks before any start whether what was approved is what this worker would run.

use std::collections::BTreeMap;

use waypost_core::{Command, Phase, PlanId, Timestamp};
use waypost_service::may_start;

use super::{CheckedApproval, Draft, Followed, Scheduler};

impl Followed {
    /// Whether this worker starts nothing of the plan.
    pub(super) fn is_refused(&self) -> bool {
        self.approval.as_ref().is_some_and(|checked| checked.refused)
    }
}

impl Scheduler {
    /// Checks the approvals of plans that changed since the last check, and records new refusals.
    pub(super) fn check_approvals(&mut self, now: Timestamp, writes: &mut BTreeMap<PlanId, Draft>) {
        for (id, draft) in writes {
            let Some(followed) = self.plans.get_mut(id) else { continue };
            let state = followed.plan.state();
            let Some(approval) = state.approval.as_ref().filter(|_| state.phase == Phase::Active) else {
                followed.approval = None;
                continue;
            };
            let approved = approval.work.as_ref().map(|work| work.digest.clone());
            let work = followed.plan.work_digest();
            let known = followed.approval.as_ref();
            if known.is_some_and(|known| known.work == work && known.approved == approved) {
                continue;
            }
            let refusal =
                may_start(self.config.approval.policy, &self.definitions, &followed.plan, &self.worker).err();
            followed.approval = Some(CheckedApproval { work, approved, refused: refusal.is_some() });
            if let Some(refusal) = refusal {
                self.apply(now, id, Command::RefuseStart(refusal), draft);
            }
        }
    }
}
