//! `waypost log`: prints the output of a task's attempt. Reads the log file of the run, or the store's copy of it.

use std::borrow::Cow;

use clap::Args;
use serde_json::json;
use waypost_core::{Plan, Timestamp};
use waypost_store::AttemptLog;
use waypost_store::{FoundLog, LogTimes, NoLog, find_log, log_path};
use waypost_text::is_protocol_line;

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::runner::on_task;

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Task id, or an unambiguous prefix
    task: String,
    /// Attempt number [default: the latest]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Print when each line was written, in UTC
    #[arg(long)]
    timestamps: bool,
}

impl Log {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        let state = |plan: &Plan| plan.task(task.as_str()).map(|task| task.state.clone());
        let state = found.view(context, |plan, _| state(plan))?.unwrap_or_default();
        let attempt = self.attempt.unwrap_or(state.attempt);
        if attempt == 0 || attempt > state.attempt {
            let message = match state.attempt {
                0 => format!("task {task} has never been started"),
                latest => format!("task {task} has no attempt {attempt}: the latest is {latest}"),
            };
            return Err(Failure::not_found(
                message,
                format!("`{}` explains what it waits for", on_task("why", &found.id, &task, "", "")),
            ));
        }
        let logs = context.folders()?.logs();
        let path = log_path(&logs, &found.id, &task, attempt);
        let worker = state.worker.as_deref().filter(|_| attempt == state.attempt);
        let log = find_log(&found.plans, &logs, (&found.id, &task, attempt), worker, u64::MAX);
        let (text, bytes, copied_from) = match log {
            Ok(FoundLog::File { text, bytes }) => (text, bytes, None),
            Ok(FoundLog::Copy(copy)) => {
                context.out.say(describe_copy(&copy));
                (copy.text, copy.bytes, Some(copy.worker))
            }
            Ok(FoundLog::Nothing { elsewhere }) => {
                let mut words = format!("attempt {attempt} of {task} has written nothing");
                if let Some(worker) = elsewhere {
                    words.push_str(&format!(" yet, or only on the machine of its worker {worker}"));
                }
                context.out.say(words);
                (String::new(), 0, None)
            }
            Err(NoLog::File(error)) => return Err(Failure::file(&path, &error)),
            Err(NoLog::Store(error)) => return Err(error.into()),
        };
        let times = match &copied_from {
            None if self.timestamps => LogTimes::of(&path),
            Some(_) | None => LogTimes::default(),
        };
        if context.out.json {
            let mut answer = json!({ "id": found.id, "task": task, "attempt": attempt, "path": path, "log": text,
                "bytes": bytes, "copied_from": copied_from });
            if self.timestamps {
                answer["times"] = times.iter().map(|(from, at)| json!({ "from": from, "at": at })).collect();
            }
            return context.out.value(&answer);
        }
        if self.timestamps && times.is_empty() && !text.is_empty() {
            context.out.say(
                "this log has no timestamps: an earlier version wrote it, or its file is on another machine",
            );
        }
        let hides_protocol = context.out.is_looked_at();
        context.out.program_output(&shown(&text, &times, hides_protocol));
        Ok(())
    }
}

/// Puts before each line when it was written. On request leaves out lines by which a program talks to its worker.
fn shown<'a>(text: &'a str, times: &LogTimes, hides_protocol: bool) -> Cow<'a, str> {
    if times.is_empty() && !hides_protocol {
        return Cow::Borrowed(text);
    }
    let (mut place, mut timed) = (0, String::new());
    for line in text.split_inclusive('\n') {
        let at = times.at(place).map(Timestamp::to_the_second).unwrap_or_default();
        place += line.len() as u64;
        if hides_protocol && is_protocol_line(line) {
            continue;
        }
        if times.is_empty() {
            timed.push_str(line);
            continue;
        }
        // A carriage return would put what follows in the place of the time.
        let shown = line.trim_end_matches(['\r', '\n']).rsplit('\r').next().unwrap_or_default();
        timed.push_str(&format!("{at:19} {shown}\n"));
    }
    Cow::Owned(timed)
}

/// Describes how complete a copy is and where the file is.
fn describe_copy(copy: &AttemptLog) -> String {
    let AttemptLog { worker, bytes, text, ended, .. } = copy;
    let part = match *bytes > text.len() as u64 {
        true => format!("the last {} of {bytes} bytes", text.len()),
        false => "all of it".to_owned(),
    };
    let until = if *ended { "" } else { ", as of its last heartbeat" };
    format!("a copy ({part}{until}); the file is with worker {worker}")
}
