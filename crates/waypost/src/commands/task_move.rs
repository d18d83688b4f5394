//! `waypost task remove` and `waypost task move`: whether a task is in the plan, and where.

use clap::Args;
use waypost_core::{Plan, TaskId, Where};
use waypost_service::EditOp;

use crate::context::{Context, task_of};
use crate::error::{Failure, Outcome};
use crate::options::Guard;

// Which task goes.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The plan
    plan: String,
    /// The task
    task: String,
    /// Let those who depend on it forget it (otherwise they forbid the removal)
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    guard: Guard,
}

impl Remove {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        let ops = vec![EditOp::RemoveTask { task: task.clone(), drop_dependencies: self.detach }];
        let reply = found.service.edit(&context.caller()?, &found.id, ops, (&self.guard).into())?;
        context.done(&found, &reply, &format!("removed {task}"))
    }
}

const MOVE_EXAMPLES: &str = "\
Examples:
  waypost task move kq3 t5 --first
  waypost task move kq3 t5 --behind t2
  waypost task move kq3 t5 --parent t1
  waypost task move kq3 t5 --root";

// Where a task goes.
#[derive(Debug, Args)]
#[command(after_help = MOVE_EXAMPLES)]
#[command(group = clap::ArgGroup::new("place").args(["first", "last", "before", "behind"]))]
pub(crate) struct Move {
    /// The plan
    plan: String,
    /// The task
    task: String,
    /// Before all its siblings
    #[arg(long)]
    first: bool,
    /// Behind all its siblings
    #[arg(long)]
    last: bool,
    /// Right before this task
    #[arg(long, value_name = "TASK")]
    before: Option<String>,
    /// Right behind this task
    #[arg(long, value_name = "TASK")]
    behind: Option<String>,
    /// Make it a part of this task
    #[arg(long, value_name = "TASK", conflicts_with = "root")]
    parent: Option<String>,
    /// Make it a part of no task
    #[arg(long)]
    root: bool,
    #[command(flatten)]
    guard: Guard,
}

impl Move {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let somewhere = self.first || self.last || self.root;
        if !somewhere && self.before.is_none() && self.behind.is_none() && self.parent.is_none() {
            return Err(Failure::usage(
                "nothing says where to",
                "for example --first, --behind t2 or --parent t1",
            ));
        }
        let found = context.find(&self.plan)?;
        let (task, parent, position) = found.read(|plan| self.target(plan))??;
        let ops = vec![EditOp::MoveTask { task: task.clone(), parent, position }];
        let reply = found.service.edit(&context.caller()?, &found.id, ops, (&self.guard).into())?;
        context.done_task(&found, &reply, &task, &format!("moved {task}"))
    }

    fn target(&self, plan: &Plan) -> Outcome<(TaskId, Option<Option<TaskId>>, Where)> {
        let task = task_of(plan, &self.task)?;
        let position = match (&self.before, &self.behind, self.first) {
            (Some(sibling), _, _) => Where::Before(task_of(plan, sibling)?),
            (None, Some(sibling), _) => Where::After(task_of(plan, sibling)?),
            (None, None, true) => Where::First,
            (None, None, false) => Where::Last,
        };
        let parent = match (&self.parent, self.root) {
            (Some(parent), _) => Some(Some(task_of(plan, parent)?)),
            (None, true) => Some(None),
            (None, false) => None,
        };
        Ok((task, parent, position))
    }
}
