//! `waypost restore`: makes a plan what its author said at a version. Nothing is lost: it is a new version.

use clap::Args;
use waypost_core::Command;

use crate::cli::Guard;
use crate::context::Context;
use crate::error::Outcome;

// Which plan, and to what.
#[derive(Debug, Args)]
#[command(after_help = "What already happened to tasks that ask the same now as then is kept.")]
pub(crate) struct Restore {
    /// The plan
    plan: String,
    /// The version
    version: u64,
    #[command(flatten)]
    guard: Guard,
}

impl Restore {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let draft = found.plans.at_version(&found.id, self.version)?.to_draft();
        let command = Command::Replace(Box::new(draft));
        let said = format!("restored what version {} said", self.version);
        context.write_and_answer(&found, vec![command], &self.guard, &said)
    }
}
