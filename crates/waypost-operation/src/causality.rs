//! Who saw what: whether one record can be reached from another through parents.
//!
//! The records are divided into chains in which each one saw those before it; about as many as there are clones. A record
//! then needs one number per chain: how much of it it saw.

use std::collections::HashSet;

/// Maximum numbers that are stored. More would only be needed by records that do not come from Waypost.
const NUMBERS_MAX: usize = 50_000_000;

/// What each record saw. Records have numbers, parents before their children.
pub(super) struct Causality {
    parents: Vec<Vec<u32>>,
    seen: Seen,
}

enum Seen {
    /// The chain of each record with its place there, and how many records of each chain each record saw.
    Chains { place: Vec<(u32, u32)>, counts: Vec<Box<[u32]>> },
    /// There are too many chains: each question costs a walk.
    Walks,
}

impl Causality {
    /// Divides records into chains. `parents[n]` are numbers below `n`.
    pub(super) fn of(parents: Vec<Vec<u32>>) -> Self {
        Self::within(parents, NUMBERS_MAX)
    }

    fn within(parents: Vec<Vec<u32>>, numbers_max: usize) -> Self {
        let mut place: Vec<(u32, u32)> = Vec::with_capacity(parents.len());
        let mut counts: Vec<Box<[u32]>> = Vec::with_capacity(parents.len());
        // How long each chain is.
        let mut lengths: Vec<u32> = Vec::new();
        let mut numbers = 0;
        for above in &parents {
            let mut seen = vec![0u32; lengths.len()];
            for &parent in above {
                for (mine, theirs) in seen.iter_mut().zip(&*counts[parent as usize]) {
                    *mine = (*mine).max(*theirs);
                }
            }
            // The first record that saw the whole chain extends it.
            let chain =
                (0..lengths.len()).find(|&chain| seen[chain] == lengths[chain]).unwrap_or_else(|| {
                    lengths.push(0);
                    seen.push(0);
                    lengths.len() - 1
                });
            place.push((chain as u32, lengths[chain]));
            lengths[chain] += 1;
            seen[chain] = lengths[chain];
            numbers += seen.len();
            if numbers > numbers_max {
                return Self { parents, seen: Seen::Walks };
            }
            counts.push(seen.into_boxed_slice());
        }
        Self { parents, seen: Seen::Chains { place, counts } }
    }

    /// Returns whether `record` saw each of `others`; it saw itself.
    pub(super) fn saw_each(&self, record: u32, others: &[u32]) -> Vec<bool> {
        match &self.seen {
            Seen::Chains { place, counts } => {
                let saw = |other: &u32| {
                    let (chain, at) = place[*other as usize];
                    counts[record as usize].get(chain as usize).is_some_and(|&count| count > at)
                };
                others.iter().map(saw).collect()
            }
            Seen::Walks => {
                let lowest = others.iter().copied().min().unwrap_or(record);
                let mut seen: HashSet<u32> = HashSet::from([record]);
                let mut stack = vec![record];
                while let Some(at) = stack.pop() {
                    let above = self.parents[at as usize].iter().copied().filter(|&above| above >= lowest);
                    stack.extend(above.filter(|&above| seen.insert(above)));
                }
                others.iter().map(|other| seen.contains(other)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_and_walks_say_the_same() {
        let mut random = 3u64;
        let mut below = |max: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % max
        };
        let parents: Vec<Vec<u32>> = (0..300usize)
            .map(|number| (0..below(3)).filter(|_| number > 0).map(|_| below(number.max(1)) as u32).collect())
            .collect();
        let (chains, walks) = (Causality::of(parents.clone()), Causality::within(parents, 10));
        assert!(matches!((&chains.seen, &walks.seen), (Seen::Chains { .. }, Seen::Walks)));
        let all: Vec<u32> = (0..300).collect();
        for record in 0..300 {
            let saw = chains.saw_each(record, &all);
            assert_eq!(saw, walks.saw_each(record, &all), "{record}");
            assert!(saw[record as usize] && saw[record as usize + 1..].iter().all(|saw| !saw));
        }
    }

    #[test]
    fn clones_that_take_turns_are_as_many_chains() {
        // Two clones write, then both see both.
        let mut parents: Vec<Vec<u32>> = vec![vec![]];
        for round in 0..100u32 {
            let heads = if round == 0 { vec![0] } else { vec![round * 2 - 1, round * 2] };
            parents.push(heads.clone());
            parents.push(heads);
        }
        let Seen::Chains { counts, .. } = Causality::of(parents).seen else { panic!("few chains") };
        assert_eq!(counts.last().unwrap().len(), 2);
    }
}
