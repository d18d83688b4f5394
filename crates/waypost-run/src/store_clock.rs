//! The clock of the store, which all who work on it go by.

use std::time::Instant;

use waypost_core::Timestamp;
use waypost_store::{PlanStore, StoreError};

/// The store's time, carried on by a clock that nobody sets.
#[derive(Debug)]
pub(crate) struct Clock {
    base: Timestamp,
    since: Instant,
}

impl Clock {
    pub(crate) fn new(plans: &PlanStore) -> Result<Self, StoreError> {
        let mut clock = Self { base: Timestamp::from_micros(0), since: Instant::now() };
        clock.set(plans)?;
        Ok(clock)
    }

    pub(crate) fn set(&mut self, plans: &PlanStore) -> Result<(), StoreError> {
        let mut now = self.base;
        plans.store().read(&mut |read| {
            now = read.now();
            Ok(())
        })?;
        self.set_to(now);
        Ok(())
    }

    /// It is this time now.
    pub(crate) fn set_to(&mut self, now: Timestamp) {
        (self.base, self.since) = (now, Instant::now());
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// What it showed at a moment.
    pub(crate) fn at(&self, moment: Instant) -> Timestamp {
        let passed = moment.saturating_duration_since(self.since);
        let passed = i64::try_from(passed.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.base.as_micros().saturating_add(passed))
    }
}
