//! The few operations that every backend on a disk needs from the file system.

use std::path::Path;

use crate::error::{Result, StoreError};

/// Creates a folder and its missing parents.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|source| StoreError::Files { path: path.to_owned(), source })
}
