//! Trust records of remotes: from which address and reference a person on this account takes shared plans as their own
//! team's. Until then, such plans can be read, and agents are offered none of them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use waypost_core::{Actor, Timestamp};

use crate::account::{Account, Records};
use crate::account_files::AccountFileError;
use crate::trust::{record_files, remove_record};

/// The record of a trusted remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteTrust {
    /// The address of the remote, as the repository has it; the folder of the repository if it has none.
    pub address: String,
    /// The reference that holds the plans.
    pub reference: String,
    pub trusted_at: Timestamp,
    pub by: Actor,
    /// How the person was asked: `terminal`, `init`.
    pub via: String,
    /// What later versions write.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// The file of a record; `None` for an account without a home.
fn file(account: &Account, address: &str, reference: &str) -> Option<PathBuf> {
    // No address and no reference contains a line break.
    account.record_file(Records::Remotes, Path::new(&format!("{address}\n{reference}")))
}

impl RemoteTrust {
    /// Reads the record of a remote and a reference.
    pub fn read(account: &Account, address: &str, reference: &str) -> Result<Option<Self>, AccountFileError> {
        let Some(file) = file(account, address, reference) else { return Ok(None) };
        let record = Self::read_file(account, &file)?;
        // A record that was copied from elsewhere names another remote.
        Ok(record.filter(|record| record.address == address && record.reference == reference))
    }

    fn read_file(account: &Account, file: &Path) -> Result<Option<Self>, AccountFileError> {
        let Some(bytes) = account.read(file)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| AccountFileError::Malformed {
            file: file.to_owned(),
            what: format!("this is not a trust record: {error}"),
        })
    }

    /// Lists the records by address and reference.
    pub fn list(account: &Account) -> Result<Vec<Self>, AccountFileError> {
        let mut records: Vec<Self> = Vec::new();
        for path in record_files(account, Records::Remotes)? {
            records.extend(Self::read_file(account, &path)?);
        }
        records.sort_by(|one, other| (&one.address, &one.reference).cmp(&(&other.address, &other.reference)));
        Ok(records)
    }

    /// Removes the record of a remote and a reference. Returns whether there was one.
    pub fn remove(account: &Account, address: &str, reference: &str) -> Result<bool, AccountFileError> {
        file(account, address, reference).map_or(Ok(false), remove_record)
    }

    /// Writes the record. Returns whether the account can keep records.
    pub fn write(&self, account: &Account) -> Result<bool, AccountFileError> {
        let Some(file) = file(account, &self.address, &self.reference) else { return Ok(false) };
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| AccountFileError::Malformed { file: file.clone(), what: error.to_string() })?;
        account.write(&file, format!("{text}\n").as_bytes()).map(|()| true)
    }
}
