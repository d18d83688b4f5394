//! What an agent changed in the worktree that Waypost made for its attempt, as front ends show it: lines with a sign. Names and
//! contents are whatever the agent wrote, so they are sanitized and short.

use std::path::Path;

use serde::Serialize;
use waypost_core::{Change, PlanId, TaskId, line_changes};
use waypost_git::{ChangedFile, ChangedFiles, FileContent, GitError, Repository, worktree_names};
use waypost_store::log_file_name;
use waypost_text::{head_bytes, one_line, sanitize_line};

/// Maximum number of lines of one file, and of all together.
const FILE_LINES_MAX: usize = 1_000;
const LINES_MAX: usize = 6_000;
/// Maximum bytes of a line and of a path.
const LINE_BYTES_MAX: usize = 1_000;

/// Where the changes of an attempt are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangesPlace {
    /// In its worktree, perhaps not committed yet.
    Worktree,
    /// In the commits of its branch; the worktree is gone.
    Branch,
    /// Nowhere on this machine.
    Nowhere,
}

/// A file that an agent changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Its path in the repository.
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub change: &'static str,
    /// The lines that differ with those around, each with `+`, `-` or a space before it; `@` and a number for omitted equal lines.
    pub lines: Vec<String>,
    /// The number of new lines, also of those that are not listed.
    pub insertions: usize,
    /// The number of removed lines, also of those that are not listed.
    pub deletions: usize,
    /// Why there are no lines, or not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// What an agent changed for a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskChanges {
    /// The attempt.
    pub attempt: u32,
    /// Where the changes are.
    pub place: ChangesPlace,
    /// The branch of the attempt.
    pub branch: String,
    /// The commit that the attempt began at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The last commit of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The first changed files, by path.
    pub files: Vec<FileChange>,
    /// The number of all changed files.
    pub files_total: usize,
    /// Why nothing can be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Finds what an attempt of a task changed. `worktrees` is the folder that this workspace has its worktrees in: no other folder is
/// read, and none that git does not know as a worktree. A repository that cannot be read is a note and no error.
pub fn task_changes(
    repository: Option<&Repository>,
    worktrees: &Path,
    (plan, task, attempt): (&PlanId, &TaskId, u32),
) -> TaskChanges {
    let (folder, branch) = worktree_names(plan, &log_file_name(task.as_str()), attempt);
    let mut changes = TaskChanges {
        attempt,
        place: ChangesPlace::Nowhere,
        branch,
        base: None,
        commit: None,
        files: Vec::new(),
        files_total: 0,
        note: None,
    };
    let found = match repository {
        Some(repository) => find(repository, worktrees, &folder, &mut changes),
        None => Ok(None),
    };
    match found {
        Ok(Some(found)) => list(found, &mut changes),
        Ok(None) => {
            changes.note = Some(
                "no worktree and no branch of this attempt are in the repository of this server".to_owned(),
            );
        }
        Err(error) => changes.note = Some(one_line(&error.to_string()).into_owned()),
    }
    changes.branch = one_line(&changes.branch).into_owned();
    changes
}

/// Whether the worktree of an attempt is on this machine.
pub fn has_worktree(worktrees: &Path, (plan, task, attempt): (&PlanId, &TaskId, u32)) -> bool {
    let (folder, _) = worktree_names(plan, &log_file_name(task.as_str()), attempt);
    worktrees.join(folder).is_dir()
}

fn find(
    repository: &Repository,
    worktrees: &Path,
    folder: &Path,
    changes: &mut TaskChanges,
) -> Result<Option<ChangedFiles>, GitError> {
    let Some((base, commit)) = repository.branch_start(&changes.branch)? else { return Ok(None) };
    changes.base = Some(base.as_str().to_owned());
    changes.commit = Some(commit.as_str().to_owned());
    if repository.has_worktree(worktrees, folder)? {
        changes.place = ChangesPlace::Worktree;
        return repository.changed_in_worktree(&base, &worktrees.join(folder)).map(Some);
    }
    changes.place = ChangesPlace::Branch;
    repository.changed_in_commit(&base, &commit).map(Some)
}

fn list(found: ChangedFiles, changes: &mut TaskChanges) {
    changes.files_total = found.total;
    let mut left = LINES_MAX;
    for file in found.files {
        let change = file_change(&file, left.min(FILE_LINES_MAX));
        left -= change.lines.len();
        changes.files.push(change);
    }
}

fn file_change(file: &ChangedFile, lines_max: usize) -> FileChange {
    let change = match (&file.before, &file.after) {
        (None, _) => "added",
        (_, None) => "removed",
        (Some(_), Some(_)) => "changed",
    };
    let path = head_bytes(&sanitize_line(&file.path), LINE_BYTES_MAX).to_owned();
    let mut found = FileChange { path, change, lines: Vec::new(), insertions: 0, deletions: 0, note: None };
    let sides = (text_of(file.before.as_ref()), text_of(file.after.as_ref()));
    let (old, new) = match sides {
        (Ok(old), Ok(new)) => (old, new),
        (Err(note), _) | (_, Err(note)) => {
            found.note = Some(note);
            return found;
        }
    };
    if old == new {
        found.note = Some("only its mode changed");
    }
    for line in line_changes(&old, &new) {
        let text = match line {
            Change::Same(text) => format!(" {}", short(text)),
            Change::Old(text) => {
                found.deletions += 1;
                format!("-{}", short(text))
            }
            Change::New(text) => {
                found.insertions += 1;
                format!("+{}", short(text))
            }
            Change::Gap(lines) => format!("@{lines}"),
        };
        match found.lines.len() < lines_max {
            true => found.lines.push(text),
            false => found.note = Some("the rest is not listed"),
        }
    }
    found
}

fn short(line: &str) -> String {
    // A tab is as wide as people expect it in a difference.
    head_bytes(&sanitize_line(&line.replace('\t', "    ")), LINE_BYTES_MAX).to_owned()
}

/// The text of a side, or why there is none to compare.
fn text_of(side: Option<&FileContent>) -> Result<String, &'static str> {
    match side {
        None => Ok(String::new()),
        Some(FileContent::Text(text)) => Ok(text.clone()),
        Some(FileContent::Link(target)) => Ok(format!("link to {target}")),
        Some(FileContent::Binary) => Err("not a text"),
        Some(FileContent::TooLarge) => Err("too large to be shown here"),
        Some(FileContent::Unreadable) => Err("cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(before: Option<FileContent>, after: Option<FileContent>) -> FileChange {
        file_change(&ChangedFile { path: "a\u{1b}[31m/b".to_owned(), before, after }, FILE_LINES_MAX)
    }

    fn text(text: &str) -> Option<FileContent> {
        Some(FileContent::Text(text.to_owned()))
    }

    #[test]
    fn lines_have_signs_and_nothing_that_a_terminal_obeys() {
        let found = file(text("one\ntwo\n"), text("one\n\u{1b}]0;x\u{7}2\n"));
        assert_eq!((found.insertions, found.deletions, found.change), (1, 1, "changed"));
        assert_eq!(found.lines[..2], [" one", "-two"]);
        assert!(!found.lines[2].contains('\u{1b}') && found.lines[2].starts_with('+'), "{:?}", found.lines);
        assert!(!found.path.contains('\u{1b}'));
    }

    #[test]
    fn what_is_no_text_is_named() {
        assert_eq!(file(None, Some(FileContent::Binary)).note, Some("not a text"));
        assert_eq!(file(text("a"), Some(FileContent::TooLarge)).note, Some("too large to be shown here"));
        assert_eq!(file(text("a"), text("a")).note, Some("only its mode changed"));
        assert_eq!(file(text("a"), None).change, "removed");
    }

    #[test]
    fn a_long_file_ends_at_the_limit_and_is_counted_whole() {
        let long: String = (0..FILE_LINES_MAX + 5).map(|line| format!("{line}\n")).collect();
        let found = file(None, text(&long));
        assert_eq!((found.lines.len(), found.insertions), (FILE_LINES_MAX, FILE_LINES_MAX + 5));
        assert_eq!(found.note, Some("the rest is not listed"));
    }
}
