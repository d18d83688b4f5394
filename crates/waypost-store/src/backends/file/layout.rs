//! The places of all files in the folder, and the content of `store.json`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use waypost_core::PlanId;

use super::fs::{self, corrupt};
use crate::error::{Result, StoreError};

/// The name of the folder's format; its version follows after a slash.
const FORMAT: &str = "waypost-file-store";
/// The version of the format that this build writes.
const KNOWN: u32 = 1;
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
}

impl StoreFile {
    pub(super) fn at(sequence: u64) -> Self {
        Self { format: format!("{FORMAT}/{KNOWN}"), sequence }
    }

    pub(super) fn read(layout: &Layout) -> Result<Self> {
        let path = layout.store();
        let missing = || corrupt(&path, "it is missing, though the folder is a store");
        let file: Self = fs::read_json(&path)?.ok_or_else(missing)?;
        file.check_format(layout)?;
        Ok(file)
    }

    /// Checks that this build supports the format.
    pub(super) fn check_format(&self, layout: &Layout) -> Result<()> {
        let path = layout.store();
        let version = self.format.strip_prefix(FORMAT).and_then(|rest| rest.strip_prefix('/'));
        match version.and_then(|version| version.parse::<u32>().ok()) {
            Some(found) if found > KNOWN => {
                Err(StoreError::TooNew { what: path.display().to_string(), found, known: KNOWN })
            }
            Some(KNOWN) => Ok(()),
            Some(_) | None => Err(corrupt(&path, format!("its format is {:?}", self.format))),
        }
    }
}
