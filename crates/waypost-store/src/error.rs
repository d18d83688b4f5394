//! Errors below a plan: damage, other writers, files and databases.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use waypost_core::{PlanId, Timestamp};

use crate::rows::version_words;

/// Maximum number of seconds that a writer waits for other processes.
pub const BUSY_SECONDS_MAX: u64 = 60;

/// The reason why a store failed.
#[derive(Clone, Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum StoreError {
    /// A file or row is not in a form that Waypost writes. It is left unchanged.
    #[error("{what} is damaged: {detail}")]
    Corrupt {
        /// The name of the file or row.
        what: String,
        /// The damage that was found.
        detail: String,
    },
    /// A newer Waypost wrote this store.
    #[error("{what} has schema {found}, and this build knows schemas up to {known}")]
    TooNew {
        /// The name of the store.
        what: String,
        /// The schema of the store.
        found: u32,
        /// The newest schema that this build supports.
        known: u32,
    },
    /// Other processes wrote for longer than [`BUSY_SECONDS_MAX`].
    #[error("the store stayed busy for {BUSY_SECONDS_MAX} seconds")]
    Busy,
    /// A process that was stopped while it wrote holds the store's lock.
    #[error("process {process} ({program}) is stopped and holds the lock for writing to {what}")]
    HolderStopped {
        /// The name of the store.
        what: String,
        /// The id of the process.
        process: u32,
        /// The name of its program.
        program: String,
    },
    /// The file system failed.
    #[error("{}: {source}", path.display())]
    Files {
        /// The file or folder that was used.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<std::io::Error>,
    },
    /// No space is left on the disk, or in the quota of the user. The store is as it was.
    #[error("no disk space is left for {what}")]
    DiskFull {
        /// The name of the store or the file.
        what: String,
    },
    /// The files of the store are no longer where this process opened them.
    #[error("{what} was removed, moved or replaced while it was in use")]
    StoreRemoved {
        /// The name of the store.
        what: String,
    },
    /// The database failed.
    #[error("{0}")]
    Database(String),
    /// No connection to the server of the database.
    #[error("{0}")]
    Unreachable(String),
    /// The file at that location is not a database.
    #[error("{0} is not a database")]
    NotADatabase(String),
    /// The events of these versions were removed ([`crate::Rewrite::prune`]), or were lost when a file was damaged.
    #[error("{}", of_pruned(plan, (*from, *up_to), *at, lost))]
    Pruned {
        /// The id of the plan.
        plan: PlanId,
        /// The first version that cannot be shown.
        from: u64,
        /// The last version that cannot be shown.
        up_to: u64,
        /// When the versions were pruned or lost.
        at: Timestamp,
        /// The versions whose events were lost, as ranges; empty if they were pruned.
        lost: Vec<(u64, u64)>,
    },
    /// The text is not a cursor of a list in that order.
    #[error("{0:?} is not a cursor of this list")]
    BadCursor(String),
    /// The text does not name a store.
    #[error("{0:?} names no store: write sqlite:PATH, postgres://USER@HOST/DATABASE, file:DIR or memory:")]
    BadLocation(String),
}

/// The result of a store operation.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Returns the date of a timestamp as `YYYY-MM-DD`.
pub(crate) fn day(at: Timestamp) -> String {
    at.to_string().chars().take_while(|&sign| sign != 'T').collect()
}

fn of_pruned(plan: &PlanId, hidden: (u64, u64), at: Timestamp, lost: &[(u64, u64)]) -> String {
    let (hidden, at) = (version_words(&[hidden]), day(at));
    match lost {
        [] => format!("{hidden} of plan {plan} were pruned on {at}"),
        lost => {
            format!(
                "{hidden} of plan {plan} cannot be shown: the events of {} were lost, and the plan was repaired on {at}",
                version_words(lost)
            )
        }
    }
}

impl StoreError {
    /// Returns the error for a file or folder that could not be used.
    pub(crate) fn files(path: &Path, source: std::io::Error) -> Self {
        match matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            true => Self::DiskFull { what: path.display().to_string() },
            false => Self::Files { path: path.to_owned(), source: source.into() },
        }
    }

    /// Whether this account cannot write the store, or no disk space is left.
    pub fn is_unwritable(&self) -> bool {
        let Self::Files { source, .. } = self else { return matches!(self, Self::DiskFull { .. }) };
        matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
    }

    /// Returns the stable code of the error, for programs.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }

    /// Returns what the user can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Corrupt { .. } => "nothing was changed; check the store",
            Self::TooNew { .. } => "update Waypost",
            Self::Busy => "try again; if it lasts, see which process holds the store",
            Self::HolderStopped { .. } => "continue that process (kill -CONT) or end it, then try again",
            Self::Files { source, .. } if source.kind() == ErrorKind::IsADirectory => {
                "name a file, for example sqlite:FOLDER/waypost.db"
            }
            Self::Files { .. } if self.is_unwritable() => {
                "let this account read and write the folder and what is in it (`ls -ld` shows who may), or use another store"
            }
            Self::Files { .. } => "see that the path exists and may be read and written",
            Self::DiskFull { .. } => "free disk space, then try again",
            Self::StoreRemoved { .. } => "put it back, or restore a backup, then start again",
            Self::Database(_) => "check the store",
            Self::Unreachable(_) => "check the address, and that the server runs and lets you in",
            Self::NotADatabase(_) => "check the path; nothing was changed",
            Self::Pruned { .. } => "its latest state is kept: read that",
            Self::BadCursor(_) => "pass the cursor of the previous page, in the same order",
            Self::BadLocation(_) => "for example sqlite:.waypost/waypost.db",
        }
    }
}
