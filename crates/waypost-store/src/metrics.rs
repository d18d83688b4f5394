//! Metrics of this process: bounded in number, cheap to update, never reset. This module does not export them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of label combinations of one family; further ones are counted as `other`.
pub const LABELS_MAX: usize = 256;
/// The label value of all further combinations.
const OTHER: &str = "other";

/// Bucket bounds of durations, in seconds: from a commit in memory to ten hours.
const SECONDS: [f64; 16] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0, 3_600.0, 36_000.0,
];
/// Bucket bounds of group sizes.
const SIZES: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram: the number of values in each bucket, their count and their sum.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: [f64; N],
    below: [AtomicU64; N],
    count: AtomicU64,
    /// In millionths of the unit.
    sum: AtomicU64,
}

/// A histogram as it was at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Each upper bound with the number of values that do not exceed it (cumulative).
    pub buckets: Vec<(f64, u64)>,
    /// The number of all values.
    pub count: u64,
    /// The sum of all values.
    pub sum: f64,
}

impl<const N: usize> Histogram<N> {
    const fn new(bounds: [f64; N]) -> Self {
        Self {
            bounds,
            below: [const { AtomicU64::new(0) }; N],
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    fn note(&self, value: f64, millionths: u64) {
        if let Some(place) = self.bounds.iter().position(|bound| value <= *bound) {
            self.below[place].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(millionths, Ordering::Relaxed);
    }

    /// Returns the current values.
    pub fn get(&self) -> Distribution {
        let mut below = 0;
        let buckets = self.bounds.iter().zip(&self.below).map(|(bound, count)| {
            below += count.load(Ordering::Relaxed);
            (*bound, below)
        });
        let buckets: Vec<(f64, u64)> = buckets.collect();
        // Another thread may be between two of its additions: a reader never sees a bucket larger than the count.
        let count = self.count.load(Ordering::Relaxed).max(below);
        Distribution { buckets, count, sum: self.sum.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

/// A histogram of durations in seconds.
pub type Times = Histogram<16>;
/// A histogram of sizes.
pub type Sizes = Histogram<10>;

impl Times {
    const fn of_times() -> Self {
        Self::new(SECONDS)
    }

    /// Records a duration.
    pub fn took(&self, time: Duration) {
        self.note(time.as_secs_f64(), u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }
}

impl Sizes {
    const fn of_sizes() -> Self {
        Self::new(SIZES)
    }

    /// Records a size.
    pub fn had(&self, size: usize) {
        self.note(size as f64, (size as u64).saturating_mul(1_000_000));
    }
}

/// One metric for each combination of `L` labels, at most [`LABELS_MAX`] combinations and one for all others.
#[derive(Debug)]
pub struct Family<const L: usize, T> {
    members: Mutex<BTreeMap<[String; L], T>>,
    make: fn() -> T,
}

impl<const L: usize, T> Family<L, T> {
    const fn new(make: fn() -> T) -> Self {
        Self { members: Mutex::new(BTreeMap::new()), make }
    }

    /// Calls `work` with the metric of these labels. `work` runs under a lock and should be short.
    pub fn with(&self, labels: [&str; L], work: impl FnOnce(&T)) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let mut labels = labels.map(str::to_owned);
        if members.len() >= LABELS_MAX && !members.contains_key(&labels) {
            labels = std::array::from_fn(|_| OTHER.to_owned());
        }
        work(members.entry(labels).or_insert_with(self.make));
    }

    /// Returns the current value of each combination.
    pub fn get<R>(&self, read: impl Fn(&T) -> R) -> Vec<([String; L], R)> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.iter().map(|(labels, member)| (labels.clone(), read(member))).collect()
    }
}

/// All metrics of this process.
#[derive(Debug)]
pub struct Meters {
    /// How long commits took, from the first read to the last sync.
    pub commits: Times,
    /// How long writers waited for their answers, including for other writers of this process.
    pub store_waits: Times,
    /// How many jobs one commit contained.
    pub group_sizes: Sizes,
    /// Failures of the store, by error code.
    pub store_errors: Family<1, Counter>,
    /// Events that were returned to readers.
    pub events_served: Counter,
    /// Attempts that started, by executor.
    pub attempts_started: Family<1, Counter>,
    /// Attempts that ended, by executor and outcome.
    pub attempts_ended: Family<2, Counter>,
    /// How long attempts took, by executor.
    pub attempt_times: Family<1, Times>,
    /// From when a task was ready until its program began, by queue.
    pub start_delays: Family<1, Times>,
    /// How long tasks waited for locks that others held, by queue.
    pub lock_waits: Family<1, Times>,
    /// Tool calls, by tool and outcome.
    pub calls: Family<2, Counter>,
    /// Trace spans that were exported.
    pub spans_sent: Counter,
    /// Trace spans that could not be sent, or not be buffered until they could.
    pub spans_dropped: Counter,
}

static METERS: Meters = Meters {
    commits: Times::of_times(),
    store_waits: Times::of_times(),
    group_sizes: Sizes::of_sizes(),
    store_errors: Family::new(Counter::new),
    events_served: Counter::new(),
    attempts_started: Family::new(Counter::new),
    attempts_ended: Family::new(Counter::new),
    attempt_times: Family::new(Times::of_times),
    start_delays: Family::new(Times::of_times),
    lock_waits: Family::new(Times::of_times),
    calls: Family::new(Counter::new),
    spans_sent: Counter::new(),
    spans_dropped: Counter::new(),
};

/// Returns the metrics of this process, shared by all its stores.
pub fn meters() -> &'static Meters {
    &METERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_lies_below_it_and_one_above_all_is_counted() {
        let sizes = Sizes::of_sizes();
        for size in [1, 2, 3, 512, 513] {
            sizes.had(size);
        }
        let told = sizes.get();
        assert_eq!((told.count, told.sum), (5, 1031.0));
        let of = |bound: f64| told.buckets.iter().find(|(at, _)| *at == bound).map(|(_, count)| *count);
        assert_eq!(
            [of(1.0), of(2.0), of(4.0), of(256.0), of(512.0)],
            [Some(1), Some(2), Some(3), Some(3), Some(4)]
        );
    }

    #[test]
    fn there_is_a_limit_to_labels() {
        let family: Family<1, Counter> = Family::new(Counter::new);
        for number in 0..LABELS_MAX + 10 {
            family.with([&number.to_string()], |counter| counter.add(1));
        }
        family.with(["0"], |counter| counter.add(1));
        let told = family.get(Counter::get);
        assert_eq!(told.len(), LABELS_MAX + 1);
        assert_eq!(told.iter().find(|(labels, _)| labels[0] == "other").unwrap().1, 10);
        assert_eq!(told.iter().find(|(labels, _)| labels[0] == "0").unwrap().1, 2);
    }
}
