//! The files of a folder that may be plans. Knows how other programs lay out their folders, and reads no file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Failure, Outcome};

/// Maximum number of entries of one folder.
const FILES_MAX: usize = 100_000;
/// Folders inside a program's own folder that contain its plans.
pub const INNER: [&str; 4] = ["plans", "tasks", "backlog/tasks", "sessions"];
/// Files next to plans that are not plans.
const NOT_PLANS: [&str; 3] = ["_state.json", "todo.json", "config.json"];

/// Returns everything in a folder, by name.
pub fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
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

/// Returns the name of a file.
pub fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn may_be_plan(path: &Path) -> bool {
    let name = name_of(path);
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let known = ending.is_some_and(|ending| matches!(ending.as_str(), "json" | "jsonl" | "md" | "markdown"));
    known && !name.starts_with('.') && !NOT_PLANS.contains(&name.as_str()) && path.is_file()
}

/// Returns the files of a folder that may be plans, by name.
pub fn plan_files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    Ok(entries(folder)?.into_iter().filter(|path| may_be_plan(path)).collect())
}
