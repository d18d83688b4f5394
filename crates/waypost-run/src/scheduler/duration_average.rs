//! The average duration of attempts, and how many may be queued ahead of a slot when they are short.

/// Attempts that may wait for a slot.
pub(super) const AHEAD_MAX: usize = 96;
/// More attempts are queued when only this many wait for a slot.
pub(crate) const AHEAD_FEW: usize = AHEAD_MAX / 6;
/// Queueing ahead is worthwhile if attempts take less than this on average, in microseconds.
const SHORT_MICROS: i64 = 20_000;
/// Attempts that must have ended before the average counts.
const KNOWN_MIN: u32 = 8;

/// The average duration of attempts; recent ones count most.
#[derive(Debug, Default)]
pub(super) struct DurationAverage {
    count: u32,
    average_micros: i64,
}

impl DurationAverage {
    pub(super) fn note(&mut self, micros: i64) {
        self.count = self.count.saturating_add(1);
        let weight = i64::from(self.count.min(8));
        self.average_micros += (micros.max(0) - self.average_micros) / weight;
    }

    pub(super) fn is_short(&self) -> bool {
        self.count >= KNOWN_MIN && self.average_micros < SHORT_MICROS
    }
}
