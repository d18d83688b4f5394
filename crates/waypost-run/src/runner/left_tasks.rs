//! Plans and tasks that a worker of queues leaves to others because no executor works on them here: each is warned about
//! once. Selects and starts nothing.

use std::collections::BTreeSet;

use waypost_config::Config;
use waypost_core::{Phase, Plan, PlanId, TaskId};

use super::remark::RunWarning;

/// Tasks of a plan that are looked at.
const TASKS_MAX: usize = 1_000;
/// Maximum number of plans and of executors that are warned about.
const WARNED_MAX: usize = 10_000;

/// What was noticed, and what was warned about.
#[derive(Debug)]
pub(super) struct LeftTasks {
    /// Whether the worker takes tasks of all executors that it knows. One that is told which leaves others on purpose.
    takes_all: bool,
    plans: BTreeSet<PlanId>,
    executors: BTreeSet<String>,
    new_plans: Vec<PlanId>,
    new_executors: Vec<(String, PlanId, TaskId)>,
}

impl LeftTasks {
    pub(super) fn new(takes_all: bool) -> Self {
        Self {
            takes_all,
            plans: BTreeSet::new(),
            executors: BTreeSet::new(),
            new_plans: Vec::new(),
            new_executors: Vec::new(),
        }
    }

    /// Notices what of an active plan no executor works on here.
    pub(super) fn notice(&mut self, plan: &Plan, config: &Config) {
        if plan.state().phase != Phase::Active || plan.state().archived {
            return;
        }
        let is_known = self.plans.contains(plan.id()) || self.plans.len() >= WARNED_MAX;
        if !is_known && !plan.has_machine_work() {
            self.plans.insert(plan.id().clone());
            self.new_plans.push(plan.id().clone());
            return;
        }
        if !self.takes_all {
            return;
        }
        for (task, _) in plan.tasks().take(TASKS_MAX).filter(|(task, _)| !task.state.status.is_finished()) {
            let works = task.spec.work.iter().chain(&task.spec.check);
            for name in works.map(|work| &work.executor).filter(|name| !config.executors.contains_key(*name))
            {
                if self.executors.len() < WARNED_MAX && self.executors.insert(name.clone()) {
                    self.new_executors.push((name.clone(), plan.id().clone(), task.spec.id.clone()));
                }
            }
        }
    }

    /// Returns the warnings about what was noticed since the last call.
    pub(super) fn warnings(&mut self) -> Vec<RunWarning> {
        let plans = std::mem::take(&mut self.new_plans);
        let without = (!plans.is_empty()).then_some(RunWarning::NoExecutor { plans });
        let unknown = std::mem::take(&mut self.new_executors).into_iter();
        let unknown =
            unknown.map(|(executor, plan, task)| RunWarning::UnknownExecutor { executor, plan, task });
        without.into_iter().chain(unknown).collect()
    }
}
