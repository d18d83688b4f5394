//! Trust records: which content of which folder a person has trusted on this account. Content counts, not the path
//! alone: agents edit files in trusted folders all day.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use waypost_core::canonical::{CanonicalHasher, sha256};
use waypost_core::{Actor, Timestamp};
use waypost_text::hex;

use crate::account::{Account, Records};
use crate::account_files::AccountFileError;

/// Maximum bytes of the settings that a record keeps.
pub const SETTINGS_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of records that are listed.
pub const TRUST_RECORDS_MAX: usize = 10_000;

/// The record of a trusted folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The canonical path of the workspace's root.
    pub path: String,
    /// `sha256:` and the digest of the files.
    pub digest: String,
    /// The relative path of each file and the SHA-256 of its content, in the order of the paths.
    pub files: Vec<(String, String)>,
    pub trusted_at: Timestamp,
    pub by: Actor,
    /// How the person was asked: `terminal`, `init`.
    pub via: String,
    /// What the files said, by the names of the settings, to show only the difference next time. Decides nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What later versions write.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Whether the present content of a folder is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// The folder has no configuration of its own, so there is nothing to trust.
    NothingToTrust,
    NotTrusted,
    /// The files whose content is another than the trusted one, that are new, or that are gone.
    Changed(Vec<String>),
    Trusted,
}

/// Returns the digest of a folder's configuration: both files and every file that loading them reads.
pub fn trust_digest(files: &BTreeMap<String, Vec<u8>>) -> String {
    digest_of(&hashes(files))
}

fn hashes(files: &BTreeMap<String, Vec<u8>>) -> Vec<(String, String)> {
    files.iter().map(|(path, bytes)| (path.clone(), hex(&sha256(bytes)))).collect()
}

fn digest_of(files: &[(String, String)]) -> String {
    let mut hasher = CanonicalHasher::new("trust", 1);
    hasher.list(files.iter(), |hasher, (path, hash)| hasher.text(path).text(hash));
    format!("sha256:{}", hex(&hasher.finish()))
}

impl TrustRecord {
    /// Records that a person trusts these files of the folder.
    pub fn new(
        folder: &Path,
        files: &BTreeMap<String, Vec<u8>>,
        trusted_at: Timestamp,
        by: Actor,
        via: &str,
    ) -> Self {
        let files = hashes(files);
        Self {
            path: folder.to_string_lossy().into_owned(),
            digest: digest_of(&files),
            files,
            trusted_at,
            by,
            via: via.to_owned(),
            settings: BTreeMap::new(),
            unknown: Map::new(),
        }
    }

    /// Keeps what the files say, unless the record would become too large.
    pub fn with_settings(self, settings: BTreeMap<String, String>) -> Self {
        let bytes: usize = settings.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > SETTINGS_BYTES_MAX { self } else { Self { settings, ..self } }
    }

    /// Returns the files that differ from the trusted ones.
    pub fn changes(&self, files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
        let files = &hashes(files);
        let only = |some: &[(String, String)], others: &[(String, String)]| -> Vec<String> {
            some.iter().filter(|file| !others.contains(file)).map(|(path, _)| path.clone()).collect()
        };
        let mut changed = [only(files, &self.files), only(&self.files, files)].concat();
        changed.sort();
        changed.dedup();
        changed
    }
}

/// The trust records of an account. An account without a home has none.
#[derive(Clone, Copy, Debug)]
pub struct TrustRecords<'a> {
    account: &'a Account,
}

impl<'a> TrustRecords<'a> {
    pub fn of(account: &'a Account) -> Self {
        Self { account }
    }

    /// Compares the files of a folder, given by its canonical path, with those that a person trusted.
    pub fn state(
        &self,
        folder: &Path,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Result<TrustState, AccountFileError> {
        if files.is_empty() {
            return Ok(TrustState::NothingToTrust);
        }
        Ok(match self.read(folder)? {
            None => TrustState::NotTrusted,
            // The digest decides; the list of files only explains a difference.
            Some(record) if record.digest == trust_digest(files) => TrustState::Trusted,
            Some(record) => TrustState::Changed(record.changes(files)),
        })
    }

    /// Reads the record of a folder.
    pub fn read(&self, folder: &Path) -> Result<Option<TrustRecord>, AccountFileError> {
        let Some(file) = self.account.record_file(Records::Trust, folder) else { return Ok(None) };
        let record = self.read_file(&file)?;
        // A record that was copied from elsewhere names another folder.
        Ok(record.filter(|record| record.path == folder.to_string_lossy()))
    }

    fn read_file(&self, file: &Path) -> Result<Option<TrustRecord>, AccountFileError> {
        let Some(bytes) = self.account.read(file)? else { return Ok(None) };
        let record = serde_json::from_slice(&bytes);
        record.map(Some).map_err(|error| AccountFileError::Malformed {
            file: file.to_owned(),
            what: format!("this is not a trust record: {error}"),
        })
    }

    /// Writes a record in place of an earlier one of the same folder. Returns whether the account can keep records.
    pub fn write(&self, record: &TrustRecord) -> Result<bool, AccountFileError> {
        let Some(file) = self.account.record_file(Records::Trust, Path::new(&record.path)) else {
            return Ok(false);
        };
        let text = serde_json::to_string_pretty(record)
            .map_err(|error| AccountFileError::Malformed { file: file.clone(), what: error.to_string() })?;
        self.account.write(&file, format!("{text}\n").as_bytes()).map(|()| true)
    }

    /// Removes the record of a folder. Returns whether there was one.
    pub fn remove(&self, folder: &Path) -> Result<bool, AccountFileError> {
        let Some(file) = self.account.record_file(Records::Trust, folder) else { return Ok(false) };
        remove_record(file)
    }

    /// Lists the records by path. One that cannot be read is an error, not left out.
    pub fn list(&self) -> Result<Vec<TrustRecord>, AccountFileError> {
        let mut records = Vec::new();
        for path in record_files(self.account, Records::Trust)? {
            records.extend(self.read_file(&path)?);
        }
        records.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(records)
    }
}

/// Lists the files of one kind of records.
pub(crate) fn record_files(account: &Account, kind: Records) -> Result<Vec<PathBuf>, AccountFileError> {
    let Some(folder) = account.records_folder(kind) else { return Ok(Vec::new()) };
    let failed = |error| AccountFileError::Io { file: folder.clone(), error };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let paths = entries.take(TRUST_RECORDS_MAX).map(|entry| Ok(entry.map_err(failed)?.path()));
    let paths = paths.collect::<Result<Vec<PathBuf>, AccountFileError>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect())
}

/// Removes a record. Returns whether there was one.
pub(crate) fn remove_record(file: PathBuf) -> Result<bool, AccountFileError> {
    match fs::remove_file(&file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(AccountFileError::Io { file, error }),
    }
}
