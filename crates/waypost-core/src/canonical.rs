//! A canonical encoding in which different values never have the same bytes, and its SHA-256. Texts and lists are
//! prefixed with their length, so that no byte can move from one field to the next. JSON is hashed as its text: as
//! floating-point numbers, 2^53 and 2^53 + 1 would be the same value.

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// Hashes one value, field by field. A change of the fields requires a new domain.
pub struct CanonicalHasher(Sha256);

impl CanonicalHasher {
    /// Starts a value. Its domain, such as `waypost/task/1`, is the first text.
    pub fn new(kind: &str, format: u32) -> Self {
        let mut hasher = Self(Sha256::new());
        hasher.text(&format!("waypost/{kind}/{format}"));
        hasher
    }

    /// Adds a text: its length in bytes, then its UTF-8.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64);
        self.0.update(text);
        self
    }

    /// Adds a number, or the length of a list whose items follow.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(number.to_be_bytes());
        self
    }

    /// Adds one byte, 0 or 1.
    pub fn flag(&mut self, flag: bool) -> &mut Self {
        self.0.update([u8::from(flag)]);
        self
    }

    /// Adds a value that may be missing.
    pub fn optional<T>(
        &mut self,
        value: Option<T>,
        write: impl for<'a> FnOnce(&'a mut Self, T) -> &'a mut Self,
    ) -> &mut Self {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
        self
    }

    /// Adds a list, in its order.
    pub fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl for<'a> FnMut(&'a mut Self, T) -> &'a mut Self,
    ) -> &mut Self {
        self.number(items.len() as u64);
        for item in items {
            write(self, item);
        }
        self
    }

    /// Adds another value by its hash.
    pub fn hash(&mut self, hash: &Hash) -> &mut Self {
        self.0.update(hash);
        self
    }

    /// Returns the hash of everything added.
    pub fn finish(self) -> Hash {
        self.0.finalize().into()
    }
}

/// Returns the SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}
