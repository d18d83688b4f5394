//! `waypost preview`: prints everything that machines would run for a plan, and its digest. Runs nothing.

use std::path::PathBuf;

use clap::Args;

use waypost_cli::approval_prompt;
use waypost_cli::context::Context;
use waypost_cli::error::Outcome;

const EXAMPLES: &str = "\
Programs and inputs are grouped by what runs, risky ones first. `approve` asks about exactly this.

Examples:
  waypost preview kq3
  waypost preview kq3 --json | jq -r .digest";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Preview {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Configuration file that overrides all others
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Preview {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let service = context.service_named(&found.plans, self.config.as_deref())?;
        let preview = service.preview(&found.id)?;
        found.note_damage(context)?;
        if context.out.json {
            return context.out.value(&preview);
        }
        for line in approval_prompt::lines(&preview) {
            context.out.line(line);
        }
        Ok(())
    }
}
