//! Medians and baselines.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Returns the median of some measurements.
pub(super) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Runs something and returns how long it took.
pub(super) fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let begin = Instant::now();
    let result = work();
    (result, begin.elapsed())
}

/// Measures two things alternately, so that other load on the machine affects both. Returns medians in seconds.
pub(super) fn side_by_side(rounds: usize, mut ours: impl FnMut(), mut floor: impl FnMut()) -> (f64, f64) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        a.push(timed(&mut ours).1.as_secs_f64());
        b.push(timed(&mut floor).1.as_secs_f64());
    }
    (median(a), median(b))
}

/// The baseline of a durable write: a bare SQLite database in the same mode, with commits of one row.
pub(super) struct Bare(rusqlite::Connection);

impl Bare {
    pub(super) fn open(scratch: &Path) -> Result<Self> {
        let bare = rusqlite::Connection::open(scratch.join("bare.db"))?;
        bare.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        bare.execute_batch(
            "PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, text TEXT)",
        )?;
        Ok(Self(bare))
    }

    pub(super) fn commit(&self) {
        let inserted = self.0.prepare_cached("INSERT INTO row (text) VALUES (?1)");
        inserted.and_then(|mut insert| insert.execute(["x".repeat(120)])).expect("the row can be inserted");
    }
}

/// Returns the peak memory of a process so far.
pub(super) fn peak_megabytes(process: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("VmHWM")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).context("VmHWM")?.parse()?;
    Ok(kilobytes / 1024.0)
}
