//! The lock table: all-or-nothing acquisition of shared or exclusive locks, without starvation. Does not know plans or
//! the clock.

use std::collections::BTreeMap;

use crate::{Lock, LockMode};

/// The name that a caller gives to a holder of locks.
pub type LockHolder = String;

#[derive(Clone, Debug, Default)]
struct KeyHolders {
    exclusive: Option<LockHolder>,
    shared: Vec<LockHolder>,
    /// A holder that has waited long enough: newcomers may not acquire the key before it.
    reserved_for: Option<LockHolder>,
}

/// The table of held and reserved locks.
#[derive(Clone, Debug, Default)]
pub struct LockTable {
    keys: BTreeMap<String, KeyHolders>,
}

impl LockTable {
    /// Acquires all of `locks` for `holder`, or none. On failure returns the conflicting key and its holder.
    pub fn acquire(&mut self, holder: &str, locks: &[Lock]) -> Result<(), (String, LockHolder)> {
        for lock in locks {
            if let Some(other) = self.in_the_way(holder, lock) {
                return Err((lock.key.clone(), other));
            }
        }
        for lock in locks {
            let held = self.keys.entry(lock.key.clone()).or_default();
            if held.reserved_for.as_deref() == Some(holder) {
                held.reserved_for = None;
            }
            match lock.mode {
                LockMode::Exclusive => held.exclusive = Some(holder.to_owned()),
                LockMode::Shared => held.shared.push(holder.to_owned()),
            }
        }
        Ok(())
    }

    fn in_the_way(&self, holder: &str, lock: &Lock) -> Option<LockHolder> {
        let held = self.keys.get(&lock.key)?;
        let reserved = held.reserved_for.as_ref().filter(|other| *other != holder);
        let shared = match lock.mode {
            LockMode::Exclusive => held.shared.first(),
            LockMode::Shared => None,
        };
        held.exclusive.as_ref().or(shared).or(reserved).cloned()
    }

    /// Reserves each of `locks` until `holder` has acquired it; newcomers are refused. The first reservation of a key
    /// wins.
    pub fn reserve(&mut self, holder: &str, locks: &[Lock]) {
        for lock in locks {
            let held = self.keys.entry(lock.key.clone()).or_default();
            held.reserved_for.get_or_insert_with(|| holder.to_owned());
        }
    }

    /// Releases every one of `locks` that `holder` holds or has reserved.
    pub fn release(&mut self, holder: &str, locks: &[Lock]) {
        for lock in locks {
            let Some(held) = self.keys.get_mut(&lock.key) else { continue };
            if held.exclusive.as_deref() == Some(holder) {
                held.exclusive = None;
            }
            held.shared.retain(|other| other != holder);
            if held.reserved_for.as_deref() == Some(holder) {
                held.reserved_for = None;
            }
            if held.exclusive.is_none() && held.shared.is_empty() && held.reserved_for.is_none() {
                self.keys.remove(&lock.key);
            }
        }
    }

    /// Returns the current holders of a key.
    pub fn holders(&self, key: &str) -> Vec<&str> {
        let Some(held) = self.keys.get(key) else { return Vec::new() };
        held.exclusive.iter().chain(&held.shared).map(String::as_str).collect()
    }

    /// Whether no lock is held or reserved.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(key: &str, mode: LockMode) -> Lock {
        Lock { key: key.to_owned(), mode }
    }

    #[test]
    fn all_or_nothing_and_the_holder_is_named() {
        let mut table = LockTable::default();
        table.acquire("a", &[lock("x", LockMode::Exclusive)]).unwrap();
        let both = [lock("y", LockMode::Exclusive), lock("x", LockMode::Exclusive)];
        assert_eq!(table.acquire("b", &both), Err(("x".to_owned(), "a".to_owned())));
        assert!(table.holders("y").is_empty(), "a refused holder keeps nothing");
        table.release("a", &[lock("x", LockMode::Exclusive)]);
        table.acquire("b", &both).unwrap();
        assert_eq!(table.holders("x"), ["b"]);
    }

    #[test]
    fn shared_holders_keep_writers_out_and_a_reservation_keeps_newcomers_out() {
        let mut table = LockTable::default();
        let (read, write) = ([lock("x", LockMode::Shared)], [lock("x", LockMode::Exclusive)]);
        table.acquire("r1", &read).unwrap();
        table.acquire("r2", &read).unwrap();
        assert!(table.acquire("w", &write).is_err());
        table.reserve("w", &write);
        assert_eq!(table.acquire("r3", &read), Err(("x".to_owned(), "w".to_owned())));
        table.release("r1", &read);
        table.release("r2", &read);
        table.acquire("w", &write).unwrap();
        table.release("w", &write);
        table.acquire("r3", &read).unwrap();
        table.release("r3", &read);
        assert!(table.is_empty());
    }
}
