//! `waypost note`: prints or sets the note of a plan, free text for where it stands. It does not affect execution. The stored
//! field is called `status`, in JSON too.

use clap::{Args, Subcommand};
use serde_json::json;
use waypost_core::PlanChanges;
use waypost_service::{EditOp, ServiceError};

use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::options::Guard;

const EXAMPLES: &str = "\
Examples:
  waypost note kq3
  waypost note kq3 waiting for review
  waypost note kq3 --clear";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Note {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Text; without it, the note is printed
    words: Vec<String>,
    /// Clear the note
    #[arg(long, conflicts_with = "words")]
    clear: bool,
    #[command(flatten)]
    guard: Guard,
}

impl Note {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let Self { plan, words, clear, guard } = self;
        match words.is_empty() && !clear {
            true => Get { plan }.run(context),
            false => Set { plan, words, guard }.run(context),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum OldSpelling {
    /// Print a plan's note (the same as `waypost note`)
    #[command(hide = true)]
    Get(Get),
    /// Set a plan's note; without text, clear it (the same as `waypost note`)
    #[command(hide = true)]
    Set(Set),
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// Plan id, or an unambiguous prefix
    plan: String,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Text
    words: Vec<String>,
    #[command(flatten)]
    guard: Guard,
}

impl OldSpelling {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        match self {
            Self::Get(get) => get.run(context),
            Self::Set(set) => set.run(context),
        }
    }
}

impl Get {
    fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let head = found.plans.store().query(|read| read.head(&found.id))?;
        let head = head.ok_or_else(|| ServiceError::no_such_plan(&found.id))?;
        if context.out.json {
            return context
                .out
                .value(&json!({ "id": head.id, "status": head.status, "version": head.version }));
        }
        if head.status.is_empty() {
            context.out.say(format!("plan {} has no note", head.id));
        } else {
            context.out.line(&head.status);
        }
        Ok(())
    }
}

impl Set {
    fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let status = self.words.join(" ");
        let said = if status.is_empty() { "cleared the note".to_owned() } else { format!("note: {status}") };
        let changes = PlanChanges { status: Some(status), ..PlanChanges::default() };
        let ops = vec![EditOp::RevisePlan(Box::new(changes))];
        let reply = found.service.edit(&context.caller()?, &found.id, ops, (&self.guard).into())?;
        context.done(&found, &reply, &said)
    }
}
