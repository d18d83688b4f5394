//! Edits of a plan: the small operations that all front ends share. Ids of new tasks are chosen inside the transaction.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::{
    Command, Json, Outcome, Phase, Plan, PlanChanges, PlanId, Position, Problem, ProblemKind,
    ProblemLocation, Refusal, Status, TaskChanges, TaskId, TaskSpec,
};

use crate::caller::Caller;
use crate::error::{ServiceError, Subject};
use crate::report::LEASE_SECONDS_DEFAULT;
use crate::service::{Guard, Service, Terms, WriteResult};

/// One small change of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum EditOp {
    /// Add tasks together, so that they may depend on each other in any order.
    AddTasks {
        /// The tasks to add.
        tasks: Vec<NewTask>,
        /// The position of the first task among its siblings; the others follow. With a position beside a sibling,
        /// tasks that name no parent get the sibling's parent.
        position: Position,
    },
    /// Change the author's part of a task.
    ReviseTask {
        /// The id of the task.
        task: TaskId,
        /// The fields to change.
        changes: Box<TaskChanges>,
    },
    /// Remove a task with all its subtasks.
    RemoveTask {
        /// The id of the task.
        task: TaskId,
        /// Also remove dependencies on the task; otherwise they make the removal fail.
        drop_dependencies: bool,
    },
    /// Move a task to another parent or another position among its siblings.
    MoveTask {
        /// The id of the task.
        task: TaskId,
        /// The new parent; `Some(None)` makes the task a root. Without one, a position beside a sibling implies the
        /// sibling's parent.
        parent: Option<Option<TaskId>>,
        /// The new position among the siblings.
        position: Position,
    },
    /// Change the author's part of the plan.
    RevisePlan(Box<PlanChanges>),
    /// Set a task's status by hand.
    SetStatus {
        /// The id of the task.
        task: TaskId,
        /// The new status.
        status: StatusChange,
    },
    /// Activate, pause, resume or end the plan, or request its approval.
    SetPhase {
        /// The new phase.
        phase: Phase,
        /// The reason for a pause, the message of an approval request, or the summary of an ended plan.
        summary: String,
    },
    /// Archive the plan, or restore it from the archive.
    SetArchived(bool),
}

/// A task to add.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTask {
    /// The id of the task; without one it gets the next free id.
    pub id: Option<TaskId>,
    /// The author's part of the task. Its `id` field is ignored.
    pub spec: Box<TaskSpec>,
    /// The prefix of a generated id, instead of `t`.
    pub prefix: Option<&'static str>,
}

impl NewTask {
    /// A task with the id that its author chose.
    pub fn named(spec: TaskSpec) -> Self {
        Self { id: Some(spec.id.clone()), spec: Box::new(spec), prefix: None }
    }

    /// A task that gets the next free id.
    pub fn unnamed(spec: TaskSpec) -> Self {
        Self { id: None, spec: Box::new(spec), prefix: None }
    }

    /// A task that gets the next free id with this prefix.
    pub fn numbered(prefix: &'static str, spec: TaskSpec) -> Self {
        Self { id: None, spec: Box::new(spec), prefix: Some(prefix) }
    }
}

/// A status set by hand, with its details.
#[derive(Clone, Debug, PartialEq)]
pub enum StatusChange {
    /// To be done: releases a running task, and reopens a finished one.
    Pending {
        /// Why a running task is released.
        reason: String,
    },
    /// The caller works on it. It is leased for the default time.
    Running,
    /// The task is done.
    Done {
        /// The result as text.
        result: Option<String>,
        /// The output for the tasks that depend on it.
        output: Option<Json>,
    },
    /// The task failed.
    Failed {
        /// Why it failed.
        error: String,
    },
    /// The task is not necessary.
    Skipped {
        /// Why it was skipped.
        reason: Option<String>,
    },
    /// The task is no longer wanted.
    Cancelled {
        /// Why it was cancelled.
        reason: String,
    },
}

impl Service {
    /// Edits a plan: all operations in one version, or none.
    pub fn edit(&self, by: &Caller, plan: &PlanId, ops: Vec<EditOp>, guard: Guard) -> WriteResult {
        let worker = by.worker.clone();
        // A task set to running is leased like a claimed one.
        let terms = Terms { guard, lease_seconds: Some(LEASE_SECONDS_DEFAULT), ..Terms::default() };
        let (mut reply, added) = self.write_with(by, plan, terms, move |plan| {
            let mut edit = Edit::default();
            for op in &ops {
                edit.push(plan, op, &worker)?;
            }
            Ok((edit.commands, edit.added))
        })?;
        if reply.changed {
            reply.added = added;
        }
        Ok(reply)
    }
}

#[derive(Default)]
struct Edit {
    commands: Vec<Command>,
    added: Vec<TaskId>,
    /// Ids that earlier operations of the same edit have taken.
    taken: BTreeSet<TaskId>,
    /// Parents of the tasks that earlier operations of the same edit added or moved.
    parents: BTreeMap<TaskId, Option<TaskId>>,
}

impl Edit {
    fn push(&mut self, plan: &Plan, op: &EditOp, worker: &str) -> Result<(), ServiceError> {
        let command = match op.clone() {
            EditOp::AddTasks { tasks, position } => self.add(plan, tasks, position)?,
            EditOp::ReviseTask { task, changes } => Command::ReviseTask { task, changes },
            EditOp::RemoveTask { task, drop_dependencies } => {
                Command::RemoveTask { task, detach: drop_dependencies }
            }
            EditOp::MoveTask { task, parent, position } => {
                let parent = parent.or_else(|| sibling(&position).map(|beside| self.parent_of(plan, beside)));
                if let Some(parent) = &parent {
                    self.parents.insert(task.clone(), parent.clone());
                }
                Command::MoveTask { task, parent, place: position }
            }
            EditOp::RevisePlan(changes) => Command::RevisePlan(changes),
            EditOp::SetStatus { task, status } => set_status(plan, task, status, worker),
            EditOp::SetPhase { phase, summary } => set_phase(plan, phase, summary)?,
            EditOp::SetArchived(true) => Command::Archive,
            EditOp::SetArchived(false) => Command::Unarchive,
        };
        self.commands.push(command);
        Ok(())
    }

    fn add(&mut self, plan: &Plan, tasks: Vec<NewTask>, position: Position) -> Result<Command, ServiceError> {
        let blank =
            tasks.iter().position(|task| task.id.is_none() && task.spec.description.trim().is_empty());
        if let Some(at) = blank {
            let (place, field) = (ProblemLocation::TaskNumber(at + 1), "description".to_owned());
            let problems = vec![Problem { place, wrong: ProblemKind::Missing { field } }];
            return Err(ServiceError::Invalid { subject: Subject::Write, problems });
        }
        self.taken.extend(tasks.iter().filter_map(|task| task.id.clone()));
        let implied = sibling(&position).and_then(|beside| self.parent_of(plan, beside));
        let mut free = plan.free_task_ids();
        let mut specs = Vec::with_capacity(tasks.len());
        for NewTask { id, mut spec, prefix } in tasks {
            let is_free = |id: &TaskId| !self.taken.contains(id);
            let found = match (id, prefix) {
                (Some(id), _) => Some(id),
                (None, None) => free.find(is_free),
                (None, Some(prefix)) => plan.free_numbered_ids(prefix).find(is_free),
            };
            spec.id = found.unwrap_or_else(|| spec.id.clone());
            self.taken.insert(spec.id.clone());
            self.added.push(spec.id.clone());
            if spec.parent.is_none() {
                spec.parent.clone_from(&implied);
            }
            self.parents.insert(spec.id.clone(), spec.parent.clone());
            specs.push(*spec);
        }
        Ok(Command::AddTasks { tasks: specs, place: position })
    }

    /// Returns the parent of a task after the operations so far.
    fn parent_of(&self, plan: &Plan, task: &TaskId) -> Option<TaskId> {
        self.parents.get(task).cloned().unwrap_or_else(|| plan.task(task.as_str())?.spec.parent.clone())
    }
}

fn sibling(position: &Position) -> Option<&TaskId> {
    match position {
        Position::First | Position::Last => None,
        Position::Before(beside) | Position::After(beside) => Some(beside),
    }
}

fn set_status(plan: &Plan, task: TaskId, status: StatusChange, worker: &str) -> Command {
    let is_running = plan.task(task.as_str()).is_some_and(|task| task.state.status == Status::Running);
    let finish = |task, outcome| Command::FinishTask { task, attempt: None, outcome, retry: None };
    match status {
        StatusChange::Pending { reason } if is_running => {
            Command::ReleaseTask { task, attempt: None, reason }
        }
        StatusChange::Pending { .. } => Command::RetryTask { task },
        StatusChange::Running => Command::StartTask { task, worker: worker.to_owned() },
        StatusChange::Done { result, output } => {
            finish(task, Outcome::Done { result, output, evidence: None })
        }
        StatusChange::Failed { error } => finish(task, Outcome::Failed { error, evidence: None }),
        StatusChange::Skipped { reason } => finish(task, Outcome::Skipped { reason }),
        StatusChange::Cancelled { reason } => Command::CancelTask { task, reason },
    }
}

fn set_phase(plan: &Plan, phase: Phase, summary: String) -> Result<Command, ServiceError> {
    match phase {
        Phase::Paused => Ok(Command::Pause { reason: summary }),
        Phase::Active if plan.state().phase == Phase::Paused => Ok(Command::Resume),
        Phase::Active => Ok(Command::Activate),
        Phase::AwaitingApproval => Ok(Command::RequestApproval { message: summary }),
        Phase::Completed | Phase::Failed | Phase::Cancelled => Ok(Command::FinishPlan { phase, summary }),
        Phase::Draft => {
            Err(Refusal::WrongPhase { phase: plan.state().phase, wanted: "made a draft again" }.into())
        }
    }
}
