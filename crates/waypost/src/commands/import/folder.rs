//! Reads the folders in which other programs keep plans. Knows their layout, not their formats.

use std::fs;
use std::path::{Path, PathBuf};

use waypost_formats::{Dialect, Unreadable, read as read_text, read_backlog, sniff};

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::files;
use crate::plan_input::Source;

/// Maximum number of entries of one folder.
const FILES_MAX: usize = 100_000;
/// Folders inside a program's own folder that contain its plans.
pub(crate) const INNER: [&str; 4] = ["plans", "tasks", "backlog/tasks", "sessions"];
/// Files next to plans that are not plans.
const NOT_PLANS: [&str; 3] = ["_state.json", "todo.json", "config.json"];

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

fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let failed = |error: std::io::Error| Failure::file(folder, &error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
        if paths.len() > FILES_MAX {
            let message = format!("{} has more than {FILES_MAX} entries", folder.display());
            return Err(Failure::failed(message, "name the files"));
        }
    }
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn may_be_plan(path: &Path) -> bool {
    let name = name_of(path);
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let known = ending.is_some_and(|ending| matches!(ending.as_str(), "json" | "jsonl" | "md" | "markdown"));
    known && !name.starts_with('.') && !NOT_PLANS.contains(&name.as_str()) && path.is_file()
}

/// Returns the files of a folder that may be plans, by name.
pub(crate) fn plan_files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    Ok(entries(folder)?.into_iter().filter(|path| may_be_plan(path)).collect())
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
