//! The plans that dependencies on tasks of agents (`agent:task`) mean when they are written. A dependency on a plan that
//! has started names it from then on: a task of the same id in another plan of that agent is not what was asked for.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{Dependency, ExternalTaskRef, Phase, PlanId, TaskSpec};
use waypost_store::TargetStatus;

use crate::error::ServiceError;
use crate::service::Service;

/// The started plans that references without a plan resolve to.
#[derive(Default)]
pub(crate) struct AgentReferences(BTreeMap<ExternalTaskRef, PlanId>);

impl AgentReferences {
    /// Returns the reference with the plan that it means. A task that already waits for such a task of the agent goes on
    /// waiting for the same plan.
    pub(crate) fn with_plan(&self, there: ExternalTaskRef, waiting: Option<&TaskSpec>) -> ExternalTaskRef {
        if there.plan.is_some() {
            return there;
        }
        let is_same = |on: &&ExternalTaskRef| (&on.agent, &on.task) == (&there.agent, &there.task);
        let known =
            waiting.and_then(|spec| spec.depends_on.iter().filter_map(Dependency::external).find(is_same));
        match known {
            Some(known) => known.clone(),
            None => ExternalTaskRef { plan: self.0.get(&there).cloned(), ..there },
        }
    }
}

impl Service {
    /// Resolves references of tasks of `plan`.
    pub(crate) fn agent_references(
        &self,
        plan: &PlanId,
        references: BTreeSet<ExternalTaskRef>,
    ) -> Result<AgentReferences, ServiceError> {
        let mut found = AgentReferences::default();
        for there in references.into_iter().filter(|there| there.plan.is_none()) {
            let TargetStatus::There { plan, phase, archived: false, .. } =
                self.plans().target_status(plan, None, &there)?
            else {
                continue;
            };
            // A plan that has not started may still be replaced by another one of its agent.
            if matches!(phase, Phase::Active | Phase::Paused) {
                found.0.insert(there, plan);
            }
        }
        Ok(found)
    }
}
