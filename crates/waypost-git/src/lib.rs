//! Runs the user's `git`, keeps shared plans on a branch of a repository that is never checked out, and finds the
//! commits that were made for a task and the files that an agent changed for it.
//!
//! Knows nothing of plans: it moves lines. What a line means, and whether it may be believed, the caller decides.

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

mod changed_files;
mod error;
mod layout;
mod plan_branch;
mod program;
mod publish;
mod remote;
mod repository;
mod run;
mod task_commits;
mod tree;
mod union;

pub use changed_files::{
    CHANGED_BYTES_MAX, CHANGED_FILE_BYTES_MAX, CHANGED_FILES_MAX, ChangedFile, ChangedFiles, FileContent,
    worktree_names,
};
pub use error::GitError;
pub use layout::{
    FILE_BYTES_MAX, FORMAT, LINE_BYTES_MAX, PACK_BYTES_MAX, SEGMENT_BYTES_MAX, SEGMENTS_MAX, Segment,
    is_pack, plan_of_path,
};
pub use plan_branch::PlanBranch;
pub use program::Git;
pub use publish::{Author, Publication};
pub use remote::{Fetched, Pushed};
pub use repository::{Oid, RefName, RemoteName, Repository, Tip};
pub use run::end_commands;
pub use task_commits::{SEARCH_SECONDS_MAX, TASK_COMMITS_MAX, TASK_TRAILER, TaskCommit, TaskCommits};
pub use tree::{Changes, Damage, Line, TREE_FILES_MAX, TreeFile};
