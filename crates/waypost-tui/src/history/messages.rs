//! What the history asks the event loop for, and what it gets. Types only.

use waypost_core::Timestamp;
use waypost_service::Sign;

use crate::note::ErrorMessage;
use crate::plan::PlanKey;

/// Versions that are read at a time.
pub const VERSIONS_PAGE: usize = 200;
/// Lines of a comparison that are shown.
pub const DIFF_LINES_MAX: usize = 2_000;

/// What the history wants from the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryEffect {
    /// A page of versions before one, or of the latest.
    Versions(PlanKey, Option<u64>),
    /// What differs from one version to another; 0 is the plan before it was made.
    Compare(PlanKey, u64, u64),
    /// To make a version hold again, if the plan is still at the version that is known.
    Restore {
        plan: PlanKey,
        /// What it is to be again.
        version: u64,
        /// The version that stands, as far as is known here.
        known: u64,
    },
}

/// What the history is told.
#[derive(Clone, Debug)]
pub enum HistoryReply {
    /// A page of versions, and what it was asked for with.
    Versions(PlanKey, Option<u64>, Result<Box<Versions>, ErrorMessage>),
    /// What differs between two versions.
    Compared(PlanKey, (u64, u64), Result<Box<Compared>, ErrorMessage>),
    /// What came of [`HistoryEffect::Restore`]: the version that was wanted, and the new one.
    Restored(PlanKey, u64, Result<u64, ErrorMessage>),
}

/// One page of a history, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    pub title: String,
    /// The version that stands.
    pub current: u64,
    pub rows: Vec<Version>,
    /// Whether there are earlier ones.
    pub more: bool,
}

/// One version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub number: u64,
    pub at: Timestamp,
    pub who: String,
    pub what: String,
    /// Whether its events were pruned, so that it can no longer be looked at.
    pub forgotten: bool,
}

/// What differs between two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// In lines, at most [`DIFF_LINES_MAX`].
    pub lines: Vec<(Sign, String)>,
    /// Lines in all.
    pub total: usize,
}
