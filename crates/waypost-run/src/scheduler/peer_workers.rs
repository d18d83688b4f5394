//! Other workers that write the same plans, and the division of the ready tasks among them.

use std::collections::BTreeMap;

use waypost_core::{TaskId, Timestamp};

/// Seconds for which a plan counts as shared after another worker has written it.
pub(super) const SHARED_SECONDS: u64 = 10;

/// Other workers that have written recently, and when that was seen.
#[derive(Debug, Default)]
pub(super) struct PeerWorkers(BTreeMap<String, Timestamp>);

impl PeerWorkers {
    pub(super) fn see(&mut self, now: Timestamp, name: &str) {
        match self.0.get_mut(name) {
            Some(seen) => *seen = now,
            None => drop(self.0.insert(name.to_owned(), now)),
        }
    }

    /// Removes workers that have not written for a while.
    fn forget_old(&mut self, now: Timestamp) {
        self.0.retain(|_, seen| now < seen.plus_seconds(SHARED_SECONDS));
    }

    pub(super) fn are_there(&mut self, now: Timestamp) -> bool {
        self.forget_old(now);
        !self.0.is_empty()
    }

    /// Returns the part of the ready tasks that `worker` tries first. Workers that all know each other get parts that
    /// do not overlap. A worker that does not know all others gets refusals now and then.
    pub(super) fn part_of(&mut self, now: Timestamp, worker: &str) -> Part {
        self.forget_old(now);
        let place = self.0.keys().take_while(|name| name.as_str() < worker).count();
        Part { place: place as u64, of: self.0.len() as u64 + 1 }
    }
}

/// One of several equal parts of all tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) place: u64,
    pub(super) of: u64,
}

impl Part {
    pub(super) fn has(self, task: &TaskId) -> bool {
        // FNV-1a: the same on all machines and in all builds.
        let hash = task.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash >> 32) % self.of == self.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_know_each_other_begin_with_parts_that_do_not_overlap() {
        let now = Timestamp::from_micros(1);
        let names = ["a-1", "b-2", "c-3"];
        let parts = names.map(|worker| {
            let mut mates = PeerWorkers::default();
            for name in names.iter().filter(|name| **name != worker) {
                mates.see(now, name);
            }
            mates.part_of(now, worker)
        });
        let mut counts = [0; 3];
        for number in 0..3_000 {
            let task = TaskId::new(format!("t{number}")).unwrap();
            let owners: Vec<usize> = (0..3).filter(|place| parts[*place].has(&task)).collect();
            assert_eq!(owners.len(), 1, "{task} is somebody's, and only one's");
            counts[owners[0]] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "about equal: {counts:?}");
    }

    #[test]
    fn who_has_not_written_for_a_while_leaves_its_part_to_the_others() {
        let mut mates = PeerWorkers::default();
        mates.see(Timestamp::from_micros(0), "b-2");
        assert!(mates.are_there(Timestamp::from_micros(0)));
        let later = Timestamp::from_micros(0).plus_seconds(SHARED_SECONDS);
        let part = mates.part_of(later, "a-1");
        assert!((0..100).all(|number| part.has(&TaskId::new(format!("t{number}")).unwrap())));
        assert!(!mates.are_there(later));
    }
}
