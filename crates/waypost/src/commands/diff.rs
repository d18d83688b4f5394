//! `waypost diff`: shows the differences between two versions of a plan.

use clap::Args;
use serde_json::json;
use waypost_core::differences_in_full;
use waypost_service::Texts;

use waypost_cli::context::Context;
use waypost_cli::error::Outcome;
use waypost_cli::view::{differences as view, text};

/// Maximum number of lines shown without `--full`.
const LINES_MAX: usize = 400;
/// Maximum number of differences in JSON without `--full`.
const DIFFERENCES_MAX: usize = 1_000;
/// Maximum bytes of a value in JSON without `--full`.
const VALUE_CHARACTERS_MAX: usize = 4_000;

const EXAMPLES: &str = "\
Examples:
  waypost diff kq3 4      # what changed since version 4
  waypost diff kq3 4 6    # from version 4 to version 6";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Diff {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Old version
    old: u64,
    /// New version [default: the current one]
    new: Option<u64>,
    /// Show all lines
    #[arg(long)]
    full: bool,
}

impl Diff {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let found = context.find(&self.plan)?;
        let old = found.plans.at_version(&found.id, self.old)?.to_draft();
        let new = match self.new {
            Some(version) => found.plans.at_version(&found.id, version)?.to_draft(),
            None => found.view(context, |plan, _| plan.to_draft())?,
        };
        if self.new.is_some() {
            found.note_damage(context)?;
        }
        let different = differences_in_full(&old, &new);
        if context.out.json {
            let limit = if self.full { usize::MAX } else { DIFFERENCES_MAX };
            let characters = if self.full { usize::MAX } else { VALUE_CHARACTERS_MAX };
            let shown: Vec<_> = different.iter().take(limit).map(|one| view::json(one, characters)).collect();
            return context.out.value(&json!({
                "id": found.id,
                "old": old.version,
                "new": new.version,
                "differences": shown,
                "differences_total": different.len(),
            }));
        }
        if different.is_empty() {
            context.out.say(format!(
                "versions {} and {} of plan {} are the same",
                old.version, new.version, found.id
            ));
            return Ok(());
        }
        let value_columns = (context.out.columns / 2).saturating_sub(12).max(20);
        let lines = view::lines(&different, Texts::ByLine, value_columns);
        let limit = if self.full { usize::MAX } else { LINES_MAX };
        for line in lines.iter().take(limit) {
            let line = context.out.paint(&line.text, line.look);
            context.out.line(line);
        }
        if lines.len() > limit {
            context
                .out
                .say(format!("{} not shown; --full shows all", text::count(lines.len() - limit, "line")));
        }
        Ok(())
    }
}
