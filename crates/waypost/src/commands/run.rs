//! `waypost run`: checks a plan as a whole, asks for approval where needed, runs it, and reports what is left to do.

mod dry_run;
pub(crate) mod prepare;
pub(crate) mod progress;
pub(crate) mod summary;
mod watch_file;
mod write_back;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde_json::json;
use signal_hook::consts::SIGTERM;
use waypost_config::{Config, Executor};
use waypost_core::{Actor, Draft, Phase, Plan, PlanId, Status, Task};
use waypost_exec::{AttemptKey, left_remote_jobs};
use waypost_formats::Dialect;
use waypost_run::{
    AfterFailure, Control, Controller, ExitPolicy, Options, RunError, RunObserver, Runner, Summary, View,
};
use waypost_store::PlanStore;
use waypost_text::shell_word;
use waypost_tui::Start;
use waypost_tui::run_view::Intent;

use prepare::{Approval, RunRequest};
use progress::{Hooked, Scope};
use watch_file::{FileWatcher, Quiet};
use write_back::WriteBack;

use super::tui;
use crate::webhooks;
use waypost_cli::approval_prompt::Answer;
use waypost_cli::context::Context;
use waypost_cli::error::{Exit, Failure, Outcome, rescued};
use waypost_cli::load_config::{self, Folders};
use waypost_cli::options::input_format;
use waypost_cli::plan_input;
use waypost_cli::runner::typeable;
use waypost_cli::signals;
use waypost_cli::trust_prompt;
use waypost_cli::view::text;

const EXAMPLES: &str = "\
The configuration (.waypost/config.toml) defines what executors may run; the plan never does. \
A plan that is already in the store continues where it was. \
Ctrl-C once: start no further tasks and wait; again: stop the work. The plan can be continued later. \
Exit code 0 if the plan completed, 1 otherwise, 130 if interrupted. \
--write-back keeps the file up to date in its own format, and leaves it alone if it was edited meanwhile. \
--watch reloads the file whenever it is saved, keeps the results of unchanged tasks, and runs new ones.

Examples:
  waypost run plan.json
  waypost run kq3 -j 2
  waypost run plan.json --dry-run
  waypost run kq3 --retry-failed
  waypost run plan.json --yes --json
  waypost run plan.json --watch --write-back";

/// Executors that are named to somebody whose plan names none.
const EXECUTORS_NAMED_MAX: usize = 8;
/// What a configuration without an executor lacks.
const NO_EXECUTOR: &str = "  \
  an executor is a program or an agent that works on tasks; define one in .waypost/config.toml, for example:
    [executors.claude]
    kind = \"agent\"
    agent = \"claude\"
  `waypost init --example` writes one that only prints, and a plan to try it with";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Plan id or prefix, or a file of any format
    #[arg(value_name = "FILE|PLAN|-")]
    what: String,
    /// Input format of the file [default: detect]
    #[arg(long, value_name = "FORMAT", value_parser = input_format())]
    format: Option<Dialect>,
    /// Place the plan on this queue
    #[arg(long)]
    queue: Option<String>,
    /// Maximum number of concurrent tasks; the queue's limit applies as well
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    jobs: Option<u32>,
    /// Executor for tasks without one [default: `default_executor` of the configuration]
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Print what would run, in which order, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Approve the plan as the person who runs it, without a question; needs --seen for a plan that others wrote
    #[arg(short, long)]
    yes: bool,
    /// Digest that you have seen, as `preview` prints it; with --yes
    #[arg(long, value_name = "DIGEST", requires = "yes")]
    seen: Option<String>,
    /// After a failure, keep running tasks that do not depend on it (default)
    #[arg(long, conflicts_with = "fail_fast")]
    keep_going: bool,
    /// After a failure, start no further tasks
    #[arg(long)]
    fail_fast: bool,
    /// First reset the tasks that failed or were cancelled, and those skipped because of them
    #[arg(long)]
    retry_failed: bool,
    /// Write results back to the file, in its own format
    #[arg(long, conflicts_with = "dry_run")]
    write_back: bool,
    /// Keep running and reload the file whenever it changes, until Ctrl-C
    #[arg(short, long, conflicts_with = "dry_run")]
    watch: bool,
    /// Show the run full-screen (see `waypost tui`)
    #[arg(long, conflicts_with_all = ["dry_run", "watch", "write_back", "jobs", "fail_fast", "config"])]
    tui: bool,
    // Without effect: the question no longer offers the full-screen view.
    #[arg(long, hide = true, conflicts_with = "tui")]
    no_tui: bool,
    /// Configuration file that overrides all others
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Use the workers that dispatch executors have for this target
    #[arg(long, value_name = "NAME", conflicts_with = "tui")]
    target: Option<String>,
}

impl Run {
    /// Whether the run itself reads or writes its file.
    pub(crate) fn keeps_its_file(&self) -> bool {
        self.write_back || self.watch
    }

    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let folders = context.folders()?;
        let config = match self.dry_run && self.config.is_none() {
            // Nothing runs, so what would run can be shown before anybody trusts it.
            true => load_config::load_untrusted(&folders, context.actor()?.kind)?,
            false => trust_prompt::load_config(context, &folders, self.config.as_deref())?,
        };
        let config = Arc::new(load_config::for_target(config, self.target.as_deref())?);
        let (mut draft, mut back, text) = self.source(context)?;
        if let Some(queue) = &self.queue {
            draft.spec.queue.clone_from(queue);
        }
        let begin = self.begin(&config);
        let mut draft = prepare::runnable_by(context, &config, draft, begin.executor)?;
        if self.dry_run
            && let Some(stored) = begin.stored(context, &config, &draft)?
        {
            draft = prepare::runnable_by(context, &config, stored, begin.executor)?;
        }
        self.mind_the_queue(context, &config, draft.draft());
        if self.dry_run {
            let retry = if self.retry_failed { dry_run::Retry::Failed } else { dry_run::Retry::Nothing };
            return dry_run::print(context, &config, draft.draft(), self.jobs, retry);
        }
        let since = webhooks::since(context, &config)?;
        let entered = begin.enter(context, &config, draft)?;
        let (plans, id) = (Arc::clone(&entered.plans), entered.id.clone());
        let outcome = (|| {
            if self.retry_failed {
                retry_failed(context, &plans, &id)?;
            }
            if plans.with_plan(&id, |plan| plan.state().phase.is_finished())? {
                end_left_jobs(context, &folders, &config, &plans, &id)?;
            }
            if !self.watch && self.is_over_already(context, &plans, &id)? {
                if let Some(back) = &mut back {
                    plans.with_plan(&id, |plan| back.finish(context, plan))?;
                }
                return Ok(());
            }
            let agreed = begin.change(context, &config, &entered)?;
            if self.tui {
                // Whatever has to be approved first, and was not yet, is shown there.
                match agreed {
                    Some(agreed) => {
                        begin.activate(context, &config, &entered, Some(agreed))?;
                    }
                    None => {
                        let (service, by) = (context.service_with(&plans, &config)?, context.caller()?);
                        service.start(&by, &id, entered.named, waypost_service::Guard::NONE)?;
                    }
                }
                tui::show(context, Start::Run(tui::key(&id), Intent::Execute), false)?;
                return plans.with_plan(&id, |plan| summary::print(context, plan, &Summary::of_others()))?;
            }
            let over = plans.with_plan(&id, |plan| plan.state().phase.is_finished())?;
            if let Some(failure) = plans.with_plan(&id, |plan| cannot_begin(plan, &config))?
                && !self.watch
            {
                return Err(failure);
            }
            if !over && begin.activate(context, &config, &entered, agreed)? == Approval::Awaited {
                return Err(prepare::not_approved(context, &self.what, &plans, &id)?);
            }
            if let Some(failure) = plans.with_plan(&id, |plan| only_by_hand(plan, &config))? {
                return Err(failure);
            }
            let relay = webhooks::start(context, &folders, &config, &plans, since)?;
            let mut summary = self.follow(context, &folders, &config, &plans, &id, &text, back.as_mut())?;
            summary.unreported.extend(relay.finish());
            webhooks::report_failures(context, &summary.unreported);
            if let Some(back) = &mut back {
                plans.with_plan(&id, |plan| back.finish(context, plan))?;
            }
            plans.with_plan(&id, |plan| {
                let ended = summary::print(context, plan, &summary);
                ended.map_err(|failure| match failure.exit {
                    Exit::Failed => no_executor(plan, &config).unwrap_or(failure),
                    Exit::Usage
                    | Exit::Conflict
                    | Exit::Invalid
                    | Exit::NotFound
                    | Exit::Outdated
                    | Exit::Interrupted => failure,
                })
            })?
        })();
        rescued(&plans, outcome)
    }

    fn begin<'a>(&'a self, config: &'a Config) -> RunRequest<'a> {
        RunRequest {
            what: &self.what,
            queue: self.queue.as_deref(),
            answer: Answer { yes: self.yes, seen: self.seen.as_deref() },
            executor: self.executor.as_deref().or(config.default_executor.as_deref()),
            may_wait: false,
        }
    }

    /// Returns the requested plan, how its file is written back, and the file's text if it is watched.
    fn source(&self, context: &mut Context) -> Outcome<(Draft, Option<WriteBack>, String)> {
        plan_input::names_one_thing(context, &self.what)?;
        if plan_input::is_file(&self.what) {
            let file = plan_input::file_plan(context, &self.what, self.format)?;
            if self.watch && self.what == "-" {
                return Err(Failure::usage("standard input cannot be watched", "name a file"));
            }
            let back = self.write_back.then(|| WriteBack::new(&self.what, &file)).transpose()?;
            let text = if self.watch { file.text } else { String::new() };
            return Ok((file.draft, back, text));
        }
        let draft = plan_input::one_plan(context, &self.what, self.format)?;
        if self.watch || self.write_back {
            let message =
                format!("{} is a plan of the store; --watch and --write-back need a file", self.what);
            return Err(Failure::usage(message, "name the file that the plan comes from"));
        }
        Ok((draft, None, String::new()))
    }

    /// Notes a `--jobs` that exceeds the queue's limit and so has no effect.
    fn mind_the_queue(&self, context: &mut Context, config: &Config, draft: &Draft) {
        let queue = Config::queue_name(&draft.spec.queue);
        let concurrency = config.queues.get(queue).map_or(0, |queue| queue.concurrency);
        if let Some(jobs) = self.jobs.filter(|&jobs| jobs > concurrency) {
            context.out.note(format!(
                "-j {jobs} has no effect: queue {queue} allows {concurrency} concurrent tasks (queues.{queue}.concurrency)"
            ));
        }
    }

    /// Runs the plan until it is over; with --watch, until interrupted.
    #[expect(clippy::too_many_arguments, reason = "a run needs what stands around it")]
    fn follow(
        &self,
        context: &mut Context,
        folders: &Folders,
        config: &Arc<Config>,
        plans: &Arc<PlanStore>,
        id: &PlanId,
        text: &str,
        mut back: Option<&mut WriteBack>,
    ) -> Outcome<Summary> {
        let options = Options {
            after_failure: if self.fail_fast { AfterFailure::FailFast } else { AfterFailure::KeepGoing },
            jobs: self.jobs,
            patience: if self.watch { ExitPolicy::UntilAsked } else { ExitPolicy::UntilOver },
            authenticator: context.authenticator()?,
            ..Options::plans(vec![id.clone()])
        };
        let around = folders.execution_env();
        let mut runner =
            Runner::with(Arc::clone(plans), Arc::clone(config), around, options).map_err(failed_run)?;
        let controller = runner.controller();
        listen(controller.clone(), Signals::TerminateAtOnce)?;
        let mut again = match self.watch {
            true => Some(FileWatcher::begin(&self.what, self.format, text, config, plans, id, &controller)?),
            false => None,
        };
        let total = plans.with_plan(id, |plan| plan.counts().total as usize)?;
        context.out.say(format!("running plan {id} ({})", text::count(total, "task")));
        loop {
            let asking = again.as_ref().is_some_and(FileWatcher::is_asking);
            let scope = if self.watch { Scope::Staying(id.clone()) } else { Scope::One(id.clone()) };
            let inner: Box<dyn RunObserver> =
                if asking { Box::new(Quiet) } else { progress::watcher(context, scope, config) };
            let mut write_back = |view: &View<'_>| {
                if let (Some(back), Some(plan)) = (&mut back, view.plans.first()) {
                    back.put_again(plan);
                }
            };
            let mut watcher = Hooked { inner, on_event: &mut |_| {}, on_tick: &mut write_back };
            let summary = runner.run(&mut watcher).map_err(failed_run)?;
            drop(watcher);
            let Some(again) = again.as_mut().filter(|_| summary.aside) else { return Ok(summary) };
            let own = back.as_deref().map(WriteBack::known);
            let taken = again.poll(context, &self.begin(config), own);
            if let (Some(back), Some(text)) = (&mut back, taken) {
                plans.with_plan(id, |plan| back.was_read(&text, plan))?;
            }
        }
    }

    /// Whether nothing is left to run. A plan that did not end well, or is paused, is an error with a hint.
    fn is_over_already(&self, context: &mut Context, plans: &PlanStore, id: &PlanId) -> Outcome<bool> {
        let (phase, counts) = plans.with_plan(id, |plan| (plan.state().phase, plan.counts()))?;
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
                let message =
                    format!("plan {id} has ended as {}; none of its tasks can start", phase.as_str());
                Err(Failure::failed(
                    message,
                    format!(
                        "`waypost run {id} --retry-failed` runs again what failed; `waypost retry {id}` only resets it"
                    ),
                ))
            }
            Phase::Paused => {
                let message = format!("plan {id} is paused");
                Err(Failure::failed(message, format!("`waypost resume {id}`, then run it again")))
            }
            Phase::Draft | Phase::AwaitingApproval | Phase::Active => Ok(false),
        }
    }
}

/// Ends the remote jobs that a dead run of a plan left behind. The plan has ended since, so that nothing follows them.
fn end_left_jobs(
    context: &mut Context,
    folders: &Folders,
    config: &Arc<Config>,
    plans: &Arc<PlanStore>,
    id: &PlanId,
) -> Outcome<()> {
    let around = folders.execution_env();
    if !left_remote_jobs(&around).iter().any(|(note, _)| note.plan == *id) {
        return Ok(());
    }
    let options = Options { authenticator: context.authenticator()?, ..Options::plans(Vec::new()) };
    let mut runner =
        Runner::with(Arc::clone(plans), Arc::clone(config), around, options).map_err(failed_run)?;
    runner.run(&mut Quiet).map(drop).map_err(failed_run)
}

/// Explains how machines get something to do, if a plan that has not begun has nothing for them: then it is not begun.
fn cannot_begin(plan: &Plan, config: &Config) -> Option<Failure> {
    let is_new = matches!(plan.state().phase, Phase::Draft | Phase::AwaitingApproval);
    (is_new && plan.counts().total > 0 && !plan.has_machine_work()).then(|| without_executor(plan, config))
}

/// Explains how machines get something to do, if people and agents work on the plan and it has nothing for machines: a run
/// would only wait for them.
fn only_by_hand(plan: &Plan, config: &Config) -> Option<Failure> {
    let mut running = plan.running().map(|task| task.state.worker.as_deref().unwrap_or_default()).peekable();
    let is_by_hand = running.peek().is_some() && running.all(|worker| Actor::of_worker(worker).is_some());
    let has_work = plan.tasks().any(|(task, _)| task.spec.work.is_some() || task.spec.check.is_some());
    if plan.state().phase == Phase::Active && is_by_hand && !has_work {
        return Some(without_executor(plan, config));
    }
    None
}

/// Explains how machines get something to do, if the plan that a run has left gives them nothing.
pub(crate) fn no_executor(plan: &Plan, config: &Config) -> Option<Failure> {
    let counts = plan.counts();
    let is_untouched = counts.in_progress() == 0 && counts.failed == 0 && plan.asking().next().is_none();
    if plan.state().phase != Phase::Active || plan.has_machine_work() || !is_untouched {
        return None;
    }
    Some(without_executor(plan, config))
}

fn without_executor(plan: &Plan, config: &Config) -> Failure {
    let (id, counts) = (plan.id(), plan.counts());
    if counts.total == 0 {
        let message = format!("plan {id} has no tasks, so there is nothing to run");
        return Failure::failed(message, format!("`waypost task add {id} TEXT` adds one"));
    }
    let message = format!("no task of plan {id} names an executor, so there is nothing for machines to run");
    let by_hand = format!("people and agents work on it with `waypost next {id} --claim`");
    let is_program = |executor: &Executor| !matches!(executor, Executor::Noop | Executor::Human);
    let own: Vec<&str> = config
        .executors
        .iter()
        .filter(|(_, executor)| is_program(executor))
        .map(|(name, _)| name.as_str())
        .take(EXECUTORS_NAMED_MAX)
        .collect();
    let failure = match own.first() {
        Some(first) => {
            let first = shell_word(first);
            let hint = format!("`waypost run {id} --executor {first}` runs its tasks with it; {by_hand}");
            let names = own.join(", ");
            let mut failure = Failure::failed(message, hint)
                .with_detail(format!("  the configuration has the executors {names}"));
            failure.facts.insert("executors".to_owned(), own.into());
            failure
        }
        None if let Some(not_trusted) = &config.not_trusted => {
            let hint = format!("{}; {by_hand}", not_trusted.hint());
            Failure::failed(message, hint).with_detail(format!("  {not_trusted}"))
        }
        None => {
            let hint = format!("then `waypost run {id} --executor claude` runs its tasks with it; {by_hand}");
            let mut failure = Failure::failed(message, hint);
            failure.details = NO_EXECUTOR.lines().map(|line| typeable(line).into_owned()).collect();
            let example: Vec<&str> =
                NO_EXECUTOR.lines().filter_map(|line| line.strip_prefix("    ")).collect();
            failure.facts.insert("configuration".to_owned(), example.join("\n").into());
            failure
        }
    };
    Failure { code: "no_executor".to_owned(), ..failure }
}

/// Resets what failed or was cancelled, if anything did.
fn retry_failed(context: &Context, plans: &Arc<PlanStore>, id: &PlanId) -> Outcome {
    let has_failed = |task: &Task| matches!(task.state.status, Status::Failed | Status::Cancelled);
    if plans.with_plan(id, |plan| plan.tasks().any(|(task, _)| has_failed(task)))? {
        context.service(plans).retry_plan(&context.caller()?, id, waypost_service::Guard::NONE)?;
    }
    Ok(())
}

/// What to do if logs cannot be written.
const LOGS_HINT: &str = "let this user write there, free disk space, or remove what is in its place";

pub(crate) fn failed_run(error: RunError) -> Failure {
    let message = error.to_string();
    match error {
        RunError::Store(error) => error.into(),
        RunError::StoreFailed(error) => Failure { message, ..error.into() },
        RunError::StoppedInOutage { error, unrecorded } => {
            let attempt =
                |key: &AttemptKey| json!({ "plan": key.plan, "task": key.task, "attempt": key.attempt });
            let unrecorded: Vec<_> = unrecorded.iter().map(attempt).collect();
            let failure = Failure { exit: Exit::Interrupted, message, ..error.into() };
            failure.with_fact("unrecorded", unrecorded)
        }
        RunError::Plan(error) => error.into(),
        RunError::Logs { .. } => Failure::failed(message, LOGS_HINT),
        RunError::PlanLost { error, .. } => Failure { message, ..(*error).into() },
    }
}

/// How signals are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signals {
    /// SIGTERM stops the work at once: its sender may not wait long.
    TerminateAtOnce,
    /// SIGTERM counts as a Ctrl-C: the first one only prevents new starts.
    CountAll,
}

/// Set once a signal was received.
#[derive(Clone, Debug)]
pub(crate) struct InterruptFlag(Arc<AtomicBool>);

impl InterruptFlag {
    /// Whether a signal was received.
    pub(crate) fn anything(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Handles Ctrl-C: the first one prevents new starts, the second stops the work.
pub(crate) fn listen(controller: Controller, how: Signals) -> Outcome<InterruptFlag> {
    let heard = InterruptFlag(Arc::default());
    let tell = heard.clone();
    let mut count = 0;
    signals::listen(move |signal| {
        tell.0.store(true, Ordering::Release);
        count += if signal == SIGTERM && how == Signals::TerminateAtOnce { 2 } else { 1 };
        controller.say(if count == 1 { Control::Drain } else { Control::Stop });
    })?;
    Ok(heard)
}
