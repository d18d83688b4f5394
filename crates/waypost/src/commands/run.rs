//! `waypost run`: looks at a plan as a whole, asks where a person has to, and runs it. What is left to do is said.

mod assign;
mod dry;
mod report;
mod summary;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use waypost_core::{ActorKind, Command, Draft, Phase, Plan, PlanChanges, PlanId, Problem, Refusal, Wrong};
use waypost_dialects::Dialect;
use waypost_engine::config::Queue;
use waypost_engine::{AfterFailure, Config, Control, Controller, RunError, Runner, admit};
use waypost_store::{NewPlan, Plans, WriteRequest};

use crate::cli::dialect;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::output;
use crate::setup::{self, Folders};
use crate::source;
use crate::view::text;

/// Tasks that a question names.
const TASKS_NAMED_MAX: usize = 10;

const EXAMPLES: &str = "\
What a task's executor may run stands in the configuration (.waypost/config.toml), never in the plan.
A plan that is in the store already goes on where it was.
Ctrl-C: start nothing new and wait; again: stop the work. The plan can always go on later.
Exit code 0 when the plan is completed, 1 otherwise, 130 when it was interrupted.

Examples:
  waypost run plan.json
  waypost run kq3 -j 2
  waypost run plan.json --dry-run
  waypost run plan.json --yes --json";

// What to run, and how.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// A plan of the store, or a file of any format
    #[arg(value_name = "FILE|PLAN|-")]
    what: String,
    /// The file's format (otherwise it is found out)
    #[arg(long, value_name = "FORMAT", value_parser = dialect())]
    format: Option<Dialect>,
    /// Place the plan on this queue
    #[arg(long)]
    queue: Option<String>,
    /// Run so many tasks at the same time, whatever the queue says
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    jobs: Option<u32>,
    /// Give tasks without work to this executor (otherwise to the configuration's `default_executor`, if it has one)
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Say what would be run, in which order, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Approve the plan as the person who runs it
    #[arg(short, long)]
    yes: bool,
    /// After a failure, go on with what does not depend on it (this is the default)
    #[arg(long, conflicts_with = "fail_fast")]
    keep_going: bool,
    /// After a failure, start nothing new
    #[arg(long)]
    fail_fast: bool,
    /// A file of configuration over all others
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Run {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let folders = Folders::find(context)?;
        let mut config = setup::config(&folders, self.config.as_deref())?;
        let mut draft = source::one_plan(context, &self.what, self.format)?;
        if let Some(queue) = &self.queue {
            draft.spec.queue.clone_from(queue);
        }
        let executor = self.executor.clone().or_else(|| config.default_executor.clone());
        if let Some(executor) = &executor {
            assign::in_draft(&mut draft, executor);
        }
        let problems = admit::problems(&config, &draft);
        if !problems.is_empty() {
            return Err(not_allowed(&config, &problems));
        }
        if let Some(jobs) = self.jobs {
            let queue = Config::queue_name(&draft.spec.queue).to_owned();
            config.queues.insert(queue, Queue { concurrency: jobs });
        }
        if self.dry_run {
            return dry::print(context, &config, &draft);
        }
        let (plans, id) = self.in_store(context, &config, draft, executor.as_deref())?;
        let plans = Arc::new(plans);
        if self.is_over_already(context, &plans, &id)? {
            return Ok(());
        }
        if let Some(executor) = &executor {
            assign::in_plan(&plans, &id, executor, &context.actor()?, self.yes)?;
        }
        self.let_it_begin(context, &config, &plans, &id)?;
        let after_failure = if self.fail_fast { AfterFailure::FailFast } else { AfterFailure::KeepGoing };
        let config = Arc::new(config);
        let mut watcher = report::watcher(context, &id, &config);
        let around = folders.surroundings();
        let mut runner = Runner::new(Arc::clone(&plans), config, around, after_failure, vec![id.clone()])
            .map_err(failed_run)?;
        listen(runner.controller())?;
        let total = plans.look(&id, |plan| plan.counts().total as usize)?;
        context.out.say(format!("running plan {id} ({})", text::count(total, "task")));
        let summary = runner.run(watcher.as_mut()).map_err(failed_run)?;
        drop(watcher);
        drop(runner);
        for words in &summary.unreported {
            if context.out.json {
                let line = serde_json::json!({ "event": "report_failed", "message": words });
                context.out.line(line.to_string());
            } else {
                context.out.note(words);
            }
        }
        plans.look(&id, |plan| summary::print(context, plan, &summary))?
    }

    /// The plan in the store: the one that is meant, the one that the file has been before, or a new one.
    fn in_store(
        &self,
        context: &mut Context,
        config: &Config,
        draft: Draft,
        executor: Option<&str>,
    ) -> Outcome<(Plans, PlanId)> {
        if !source::is_file(&self.what) {
            let found = context.find(&self.what)?;
            if let Some(queue) = &self.queue {
                let changes = PlanChanges { queue: Some(queue.clone()), ..PlanChanges::default() };
                write(context, &found.plans, &found.id, Command::RevisePlan(Box::new(changes)))?;
            }
            return Ok((found.plans, found.id));
        }
        let plans = context.plans_to_add_to()?;
        if let Some(id) = &draft.id {
            let mut known = plans.look(id, Plan::to_draft);
            if let (Ok(known), Some(executor)) = (&mut known, executor) {
                assign::in_draft(known, executor);
            }
            match known {
                Ok(known) if asks_the_same(&known, &draft) => return Ok((plans, id.clone())),
                Ok(_) => {
                    let message = format!(
                        "plan {id} is in the store already, and {} asks for something else",
                        self.what
                    );
                    let hint = format!(
                        "write the file into the plan with `waypost update {id} --from-file {}`, or run the plan with `waypost run {id}`",
                        self.what
                    );
                    return Err(Failure {
                        code: "other_content".to_owned(),
                        ..Failure::failed(message, hint)
                    });
                }
                Err(waypost_store::WriteError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let by = context.actor()?;
        let approval_required = config.approval.required();
        let made = plans.create(NewPlan { id: draft.id.clone(), by, draft, approval_required })?;
        Ok((plans, made.plan))
    }

    /// Whether nothing is left to run; a plan that ended otherwise than well says what to do.
    fn is_over_already(&self, context: &mut Context, plans: &Plans, id: &PlanId) -> Outcome<bool> {
        let (phase, counts) = plans.look(id, |plan| (plan.state().phase, plan.counts()))?;
        match phase {
            Phase::Completed => {
                if context.out.json {
                    context.out.line(
                        serde_json::json!({ "event": "run_ended", "plan": id, "phase": phase }).to_string(),
                    );
                } else {
                    context.out.line(format!(
                        "plan {id} is completed: all of its {} are settled",
                        text::count(counts.total as usize, "task")
                    ));
                }
                Ok(true)
            }
            Phase::Failed | Phase::Cancelled => {
                let message = format!("plan {id} has ended as {}, and nothing in it can start", phase.word());
                Err(Failure::failed(
                    message,
                    format!("`waypost retry {id}` sets back what failed, then run it again"),
                ))
            }
            Phase::Paused => {
                let message = format!("plan {id} is paused");
                Err(Failure::failed(
                    message,
                    format!("`waypost resume {id}` lets it go on, then run it again"),
                ))
            }
            Phase::Draft | Phase::AwaitingApproval | Phase::Active => Ok(false),
        }
    }

    /// Makes the plan active, with a person's approval where one is needed.
    fn let_it_begin(&self, context: &mut Context, config: &Config, plans: &Plans, id: &PlanId) -> Outcome {
        let (phase, version, needed, draft) = plans.look(id, |plan| {
            let state = plan.state();
            let needed = state.approval_required && state.approval.is_none();
            (state.phase, plan.version(), needed, needed.then(|| plan.to_draft()))
        })?;
        match (phase, draft) {
            (Phase::Active, _) => Ok(()),
            (_, None) => write(context, plans, id, Command::Activate),
            (_, Some(draft)) => {
                debug_assert!(needed);
                self.approve(context, config, plans, id, version, &draft)
            }
        }
    }

    fn approve(
        &self,
        context: &mut Context,
        config: &Config,
        plans: &Plans,
        id: &PlanId,
        version: u64,
        draft: &Draft,
    ) -> Outcome {
        let by = context.actor()?;
        if by.kind != ActorKind::Person {
            let refusal = Refusal::OnlyAPerson { what: "approve a plan", by: by.kind };
            let mut failure: Failure = refusal.into();
            failure.message =
                format!("plan {id} runs nothing before a person has approved it: {}", failure.message);
            failure.hint = format!("ask a person to look at it and to say `waypost approve {id}`");
            return Err(failure);
        }
        if !self.yes {
            if !output::can_ask() || context.out.json {
                let message = format!(
                    "plan {id} runs nothing before a person has approved it, and nobody can be asked here"
                );
                let hint = format!(
                    "look at it with `waypost run {id} --dry-run`, then say --yes or `waypost approve {id}`"
                );
                return Err(Failure { code: "needs_approval".to_owned(), ..Failure::failed(message, hint) });
            }
            context.out.say(format!(
                "plan {id} ({}) gives work to machines:",
                text::count(draft.tasks.len(), "task")
            ));
            let work: Vec<String> = dry::commands(config, draft);
            for line in work.iter().take(TASKS_NAMED_MAX) {
                context.out.say(format!("  {}", text::short(line, context.out.columns.saturating_sub(2))));
            }
            if work.len() > TASKS_NAMED_MAX {
                context
                    .out
                    .say(format!("  … and {} more (--dry-run shows all)", work.len() - TASKS_NAMED_MAX));
            }
            let answer = output::ask("approve and run it? [y/N]").unwrap_or_default();
            if !matches!(answer.trim(), "y" | "Y" | "yes" | "Yes") {
                return Err(Failure::failed(format!("plan {id} was not approved, and nothing ran"), ""));
            }
        }
        // Of the version that was shown: if somebody has changed it since, nothing is approved.
        write(context, plans, id, Command::Approve { version, note: String::new() })
    }
}

fn write(context: &Context, plans: &Plans, id: &PlanId, command: Command) -> Outcome {
    let request = WriteRequest {
        plan: id.clone(),
        by: context.actor()?,
        commands: vec![command],
        known_version: None,
        lease_seconds: None,
    };
    plans.write(request)?;
    Ok(())
}

/// Whether a file says nothing else than the plan in the store: the same tasks, each asking the same.
fn asks_the_same(known: &Draft, draft: &Draft) -> bool {
    known.tasks.len() == draft.tasks.len()
        && draft.tasks.iter().all(|task| {
            let other = known.tasks.iter().find(|other| other.spec.id == task.spec.id);
            other.is_some_and(|other| other.spec.asks_the_same_as(&task.spec))
        })
}

fn not_allowed(config: &Config, problems: &[Problem]) -> Failure {
    let listed: Vec<(Option<String>, Problem)> =
        problems.iter().map(|problem| (None, problem.clone())).collect();
    let mut failure = Failure::invalid("the plan", &listed);
    let what = match problems {
        [one] => one.to_string(),
        many => text::count(many.len(), "problem"),
    };
    failure.message = format!("the configuration does not allow this plan, and nothing ran: {what}");
    if problems.iter().any(|problem| matches!(problem.wrong, Wrong::UnknownExecutor { .. })) {
        let names: Vec<&str> = config.executors.keys().map(String::as_str).collect();
        failure.hint = format!(
            "the configuration has the executors {}; docs/configuration.md tells how to add one",
            names.join(", ")
        );
    }
    failure
}

fn failed_run(error: RunError) -> Failure {
    match error {
        RunError::Store(error) => error.into(),
        RunError::Plan(error) => error.into(),
    }
}

/// Hears Ctrl-C: the first time nothing new is started, the second time the work is stopped. A request to terminate
/// stops it at once.
fn listen(controller: Controller) -> Outcome {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]);
    let mut signals =
        signals.map_err(|error| Failure::failed(format!("signals cannot be heard: {error}"), ""))?;
    let hear = move || {
        let mut heard = 0;
        for signal in &mut signals {
            heard += if signal == SIGTERM { 2 } else { 1 };
            controller.say(if heard == 1 { Control::Drain } else { Control::Stop });
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(hear);
    thread.map(drop).map_err(|error| Failure::failed(format!("no thread can be started: {error}"), ""))
}
