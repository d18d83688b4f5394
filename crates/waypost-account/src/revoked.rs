//! The approvals that were revoked on this account. An older copy of a database brings them back; this list does not forget.

use std::path::PathBuf;

use crate::account::Account;
use crate::account_files::AccountFileError;

/// Maximum number of revoked approvals that an account keeps; the oldest are forgotten first.
pub const REVOKED_MAX: usize = 10_000;

/// The nonces of revoked approvals. An account without a home keeps none.
#[derive(Clone, Copy, Debug)]
pub struct RevokedApprovals<'a> {
    account: &'a Account,
}

impl<'a> RevokedApprovals<'a> {
    pub fn of(account: &'a Account) -> Self {
        Self { account }
    }

    fn file(&self) -> Option<PathBuf> {
        self.account.state_folder().map(|folder| folder.join("revoked"))
    }

    fn read(&self) -> Result<Vec<String>, AccountFileError> {
        let Some(file) = self.file() else { return Ok(Vec::new()) };
        let bytes = self.account.read(&file)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }

    /// Whether the approval with this nonce was revoked.
    pub fn contains(&self, nonce: &str) -> Result<bool, AccountFileError> {
        Ok(self.read()?.iter().any(|known| known == nonce))
    }

    /// Adds the nonce of an approval.
    pub fn add(&self, nonce: &str) -> Result<(), AccountFileError> {
        let Some(file) = self.file() else { return Ok(()) };
        let _lock = self.account.lock(&file)?;
        let mut nonces = self.read()?;
        if nonces.iter().any(|known| known == nonce) {
            return Ok(());
        }
        nonces.push(nonce.to_owned());
        let first = nonces.len().saturating_sub(REVOKED_MAX);
        let text: String = nonces[first..].iter().map(|nonce| format!("{nonce}\n")).collect();
        self.account.write(&file, text.as_bytes())
    }
}
