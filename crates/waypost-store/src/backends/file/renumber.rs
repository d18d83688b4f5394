//! Numbers of the log that two plans have: two clones gave them, and a merge brought both histories into one folder. The later plan
//! gets new numbers. The hash of a version does not contain its number, so the histories stay provable.

use std::collections::{BTreeMap, BTreeSet};

use waypost_core::PlanId;

use super::fs;
use super::history_file::{self, ReadPosition, intact_lines};
use super::journal::{self, Intent, Target};
use super::layout::{Layout, StoreFile};
use crate::error::{Result, StoreError};
use crate::rows::{ranges, version_words};

/// Renumbers the versions of each plan from the first one on whose number another plan has, too. Leaves damaged histories alone.
/// Requires the writers' lock.
pub(super) fn renumber(layout: &Layout, ids: &BTreeSet<PlanId>) -> Result<Vec<(Option<PlanId>, String)>> {
    let store = match StoreFile::read(layout) {
        Err(StoreError::Corrupt { .. }) => return Ok(Vec::new()),
        store => store?,
    };
    let mut owners: BTreeMap<u64, PlanId> = BTreeMap::new();
    let mut moved = Vec::new();
    for id in ids {
        let mut marks = ReadPosition::default();
        match marks.catch_up(&layout.history(id), id) {
            // Its numbers are not known as long as it is damaged.
            Err(StoreError::Corrupt { .. }) => return Ok(Vec::new()),
            read => read?,
        }
        let numbers: Vec<u64> = marks.sequences().collect();
        let shared = numbers.iter().position(|number| owners.contains_key(number));
        let kept = shared.unwrap_or(numbers.len());
        if let Some(at) = shared {
            moved.push((id.clone(), at, owners[&numbers[at]].clone(), numbers[at]));
        }
        owners.extend(numbers[..kept].iter().map(|&number| (number, id.clone())));
    }
    if moved.is_empty() {
        return Ok(Vec::new());
    }
    let mut last = owners.last_key_value().map_or(0, |(&number, _)| number).max(store.sequence);
    let (mut intent, mut told) = (Intent::default(), Vec::new());
    for (id, at, other, number) in moved {
        let bytes = fs::read(&layout.history(&id))?.unwrap_or_default();
        let (mut text, mut versions, first) = (String::new(), Vec::new(), last + 1);
        for (place, (mut entry, file)) in intact_lines(&bytes).0.into_iter().enumerate() {
            if place >= at {
                last += 1;
                entry.sequence = last;
                versions.push(entry.version);
            }
            owners.insert(entry.sequence, id.clone());
            text.push_str(&history_file::line(&entry, file.as_deref())?);
        }
        let versions = version_words(&ranges(versions.into_iter()));
        let what = format!(
            "plans {other} and {id} both had number {number} of the log: {versions} of plan {id} got the numbers from {first} on"
        );
        told.push((Some(id.clone()), what));
        intent.removals.push(Target::Snapshot(id.clone()));
        intent.files.push((Target::History(id), text.into_bytes()));
    }
    // Numbers that only stood in the renumbered lines are in no history any more.
    let lost = (1..=last).filter(|number| !owners.contains_key(number)).count() as u64;
    intent.files.push((Target::Store, fs::pretty(&StoreFile { sequence: last, lost, ..store })?));
    journal::commit(layout, intent)?;
    Ok(told)
}
