//! What holds of several writes of one thing: those that no other write names, and for texts what they come to together.

use std::collections::{BTreeSet, HashMap};

use super::Merge;
use super::reading::At;
use crate::ids::RecordId;
use waypost_core::merged_texts;

/// One write. The writes of one thing are in the total order.
#[derive(Clone)]
pub(super) struct Write<'a, T> {
    /// The number of the record, and the place of the action in it.
    pub(super) at: At,
    pub(super) id: RecordId,
    pub(super) over: &'a [RecordId],
    pub(super) value: T,
}

impl<'a> Merge<'a> {
    /// Returns, for each write, the place of the last one that replaces it. `may` says whether the author of the second
    /// write may replace the first; `is_contested` says whether writes contradict each other. What clones disagree about,
    /// only a person settles: then an agent or a worker replaces no more than what it wrote itself in that clone.
    pub(super) fn replaced<T>(
        &mut self,
        writes: &[Write<'_, T>],
        may: impl Fn(&Self, &Write<'_, T>, &Write<'_, T>) -> bool,
        is_contested: impl Fn(&Self, &[usize]) -> bool,
    ) -> Vec<Option<usize>> {
        let mut by = vec![None; writes.len()];
        let places = places_of(writes);
        // In one record the last write counts.
        for (place, write) in writes.iter().enumerate() {
            by[place] = places.get(&write.id).copied().filter(|last| *last != place);
        }
        // The writes so far that nothing replaced.
        let mut open: BTreeSet<usize> = BTreeSet::new();
        for (place, write) in writes.iter().enumerate() {
            let named = write.over.iter().filter(|older| **older != write.id);
            let named = named.filter_map(|older| places.get(older)).copied();
            let mut named: BTreeSet<usize> =
                named.filter(|&older| may(self, &writes[older], write)).collect();
            if !named.is_empty() && !self.is_by_person(write.at) {
                let others: Vec<usize> = open.difference(&named).copied().collect();
                let records: Vec<u32> = others.iter().map(|&other| writes[other].at.0).collect();
                let saw = if records.is_empty() { Vec::new() } else { self.saw_each(write.at.0, &records) };
                let seen = others.into_iter().zip(saw).filter(|(_, saw)| *saw).map(|(other, _)| other);
                let seen: BTreeSet<usize> = seen.chain(named.iter().copied()).collect();
                if seen.len() > 1 && is_contested(self, &Vec::from_iter(seen)) {
                    named.retain(|&older| self.is_same_author(writes[older].at, write.at));
                }
            }
            for older in named {
                by[older] = Some(place);
                open.remove(&older);
            }
            if by[place].is_none() {
                open.insert(place);
            }
        }
        by
    }

    /// Whether the same actor wrote both in the same clone.
    fn is_same_author(&self, one: At, other: At) -> bool {
        let author = |at: At| (self.reading.record(at).by(), self.reading.record(at).from());
        author(one) == author(other)
    }
}

fn places_of<T>(writes: &[Write<'_, T>]) -> HashMap<RecordId, usize> {
    writes.iter().enumerate().map(|(place, write)| (write.id, place)).collect()
}

/// How often the common text of texts is itself merged of several. Beyond that, a person is asked.
const COMMON_DEPTH_MAX: usize = 32;

/// Merges the texts of the facts, which are places in `writes`, against the newest text that all of them replaced: if
/// that is several, against what these come to together. `None` if they overlap, or if there is no such text.
pub(super) fn merged(initial: Option<&str>, writes: &[Write<'_, &str>], facts: &[usize]) -> Option<String> {
    let places = places_of(writes);
    // The facts, what they have in common, what that has in common, and so on, until it is one text.
    let mut levels = vec![facts.to_vec()];
    let mut base = loop {
        let level = levels.last()?;
        let newest = newest_common(writes, &places, level);
        match newest[..] {
            [] => break initial?.to_owned(),
            [one] => break writes[one].value.to_owned(),
            _ if levels.len() == COMMON_DEPTH_MAX => return None,
            _ => levels.push(newest),
        }
    };
    for level in levels.iter().rev() {
        let mut texts = level.iter().map(|&place| writes[place].value);
        let first = texts.next()?.to_owned();
        base = texts.try_fold(first, |merged, text| merged_texts(&base, &merged, text))?;
    }
    Some(base)
}

/// Returns the writes that all of these replaced, without those that others of them replaced.
fn newest_common<T>(
    writes: &[Write<'_, T>],
    places: &HashMap<RecordId, usize>,
    facts: &[usize],
) -> Vec<usize> {
    let replaced = |from: &[usize]| {
        let (mut seen, mut stack) = (BTreeSet::new(), from.to_vec());
        while let Some(place) = stack.pop() {
            let older = writes[place].over.iter().filter_map(|id| places.get(id)).copied();
            stack.extend(older.filter(|&older| seen.insert(older)).collect::<Vec<usize>>());
        }
        seen
    };
    let mut common: Option<BTreeSet<usize>> = None;
    for &fact in facts {
        let seen = replaced(&[fact]);
        common = Some(match common {
            None => seen,
            Some(common) => common.intersection(&seen).copied().collect(),
        });
    }
    let common: Vec<usize> = common.into_iter().flatten().collect();
    let older = replaced(&common);
    common.into_iter().filter(|place| !older.contains(place)).collect()
}
