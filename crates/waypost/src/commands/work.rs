//! What those who work on tasks say: start, progress, done, fail, skip, retry, cancel.

use clap::Args;
use serde_json::Map;
use waypost_core::{Command, Json, Outcome as Ending, Phase, Refusal, Status, TaskChanges, TaskId};
use waypost_store::{WriteError, WriteRequest};

use super::task_options::json;
use crate::cli::{Guard, seconds};
use crate::context::{Context, Found, task_of};
use crate::error::{Failure, Outcome};
use crate::files;
use crate::view::text;

/// How long somebody who took a task is believed to work on it without a word.
pub(crate) const LEASE_SECONDS_DEFAULT: u32 = 15 * 60;

// Which task.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The plan
    plan: String,
    /// The task
    task: String,
}

impl Which {
    pub(crate) fn find(&self, context: &Context) -> Outcome<(Found, TaskId)> {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        Ok((found, task))
    }
}

// Begin.
#[derive(Debug, Args)]
pub(crate) struct Start {
    #[command(flatten)]
    which: Which,
    /// How long you are believed to work on it without a word: 15m, 2h; 0 is for ever
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "15m")]
    lease: u32,
    #[command(flatten)]
    guard: Guard,
}

/// For how long a started task is believed to be worked on.
pub(crate) fn lease(seconds: u32) -> Option<u32> {
    (seconds > 0).then_some(seconds)
}

impl Start {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, task) = self.which.find(context)?;
        let by = context.actor()?;
        let worker = by.to_string();
        let answer = found.plans.write(WriteRequest {
            plan: found.id.clone(),
            by,
            commands: vec![Command::StartTask { task: task.clone(), worker: worker.clone() }],
            known_version: self.guard.expect_version,
            lease_seconds: lease(self.lease),
        });
        let committed = match answer {
            // Whoever has it already, and says so again, has it for longer.
            Err(WriteError::Refused(Refusal::AlreadyRunning { worker: holder, .. })) if holder == worker => {
                renew(&found, &task, self.lease)?;
                let version = found.look(waypost_core::Plan::version)?;
                waypost_store::Committed::unchanged(found.id.clone(), version)
            }
            answer => answer?,
        };
        let attempt = found.look(|plan| plan.task(task.as_str()).map_or(0, |task| task.state.attempt))?;
        let mut more = Map::new();
        more.insert("attempt".to_owned(), attempt.into());
        let said = if committed.changed { "started" } else { "is yours" };
        context.answer(&found, &committed, &format!("{task} {said}, attempt {attempt}"), Some(&task), more)
    }
}

/// Moves the end of the lease of whoever works on a task.
fn renew(found: &Found, task: &TaskId, seconds: u32) -> Outcome {
    let attempt = found.look(|plan| plan.task(task.as_str()).map_or(0, |task| task.state.attempt))?;
    if let Some(seconds) = lease(seconds) {
        found.plans.store().write(&mut |transaction| {
            let until = transaction.now().plus_seconds(u64::from(seconds));
            transaction.renew_lease(&found.id, task.as_str(), attempt, until).map(drop)
        })?;
    }
    Ok(())
}

// How far.
#[derive(Debug, Args)]
pub(crate) struct Progress {
    #[command(flatten)]
    which: Which,
    /// How far it is, in words
    #[arg(required = true)]
    words: Vec<String>,
    /// The attempt that reports (otherwise the latest)
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    #[command(flatten)]
    guard: Guard,
}

impl Progress {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, task) = self.which.find(context)?;
        let command = Command::ReportProgress {
            task: task.clone(),
            attempt: self.attempt,
            progress: self.words.join(" "),
        };
        let committed = context.write(&found, vec![command], &self.guard)?;
        renew(&found, &task, LEASE_SECONDS_DEFAULT)?;
        context.answer(&found, &committed, &format!("{task} goes on"), Some(&task), Map::new())
    }
}

const DONE_EXAMPLES: &str = "\
Examples:
  waypost done kq3 t2
  waypost done kq3 t2 --result 'three files found' --output '{\"files\":3}'
  waypost done kq3 t2 --output @report.json --attempt 1";

// Accomplished.
#[derive(Debug, Args)]
#[command(after_help = DONE_EXAMPLES)]
pub(crate) struct Done {
    #[command(flatten)]
    which: Which,
    /// What was accomplished, in words; @FILE reads it from a file
    #[arg(long)]
    result: Option<String>,
    /// A JSON value for those who depend on it; @FILE reads it from a file
    #[arg(long, value_name = "JSON")]
    output: Option<String>,
    /// The attempt that reports: it is refused if somebody else has started the task since
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    #[command(flatten)]
    guard: Guard,
}

impl Done {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let result = self.result.as_deref().map(files::said_or_read).transpose()?;
        let output: Option<Json> = self.output.as_deref().map(|text| json("--output", text)).transpose()?;
        let ending = Ending::Done { result, output, evidence: None };
        finish(context, &self.which, self.attempt, ending, &self.guard, "is done")
    }
}

fn finish(
    context: &mut Context,
    which: &Which,
    attempt: Option<u32>,
    outcome: Ending,
    guard: &Guard,
    said: &str,
) -> Outcome {
    let found = context.find(&which.plan)?;
    let (task, skipped_before) =
        found.look(|plan| Ok::<_, Failure>((task_of(plan, &which.task)?, plan.counts().skipped)))??;
    let command = Command::FinishTask { task: task.clone(), attempt, outcome, retry: None };
    let committed = context.write(&found, vec![command], guard)?;
    let (status, is_reported, again, skipped) = found.look(|plan| {
        let state = plan.task(task.as_str()).map(|task| &task.state);
        let again = state.and_then(|state| state.not_before);
        let is_reported = state.is_some_and(|state| state.reported().is_some());
        let skipped = plan.counts().skipped.saturating_sub(skipped_before);
        (state.map(|state| state.status), is_reported, again, skipped)
    })?;
    let mut said = format!("{task} {said}");
    if is_reported {
        said = format!("{task} is reported as done; it is done when its check has passed in `waypost run`");
    }
    if status == Some(Status::Failed) && skipped > 0 {
        said.push_str(&format!("; {} skipped because of it", text::count(skipped as usize, "task")));
    }
    if status == Some(Status::Pending)
        && let Some(again) = again
    {
        said.push_str(&format!("; it can be tried again at {} UTC", text::moment(again)));
    }
    context.answer(&found, &committed, &said, Some(&task), Map::new())
}

// Not accomplished.
#[derive(Debug, Args)]
pub(crate) struct Fail {
    #[command(flatten)]
    which: Which,
    /// Why; @FILE reads it from a file
    #[arg(long, required = true)]
    error: String,
    /// The attempt that reports
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    #[command(flatten)]
    guard: Guard,
}

impl Fail {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let error = files::said_or_read(&self.error)?;
        finish(
            context,
            &self.which,
            self.attempt,
            Ending::Failed { error, evidence: None },
            &self.guard,
            "failed",
        )
    }
}

// Unnecessary.
#[derive(Debug, Args)]
pub(crate) struct Skip {
    #[command(flatten)]
    which: Which,
    /// Why
    #[arg(long, conflicts_with = "undo")]
    reason: Option<String>,
    /// Do it after all
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    guard: Guard,
}

impl Skip {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if !self.undo {
            let ending = Ending::Skipped { reason: self.reason };
            return finish(context, &self.which, None, ending, &self.guard, "is skipped");
        }
        let (found, task) = self.which.find(context)?;
        let by_author = found.look(|plan| plan.task(task.as_str()).is_some_and(|task| task.spec.skip))?;
        let command = if by_author {
            let changes = TaskChanges { skip: Some(false), ..TaskChanges::default() };
            Command::ReviseTask { task: task.clone(), changes: Box::new(changes) }
        } else {
            Command::RetryTask { task: task.clone() }
        };
        let committed = context.write(&found, vec![command], &self.guard)?;
        context.answer(
            &found,
            &committed,
            &format!("{task} is to be done after all"),
            Some(&task),
            Map::new(),
        )
    }
}

// Again.
#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// The plan
    plan: String,
    /// The task (otherwise everything that failed or was cancelled)
    task: Option<String>,
    #[command(flatten)]
    guard: Guard,
}

impl Retry {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let Some(task) = &self.task else {
            return context.write_and_answer(
                &found,
                vec![Command::RetryPlan],
                &self.guard,
                "what failed is to be done again",
            );
        };
        let task = found.task(task)?;
        let committed =
            context.write(&found, vec![Command::RetryTask { task: task.clone() }], &self.guard)?;
        context.answer(&found, &committed, &format!("{task} is to be done again"), Some(&task), Map::new())
    }
}

// Stop.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The plan
    plan: String,
    /// The task (otherwise the whole plan)
    task: Option<String>,
    /// Why
    #[arg(long, default_value = "")]
    reason: String,
    #[command(flatten)]
    guard: Guard,
}

impl Cancel {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let Some(task) = &self.task else {
            let command = Command::FinishPlan { phase: Phase::Cancelled, summary: self.reason };
            return context.write_and_answer(&found, vec![command], &self.guard, "cancelled the plan");
        };
        let task = found.task(task)?;
        let command = Command::CancelTask { task: task.clone(), reason: self.reason };
        let committed = context.write(&found, vec![command], &self.guard)?;
        context.answer(&found, &committed, &format!("{task} is cancelled"), Some(&task), Map::new())
    }
}
