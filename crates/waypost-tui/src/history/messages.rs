//! Effects and replies of the history. Types only.

use waypost_core::Timestamp;
use waypost_service::{RestorePreview, Sign};

use crate::note::ErrorMessage;
use crate::plan::PlanKey;

/// Number of versions loaded at a time.
pub const VERSIONS_PAGE: usize = 200;
/// Maximum number of lines of a comparison.
pub const DIFF_LINES_MAX: usize = 2_000;

/// A request of the history to the event loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryEffect {
    /// Load the page of versions before this one; with `None`, the latest page.
    Versions(PlanKey, Option<u64>),
    /// Compare two versions; 0 is the empty plan.
    Compare(PlanKey, u64, u64),
    /// Find out what restoring a version would do to the known version.
    Preview { plan: PlanKey, version: u64, known: u64 },
    /// Restore a version, provided the plan is still at the known version.
    Restore { plan: PlanKey, version: u64, known: u64 },
}

/// A reply to the history.
#[derive(Clone, Debug)]
pub enum HistoryReply {
    /// A page of versions, with the requested `before`.
    Versions(PlanKey, Option<u64>, Result<Box<Versions>, ErrorMessage>),
    Compared(PlanKey, (u64, u64), Result<Box<Compared>, ErrorMessage>),
    /// What restoring a version would do to the known version.
    Preview(PlanKey, (u64, u64), Result<Box<RestorePreview>, ErrorMessage>),
    /// The restored version, and the new version with its content.
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
    /// Whether its events were pruned, so that it can no longer be compared.
    pub forgotten: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// At most [`DIFF_LINES_MAX`].
    pub lines: Vec<(Sign, String)>,
    /// The number of lines before truncation.
    pub total: usize,
}
