//! `waypost sync`: exchanges shared plans with the remote, and merges what other clones wrote.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use signal_hook::low_level::emulate_default_handler;
use waypost_service::{SyncOptions, SyncReport};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::runner::typeable;
use waypost_cli::signals;
use waypost_cli::view::text;

/// How long a sync may take before it says that it goes on.
const PATIENCE: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Commits what this clone wrote to the branch of shared plans, fetches the remote's, merges both by meaning, and pushes \
without force. It can be stopped at any moment and run again. Without a remote, it only writes the branch.

Examples:
  waypost sync
  waypost sync --no-push
  waypost sync --from origin/waypost-of-robin";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sync {
    /// Read the remote, and write nothing to it
    #[arg(long)]
    no_push: bool,
    /// Reach no remote: write the branch, and import what `git fetch` brought
    #[arg(long)]
    offline: bool,
    /// Also merge the plans of this commit, branch or reference
    #[arg(long, value_name = "REF")]
    from: Option<String>,
}

impl Sync {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let plans = context.plans_to_add_to()?;
        let service = context.service(&plans);
        let found = context.shared_branch()?;
        let options =
            SyncOptions { fetch: !self.offline, push: !self.no_push && !self.offline, from: self.from };
        signals::listen(|signal| {
            waypost_git::end_commands();
            // It was one of two that have a default.
            let _ended = emulate_default_handler(signal);
        })?;
        let (done, waits) = channel::<()>();
        let background = context.for_background();
        if options.fetch {
            thread::spawn(move || {
                if waits.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    let what = "still syncing: large plans take a while, and a remote that does not answer is given up after 120 \
                                seconds";
                    background.out.note_now(what);
                }
            });
        }
        let report = service.sync(&found.shared, &options)?;
        drop(done);
        if context.out.json {
            context.out.value(&report)?;
        } else {
            show(context, &report, &found.branch_name());
        }
        if !report.strange.is_empty() {
            let remote = report.remote.as_deref().unwrap_or("the remote");
            let plans: Vec<&str> = report.strange.iter().map(waypost_core::PlanId::as_str).collect();
            let message = format!(
                "sync: nothing was pushed: {} has records that came neither from here nor from {remote}",
                plans.join(", ")
            );
            let hint = "`waypost trust` accepts them; until then no agent is offered these plans";
            return Err(Failure { code: "not_pushed".to_owned(), ..Failure::failed(message, hint) });
        }
        if options.fetch {
            found.check_remote()?;
        }
        match &report.remote_problem {
            Some(problem) if options.fetch => {
                let remote = report.remote.as_deref().unwrap_or("the remote");
                let message = format!("sync: {remote}: {problem}");
                let way_out = match report.remote_overwritten {
                    true => format!(
                        "if somebody overwrote it, `git push --force {remote} {}` puts the plans back; otherwise set \
                         git.ref to a branch that only Waypost uses",
                        report.branch
                    ),
                    false => format!(
                        "`git fetch {remote}` asks for what git needs to sign in; if pushing to the branch is forbidden, set \
                         git.ref to a branch that you may push"
                    ),
                };
                let hint =
                    format!("nothing is lost: what is here stays here until a sync succeeds; {way_out}");
                Err(Failure { code: "not_pushed".to_owned(), ..Failure::failed(message, hint) })
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn show(context: &mut Context, report: &SyncReport, branch: &str) {
    let out = &mut context.out;
    if report.published > 0 {
        out.line(format!("published {}", text::count(report.published, "record")));
    }
    if report.imported > 0 {
        let from = match report.from.as_slice() {
            [] => String::new(),
            from => format!(" from {}", from.join(", ")),
        };
        let records = text::count(report.imported, "record");
        let into = match report.plans.len() {
            0 => "which changes no plan here".to_owned(),
            plans => format!("into {}", text::count(plans, "plan")),
        };
        out.line(format!("merged {records}{from} {into}"));
    }
    match &report.remote {
        Some(remote) if report.sent => out.line(format!("pushed to {remote}")),
        Some(_) | None if report.published + report.imported == 0 => out.line("nothing new"),
        Some(_) | None => {}
    }
    if report.questions > 0 {
        let is = if report.questions == 1 { "is" } else { "are" };
        let count = text::count(report.questions, "question");
        out.line(typeable(&format!("{count} {is} open: `waypost conflicts`")));
    }
    for aside in &report.kept_aside {
        out.line(aside.to_string());
    }
    report.findings.iter().for_each(|finding| out.line(format!("not read: {finding}")));
    if !report.withheld.is_empty() {
        let plans = text::count(report.withheld.len(), "plan");
        let is = if report.withheld.len() == 1 { "is" } else { "are" };
        let words =
            format!("{plans} from {branch} can be read and {is} offered to no agent: `waypost trust`");
        out.line(typeable(&words));
    }
    match (&report.remote, report.pushed) {
        (None, _) => out.say("the plans are on the branch here, and reached no remote"),
        (Some(remote), true) => out.say(format!("{remote} has everything")),
        (Some(_), false) => {}
    }
}
