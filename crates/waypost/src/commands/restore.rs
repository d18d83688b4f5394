//! `waypost restore`: restores a plan's specification from an earlier version, as a new version. No version is lost.

use clap::Args;

use waypost_cli::context::{Context, PlanWrite};
use waypost_cli::error::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Tasks with the same work keep their results.")]
pub(crate) struct Restore {
    #[command(flatten)]
    on: PlanWrite,
    /// Version to restore
    version: u64,
}

impl Restore {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let (found, by, guard) = self.on.find(context)?;
        let reply = found.service.restore(&by, &found.id, self.version, guard)?;
        let said = format!("restored version {}", self.version);
        context.done(&found, &reply, &said)
    }
}
