//! The worker of a server: runs plans in its own thread for as long as the server runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use waypost_config::Config;
use waypost_run::{Control, Controller, ExitPolicy, Options, RunObserver, RunWarning, Runner};
use waypost_store::PlanStore;

use crate::commands::run::failed_run;
use crate::commands::worker;
use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome, REMOVED};
use waypost_cli::load_config::Folders;
use waypost_cli::view::text;

/// Seconds that running tasks may take after the server was asked to stop.
const DRAIN_SECONDS_MAX: u64 = 60;
/// Seconds that tasks may take to stop.
const STOP_SECONDS_MAX: u64 = 15;
/// The tick interval; long, because nothing is drawn.
const LOOK: Duration = Duration::from_secs(60);

pub(super) struct EmbeddedWorker {
    controller: Controller,
    ended: oneshot::Receiver<()>,
}

impl EmbeddedWorker {
    /// Starts the worker thread. `runs` is true while it runs.
    pub(super) fn begin(
        context: &Context,
        plans: Arc<PlanStore>,
        config: Arc<Config>,
        folders: &Folders,
        runs: Arc<AtomicBool>,
    ) -> Outcome<Self> {
        let options = worker::options(&config, &[], &[], None, ExitPolicy::UntilAsked);
        let options = Options { authenticator: context.authenticator()?, ..options };
        let around = folders.execution_env();
        let own = context.for_server();
        let (tell, told) = channel();
        let (over, ended) = oneshot::channel();
        let work = move || {
            let begun = Runner::with(plans, config, around, options).map_err(failed_run);
            let mut runner = match begun {
                Ok(runner) => runner,
                Err(failure) => {
                    let _server_is_gone = tell.send(Err(failure));
                    return;
                }
            };
            runs.store(true, Ordering::Release);
            let _server_is_gone = tell.send(Ok(runner.controller()));
            let ended = runner.run(&mut Remarks(&own));
            runs.store(false, Ordering::Release);
            match ended {
                Ok(summary) => summary.unreported.iter().for_each(|words| own.out.note_now(words)),
                Err(error) => {
                    let failure = failed_run(error);
                    let words = match failure.code == REMOVED {
                        // The server notices it, too.
                        true => format!("the worker ended: {}", failure.message),
                        false => {
                            format!("the worker ended, and the server keeps running: {}", failure.message)
                        }
                    };
                    own.out.note_now(format!("{words} ({})", failure.hint));
                }
            }
            let _server_is_gone = over.send(());
        };
        let thread = std::thread::Builder::new().name("worker".to_owned()).spawn(work);
        thread.map_err(|error| Failure::failed(format!("no thread can be started: {error}"), ""))?;
        let controller =
            told.recv().map_err(|_| Failure::failed("the worker ended before it began", "try again"))??;
        Ok(Self { controller, ended })
    }

    /// Drains: starts nothing new and waits for running tasks up to a limit. A second request stops them.
    pub(super) async fn end(mut self, context: &Context, again: &mut mpsc::UnboundedReceiver<()>) {
        self.controller.say(Control::Drain);
        let drained = tokio::select! {
            drained = timeout(Duration::from_secs(DRAIN_SECONDS_MAX), &mut self.ended) => drained.is_ok(),
            _ = again.recv() => false,
        };
        if drained {
            return;
        }
        context.out.say("stopping what runs; the next worker starts it again");
        self.controller.say(Control::Stop);
        let stopped = timeout(Duration::from_secs(STOP_SECONDS_MAX), self.ended).await;
        if stopped.is_err() {
            context
                .out
                .say("the work did not stop in time; another worker takes it over when its lease expires");
        }
    }
}

/// Prints only what is not visible in a plan.
struct Remarks<'a>(&'a Context);

impl RunObserver for Remarks<'_> {
    fn asked_to_end(&mut self, control: Control) {
        match control {
            Control::Drain => {
                self.0.out.say("no further tasks start; waiting for running ones (Ctrl-C again stops them)")
            }
            Control::Stop => {}
        }
    }
    fn on_warning(&mut self, remark: &RunWarning) {
        // A server has plans of every kind, and says of each what it waits for.
        if matches!(remark, RunWarning::NoExecutor { .. } | RunWarning::UnknownExecutor { .. }) {
            return;
        }
        self.0.out.note_now(format!("worker: {}", text::one_line(&remark.to_string())));
    }
    fn interval(&self) -> Duration {
        LOOK
    }
}
