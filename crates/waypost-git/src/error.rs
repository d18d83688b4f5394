//! Why git did not do what it was asked for.

use std::path::PathBuf;

/// A git command that failed, or a repository that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git program that may be used.
    #[error("{0}")]
    NoProgram(String),
    /// The program could not be started, or its pipes broke.
    #[error("git {command}: {error}")]
    Io {
        /// The first word of the command.
        command: String,
        /// What the operating system reports.
        error: std::io::Error,
    },
    /// Git ended with an error.
    #[error("git {command}: {message}")]
    Failed {
        /// The first word of the command.
        command: String,
        /// What git printed.
        message: String,
    },
    /// Git did not end in time, and was ended.
    #[error("git {command} made no progress for {seconds} seconds")]
    TimedOut {
        /// The first word of the command.
        command: String,
        /// The limit.
        seconds: u64,
    },
    /// Git printed something else than what its manual says.
    #[error("git {command} printed something unexpected: {output}")]
    Malformed {
        /// The first word of the command.
        command: String,
        /// What it printed, shortened.
        output: String,
    },
    /// The folder is not in a repository.
    #[error("{0} is not in a git repository")]
    NoRepository(PathBuf),
    /// The name of a reference or a remote cannot be used.
    #[error("{what} {name:?} {problem}")]
    BadName {
        /// What kind of name it is.
        what: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The reference has a meaning of its own, or holds something else than plans.
    #[error("{name} {problem}")]
    NotOurs {
        /// The reference.
        name: String,
        /// What it is instead.
        problem: &'static str,
    },
    /// A newer Waypost wrote the branch.
    #[error("{name} has the format {found}; this build knows up to {known}")]
    TooNew {
        /// The reference.
        name: String,
        /// The format of the branch.
        found: u32,
        /// The newest format that this build knows.
        known: u32,
    },
    /// The branch is checked out, so moving it would show deletions that nobody made.
    #[error("{name} is checked out in {folder}")]
    CheckedOut {
        /// The reference.
        name: String,
        /// Where it is checked out.
        folder: String,
    },
    /// Another process moved the branch meanwhile: read it again.
    #[error("{0} moved meanwhile")]
    Moved(String),
    /// The branch holds more than this build reads.
    #[error("{name} holds more than {limit} files")]
    TooManyFiles {
        /// The reference or commit.
        name: String,
        /// The limit.
        limit: usize,
    },
}

impl GitError {
    /// Returns what the user can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoProgram(_) => "install git",
            Self::Io { .. } | Self::Failed { .. } | Self::Malformed { .. } => {
                "git's own message says why; nothing was changed"
            }
            Self::TimedOut { .. } => "check the connection to the remote, then try again",
            Self::NoRepository(_) => "run `git init`, or change to a folder of a repository",
            Self::BadName { what: "the commit", .. } => "`git branch --all` lists what is here",
            Self::BadName { .. } => "check [git] in the configuration",
            Self::NotOurs { name, .. } if !name.starts_with("refs/") => "name a branch that Waypost wrote",
            Self::NotOurs { .. } => {
                "if somebody overwrote it, push it again from a clone that has it: `git push --force REMOTE BRANCH`; otherwise set \
                 git.ref in the configuration to a branch that only Waypost uses"
            }
            Self::TooNew { .. } => {
                "update Waypost; if nobody uses a newer one, force-push the branch from a clone that has it as it was"
            }
            Self::CheckedOut { .. } => "check out another branch there",
            Self::Moved(_) => "try again",
            Self::TooManyFiles { .. } => "share fewer plans, or set git.ref to another branch",
        }
    }
}
