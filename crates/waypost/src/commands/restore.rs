//! `waypost restore`: makes a plan what its author said at a version. Nothing is lost: it is a new version.

use clap::Args;

use crate::context::Context;
use crate::error::Outcome;
use crate::options::Guard;

// Which plan, and to what.
#[derive(Debug, Args)]
#[command(after_help = "Tasks with the same work keep their results.")]
pub(crate) struct Restore {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Version to restore
    version: u64,
    #[command(flatten)]
    guard: Guard,
}

impl Restore {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let (by, guard) = (context.caller()?, (&self.guard).into());
        let reply = found.service.restore(&by, &found.id, self.version, guard)?;
        let said = format!("restored version {}", self.version);
        context.done(&found, &reply, &said)
    }
}
