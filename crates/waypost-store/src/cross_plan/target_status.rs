//! The status of a task in another plan that a task waits for, and its text. Reads nothing.

use waypost_core::{EffectiveStatus, ExternalTaskRef, Phase, PlanId};

/// What is known of a task elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetStatus {
    /// A plan has it.
    There {
        /// Which plan.
        plan: PlanId,
        /// Where the task stands.
        standing: EffectiveStatus,
        /// Where its plan stands.
        phase: Phase,
        /// Whether the plan is archived.
        archived: bool,
        /// Who works on it, or why it stands as it does.
        more: Option<String>,
    },
    /// No plan has that id so far.
    NoSuchPlan(PlanId),
    /// The plan was purged, and ids are never used twice.
    Purged(PlanId),
    /// The plan itself is named, as if it were another.
    OwnPlan(PlanId),
    /// The plan belongs to somebody else than the agent that is named.
    OwnedBy {
        /// Which plan.
        plan: PlanId,
        /// Whose it is; empty when it is nobody's.
        owner: String,
    },
    /// The plan has no such task.
    NoSuchTask {
        /// Which plan.
        plan: PlanId,
        /// Where it stands.
        phase: Phase,
        /// Whether it is archived.
        archived: bool,
    },
    /// The agent has no plan so far.
    NoPlanOf(String),
    /// No plan of the agent has such a task so far.
    NoTaskOf(String),
    /// A text that no agent can be called by.
    NoName(String),
}

impl TargetStatus {
    /// Whether there is such a task.
    pub fn is_there(&self) -> bool {
        matches!(self, Self::There { .. })
    }

    /// Whether there can never be one, as things stand.
    pub fn can_never_be(&self) -> bool {
        match self {
            Self::Purged(_) | Self::OwnPlan(_) | Self::OwnedBy { .. } | Self::NoName(_) => true,
            Self::NoSuchTask { phase, .. } => phase.is_finished(),
            Self::There { .. } | Self::NoSuchPlan(_) | Self::NoPlanOf(_) | Self::NoTaskOf(_) => false,
        }
    }

    /// What is known, behind the name of what it is known of: `lib/build (running)`, `lib/build: there is no plan …`.
    pub fn named(&self, there: &ExternalTaskRef) -> String {
        let (name, words) = (there.key(), self.describe(there));
        if self.is_there() { format!("{name} ({words})") } else { format!("{name}: {words}") }
    }

    /// What is known, in words. May hold text of a plan.
    pub fn describe(&self, there: &ExternalTaskRef) -> String {
        let task = &there.task;
        match self {
            Self::There { standing, phase, archived, more, .. } => {
                let word = standing.as_str();
                match (archived, phase, more) {
                    (true, _, _) => format!("{word}; its plan is archived"),
                    (false, Phase::Draft | Phase::AwaitingApproval, _) => {
                        format!("{word}; its plan is not started")
                    }
                    (false, Phase::Paused, _) => format!("{word}; its plan is paused"),
                    (false, _, Some(more))
                        if matches!(standing, EffectiveStatus::Queued | EffectiveStatus::Running) =>
                    {
                        format!("{word}, {more}")
                    }
                    (false, _, Some(more)) => format!("{word}; {more}"),
                    (false, _, None) => word.to_owned(),
                }
            }
            Self::NoSuchPlan(plan) => format!("there is no plan {plan} so far"),
            Self::Purged(plan) => format!("plan {plan} was purged"),
            Self::OwnPlan(plan) => format!("{plan} is its own plan; a task of it is named by its id alone"),
            Self::OwnedBy { plan, owner } => {
                let whose = if owner.is_empty() { "to no agent" } else { &format!("to {owner}") };
                let agent = there.agent.as_deref().unwrap_or_default();
                format!("plan {plan} belongs {whose}, not to {agent}")
            }
            Self::NoSuchTask { plan, phase, archived } => match (phase.is_finished(), archived) {
                (true, _) => format!("plan {plan} has ended, and has no task {task}"),
                (false, true) => format!("plan {plan} was archived, and has no task {task}"),
                (false, false) => format!("plan {plan} has no task {task} so far"),
            },
            // A person can give a plan to anybody, but no agent comes in under such a name.
            Self::NoPlanOf(agent) if agent.contains(':') => {
                format!("agent {agent} has no plan so far, and no agent that calls has a colon in its name")
            }
            Self::NoPlanOf(agent) => format!("agent {agent} has no plan so far"),
            Self::NoTaskOf(agent) => format!("no plan of agent {agent} has a task {task} so far"),
            Self::NoName(agent) => format!("{agent:?} names no agent"),
        }
    }
}
