//! The files of the store itself that are read and written as a whole: leases, subscriptions and workers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use waypost_core::{PlanId, TaskId, Timestamp};

use super::fs;
use super::journal::{Intent, Target};
use super::layout::Layout;
use crate::error::Result;
use crate::log::subscription::Subscription;
use crate::rows::{Lease, TaskProgress};
use crate::workers::Worker;

/// The lease of an attempt: the part that the plan's own files do not contain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LeaseEnd {
    pub(super) attempt: u32,
    /// When the lease expires; `None` for a claim that never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Timestamp>,
    /// The queue of which the attempt takes a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<String>,
    /// The duration of the lease in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seconds: Option<u32>,
    /// The latest progress of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) progress: Option<TaskProgress>,
}

impl LeaseEnd {
    pub(super) fn of(lease: &Lease) -> Option<Self> {
        let (queue, progress) = (lease.queue.clone(), lease.progress.clone());
        let end =
            Self { attempt: lease.attempt, until: lease.until, queue, seconds: lease.seconds, progress };
        (end.until.is_some() || end.progress.is_some()).then_some(end)
    }
}

/// The content of `leases.json`. An end is valid as long as its attempt runs; an attempt without one never expires.
pub(super) type LeaseEnds = BTreeMap<PlanId, BTreeMap<TaskId, LeaseEnd>>;

/// The content of `subscriptions.json`, by id.
pub(super) type Subscriptions = BTreeMap<String, Subscription>;

/// The content of `workers.json`, by name.
pub(super) type Workers = BTreeMap<String, Worker>;

/// The content of `shared.json`: the rows about shared plans, by group and key.
pub(super) type SharedRows = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the files of the store itself that are read as a whole, and whether each can be parsed. The store works
/// without them.
pub(super) fn small_files(layout: &Layout) -> [(PathBuf, Result<()>); 4] {
    fn check<T: DeserializeOwned>(path: PathBuf) -> (PathBuf, Result<()>) {
        let checked = fs::read_json::<T>(&path).map(drop);
        (path, checked)
    }
    [
        check::<LeaseEnds>(layout.leases()),
        check::<Subscriptions>(layout.subscriptions()),
        check::<Workers>(layout.workers()),
        check::<SharedRows>(layout.shared()),
    ]
}

/// A file that is read and written as a whole.
#[derive(Default)]
pub(super) struct SmallFile<T> {
    pub(super) content: Option<T>,
    pub(super) changed: bool,
}

impl<T: Default + Serialize + DeserializeOwned> SmallFile<T> {
    /// Returns its content, read when it is first needed.
    pub(super) fn read(&mut self, path: &Path) -> Result<&mut T> {
        if self.content.is_none() {
            self.content = Some(fs::read_json(path)?.unwrap_or_default());
        }
        Ok(self.content.get_or_insert_default())
    }

    pub(super) fn stage(&self, intent: &mut Intent, target: Target) -> Result<()> {
        if let Some(content) = self.content.as_ref().filter(|_| self.changed) {
            intent.files.push((target, fs::pretty(content)?));
        }
        Ok(())
    }
}
