//! `waypost plan rollback`: discards a goal's decomposition and all its subtasks. Its cost stays counted.

use clap::Args;
use serde_json::{Map, Value};
use waypost_core::{Plan, TaskId};
use waypost_llm::JournalError;
use waypost_planner::planning::forget_outdated;

use crate::planning::{self, PlanningSession};
use waypost_cli::context::{Context, PlanWrite};
use waypost_cli::error::Outcome;
use waypost_cli::view::text;

const EXAMPLES: &str = "\
The goal is undecided again, and `waypost plan continue` plans it again; `waypost restore` undoes the rollback.

Examples:
  waypost plan rollback kq3 goal.2
  waypost plan rollback kq3 goal.2 --drop-dependencies";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rollback {
    #[command(flatten)]
    on: PlanWrite,
    /// Goal: task id, or an unambiguous prefix
    task: String,
    /// Also remove outside dependencies on the discarded tasks
    #[arg(long, alias = "detach")]
    drop_dependencies: bool,
}

impl Rollback {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let task = found.task(&self.task)?;
        let (version, below) = found.read(|plan| (plan.version(), below(plan, &task)))?;
        let reply = found.service.roll_back(&by, &found.id, &task, self.drop_dependencies, guard)?;
        context.warn(&reply);
        self.forget(context, &found.id, version)?;
        let mut more: Map<String, Value> = Map::new();
        more.insert("removed".to_owned(), below.into());
        let said = format!("rolled back {task}, {} removed", text::count(below, "task"));
        context.answer(&found, &reply, &said, Some(&task), more)
    }

    /// Removes outdated answers from the journal. If another process holds the journal, that process removes them.
    fn forget(&self, context: &mut Context, plan: &waypost_core::PlanId, version: u64) -> Outcome {
        let path = planning::orders(&context.folders()?).journal(plan);
        if !path.is_file() {
            return Ok(());
        }
        let planning = PlanningSession::enter(context)?;
        let journal = match planning.open_journal(plan) {
            Ok(journal) => journal,
            Err(JournalError::Held { .. }) => return Ok(()),
            Err(error) => return Err(planning::of_journal(&error, Some(plan))),
        };
        let by = context.actor()?;
        forget_outdated(&planning.plans, plan, &by, &journal, version)
            .map_err(|error| planning::of_thinking(error, plan))
    }
}

/// The number of tasks below a task.
fn below(plan: &Plan, task: &TaskId) -> usize {
    let mut rest = vec![task.clone()];
    let mut count = 0;
    while let Some(task) = rest.pop() {
        let children = plan.children(task.as_str());
        count += children.len();
        rest.extend(children.into_iter().map(|child| child.spec.id.clone()));
    }
    count
}
