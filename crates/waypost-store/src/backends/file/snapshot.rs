//! Plans in a form that loads fast, each labelled with its version. It is a cache: anything unexpected in it is
//! ignored.

use std::io::{BufRead, BufReader, Read};

use serde::{Deserialize, Serialize};
use waypost_core::{PlanId, Timestamp};

use super::fs::open_to_read;
use super::layout::Layout;
use crate::error::{Result, StoreError};
use crate::rows::VersionRecord;

/// The version that a snapshot shows. Version control may replace the history that it was made from, so the version
/// number alone is not enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Label {
    pub(super) version: u64,
    sequence: u64,
    at: Timestamp,
    /// The size of the history in bytes when the snapshot was made.
    pub(super) length: u64,
}

impl Label {
    pub(super) fn of(entry: &VersionRecord, length: u64) -> Self {
        Self { version: entry.version, sequence: entry.sequence, at: entry.at, length }
    }

    /// Returns whether the snapshot was made from this version.
    pub(super) fn shows(&self, entry: &VersionRecord) -> bool {
        (self.version, self.sequence, self.at) == (entry.version, entry.sequence, entry.at)
    }
}

/// Returns the bytes of a snapshot file.
pub(super) fn file(label: &Label, snapshot: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(label).map_err(|error| StoreError::Database(error.to_string()))?;
    bytes.push(b'\n');
    bytes.extend(snapshot);
    Ok(bytes)
}

fn open(layout: &Layout, plan: &PlanId) -> Option<(Label, BufReader<std::fs::File>)> {
    let mut reader = BufReader::new(open_to_read(&layout.snapshot(plan)).ok()??);
    let mut label = Vec::new();
    reader.read_until(b'\n', &mut label).ok()?;
    Some((serde_json::from_slice(&label).ok()?, reader))
}

/// Returns the label of a plan's snapshot.
pub(super) fn label(layout: &Layout, plan: &PlanId) -> Option<Label> {
    open(layout, plan).map(|(label, _)| label)
}

/// Returns a plan's snapshot with its label.
pub(super) fn read(layout: &Layout, plan: &PlanId) -> Option<(Label, Vec<u8>)> {
    let (label, mut reader) = open(layout, plan)?;
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).ok()?;
    Some((label, bytes))
}
