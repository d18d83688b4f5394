//! A map of a repository for a model: its paths. Reads no file contents.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use waypost_git::Git;

use waypost_cli::error::{Failure, Outcome};
use waypost_cli::load_config::variables;

/// Maximum number of paths in a map.
const PATHS_MAX: usize = 2_000;
/// Maximum depth of folders that are walked without git.
const LEVELS_MAX: usize = 6;
/// Folders that are irrelevant to a project.
const PASSED_OVER: [&str; 4] = ["node_modules", "target", "dist", "__pycache__"];

/// The paths of a workspace: those that git lists, or without git those that exist.
pub(super) fn of(workspace: &Path) -> Outcome<String> {
    let mut paths = match known_to_git(workspace) {
        Some(paths) => paths,
        None => walked(workspace)?,
    };
    paths.sort();
    let more = paths.len().saturating_sub(PATHS_MAX);
    paths.truncate(PATHS_MAX);
    let mut map = paths.join("\n");
    if more > 0 {
        map.push_str(&format!("\n(and {more} more)"));
    }
    Ok(map)
}

fn known_to_git(workspace: &Path) -> Option<Vec<String>> {
    let git = Git::find(&variables(), workspace).ok()?;
    let words = git.command(&["ls-files", "--cached", "--others", "--exclude-standard"]);
    let (program, words) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(words).current_dir(workspace).env_clear();
    command.envs(git.variables.iter().map(|(name, value)| (name, value)));
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().map(str::to_owned).collect())
}

fn walked(workspace: &Path) -> Outcome<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders: Vec<(PathBuf, usize)> = vec![(workspace.to_owned(), 0)];
    while let Some((folder, level)) = folders.pop() {
        let failed = |error: std::io::Error| Failure::file(&folder, &error);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.starts_with('.') || PASSED_OVER.contains(&name.as_str()) || path.is_symlink() {
                continue;
            }
            if path.is_dir() && level < LEVELS_MAX {
                folders.push((path, level + 1));
            } else if let Ok(inside) = path.strip_prefix(workspace) {
                paths.push(inside.display().to_string());
            }
            if paths.len() > PATHS_MAX {
                return Ok(paths);
            }
        }
    }
    Ok(paths)
}
