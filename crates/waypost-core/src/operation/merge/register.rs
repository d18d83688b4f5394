//! What holds of several writes of one thing: those that no other write names, and for texts what they come to together.

use std::collections::{BTreeSet, HashMap};

use super::super::ids::RecordId;
use crate::line_diff::merged_texts;

/// One write. The writes of one thing are in the total order.
#[derive(Clone)]
pub(super) struct Write<'a, T> {
    /// The number of the record, and the place of the action in it.
    pub(super) at: (u32, u32),
    pub(super) id: RecordId,
    pub(super) over: &'a [RecordId],
    pub(super) value: T,
}

/// Returns, for each write, the place of the last one that replaces it.
pub(super) fn replaced_by<T>(writes: &[Write<'_, T>]) -> Vec<Option<usize>> {
    let mut by = vec![None; writes.len()];
    let places = places_of(writes);
    for (place, write) in writes.iter().enumerate() {
        // In one record the last write counts.
        if let Some(last) = places.get(&write.id).filter(|last| **last != place) {
            by[place] = Some(*last);
        }
    }
    for (place, write) in writes.iter().enumerate() {
        for older in write.over.iter().filter(|older| **older != write.id) {
            if let Some(&older) = places.get(older) {
                by[older] = Some(place);
            }
        }
    }
    by
}

fn places_of<T>(writes: &[Write<'_, T>]) -> HashMap<RecordId, usize> {
    writes.iter().enumerate().map(|(place, write)| (write.id, place)).collect()
}

/// Merges the texts of the facts, which are places in `writes`, against the newest text that all of them replaced.
/// `None` if they overlap, or if there is no such text.
pub(super) fn merged<'t>(
    initial: Option<&'t str>,
    writes: &[Write<'_, &'t str>],
    facts: &[usize],
) -> Option<String> {
    let places = places_of(writes);
    let mut common: Option<BTreeSet<usize>> = None;
    for &fact in facts {
        let (mut seen, mut stack) = (BTreeSet::new(), vec![fact]);
        while let Some(place) = stack.pop() {
            let older = writes[place].over.iter().filter_map(|id| places.get(id)).copied();
            stack.extend(older.filter(|&older| seen.insert(older)).collect::<Vec<usize>>());
        }
        common = Some(match common {
            None => seen,
            Some(common) => common.intersection(&seen).copied().collect(),
        });
    }
    let newest = common.and_then(|common| common.last().copied());
    let base = newest.map(|newest| writes[newest].value).or(initial)?;
    let mut texts = facts.iter().map(|&fact| writes[fact].value);
    let first = texts.next()?.to_owned();
    texts.try_fold(first, |merged, text| merged_texts(base, &merged, text))
}
