//! The random id of a new store.

use crate::error::{Result, StoreError};

/// Returns 32 random hexadecimal digits.
pub(super) fn random_id() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
    Ok(waypost_text::hex(&random))
}
