//! Versions that this process has read or written itself, kept for whoever follows their plan: a run that writes a plan
//! together with others need not read from the store what its own write has just shown it.

use std::collections::VecDeque;
use std::sync::PoisonError;

use waypost_core::PlanId;

use super::cache::{Cache, catch_up};
use super::{Plans, ahead};
use crate::record::Entry;
use crate::store::StoreError;

/// Events of one plan that are kept at the most. Whoever comes later than that reads them.
const EVENTS_KEPT_MAX: usize = 50_000;

/// The latest versions of a plan without gaps, since somebody asked for them.
#[derive(Default)]
pub(super) struct Kept {
    entries: VecDeque<Entry>,
    events: usize,
}

impl Kept {
    /// Whether there is room for one more.
    fn keep(&mut self, entry: Entry) -> bool {
        if self.entries.back().is_some_and(|last| last.version + 1 != entry.version) {
            self.entries.clear();
            self.events = 0;
        }
        self.events += entry.events.len();
        self.entries.push_back(entry);
        self.events <= EVENTS_KEPT_MAX
    }

    /// All versions after `known`, if those up to `version` are among them.
    fn take(&mut self, known: u64, version: u64) -> Option<Vec<Entry>> {
        self.events = 0;
        let mut entries = std::mem::take(&mut self.entries);
        while entries.front().is_some_and(|first| first.version <= known) {
            entries.pop_front();
        }
        let (first, last) = (entries.front()?.version, entries.back()?.version);
        (first == known + 1 && last >= version).then(|| entries.into())
    }
}

/// Keeps a version if somebody follows the plan.
pub(super) fn keep(kept: &mut Option<Kept>, entry: impl FnOnce() -> Entry) {
    if let Some(asked) = kept
        && !asked.keep(entry())
    {
        *kept = None;
    }
}

impl Cache {
    /// From now on versions are kept.
    fn take_kept(&mut self, id: &PlanId, known: u64, version: u64) -> Option<Vec<Entry>> {
        self.plans.get_mut(id)?.kept.get_or_insert_default().take(known, version)
    }
}

impl Plans {
    /// The versions of a plan after `known`, at most `limit` where they have to be read. For one who follows it: what this
    /// process has seen since the last call is handed out, and not read again.
    pub fn versions_since(&self, id: &PlanId, known: u64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        let mut entries = Vec::new();
        self.store.read(&mut |read| {
            entries.clear();
            read.expect(&ahead::of_plan(id, &cache));
            let Some(version) = read.version(id)?.filter(|&version| version > known) else { return Ok(()) };
            catch_up(read, &mut cache, id, version)?;
            entries = match cache.take_kept(id, known, version) {
                Some(kept) => kept,
                None => read.versions(id, known, limit)?,
            };
            Ok(())
        })?;
        Ok(entries)
    }

    /// The same without a look at the store, for one who has just written `version`. Nothing when some of them would have to
    /// be read.
    pub fn versions_at_hand(&self, id: &PlanId, known: u64, version: u64) -> Option<Vec<Entry>> {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        cache.take_kept(id, known, version)
    }
}
