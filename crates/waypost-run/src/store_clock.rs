//! The clock of the store, which all its workers use.

use std::time::{Duration, Instant};

use waypost_core::Timestamp;
use waypost_store::{PlanStore, StoreError};

/// The store's time, extrapolated with a monotonic clock.
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
        self.set_to(plans.store().query(|read| Ok(read.now()))?);
        Ok(())
    }

    /// Sets the clock to this time.
    pub(crate) fn set_to(&mut self, now: Timestamp) {
        (self.base, self.since) = (now, Instant::now());
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// Returns the clock's time at a moment, which may be before the clock was last set.
    pub(crate) fn at(&self, moment: Instant) -> Timestamp {
        let micros = |passed: Duration| i64::try_from(passed.as_micros()).unwrap_or(i64::MAX);
        let later = micros(moment.saturating_duration_since(self.since));
        let earlier = micros(self.since.saturating_duration_since(moment));
        Timestamp::from_micros(self.base.as_micros().saturating_add(later).saturating_sub(earlier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_before_the_clock_was_set_is_before_what_it_was_set_to() {
        let since = Instant::now() + Duration::from_secs(10);
        let clock = Clock { base: Timestamp::from_micros(60_000_000), since };
        let shown = |moment| clock.at(moment).as_micros();
        assert_eq!(shown(since), 60_000_000);
        assert_eq!(shown(since + Duration::from_millis(1)), 60_001_000);
        assert_eq!(shown(since - Duration::from_millis(1)), 59_999_000);
    }
}
