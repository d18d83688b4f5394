//! What events are called, and which tasks they are about: the words by which readers choose. The same words stand in the
//! stored events.

use crate::{Event, TaskId, TaskSpec};

impl Event {
    /// The words for all events that are stored, in the order of [`Event`].
    pub const KINDS: [&'static str; 36] = [
        "plan_created",
        "plan_revised",
        "tasks_added",
        "task_revised",
        "tasks_removed",
        "task_moved",
        "tasks_reordered",
        "tasks_reset",
        "approval_requested",
        "plan_approved",
        "plan_rejected",
        "approval_voided",
        "plan_activated",
        "plan_paused",
        "plan_resumed",
        "plan_finished",
        "plan_archived",
        "plan_unarchived",
        "task_queued",
        "task_started",
        "task_progressed",
        "task_done",
        "task_reported",
        "task_failed",
        "task_released",
        "question_asked",
        "question_answered",
        "task_skipped",
        "tasks_cancelled",
        "tasks_retried",
        "task_refined",
        "digest_attached",
        "tokens_charged",
        "task_rolled_back",
        "output_received",
        "output_withdrawn",
    ];

    /// The word for it.
    pub fn kind(&self) -> &'static str {
        let place = match self {
            Self::PlanCreated { .. } => 0,
            Self::PlanRevised { .. } => 1,
            Self::TasksAdded { .. } => 2,
            Self::TaskRevised { .. } => 3,
            Self::TasksRemoved { .. } => 4,
            Self::TaskMoved { .. } => 5,
            Self::TasksReordered { .. } => 6,
            Self::TasksReset { .. } => 7,
            Self::ApprovalRequested { .. } => 8,
            Self::PlanApproved { .. } => 9,
            Self::PlanRejected { .. } => 10,
            Self::ApprovalVoided {} => 11,
            Self::PlanActivated {} => 12,
            Self::PlanPaused { .. } => 13,
            Self::PlanResumed { .. } => 14,
            Self::PlanFinished { .. } => 15,
            Self::PlanArchived {} => 16,
            Self::PlanUnarchived {} => 17,
            Self::TaskQueued { .. } => 18,
            Self::TaskStarted { .. } => 19,
            Self::TaskProgressed { .. } => 20,
            Self::TaskDone { .. } => 21,
            Self::TaskReported { .. } => 22,
            Self::TaskFailed { .. } => 23,
            Self::TaskReleased { .. } => 24,
            Self::QuestionAsked { .. } => 25,
            Self::QuestionAnswered { .. } => 26,
            Self::TaskSkipped { .. } => 27,
            Self::TasksCancelled { .. } => 28,
            Self::TasksRetried { .. } => 29,
            Self::TaskRefined { .. } => 30,
            Self::DigestAttached { .. } => 31,
            Self::TokensCharged { .. } => 32,
            Self::TaskRolledBack { .. } => 33,
            Self::OutputReceived { .. } => 34,
            Self::OutputWithdrawn { .. } => 35,
        };
        Self::KINDS[place]
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
            | Self::PlanArchived {}
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
                | Self::PlanArchived {}
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
