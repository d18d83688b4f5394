//! A JSON value stored as its text: small, exact (key order and numbers survive), cheap to store and to pass on.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Validated, compact JSON text.
#[derive(Clone, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Json(Box<str>);

impl Json {
    /// Wraps text returned earlier by [`Json::as_str`], without parsing it.
    pub(crate) fn trusted(text: &str) -> Self {
        Self(text.into())
    }

    /// Serializes any value. A value that JSON cannot represent (a map with non-string keys) becomes `null`.
    pub fn of(value: &impl Serialize) -> Self {
        Self(serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()).into())
    }

    /// Returns `{}`.
    pub fn empty_object() -> Self {
        Self("{}".into())
    }

    /// Parses `text`, which must be exactly one JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<serde_json::Value>(text).map(|value| Self::of(&value))
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the text into a [`serde_json::Value`].
    pub fn value(&self) -> serde_json::Value {
        self.to().unwrap_or(serde_json::Value::Null)
    }

    /// Deserializes the value into a type of the caller's choice.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self::of(&value)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Serialized as a tree, not as raw text, so that pretty printers indent it.
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(|value| Self::of(&value))
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
