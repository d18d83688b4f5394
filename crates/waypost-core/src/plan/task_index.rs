//! Maps a task's id to its number. A caller that loads a plan for one command looks up one or two ids, so the table of
//! all ids is built only when it pays off. Until then the slots are searched.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::slot::{Slot, id_in};
use crate::id_table::Names;

/// Linear searches before the table is built.
const SEARCHES_MAX: u32 = 16;

/// The table of ids, once it is built.
#[derive(Debug, Default)]
pub(super) struct Index {
    table: OnceLock<Names>,
    searches: AtomicU32,
}

impl Clone for Index {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), searches: AtomicU32::new(self.searches.load(Ordering::Relaxed)) }
    }
}

impl Index {
    /// Creates an index whose table exists from the beginning.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { table: OnceLock::from(Names::with_capacity(capacity)), ..Self::default() }
    }

    /// Returns the number of a task that is in the plan.
    pub(super) fn find(&self, task: &str, slots: &[Slot], ids: &str) -> Option<u32> {
        let id_of = |number: u32| id_in(ids, slots[number as usize].id);
        if let Some(names) = self.table.get() {
            return names.find(task, id_of);
        }
        let mut alive = (0..slots.len() as u32).filter(|&number| slots[number as usize].alive);
        if self.searches.fetch_add(1, Ordering::Relaxed) < SEARCHES_MAX {
            return alive.find(|&number| id_of(number) == task);
        }
        let names = self.table.get_or_init(|| {
            let mut names = Names::with_capacity(slots.len());
            for number in alive {
                // A valid plan has no two tasks with the same id; a later one would be unreachable, not harmful.
                let _taken = names.add(number, id_of);
            }
            names
        });
        names.find(task, id_of)
    }

    pub(super) fn add(&mut self, number: u32, slots: &[Slot], ids: &str) {
        if let Some(names) = self.table.get_mut() {
            let _taken = names.add(number, |number| id_in(ids, slots[number as usize].id));
        }
    }

    pub(super) fn remove(&mut self, number: u32, id: &str) {
        if let Some(names) = self.table.get_mut() {
            names.remove(id, number);
        }
    }
}
