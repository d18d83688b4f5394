//! Reads the folders in which other programs keep plans. Knows their layout, not their formats.

use std::path::Path;

use waypost_formats::{Dialect, Unreadable, read as read_text, read_backlog, sniff};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::files;
use waypost_cli::plan_folder::{INNER, entries, name_of, plan_files};
use waypost_cli::plan_input::Source;

#[derive(Default)]
pub(super) struct Sources {
    /// The files that contain plans.
    pub(super) sources: Vec<Source>,
    /// The reasons why files are left out.
    pub(super) left: Vec<Failure>,
}

/// Reads all plans of a folder. A bad file is recorded and does not prevent reading the rest.
pub(super) fn read(
    context: &mut Context,
    folder: &Path,
    dialect: Option<Dialect>,
    found: &mut Sources,
) -> Outcome {
    let before = found.sources.len() + found.left.len();
    let inner = INNER.iter().map(|name| folder.join(name)).filter(|inner| inner.is_dir());
    for folder in [folder.to_owned()].into_iter().chain(inner) {
        read_files(context, &folder, dialect, found)?;
        if folder.file_name().is_some_and(|name| name == "sessions") {
            // jaato's server keeps each session's plans in a folder of its own.
            for session in entries(&folder)?.into_iter().filter(|path| path.is_dir()) {
                let plans = session.join("plans");
                if plans.is_dir() {
                    read_files(context, &plans, dialect, found)?;
                }
            }
        }
    }
    if found.sources.len() + found.left.len() == before {
        let message = format!("no plan was found in {}", folder.display());
        return Err(Failure::not_found(message, "name the files, or the folder that holds them"));
    }
    Ok(())
}

fn read_files(
    context: &mut Context,
    folder: &Path,
    dialect: Option<Dialect>,
    found: &mut Sources,
) -> Outcome {
    let mut backlog = Vec::new();
    for path in plan_files(folder)? {
        let shown = path.display().to_string();
        let text = match files::read(&shown) {
            Ok(text) => text,
            Err(failure) => {
                found.left.push(failure);
                continue;
            }
        };
        let looks = dialect.or_else(|| sniff(&text, Some(&shown)));
        if looks == Some(Dialect::Backlog) {
            backlog.push((name_of(&path), text));
            continue;
        }
        match read_text(&text, looks, Some(&shown)) {
            Ok(reading) if is_index(&path, &reading.drafts) => {
                context.out.note(format!("{shown} is an index of the plans beside it; skipped"));
            }
            Ok(reading) => found.sources.push(Source { name: shown, reading }),
            Err(Unreadable::UnknownFormat | Unreadable::NoPlan(_)) => {
                context.out.note(format!("{shown} is not a plan; skipped"));
            }
            Err(error) => found.left.push(Failure::unreadable(&shown, error)),
        }
    }
    if !backlog.is_empty() {
        found.sources.push(Source { name: folder.display().to_string(), reading: read_backlog(&backlog) });
    }
    Ok(())
}

/// Whether a file only lists the plans that are in files next to it.
fn is_index(path: &Path, drafts: &[waypost_core::Draft]) -> bool {
    name_of(path) == "index.json" && drafts.iter().all(|draft| draft.tasks.is_empty())
}
