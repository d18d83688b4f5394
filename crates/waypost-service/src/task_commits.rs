//! The commits that were made for a task, as front ends show them. Their texts are whatever somebody committed, so they are
//! sanitized and short.

use serde::Serialize;
use waypost_core::{PlanId, TaskId, Timestamp};
use waypost_git::{GitError, Repository, SEARCH_SECONDS_MAX};
use waypost_text::{excerpt, one_line};

/// Maximum width of a title and of an author's name, in columns.
const TEXT_COLUMNS_MAX: usize = 100;

/// A commit that was made for a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitOfTask {
    /// The commit, in full.
    pub commit: String,
    /// When it was committed, as it says.
    pub at: Timestamp,
    /// The name of its author, as it says.
    pub author: String,
    /// The first line of its message.
    pub title: String,
}

impl CommitOfTask {
    /// Returns the first characters of the commit, as git shows it.
    pub fn short(&self) -> &str {
        self.commit.get(..10).unwrap_or(&self.commit)
    }
}

/// The commits of a task, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CommitsOfTask {
    /// The commits, on all branches of this clone.
    pub commits: Vec<CommitOfTask>,
    /// Whether there are more.
    pub more: bool,
    /// Why they could not be searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Finds the commits whose `Waypost-Task` trailer names this task of a plan that was created at `created`. A repository that cannot be
/// searched is a note and no error: the task itself can be shown.
pub fn task_commits(
    repository: &Repository,
    plan: &PlanId,
    task: &TaskId,
    created: Option<Timestamp>,
) -> CommitsOfTask {
    let found = match repository.task_commits(&format!("{plan}/{task}"), created) {
        Ok(found) => found,
        Err(error) => return CommitsOfTask { note: Some(note_of(&error)), ..CommitsOfTask::default() },
    };
    let short = |text: &str| excerpt(&one_line(text), TEXT_COLUMNS_MAX).into_owned();
    let commits = found.commits.iter().map(|found| CommitOfTask {
        commit: found.commit.as_str().to_owned(),
        at: found.at,
        author: short(&found.author),
        title: short(&found.title),
    });
    CommitsOfTask { commits: commits.collect(), more: found.more, note: None }
}

fn note_of(error: &GitError) -> String {
    if matches!(error, GitError::TimedOut { .. }) {
        return format!("git did not find the commits of this task within {SEARCH_SECONDS_MAX} seconds");
    }
    one_line(&error.to_string()).into_owned()
}
