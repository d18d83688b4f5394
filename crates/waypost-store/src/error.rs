//! What can go wrong below a plan: damage, other writers, files and databases.

use std::path::PathBuf;

use waypost_core::{PlanId, Timestamp};

/// Seconds that a writer waits for other processes before it gives up.
pub const BUSY_SECONDS_MAX: u64 = 60;

/// Why a store failed.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum StoreError {
    /// A file or row cannot be what Waypost wrote. It is left as it is.
    #[error("{what} is damaged: {detail}")]
    Corrupt {
        /// Which file or row.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A newer Waypost wrote this store.
    #[error("{what} has schema {found}, and this build knows schemas up to {known}")]
    TooNew {
        /// Which store.
        what: String,
        /// Its schema.
        found: u32,
        /// The newest schema that this build knows.
        known: u32,
    },
    /// Others wrote for longer than [`BUSY_SECONDS_MAX`].
    #[error("the store stayed busy for {BUSY_SECONDS_MAX} seconds")]
    Busy,
    /// The file system failed.
    #[error("{}: {source}", path.display())]
    Files {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// The database failed.
    #[error("{0}")]
    Database(String),
    /// The events of these versions were removed ([`crate::Rewrite::prune`]), or lost by damage to a file.
    #[error("versions {from} to {up_to} of plan {plan} were {} on {}", if *from == 1 { "pruned" } else { "lost" }, day(*.at))]
    Pruned {
        /// The plan.
        plan: PlanId,
        /// The first of them.
        from: u64,
        /// The last of them.
        up_to: u64,
        /// When they were pruned.
        at: Timestamp,
    },
    /// A text that is not a cursor of a list in that order.
    #[error("{0:?} is not a cursor of this list")]
    BadCursor(String),
    /// A text that names no store.
    #[error("{0:?} names no store: write sqlite:PATH, postgres://USER@HOST/DATABASE, file:DIR or memory:")]
    BadLocation(String),
}

/// What a store answers.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The day of a moment, as people write it.
pub(crate) fn day(at: Timestamp) -> String {
    at.to_string().chars().take_while(|&sign| sign != 'T').collect()
}

impl StoreError {
    /// The code for programs.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }

    /// The same error for another waiter of the same commit.
    pub(crate) fn duplicate(&self) -> Self {
        match self {
            Self::Corrupt { what, detail } => Self::Corrupt { what: what.clone(), detail: detail.clone() },
            Self::TooNew { what, found, known } => {
                Self::TooNew { what: what.clone(), found: *found, known: *known }
            }
            Self::Busy => Self::Busy,
            Self::Files { path, source } => Self::Files {
                path: path.clone(),
                source: std::io::Error::new(source.kind(), source.to_string()),
            },
            Self::Database(detail) => Self::Database(detail.clone()),
            Self::Pruned { plan, from, up_to, at } => {
                Self::Pruned { plan: plan.clone(), from: *from, up_to: *up_to, at: *at }
            }
            Self::BadCursor(text) => Self::BadCursor(text.clone()),
            Self::BadLocation(text) => Self::BadLocation(text.clone()),
        }
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Corrupt { .. } => "nothing was changed; `waypost doctor` says more",
            Self::TooNew { .. } => "update Waypost",
            Self::Busy => "try again; if it lasts, see which process holds the store",
            Self::Files { .. } => "see that the path exists and may be read and written",
            Self::Database(_) => "`waypost doctor` checks the store",
            Self::Pruned { .. } => "its latest state is kept: `waypost show` shows it",
            Self::BadCursor(_) => "pass the cursor that the previous page printed, with the same --sort",
            Self::BadLocation(_) => "for example --store sqlite:.waypost/waypost.db",
        }
    }
}
