//! The few operations that every backend on a disk needs from the file system.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{Result, StoreError};

/// The mode of new files, whatever the umask: only the account reads plans.
pub(crate) const FILE_MODE: u32 = 0o600;
/// The mode of new folders.
const FOLDER_MODE: u32 = 0o700;

/// Creates a folder and its missing parents.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path);
    made.map_err(|source| StoreError::Files { path: path.to_owned(), source: source.into() })
}

/// Creates an empty file, unless there is one. Reports nothing: whoever opens it next does.
pub(crate) fn make_file(path: &Path) {
    let _there = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path);
}
