//! `waypost update`: writes a file's content into a plan. Answers with the version and what changed, never the content.

use clap::Args;
use serde_json::{Map, json};
use waypost_core::{Command, DiffStat, Draft, PlanChanges, differences};
use waypost_dialects::{Dialect, sniff};

use super::edit::keep_foreign;
use crate::cli::{Guard, dialect};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::files;
use crate::source::Source;

const EXAMPLES: &str = "\
A Markdown text or a plan document gives the plan another body (and title and status, where it names them). A file
that lists tasks makes the plan what it says; what already happened to tasks that ask the same as before is kept.

Examples:
  waypost export kq3 --format markdown --output plan.md
  waypost update kq3 --from-file plan.md --expect-version 7
  waypost update kq3 --from-file plan.json";

// Which plan, and from what.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Update {
    /// The plan
    plan: String,
    /// The file; - is standard input
    #[arg(long, value_name = "FILE", required = true)]
    from_file: String,
    /// The format (otherwise it is found out)
    #[arg(long, value_name = "FORMAT", value_parser = dialect())]
    format: Option<Dialect>,
    #[command(flatten)]
    guard: Guard,
}

impl Update {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let text = files::read(&self.from_file)?;
        let found = context.find(&self.plan)?;
        let before = found.look(|plan| plan.to_draft())?;
        let command = self.command(context, &text, &before)?;
        let committed = context.write(&found, vec![command], &self.guard)?;
        let after = found.look(|plan| plan.to_draft())?;
        let stat = DiffStat::of(&differences(&before, &after));
        let mut more = Map::new();
        more.insert("changes".to_owned(), json!(stat));
        context.answer(&found, &committed, &format!("updated: {}", stat.words()), None, more)
    }

    fn command(&self, context: &mut Context, text: &str, before: &Draft) -> Outcome<Command> {
        let sniffed = sniff(text, Some(&self.from_file));
        let dialect = self.format.or(sniffed);
        // A checklist that nobody called a plan is text, as is whatever is no plan and no JSON.
        let is_text = match dialect {
            None => !text.trim_start().starts_with(['{', '[']),
            Some(Dialect::Checklist) => self.format.is_none(),
            Some(_) => false,
        };
        if is_text {
            return Ok(revise(PlanChanges { body: Some(text.to_owned()), ..PlanChanges::default() }));
        }
        let source = Source::text(&self.from_file, text, dialect)?;
        let problems = source.problems();
        if !problems.is_empty() {
            return Err(Failure::invalid("what was read", &problems));
        }
        for note in &source.reading.notes {
            context.out.note(format!("{}: {note}", source.name));
        }
        let dialect = source.reading.dialect;
        let count = source.reading.drafts.len();
        let mut drafts = source.reading.drafts.into_iter();
        let (Some(mut draft), None) = (drafts.next(), drafts.next()) else {
            let message = format!("{} holds {count} plans, and one is needed", source.name);
            return Err(Failure::usage(message, "name a file with one plan"));
        };
        if draft.id.as_ref().is_some_and(|id| Some(id) != before.id.as_ref()) {
            let id = draft.id.as_ref().map(ToString::to_string).unwrap_or_default();
            context.out.note(format!("{} is of plan {id}; it was written into this one", source.name));
        }
        match dialect {
            Dialect::PlanDocument => Ok(revise(document(draft, true))),
            Dialect::Markdown if draft.tasks.is_empty() => {
                if !before.tasks.is_empty() {
                    context.out.note("the text lists no tasks, so those of the plan stay");
                }
                let has_front_matter = text.trim_start_matches('\u{feff}').starts_with("---");
                Ok(revise(document(draft, has_front_matter)))
            }
            Dialect::Native
            | Dialect::Clido
            | Dialect::Jaato
            | Dialect::Frctl
            | Dialect::Agora
            | Dialect::Markdown
            | Dialect::Checklist
            | Dialect::TaskMaster
            | Dialect::Beads
            | Dialect::Backlog
            | Dialect::Mermaid
            | Dialect::Dot
            | Dialect::Graphml
            | Dialect::Svg => {
                keep_foreign(&mut draft, before);
                Ok(Command::Replace(Box::new(draft)))
            }
        }
    }
}

fn revise(changes: PlanChanges) -> Command {
    Command::RevisePlan(Box::new(changes))
}

/// What a document says of a plan: its body, and what else it names.
fn document(draft: Draft, names: bool) -> PlanChanges {
    let named = |text: String| Some(text).filter(|text| names && !text.is_empty());
    PlanChanges {
        body: Some(draft.spec.body),
        title: named(draft.spec.title),
        status: named(draft.spec.status),
        ..PlanChanges::default()
    }
}
