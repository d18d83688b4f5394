//! `waypost new`: creates a plan from command line arguments.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Map, Value};
use waypost_core::{BadId, Draft, PlanId, Task, TaskId, TaskSpec};
use waypost_service::CreateOptions;

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;

const EXAMPLES: &str = "\
Prints the new plan's id, so that a script can keep it.

Examples:
  waypost new 'Move to JWT' --goal 'Sessions survive a restart'
  waypost new 'Release 2.0' --task 'Write the notes' --task 'Tag it' --note idle
  waypost new 'Design' --body-file design.md
  PLAN=$(waypost new 'Nightly clean-up')";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct New {
    /// Title
    title: Option<String>,
    /// Goal of the plan
    #[arg(long)]
    goal: Option<String>,
    /// Markdown body
    #[arg(long, conflicts_with = "body_file")]
    body: Option<String>,
    /// Read the body from a file; - is standard input
    #[arg(long, value_name = "FILE")]
    body_file: Option<String>,
    /// Note, free text for where the plan stands
    #[arg(long, alias = "status")]
    note: Option<String>,
    /// Agent that owns the plan [default: the calling agent]
    #[arg(long)]
    owner: Option<String>,
    /// Queue for the plan's work
    #[arg(long)]
    queue: Option<String>,
    /// Plan id [default: a new one]
    #[arg(long)]
    id: Option<String>,
    /// Description of a task; repeatable, ids are t1, t2, …
    #[arg(long = "task", value_name = "DESCRIPTION", value_parser = NonEmptyStringValueParser::new())]
    tasks: Vec<String>,
}

/// Parses the plan id of `--id`.
pub(crate) fn plan_id(text: &str) -> Outcome<PlanId> {
    let wrong =
        |error: BadId| Failure::usage(format!("--id {text:?}: {error}"), "choose an id such as auth-jwt");
    PlanId::new(text).map_err(wrong)
}

impl New {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let body = match (self.body, self.body_file) {
            (Some(body), _) => body,
            (None, Some(path)) => files::read(&path)?,
            (None, None) => String::new(),
        };
        let is_blank = |text: &Option<String>| text.as_deref().is_none_or(|text| text.trim().is_empty());
        if is_blank(&self.title) && is_blank(&self.goal) && body.trim().is_empty() {
            return Err(Failure::usage("the plan has no title", "for example: `waypost new 'Move to JWT'`"));
        }
        let by = context.caller()?;
        let mut draft = Draft::new(self.title.unwrap_or_default());
        let spec = &mut draft.spec;
        (spec.goal, spec.body) = (self.goal.unwrap_or_default(), body);
        (spec.status, spec.queue) = (self.note.unwrap_or_default(), self.queue.unwrap_or_default());
        spec.owner = self.owner.unwrap_or_default();
        for (number, description) in self.tasks.into_iter().enumerate() {
            let id = TaskId::new(format!("t{}", number + 1));
            let id = id.map_err(|error| Failure::failed(error.to_string(), ""))?;
            draft.tasks.push(Task::new(TaskSpec::new(id, description)));
        }
        let id = self.id.as_deref().map(plan_id).transpose()?;
        // Its last line says where the plan is.
        let plans = context.plans_in(&context.store_location()?)?;
        let options = CreateOptions { id, ..CreateOptions::default() };
        let reply = context.service(&plans).create(&by, draft, options)?;
        context.warn(&reply);
        let found = context.found(plans, reply.plan.clone());
        if context.out.json {
            let mut more: Map<String, Value> = Map::new();
            more.insert("store".to_owned(), found.plans.store().location().into());
            return context.answer(&found, &reply, "", None, more);
        }
        context.out.line(reply.plan.as_str());
        context.out.say(format!("created plan {} in {}", reply.plan, found.plans.store().location()));
        Ok(())
    }
}
