//! `waypost task add`: adds a task.

use clap::Args;
use serde_json::Map;
use waypost_core::{BadId, Position, TaskId, TaskSpec};
use waypost_service::{EditOp, NewTask};

use super::task_options::TaskOptions;
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::options::Guard;

const EXAMPLES: &str = "\
Prints the new task's id.

Examples:
  waypost add kq3 'Write the tests' --depends-on t2
  waypost task add kq3 'Review' --depends-on t2,t3 --complexity high --notes 'Look at the errors first'
  waypost task add kq3 'Build' --executor shell --inputs '{\"run\":\"make\"}' --lock build
  waypost task add kq3 'Read the report' --depends-on researcher:report";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Add {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task description; @FILE reads it from a file
    description: String,
    /// Task id [default: t1, t2, …]
    #[arg(long)]
    id: Option<String>,
    /// Parent task
    #[arg(long, value_name = "TASK")]
    parent: Option<String>,
    /// Insert before this sibling
    #[arg(long, value_name = "TASK", conflicts_with = "below")]
    before: Option<String>,
    /// Insert below this sibling
    #[arg(long, alias = "behind", value_name = "TASK")]
    below: Option<String>,
    #[command(flatten)]
    options: TaskOptions,
    #[command(flatten)]
    guard: Guard,
}

/// Parses the id of a task, or a prefix, that an option names. The task is found when the plan is written.
fn task_ref(option: &str, text: &str) -> Outcome<TaskId> {
    let wrong =
        |error: BadId| Failure::usage(format!("{option} {text:?}: {error}"), "name a task such as t1");
    TaskId::new(text).map_err(wrong)
}

/// Parses the task id of `--id`.
pub(crate) fn task_id(text: &str) -> Outcome<TaskId> {
    let wrong = |error: BadId| {
        Failure::usage(format!("--id {text:?}: {error}"), "choose an id such as t1 or build-api")
    };
    TaskId::new(text).map_err(wrong)
}

impl Add {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let id = self.id.as_deref().map(task_id).transpose()?;
        let mut spec = self.spec()?;
        let position = self.complete(&mut spec)?;
        let tasks = vec![NewTask { id, ..NewTask::unnamed(spec) }];
        let ops = vec![EditOp::AddTasks { tasks, position }];
        let reply = found.service.edit(&context.caller()?, &found.id, ops, (&self.guard).into())?;
        context.warn(&reply);
        let id = reply.added.first().cloned();
        if let (false, Some(id)) = (context.out.json, &id) {
            context.out.line(id.as_str());
            context.out.say(format!("added {id} (plan {}, version {})", found.id, reply.version));
            return Ok(());
        }
        context.answer(&found, &reply, "", id.as_ref(), Map::new())
    }

    /// Builds the specification from the options. The id and references to other tasks are filled in later.
    fn spec(&self) -> Outcome<TaskSpec> {
        let options = &self.options;
        let placeholder = TaskId::new("t").map_err(|error| Failure::failed(error.to_string(), ""))?;
        let mut spec = TaskSpec::new(placeholder, files::text_argument(&self.description)?);
        spec.when = options.when.unwrap_or_default();
        spec.complexity = options.complexity;
        spec.notes = options.notes()?.unwrap_or_default();
        spec.tools = (!options.tools.is_empty()).then(|| options.tools.clone());
        spec.locks = options.locks();
        spec.priority = options.priority.unwrap_or_default();
        spec.work = options.work(None)?.map(Box::new);
        spec.check = options.check(None)?.map(Box::new);
        spec.retry = options.retry.map(Box::new);
        spec.timeout_seconds = options.timeout;
        spec.provides.clone_from(&options.provides);
        Ok(spec)
    }

    /// Fills in the references to other tasks, and returns the position.
    fn complete(&self, spec: &mut TaskSpec) -> Outcome<Position> {
        spec.depends_on = self.options.dependencies()?;
        spec.parent = self.parent.as_deref().map(|parent| task_ref("--parent", parent)).transpose()?;
        Ok(match (&self.before, &self.below) {
            (Some(sibling), _) => Position::Before(task_ref("--before", sibling)?),
            (None, Some(sibling)) => Position::After(task_ref("--below", sibling)?),
            (None, None) => Position::Last,
        })
    }
}
