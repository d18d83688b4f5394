//! `waypost task remove` and `waypost task move`: removes a task, or changes its position and parent.

use clap::Args;
use waypost_core::{Plan, Position, TaskId};
use waypost_service::EditOp;

use waypost_cli::context::{Context, task_of};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::options::Guard;

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
    /// Also remove dependencies on this task (otherwise removal is refused)
    #[arg(long, alias = "detach")]
    drop_dependencies: bool,
    #[command(flatten)]
    guard: Guard,
}

impl Remove {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        let ops = vec![EditOp::RemoveTask { task: task.clone(), drop_dependencies: self.drop_dependencies }];
        let reply = found.service.edit(&context.caller()?, &found.id, ops, (&self.guard).into())?;
        context.done(&found, &reply, &format!("removed {task}"))
    }
}

const MOVE_EXAMPLES: &str = "\
Examples:
  waypost task move kq3 t5 --first
  waypost task move kq3 t5 --below t2
  waypost task move kq3 t5 --parent t1
  waypost task move kq3 t5 --root";

#[derive(Debug, Args)]
#[command(after_help = MOVE_EXAMPLES)]
#[command(group = clap::ArgGroup::new("place").args(["first", "last", "before", "below"]))]
pub(crate) struct Move {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
    /// Move before all siblings
    #[arg(long)]
    first: bool,
    /// Move below all siblings
    #[arg(long)]
    last: bool,
    /// Move directly before this task
    #[arg(long, value_name = "TASK")]
    before: Option<String>,
    /// Move directly below this task
    #[arg(long, alias = "behind", value_name = "TASK")]
    below: Option<String>,
    /// Set the parent task
    #[arg(long, value_name = "TASK", conflicts_with = "root")]
    parent: Option<String>,
    /// Remove the parent: move to the top level
    #[arg(long)]
    root: bool,
    #[command(flatten)]
    guard: Guard,
}

impl Move {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let somewhere = self.first || self.last || self.root;
        if !somewhere && self.before.is_none() && self.below.is_none() && self.parent.is_none() {
            return Err(Failure::usage(
                "no target position is given",
                "for example --first, --below t2 or --parent t1",
            ));
        }
        let found = context.find(&self.plan)?;
        let (task, parent, position) = found.read(|plan| self.target(plan))??;
        let ops = vec![EditOp::MoveTask { task: task.clone(), parent, position }];
        let reply = found.service.edit(&context.caller()?, &found.id, ops, (&self.guard).into())?;
        context.done_task(&found, &reply, &task, &format!("moved {task}"))
    }

    fn target(&self, plan: &Plan) -> Outcome<(TaskId, Option<Option<TaskId>>, Position)> {
        let task = task_of(plan, &self.task)?;
        let position = match (&self.before, &self.below, self.first) {
            (Some(sibling), _, _) => Position::Before(task_of(plan, sibling)?),
            (None, Some(sibling), _) => Position::After(task_of(plan, sibling)?),
            (None, None, true) => Position::First,
            (None, None, false) => Position::Last,
        };
        let parent = match (&self.parent, self.root) {
            (Some(parent), _) => Some(Some(task_of(plan, parent)?)),
            (None, true) => Some(None),
            (None, false) => None,
        };
        Ok((task, parent, position))
    }
}
