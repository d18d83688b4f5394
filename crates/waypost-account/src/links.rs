//! The folders that this account has linked in a workspace. A record of links that came with a clone links none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::account::{Account, Records};
use crate::account_files::AccountFileError;

/// The linked folders of one workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LinkRecord {
    /// The canonical path of Waypost's own folder in the workspace.
    path: PathBuf,
    folders: BTreeSet<PathBuf>,
    /// What later versions write.
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// The folders that an account has linked. An account without a home has linked none.
#[derive(Clone, Copy, Debug)]
pub struct LinkRecords<'a> {
    account: &'a Account,
}

impl<'a> LinkRecords<'a> {
    pub fn of(account: &'a Account) -> Self {
        Self { account }
    }

    /// Returns the folders that the account has linked in the workspace with this folder of Waypost's own.
    pub fn folders(&self, own: &Path) -> Result<BTreeSet<PathBuf>, AccountFileError> {
        Ok(self.read(&canonical(own)?)?.folders)
    }

    /// Notes that the account has linked a folder. Returns whether it could: an account without a home cannot.
    pub fn note(&self, own: &Path, folder: &Path) -> Result<bool, AccountFileError> {
        self.change(own, |folders| folders.insert(folder.to_owned()))
    }

    /// Notes that the account has unlinked a folder.
    pub fn forget(&self, own: &Path, folder: &Path) -> Result<(), AccountFileError> {
        self.change(own, |folders| folders.remove(folder)).map(|_| ())
    }

    fn read(&self, path: &Path) -> Result<LinkRecord, AccountFileError> {
        let empty = LinkRecord { path: path.to_owned(), ..LinkRecord::default() };
        let Some(file) = self.account.record_file(Records::Links, path) else { return Ok(empty) };
        let Some(bytes) = self.account.read(&file)? else { return Ok(empty) };
        let record: LinkRecord = serde_json::from_slice(&bytes).map_err(|error| {
            AccountFileError::Malformed { file, what: format!("this is not a record of links: {error}") }
        })?;
        Ok(if record.path == path { record } else { empty })
    }

    fn change(
        &self,
        own: &Path,
        change: impl FnOnce(&mut BTreeSet<PathBuf>) -> bool,
    ) -> Result<bool, AccountFileError> {
        let path = canonical(own)?;
        let Some(file) = self.account.record_file(Records::Links, &path) else { return Ok(false) };
        let _lock = self.account.lock(&file)?;
        let mut record = self.read(&path)?;
        if change(&mut record.folders) {
            let text = serde_json::to_string_pretty(&record).map_err(|error| {
                AccountFileError::Malformed { file: file.clone(), what: error.to_string() }
            })?;
            self.account.write(&file, format!("{text}\n").as_bytes())?;
        }
        Ok(true)
    }
}

fn canonical(own: &Path) -> Result<PathBuf, AccountFileError> {
    fs::canonicalize(own).map_err(|error| AccountFileError::Io { file: own.to_owned(), error })
}
