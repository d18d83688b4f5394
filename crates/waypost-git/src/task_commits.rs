//! The commits of code that name their task in a `Waypost-Task: PLAN/TASK` trailer. Knows no plan.

use waypost_core::Timestamp;

use crate::error::GitError;
use crate::program::Access;
use crate::repository::{Oid, Repository, malformed};
use crate::run::{TimeLimit, run};

/// The trailer that names the task of a commit.
pub const TASK_TRAILER: &str = "Waypost-Task";
/// Maximum number of commits that are returned.
pub const TASK_COMMITS_MAX: usize = 50;
/// Seconds that a search may take.
pub const SEARCH_SECONDS_MAX: u64 = 3;
/// Seconds by which the clocks of those who commit may differ from ours.
const CLOCK_SECONDS_MAX: u64 = 24 * 3_600;
/// Separates the fields of a commit, and the values of its trailers.
const FIELD: char = '\u{1f}';
const VALUE: char = '\u{1e}';
const FORMAT: &str =
    "--format=%H%x1f%ct%x1f%an%x1f%s%x1f%(trailers:key=Waypost-Task,valueonly,unfold,separator=%x1e)";

/// A commit that was made for a task. Its texts are whatever its author wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCommit {
    /// The commit.
    pub commit: Oid,
    /// When it was committed.
    pub at: Timestamp,
    /// The name of its author.
    pub author: String,
    /// The first line of its message.
    pub title: String,
}

/// The commits of a task, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskCommits {
    /// At most [`TASK_COMMITS_MAX`].
    pub commits: Vec<TaskCommit>,
    /// Whether there are more.
    pub more: bool,
}

impl Repository {
    /// Finds the commits whose trailer names this task (`PLAN/TASK`), on all branches of this clone and of its remotes. Looks at
    /// no commit that is older than `since`, and gives up after [`SEARCH_SECONDS_MAX`].
    pub fn task_commits(&self, task: &str, since: Option<Timestamp>) -> Result<TaskCommits, GitError> {
        // One more, to know whether there are more; the search finds other tasks that begin with this name, too.
        let limit = format!("--max-count={}", 4 * TASK_COMMITS_MAX);
        let (key, value) = (format!("--grep={TASK_TRAILER}:"), format!("--grep={task}"));
        let since = since.map(|since| format!("--since={}", since.minus_seconds(CLOCK_SECONDS_MAX)));
        let mut words = vec![
            "log",
            "-z",
            FORMAT,
            // A repository can name the program that checks signatures, and the file with other names of authors.
            "--no-show-signature",
            "--no-mailmap",
            "--no-color",
            "--fixed-strings",
            // The names of trailers have no case.
            "--regexp-ignore-case",
            "--all-match",
            &limit,
            &key,
            &value,
        ];
        words.extend(since.as_deref());
        // Not the stash, not notes, and not the branches of shared plans, which hold no code.
        words.extend(["--exclude=refs/stash", "--exclude=refs/notes/*", "--exclude=refs/waypost/*"]);
        words.extend(["--exclude=refs/waypost-remotes/*", "--all", "--"]);
        let output = run("log", self.prepare(Access::Read, &words), b"", TimeLimit::of(SEARCH_SECONDS_MAX))?;
        if !output.succeeded {
            return Err(GitError::Failed { command: "log".to_owned(), message: output.message });
        }
        let text = String::from_utf8_lossy(&output.text);
        let mut found = TaskCommits::default();
        for record in text.split('\0').filter(|record| !record.is_empty()) {
            let Some(commit) = parse(record, task)? else { continue };
            if found.commits.len() == TASK_COMMITS_MAX {
                found.more = true;
                break;
            }
            found.commits.push(commit);
        }
        Ok(found)
    }

    /// Adds the trailer of a task to the message of a commit that is being made, unless it is there already.
    pub fn add_task_trailer(&self, message: &std::path::Path, task: &str) -> Result<(), GitError> {
        let trailer = format!("--trailer={TASK_TRAILER}: {task}");
        let path =
            message.to_str().ok_or_else(|| malformed("interpret-trailers", "a path that is not UTF-8"))?;
        let words = [
            "interpret-trailers",
            "--in-place",
            "--if-exists=addIfDifferent",
            "--no-divider",
            &trailer,
            "--",
            path,
        ];
        self.succeed(Access::Write, &words, b"").map(drop)
    }
}

/// Parses a commit; `None` if none of its trailers names this task.
fn parse(record: &str, task: &str) -> Result<Option<TaskCommit>, GitError> {
    let fields: Vec<&str> = record.splitn(5, FIELD).collect();
    let &[commit, seconds, author, title, tasks] = &fields[..] else {
        return Err(malformed("log", record));
    };
    // People write several tasks into one trailer; the id of a task may have a comma of its own.
    let names_task = |value: &str| value.trim() == task || value.split(',').any(|one| one.trim() == task);
    if !tasks.split(VALUE).any(names_task) {
        return Ok(None);
    }
    let seconds: i64 = seconds.parse().map_err(|_| malformed("log", record))?;
    let at = Timestamp::from_micros(seconds.saturating_mul(1_000_000));
    let (author, title) = (author.to_owned(), title.to_owned());
    Ok(Some(TaskCommit { commit: Oid::new(commit)?, at, author, title }))
}
