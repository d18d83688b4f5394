//! Repairs damaged histories and plan files from what is intact: the versions that can still be read, the plan's own
//! JSON file, and the state that was kept when events were pruned. A copy of every damaged file stays in `damaged/`.
//!
//! Version numbers never decrease: a lost version keeps its number, in the plan and in the log, without its events.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use waypost_core::{Actor, Draft, Phase, Plan, PlanId, validate};

use super::fs;
use super::history_file::{self, intact_lines};
use super::journal::{self, Intent, Target};
use super::layout::{Layout, StoreFile};
use super::merge_sides::{self, Line, one_side};
use super::plan_cache::{PlanCacheEntry, PlanFiles, Readable};
use super::pruned::{self, PrunedFile};
use super::renumber::renumber;
use super::small_files::small_files;
use crate::clock;
use crate::error::{Result, StoreError};
use crate::rows::{DOCTOR, LOST, PURGED, Pruned, ranges, version_words};
use crate::stored_version::{NO_EVENTS, StoredVersion};

/// The readable parts of a plan whose files are damaged.
struct Intact {
    /// The readable versions, each with the fingerprint of the JSON file that was written with it.
    lines: BTreeMap<u64, Line>,
    /// The readable versions of the other side of a merge.
    other_side: Vec<StoredVersion>,
    /// The number of unreadable lines after the last of them. Each may have been a version.
    torn: u64,
    /// The plan's JSON file, if Waypost may have written it with the latest version.
    draft: Option<Draft>,
    /// The state kept for pruned versions; an error if its file is damaged.
    kept: Result<Option<PrunedFile>>,
}

impl Intact {
    fn read(layout: &Layout, id: &PlanId) -> Result<Self> {
        Self::read_below(layout, id, StoreFile::read(layout)?.sequence)
    }

    /// Reads the same, for a log that ends with `last_number`.
    fn read_below(layout: &Layout, id: &PlanId, last_number: u64) -> Result<Self> {
        let bytes = skip_damage(fs::read(&layout.history(id)))?.unwrap_or_default();
        let mut candidates: BTreeMap<u64, Vec<Line>> = BTreeMap::new();
        let (found, torn) = intact_lines(&bytes);
        for (entry, file) in found {
            // Every version has a sequence number in the log, so a version larger than its number is wrong.
            if entry.plan == *id && (1..=entry.sequence).contains(&entry.version) {
                candidates.entry(entry.version).or_default().push((entry, file));
            }
        }
        let (mut lines, other_side) = one_side(candidates);
        lines.retain(|&version, _| version <= last_number);
        let mut before = 0;
        lines.retain(|_, (entry, _)| {
            let follows = entry.sequence > before;
            before = before.max(entry.sequence);
            follows
        });
        let draft = readable_draft(layout, id, &lines)?.filter(|draft| draft.version <= last_number);
        Ok(Self { lines, other_side, torn, draft, kept: PrunedFile::read(layout, id) })
    }

    /// Returns whether the JSON file was written with the last readable version.
    fn is_draft_proven(&self) -> bool {
        let last = self.lines.last_key_value();
        let written = last.filter(|(_, (_, file))| file.is_some()).map(|(&version, _)| version);
        self.draft.as_ref().is_some_and(|draft| Some(draft.version) == written)
    }

    /// Returns the latest version that is known to have been written.
    fn last(&self) -> u64 {
        let in_history = self.lines.last_key_value().map_or(0, |(&version, _)| version);
        // The plan's JSON file contains it; without that file every torn line counts.
        self.draft.as_ref().map_or(in_history + self.torn, |draft| draft.version.max(in_history))
    }

    fn is_purged(&self) -> bool {
        self.lines.values().any(|(entry, _)| entry.command == PURGED)
    }

    /// Returns the first version whose events are needed and lost.
    fn broken_at(&self) -> Option<u64> {
        let kept = match &self.kept {
            _ if self.is_purged() => return None,
            Err(_) => return Some(1),
            Ok(kept) => kept.as_ref().map_or(0, |kept| kept.pruned.up_to),
        };
        (kept + 1..=self.last()).find(|version| !self.lines.contains_key(version))
    }

    /// Returns the lost versions, each with an unused sequence number for it; `None` if there are too few numbers.
    fn numbers_of_lost(&self, unused: &BTreeSet<u64>) -> Option<Vec<(u64, u64)>> {
        let (mut found, mut before) = (Vec::new(), 0);
        for version in 1..=self.last() {
            before = match self.lines.get(&version) {
                Some((entry, _)) => entry.sequence,
                None => {
                    let later =
                        self.lines.range(version..).next().map_or(u64::MAX, |(_, (entry, _))| entry.sequence);
                    let number = *unused.range(before + 1..later).next()?;
                    found.push((version, number));
                    number
                }
            };
        }
        Some(found)
    }

    /// Returns the version that replaces a lost one in the history. It has no hash.
    fn lost_entry(&self, plan: &PlanId, version: u64, sequence: u64) -> StoredVersion {
        let near = self.lines.range(..version).next_back().or_else(|| self.lines.range(version..).next());
        let at = near.map_or_else(clock::now, |(_, (entry, _))| entry.at);
        let command = if self.is_purged() { PURGED } else { LOST }.to_owned();
        StoredVersion {
            sequence,
            plan: plan.clone(),
            version,
            at,
            actor: Actor::system(DOCTOR).to_string(),
            command,
            events: NO_EVENTS.to_owned(),
            hash: None,
            chained_from: None,
        }
    }

    /// Returns the lost versions with their numbers, as [`Intact::numbers_of_lost`] does. Takes what cannot be true out
    /// first.
    fn plausible_numbers(&mut self, unused: &BTreeSet<u64>) -> Option<Vec<(u64, u64)>> {
        let mut numbers = self.numbers_of_lost(unused);
        if numbers.is_none() {
            // The JSON file counts versions that this store never had, so it comes from another store.
            self.draft = None;
            numbers = self.numbers_of_lost(unused);
        }
        if numbers.is_none() {
            self.torn = 0;
            numbers = self.numbers_of_lost(unused);
        }
        numbers.filter(|_| self.last() > 0)
    }

    /// Returns the latest state that can be restored without the events of version `first`: that of the plan's JSON
    /// file, or the one before that version. Events after a lost version are not applied, because they may rely on it.
    fn restored(&self, layout: &Layout, id: &PlanId, first: u64) -> Option<Restored> {
        let Some(draft) = &self.draft else {
            let plan = self.replay_before(id, first)?;
            let left_by = plan.version();
            let draft = Draft { version: self.last(), ..plan.to_draft() };
            let source = format!("the plan is as version {left_by} left it");
            return Some(Restored { draft, source, left_by: Some(left_by) });
        };
        let mut draft = draft.clone();
        let mut source = format!("version {} was restored from {}", self.last(), layout.plan(id).display());
        if !self.is_draft_proven() && withdraw_approval(&mut draft, self.replay_before(id, first)) {
            source.push_str("; no intact version says that it may run, so it needs approval again");
        }
        Some(Restored { draft, source, left_by: None })
    }

    /// Empties the versions from `first` on, whose events cannot be applied. Returns which.
    fn give_up_from(&mut self, first: u64) -> Vec<u64> {
        let mut given_up = Vec::new();
        for (&version, (entry, file)) in self.lines.range_mut(first..) {
            given_up.push(version);
            (entry.command, entry.events) = (LOST.to_owned(), NO_EVENTS.to_owned());
            (entry.hash, entry.chained_from, *file) = (None, None, None);
        }
        given_up
    }

    /// Replays the plan up to the last version before `version`.
    fn replay_before(&self, id: &PlanId, version: u64) -> Option<Plan> {
        let kept = self.kept.as_ref().ok()?.clone();
        let mut plan = kept.map_or_else(|| Plan::blank(id.clone()), |kept| kept.plan(id));
        for (_, (entry, _)) in self.lines.range(plan.version() + 1..version) {
            plan.advance(&entry.record().ok()?.events, entry.at);
        }
        Some(plan).filter(|plan| plan.version() > 0)
    }
}

/// Reads the plan's JSON file, unless it is older than the history or was changed since the last readable version.
fn readable_draft(layout: &Layout, id: &PlanId, lines: &BTreeMap<u64, Line>) -> Result<Option<Draft>> {
    let Some(bytes) = skip_damage(fs::read(&layout.plan(id)))? else { return Ok(None) };
    let Ok(draft) = serde_json::from_slice::<Draft>(&bytes) else { return Ok(None) };
    let belongs = draft.id.as_ref().is_none_or(|named| named == id) && validate(&draft).is_empty();
    let is_current = match lines.last_key_value() {
        Some((&version, (_, file))) if version == draft.version => {
            file.as_ref().is_none_or(|file| *file == fs::fingerprint(&bytes))
        }
        Some((&version, _)) => version < draft.version,
        None => draft.version > 0,
    };
    Ok(Some(draft).filter(|_| belongs && is_current))
}

/// Turns damage into `None`.
fn skip_damage<T>(outcome: Result<Option<T>>) -> Result<Option<T>> {
    match outcome {
        Err(StoreError::Corrupt { .. }) => Ok(None),
        outcome => outcome,
    }
}

/// The state that a repair gives a damaged plan.
struct Restored {
    draft: Draft,
    /// Where it comes from.
    source: String,
    /// The version that left it, if no later one could be restored.
    left_by: Option<u64>,
}

/// Describes the versions and files of a damaged plan that can still be read.
pub(super) fn describe_intact(layout: &Layout, id: &PlanId) -> Result<String> {
    let intact = Intact::read(layout, id)?;
    let mut parts = Vec::new();
    if !intact.lines.is_empty() {
        parts.push(version_words(&ranges(intact.lines.keys().copied())));
    }
    if let Some(draft) = &intact.draft {
        parts.push(format!("{} at version {}", layout.plan(id).display(), draft.version));
    }
    parts.extend(merge_sides::describe(&intact.other_side));
    Ok(if parts.is_empty() {
        "nothing is intact".to_owned()
    } else {
        format!("intact: {}", parts.join("; "))
    })
}

/// Returns what is intact of a damaged plan, as a repair would restore it, and where it comes from.
pub(super) fn intact_plan(layout: &Layout, id: &PlanId) -> Result<Option<(Plan, String)>> {
    let mut ids = layout.plan_ids()?;
    ids.extend(layout.ids_without_history(&ids)?);
    let Some(unused) = skip_damage(unused_numbers(layout, &ids).map(Some))? else { return Ok(None) };
    let mut intact = Intact::read(layout, id)?;
    if intact.plausible_numbers(&unused).is_none() || intact.is_purged() {
        return Ok(None);
    }
    let end = intact.last() + 1;
    Ok(match intact.broken_at() {
        Some(first) => intact.restored(layout, id, first).map(|found| {
            let version = found.left_by.unwrap_or(found.draft.version);
            let plan = Plan::from_trusted_draft(id.clone(), Draft { version, ..found.draft });
            (plan, found.source)
        }),
        None => {
            let plan = intact.replay_before(id, end);
            plan.map(|plan| (plan, format!("the plan is as version {} left it", end - 1)))
        }
    })
}

/// Repairs whatever can be repaired, and returns the outcome for each file or plan. Requires the writers' lock.
pub(super) fn repair(layout: &Layout) -> Result<Vec<(Option<PlanId>, String)>> {
    let mut repaired = Vec::new();
    for (path, checked) in small_files(layout) {
        if skip_damage(checked.map(Some))?.is_none() {
            let aside = skip_damage(move_aside(layout, &path).map(Some))?;
            repaired.extend(aside.map(|aside| (None, format!("{} was damaged{aside}", path.display()))));
        }
    }
    let mut ids = layout.plan_ids()?;
    repaired.extend(repair_store_file(layout, &ids)?.map(|told| (None, told)));
    ids.extend(layout.ids_without_history(&ids)?);
    let mut unused = unused_numbers(layout, &ids)?;
    // A history may have ended later only if the plan's own file, which would show it, is missing, too. Such plans come
    // last: the numbers of damaged lines are no longer unused then.
    let (short, whole): (Vec<_>, Vec<_>) = ids.iter().partition(|id| lacks_readable(layout, id));
    let mut all_readable = true;
    for id in whole.into_iter().chain(short) {
        let is_short = unused.last() > Some(&last_number(layout, id)) && lacks_readable(layout, id);
        if is_short || skip_damage(is_readable(layout, id).map(Some))?.is_none() {
            let told = skip_damage(repair_history(layout, id, &mut unused, is_short))?;
            all_readable &= told.is_some();
            repaired.extend(told.map(|told| (Some(id.clone()), told)));
        }
        let told = skip_damage(repair_readable(layout, id))?;
        repaired.extend(told.map(|told| (Some(id.clone()), told)));
    }
    if all_readable {
        repaired.extend(accept_loss(layout, unused.len() as u64)?.map(|told| (None, told)));
    }
    repaired.extend(renumber(layout, &ids)?);
    Ok(repaired)
}

/// Returns whether the history of a plan can be read to its end, but its own file is missing.
fn lacks_readable(layout: &Layout, id: &PlanId) -> bool {
    let known = PlanCacheEntry::read(layout, id);
    matches!(known, Ok(Some(PlanCacheEntry { readable: Readable::Missing, .. })))
}

/// Returns the sequence number of the last line of a plan's history.
fn last_number(layout: &Layout, id: &PlanId) -> u64 {
    let tail = history_file::tail(&layout.history(id), id);
    tail.ok().flatten().map_or(0, |tail| tail.sequence)
}

/// Records how many sequence numbers are in no history, so that versions can be written again.
fn accept_loss(layout: &Layout, lost: u64) -> Result<Option<String>> {
    let Some(file) = skip_damage(StoreFile::read(layout).map(Some))?.filter(|file| file.lost != lost) else {
        return Ok(None);
    };
    let path = layout.store();
    fs::replace(&path, &fs::pretty(&StoreFile { lost, ..file })?)?;
    Ok(Some(format!(
        "{}: {lost} of its versions are in no history, and count as lost from now on",
        path.display()
    )))
}

/// Fails while the files hold fewer versions than were written: the number of a missing version would be given again,
/// and whoever knows that version would take another for it.
pub(super) fn has_all_versions(files: &PlanFiles) -> Result<()> {
    let layout = &files.layout;
    let (mut held, mut missing) = (0, Vec::new());
    let mut ids = layout.plan_ids()?;
    ids.extend(layout.ids_without_history(&ids)?);
    for id in &ids {
        held += match files.known(id) {
            Ok(Some(known)) => {
                if matches!(known.readable, Readable::Missing) {
                    missing.push(layout.plan(id).display().to_string());
                }
                known.last_version()
            }
            Ok(None) => 0,
            Err(StoreError::Corrupt { .. }) => {
                let intact = Intact::read(layout, id)?;
                if intact.draft.is_none() && intact.lines.is_empty() {
                    // Nobody can say how many versions this damaged file had, and nobody can write to it.
                    return Ok(());
                }
                intact.last()
            }
            Err(error) => return Err(error),
        };
    }
    let counted = StoreFile::read(layout)?.counted();
    if held >= counted {
        return Ok(());
    }
    let missing = match missing.as_slice() {
        [] => "the files of a plan are missing".to_owned(),
        missing => format!("missing are {}, and perhaps the end of its history", missing.join(", ")),
    };
    let detail = format!(
        "it counts {counted} versions, but the histories hold {held}; {missing}: restore the files from a backup, or accept the loss with a repair"
    );
    Err(fs::corrupt(&layout.store(), detail))
}

/// Rebuilds a damaged `store.json`, with the sequence number that the log must have reached.
fn repair_store_file(layout: &Layout, ids: &BTreeSet<PlanId>) -> Result<Option<String>> {
    let path = layout.store();
    if skip_damage(StoreFile::read(layout).map(Some))?.is_some() {
        return Ok(None);
    }
    let (mut versions, mut last) = (0, 0);
    for id in ids {
        let intact = Intact::read_below(layout, id, u64::MAX)?;
        let in_history = intact.lines.last_key_value().map_or(0, |(&version, _)| version);
        // Every version was a line once.
        versions += if in_history == 0 { intact.last() } else { intact.last().min(in_history + intact.torn) };
        last = intact.lines.values().map(|(entry, _)| entry.sequence).fold(last, u64::max);
    }
    let aside = move_aside(layout, &path)?;
    fs::replace(&path, &fs::pretty(&StoreFile::new(last.max(versions))?)?)?;
    Ok(Some(format!("{} was written again from the histories{aside}", path.display())))
}

/// Checks that every line that the plan follows from can be read.
fn is_readable(layout: &Layout, id: &PlanId) -> Result<()> {
    if let Some(PlanCacheEntry { readable: Readable::Ahead(version), .. }) = PlanCacheEntry::read(layout, id)?
    {
        return Err(fs::corrupt(&layout.history(id), format!("it ends before version {version}")));
    }
    pruned::replay(layout, id).map(drop)
}

/// Returns the sequence numbers of the log that no readable version has: those of the lost versions.
fn unused_numbers(layout: &Layout, ids: &BTreeSet<PlanId>) -> Result<BTreeSet<u64>> {
    let mut unused: BTreeSet<u64> = (1..=StoreFile::read(layout)?.sequence).collect();
    for id in ids {
        let intact = skip_damage(Intact::read(layout, id).map(Some))?;
        for (entry, _) in intact.iter().flat_map(|intact| intact.lines.values()) {
            unused.remove(&entry.sequence);
        }
    }
    Ok(unused)
}

/// Rebuilds a plan's history. With `is_short`, all unused numbers after its end count as its own. Returns `None` if too
/// little of it is left.
fn repair_history(
    layout: &Layout,
    id: &PlanId,
    unused: &mut BTreeSet<u64>,
    is_short: bool,
) -> Result<Option<String>> {
    let mut intact = Intact::read(layout, id)?;
    if is_short {
        intact.torn = unused.range(last_number(layout, id) + 1..).count() as u64;
    }
    let Some(numbers) = intact.plausible_numbers(unused) else { return Ok(None) };
    let last = intact.last();
    let mut told = format!("{} was repaired", layout.history(id).display());
    let state = match intact.broken_at() {
        None => None,
        Some(first) => {
            let Some(restored) = intact.restored(layout, id, first) else { return Ok(None) };
            told.push_str(&format!(": {}", restored.source));
            Some((first, restored))
        }
    };
    let given_up = match &state {
        Some((first, Restored { left_by: Some(_), .. })) => intact.give_up_from(*first),
        Some(_) | None => Vec::new(),
    };
    let lost: BTreeSet<u64> = numbers.iter().map(|&(lost, _)| lost).chain(given_up.iter().copied()).collect();
    let lost = ranges(lost.into_iter());
    if !lost.is_empty() {
        told.push_str(&format!("; lost: the events of {}", version_words(&lost)));
    }
    if !given_up.is_empty() {
        let versions = version_words(&ranges(given_up.into_iter()));
        told.push_str(&format!("; {versions} could be read but not applied"));
    }
    if let Some(other_side) = merge_sides::describe(&intact.other_side) {
        told.push_str(&format!("; {other_side}"));
    }
    let mut is_aside = set_aside(layout, &layout.history(id))?;
    let mut intent = Intent { removals: vec![Target::Snapshot(id.clone())], ..Intent::default() };
    for (version, sequence) in numbers {
        unused.remove(&sequence);
        let entry = intact.lost_entry(id, version, sequence);
        intact.lines.insert(version, (entry, None));
    }
    if let Some((from, Restored { draft, left_by, .. })) = state {
        if intact.draft.is_none() {
            is_aside |= set_aside(layout, &layout.plan(id))?;
        }
        is_aside |= set_aside(layout, &layout.pruned_plan(id))?;
        let readable = fs::pretty(&draft)?;
        if let Some((_, file)) = intact.lines.get_mut(&last) {
            *file = Some(fs::fingerprint(&readable));
        }
        let pruned = Pruned { from, lost, left_by, ..Pruned::new(last, clock::now(), Actor::system(DOCTOR)) };
        let kept = PrunedFile::new(&pruned, draft).after(intact.kept.unwrap_or_default());
        intent.files.push((Target::Plan(id.clone()), readable));
        intent.files.push((Target::Pruned(id.clone()), fs::pretty(&kept)?));
    }
    let mut text = String::new();
    for (entry, file) in intact.lines.values() {
        text.push_str(&history_file::line(entry, file.as_deref())?);
    }
    intent.files.push((Target::History(id.clone()), text.into_bytes()));
    journal::commit(layout, intent)?;
    if is_aside {
        told.push_str(&kept_in(layout));
    }
    told.push_str(&merge_sides::left_out(&intact.other_side));
    Ok(Some(told))
}

/// Withdraws the phase and approval that a plan's JSON file claims, unless the last intact version confirms them for
/// the same work. Returns whether anything was withdrawn.
fn withdraw_approval(draft: &mut Draft, supported: Option<Plan>) -> bool {
    let state = &mut draft.state;
    let supported = supported.as_ref();
    if let Some(known) = supported.map(Plan::state) {
        state.approval_required |= known.approval_required;
        state.approval_waived &= known.approval_waived;
    }
    let runs = |phase| matches!(phase, Phase::Active | Phase::Paused);
    if !runs(state.phase) && state.approval.is_none() {
        return false;
    }
    let claimed = state.clone();
    let is_supported = supported.is_some_and(|plan| {
        let may_run = runs(plan.state().phase) || !runs(claimed.phase);
        let same_work =
            || Plan::from_trusted_draft(plan.id().clone(), draft.clone()).work_digest() == plan.work_digest();
        may_run && plan.state().approval == claimed.approval && same_work()
    });
    let state = &mut draft.state;
    if !is_supported {
        (state.approval, state.approval_required, state.approval_waived) = (None, true, false);
        if runs(state.phase) {
            state.phase = Phase::Draft;
        }
    }
    !is_supported
}

/// Rebuilds a plan's JSON file from its history, if it is missing or cannot be read.
fn repair_readable(layout: &Layout, id: &PlanId) -> Result<Option<String>> {
    let Some(PlanCacheEntry {
        readable: Readable::Ahead(_) | Readable::Broken(_) | Readable::Missing, ..
    }) = PlanCacheEntry::read(layout, id)?
    else {
        return Ok(None);
    };
    let path = layout.plan(id);
    let aside = if set_aside(layout, &path)? { kept_in(layout) } else { String::new() };
    let bytes = fs::pretty(&pruned::replay(layout, id)?.to_draft())?;
    journal::commit(layout, Intent { files: vec![(Target::Plan(id.clone()), bytes)], ..Intent::default() })?;
    Ok(Some(format!("{} was written again from the history{aside}", path.display())))
}

/// Moves a damaged file to `damaged/`. Returns a clause for the report, which is empty if there is no file.
fn move_aside(layout: &Layout, path: &Path) -> Result<String> {
    if !set_aside(layout, path)? {
        return Ok(String::new());
    }
    fs::remove(path)?;
    Ok(kept_in(layout))
}

fn kept_in(layout: &Layout) -> String {
    format!("; the damaged file is kept in {}/", layout.damaged().display())
}

/// Copies a file to `damaged/`, next to earlier ones of the same name. Returns `false` if there is no such file.
fn set_aside(layout: &Layout, path: &Path) -> Result<bool> {
    let bytes = match fs::read(path) {
        Ok(None) => return Ok(false),
        // A folder or a link: it is moved away itself.
        Err(StoreError::Corrupt { .. }) => None,
        bytes => bytes?,
    };
    let folder = layout.damaged();
    fs::make_folder(&folder)?;
    fs::is_plain_folder(&folder)?;
    let name = path.strip_prefix(&layout.root).unwrap_or(path).to_string_lossy().replace('/', "-");
    let mut copy = folder.join(&name);
    let mut number = 1;
    while fs::Stamp::of(&copy)?.is_some() {
        number += 1;
        copy = folder.join(format!("{name}.{number}"));
    }
    match bytes {
        Some(bytes) => fs::write_new(&copy, &bytes)?,
        None => fs::rename(path, &copy)?,
    }
    fs::sync_folder(&folder)?;
    Ok(true)
}
