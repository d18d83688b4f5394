//! Plans that came from a remote which nobody has trusted: they can be read, and agents are offered none of them. Titles
//! and notes are prompts.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{ActorKind, PlanId, TaskId};
use waypost_store::{PlanSummary, Query, StoreError};

use super::claim_notice::ClaimNotice;
use super::rows;
use crate::caller::Caller;
use crate::error::ServiceError;
use crate::report::LEASE_SECONDS_DEFAULT;
use crate::service::Service;

impl Service {
    /// Returns who works on tasks of a plan in other clones, by task. A notice that is older than a lease says nothing.
    pub fn claims_of_other_clones(&self, plan: &PlanId) -> Result<BTreeMap<TaskId, ClaimNotice>, StoreError> {
        Ok(self.claims_of_other_clones_on([plan])?.remove(plan).unwrap_or_default())
    }

    /// Like [`Self::claims_of_other_clones`], for several plans. Reads one row of a store that shares nothing.
    pub(crate) fn claims_of_other_clones_on<'a>(
        &self,
        plans: impl IntoIterator<Item = &'a PlanId> + Clone,
    ) -> Result<BTreeMap<PlanId, BTreeMap<TaskId, ClaimNotice>>, StoreError> {
        self.plans().store().query(|read| {
            if rows::tag(read)?.is_none() {
                return Ok(BTreeMap::new());
            }
            let (now, term) = (read.now().as_micros(), u64::from(LEASE_SECONDS_DEFAULT) * 1_000_000);
            let mut found = BTreeMap::new();
            for plan in plans.clone() {
                let share = rows::share_of(read, plan)?.filter(|share| share.shared);
                let notices = share.map(|share| share.claims).unwrap_or_default();
                // The clock of the other clone may be ahead.
                let current =
                    notices.into_iter().filter(|notice| notice.at.as_micros().abs_diff(now) <= term);
                found.insert(plan.clone(), current.map(|notice| (notice.task.clone(), notice)).collect());
            }
            Ok(found)
        })
    }

    /// Whether the caller is offered the tasks of a plan. People are; agents and workers only once a person has trusted where
    /// the plan came from.
    pub fn is_offered(&self, by: &Caller, plan: &PlanId) -> Result<bool, StoreError> {
        match by.actor.kind {
            ActorKind::Agent | ActorKind::Worker => {
                Ok(!self.plans().store().query(|read| rows::is_withheld(read, plan))?)
            }
            ActorKind::Person | ActorKind::System => Ok(true),
        }
    }

    /// Refuses work on a plan that nobody but a person is offered.
    pub(crate) fn check_offer(&self, by: &Caller, plan: &PlanId) -> Result<(), ServiceError> {
        match self.is_offered(by, plan)? {
            true => Ok(()),
            false => Err(ServiceError::not_offered(&by.actor, plan)),
        }
    }

    /// Returns the first of these plans that agents are offered.
    pub fn first_offered(&self, query: &Query) -> Result<Option<PlanSummary>, StoreError> {
        let withheld = self.plans().store().query(rows::withheld)?;
        // One more than are withheld: one of them is offered, if there is one.
        let query = Query { limit: withheld.len() + 1, ..query.clone() };
        let is_offered = |head: &PlanSummary| withheld.iter().all(|(plan, _)| *plan != head.id);
        Ok(self.plans().heads(&query)?.items.into_iter().find(is_offered))
    }

    /// Returns the plans that are offered to nobody.
    pub(crate) fn not_offered(&self) -> Result<BTreeSet<PlanId>, ServiceError> {
        Ok(self.plans().store().query(rows::withheld)?.into_iter().map(|(plan, _)| plan).collect())
    }
}
