//! `waypost submit`: stores and activates a plan for workers to run, without waiting for it.

use std::path::PathBuf;

use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value};
use waypost_config::Config;
use waypost_core::{Phase, Plan, Task};
use waypost_formats::Dialect;
use waypost_service::{Guard, WriteReply};
use waypost_service::{HumanExecutors, no_worker, workers_of};
use waypost_store::Committed;

use super::run;
use super::run::prepare::{self, Approval, RunRequest};
use waypost_cli::approval_prompt::Answer;
use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::options::input_format;
use waypost_cli::plan_input;
use waypost_cli::runner::typeable;
use waypost_cli::trust_prompt;
use waypost_text::shell_word;

const EXAMPLES: &str = "\
Validates the plan, stores it, asks for approval where needed and activates it; workers run it (`waypost worker`). \
Submitting the same file again creates no second plan; a plan that is paused or has ended is not \
started again. Without approval it waits for `waypost approve`.

Examples:
  waypost submit plan.json
  waypost submit plan.json --queue nightly --yes
  waypost submit kq3
  waypost watch kq3";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Submit {
    /// File of any format, or plan id or prefix
    #[arg(value_name = "FILE|PLAN|-")]
    what: String,
    /// Input format of the file [default: detect]
    #[arg(long, value_name = "FORMAT", value_parser = input_format())]
    format: Option<Dialect>,
    /// Place the plan on this queue
    #[arg(long)]
    queue: Option<String>,
    /// Approve the plan as the person who submits it, without a question; needs --seen for a plan that others wrote
    #[arg(short, long)]
    yes: bool,
    /// Digest that you have seen, as `preview` prints it; with --yes
    #[arg(long, value_name = "DIGEST", requires = "yes")]
    seen: Option<String>,
    /// Configuration file that overrides all others
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Submit {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if !plan_input::is_file(&self.what) {
            // Before anything of the plan is changed.
            let found =
                context.find(&self.what).map_err(|failure| plan_input::or_file(&self.what, failure))?;
            found.service.startable(&context.caller()?, &found.id)?;
        }
        let folders = context.folders()?;
        let config = Arc::new(trust_prompt::load_config(context, &folders, self.config.as_deref())?);
        let mut draft = plan_input::one_plan(context, &self.what, self.format)?;
        if let Some(queue) = &self.queue {
            draft.spec.queue.clone_from(queue);
        }
        let executor = config.default_executor.as_deref();
        let draft = prepare::storable_by(context, &config, draft, executor)?;
        let begin = RunRequest {
            what: &self.what,
            queue: self.queue.as_deref(),
            answer: Answer { yes: self.yes, seen: self.seen.as_deref() },
            executor,
            may_wait: true,
        };
        let entered = begin.enter(context, &config, draft)?;
        let found = context.found(Arc::clone(&entered.plans), entered.id.clone());
        found.service.startable(&context.caller()?, &found.id)?;
        let (phase, before) = found.read(|plan| (plan.state().phase, plan.version()))?;
        let agreed = begin.change(context, &config, &entered)?;
        let mut runs = false;
        match begin.activate(context, &config, &entered, agreed)? {
            Approval::Given => runs = true,
            Approval::Awaited => {
                if phase == Phase::Draft {
                    let by = context.caller()?;
                    found.service.request_approval(&by, &found.id, "", Guard::NONE)?;
                }
                context.out.note(format!("`waypost approve {}` lets workers run it", found.id));
            }
        }
        let version = found.read(Plan::version)?;
        let (queue, workers) = workers_of(&found.plans, &found.id)?;
        let idle = found.read(|plan| run::no_executor(plan, &config))?;
        if let Some(failure) = idle.filter(|_| runs) {
            let hint = format!("  {}", typeable(&failure.hint));
            let lines = [&[failure.message][..], &failure.details, &[hint]].concat();
            context.out.note_fact(lines.join("\n"));
        } else if runs && workers.is_empty() && found.read(|plan| waits_for_worker(plan, &config))? {
            let nobody = no_worker(&queue);
            context
                .out
                .note(format!("{nobody}: start one with `waypost worker --queue {}`", shell_word(&queue)));
        }
        let unchanged = Committed::unchanged(found.id.clone(), version);
        let changed = entered.made || version > before;
        let what_happened = match changed {
            true => "submitted",
            false if plan_input::is_file(&self.what) => "the same plan is already in the store",
            false => "submitted before",
        };
        let waits = if runs { "" } else { ", and waits for a person's approval" };
        let reply = WriteReply { changed, ..WriteReply::from(&unchanged) };
        let mut more: Map<String, Value> = Map::new();
        more.insert("created".to_owned(), entered.made.into());
        more.insert("queue".to_owned(), queue.into());
        more.insert("workers".to_owned(), workers.len().into());
        context.answer(&found, &reply, &format!("{what_happened}{waits}"), None, more)
    }
}

/// Whether machines do something of a plan, and not only people.
fn waits_for_worker(plan: &Plan, config: &Config) -> bool {
    let people = HumanExecutors::of(config, plan);
    let has_work = |task: &Task| task.spec.work.is_some() || task.spec.check.is_some();
    plan.tasks().any(|(task, _)| has_work(task) && !task.state.status.is_finished() && !people.has(task))
}
