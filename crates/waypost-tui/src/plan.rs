//! The key of a plan, and a plan as the editor loads it.

use std::collections::HashSet;

use waypost_core::{Draft, EffectiveStatus, Plan, PlanId, TaskId};
use waypost_service::PlanStatus;
use waypost_store::PlanSummary;

/// A plan, and the store that contains it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanKey {
    /// Index into [`crate::screen::Settings::stores`].
    pub store: usize,
    pub id: PlanId,
}

/// A plan as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedPlan {
    pub summary: PlanSummary,
    /// What needs somebody most.
    pub status: PlanStatus,
    /// Who works on it now: the workers, agents and people that run its tasks.
    pub workers: Vec<String>,
    /// Whether it has a text to read.
    pub has_text: bool,
}

/// A plan as the editor loads it.
#[derive(Clone, Debug)]
pub struct LoadedPlan {
    pub draft: Draft,
    /// The status of each task of the draft.
    pub standings: Vec<EffectiveStatus>,
    /// The tasks that wait for a person to do them.
    pub for_people: HashSet<TaskId>,
    pub awaits_approval: bool,
    /// The number of the next free id (`t12`). Ids of removed tasks are not reused.
    pub next_number: u64,
    /// The executors and queues of the configuration, for the pickers.
    pub executors: Vec<String>,
    pub queues: Vec<String>,
    /// The number of things that clones disagree about.
    pub questions: usize,
}

impl LoadedPlan {
    pub fn of(plan: &Plan) -> Self {
        let started = plan.as_started();
        let standing = |id: &str| started.effective_status(id).unwrap_or(EffectiveStatus::Blocked);
        Self {
            draft: plan.to_draft(),
            standings: plan.tasks().map(|(task, _)| standing(task.spec.id.as_str())).collect(),
            for_people: HashSet::new(),
            awaits_approval: plan.state().approval_required && plan.state().approval.is_none(),
            next_number: plan.free_task_ids().next().as_ref().and_then(task_number).unwrap_or(1),
            executors: Vec::new(),
            queues: Vec::new(),
            questions: 0,
        }
    }
}

/// The number in an id such as `t12`.
pub fn task_number(id: &TaskId) -> Option<u64> {
    id.as_str().strip_prefix('t')?.parse().ok()
}
