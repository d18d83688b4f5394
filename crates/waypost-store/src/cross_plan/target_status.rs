//! The status of a task in another plan that a task waits for, and its text. Reads nothing.

use waypost_core::{EffectiveStatus, ExternalTaskRef, Phase, PlanId};

/// The known status of a task in another plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetStatus {
    /// A plan contains the task.
    There {
        /// The id of the plan.
        plan: PlanId,
        /// The effective status of the task.
        standing: EffectiveStatus,
        /// The phase of the plan.
        phase: Phase,
        /// Whether the plan is archived.
        archived: bool,
        /// The worker that runs the task, or the reason for its status.
        more: Option<String>,
    },
    /// No plan has that id yet.
    NoSuchPlan(PlanId),
    /// The plan was purged. Ids are never reused.
    Purged(PlanId),
    /// The reference names the plan of the waiting task as if it were another plan.
    OwnPlan(PlanId),
    /// The plan does not belong to the agent that the reference names.
    OwnedBy {
        /// The id of the plan.
        plan: PlanId,
        /// The agent that owns the plan; empty when the plan has no owner.
        owner: String,
    },
    /// The plan does not contain the task.
    NoSuchTask {
        /// The id of the plan.
        plan: PlanId,
        /// The phase of the plan.
        phase: Phase,
        /// Whether the plan is archived.
        archived: bool,
    },
    /// The agent has no plan yet.
    NoPlanOf(String),
    /// No plan of the agent contains the task yet.
    NoTaskOf(String),
    /// No open plan of the agent contains the task; one that has ended does, and counts only when it is named.
    OnlyInEnded {
        /// The agent.
        agent: String,
        /// The plan that has ended or is archived.
        plan: PlanId,
    },
    /// The text cannot be the name of an agent.
    NoName(String),
}

impl TargetStatus {
    /// Returns whether the task exists.
    pub fn is_there(&self) -> bool {
        matches!(self, Self::There { .. })
    }

    /// Returns whether the task can never exist as things are. A write that adds such a wait is refused.
    pub fn can_never_be(&self) -> bool {
        match self {
            Self::Purged(_) | Self::OwnPlan(_) | Self::OwnedBy { .. } | Self::NoName(_) => true,
            Self::NoSuchTask { phase, .. } => phase.is_finished(),
            Self::There { .. }
            | Self::NoSuchPlan(_)
            | Self::NoPlanOf(_)
            | Self::NoTaskOf(_)
            | Self::OnlyInEnded { .. } => false,
        }
    }

    /// Returns the status after the name of the task: `lib/build (running)`, `lib/build: there is no plan …`.
    pub fn named(&self, there: &ExternalTaskRef) -> String {
        let (name, words) = (there.key(), self.describe(there));
        if self.is_there() { format!("{name} ({words})") } else { format!("{name}: {words}") }
    }

    /// Returns the status as text. It may contain text of a plan.
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
            // A person can assign a plan to any name, but an agent that calls never has a colon in its name.
            Self::NoPlanOf(agent) if agent.contains(':') => {
                format!("agent {agent} has no plan so far, and no agent that calls has a colon in its name")
            }
            Self::NoPlanOf(agent) => format!("agent {agent} has no plan so far"),
            Self::NoTaskOf(agent) => format!("no plan of agent {agent} has a task {task} so far"),
            Self::OnlyInEnded { agent, plan } => format!(
                "no open plan of agent {agent} has a task {task} so far; plan {plan} has one and is over, and counts only when it is named"
            ),
            Self::NoName(agent) => format!("{agent:?} names no agent"),
        }
    }
}
