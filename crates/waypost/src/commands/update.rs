//! `waypost update`: writes a file's content into a plan. Reports the version and what changed, never the content.

use clap::Args;
use serde_json::{Map, json};
use waypost_core::TaskId;
use waypost_formats::Dialect;
use waypost_service::SourceText;

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::options::{Guard, input_format};

/// Maximum number of named tasks that have to be done again.
const AGAIN_NAMED_MAX: usize = 10;

const EXAMPLES: &str = "\
A Markdown text or a plan document replaces the body (and title and status, if it has them). \
A file that lists tasks replaces the tasks; tasks whose work is unchanged keep their status and \
results.

Examples:
  waypost export kq3 --format markdown --output plan.md
  waypost update kq3 --from-file plan.md --expect-version 7
  waypost update kq3 --from-file plan.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Update {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Input file; - is standard input
    #[arg(long, value_name = "FILE", required = true)]
    from_file: String,
    /// Input format [default: detect]
    #[arg(long, value_name = "FORMAT", value_parser = input_format())]
    format: Option<Dialect>,
    #[command(flatten)]
    guard: Guard,
}

impl Update {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let text = files::read(&self.from_file)?;
        let found = context.find(&self.plan)?;
        let (path, name) = (self.from_file.as_str(), files::name_of(&self.from_file));
        let file_name = (path != "-").then(|| path.to_owned());
        let source = SourceText { text, format: self.format, file_name, name: name.to_owned() };
        let update = found.service.update(&context.caller()?, &found.id, source, (&self.guard).into());
        let update = update.map_err(|error| Failure::of_text(name, error))?;
        for note in update.notes {
            context.out.note_fact(note);
        }
        context.warn(&update.written);
        let (stat, again) = (update.changes, update.again);
        let mut more = Map::new();
        more.insert("changes".to_owned(), json!(stat));
        let mut said = format!("updated: {}", stat.describe());
        if !again.is_empty() {
            let named: Vec<&str> = again.iter().take(AGAIN_NAMED_MAX).map(TaskId::as_str).collect();
            said.push_str(&format!("; to be done again: {}", named.join(", ")));
            if again.len() > named.len() {
                said.push_str(&format!(" and {} more", again.len() - named.len()));
            }
            more.insert("again".to_owned(), json!(again));
        }
        if update.approval_voided {
            said.push_str("; its approval is void: it needs approval again");
            more.insert("approval".to_owned(), json!("needed"));
        }
        context.answer(&found, &update.written, &said, None, more)
    }
}
