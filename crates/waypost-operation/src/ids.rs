//! Names of records, clones and tasks in operations.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

use waypost_core::canonical::sha256;
use waypost_core::{TaskId, limits};

/// Base32 without letters that look like digits. Its order is the order of the bits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Why a text is not the name of a record, a clone or a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOperationId {
    /// Not a record id.
    #[error("{0:?} is not a record id: 26 characters of 0-9 and a-z without i, l, o and u")]
    Record(String),
    /// Not the tag of a clone.
    #[error("{0:?} is not the tag of a clone: 1 to 32 of a-z and 0-9")]
    Tag(String),
    /// Not a reference to a task.
    #[error("{0:?} is not a task reference such as t1#a8c2q0")]
    Task(String),
    /// Not a reference to an action.
    #[error("{0:?} is not a reference to an action: a record id, or a record id with /INDEX")]
    Action(String),
}

/// The name of a record: the first 130 bits of its SHA-256, as 26 characters of base32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId([u8; 17]);

impl RecordId {
    /// The length of an id in characters.
    pub const CHARS: usize = 26;
    /// The number of characters of an id that name a task's origin, unless that is ambiguous.
    pub const SHORT_CHARS: usize = 6;

    /// Returns the id of a record with this content.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut id = [0; 17];
        id.copy_from_slice(&sha256(bytes)[..17]);
        id[16] &= 0b1100_0000;
        Self(id)
    }

    /// Returns the first `chars` characters of the id.
    pub fn prefix(&self, chars: usize) -> String {
        self.chars().take(chars).collect()
    }

    /// Whether the id begins with this text.
    pub fn starts_with(&self, prefix: &str) -> bool {
        prefix.len() <= Self::CHARS && prefix.chars().eq(self.chars().take(prefix.len()))
    }

    fn chars(&self) -> impl Iterator<Item = char> {
        (0..Self::CHARS).map(|place| {
            let bit = place * 5;
            let (byte, shift) = (bit / 8, bit % 8);
            let next = self.0.get(byte + 1).copied().unwrap_or(0);
            let window = u16::from_be_bytes([self.0[byte], next]);
            char::from(ALPHABET[usize::from(window >> (11 - shift) & 31)])
        })
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.prefix(Self::CHARS))
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RecordId {
    type Err = BadOperationId;
    fn from_str(text: &str) -> Result<Self, BadOperationId> {
        let bad = || BadOperationId::Record(shortened_text(text));
        if text.len() != Self::CHARS {
            return Err(bad());
        }
        let mut id = [0u8; 17];
        for (place, byte) in text.bytes().enumerate() {
            let value = ALPHABET.iter().position(|&letter| letter == byte).ok_or_else(bad)? as u16;
            let bit = place * 5;
            let [high, low] = (value << (11 - bit % 8)).to_be_bytes();
            id[bit / 8] |= high;
            if let Some(next) = id.get_mut(bit / 8 + 1) {
                *next |= low;
            }
        }
        Ok(Self(id))
    }
}

/// The tag that a clone drew once. It is shown; nothing relies on its being unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloneTag(String);

impl CloneTag {
    /// Validates `text` as a tag.
    pub fn new(text: impl Into<String>) -> Result<Self, BadOperationId> {
        let text = text.into();
        let is_fine = (1..=limits::CLONE_TAG_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if is_fine { Ok(Self(text)) } else { Err(BadOperationId::Tag(shortened_text(&text))) }
    }

    /// Returns the tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CloneTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for CloneTag {
    type Err = BadOperationId;
    fn from_str(text: &str) -> Result<Self, BadOperationId> {
        Self::new(text)
    }
}

/// A task, named by the record that added it: a name that was given twice stays two tasks. Written `t1#a8c2q0`, and `t1#`
/// in the record that adds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskRef {
    /// The name that the task was given.
    pub name: TaskId,
    /// The first characters of the id of the record that added it; empty in that record.
    pub record: String,
}

impl TaskRef {
    /// Names a task that the same record adds.
    pub fn in_same_record(name: TaskId) -> Self {
        Self { name, record: String::new() }
    }
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.record)
    }
}

impl FromStr for TaskRef {
    type Err = BadOperationId;
    fn from_str(text: &str) -> Result<Self, BadOperationId> {
        let bad = || BadOperationId::Task(shortened_text(text));
        let (name, record) = text.rsplit_once('#').ok_or_else(bad)?;
        let is_length =
            record.is_empty() || (RecordId::SHORT_CHARS..=RecordId::CHARS).contains(&record.len());
        if !is_length || !record.bytes().all(|byte| ALPHABET.contains(&byte)) {
            return Err(bad());
        }
        Ok(Self { name: TaskId::new(name).map_err(|_| bad())?, record: record.to_owned() })
    }
}

/// Cuts a text that is quoted in an error.
pub(super) fn shortened_text(text: &str) -> String {
    text.chars().take(60).collect()
}

macro_rules! as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
as_text!(RecordId);
as_text!(CloneTag);
as_text!(TaskRef);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_and_read_as_26_characters_in_the_same_order() {
        let ids: Vec<RecordId> = (0..200u8).map(|byte| RecordId::of(&[byte])).collect();
        for id in &ids {
            let text = id.to_string();
            assert_eq!(text.len(), RecordId::CHARS);
            assert_eq!(text.parse::<RecordId>().unwrap(), *id);
            assert!(id.starts_with(&text[..6]) && !id.starts_with("i"));
        }
        let (mut by_id, mut by_text) = (ids.clone(), ids);
        by_id.sort();
        by_text.sort_by_key(ToString::to_string);
        assert_eq!(by_id, by_text);
        for bad in ["", "9rk2", "i0000000000000000000000000", "A0000000000000000000000000"] {
            assert!(bad.parse::<RecordId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_task_reference_ends_in_a_part_of_a_record_id() {
        for text in ["t1#a8c2q0", "t1#", "a#b#000000"] {
            assert_eq!(text.parse::<TaskRef>().unwrap().to_string(), text);
        }
        for bad in ["t1", "#a8c2q0", "t1#a8c2", "t1#a8c2q!", "t1#A8C2Q0"] {
            assert!(bad.parse::<TaskRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tag_has_lower_case_letters_and_digits() {
        let longest = "x".repeat(limits::CLONE_TAG_BYTES_MAX);
        assert!(CloneTag::new("k7f").is_ok() && CloneTag::new(longest.clone()).is_ok());
        for bad in ["", "K7F", "a b", &format!("{longest}x")] {
            assert!(CloneTag::new(bad).is_err(), "{bad}");
        }
    }
}
