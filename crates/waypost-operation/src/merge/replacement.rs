//! Which writes others replace, and who may replace them.

use std::collections::BTreeSet;

use super::Merge;
use super::register::{At, Write, places_of};

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
