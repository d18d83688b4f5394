//! How long attempts take on average, and how many may be queued ahead of a slot where they are short.

/// Attempts that may wait for a slot.
pub(super) const AHEAD_MAX: usize = 96;
/// When so few are left that wait for a slot, more are to be queued.
pub(crate) const AHEAD_FEW: usize = AHEAD_MAX / 6;
/// Microseconds that attempts take on average where queueing ahead is worth its while.
const SHORT_MICROS: i64 = 20_000;
/// Attempts that have to end before anything is known about the average.
const KNOWN_MIN: u32 = 8;

/// How long attempts take on average, the latest counting most.
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
