//! Which number a task's id has. Whoever loads a plan for one command asks for an id or two, so the table of all of them
//! is made when it pays, and until then the slots are searched.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Plan, id_in};
use crate::names::Names;

/// Searches through all slots, after which the table is made.
const SEARCHES_MAX: u32 = 16;

/// The table of names, once it is there.
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
    /// An index whose table is there from the beginning.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { table: OnceLock::from(Names::with_capacity(capacity)), ..Self::default() }
    }
}

impl Plan {
    /// The number of a task that is in the plan.
    pub(super) fn find(&self, task: &str) -> Option<u32> {
        let index = &self.index;
        if let Some(names) = index.table.get() {
            return names.find(task, |number| self.id_of(number));
        }
        if index.searches.fetch_add(1, Ordering::Relaxed) < SEARCHES_MAX {
            let is_it = |number: &u32| self.slot(*number).alive && self.id_of(*number) == task;
            return (0..self.slots.len() as u32).find(is_it);
        }
        let names = index.table.get_or_init(|| {
            let mut names = Names::with_capacity(self.slots.len());
            for number in (0..self.slots.len() as u32).filter(|&number| self.slot(number).alive) {
                // A sound plan has no two tasks of one name; a later one would be unreachable, not harmful.
                let _taken = names.add(number, |number| self.id_of(number));
            }
            names
        });
        names.find(task, |number| self.id_of(number))
    }

    /// A slot that is new has its id.
    pub(super) fn add_name(&mut self, number: u32) {
        let (slots, ids) = (&self.slots, &self.ids);
        if let Some(names) = self.index.table.get_mut() {
            let _taken = names.add(number, |number| id_in(ids, slots[number as usize].id));
        }
        if let Some(digits) = Self::number_of(self.id_of(number)) {
            self.next_number = self.next_number.max(digits.saturating_add(1));
        }
        self.live += 1;
    }

    /// A slot that is given up has none any more.
    pub(super) fn remove_name(&mut self, number: u32) {
        let name = id_in(&self.ids, self.slots[number as usize].id);
        if let Some(names) = self.index.table.get_mut() {
            names.remove(name, number);
        }
        self.live -= 1;
    }
}
