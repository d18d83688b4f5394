//! What events are called, and which tasks they are about: the words by which readers choose. The same words stand in the
//! stored events.

use crate::{Event, TaskId};

impl Event {
    /// The words for all events that are stored, in the order of [`Event`].
    pub const KINDS: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// The word for it.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The task that it is about, when it is about one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::PlanCreated { .. }
            | Self::PlanRevised { .. }
            | Self::ApprovalRequested { .. }
            | Self::PlanApproved { .. }
            | Self::PlanRejected { .. }
            | Self::ApprovalVoided {}
            | Self::PlanActivated {}
            | Self::PlanPaused { .. }
            | Self::PlanResumed { .. }
            | Self::PlanFinished { .. }
            | Self::PlanArchived {}
            | Self::PlanUnarchived {} => None,
            Self::TokensCharged { task, .. } => task.as_ref(),
            Self::TasksAdded { tasks, .. } => only(tasks).map(|task| &task.id),
            Self::TaskRevised { task } => Some(&task.id),
            Self::TasksRemoved { tasks }
            | Self::TasksReset { tasks }
            | Self::TasksCancelled { tasks, .. }
            | Self::TasksRetried { tasks } => only(tasks),
            Self::TasksReordered { order, .. } => only(order),
            Self::TaskMoved { task, .. }
            | Self::TaskQueued { task, .. }
            | Self::TaskStarted { task, .. }
            | Self::TaskProgressed { task, .. }
            | Self::TaskDone { task, .. }
            | Self::TaskReported { task, .. }
            | Self::TaskFailed { task, .. }
            | Self::TaskReleased { task, .. }
            | Self::QuestionAsked { task, .. }
            | Self::QuestionAnswered { task, .. }
            | Self::TaskSkipped { task, .. }
            | Self::TaskRefined { task, .. }
            | Self::DigestAttached { task, .. }
            | Self::TaskRolledBack { task, .. }
            | Self::OutputReceived { task, .. }
            | Self::OutputWithdrawn { task, .. } => Some(task),
        }
    }

    /// Whether this task is the one, or one of those, that it is about.
    pub fn is_about(&self, task: &TaskId) -> bool {
        match self {
            Self::TasksAdded { tasks, .. } => tasks.iter().any(|added| added.id == *task),
            Self::TasksRemoved { tasks }
            | Self::TasksReset { tasks }
            | Self::TasksCancelled { tasks, .. }
            | Self::TasksRetried { tasks } => tasks.contains(task),
            Self::TasksReordered { order, .. } => order.contains(task),
            other => other.task() == Some(task),
        }
    }

    /// Whether anything can follow from it by the graph.
    pub fn may_have_consequences(&self) -> bool {
        !matches!(
            self,
            Self::PlanRevised { .. }
                | Self::TasksReordered { .. }
                | Self::TaskQueued { .. }
                | Self::TaskStarted { .. }
                | Self::TaskProgressed { .. }
                | Self::TaskRefined { .. }
                | Self::DigestAttached { .. }
                | Self::TokensCharged { .. }
                | Self::TaskRolledBack { .. }
                | Self::PlanArchived {}
                | Self::PlanUnarchived {}
        )
    }
}

fn only<T>(list: &[T]) -> Option<&T> {
    match list {
        [one] => Some(one),
        _ => None,
    }
}
