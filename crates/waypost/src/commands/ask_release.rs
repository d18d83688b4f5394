//! Gives up a task without finishing it: `waypost ask` waits for a person's answer, `waypost release` leaves it to others.

use clap::Args;
use waypost_core::QuestionRequest as Question;
use waypost_service::TaskReport;

use super::task_lifecycle::{Reporter, TaskArgs};
use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::options::Guard;
use waypost_cli::runner::{command, on_task};

const ASK_EXAMPLES: &str = "\
The task is released, and ready again once a person has answered (`waypost answer`).

Examples:
  waypost ask kq3 t2 'Which of the two schemas is the right one?'
  waypost ask kq3 t2 'May I drop the table?' --choice yes --choice no";

#[derive(Debug, Args)]
#[command(after_help = ASK_EXAMPLES)]
pub(crate) struct AskPerson {
    #[command(flatten)]
    which: TaskArgs,
    /// Question text
    #[arg(required = true)]
    question: Vec<String>,
    /// Suggested answer; repeatable
    #[arg(long, value_name = "TEXT")]
    choice: Vec<String>,
    #[command(flatten)]
    reporter: Reporter,
    #[command(flatten)]
    guard: Guard,
}

impl AskPerson {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, task) = self.which.find(context)?;
        let ask = Question { text: self.question.join(" "), choices: self.choice, ..Question::default() };
        let of = self.reporter.on(&found.id, &task);
        let report = TaskReport::Question(Box::new(ask));
        let reply = found.service.report(&context.caller()?, of, report, (&self.guard).into())?;
        let said = format!("{task} waits for a person's answer");
        context.done_task(&found, &reply, &task, &said)?;
        let answer = on_task("answer", &found.id, &task, " ANSWER", "");
        context.out.say(format!("a person answers with: {}", command(&answer)));
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Release {
    #[command(flatten)]
    which: TaskArgs,
    /// Reason
    #[arg(long, default_value = "")]
    reason: String,
    #[command(flatten)]
    reporter: Reporter,
    #[command(flatten)]
    guard: Guard,
}

impl Release {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, task) = self.which.find(context)?;
        let of = self.reporter.on(&found.id, &task);
        let report = TaskReport::Released { reason: self.reason };
        let reply = found.service.report(&context.caller()?, of, report, (&self.guard).into())?;
        context.done_task(&found, &reply, &task, &format!("{task} is released"))
    }
}
