//! When the lines of an attempt's log were written. The times stand in a file beside the log, which keeps the bytes of the
//! program as they are. Knows the form of that file; its writer has the clock.

use std::io::Read;
use std::path::{Path, PathBuf};

use waypost_core::Timestamp;

use crate::attempt_log_file::open_log;

/// Maximum number of times of a log.
pub const LOG_TIMES_MAX: usize = 32 * 1024;
/// Bytes of a file of times that are read.
const BYTES_MAX: u64 = 2 << 20;
const MICROS: i64 = 1_000;

/// Returns the path of the times of the log at `log`.
pub fn log_times_path(log: &Path) -> PathBuf {
    log.with_extension("times")
}

/// Returns a line of a file of times: what stands in the log from this byte on was written at this time.
pub fn log_time_line(from: u64, at: Timestamp) -> String {
    format!("{from} {}\n", at.as_micros() / MICROS)
}

/// When parts of a log were written, in the order of the log. Empty for a log of an earlier version or another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTimes(Vec<(u64, Timestamp)>);

impl LogTimes {
    /// Reads the times of the log at `log`. A log without them, or whose times cannot be read, has none.
    pub fn of(log: &Path) -> Self {
        let mut bytes = Vec::new();
        let read =
            open_log(&log_times_path(log)).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
        if read.is_err() { Self::default() } else { Self::parse(&String::from_utf8_lossy(&bytes)) }
    }

    /// Reads a file of times. A last line without an end was cut off by a crash and does not count, nor does what is no time.
    fn parse(text: &str) -> Self {
        let mut found: Vec<(u64, Timestamp)> = Vec::new();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).take(LOG_TIMES_MAX)
        {
            let Some((from, at)) = line.split_once(' ') else { continue };
            let (Ok(from), Ok(at)) = (from.parse::<u64>(), at.parse::<i64>()) else { continue };
            if found.last().is_none_or(|(last, _)| *last <= from) {
                found.push((from, Timestamp::from_micros(at.saturating_mul(MICROS))));
            }
        }
        Self(found)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns when the byte at this place of the log was written.
    pub fn at(&self, place: u64) -> Option<Timestamp> {
        let after = self.0.partition_point(|(from, _)| *from <= place);
        after.checked_sub(1).map(|last| self.0[last].1)
    }

    /// Returns the places from which on each time counts.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Timestamp)> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(millis * MICROS)
    }

    #[test]
    fn a_line_has_the_time_of_the_part_that_it_is_in() {
        let text = [log_time_line(0, at(5)), log_time_line(10, at(7_000))].concat();
        let times = LogTimes::parse(&text);
        let found: Vec<_> = [0, 9, 10, 99].map(|place| times.at(place)).into();
        assert_eq!(found, [Some(at(5)), Some(at(5)), Some(at(7_000)), Some(at(7_000))]);
        assert_eq!(LogTimes::parse("").at(0), None);
    }

    #[test]
    fn what_a_crash_cut_off_does_not_count() {
        let times = LogTimes::parse("0 1000\n10 2000\n20 17");
        assert_eq!(times.iter().collect::<Vec<_>>(), [(0, at(1_000)), (10, at(2_000))]);
        // Nor what anybody else wrote there.
        assert_eq!(LogTimes::parse("0 1000\nx\n5\n-1 2\n3 9999999999999999999999\n").iter().count(), 1);
    }
}
