//! `waypost export`: writes a plan in any format, to stdout or to a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::json;
use waypost_core::Draft;
use waypost_formats::jaato::{plans_of_store, write_store};
use waypost_formats::{Dialect, Form, Loss, write, write_many};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::foreign_folders::keep_index;
use waypost_cli::options::output_format;
use waypost_cli::view::text;

/// Maximum number of tasks named for each lost field.
const NAMES_MAX: usize = 5;

const EXAMPLES: &str = "\
What a format cannot hold is named on stderr. With --output nothing of the content is printed.

Examples:
  waypost export kq3
  waypost export kq3 --format markdown --output plan.md
  waypost export kq3 --format clido --strict
  waypost export kq3 ab7 --format jaato --form program --output .jaato/plans.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Export {
    /// Plan id or prefix; jaato's store files take several
    #[arg(required = true)]
    plans: Vec<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_parser = output_format(), default_value = "native")]
    format: Dialect,
    /// Output file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Variant of the format [default: the one that the plan was read in]
    #[arg(long, value_enum)]
    form: Option<FormWord>,
    /// Fail if the format cannot hold everything
    #[arg(long)]
    strict: bool,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Write the plan with its portable approval, for `approve --bundle` elsewhere
    #[arg(long, conflicts_with_all = ["format", "form", "version"])]
    approval: bool,
    /// Export the plan as of this version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

/// Which of a format's two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormWord {
    /// As the format's specification describes it.
    Document,
    /// As the format's own program writes it.
    Program,
}

/// Reports what a format cannot hold: as an error if `strict`, otherwise as a note.
pub(crate) fn report_losses(
    context: &mut Context,
    losses: &[Loss],
    format: Dialect,
    strict: bool,
) -> Outcome {
    if losses.is_empty() {
        return Ok(());
    }
    let lines = loss_lines(losses);
    if strict {
        let message = format!("{format} cannot hold all of the plan; nothing was written");
        let mut failure =
            Failure::failed(message, "leave out --strict, or choose another format such as native");
        failure.code = "losses".to_owned();
        failure.details = lines.into_iter().map(|line| format!("  {line}")).collect();
        return Err(failure.with_fact("losses", json!(losses)));
    }
    if !context.out.json {
        context.out.note_fact(format!("{format} cannot hold all of it: {}", lines.join("; ")));
    }
    Ok(())
}

/// Summarizes losses by field: those of the plan, then those of its tasks.
pub(crate) fn loss_lines(losses: &[Loss]) -> Vec<String> {
    let mut of_plan: Vec<&str> = Vec::new();
    let mut of_tasks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for loss in losses {
        match &loss.task {
            Some(task) => of_tasks.entry(&loss.field).or_default().push(task),
            // Several plans may lose the same field.
            None if of_plan.contains(&loss.field.as_str()) => {}
            None => of_plan.push(&loss.field),
        }
    }
    let mut lines = Vec::new();
    if !of_plan.is_empty() {
        lines.push(format!("{} of the plan", of_plan.join(", ")));
    }
    for (field, tasks) in of_tasks {
        lines.push(format!("{field} of {}", text::names(tasks.into_iter(), NAMES_MAX)));
    }
    lines
}

impl Export {
    /// Writes the plan with its portable approval.
    fn bundle(&self, context: &mut Context) -> Outcome {
        let [plan] = self.plans.as_slice() else {
            return Err(Failure::usage("--approval is for one plan", "name one plan"));
        };
        let found = context.find(plan)?;
        let bundle = found.service.approval_bundle(&found.id)?;
        let Some(path) = &self.output else { return context.out.value(&bundle) };
        files::write(path, &format!("{:#}\n", json!(bundle)), self.force)?;
        let said = format!("wrote plan {} and its approval to {}", found.id, path.display());
        if context.out.json {
            return context.out.value(&json!({ "plans": [{ "id": found.id }], "path": path }));
        }
        context.out.line(said);
        Ok(())
    }

    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if self.approval {
            return self.bundle(context);
        }
        let plans = context.plans()?;
        let mut drafts: Vec<Draft> = Vec::new();
        for plan in &self.plans {
            let found = context.find_in(Arc::clone(&plans), plan)?;
            drafts.push(match self.version {
                Some(version) => {
                    found.note_damage(context)?;
                    plans.at_version(&found.id, version)?.to_draft()
                }
                None => found.view(context, |plan, _| plan.to_draft())?,
            });
        }
        let form = match self.form {
            None => Form::AsRead,
            Some(FormWord::Document) => Form::Document,
            Some(FormWord::Program) => Form::Program,
        };
        if drafts.len() > 1 && self.format != Dialect::Jaato {
            let message = format!("{} holds one plan in a file, and {} are named", self.format, drafts.len());
            return Err(Failure::usage(
                message,
                "name one plan, or choose jaato, whose store files hold several",
            ));
        }
        let known = match &self.output {
            Some(path) if self.force && self.format == Dialect::Jaato && path.is_file() => {
                Some(files::read(&path.display().to_string())?)
            }
            Some(_) | None => None,
        };
        // The other plans of jaato's store stay in it.
        let store = known.as_deref().and_then(plans_of_store);
        let is_store = store.is_some();
        let written = match (drafts.as_slice(), store) {
            (drafts, Some(store)) => write_store(drafts, form, store),
            ([draft], None) => write(draft, self.format, form),
            (drafts, None) => write_many(drafts, self.format, form),
        };
        let writing = written.map_err(|error| Failure::unreadable("export", error))?;
        report_losses(context, &writing.losses, self.format, self.strict)?;
        let versions: Vec<_> =
            drafts.iter().map(|draft| json!({ "id": draft.id, "version": draft.version })).collect();
        let Some(path) = &self.output else {
            if context.out.json {
                let answer = json!({ "plans": versions, "format": self.format, "losses": writing.losses, "text": writing.text });
                return context.out.value(&answer);
            }
            context.out.whole_lines(&writing.text);
            return Ok(());
        };
        match known.filter(|_| is_store) {
            Some(known) if !files::replace(path, &known, &writing.text)? => {
                let message = format!("{} was changed meanwhile; nothing was written", path.display());
                return Err(Failure::failed(message, "run the command again"));
            }
            Some(_) => {}
            None => files::write(path, &writing.text, self.force)?,
        }
        if let [draft] = drafts.as_slice() {
            keep_index(path, self.format, draft)?;
        }
        let bytes = writing.text.len();
        if context.out.json {
            let answer = json!({
                "plans": versions,
                "format": self.format,
                "losses": writing.losses,
                "path": path,
                "bytes": bytes,
            });
            return context.out.value(&answer);
        }
        for draft in &drafts {
            let id = draft.id.as_ref().map(ToString::to_string).unwrap_or_default();
            let name = path.display();
            context.out.line(format!(
                "wrote plan {id}, version {}, to {name} ({}, {bytes} bytes)",
                draft.version, self.format
            ));
        }
        Ok(())
    }
}
