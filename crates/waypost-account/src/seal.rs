//! The seal of an approval: a MAC with the account's key. It proves that the approval was given on this account, so that
//! a store that came from elsewhere brings none.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use waypost_text::hex;

use crate::account::Account;
use crate::account_files::AccountFileError;

/// Bytes of a seal key.
const KEY_BYTES: usize = 32;
/// Bytes of a block of SHA-256.
const BLOCK_BYTES: usize = 64;

/// The key that seals an account's approvals.
#[derive(Clone)]
pub struct SealKey([u8; KEY_BYTES]);

impl SealKey {
    /// Returns the account's key. The first use creates it. An account without a home, or with one that cannot be
    /// written, has a key that lives as long as this process.
    pub fn of(account: &Account) -> Result<Self, AccountFileError> {
        let Some(file) = account.seal_key_file() else { return Ok(Self::of_process(random()?)) };
        if let Some(key) = Self::read(account, &file)? {
            return Ok(key);
        }
        let key = random()?;
        match account.write_new(&file, &key) {
            Ok(()) => Ok(Self(key)),
            Err(AccountFileError::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Another process created it meanwhile.
                Self::read(account, &file)?.ok_or(AccountFileError::Io { file, error })
            }
            Err(AccountFileError::Io { error, .. }) if is_read_only(&error) => Ok(Self::of_process(key)),
            Err(error) => Err(error),
        }
    }

    /// Reads a key that the workers of several machines share; `None` if the file does not exist.
    pub fn read(account: &Account, file: &Path) -> Result<Option<Self>, AccountFileError> {
        let Some(bytes) = account.read(file)? else { return Ok(None) };
        let length = bytes.len();
        let key = <[u8; KEY_BYTES]>::try_from(bytes).map_err(|_| AccountFileError::Malformed {
            file: file.to_owned(),
            what: format!("a seal key has {KEY_BYTES} bytes, and this has {length}"),
        })?;
        Ok(Some(Self(key)))
    }

    /// The key of this process: this one, unless there is one already.
    fn of_process(key: [u8; KEY_BYTES]) -> Self {
        static KEY: OnceLock<[u8; KEY_BYTES]> = OnceLock::new();
        Self(*KEY.get_or_init(|| key))
    }

    /// Returns the seal of a message, in hexadecimal.
    pub fn seal(&self, message: &str) -> String {
        // HMAC pads a short key with zeros to the block of its hash.
        let mut block = [0; BLOCK_BYTES];
        block[..KEY_BYTES].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(message.as_bytes());
        hex(&mac.finalize().into_bytes())
    }

    /// Whether this is the seal of the message. Takes the same time for every wrong seal.
    pub fn verify(&self, message: &str, seal: &str) -> bool {
        self.seal(message).as_bytes().ct_eq(seal.as_bytes()).into()
    }
}

fn random() -> Result<[u8; KEY_BYTES], AccountFileError> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| AccountFileError::Io {
        file: "seal.key".into(),
        error: io::Error::other(error.to_string()),
    })?;
    Ok(key)
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}
