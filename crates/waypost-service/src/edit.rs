//! Edits of a plan: the small operations that all front ends share. Ids of new tasks are chosen inside the transaction.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use waypost_core::{
    Command, Dependency, ExternalTaskRef, Json, Outcome, Phase, Plan, PlanChanges, PlanId, Position, Problem,
    ProblemKind, ProblemLocation, Refusal, TaskChanges, TaskId, TaskSpec, Timestamp,
};

use crate::agent_references::AgentReferences;
use crate::caller::Caller;
use crate::error::{ServiceError, Subject, WrongOperation};
use crate::false_done::check_false_done;
use crate::report::{LEASE_SECONDS_DEFAULT, holder_of};
use crate::service::{Guard, Service, Terms, WriteResult, resolve_task};

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
        /// Also if another session of the same agent holds the task.
        take_over: bool,
    },
    /// Hold a task, or all tasks below it: they do not start until the hold is lifted.
    HoldTask {
        /// The id of the task.
        task: TaskId,
        /// Why it is held; may be empty.
        reason: String,
    },
    /// Lift the hold of a task.
    UnholdTask {
        /// The id of the task.
        task: TaskId,
    },
    /// Comment on a task.
    CommentTask {
        /// The id of the task.
        task: TaskId,
        /// The text.
        text: String,
    },
    /// Change the labels of a task.
    LabelTask {
        /// The id of the task.
        task: TaskId,
        /// All its labels; `None` begins with those that it has.
        labels: Option<Vec<String>>,
        /// Labels to add.
        add: Vec<String>,
        /// Labels to remove.
        remove: Vec<String>,
    },
    /// Set who is to take care of a task.
    AssignTask {
        /// The id of the task.
        task: TaskId,
        /// A person or agent; empty for nobody.
        assignee: String,
    },
    /// Pause, resume or end the plan, or request its approval.
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
        /// Whether the caller is sure, although the result reads as if it were not done.
        sure: bool,
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
        let ops = Arc::new(ops);
        let edited = self.retry_after_expiry(plan, || self.try_edit(by, plan, &ops, guard));
        edited.or_else(|error| Err(self.with_other_operations(by, plan, &ops, error)?))
    }

    /// Adds the other operations that are wrong to the error about the first, so that the caller can fix all of them at once.
    fn with_other_operations(
        &self,
        by: &Caller,
        plan: &PlanId,
        ops: &[EditOp],
        error: ServiceError,
    ) -> Result<ServiceError, ServiceError> {
        let is_of_one = matches!(
            &error,
            ServiceError::Refused(_) | ServiceError::Invalid { .. } | ServiceError::Ambiguous { .. }
        );
        if ops.len() < 2 || !is_of_one {
            return Ok(error);
        }
        let references = self.agent_references(plan, ops.iter().flat_map(references).collect())?;
        let wrong = self.read(plan, |plan| wrong_operations(plan, by, &references, ops))?;
        // The first error may be one of the caller's rights, or of the configuration; it stands alone.
        let is_known = wrong.iter().any(|one| one.error.to_string() == error.to_string());
        Ok(if wrong.len() > 1 && is_known { ServiceError::WrongOperations(wrong) } else { error })
    }

    fn try_edit(&self, by: &Caller, plan: &PlanId, ops: &Arc<Vec<EditOp>>, guard: Guard) -> WriteResult {
        let names = |op: &EditOp| match op {
            EditOp::AddTasks { tasks, .. } => tasks.iter().any(|task| task.id.is_none()),
            EditOp::ReviseTask { .. }
            | EditOp::RemoveTask { .. }
            | EditOp::MoveTask { .. }
            | EditOp::RevisePlan(_)
            | EditOp::SetStatus { .. }
            | EditOp::HoldTask { .. }
            | EditOp::UnholdTask { .. }
            | EditOp::CommentTask { .. }
            | EditOp::LabelTask { .. }
            | EditOp::AssignTask { .. }
            | EditOp::SetPhase { .. }
            | EditOp::SetArchived(_) => false,
        };
        let tag = if ops.iter().any(names) { self.shared_tag(plan)? } else { None };
        let references = self.agent_references(plan, ops.iter().flat_map(references).collect())?;
        let (caller, ops) = (by.clone(), Arc::clone(ops));
        // A task set to running is leased like a claimed one.
        let terms = Terms { guard, lease_seconds: Some(LEASE_SECONDS_DEFAULT), ..Terms::default() };
        let (mut reply, added) = self
            .write_with(by, plan, terms, move |plan| {
                let mut edit = Edit { tag: tag.as_deref(), ..Edit::new(plan, &caller, &references) };
                for op in &*ops {
                    edit.push(op)?;
                }
                Ok((edit.commands, edit.added))
            })
            .map_err(|error| self.with_lease_end(plan, error))?;
        if reply.changed {
            reply.added = added;
        }
        Ok(reply)
    }
}

struct Edit<'a> {
    /// The plan before the first operation.
    before: &'a Plan,
    by: &'a Caller,
    references: &'a AgentReferences,
    /// The tag that this clone adds to the ids that it chooses.
    tag: Option<&'a str>,
    commands: Vec<Command>,
    added: Vec<TaskId>,
    /// Ids that earlier operations of the same edit have taken.
    taken: BTreeSet<TaskId>,
    /// Parents of the tasks that earlier operations of the same edit added or moved.
    parents: BTreeMap<TaskId, Option<TaskId>>,
}

impl<'a> Edit<'a> {
    fn new(before: &'a Plan, by: &'a Caller, references: &'a AgentReferences) -> Self {
        let (commands, added, taken) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { before, by, references, tag: None, commands, added, taken, parents: BTreeMap::new() }
    }

    fn push(&mut self, op: &EditOp) -> Result<(), ServiceError> {
        let command = match op.clone() {
            EditOp::AddTasks { tasks, position } => self.add(tasks, position)?,
            EditOp::ReviseTask { task, changes } => self.revise(task, changes)?,
            EditOp::RemoveTask { task, drop_dependencies } => {
                Command::RemoveTask { task: self.named(task)?, detach: drop_dependencies }
            }
            EditOp::MoveTask { task, parent, position } => self.relocate(task, parent, position)?,
            EditOp::RevisePlan(changes) => Command::RevisePlan(changes),
            EditOp::SetStatus { task, status, take_over } => {
                let (task, plan) = (self.named(task)?, self.plan_now());
                // Whoever may cancel a task may cancel one that another session works on.
                if !take_over && !matches!(status, StatusChange::Cancelled { .. }) {
                    let holder = holder_of(&plan, &task);
                    holder.map_or(Ok(()), |(_, holder)| self.by.is_no_other_session(&task, &holder))?;
                }
                if let StatusChange::Done { result, sure, .. } = &status {
                    check_false_done(self.by, &task, result.as_deref(), *sure)?;
                }
                set_status(&plan, task, status, self.by)
            }
            EditOp::HoldTask { task, reason } => Command::HoldTask { task: self.named(task)?, reason },
            EditOp::UnholdTask { task } => Command::UnholdTask { task: self.named(task)? },
            EditOp::CommentTask { task, text } => Command::CommentTask { task: self.named(task)?, text },
            EditOp::LabelTask { task, labels, add, remove } => {
                let task = self.named(task)?;
                let mut labels = labels.unwrap_or_else(|| self.labels_of(&task));
                labels.retain(|label| !remove.contains(label));
                labels.extend(add);
                Command::LabelTask { task, labels }
            }
            EditOp::AssignTask { task, assignee } => {
                Command::AssignTask { task: self.named(task)?, assignee }
            }
            EditOp::SetPhase { phase, summary } => {
                if phase.is_finished() {
                    self.takes_no_open_plan("end it")?;
                }
                set_phase(&self.plan_now(), phase, summary)?
            }
            EditOp::SetArchived(true) => {
                self.takes_no_open_plan("archive it")?;
                Command::Archive
            }
            EditOp::SetArchived(false) => Command::Unarchive,
        };
        self.commands.push(command);
        Ok(())
    }

    /// Refuses to end or archive another agent's plan that was open before the edit, although its other operations would end all
    /// tasks.
    fn takes_no_open_plan(&self, wanted: &'static str) -> Result<(), ServiceError> {
        Ok(self.before.is_not_anothers(&self.by.actor, wanted)?)
    }

    /// Returns the plan after the operations so far. If one of them is refused, the write will say so.
    fn plan_now(&self) -> Cow<'a, Plan> {
        let at = self.before.state().updated_at.unwrap_or(Timestamp::from_micros(0));
        self.before.after(&self.by.actor, at, &self.commands)
    }

    /// Returns the labels of a task after the operations before this one.
    fn labels_of(&self, wanted: &TaskId) -> Vec<String> {
        let of_command = |command: &Command| {
            let Command::LabelTask { task, labels } = command else { return None };
            (task == wanted).then(|| labels.clone())
        };
        let stored = || self.before.task(wanted.as_str()).map(|task| task.state.labels().to_vec());
        self.commands.iter().rev().find_map(of_command).or_else(stored).unwrap_or_default()
    }

    fn add(&mut self, mut tasks: Vec<NewTask>, position: Position) -> Result<Command, ServiceError> {
        let blank =
            tasks.iter().position(|task| task.id.is_none() && task.spec.description.trim().is_empty());
        if let Some(at) = blank {
            let (place, field) = (ProblemLocation::TaskNumber(at + 1), "description".to_owned());
            let problems = vec![Problem { place, wrong: ProblemKind::Missing { field } }];
            return Err(ServiceError::Invalid { subject: Subject::Write, problems });
        }
        self.choose_ids(&mut tasks);
        let position = self.position(position)?;
        let implied = sibling(&position).and_then(|beside| self.parent_of(beside));
        let mut specs = Vec::with_capacity(tasks.len());
        for NewTask { mut spec, .. } in tasks {
            spec.parent = match spec.parent.take() {
                Some(parent) => Some(self.named(parent)?),
                None => implied.clone(),
            };
            self.link(&mut spec.depends_on, None)?;
            self.parents.insert(spec.id.clone(), spec.parent.clone());
            specs.push(*spec);
        }
        Ok(Command::AddTasks { tasks: specs, place: position })
    }

    /// Gives every task its id.
    fn choose_ids(&mut self, tasks: &mut [NewTask]) {
        self.taken.extend(tasks.iter().filter_map(|task| task.id.clone()));
        let mut free = self.before.free_task_ids_of(self.tag);
        for NewTask { id, spec, prefix } in tasks {
            let is_free = |id: &TaskId| !self.taken.contains(id);
            let found = match (id.take(), *prefix) {
                (Some(id), _) => Some(id),
                (None, None) => free.find(is_free),
                (None, Some(prefix)) => self.before.free_numbered_ids(prefix).find(is_free),
            };
            spec.id = found.unwrap_or_else(|| spec.id.clone());
            self.taken.insert(spec.id.clone());
            self.added.push(spec.id.clone());
        }
    }

    fn revise(&self, task: TaskId, mut changes: Box<TaskChanges>) -> Result<Command, ServiceError> {
        let task = self.named(task)?;
        let spec = self.before.task(task.as_str()).map(|task| &task.spec);
        if let Some(depends_on) = &mut changes.depends_on {
            self.link(depends_on, spec)?;
        }
        self.link(&mut changes.add_dependencies, spec)?;
        self.link(&mut changes.remove_dependencies, spec)?;
        Ok(Command::ReviseTask { task, changes })
    }

    fn relocate(
        &mut self,
        task: TaskId,
        parent: Option<Option<TaskId>>,
        position: Position,
    ) -> Result<Command, ServiceError> {
        let (task, place) = (self.named(task)?, self.position(position)?);
        let parent = match parent {
            Some(Some(parent)) => Some(Some(self.named(parent)?)),
            Some(None) => Some(None),
            None => sibling(&place).map(|beside| self.parent_of(beside)),
        };
        if let Some(parent) = &parent {
            self.parents.insert(task.clone(), parent.clone());
        }
        Ok(Command::MoveTask { task, parent, place })
    }

    /// Returns the parent of a task after the operations so far.
    fn parent_of(&self, task: &TaskId) -> Option<TaskId> {
        self.parents
            .get(task)
            .cloned()
            .unwrap_or_else(|| self.before.task(task.as_str())?.spec.parent.clone())
    }

    /// Whether the plan has the task, or an operation so far adds it.
    fn is_here(&self, task: &TaskId) -> bool {
        self.taken.contains(task) || self.before.task(task.as_str()).is_some()
    }

    /// Returns the task with this id or id prefix. The write refuses a task that is not there.
    fn named(&self, task: TaskId) -> Result<TaskId, ServiceError> {
        if self.is_here(&task) {
            return Ok(task);
        }
        match resolve_task(self.before, task.as_str()) {
            Err(ServiceError::Refused(Refusal::NoSuchTask { .. })) => Ok(task),
            found => found,
        }
    }

    fn position(&self, position: Position) -> Result<Position, ServiceError> {
        Ok(match position {
            Position::First | Position::Last => position,
            Position::Before(beside) => Position::Before(self.named(beside)?),
            Position::After(beside) => Position::After(self.named(beside)?),
        })
    }

    /// Resolves dependencies of the task `waiting`, which may be new: a task of this plan, else `plan/task` or
    /// `agent:task`.
    fn link(
        &self,
        dependencies: &mut Vec<Dependency>,
        waiting: Option<&TaskSpec>,
    ) -> Result<(), ServiceError> {
        for on in dependencies.iter_mut() {
            let there = match &*on {
                Dependency::External(there) => Some((**there).clone()),
                Dependency::Task(named) => {
                    let task = self.named(named.clone())?;
                    let there =
                        if self.is_here(&task) { None } else { ExternalTaskRef::parse(task.as_str()) };
                    *on = Dependency::Task(task);
                    there
                }
            };
            if let Some(there) = there {
                *on = Dependency::External(Box::new(self.references.with_plan(there, waiting)));
            }
        }
        let mut named = HashSet::new();
        dependencies.retain(|on| named.insert(on.clone()));
        Ok(())
    }
}

/// Returns the operations that the plan refuses, each after those before it that it accepts. Leaves out those that may be refused
/// only because an operation before them is.
fn wrong_operations(
    plan: &Plan,
    by: &Caller,
    references: &AgentReferences,
    ops: &[EditOp],
) -> Vec<WrongOperation> {
    let at = plan.state().updated_at.unwrap_or(Timestamp::from_micros(0));
    let (mut edit, mut now) = (Edit::new(plan, by, references), Cow::Borrowed(plan));
    let mut wrong: Vec<WrongOperation> = Vec::new();
    // Tasks that a refused operation names, and those that it would have added.
    let (mut touched, mut not_added) = (BTreeSet::new(), BTreeSet::new());
    for (index, op) in ops.iter().enumerate() {
        let accepted = edit.commands.len();
        let decided = edit.push(op).and_then(|()| match edit.commands.last() {
            Some(command) => Ok(now.decide(&by.actor, at, command)?),
            None => Ok(Vec::new()),
        });
        let error = match decided {
            Ok(events) => {
                now.to_mut().advance(&events, at);
                continue;
            }
            Err(error) => error,
        };
        edit.commands.truncate(accepted);
        let named = named_tasks(op);
        let follows = if let ServiceError::Refused(Refusal::NoSuchTask { task, .. }) = &error {
            not_added.contains(task.as_str())
        } else if named.is_empty() {
            !wrong.is_empty()
        } else {
            named.iter().any(|task| touched.contains(task))
        };
        if !follows {
            wrong.push(WrongOperation { index, error });
        }
        if let EditOp::AddTasks { tasks, .. } = op {
            not_added.extend(tasks.iter().filter_map(|task| task.id.as_ref()).map(TaskId::as_str));
        }
        touched.extend(named);
    }
    wrong
}

/// Returns the tasks that an operation names; none for one that concerns the whole plan.
fn named_tasks(op: &EditOp) -> Vec<&TaskId> {
    match op {
        EditOp::AddTasks { tasks, position } => {
            let own = tasks.iter().flat_map(|task| task.id.iter().chain(&task.spec.parent));
            let on = tasks.iter().flat_map(|task| &task.spec.depends_on).filter_map(Dependency::here);
            own.chain(on).chain(sibling(position)).collect()
        }
        EditOp::ReviseTask { task, changes } => {
            let on = changes.depends_on.iter().flatten().chain(&changes.add_dependencies);
            on.filter_map(Dependency::here).chain([task]).collect()
        }
        EditOp::MoveTask { task, parent, position } => {
            let parent = parent.iter().flatten();
            parent.chain(sibling(position)).chain([task]).collect()
        }
        EditOp::RemoveTask { task, .. }
        | EditOp::SetStatus { task, .. }
        | EditOp::HoldTask { task, .. }
        | EditOp::UnholdTask { task }
        | EditOp::CommentTask { task, .. }
        | EditOp::LabelTask { task, .. }
        | EditOp::AssignTask { task, .. } => vec![task],
        EditOp::RevisePlan(_) | EditOp::SetPhase { .. } | EditOp::SetArchived(_) => Vec::new(),
    }
}

/// Returns the references to tasks of other plans that the operation adds.
fn references(op: &EditOp) -> Vec<ExternalTaskRef> {
    let dependencies: Vec<&Dependency> = match op {
        EditOp::AddTasks { tasks, .. } => tasks.iter().flat_map(|task| &task.spec.depends_on).collect(),
        EditOp::ReviseTask { changes, .. } => {
            changes.depends_on.iter().flatten().chain(&changes.add_dependencies).collect()
        }
        EditOp::RemoveTask { .. }
        | EditOp::MoveTask { .. }
        | EditOp::RevisePlan(_)
        | EditOp::SetStatus { .. }
        | EditOp::HoldTask { .. }
        | EditOp::UnholdTask { .. }
        | EditOp::CommentTask { .. }
        | EditOp::LabelTask { .. }
        | EditOp::AssignTask { .. }
        | EditOp::SetPhase { .. }
        | EditOp::SetArchived(_) => Vec::new(),
    };
    let external = dependencies.into_iter().filter_map(|on| match on {
        Dependency::Task(named) => ExternalTaskRef::parse(named.as_str()),
        Dependency::External(there) => Some((**there).clone()),
    });
    external.collect()
}

fn sibling(position: &Position) -> Option<&TaskId> {
    match position {
        Position::First | Position::Last => None,
        Position::Before(beside) | Position::After(beside) => Some(beside),
    }
}

fn set_status(plan: &Plan, task: TaskId, status: StatusChange, by: &Caller) -> Command {
    let is_running = holder_of(plan, &task).is_some();
    let finish = |task, outcome| Command::FinishTask { task, attempt: None, outcome, retry: None };
    match status {
        StatusChange::Pending { reason } if is_running => {
            Command::ReleaseTask { task, attempt: None, reason }
        }
        StatusChange::Pending { .. } => Command::RetryTask { task },
        StatusChange::Running => Command::StartTask { task, worker: by.worker.clone() },
        StatusChange::Done { result, output, .. } => {
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
        Phase::Active => Ok(Command::Resume),
        Phase::AwaitingApproval => Ok(Command::RequestApproval { message: summary }),
        Phase::Completed | Phase::Failed | Phase::Cancelled => Ok(Command::FinishPlan { phase, summary }),
        Phase::Draft => Err(Refusal::wrong_phase(plan.state().phase, "made a draft again").into()),
    }
}
