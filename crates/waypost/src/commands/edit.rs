//! `waypost edit`: opens a plan in the person's editor. If the edited text cannot be saved, the draft stays in its file.

use std::path::{Path, PathBuf};
use std::process;

use clap::{Args, ValueEnum};
use waypost_core::Plan;
use waypost_formats::{Dialect, Form, write};
use waypost_service::SourceText;

use waypost_cli::context::{Context, PlanHandle};
use waypost_cli::error::{Exit, Failure, Outcome};
use waypost_cli::options::Guard;
use waypost_cli::{files, prompt};

/// The editor if none is configured and there is a terminal.
const EDITOR_DEFAULT: &str = "vi";

const EXAMPLES: &str = "\
Opens $VISUAL, or $EDITOR. Ticking a checkbox marks the task done.

Examples:
  waypost edit kq3
  waypost edit kq3 --format native
  EDITOR='code --wait' waypost edit kq3";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Edit {
    /// Plan id, or an unambiguous prefix
    plan: String,
    /// Format to edit in
    #[arg(long, value_enum, default_value_t)]
    format: EditFormat,
    #[command(flatten)]
    guard: Guard,
}

/// As what to edit a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum EditFormat {
    /// Markdown with a checklist.
    #[default]
    Markdown,
    /// Waypost's own JSON.
    Native,
}

impl Edit {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let editor = editor()?;
        let found = context.find(&self.plan)?;
        self.edit(context, &found, &editor)
    }

    fn edit(&self, context: &mut Context, found: &PlanHandle, editor: &str) -> Outcome {
        let plan = found.read(Clone::clone)?;
        if let Some(known) = self.guard.expect_version.filter(|&known| known != plan.version()) {
            found.service.check_guard(&context.caller()?, &found.id, Some(known).into())?;
        }
        let before = plan.to_draft();
        let (dialect, form, ending) = match self.format {
            EditFormat::Markdown => (Dialect::Markdown, Form::Document, "md"),
            EditFormat::Native => (Dialect::Native, Form::AsRead, "json"),
        };
        let text =
            write(&before, dialect, form).map_err(|error| Failure::unreadable("the plan", error))?.text;
        let path =
            files::write_private(&std::env::temp_dir(), &format!("waypost-{}", found.id), ending, &text)?;
        loop {
            open_editor(editor, &path)?;
            let edited = read_back(&path)?;
            if edited == text {
                let _gone = std::fs::remove_file(&path);
                context.out.say("nothing was changed");
                return Ok(());
            }
            let attempt = save(context, found, &plan, &edited, dialect);
            let Err(failure) = attempt else {
                let _gone = std::fs::remove_file(&path);
                return Ok(());
            };
            if failure.exit == Exit::Invalid && prompt::can_ask() && !context.out.json {
                context.out.failure(&failure);
                // Ctrl-C and Ctrl-D are no answers, and keep the draft.
                let answer = prompt::ask("Edit it again? [Y/n]").ok().flatten();
                if answer.is_some_and(|answer| matches!(answer.trim(), "" | "y" | "Y" | "yes")) {
                    continue;
                }
            }
            return Err(kept(failure, &path));
        }
    }
}

/// Opens a plan that was just created.
pub(crate) fn edit(context: &mut Context, found: &PlanHandle) -> Outcome {
    let asked = Edit { plan: found.id.to_string(), format: EditFormat::default(), guard: Guard::default() };
    asked.edit(context, found, &editor()?)
}

/// Opens a text in the person's editor. Returns `None` if it was not changed.
pub(crate) fn edit_text(name: &str, ending: &str, text: &str) -> Outcome<Option<String>> {
    let editor = editor()?;
    let path = files::write_private(&std::env::temp_dir(), name, ending, text)?;
    open_editor(&editor, &path)?;
    let edited = read_back(&path)?;
    let _gone = std::fs::remove_file(&path);
    Ok((edited != text).then_some(edited))
}

/// Adds the path of the kept draft to a failure.
fn kept(mut failure: Failure, path: &Path) -> Failure {
    if failure.exit == Exit::Conflict {
        failure.hint = "edit the plan again, and copy what you need from your draft".to_owned();
    }
    let shown = path.display().to_string();
    failure.with_detail(format!("  your draft is kept in {shown}")).with_fact("draft", shown)
}

fn read_back(path: &Path) -> Outcome<String> {
    files::read(&path.display().to_string()).map_err(|failure| kept(failure, path))
}

/// Saves the edited text as one version, guarded by the version that was opened.
fn save(context: &mut Context, found: &PlanHandle, plan: &Plan, edited: &str, dialect: Dialect) -> Outcome {
    let name = "the draft".to_owned();
    let source = SourceText { text: edited.to_owned(), format: Some(dialect), file_name: None, name };
    let reply = found.service.update(&context.caller()?, &found.id, source, Some(plan.version()).into())?;
    for note in &reply.notes {
        context.out.note_fact(note);
    }
    context.done(found, &reply.written, "saved")
}

fn editor() -> Outcome<String> {
    let said = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.trim().is_empty()));
    match said {
        Some(editor) => Ok(editor),
        None if prompt::can_ask() => Ok(EDITOR_DEFAULT.to_owned()),
        None => Err(Failure::failed(
            "no terminal, and neither VISUAL nor EDITOR is set",
            "set EDITOR, or use `waypost export` and `waypost update` on a file",
        )),
    }
}

fn open_editor(editor: &str, path: &PathBuf) -> Outcome {
    // The shell splits options of the editor, as other programs do.
    let status =
        process::Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).status();
    let status =
        status.map_err(|error| Failure::failed(format!("{editor}: {error}"), "set EDITOR to an editor"))?;
    if status.success() {
        return Ok(());
    }
    use std::os::unix::process::ExitStatusExt;
    let interrupted = status.signal() == Some(2) || status.code() == Some(130);
    let exit = if interrupted { Exit::Interrupted } else { Exit::Failed };
    let message = format!("the editor `{editor}` ended with {status}, and nothing was written");
    Err(kept(Failure::new(exit, message, "check that EDITOR names a working editor"), path))
}
