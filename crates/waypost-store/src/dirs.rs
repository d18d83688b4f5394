//! The few operations that every backend on a disk needs from the file system.

use std::fs::{DirBuilder, File, OpenOptions, metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::{Result, StoreError};

/// The mode of new files, whatever the umask: only the account reads plans.
pub(crate) const FILE_MODE: u32 = 0o600;
/// The mode of new folders.
const FOLDER_MODE: u32 = 0o700;

/// Creates a folder and its missing parents.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path);
    made.map_err(|source| StoreError::files(path, source))
}

/// Creates a folder of Waypost's own and its missing parents. Refuses a symbolic link in the place of one of the last `levels`
/// folders: tasks and cloned repositories can put one there, and it would lead what is written to another place.
pub fn make_state_folder(path: &Path, levels: usize) -> io::Result<()> {
    if let Some(link) = path.ancestors().take(levels).find(|folder| folder.is_symlink()) {
        return Err(io::Error::other(format!("{} is a link and is not used", link.display())));
    }
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Opens a file of Waypost's own for writing, or creates it. Follows no symbolic link.
pub fn open_state_file(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE).custom_flags(flags).open(path)
}

/// Creates an empty file, unless there is one.
pub(crate) fn make_file(path: &Path) -> Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists && !path.exists() => {
            Err(StoreError::files(path, error))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Maximum number of recovered files beside each other.
const RECOVERED_MAX: u32 = 100;

/// Identifies a file or folder, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// Returns the identity of what is at this path.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let found = metadata(path).map_err(|source| StoreError::files(path, source))?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }

    /// Whether it is at this path no longer. What cannot be seen counts as there.
    pub(crate) fn is_gone_from(self, path: &Path) -> bool {
        match metadata(path) {
            Ok(found) => self != Self { device: found.dev(), inode: found.ino() },
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }
}

/// Creates an empty file for what is left of a removed one, in the nearest folder that is still there.
pub(crate) fn make_recovery_file(removed: &Path) -> Result<PathBuf> {
    let folder = removed.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let stem = removed.file_stem().unwrap_or_default().to_string_lossy();
    let mut taken = ErrorKind::AlreadyExists.into();
    for number in 1..=RECOVERED_MAX {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{stem}-recovered{number}.db"));
        match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(StoreError::files(&path, error)),
        }
    }
    Err(StoreError::files(folder, taken))
}

/// Removes a file that could not be completed.
pub(crate) fn remove_file(path: &Path) {
    let _gone = std::fs::remove_file(path);
}

/// Makes sure that a file is on disk.
pub(crate) fn sync_file(path: &Path) -> Result<()> {
    let synced = OpenOptions::new().write(true).open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| StoreError::files(path, source))
}
