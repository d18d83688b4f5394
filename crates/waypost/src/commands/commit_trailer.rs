//! `waypost commit-trailer`: what the `prepare-commit-msg` hook of `waypost init --git-hooks` runs. It names the task that this
//! session has claimed in the message of the commit that is being made. It never fails a commit.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::Args;

use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::repository;
use waypost_cli::view::text;

/// The longest time that a commit waits for us.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Where the message comes from when the commit is not new work: a merge, or an earlier commit.
const NOT_NEW: [&str; 3] = ["merge", "squash", "commit"];
/// Files and folders beside the message while git makes commits of earlier ones.
const NOT_NEW_FILES: [&str; 5] =
    ["rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_HEAD"];
/// The variables of a task's program.
const TASK_VARIABLES: [&str; 2] = ["WAYPOST_PLAN", "WAYPOST_TASK"];

#[derive(Debug, Args)]
pub(crate) struct CommitTrailer {
    /// File with the message of the commit
    message: PathBuf,
    /// Where the message comes from: message, template, merge, squash or commit
    source: Option<String>,
    /// The commit that is amended or reused
    #[arg(hide = true)]
    reused: Option<String>,
}

impl CommitTrailer {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let context = context.for_background();
        let (done, finished) = mpsc::channel();
        thread::spawn(move || {
            // Whatever goes wrong, the commit is made without the trailer.
            let _ = self.add(&context);
            let _ = done.send(());
        });
        let _ = finished.recv_timeout(WAIT_MAX);
        Ok(())
    }

    fn add(&self, context: &Context) -> Outcome {
        if self.is_not_new() || self.is_typed() {
            return Ok(());
        }
        let Some(task) = task_of_session(context)? else { return Ok(()) };
        let folders = context.folders()?;
        let message = std::path::absolute(&self.message).unwrap_or_else(|_| self.message.clone());
        if let Some(repository) = repository::around(&folders.workspace) {
            let _ = repository.add_task_trailer(&message, &task);
        }
        Ok(())
    }

    /// Whether the message is yet to be typed: beside a trailer it would not be empty, and leaving the editor would make a commit.
    fn is_typed(&self) -> bool {
        matches!(self.source.as_deref(), None | Some("template"))
    }

    /// Whether git reuses a message: the task of whoever does that is not the task of that commit.
    fn is_not_new(&self) -> bool {
        let folder = self.message.parent().map(PathBuf::from).unwrap_or_default();
        self.source.as_deref().is_some_and(|source| NOT_NEW.contains(&source))
            || NOT_NEW_FILES.iter().any(|name| folder.join(name).symlink_metadata().is_ok())
    }
}

/// The task that this process works on: that of the attempt it runs in, or the only one that the caller has claimed. Nobody can tell for
/// which of several tasks a commit is.
fn task_of_session(context: &Context) -> Outcome<Option<String>> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let [Some(plan), Some(task)] = TASK_VARIABLES.map(variable) {
        return Ok(Some(format!("{plan}/{task}")));
    }
    if context.store_location()?.is_absent() {
        return Ok(None);
    }
    let plans = context.plans()?;
    let mut leases = context.service(&plans).leases_of(&context.caller()?)?;
    let now = text::now();
    leases.retain(|lease| lease.until.is_none_or(|until| until > now));
    Ok(match leases.as_slice() {
        [lease] => Some(format!("{}/{}", lease.plan, lease.task)),
        _ => None,
    })
}
