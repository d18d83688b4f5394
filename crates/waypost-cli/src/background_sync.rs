//! Syncs shared plans while a command runs that stays: `mcp`, `serve`, `worker`, `run` and `tui`, where the configuration says
//! `git.sync = "auto"`. A sync can be killed at any moment. Only the end of a run waits for a last one, so that a machine that is
//! gone afterwards leaves its results.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use waypost_config::GitSync;
use waypost_service::SyncOptions;

use crate::context::Context;
use crate::error::Outcome;
use crate::links::{Keeping, Telling};

/// How soon after a write the local branch has it.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(2);
/// How long the end of a run waits for the last exchange.
const LAST_EXCHANGE_MAX: Duration = Duration::from_secs(30);
/// Number of these intervals between two exchanges with the remote.
const EXCHANGE_INTERVALS: u32 = 15;

/// Runs a command, and syncs shared plans meanwhile if it stays.
pub fn around(
    context: &mut Context,
    keeping: Keeping,
    command: impl FnOnce(&mut Context) -> Outcome,
) -> Outcome {
    let telling = match keeping {
        Keeping::Always(telling) if is_wanted(context) => telling,
        Keeping::Always(_) | Keeping::Never | Keeping::Around => return command(context),
    };
    let (stop, stopped) = channel::<()>();
    let (done, ended) = channel::<()>();
    let is_run = telling == Telling::IntoLogs;
    let background = context.for_background();
    let named = thread::Builder::new().name("sync".to_owned());
    let keep = move || {
        keep_synced(&background, telling, &stopped);
        drop(done);
    };
    if let Err(error) = named.spawn(keep) {
        context.out.note_now(format!("shared plans are not synced: {error}"));
    }
    let outcome = command(context);
    drop(stop);
    if is_run && ended.recv_timeout(LAST_EXCHANGE_MAX) == Err(RecvTimeoutError::Timeout) {
        context
            .out
            .note_now("shared plans: the remote was not reached in time; the next sync sends what is left");
    }
    outcome
}

/// Whether the configuration asks for it. A command that cannot load the configuration says so itself.
fn is_wanted(context: &Context) -> bool {
    let background = context.for_background();
    let config = background.folders().and_then(|folders| background.load_config(&folders, None));
    config.is_ok_and(|config| config.git.sync == GitSync::Auto)
}

fn keep_synced(context: &Context, telling: Telling, stopped: &Receiver<()>) {
    let (mut round, mut latest, mut named) = (0, None, String::new());
    let mut is_over = false;
    loop {
        let synced = sync_once(context, is_over || round % EXCHANGE_INTERVALS == 0, &mut latest);
        let problem = synced.unwrap_or_else(|failure| Some(failure.one_line()));
        // The same problem is named once.
        if let Some(problem) = problem.filter(|problem| *problem != named) {
            if telling.is_at_once() {
                context.out.note_now(format!("shared plans: {problem}"));
            }
            named = problem;
        }
        if is_over {
            return;
        }
        round += 1;
        match stopped.recv_timeout(PUBLISH_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) if telling == Telling::IntoLogs => is_over = true,
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Exchanges everything, or publishes what was written since the last time. Returns why the remote was not reached.
fn sync_once(context: &Context, exchanges: bool, latest: &mut Option<u64>) -> Outcome<Option<String>> {
    if context.store_location()?.is_absent() {
        return Ok(None);
    }
    let plans = context.plans()?;
    let now = plans.latest()?;
    if !exchanges && *latest == Some(now) {
        return Ok(None);
    }
    let service = context.service(&plans);
    let shared = context.shared_branch()?.shared;
    let report = match exchanges {
        true => service.sync(&shared, &SyncOptions { fetch: true, push: true, from: None })?,
        false => service.publish_locally(&shared)?,
    };
    *latest = Some(plans.latest()?);
    Ok(report.remote_problem.filter(|_| exchanges))
}
