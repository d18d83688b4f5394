//! Trust records of remotes: from which address and reference a person on this account takes shared plans as their own
//! team's. Until then, such plans can be read, and agents are offered none of them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use waypost_core::{Actor, Timestamp};

use crate::account::{Account, Records};
use crate::account_files::AccountFileError;

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
        let Some(bytes) = account.read(&file)? else { return Ok(None) };
        let record: Self = serde_json::from_slice(&bytes).map_err(|error| AccountFileError::Malformed {
            file: file.clone(),
            what: format!("this is not a trust record: {error}"),
        })?;
        // A record that was copied from elsewhere names another remote.
        Ok(Some(record).filter(|record| record.address == address && record.reference == reference))
    }

    /// Writes the record. Returns whether the account can keep records.
    pub fn write(&self, account: &Account) -> Result<bool, AccountFileError> {
        let Some(file) = file(account, &self.address, &self.reference) else { return Ok(false) };
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| AccountFileError::Malformed { file: file.clone(), what: error.to_string() })?;
        account.write(&file, format!("{text}\n").as_bytes()).map(|()| true)
    }
}
