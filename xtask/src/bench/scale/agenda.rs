//! A virtual clock: events in the order of their times, in microseconds.

use std::collections::BTreeMap;

pub(super) struct Agenda<E> {
    now: i64,
    /// Keeps events of the same time in the order in which they were added.
    added: u64,
    events: BTreeMap<(i64, u64), E>,
}

impl<E> Agenda<E> {
    pub(super) fn starting_at(now: i64) -> Self {
        Self { now, added: 0, events: BTreeMap::new() }
    }

    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// Adds an event that happens in so many microseconds.
    pub(super) fn add(&mut self, micros: i64, event: E) {
        self.added += 1;
        self.events.insert((self.now + micros.max(0), self.added), event);
    }

    /// Advances the clock to the next event.
    pub(super) fn next(&mut self) -> Option<E> {
        let ((at, _), event) = self.events.pop_first()?;
        self.now = at;
        Some(event)
    }
}
