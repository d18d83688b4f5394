//! Maps a task's id to its number without storing the id twice.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Numbers by id. The caller resolves a number back to its id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(HashTable<u32>);

impl Names {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self(HashTable::with_capacity(capacity))
    }

    pub(crate) fn find<'a>(&self, name: &str, name_of: impl Fn(u32) -> &'a str) -> Option<u32> {
        self.0.find(hash(name), |&number| name_of(number) == name).copied()
    }

    /// Adds `number` under its id; if the id is taken, returns the number that has it.
    pub(crate) fn add<'a>(&mut self, number: u32, name_of: impl Fn(u32) -> &'a str) -> Result<(), u32> {
        use hashbrown::hash_table::Entry;
        let name = name_of(number);
        match self.0.entry(hash(name), |&other| name_of(other) == name, |&other| hash(name_of(other))) {
            Entry::Occupied(taken) => Err(*taken.get()),
            Entry::Vacant(free) => {
                free.insert(number);
                Ok(())
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str, number: u32) {
        if let Ok(found) = self.0.find_entry(hash(name), |&other| other == number) {
            found.remove();
        }
    }
}

fn hash(name: &str) -> u64 {
    FxBuildHasher.hash_one(name)
}
