//! The places of all files in the folder, and the content of `store.json`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use waypost_core::PlanId;

use super::fs::{self, corrupt};
use crate::backends::store_id::random_id;
use crate::error::{Result, StoreError};

/// The name of the folder's format; its version follows after a slash.
const FORMAT: &str = "waypost-file-store";
/// The version of the format that this build writes.
pub(super) const KNOWN: u32 = 2;
/// The oldest version whose builds can use a folder of the version [`KNOWN`]: processes that have it open may finish
/// what they have begun, and others may read it.
const READABLE_BY: u32 = 2;
/// The version before lines had hashes and the folder an id. It is upgraded when the folder is opened.
const WITHOUT_HASHES: u32 = 1;
/// The places of all files in the folder.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) root: PathBuf,
}

impl Layout {
    pub(super) fn store(&self) -> PathBuf {
        self.root.join("store.json")
    }
    pub(super) fn leases(&self) -> PathBuf {
        self.root.join("leases.json")
    }
    pub(super) fn subscriptions(&self) -> PathBuf {
        self.root.join("subscriptions.json")
    }
    pub(super) fn workers(&self) -> PathBuf {
        self.root.join("workers.json")
    }
    pub(super) fn shared(&self) -> PathBuf {
        self.root.join("shared.json")
    }
    pub(super) fn lock(&self) -> PathBuf {
        self.root.join(".lock")
    }
    pub(super) fn change_signal(&self) -> PathBuf {
        self.root.join(".bell")
    }
    pub(super) fn journal(&self) -> PathBuf {
        self.root.join(".journal.json")
    }
    pub(super) fn pending(&self) -> PathBuf {
        self.root.join(".pending")
    }
    pub(super) fn snapshots(&self) -> PathBuf {
        self.root.join(".snapshots")
    }
    pub(super) fn plans(&self) -> PathBuf {
        self.root.join("plans")
    }
    pub(super) fn histories(&self) -> PathBuf {
        self.root.join("history")
    }
    pub(super) fn pruned(&self) -> PathBuf {
        self.root.join("pruned")
    }
    pub(super) fn edited(&self) -> PathBuf {
        self.root.join("edited")
    }
    pub(super) fn plan(&self, id: &PlanId) -> PathBuf {
        self.plans().join(format!("{id}.json"))
    }
    pub(super) fn history(&self, id: &PlanId) -> PathBuf {
        self.histories().join(format!("{id}.jsonl"))
    }
    pub(super) fn snapshot(&self, id: &PlanId) -> PathBuf {
        self.snapshots().join(id.as_str())
    }
    pub(super) fn pruned_plan(&self, id: &PlanId) -> PathBuf {
        self.pruned().join(format!("{id}.json"))
    }
    pub(super) fn damaged(&self) -> PathBuf {
        self.root.join("damaged")
    }
    pub(super) fn edited_plan(&self, id: &PlanId, version: u64) -> PathBuf {
        self.edited().join(format!("{id}@{version}.json"))
    }
}

impl Layout {
    /// Returns the ids of all plans that have a history, purged ones included. Files of other names are reported by the
    /// check.
    pub(super) fn plan_ids(&self) -> Result<BTreeSet<PlanId>> {
        let names = fs::names(&self.histories(), ".jsonl")?;
        Ok(names.into_iter().filter_map(|name| PlanId::new(name).ok()).collect())
    }

    /// Returns the ids of readable plan files without a history.
    pub(super) fn ids_without_history(&self, with: &BTreeSet<PlanId>) -> Result<Vec<PlanId>> {
        let names = fs::names(&self.plans(), ".json")?.into_iter();
        Ok(names.filter_map(|name| PlanId::new(name).ok()).filter(|id| !with.contains(id)).collect())
    }
}

/// The content of `store.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoreFile {
    pub(super) format: String,
    /// The sequence number of the latest version in the log.
    pub(super) sequence: u64,
    /// The random id of the store.
    #[serde(default)]
    pub(super) id: String,
    /// Builds that know this version of the format can read the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) readable_by: Option<u32>,
    /// How many sequence numbers are in no history any more: `doctor --repair` has accepted their loss.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) lost: u64,
    /// Fields of a newer build.
    #[serde(flatten)]
    pub(super) unknown: serde_json::Map<String, serde_json::Value>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl StoreFile {
    /// Returns the content for a new store, or for one whose file was lost.
    pub(super) fn new(sequence: u64) -> Result<Self> {
        let (format, id, readable_by) = (format!("{FORMAT}/{KNOWN}"), random_id()?, Some(READABLE_BY));
        Ok(Self { format, sequence, id, readable_by, lost: 0, unknown: serde_json::Map::new() })
    }

    pub(super) fn read(layout: &Layout) -> Result<Self> {
        let path = layout.store();
        let missing = || corrupt(&path, "it is missing, though the folder is a store");
        let file: Self = fs::read_json(&path)?.ok_or_else(missing)?;
        match file.version() {
            Some(KNOWN) => Ok(file),
            Some(found) if found > KNOWN && file.readable_by.is_some_and(|by| by <= KNOWN) => Ok(file),
            Some(found) if found > KNOWN => {
                Err(StoreError::TooNew { what: path.display().to_string(), found, known: KNOWN })
            }
            Some(_) | None => Err(corrupt(&path, format!("its format is {:?}", file.format))),
        }
    }

    /// Returns how many versions the histories must hold.
    pub(super) fn counted(&self) -> u64 {
        self.sequence.saturating_sub(self.lost)
    }

    /// Returns the version of the format, if a newer build wrote the folder.
    pub(super) fn newer_version(&self) -> Option<u32> {
        self.version().filter(|&found| found > KNOWN)
    }

    /// Returns the content in the format of this build, if an earlier build wrote it.
    pub(super) fn upgraded(&self) -> Result<Option<Self>> {
        match self.version() {
            Some(WITHOUT_HASHES) => Self::new(self.sequence).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    fn version(&self) -> Option<u32> {
        self.format.strip_prefix(FORMAT)?.strip_prefix('/')?.parse().ok()
    }
}
