//! Plans that came from a remote which nobody has trusted: they can be read, and agents are offered none of them. Titles
//! and notes are prompts.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use waypost_core::{ActorKind, PlanId, TaskId, Timestamp};
use waypost_operation::{Claim, CloneTag, Merged};
use waypost_store::{PlanSummary, Query, StoreError};

use super::rows;
use crate::caller::Caller;
use crate::error::{ServiceError, WORKING_ON_UNTRUSTED};
use crate::hint::{PersonAct, PersonVerb};
use crate::report::LEASE_SECONDS_DEFAULT;
use crate::service::Service;

/// Number of notices that are kept of a plan.
const NOTICES_MAX: usize = 500;

/// Somebody works on a task in another clone. It is a notice and no lease: others may take the task, and are offered it last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimNotice {
    /// The task.
    pub task: TaskId,
    /// Who works on it.
    pub worker: String,
    /// The tag of the clone.
    pub from: CloneTag,
    /// When that began.
    pub at: Timestamp,
}

impl std::fmt::Display for ClaimNotice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { worker, from, at, .. } = self;
        // The session of an agent means nothing in another clone.
        let worker = worker.split('#').next().unwrap_or_default();
        write!(
            formatter,
            "claimed by {} in clone {from} at {}",
            waypost_text::reveal(worker),
            at.to_the_second()
        )
    }
}

/// Returns who works on the tasks of a merged plan in clones other than this one, the latest notices.
pub(super) fn notices(merged: &Merged, tag: &CloneTag) -> Vec<ClaimNotice> {
    let elsewhere = merged.claims.iter().filter(|claim| claim.from != *tag);
    let mut found: Vec<ClaimNotice> = elsewhere
        .map(|Claim { task, worker, from, at, .. }| {
            let (task, worker) = (task.clone(), worker.clone());
            ClaimNotice { task, worker, from: from.clone(), at: *at }
        })
        .collect();
    found.sort_by_key(|notice| std::cmp::Reverse(notice.at));
    found.truncate(NOTICES_MAX);
    found
}

impl Service {
    /// Returns who works on tasks of a plan in other clones, by task. A notice that is older than a lease says nothing.
    pub fn claims_elsewhere(&self, plan: &PlanId) -> Result<BTreeMap<TaskId, ClaimNotice>, StoreError> {
        let (share, now) =
            self.plans().store().query(|read| Ok((rows::share_of(read, plan)?, read.now())))?;
        let notices = share.filter(|share| share.shared).map(|share| share.claims).unwrap_or_default();
        let oldest = now.as_micros() - i64::from(LEASE_SECONDS_DEFAULT) * 1_000_000;
        let current = notices.into_iter().filter(|notice| notice.at.as_micros() >= oldest);
        Ok(current.map(|notice| (notice.task.clone(), notice)).collect())
    }

    /// Refuses work on a plan that nobody but a person is offered.
    pub(crate) fn check_offer(&self, by: &Caller, plan: &PlanId) -> Result<(), ServiceError> {
        match by.actor.kind {
            ActorKind::Agent | ActorKind::Worker => {}
            ActorKind::Person | ActorKind::System => return Ok(()),
        }
        match self.plans().store().query(|read| rows::is_withheld(read, plan))? {
            false => Ok(()),
            true => {
                let act = PersonAct::on_plan(PersonVerb::Start, plan);
                Err(ServiceError::NeedsPerson { what: WORKING_ON_UNTRUSTED, by: by.actor.clone(), act })
            }
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
