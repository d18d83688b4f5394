//! Finds a stopped process that holds a file lock: whoever waits for it would wait until somebody continues it. Knows Linux
//! only; elsewhere nobody is found, and a writer waits as long as for any other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::worker_identity::stat;

/// Number of checks in a row at which the same process must have been stopped: a debugger stops processes for moments.
const CHECKS_MIN: u32 = 2;

/// A process that was stopped, for example by Ctrl-Z, while it held a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoppedHolder {
    pub(crate) process: u32,
    pub(crate) program: String,
}

/// Looks for the holder of the lock on a byte of a file, or on the file as a whole. Takes no lock and opens no locked file:
/// closing a file would release the locks that this process has on it.
#[derive(Debug)]
pub(crate) struct HolderWatch {
    file: PathBuf,
    byte: Option<u64>,
    /// The process that was stopped at the last check, and at how many in a row.
    suspect: Option<(u32, u32)>,
}

impl HolderWatch {
    pub(crate) fn of(file: &Path, byte: Option<u64>) -> Self {
        Self { file: file.to_owned(), byte, suspect: None }
    }

    /// Returns the holder if it was stopped at this check and the one before.
    pub(crate) fn check(&mut self) -> Option<StoppedHolder> {
        let process = self.holder().filter(|process| is_stopped(*process));
        let checks = match (process, self.suspect) {
            (Some(now), Some((before, checks))) if now == before => checks + 1,
            (Some(_), _) => 1,
            (None, _) => 0,
        };
        self.suspect = process.map(|process| (process, checks));
        let process = process.filter(|_| checks >= CHECKS_MIN)?;
        let program = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        Some(StoppedHolder { process, program: program.trim().to_owned() })
    }

    fn holder(&self) -> Option<u32> {
        let inode = fs::metadata(&self.file).ok()?.ino();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        locks.lines().find_map(|line| holder_in(line, inode, self.byte))
    }
}

/// Returns the process that a line of `/proc/locks` says to have locked this file for writing.
fn holder_in(line: &str, inode: u64, byte: Option<u64>) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    // A line about a process that waits has an arrow after its number.
    let [_, kind, _, "WRITE", process, place, first, last] = fields.as_slice() else { return None };
    let is_of_kind = match byte {
        Some(_) => matches!(*kind, "POSIX" | "OFDLCK"),
        None => *kind == "FLOCK",
    };
    let is_file = place.rsplit(':').next()?.parse() == Ok(inode);
    let has_byte = byte.is_none_or(|byte| {
        let from = first.parse().is_ok_and(|first: u64| first <= byte);
        from && (*last == "EOF" || last.parse().is_ok_and(|last: u64| last >= byte))
    });
    if is_of_kind && is_file && has_byte { process.parse().ok() } else { None }
}

fn is_stopped(process: u32) -> bool {
    stat(process).is_some_and(|(state, _)| state == 'T')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_of_the_file_and_the_byte_is_found() {
        let check = |line: &str, byte, expected| assert_eq!(holder_in(line, 77, byte), expected, "{line}");
        check("1: POSIX  ADVISORY  WRITE 42 fd:01:77 120 120", Some(120), Some(42));
        check("1: POSIX  ADVISORY  WRITE 42 fd:01:77 0 EOF", Some(120), Some(42));
        check("1: POSIX  ADVISORY  WRITE 42 fd:01:77 121 127", Some(120), None);
        check("1: POSIX  ADVISORY  READ 42 fd:01:77 120 120", Some(120), None);
        check("1: POSIX  ADVISORY  WRITE 42 fd:01:78 120 120", Some(120), None);
        check("1: -> POSIX  ADVISORY  WRITE 42 fd:01:77 120 120", Some(120), None);
        check("1: FLOCK  ADVISORY  WRITE 42 fd:01:77 0 EOF", Some(120), None);
        check("1: FLOCK  ADVISORY  WRITE 42 fd:01:77 0 EOF", None, Some(42));
        check("nonsense", None, None);
    }
}
