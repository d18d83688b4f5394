//! `waypost worker`: runs the active plans of its queues, no matter who submitted them, until it is stopped.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use waypost_config::Config;
use waypost_core::Status;
use waypost_run::{AfterFailure, Control, ExitPolicy, Follow, Options, RunEvent, Runner, TaskFilter};
use waypost_service::Authenticator;

use super::http_listener::{Metrics, address};
use super::run::progress::{self, Hooked, Scope};
use super::run::{Signals, failed_run, listen};
use crate::webhooks;
use waypost_cli::context::Context;
use waypost_cli::error::{Exit, Failure, Outcome, rescued};
use waypost_cli::load_config;
use waypost_cli::trust_prompt;
use waypost_cli::view::text;

const EXAMPLES: &str = "\
A worker runs all active plans of its queues; several workers share the work. It waits if the store is down, and never prompts. \
It leaves tasks of executors that it does not know, or does not take, to other workers. \
Ctrl-C or SIGTERM once, or `waypost workers drain NAME` from anywhere: start no further tasks and wait for running ones; again: \
stop them and return them to the queue. Exit code 0, 130 if stopped, or 6 if a newer Waypost has migrated the store. `waypost workers` lists all workers.

Examples:
  waypost worker
  waypost worker --queue nightly -j 2
  waypost worker --executor tests --executor noop
  waypost worker --until-idle --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Worker {
    /// Queue to work on; repeatable [default: all configured queues]
    #[arg(long, value_name = "Q")]
    queue: Vec<String>,
    /// Only take tasks of this executor; repeatable
    #[arg(long, value_name = "E")]
    executor: Vec<String>,
    /// Maximum number of concurrent tasks; queue limits apply as well
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    jobs: Option<u32>,
    /// Exit when no work is left
    #[arg(long)]
    until_idle: bool,
    /// Serve Prometheus metrics at ADDR:PORT, or a port on localhost (needs a token, like `waypost serve`)
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    metrics: Option<SocketAddr>,
    /// Configuration file that overrides all others
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Use the workers that dispatch executors have for this target
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
}

/// Rejects names that the configuration does not have.
fn known<'a>(asked: &'a [String], what: &str, have: impl Iterator<Item = &'a String> + Clone) -> Outcome {
    let names: Vec<&str> = have.clone().map(String::as_str).collect();
    match asked.iter().find(|asked| !names.contains(&asked.as_str())) {
        None => Ok(()),
        Some(name) => Err(Failure::new(
            Exit::Invalid,
            format!("no {what} is called {name}"),
            format!("the configuration has {}", names.join(", ")),
        )),
    }
}

/// The named queues, or all configured ones.
fn queues(config: &Config, named: &[String]) -> Vec<String> {
    if named.is_empty() { config.queues.keys().cloned().collect() } else { named.to_vec() }
}

/// The options of a worker: only the named queues and executors, or all if none are named.
pub(crate) fn options(
    config: &Config,
    named: &[String],
    executors: &[String],
    jobs: Option<u32>,
    patience: ExitPolicy,
) -> Options {
    let executors = (!executors.is_empty()).then(|| executors.iter().cloned().collect::<BTreeSet<String>>());
    Options {
        follow: Follow::Queues(queues(config, named)),
        after_failure: AfterFailure::KeepGoing,
        jobs,
        takes: TaskFilter { executors, leaves_unknown: true, tells_own_only: true },
        patience,
        authenticator: Authenticator::default(),
    }
}

impl Worker {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let folders = context.folders()?;
        let config = trust_prompt::load_config(context, &folders, self.config.as_deref())?;
        let config = Arc::new(load_config::for_target(config, self.target.as_deref())?);
        if let Some(not_trusted) = &config.not_trusted {
            return Err(context.untrusted(not_trusted)?);
        }
        known(&self.queue, "queue", config.queues.keys())?;
        known(&self.executor, "executor", config.executors.keys())?;
        let patience = if self.until_idle { ExitPolicy::UntilIdle } else { ExitPolicy::UntilAsked };
        let options = options(&config, &self.queue, &self.executor, self.jobs, patience);
        let options = Options { authenticator: context.authenticator()?, ..options };
        let plans = context.plans_to_add_to()?;
        let _metrics = match self.metrics {
            Some(listen) => Some(Metrics::begin(context, listen, Arc::clone(plans.store()), &config)?),
            None => None,
        };
        let relay = webhooks::start(context, &folders, &config, &plans, plans.latest()?)?;
        self.greet(context, &config);
        let mut runner =
            Runner::with(Arc::clone(&plans), Arc::clone(&config), folders.execution_env(), options)
                .map_err(failed_run)?;
        listen(runner.controller(), Signals::CountAll)?;
        let (mut done, mut failed) = (0, 0);
        let mut count = |event: &RunEvent| match event {
            RunEvent::TaskEnded { status: Status::Done, .. } => done += 1,
            RunEvent::TaskEnded { status: Status::Failed, .. } => failed += 1,
            RunEvent::TaskStarted { .. }
            | RunEvent::TaskWillRetry { .. }
            | RunEvent::TaskProgressed { .. }
            | RunEvent::TaskReported { .. }
            | RunEvent::TaskReleased { .. }
            | RunEvent::StartRefused { .. }
            | RunEvent::QuestionAsked { .. }
            | RunEvent::QuestionAnswered { .. }
            | RunEvent::TaskEnded { .. }
            | RunEvent::PlanPhaseChanged { .. } => {}
        };
        let inner = progress::watcher(context, Scope::Many, &config);
        let mut watcher = Hooked { inner, on_event: &mut count, on_tick: &mut |_| {} };
        let summary = rescued(&plans, runner.run(&mut watcher).map_err(failed_run))?;
        drop(watcher);
        let unreported: Vec<String> = summary.unreported.iter().cloned().chain(relay.finish()).collect();
        webhooks::report_failures(context, &unreported);
        if context.out.json {
            let line = json!({ "event": "worker_ended", "done": done, "failed": failed });
            context.out.line(line.to_string());
        } else {
            let done = text::count(done, "task");
            context.out.line(format!("the worker ended: {done} done, {failed} failed"));
        }
        match summary.asked_to_end {
            Some(Control::Stop) => {
                let hint = "the next worker starts its tasks again";
                Err(Failure::new(Exit::Interrupted, "the worker was stopped", hint))
            }
            Some(Control::Drain) | None => match summary.newer_schema {
                Some(schema) => Err(Failure::outdated(schema, "the worker finished its tasks and ended")),
                None => Ok(()),
            },
        }
    }

    fn greet(&self, context: &Context, config: &Config) {
        let bound = |queue: &String| {
            let concurrency = config.queues.get(queue).map_or(0, |queue| queue.concurrency);
            format!("{queue} (at most {concurrency} concurrent tasks)")
        };
        let queues: Vec<String> = queues(config, &self.queue).iter().map(bound).collect();
        let ends = if self.until_idle { "exits when no work is left" } else { "Ctrl-C stops it" };
        context.out.say(format!("working on queue {}; {ends}", queues.join(", ")));
    }
}
