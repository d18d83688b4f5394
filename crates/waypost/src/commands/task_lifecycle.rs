//! Commands for those who work on tasks: start, progress, done, fail, skip, retry, cancel.

use clap::Args;
use serde_json::Map;
use waypost_core::{Json, Phase, Plan, PlanId, Status, TaskId};
use waypost_service::{Caller, ClaimOptions, TaskRef, TaskReport};

use super::task_options::json;
use waypost_cli::context::{Context, PlanHandle, PlanWrite, task_of};
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::options::{Guard, seconds};
use waypost_cli::question_prompt::OpenQuestion;
use waypost_cli::signing::SigningKey;
use waypost_cli::view::text;

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
}

// Who reports on a task. Not a doc comment: it would become the help of the command.
#[derive(Debug, Default, Args)]
pub(crate) struct Reporter {
    /// Attempt that reports; refused if a newer attempt has started [default: the latest]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Take the task over first if another session of the same agent holds it
    #[arg(long, conflicts_with = "attempt")]
    take_over: bool,
}

impl Reporter {
    pub(crate) fn on<'a>(&self, plan: &'a PlanId, task: &'a TaskId) -> TaskRef<'a> {
        TaskRef { plan, task, attempt: self.attempt, take_over: self.take_over, seen: None }
    }
}

impl TaskArgs {
    pub(crate) fn find(&self, context: &Context) -> Outcome<(PlanHandle, TaskId)> {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        Ok((found, task))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    #[command(flatten)]
    which: TaskArgs,
    /// Lease duration, e.g. 15m or 2h; 0 never expires [default: 15m, or as long as the lease you hold]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    lease: Option<u32>,
    /// Take the task over if another session of the same agent holds it
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    guard: Guard,
}

impl Start {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, task) = self.which.find(context)?;
        let options = ClaimOptions { lease_seconds: self.lease, take_over: self.take_over, reopen: false };
        let by = context.caller()?;
        let claimed = found.service.claim(&by, &found.id, &task, options, (&self.guard).into())?;
        let (reply, attempt) = (claimed.written, claimed.attempt);
        let mut more = Map::new();
        more.insert("attempt".to_owned(), attempt.into());
        let said = if reply.changed { "started" } else { "is yours" };
        context.answer(&found, &reply, &format!("{task} {said}, attempt {attempt}"), Some(&task), more)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Progress {
    #[command(flatten)]
    which: TaskArgs,
    /// Progress text
    #[arg(required = true)]
    words: Vec<String>,
    #[command(flatten)]
    reporter: Reporter,
    #[command(flatten)]
    guard: Guard,
}

impl Progress {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, task) = self.which.find(context)?;
        let of = self.reporter.on(&found.id, &task);
        let report = TaskReport::Progress(self.words.join(" "));
        let reply = found.service.report(&context.caller()?, of, report, (&self.guard).into())?;
        context.done_task(&found, &reply, &task, &format!("{task}: progress recorded"))
    }
}

const DONE_EXAMPLES: &str = "\
Examples:
  waypost done kq3 t2
  waypost done kq3 t2 --result 'three files found' --output '{\"files\":3}'
  waypost done kq3 t2 --output @report.json --attempt 1";

#[derive(Debug, Args)]
#[command(after_help = DONE_EXAMPLES)]
pub(crate) struct Done {
    #[command(flatten)]
    which: TaskArgs,
    /// Summary of the result; @FILE reads it from a file
    #[arg(long)]
    result: Option<String>,
    /// JSON output for dependent tasks; @FILE reads it from a file
    #[arg(long, value_name = "JSON")]
    output: Option<String>,
    /// Accept a result that reads as if the task were not done (agents only)
    #[arg(long)]
    sure: bool,
    #[command(flatten)]
    reporter: Reporter,
    /// Digest of what a task for a person asks, which you have read; `waypost answer --json` lists it
    #[arg(long, value_name = "DIGEST")]
    seen: Option<String>,
    /// Sign the end of a task for a person with `ssh-keygen`; with --seen no terminal is needed
    #[arg(long)]
    sign: bool,
    #[command(flatten)]
    key: SigningKey,
    #[command(flatten)]
    guard: Guard,
}

impl Done {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let result = self.result.as_deref().map(files::text_argument).transpose()?;
        let output: Option<Json> = self.output.as_deref().map(|text| json("--output", text)).transpose()?;
        let report = TaskReport::Done { result, output, sure: self.sure };
        let key = self.sign.then_some(&self.key);
        let ends = TaskEnd { which: &self.which, reporter: &self.reporter, seen: self.seen, key };
        finish(context, ends, report, &self.guard, "is done")
    }
}

/// Which attempt of which task ends, and the key if a person signs that.
struct TaskEnd<'a> {
    which: &'a TaskArgs,
    reporter: &'a Reporter,
    seen: Option<String>,
    key: Option<&'a SigningKey>,
}

fn finish(
    context: &mut Context,
    TaskEnd { which, reporter, seen, key }: TaskEnd<'_>,
    report: TaskReport,
    guard: &Guard,
    said: &str,
) -> Outcome {
    let found = context.find(&which.plan)?;
    let (task, skipped_before) =
        found.read(|plan| Ok::<_, Failure>((task_of(plan, &which.task)?, plan.counts().skipped)))??;
    let by = context.caller()?;
    let seen = match seen {
        Some(seen) => Some(seen),
        None => read_by_person(context, &found, &task, &by, &report, guard)?,
    };
    let (of, guard) = (TaskRef { seen: seen.as_deref(), ..reporter.on(&found.id, &task) }, guard.into());
    let reply = match key {
        None => found.service.report(&by, of, report, guard)?,
        Some(key) => {
            key.sign(&found, |signing| found.service.report_signed(&by, of, report, guard, signing))?
        }
    };
    let (status, is_reported, again, skipped) = found.read(|plan| {
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
        said.push_str(&format!("; it can be tried again at {} UTC", again.to_the_second()));
    }
    context.done_task(&found, &reply, &task, &said)
}

/// Shows a person at the terminal the task for people that they let others pass, and returns the digest of what they read.
fn read_by_person(
    context: &Context,
    found: &PlanHandle,
    task: &TaskId,
    by: &Caller,
    report: &TaskReport,
    guard: &Guard,
) -> Outcome<Option<String>> {
    let question = match report {
        TaskReport::Done { .. } => "Mark it done?",
        TaskReport::Skipped { .. } => "Skip it?",
        TaskReport::Failed { .. }
        | TaskReport::Progress(_)
        | TaskReport::Released { .. }
        | TaskReport::Question(_) => return Ok(None),
    };
    // Programs that print JSON, and those who name a version, know what they do.
    let has_work = |plan: &Plan| plan.task(task.as_str()).is_some_and(|task| task.spec.work.is_some());
    if !by.is_present() || context.out.json || guard.expect_version.is_some() || !found.read(has_work)? {
        return Ok(None);
    }
    let config = found.service.config()?;
    let asked =
        found.read(|plan| plan.task(task.as_str()).and_then(|task| OpenQuestion::of(plan, task, &config)))?;
    let Some(asked) = asked.filter(|asked| !asked.is_question) else { return Ok(None) };
    asked.confirm(question)?;
    Ok(Some(asked.digest))
}

#[derive(Debug, Args)]
pub(crate) struct Fail {
    #[command(flatten)]
    which: TaskArgs,
    /// Reason; @FILE reads it from a file
    #[arg(long, required = true)]
    error: String,
    #[command(flatten)]
    reporter: Reporter,
    #[command(flatten)]
    guard: Guard,
}

impl Fail {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let error = files::text_argument(&self.error)?;
        let ends = TaskEnd { which: &self.which, reporter: &self.reporter, seen: None, key: None };
        finish(context, ends, TaskReport::Failed { error }, &self.guard, "failed")
    }
}

#[derive(Debug, Args)]
pub(crate) struct Skip {
    #[command(flatten)]
    which: TaskArgs,
    /// Reason
    #[arg(long, conflicts_with = "undo")]
    reason: Option<String>,
    /// Undo the skip
    #[arg(long)]
    undo: bool,
    /// Take the task over first if another session of the same agent holds it
    #[arg(long, conflicts_with = "undo")]
    take_over: bool,
    /// Digest of what a task for a person asks, which you have read; `waypost answer --json` lists it
    #[arg(long, value_name = "DIGEST", conflicts_with = "undo")]
    seen: Option<String>,
    #[command(flatten)]
    guard: Guard,
}

impl Skip {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if !self.undo {
            let report = TaskReport::Skipped { reason: self.reason };
            let reporter = Reporter { attempt: None, take_over: self.take_over };
            let ends = TaskEnd { which: &self.which, reporter: &reporter, seen: self.seen, key: None };
            return finish(context, ends, report, &self.guard, "is skipped");
        }
        let (found, task) = self.which.find(context)?;
        let reply = found.service.unskip(&context.caller()?, &found.id, &task, (&self.guard).into())?;
        context.done_task(&found, &reply, &task, &format!("{task} is no longer skipped"))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    on: PlanWrite,
    /// Task id or prefix [default: everything that failed or was cancelled]
    task: Option<String>,
}

impl Retry {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let Some(task) = &self.task else {
            let reply = found.service.retry_plan(&by, &found.id, guard)?;
            return context.done(&found, &reply, "failed tasks will be retried");
        };
        let task = found.task(task)?;
        let reply = found.service.retry_task(&by, &found.id, &task, guard)?;
        context.done_task(&found, &reply, &task, &format!("{task} will be retried"))
    }
}

const HOLD_EXAMPLES: &str = "\
A held task does not start, and neither does a task below it; what runs goes on. The approval of the \
plan stays. What a person holds, only a person lets start again, with `waypost unhold`.

Examples:
  waypost hold kq3 deploy --reason 'not before Monday'
  waypost approve kq3 --hold deploy";

#[derive(Debug, Args)]
#[command(after_help = HOLD_EXAMPLES)]
pub(crate) struct Hold {
    #[command(flatten)]
    on: PlanWrite,
    /// Task ids or prefixes
    #[arg(required = true)]
    tasks: Vec<String>,
    /// Reason
    #[arg(long, default_value = "")]
    reason: String,
}

impl Hold {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let tasks = found.tasks(&self.tasks)?;
        let reply = found.service.hold_tasks(&by, &found.id, &tasks, &self.reason, guard)?;
        context.done(&found, &reply, &format!("{} held", names_are(&tasks)))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Unhold {
    #[command(flatten)]
    on: PlanWrite,
    /// Task ids or prefixes
    #[arg(required = true)]
    tasks: Vec<String>,
}

impl Unhold {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let tasks = found.tasks(&self.tasks)?;
        let reply = found.service.unhold_tasks(&by, &found.id, &tasks, guard)?;
        let said = if reply.changed { "no longer held" } else { "not held" };
        context.done(&found, &reply, &format!("{} {said}", names_are(&tasks)))
    }
}

/// The tasks as the subject of a sentence.
fn names_are(tasks: &[TaskId]) -> String {
    let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    on: PlanWrite,
    /// Task id or prefix [default: the whole plan]
    task: Option<String>,
    /// Reason
    #[arg(long, default_value = "")]
    reason: String,
}

impl Cancel {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let Some(task) = &self.task else {
            let reply = found.service.finish(&by, &found.id, Phase::Cancelled, &self.reason, guard)?;
            return context.done(&found, &reply, "cancelled the plan");
        };
        let task = found.task(task)?;
        let reply = found.service.cancel_task(&by, &found.id, &task, &self.reason, guard)?;
        context.done_task(&found, &reply, &task, &format!("{task} is cancelled"))
    }
}
