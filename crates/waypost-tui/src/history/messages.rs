//! What the history asks the event loop for, and what it gets. Types only.

use waypost_core::Timestamp;
use waypost_service::Sign;

use crate::note::ErrorMessage;
use crate::plan::PlanKey;

/// Versions that are read at a time.
pub const VERSIONS_PAGE: usize = 200;
/// Lines of a comparison that are shown.
pub const DIFF_LINES_MAX: usize = 2_000;

/// What the history asks the event loop for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryEffect {
    /// The page of versions before this one, or the latest page.
    Versions(PlanKey, Option<u64>),
    /// Differences between two versions; 0 is the empty plan.
    Compare(PlanKey, u64, u64),
    /// Restore a version, if the plan is still at the known version.
    Restore { plan: PlanKey, version: u64, known: u64 },
}

/// What the history gets from the event loop.
#[derive(Clone, Debug)]
pub enum HistoryReply {
    /// A page of versions, and what was asked for.
    Versions(PlanKey, Option<u64>, Result<Box<Versions>, ErrorMessage>),
    Compared(PlanKey, (u64, u64), Result<Box<Compared>, ErrorMessage>),
    /// The restored version, and the new one.
    Restored(PlanKey, u64, Result<u64, ErrorMessage>),
}

/// A page of versions, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    pub title: String,
    pub current: u64,
    pub rows: Vec<Version>,
    /// Whether there are earlier versions.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub number: u64,
    pub at: Timestamp,
    pub who: String,
    pub what: String,
    /// Whether its events were pruned: it cannot be compared any more.
    pub forgotten: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// At most [`DIFF_LINES_MAX`].
    pub lines: Vec<(Sign, String)>,
    /// Number of all lines.
    pub total: usize,
}
