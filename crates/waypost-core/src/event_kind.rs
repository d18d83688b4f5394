//! What events are called, and which tasks they are about: the words by which readers choose. The same words stand in the
//! stored events.

use crate::{Event, TaskId, TaskSpec};

impl Event {
    /// The words for all events that are stored, in the order of [`Event`].
    pub const KINDS: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// The word for it.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The task that it is about, when it is about one.
    pub fn task(&self) -> Option<&TaskId> {
        match self.subject() {
            Subject::Plan => None,
            Subject::Task(task) => Some(task),
            Subject::Tasks(tasks) => only(tasks),
            Subject::NewTasks(tasks) => only(tasks).map(|task| &task.id),
        }
    }

    /// Whether this task is the one, or one of those, that it is about.
    pub fn is_about(&self, task: &TaskId) -> bool {
        match self.subject() {
            Subject::Plan => false,
            Subject::Task(named) => named == task,
            Subject::Tasks(tasks) => tasks.contains(task),
            Subject::NewTasks(tasks) => tasks.iter().any(|added| added.id == *task),
        }
    }

    fn subject(&self) -> Subject<'_> {
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
            | Self::PlanArchived { .. }
            | Self::PlanUnarchived {} => Subject::Plan,
            Self::TokensCharged { task, .. } => task.as_ref().map_or(Subject::Plan, Subject::Task),
            Self::TasksAdded { tasks, .. } => Subject::NewTasks(tasks),
            Self::TaskRevised { task } => Subject::Task(&task.id),
            Self::TasksRemoved { tasks }
            | Self::TasksReset { tasks }
            | Self::TasksCancelled { tasks, .. }
            | Self::TasksRetried { tasks } => Subject::Tasks(tasks),
            Self::TasksReordered { order, .. } => Subject::Tasks(order),
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
            | Self::OutputWithdrawn { task, .. } => Subject::Task(task),
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
                | Self::PlanArchived { .. }
                | Self::PlanUnarchived {}
        )
    }
}

/// What an event is about.
enum Subject<'a> {
    Plan,
    Task(&'a TaskId),
    Tasks(&'a [TaskId]),
    NewTasks(&'a [TaskSpec]),
}

fn only<T>(list: &[T]) -> Option<&T> {
    match list {
        [one] => Some(one),
        _ => None,
    }
}
