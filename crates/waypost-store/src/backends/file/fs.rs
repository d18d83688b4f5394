//! File system operations of the file store: atomic replacement, no symbolic links, locks between processes. Knows
//! nothing of plans.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::conflict_markers::{CONFLICT, first_conflict_line};
use crate::backends::lock_holder::{HolderWatch, StoppedHolder};
use crate::error::{BUSY_SECONDS_MAX, Result, StoreError};

/// The pause between two attempts to take a lock.
const LOCK_RETRY: Duration = Duration::from_millis(2);
/// The time between two checks of the holder of the lock.
const HOLDER_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn corrupt(path: &Path, detail: impl ToString) -> StoreError {
    StoreError::Corrupt { what: path.display().to_string(), detail: detail.to_string() }
}

pub(super) fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    // One file must not stop the plans of the others.
    move |source| match source.kind() == ErrorKind::IsADirectory {
        true => corrupt(&path, "it is a folder, where Waypost keeps plain files only"),
        false => StoreError::files(&path, source),
    }
}

fn open(path: &Path, flags: OFlags) -> Result<Option<File>> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::from_raw_mode(crate::dirs::FILE_MODE)) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP) => Err(corrupt(path, "it is a symbolic link, where Waypost keeps plain files only")),
        // What cannot be written is as it was, and what cannot be read may be one plan of many.
        Err(Errno::ACCESS) if !flags.intersects(OFlags::RDWR | OFlags::WRONLY) && path.exists() => {
            Err(corrupt(path, "this account may not open it"))
        }
        Err(error) => Err(failed(path)(error.into())),
    }
}

/// Opens a file for reading, if it exists.
pub(super) fn open_to_read(path: &Path) -> Result<Option<File>> {
    open(path, OFlags::RDONLY)
}

/// Opens a file for changes in place, and creates it if it does not exist.
pub(super) fn open_to_change(path: &Path) -> Result<File> {
    let file = open(path, OFlags::RDWR | OFlags::CREATE)?;
    file.ok_or_else(|| failed(path)(ErrorKind::NotFound.into()))
}

/// Reads a whole file, if it exists.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let Some(mut file) = open_to_read(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed(path))?;
    Ok(Some(bytes))
}

/// Parses a JSON file, if it exists.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let parse = |bytes: Vec<u8>| {
        serde_json::from_slice(&bytes).map_err(|error| corrupt(path, json_damage(&bytes, &error)))
    };
    read(path)?.map(parse).transpose()
}

/// Says why a JSON file cannot be parsed, and where.
pub(super) fn json_damage(bytes: &[u8], error: &serde_json::Error) -> String {
    match first_conflict_line(bytes) {
        Some(line) => format!("line {line}: {CONFLICT}"),
        None => error.to_string(),
    }
}

/// Serializes readable JSON: indented by two spaces, with a newline at the end.
pub(super) fn pretty(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|error| StoreError::Database(error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes a new file and makes its bytes durable. Replaces a leftover of the same name.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    remove(path)?;
    let file = open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
    let mut file = file.ok_or_else(|| failed(path)(ErrorKind::NotFound.into()))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed(path))
}

/// Replaces a file atomically: after a crash either the complete new file is there, or the old one.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.join(format!(".new-{}", name.trim_start_matches('.')));
    write_new(&new, bytes)?;
    rename(&new, path)?;
    sync_folder(folder)
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(failed(to))
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes additions to a folder, and removals from it, durable.
pub(super) fn sync_folder(path: &Path) -> Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(failed(path))
}

pub(super) use crate::dirs::make_folder;

/// Checks that the path is a folder and not a link: a link would let the store write wherever it leads.
pub(super) fn is_plain_folder(path: &Path) -> Result<()> {
    let found = fs::symlink_metadata(path).map_err(failed(path))?;
    if found.is_dir() { Ok(()) } else { Err(corrupt(path, "it is not a plain folder")) }
}

/// Returns the names in a folder that end with `ending`, without that ending, sorted. A missing folder has none.
pub(super) fn names(folder: &Path, ending: &str) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed(folder))?.file_name();
        if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(ending)) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Metadata that distinguishes two states of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of `path` itself, even if it is a symbolic link; `None` if it does not exist.
    pub(super) fn of(path: &Path) -> Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(data) => Ok(Some(Self {
                inode: data.ino(),
                length: data.len(),
                modified: (data.mtime(), data.mtime_nsec()),
                changed: (data.ctime(), data.ctime_nsec()),
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(path)(error)),
        }
    }

    /// Returns whether this is the same file with more bytes.
    pub(super) fn has_grown_since(&self, before: &Self) -> bool {
        self.inode == before.inode && self.length > before.length
    }
}

/// Returns a hash of the bytes (FNV-1a). It detects accidents, not malice.
pub(super) fn fingerprint(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// A lock on the folder, held until it is dropped or its process ends.
pub(super) struct Guard {
    _file: File,
}

impl Guard {
    /// Locks for a writer: excludes all other processes and threads.
    pub(super) fn alone(path: &Path) -> Result<Self> {
        Self::take(path, open_to_change(path)?, FlockOperation::NonBlockingLockExclusive)
    }

    /// Locks for a reader: shares the lock with other readers.
    pub(super) fn shared(path: &Path) -> Result<Self> {
        // Whoever may only read the files may read this one.
        let file = open_to_change(path).or_else(|error| open_to_read(path).ok().flatten().ok_or(error))?;
        Self::take(path, file, FlockOperation::NonBlockingLockShared)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a file lock cannot be waited for with an end to the waiting"
    )]
    fn take(path: &Path, file: File, operation: FlockOperation) -> Result<Self> {
        let give_up = Instant::now() + Duration::from_secs(BUSY_SECONDS_MAX);
        let mut watch = HolderWatch::of(path, None);
        let mut next_check = Instant::now() + HOLDER_INTERVAL;
        loop {
            if Instant::now() >= next_check {
                next_check = Instant::now() + HOLDER_INTERVAL;
                if let Some(StoppedHolder { process, program }) = watch.check() {
                    let what = path.display().to_string();
                    return Err(StoreError::HolderStopped { what, process, program });
                }
            }
            match flock(&file, operation) {
                Ok(()) => return Ok(Self { _file: file }),
                // Polls, because a blocking wait for a file lock has no timeout.
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < give_up => {
                    std::thread::sleep(LOCK_RETRY)
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(StoreError::Busy),
                Err(error) => return Err(failed(path)(error.into())),
            }
        }
    }
}
