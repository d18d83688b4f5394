//! The few things that every backend on a disk asks of the file system.

use std::path::Path;

use crate::error::{Result, StoreError};

/// Makes a folder, and those above it, when they are not there.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|source| StoreError::Files { path: path.to_owned(), source })
}
