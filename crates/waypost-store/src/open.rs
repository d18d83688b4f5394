//! Opens the store that a location text names.

use std::path::Path;
use std::sync::Arc;

use crate::backends::postgres::without_password;
use crate::error::Result;
use crate::{Durability, FileStore, MemoryStore, PostgresStore, SqliteStore, Store, StoreError};

/// Opens a store for one command that may only read: also where nothing can be written because the disk is full.
pub fn open_for_one_command(location: &str, durability: Durability) -> Result<Arc<dyn Store>> {
    match location.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => {
            Ok(Arc::new(SqliteStore::open_for_one_command(Path::new(path), durability)?))
        }
        _ => open(location, durability),
    }
}

/// Opens the store that `location` names: `sqlite:PATH`, `postgres://USER@HOST/DATABASE`, `file:DIR` or `memory:`.
/// Creates it if it does not exist, except for a PostgreSQL database, which must exist.
pub fn open(location: &str, durability: Durability) -> Result<Arc<dyn Store>> {
    match location.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => {
            Ok(Arc::new(SqliteStore::open(Path::new(path), durability)?))
        }
        Some(("file", path)) if !path.is_empty() => Ok(Arc::new(FileStore::open(Path::new(path))?)),
        Some(("memory", "")) => Ok(Arc::new(MemoryStore::new())),
        Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
            Ok(Arc::new(PostgresStore::open(location, durability)?))
        }
        _ => Err(StoreError::BadLocation(without_password(location))),
    }
}
