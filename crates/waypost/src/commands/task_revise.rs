//! `waypost task revise`: changes a task's specification.

use clap::{Args, ValueEnum};
use waypost_core::{Dependency, Plan, TaskChanges, TaskId};
use waypost_service::EditOp;

use super::task_options::TaskOptions;
use waypost_cli::context::{Context, task_of, whole_task_of};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::options::Guard;

const EXAMPLES: &str = "\
Options that are not given leave their fields unchanged. --depends-on adds dependencies; --tool and --lock replace the lists.

Examples:
  waypost task revise kq3 t3 --description 'Write the tests first'
  waypost task revise kq3 t3 --depends-on t1 --no-depends-on t2
  waypost task revise kq3 t3 --clear notes,complexity
  waypost task revise kq3 t3 --retry 3:10s --timeout 15m";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Revise {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
    /// Task description; @FILE reads it from a file
    #[arg(long)]
    description: Option<String>,
    /// Dependencies to remove; comma-separated or repeated
    #[arg(long, alias = "no-after", value_name = "TASK", value_delimiter = ',')]
    no_depends_on: Vec<String>,
    /// Fields to clear
    #[arg(long, value_enum, value_name = "FIELD", value_delimiter = ',')]
    clear: Vec<Field>,
    #[command(flatten)]
    options: TaskOptions,
    #[command(flatten)]
    guard: Guard,
}

/// A field that can be cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Field {
    /// All dependencies.
    #[value(alias = "after")]
    DependsOn,
    /// The estimate.
    Complexity,
    /// The free text.
    Notes,
    /// The tools.
    Tools,
    /// The locks.
    Locks,
    /// The executor and its inputs.
    Work,
    /// The check.
    Check,
    /// The retry policy.
    Retry,
    /// The time limit.
    Timeout,
    /// The priority.
    Priority,
    /// The name of its output.
    Provides,
}

impl Revise {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        context.caller()?.may_edit()?;
        let (task, changes) = found.read(|plan| self.changes(plan))??;
        if changes == TaskChanges::default() {
            let hint = "name a change, for example --description 'Write the tests first'";
            return Err(Failure::usage(format!("no change of task {task} is given"), hint));
        }
        let ops = vec![EditOp::ReviseTask { task: task.clone(), changes: Box::new(changes) }];
        let reply = found.service.edit(&context.caller()?, &found.id, ops, (&self.guard).into())?;
        context.done_task(&found, &reply, &task, &format!("revised {task}"))
    }

    fn changes(&self, plan: &Plan) -> Outcome<(TaskId, TaskChanges)> {
        let now = whole_task_of(plan, &self.task)?;
        let options = &self.options;
        let mut changes = TaskChanges {
            description: self.description.as_deref().map(files::text_argument).transpose()?,
            add_dependencies: options.dependencies()?,
            remove_dependencies: self.no_more(plan, now)?,
            when: options.when,
            complexity: options.complexity.map(Some),
            notes: options.notes()?,
            tools: (!options.tools.is_empty()).then(|| Some(options.tools.clone())),
            work: options.work(now.spec.work.as_deref())?.map(Some),
            check: options.check(now.spec.check.as_deref())?.map(Some),
            retry: options.retry.map(Some),
            timeout_seconds: options.timeout.map(Some),
            priority: options.priority,
            provides: options.provides.clone().map(Some),
            ..TaskChanges::default()
        };
        let locks = options.locks();
        changes.locks = (!locks.is_empty()).then_some(locks);
        for field in &self.clear {
            match field {
                Field::DependsOn => changes.depends_on = Some(Vec::new()),
                Field::Complexity => changes.complexity = Some(None),
                Field::Notes => changes.notes = Some(String::new()),
                Field::Tools => changes.tools = Some(None),
                Field::Locks => changes.locks = Some(Vec::new()),
                Field::Work => changes.work = Some(None),
                Field::Check => changes.check = Some(None),
                Field::Retry => changes.retry = Some(None),
                Field::Timeout => changes.timeout_seconds = Some(None),
                Field::Priority => changes.priority = Some(0),
                Field::Provides => changes.provides = Some(None),
            }
        }
        Ok((now.spec.id.clone(), changes))
    }

    /// The dependencies to remove: tasks of this plan by id or prefix, external ones as they are shown.
    fn no_more(&self, plan: &Plan, now: &waypost_core::Task) -> Outcome<Vec<Dependency>> {
        let mut gone = Vec::new();
        for name in &self.no_depends_on {
            let elsewhere =
                now.spec.depends_on.iter().find(|on| on.external().is_some() && on.to_string() == *name);
            gone.push(match elsewhere {
                Some(on) => on.clone(),
                None => Dependency::Task(task_of(plan, name)?),
            });
        }
        Ok(gone)
    }
}
