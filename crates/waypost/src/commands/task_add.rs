//! `waypost task add`: one more task.

use clap::Args;
use serde_json::Map;
use waypost_core::{BadId, Command, Dependency, Plan, Problem, TaskId, TaskSpec, Where, Wrong};
use waypost_store::{WriteError, WriteRequest};

use super::task_options::TaskOptions;
use crate::cli::Guard;
use crate::context::{Context, task_of};
use crate::error::{Failure, Outcome};
use crate::files;

/// How often a new id is tried when others add tasks at the same moment.
const TRIES_MAX: usize = 20;

const EXAMPLES: &str = "\
Prints the new task's id.

Examples:
  waypost add kq3 'Write the tests' --after t2
  waypost task add kq3 'Review' --after t2,t3 --complexity high --notes 'Look at the errors first'
  waypost task add kq3 'Build' --executor shell --inputs '{\"run\":\"make\"}' --lock build
  waypost task add kq3 'Read the report' --on-agent researcher:report";

// What the task is to be.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Add {
    /// The plan
    plan: String,
    /// What is to be done; @FILE reads it from a file
    description: String,
    /// Its id (otherwise t1, t2, …)
    #[arg(long)]
    id: Option<String>,
    /// The task that it is a part of
    #[arg(long, value_name = "TASK")]
    parent: Option<String>,
    /// Put it right before this sibling
    #[arg(long, value_name = "TASK", conflicts_with = "behind")]
    before: Option<String>,
    /// Put it right behind this sibling
    #[arg(long, value_name = "TASK")]
    behind: Option<String>,
    #[command(flatten)]
    options: TaskOptions,
    #[command(flatten)]
    guard: Guard,
}

/// A task's id as somebody typed it.
pub(crate) fn task_id(text: &str) -> Outcome<TaskId> {
    let wrong = |error: BadId| {
        Failure::usage(format!("--id {text:?}: {error}"), "choose an id such as t1 or build-api")
    };
    TaskId::new(text).map_err(wrong)
}

/// A place beside a sibling, and the sibling's parent.
pub(crate) fn beside(
    plan: &Plan,
    sibling: &str,
    place: fn(TaskId) -> Where,
) -> Outcome<(Where, Option<TaskId>)> {
    let sibling = task_of(plan, sibling)?;
    let parent = plan.task(sibling.as_str()).and_then(|task| task.spec.parent.clone());
    Ok((place(sibling), parent))
}

impl Add {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let by = context.actor()?;
        let found = context.find(&self.plan)?;
        let said = self.id.as_deref().map(task_id).transpose()?;
        let mut spec = self.spec()?;
        for tried in 1.. {
            let place = found.look(|plan| self.complete(plan, &mut spec, said.as_ref()))??;
            let commands = vec![Command::AddTasks { tasks: vec![spec.clone()], place }];
            if tried == 1 {
                context.admit(&commands)?;
            }
            let answer = found.plans.write(WriteRequest {
                plan: found.id.clone(),
                by: by.clone(),
                commands,
                known_version: self.guard.expect_version,
                lease_seconds: None,
            });
            match answer {
                // Somebody else has taken the id that was free a moment ago.
                Err(WriteError::Refused(waypost_core::Refusal::Invalid { problems }))
                    if said.is_none() && tried < TRIES_MAX && is_taken(&problems, &spec.id) => {}
                answer => {
                    let committed = answer?;
                    context.warn(&committed);
                    let id = spec.id.clone();
                    if !context.out.json {
                        context.out.line(id.as_str());
                        context
                            .out
                            .say(format!("added {id} (plan {}, version {})", found.id, committed.version));
                        return Ok(());
                    }
                    return context.answer(&found, &committed, "", Some(&id), Map::new());
                }
            }
        }
        Ok(())
    }

    /// What is said on the command line; the id and other tasks' names come later.
    fn spec(&self) -> Outcome<TaskSpec> {
        let options = &self.options;
        let placeholder = TaskId::new("t").map_err(|error| Failure::failed(error.to_string(), ""))?;
        let mut spec = TaskSpec::new(placeholder, files::said_or_read(&self.description)?);
        spec.when = options.when().unwrap_or_default();
        spec.complexity = options.complexity();
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

    /// Gives the task its id, and what it says of other tasks.
    fn complete(&self, plan: &Plan, spec: &mut TaskSpec, said: Option<&TaskId>) -> Outcome<Where> {
        spec.id =
            said.cloned().unwrap_or_else(|| plan.free_task_ids().next().unwrap_or_else(|| spec.id.clone()));
        spec.depends_on = self.options.elsewhere()?;
        for (number, name) in self.options.after.iter().enumerate() {
            spec.depends_on.insert(number, Dependency::Task(task_of(plan, name)?));
        }
        let (place, beside) = match (&self.before, &self.behind) {
            (Some(sibling), _) => beside(plan, sibling, Where::Before)?,
            (None, Some(sibling)) => beside(plan, sibling, Where::After)?,
            (None, None) => (Where::Last, None),
        };
        spec.parent = match &self.parent {
            Some(parent) => Some(task_of(plan, parent)?),
            None => beside,
        };
        Ok(place)
    }
}

fn is_taken(problems: &[Problem], id: &TaskId) -> bool {
    problems.iter().all(|problem| *problem == Problem::task(id, Wrong::DuplicateId))
}
