//! From the text that names a store to the store.

use std::path::Path;
use std::sync::Arc;

use crate::{Durability, FileStore, MemoryStore, SqliteStore, Store, StoreError};

/// Opens the store that `location` names: `sqlite:PATH`, `file:DIR`, `memory:`. It is made when it is not there.
pub fn open(location: &str, durability: Durability) -> Result<Arc<dyn Store>, StoreError> {
    match location.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => {
            Ok(Arc::new(SqliteStore::open(Path::new(path), durability)?))
        }
        Some(("file", path)) if !path.is_empty() => Ok(Arc::new(FileStore::open(Path::new(path))?)),
        Some(("memory", "")) => Ok(Arc::new(MemoryStore::new())),
        _ => Err(StoreError::BadLocation(location.to_owned())),
    }
}
