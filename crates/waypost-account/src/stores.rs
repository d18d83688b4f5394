//! The id of the store at a location, as the account has noted it: a store that was put in its place is another one.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use waypost_core::canonical::sha256;
use waypost_text::hex;

use crate::account::{Account, Records};
use crate::account_files::AccountFileError;

/// The store that was at a location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoreRecord {
    /// The canonical path of the database, or of the folder.
    path: String,
    id: String,
    /// The number of the last version that was in the store before the account noted it: others wrote up to there.
    #[serde(default)]
    foreign_through: u64,
    /// What later versions write.
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// The stores that an account has noted. An account without a home notes none.
#[derive(Clone, Copy, Debug)]
pub struct StoreRecords<'a> {
    account: &'a Account,
}

impl<'a> StoreRecords<'a> {
    pub fn of(account: &'a Account) -> Self {
        Self { account }
    }

    /// Returns the id of the store that the account has noted for this path.
    pub fn noted(&self, store: &Path) -> Result<Option<String>, AccountFileError> {
        Ok(self.record(store)?.map(|record| record.id))
    }

    /// Whether the account had noted this store before the version with this sequence number was written.
    pub fn noted_before(&self, store: &Path, id: &str, sequence: u64) -> Result<bool, AccountFileError> {
        let record = self.record(store)?;
        Ok(record.is_some_and(|record| record.id == id && sequence > record.foreign_through))
    }

    fn record(&self, store: &Path) -> Result<Option<StoreRecord>, AccountFileError> {
        let path = canonical(store)?;
        let Some(file) = self.account.record_file(Records::Stores, &path) else { return Ok(None) };
        let Some(bytes) = self.account.read(&file)? else { return Ok(None) };
        let record: StoreRecord = serde_json::from_slice(&bytes).map_err(|error| {
            AccountFileError::Malformed { file, what: format!("this is not a record of a store: {error}") }
        })?;
        Ok((record.path == path.to_string_lossy()).then_some(record))
    }

    /// Notes the id of the store at this path, in place of an earlier one. `latest` is the number of its last version.
    pub fn note(&self, store: &Path, id: &str, latest: u64) -> Result<(), AccountFileError> {
        if self.noted(store)?.as_deref() == Some(id) {
            return Ok(());
        }
        let path = canonical(store)?;
        let Some(file) = self.account.record_file(Records::Stores, &path) else { return Ok(()) };
        let path = path.to_string_lossy().into_owned();
        let id = id.to_owned();
        let record = StoreRecord { path, id, foreign_through: latest, unknown: Map::new() };
        let text = serde_json::to_string_pretty(&record)
            .map_err(|error| AccountFileError::Malformed { file: file.clone(), what: error.to_string() })?;
        self.account.write(&file, format!("{text}\n").as_bytes())
    }
}

impl StoreRecords<'_> {
    /// Removes the note about the store at this path, which is about to be removed itself.
    pub fn forget(&self, store: &Path) -> Result<(), AccountFileError> {
        let Some(file) = self.account.record_file(Records::Stores, &canonical(store)?) else { return Ok(()) };
        fs::remove_file(&file).map_err(|error| AccountFileError::Io { file, error })
    }
}

/// Names the place of a store in files: approvals given there do not count in a copy.
pub fn place_of(store: &Path) -> Result<String, AccountFileError> {
    Ok(hex(&sha256(canonical(store)?.as_os_str().as_encoded_bytes())))
}

fn canonical(store: &Path) -> Result<PathBuf, AccountFileError> {
    fs::canonicalize(store).map_err(|error| AccountFileError::Io { file: store.to_owned(), error })
}
