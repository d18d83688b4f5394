//! `waypost log`: what the worker of a task wrote while it worked. Reads the file that the run kept.

use std::fs;
use std::io;

use clap::Args;
use serde_json::json;
use waypost_engine::log_path;

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::setup::Folders;

// Of which attempt.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// The plan
    plan: String,
    /// The task
    task: String,
    /// The number of the attempt (otherwise the latest)
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
}

impl Log {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let task = found.task(&self.task)?;
        let state =
            found.look(|plan| plan.task(task.as_str()).map(|task| task.state.clone()))?.unwrap_or_default();
        let attempt = self.attempt.unwrap_or(state.attempt);
        if attempt == 0 || attempt > state.attempt {
            let message = match state.attempt {
                0 => format!("task {task} has never been started"),
                latest => format!("task {task} has no attempt {attempt}: the latest is {latest}"),
            };
            return Err(Failure::not_found(
                message,
                format!("`waypost why {} {task}` tells what it waits for", found.id),
            ));
        }
        let path = log_path(&Folders::find(context)?.logs(), &found.id, &task, attempt);
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                context.out.say(format!(
                    "attempt {attempt} of {task} has written nothing (or ran on another machine)"
                ));
                String::new()
            }
            Err(error) => return Err(Failure::file(&path, &error)),
        };
        if context.out.json {
            let answer =
                json!({ "id": found.id, "task": task, "attempt": attempt, "path": path, "log": text });
            return context.out.value(&answer);
        }
        context.out.text(&text);
        Ok(())
    }
}
