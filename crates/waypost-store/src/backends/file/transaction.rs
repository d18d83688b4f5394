//! One read or one transaction on the folder. Changes are kept in memory until the commit; reads see them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use waypost_core::{Draft, Plan, PlanId, TaskId, Timestamp, differences};

use super::fs;
use super::history_file::{self, Tail};
use super::journal::{self, Intent, Lines, Target};
use super::layout::{Layout, StoreFile};
use super::plan_cache::{Facts, PlanCacheEntry, PlanFiles, Readable};
use super::pruned::PrunedFile;
use super::repair;
use super::small_files::{LeaseEnd, LeaseEnds, SharedRows, SmallFile, Subscriptions, Workers};
use super::snapshot::{self, Label};
use crate::backends::{hash_chain, in_memory_query};
use crate::clock;
use crate::error::{Result, StoreError};
use crate::log::subscription::Subscription;
use crate::rows::{
    HeldLock, IndexRows, Lease, LeaseFilter, LeaseUpdate, LockFilter, LogFilter, LogPage, Page, PlanState,
    PlanSummary, Pruned, Query, SharedKeys, SharedScope, StoreState, SubscriptionFilter, Unreadable,
    VersionRecord, Wait, WaitFilter, WorkerFilter, WrittenSince,
};
use crate::store::{Append, Appended, Inspect, Pruning, Read, Record, Rewrite, Transaction};
use crate::stored_version::StoredVersion;
use crate::workers::Worker;

/// The changes of this transaction to a plan.
struct Staged {
    /// The plan as it is in the folder.
    base: Option<Arc<PlanCacheEntry>>,
    /// The versions that follow.
    entries: Vec<StoredVersion>,
    end: End,
}

enum End {
    /// The plan after these versions.
    Written(Arc<Facts>, Box<Draft>),
    Purged,
}

/// The result of a commit for a plan: the last line of its history, and what lists show.
type Written = (Tail, Arc<Facts>);

/// The purpose of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The folder during one read or one transaction.
pub(super) struct Session<'a> {
    files: &'a PlanFiles,
    layout: &'a Layout,
    access: Access,
    staged: BTreeMap<PlanId, Staged>,
    sequence: Option<u64>,
    has_appended: bool,
    lease_ends: SmallFile<LeaseEnds>,
    /// Whether progress was stored.
    progressed: bool,
    subscriptions: SmallFile<Subscriptions>,
    workers: SmallFile<Workers>,
    shared: SmallFile<SharedRows>,
    snapshots: BTreeMap<PlanId, (u64, Vec<u8>)>,
    /// The states to keep in place of pruned events.
    kept: BTreeMap<PlanId, PrunedFile>,
    /// The damage that readers of the log met, with the sequence number up to which each plan can be read.
    unreadable: BTreeMap<PlanId, (u64, String)>,
}

impl<'a> Session<'a> {
    pub(super) fn new(files: &'a PlanFiles, access: Access) -> Self {
        Self {
            files,
            layout: &files.layout,
            access,
            staged: BTreeMap::new(),
            sequence: None,
            has_appended: false,
            lease_ends: SmallFile::default(),
            progressed: false,
            subscriptions: SmallFile::default(),
            workers: SmallFile::default(),
            shared: SmallFile::default(),
            snapshots: BTreeMap::new(),
            kept: BTreeMap::new(),
            unreadable: BTreeMap::new(),
        }
    }

    fn known(&self, id: &PlanId) -> Result<Option<Arc<PlanCacheEntry>>> {
        self.files.known(id)
    }

    /// Returns the facts of a plan that a caller names.
    fn facts(&self, id: &PlanId) -> Result<Option<Arc<Facts>>> {
        match self.staged.get(id).map(|staged| &staged.end) {
            Some(End::Written(facts, _)) => Ok(Some(Arc::clone(facts))),
            Some(End::Purged) => Ok(None),
            None => match self.known(id)? {
                Some(known) if self.access == Access::Write => {
                    Ok(known.writable(&self.layout.plan(id))?.cloned())
                }
                Some(known) => Ok(known.current(&self.layout.plan(id))?.cloned()),
                None => Ok(None),
            },
        }
    }

    /// Returns the ids of all plans that have a history, purged ones included.
    fn all_ids(&self) -> Result<BTreeSet<PlanId>> {
        let mut ids = self.layout.plan_ids()?;
        ids.extend(self.staged.keys().cloned());
        Ok(ids)
    }

    /// Returns the same, and the ids of plan files that have lost their history.
    fn ids_of_files(&self) -> Result<BTreeSet<PlanId>> {
        let mut ids = self.all_ids()?;
        ids.extend(self.layout.ids_without_history(&ids)?);
        Ok(ids)
    }

    /// Returns the facts of all plans. An unreadable plan is left out, so that a single damaged file does not hide all
    /// others.
    fn all(&self) -> Result<Vec<Arc<Facts>>> {
        let mut all = Vec::new();
        for id in self.all_ids()? {
            all.extend(self.listed(&id, &mut Vec::new())?);
        }
        Ok(all)
    }

    /// Returns the committed versions of one plan after `after` in the log, at most about `limit`. Stops at damage, and
    /// notes it.
    fn log_of_plan(
        &mut self,
        id: &PlanId,
        after: u64,
        filter: &LogFilter,
        limit: usize,
    ) -> Result<Vec<VersionRecord>> {
        let mut found = Vec::new();
        if self.staged.get(id).is_some_and(|staged| staged.base.is_none()) {
            return Ok(found);
        }
        let (known, mut damage) = match self.known(id) {
            Ok(None) => return Ok(found),
            Ok(known) => (known, None),
            Err(error @ StoreError::Corrupt { .. }) => (None, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        if let Some(known) = known.as_ref().filter(|known| matches!(known.readable, Readable::Ahead(_))) {
            damage = known.warning(id, &self.layout.plan(id));
        }
        let end = known.map_or(u64::MAX, |known| known.tail.sequence);
        let mut from = after;
        // Page by page until there are enough: the filter may reject most versions.
        while from < end {
            let page = match self.files.log(id, from, limit.max(1)) {
                Err(error @ StoreError::Corrupt { .. }) => {
                    damage = Some(error.to_string());
                    break;
                }
                page => page?,
            };
            let Some(last) = page.last() else { break };
            from = last.sequence;
            found.extend(page.into_iter().filter(|entry| filter.admits(entry)));
            if found.len() >= limit {
                // The damage comes after these.
                return Ok(found);
            }
        }
        if let Some(damage) = damage {
            self.unreadable.entry(id.clone()).or_insert((from, damage));
        }
        Ok(found)
    }

    /// Returns what could not be read of the log so far. Every sequence number belongs to a version, so the first one after the damage that no plan has is hidden by it.
    fn unreadable(&mut self) -> Result<Unreadable> {
        let Some(end) = self.unreadable.values().map(|&(end, _)| end).min() else {
            return Ok(Unreadable::default());
        };
        let mut numbers = BTreeSet::new();
        for id in self.all_ids()? {
            let up_to = self.unreadable.get(&id).map_or(u64::MAX, |&(end, _)| end);
            numbers.extend(self.files.sequences(&id, end).into_iter().filter(|&number| number <= up_to));
        }
        let from = (end + 1..=self.store_state()?.latest).find(|number| !numbers.contains(number));
        Ok(Unreadable {
            from,
            warnings: self.unreadable.values().map(|(_, damage)| damage.clone()).collect(),
        })
    }

    /// Returns the facts of a plan as a list shows it. Problems of its files are added to `warnings`.
    fn listed(&self, id: &PlanId, warnings: &mut Vec<String>) -> Result<Option<Arc<Facts>>> {
        match self.staged.get(id).map(|staged| &staged.end) {
            Some(End::Written(facts, _)) => return Ok(Some(Arc::clone(facts))),
            Some(End::Purged) => return Ok(None),
            None => {}
        }
        match self.known(id) {
            Ok(Some(known)) => {
                let path = self.layout.plan(id);
                warnings.extend(known.warning(id, &path));
                Ok(known.current(&path).ok().flatten().cloned())
            }
            Ok(None) => Ok(None),
            Err(error @ StoreError::Corrupt { .. }) => {
                warnings.push(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the versions of a plan after `after` that this transaction has added.
    fn staged_after(&self, plan: &PlanId, after: u64) -> impl Iterator<Item = &StoredVersion> {
        let staged = self.staged.get(plan).into_iter().flat_map(|staged| &staged.entries);
        staged.filter(move |entry| entry.version > after)
    }

    fn lease_ends(&mut self) -> Result<&mut LeaseEnds> {
        let path = self.layout.leases();
        // The leases that were lost with the file are not renewed: the running attempts count as expired.
        if self.lease_ends.content.is_none() && fs::Stamp::of(&path)?.is_none() {
            let mut ends = LeaseEnds::new();
            for lease in self.all()?.iter().flat_map(|facts| &facts.rows.leases) {
                let until = lease.since.or(Some(Timestamp::from_micros(0)));
                let end = LeaseEnd { attempt: lease.attempt, until, ..LeaseEnd::default() };
                ends.entry(lease.plan.clone()).or_default().insert(lease.task.clone(), end);
            }
            (self.lease_ends.content, self.lease_ends.changed) = (Some(ends), true);
        }
        self.lease_ends.read(&path)
    }

    /// Returns the leases of a plan with their ends.
    fn leases_of_plan(&mut self, facts: &Facts) -> Result<Vec<Lease>> {
        let mut leases = facts.rows.leases.clone();
        if leases.is_empty() {
            return Ok(leases);
        }
        if let Some(ends) = self.lease_ends()?.get(&facts.head.id) {
            for lease in &mut leases {
                let end = ends.get(&lease.task).filter(|end| end.attempt == lease.attempt);
                lease.until = end.and_then(|end| end.until);
                lease.progress = end.and_then(|end| end.progress.clone());
                lease.queue = end.and_then(|end| end.queue.clone());
                lease.seconds = end.and_then(|end| end.seconds);
            }
        }
        Ok(leases)
    }

    fn set_lease_end(&mut self, plan: &PlanId, task: &TaskId, end: Option<LeaseEnd>) -> Result<()> {
        let ends = self.lease_ends()?;
        match end {
            Some(end) => {
                ends.entry(plan.clone()).or_default().insert(task.clone(), end);
            }
            None => {
                let Some(of_plan) = ends.get_mut(plan) else { return Ok(()) };
                if of_plan.remove(task).is_none() {
                    return Ok(());
                }
                if of_plan.is_empty() {
                    ends.remove(plan);
                }
            }
        }
        self.lease_ends.changed = true;
        Ok(())
    }

    fn all_subscriptions(&mut self) -> Result<&mut Subscriptions> {
        self.subscriptions.read(&self.layout.subscriptions())
    }

    fn all_workers(&mut self) -> Result<&mut Workers> {
        self.workers.read(&self.layout.workers())
    }

    fn shared_rows(&mut self) -> Result<&mut SharedRows> {
        self.shared.read(&self.layout.shared())
    }

    fn all_leases(&mut self) -> Result<Vec<Lease>> {
        let mut all = Vec::new();
        for facts in self.all()? {
            all.extend(self.leases_of_plan(&facts)?);
        }
        Ok(all)
    }

    /// Returns the damage to the files of a plan.
    pub(super) fn damage(&mut self, plan: &PlanId) -> Result<Option<String>> {
        let checked = self.known(plan).and_then(|known| {
            self.files.check_history(plan)?;
            self.all_leases()?;
            Ok(known.and_then(|known| known.warning(plan, &self.layout.plan(plan))))
        });
        match checked {
            Err(error @ StoreError::Corrupt { .. }) => Ok(Some(error.to_string())),
            checked => checked,
        }
    }

    fn next_sequence(&mut self) -> Result<u64> {
        let last = match self.sequence {
            Some(last) => last,
            None => StoreFile::read(self.layout)?.sequence,
        };
        self.has_appended = true;
        self.sequence = Some(last + 1);
        Ok(last + 1)
    }

    /// Returns whether versions were appended, so that numbers of the log were given.
    pub(super) fn has_appended(&self) -> bool {
        self.has_appended
    }

    /// Returns whether watchers must be woken: a version was appended or imported, a plan purged, or progress stored.
    pub(super) fn has_news(&self) -> bool {
        !self.staged.is_empty() || self.progressed
    }

    /// Makes all changes durable, or none.
    pub(super) fn commit(mut self) -> Result<()> {
        let mut intent = Intent::default();
        let mut learned: Vec<(PlanId, Option<Written>)> = Vec::new();
        self.stage_snapshots(&mut intent)?;
        self.stage_forgetting(&mut intent)?;
        for (id, staged) in std::mem::take(&mut self.staged) {
            let Staged { base, entries, end } = staged;
            match end {
                End::Written(facts, draft) => {
                    let tail = stage_versions(&mut intent, &id, base.as_deref(), &entries, *draft)?;
                    learned.push((id, Some((tail, facts))));
                }
                End::Purged => {
                    self.stage_purge(&mut intent, &id, base.as_deref(), entries)?;
                    learned.push((id, None));
                }
            }
        }
        if let Some(sequence) = self.sequence {
            let file = StoreFile { sequence, ..StoreFile::read(self.layout)? };
            intent.files.push((Target::Store, fs::pretty(&file)?));
        }
        self.lease_ends.stage(&mut intent, Target::Leases)?;
        self.subscriptions.stage(&mut intent, Target::Subscriptions)?;
        self.workers.stage(&mut intent, Target::Workers)?;
        self.shared.stage(&mut intent, Target::Shared)?;
        if intent.files.is_empty() {
            return Ok(());
        }
        journal::commit(self.layout, intent)?;
        for (id, written) in learned {
            let written = written.map(|(tail, facts)| PlanCacheEntry::written(self.layout, &id, tail, facts));
            // A file that cannot be read now is read again when it is needed.
            self.files.learn(&id, written.and_then(Result::ok).map(Arc::new));
        }
        Ok(())
    }

    fn stage_snapshots(&mut self, intent: &mut Intent) -> Result<()> {
        for (id, (version, bytes)) in std::mem::take(&mut self.snapshots) {
            let made_from = self.versions(&id, version.saturating_sub(1), 1)?;
            let Some(entry) = made_from.first().filter(|entry| entry.version == version) else { continue };
            let base = match self.staged.get(&id) {
                Some(staged) => staged.base.clone(),
                None => self.known(&id)?,
            };
            let label = Label::of(entry, base.map_or(0, |base| base.tail.length));
            intent.files.push((Target::Snapshot(id), snapshot::file(&label, &bytes)?));
        }
        Ok(())
    }

    /// Empties the lines of pruned versions. Only the last version of a history has a readable file next to it.
    fn stage_forgetting(&mut self, intent: &mut Intent) -> Result<()> {
        for (id, kept) in std::mem::take(&mut self.kept) {
            intent.files.push((Target::Pruned(id.clone()), fs::pretty(&kept)?));
            intent.removals.extend(snapshot::label(self.layout, &id).map(|_| Target::Snapshot(id.clone())));
            // A plan that was imported in this transaction has no history in the folder yet, and its pruned versions
            // have no events.
            let Some(base) = self.known(&id)? else { continue };
            let mut text = String::new();
            for entry in self.files.versions::<StoredVersion>(&id, 0, usize::MAX)? {
                let file = base.tail.file.as_deref().filter(|_| entry.version == base.tail.version);
                let forgotten = entry.version <= kept.pruned.up_to;
                text.push_str(&history_file::line(&if forgotten { entry.pruned() } else { entry }, file)?);
            }
            intent.files.push((Target::History(id), text.into_bytes()));
        }
        Ok(())
    }

    /// Stages what stays of a purged plan: its history without any content, which keeps its id and its sequence numbers
    /// used.
    fn stage_purge(
        &self,
        intent: &mut Intent,
        id: &PlanId,
        base: Option<&PlanCacheEntry>,
        staged: Vec<StoredVersion>,
    ) -> Result<()> {
        let mut entries = match base {
            Some(_) => self.files.versions(id, 0, usize::MAX)?,
            None => Vec::new(),
        };
        entries.extend(staged);
        let mut text = String::new();
        for entry in entries {
            text.push_str(&history_file::line(&entry.purged(), None)?);
        }
        intent.files.push((Target::History(id.clone()), text.into_bytes()));
        let ids = [Target::Plan, Target::Snapshot, Target::Pruned].map(|target| target(id.clone()));
        intent.removals.extend(ids);
        Ok(())
    }
}

/// Adds the versions of one plan to a commit. Returns the last line of its history after the commit.
fn stage_versions(
    intent: &mut Intent,
    id: &PlanId,
    base: Option<&PlanCacheEntry>,
    entries: &[StoredVersion],
    draft: Draft,
) -> Result<Tail> {
    let readable = fs::pretty(&draft)?;
    let file = fs::fingerprint(&readable);
    let offset = base.map_or(0, |base| base.tail.length);
    let mut text = String::new();
    for entry in entries {
        // Only the last version has a readable file next to it.
        let file = (entry.version == draft.version).then_some(file.as_str());
        text.push_str(&history_file::line(entry, file)?);
    }
    // A manual edit is kept, unless it equals what was just written.
    if let Some(Readable::Edited(edited)) = base.map(|base| &base.readable)
        && !differences(edited, &draft).is_empty()
    {
        intent.files.push((Target::Edited(id.clone(), draft.version), fs::pretty(edited)?));
    }
    let tail = Tail {
        version: draft.version,
        sequence: entries.last().map_or(0, |entry| entry.sequence),
        hash: entries.last().and_then(|entry| entry.hash),
        file: Some(file),
        purged: false,
        length: offset + text.len() as u64,
    };
    intent.files.push((Target::Plan(id.clone()), readable));
    intent.appends.push(Lines { plan: id.clone(), offset, text });
    Ok(tail)
}

impl Inspect for Session<'_> {
    fn stored_versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<StoredVersion>> {
        let mut entries = match self.staged.get(plan) {
            Some(Staged { base: None, .. }) => Vec::new(),
            Some(Staged { base: Some(_), .. }) | None => self.files.versions(plan, after, limit)?,
        };
        entries.extend(self.staged_after(plan, after).cloned());
        entries.truncate(limit);
        Ok(entries)
    }

    fn pruned(&mut self, plan: &PlanId) -> Result<Option<Pruned>> {
        match self.kept.get(plan) {
            Some(kept) => Ok(Some(kept.pruned.clone())),
            None => Ok(PrunedFile::read(self.layout, plan)?.map(|kept| kept.pruned)),
        }
    }
}

impl Read for Session<'_> {
    fn head(&mut self, plan: &PlanId) -> Result<Option<PlanSummary>> {
        Ok(self.facts(plan)?.map(|facts| facts.head.clone()))
    }

    fn plan_state(&mut self, plan: &PlanId) -> Result<PlanState> {
        if self.access == Access::Write && !self.staged.contains_key(plan) {
            // A writer that has the plan in memory does not read its versions, and refuses a damaged history all the
            // same.
            self.files.check_history(plan)?;
        }
        let Some(facts) = self.facts(plan)? else {
            let is_used = self.staged.contains_key(plan) || self.known(plan)?.is_some();
            return Ok(if is_used { PlanState::Purged } else { PlanState::Unused });
        };
        let hash = match self.staged.get(plan).and_then(|staged| staged.entries.last()) {
            Some(entry) => entry.hash,
            None => self.known(plan)?.and_then(|known| known.tail.hash),
        };
        Ok(PlanState::Stored { version: facts.head.version, hash })
    }

    fn heads(&mut self, query: &Query) -> Result<Page<PlanSummary>> {
        let ids = self.ids_of_files()?;
        let (mut all, mut warnings) = (Vec::new(), Vec::new());
        for id in ids {
            let known = warnings.len();
            let facts = self.listed(&id, &mut warnings)?;
            // A list shows of a damaged plan what the plan alone shows.
            let intact = match facts.is_none() && warnings.len() > known {
                true => repair::intact_plan(self.layout, &id)?,
                false => None,
            };
            all.extend(facts.or(intact.map(|(plan, _)| Arc::new(Facts::of(&plan)))));
            if let Ok(Some(known)) = self.known(&id) {
                warnings.extend(self.files.history_damage(&id, &known)?);
            }
        }
        // A plan of which no file is left is named by nobody else.
        if warnings.is_empty() {
            match repair::has_all_versions(self.files) {
                Err(error @ StoreError::Corrupt { .. }) => warnings.push(error.to_string()),
                found => found?,
            }
        }
        Ok(Page { warnings, ..in_memory_query::page(all.iter().map(|facts| &facts.head), query) })
    }

    fn ids(&mut self, prefix: &str, limit: usize) -> Result<Vec<PlanId>> {
        let ids = self.ids_of_files()?;
        let mut found = Vec::new();
        for id in ids.into_iter().filter(|id| id.as_str().starts_with(prefix)) {
            let mut damage = Vec::new();
            // A damaged plan is found by its id, so that opening it reports the damage.
            if self.listed(&id, &mut damage)?.is_some() || !damage.is_empty() {
                found.push(id);
            }
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    fn versions(&mut self, plan: &PlanId, after: u64, limit: usize) -> Result<Vec<VersionRecord>> {
        let damage = match self.facts(plan) {
            Ok(None) => return Ok(Vec::new()),
            Err(damage @ StoreError::Corrupt { .. }) => Err(damage),
            facts => facts.map(drop),
        };
        if self.access == Access::Write {
            // A write after a damaged line is refused.
            self.files.check_history(plan)?;
        }
        let mut entries = match self.staged.get(plan) {
            Some(Staged { base: None, .. }) => Vec::new(),
            Some(Staged { base: Some(_), .. }) | None => self.files.versions(plan, after, limit)?,
        };
        for entry in self.staged_after(plan, after) {
            entries.push(entry.record()?);
        }
        entries.truncate(limit);
        if entries.is_empty() { damage.map(|()| entries) } else { Ok(entries) }
    }

    fn snapshot(&mut self, plan: &PlanId, at_most: u64) -> Result<Option<(u64, Vec<u8>)>> {
        if matches!(self.facts(plan), Ok(None)) {
            return Ok(None);
        }
        if let Some((version, bytes)) = self.snapshots.get(plan).filter(|(version, _)| *version <= at_most) {
            return Ok(Some((*version, bytes.clone())));
        }
        let found =
            snapshot::read(self.layout, plan).filter(|(label, _)| (1..=at_most).contains(&label.version));
        if let Some((label, bytes)) = found {
            let made_from = self.versions(plan, label.version - 1, 1)?;
            // For a version whose events were pruned, only the state that was kept then is the truth.
            let shows = made_from.first().is_some_and(|entry| label.shows(entry) && !entry.is_forgotten());
            if shows {
                return Ok(Some((label.version, bytes)));
            }
        }
        let kept = PrunedFile::read(self.layout, plan)?.and_then(|kept| kept.at_most(at_most));
        Ok(kept.map(|kept| (kept.pruned.up_to, kept.plan(plan).snapshot().to_vec())))
    }

    fn log(&mut self, after: u64, filter: &LogFilter, limit: usize) -> Result<LogPage> {
        let ids = match &filter.plan {
            Some(plan) => BTreeSet::from([plan.clone()]),
            None => self.ids_of_files()?,
        };
        let mut versions: Vec<VersionRecord> = Vec::new();
        for id in ids {
            versions.extend(self.log_of_plan(&id, after, filter, limit)?);
            for entry in self.staged_after(&id, 0).filter(|entry| entry.sequence > after) {
                versions.extend(Some(entry.record()?).filter(|entry| filter.admits(entry)));
            }
        }
        versions.sort_by_key(|entry| entry.sequence);
        versions.truncate(limit);
        Ok(LogPage { versions, unreadable: self.unreadable()? })
    }

    fn written_since(&mut self, after: u64, limit: usize) -> Result<WrittenSince> {
        Ok(WrittenSince::of(self.log(after, &LogFilter::default(), limit)?, after, limit))
    }

    fn leases(&mut self, filter: &LeaseFilter<'_>, limit: usize) -> Result<Vec<Lease>> {
        let leases = match filter {
            LeaseFilter::Plan(plan) => match self.facts(plan)? {
                Some(facts) => self.leases_of_plan(&facts)?,
                None => Vec::new(),
            },
            LeaseFilter::All | LeaseFilter::EndedBefore(_) | LeaseFilter::Worker(_) => self.all_leases()?,
        };
        Ok(in_memory_query::leases(leases, filter, limit))
    }

    fn locks(&mut self, filter: LockFilter<'_>) -> Result<Vec<HeldLock>> {
        Ok(match filter {
            LockFilter::Keys(keys) => {
                in_memory_query::locks(self.all()?.iter().flat_map(|facts| &facts.rows.locks), keys)
            }
            LockFilter::Plan(plan) => {
                self.facts(plan)?.map_or_else(Vec::new, |facts| facts.rows.locks.clone())
            }
        })
    }

    fn waits(&mut self, filter: WaitFilter<'_>) -> Result<Vec<Wait>> {
        let plans = match filter {
            WaitFilter::Of(plan) => self.facts(plan)?.into_iter().collect(),
            WaitFilter::On { .. } => self.all()?,
        };
        Ok(in_memory_query::waits(plans.iter().flat_map(|facts| &facts.rows.waits), filter))
    }

    fn subscriptions(&mut self, filter: SubscriptionFilter<'_>, limit: usize) -> Result<Vec<Subscription>> {
        Ok(in_memory_query::subscriptions(self.all_subscriptions()?.values(), filter, limit))
    }

    fn workers(&mut self, filter: WorkerFilter<'_>, limit: usize) -> Result<Page<Worker>> {
        Ok(in_memory_query::workers(self.all_workers()?.values(), filter, limit))
    }

    fn slots(&mut self, queue: &str) -> Result<Vec<(String, u32)>> {
        Ok(in_memory_query::slots(self.all_leases()?.iter(), queue, clock::now()))
    }

    fn shared(
        &mut self,
        scope: SharedScope<'_>,
        keys: SharedKeys<'_>,
        limit: usize,
    ) -> Result<Vec<(String, String)>> {
        let Some(rows) = self.shared_rows()?.get(&scope.name()) else { return Ok(Vec::new()) };
        let chosen = rows.iter().filter(|(key, _)| match keys {
            SharedKeys::After(after) => key.as_str() > after,
            SharedKeys::Only(only) => key.as_str() == only,
        });
        Ok(chosen.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn store_state(&mut self) -> Result<StoreState> {
        let file = StoreFile::read(self.layout)?;
        let (latest, newer_schema) = (self.sequence.unwrap_or(file.sequence), file.newer_version());
        Ok(StoreState { id: file.id, latest, newer_schema })
    }

    fn now(&mut self) -> Timestamp {
        clock::now()
    }
}

impl Transaction for Session<'_> {
    fn append(&mut self, append: &Append<'_>) -> Result<Appended> {
        let id = &append.head.id;
        let base = match self.staged.get(id) {
            Some(staged) => staged.base.clone(),
            None => self.known(id)?,
        };
        let (latest, hash) = match self.staged.get(id).and_then(|staged| staged.entries.last()) {
            Some(entry) => (entry.version, entry.hash),
            None => base.as_ref().map_or((0, None), |base| (base.tail.version, base.tail.hash)),
        };
        if append.head.version != latest + 1 {
            let detail =
                format!("plan {id} is at version {latest}, so {} cannot follow", append.head.version);
            return Err(StoreError::Database(detail));
        }
        for task in &append.index.stopped {
            self.set_lease_end(id, task, None)?;
        }
        for (lease, _) in &append.index.started {
            self.set_lease_end(id, &lease.task, LeaseEnd::of(lease))?;
        }
        // The versions of this transaction count from the next one on: the length of their lines is not known yet.
        let length = base.as_ref().map_or(0, |base| base.tail.length);
        let covered = snapshot::label(self.layout, id).map_or(0, |label| label.length);
        let replay_bytes = if self.snapshots.contains_key(id) { 0 } else { length.saturating_sub(covered) };
        let predecessor = hash_chain::predecessor(self, id, latest, hash)?;
        let sequence = self.next_sequence()?;
        let facts = Arc::new(Facts { head: append.head.clone(), rows: IndexRows::of(append.plan) });
        let end = End::Written(facts, Box::new(append.plan.to_draft()));
        let staged =
            self.staged.entry(id.clone()).or_insert(Staged { base, entries: Vec::new(), end: End::Purged });
        staged.entries.push(append.stored(sequence, predecessor)?);
        staged.end = end;
        Ok(Appended { sequence, replay_bytes })
    }

    fn update_leases(&mut self, updates: &[LeaseUpdate]) -> Result<Vec<bool>> {
        let mut updated = Vec::new();
        for LeaseUpdate { plan, task, attempt, until, seconds, progress } in updates {
            let facts = self.facts(plan)?;
            let mut leases = facts.iter().flat_map(|facts| &facts.rows.leases);
            let has_it = leases.any(|lease| lease.task == *task && lease.attempt == *attempt);
            if has_it {
                let ends = self.lease_ends()?.get(plan).and_then(|ends| ends.get(task));
                let end = ends.filter(|end| end.attempt == *attempt).cloned();
                let mut end = end.unwrap_or(LeaseEnd { attempt: *attempt, ..LeaseEnd::default() });
                end.until = until.or(end.until);
                end.seconds = seconds.or(end.seconds);
                if progress.is_some() {
                    end.progress.clone_from(progress);
                    self.progressed = true;
                }
                self.set_lease_end(plan, task, Some(end))?;
            }
            updated.push(has_it);
        }
        Ok(updated)
    }

    fn put(&mut self, record: Record<'_>) -> Result<()> {
        match record {
            Record::Subscription(id, subscription) => {
                let all = self.all_subscriptions()?;
                self.subscriptions.changed |= set(all, id, subscription);
            }
            Record::Worker(name, worker) => {
                let all = self.all_workers()?;
                self.workers.changed |= set(all, name, worker);
            }
            Record::Shared(scope, key, value) => {
                let rows = self.shared_rows()?.entry(scope.name()).or_default();
                self.shared.changed |= set(rows, key, value.map(str::to_owned).as_ref());
            }
            // All users of the folder share the log files.
            Record::AttemptLog(_) => {}
            Record::Snapshot(plan, version, bytes) => {
                self.snapshots.insert(plan.clone(), (version, bytes.to_vec()));
            }
        }
        Ok(())
    }
}

/// Sets or removes an entry. Returns whether that changes anything.
fn set<T: Clone>(all: &mut BTreeMap<String, T>, key: &str, value: Option<&T>) -> bool {
    match value {
        Some(value) => {
            all.insert(key.to_owned(), value.clone());
            true
        }
        None => all.remove(key).is_some(),
    }
}

impl Rewrite for Session<'_> {
    /// Everything except the ends of leases follows from the plan's own files and cannot stay wrong.
    fn replace_index(&mut self, plan: &Plan, head: &PlanSummary, rows: &IndexRows) -> Result<()> {
        // Of an imported plan, only the versions are known so far.
        if let Some(staged) = self.staged.get_mut(plan.id()) {
            let facts = Facts { head: head.clone(), rows: IndexRows::of(plan) };
            staged.end = End::Written(Arc::new(facts), Box::new(plan.to_draft()));
        }
        for lease in &rows.leases {
            self.set_lease_end(plan.id(), &lease.task, LeaseEnd::of(lease))?;
        }
        Ok(())
    }

    fn purge(&mut self, plan: &PlanId) -> Result<()> {
        if self.facts(plan)?.is_none() && !self.staged.contains_key(plan) {
            return Err(StoreError::Database(format!("plan {plan} has no files")));
        }
        if self.lease_ends()?.remove(plan).is_some() {
            self.lease_ends.changed = true;
        }
        for scope in [SharedScope::Records(plan), SharedScope::Unpublished(plan)] {
            self.shared.changed |= self.shared_rows()?.remove(&scope.name()).is_some();
        }
        self.snapshots.remove(plan);
        let base = self.known(plan)?;
        let staged =
            self.staged.entry(plan.clone()).or_insert(Staged { base, entries: Vec::new(), end: End::Purged });
        staged.end = End::Purged;
        Ok(())
    }

    fn prune(&mut self, pruning: &Pruning<'_>) -> Result<()> {
        let plan = pruning.plan.id();
        if self.facts(plan)?.is_none() {
            return Err(StoreError::Database(format!("plan {plan} has no files")));
        }
        self.snapshots.remove(plan);
        self.kept.insert(plan.clone(), PrunedFile::new(pruning.pruned, pruning.plan.to_draft()));
        Ok(())
    }

    fn import_versions(&mut self, entries: &[StoredVersion]) -> Result<()> {
        let last = self.store_state()?.latest;
        for entry in entries {
            if self.known(&entry.plan)?.is_some() {
                return Err(StoreError::Database(format!("plan {} has files already", entry.plan)));
            }
            let new = || Staged { base: None, entries: Vec::new(), end: End::Purged };
            self.staged.entry(entry.plan.clone()).or_insert_with(new).entries.push(entry.clone());
        }
        let most = entries.iter().map(|entry| entry.sequence).max().unwrap_or_default();
        self.sequence = Some(last.max(most));
        Ok(())
    }
}
