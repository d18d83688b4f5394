//! The names of events and the tasks they concern, by which readers filter. The stored events use the same names.

use crate::{Event, TaskId, TaskSpec};

impl Event {
    /// The names of all stored events, in the order of [`Event`].
    pub const KINDS: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// Returns the name of the event.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Returns the task that the event concerns, if it is exactly one.
    pub fn task(&self) -> Option<&TaskId> {
        match self.subject() {
            Subject::Plan => None,
            Subject::Task(task) => Some(task),
            Subject::Tasks(tasks) => only(tasks),
            Subject::NewTasks(tasks) => only(tasks).map(|task| &task.id),
        }
    }

    /// Whether the event concerns this task.
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
            | Self::PlanRestored { .. }
            | Self::PlanMerged { .. }
            | Self::ApprovalRequested { .. }
            | Self::PlanApproved { .. }
            | Self::StartRefused { .. }
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
            | Self::GateRecorded { task, .. }
            | Self::TaskSkipped { task, .. }
            | Self::TaskRefined { task, .. }
            | Self::DigestAttached { task, .. }
            | Self::TaskRolledBack { task, .. }
            | Self::OutputReceived { task, .. }
            | Self::OutputWithdrawn { task, .. }
            | Self::TaskHeld { task, .. }
            | Self::TaskUnheld { task }
            | Self::TaskCommented { task, .. }
            | Self::TaskLabeled { task, .. }
            | Self::TaskAssigned { task, .. } => Subject::Task(task),
        }
    }

    /// Whether the event can have consequences through the graph.
    pub fn may_have_consequences(&self) -> bool {
        !matches!(
            self,
            Self::PlanRevised { .. }
                | Self::PlanRestored { .. }
                | Self::StartRefused { .. }
                | Self::GateRecorded { .. }
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
                | Self::TaskCommented { .. }
                | Self::TaskLabeled { .. }
                | Self::TaskAssigned { .. }
        )
    }
}

/// The subject of an event.
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
