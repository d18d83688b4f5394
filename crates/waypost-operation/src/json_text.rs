//! JSON values that travel as their stored text, in a string: any number survives, and nothing re-encodes them.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

use waypost_core::Json;

pub(super) fn serialize<S: Serializer>(json: &Json, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(json.as_str())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
    read(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads a text as this crate stores it. Another text with the same value would become another text at the next reading.
pub(super) fn read(text: &str) -> Result<Json, &'static str> {
    match Json::parse(text) {
        Ok(json) if json.as_str() == text => Ok(json),
        Ok(_) => Err("JSON in a record must be compact, as Waypost stores it"),
        Err(_) => Err("a text in a record is not JSON"),
    }
}

pub(super) mod optional {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(json: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
        match json {
            Some(json) => super::serialize(json, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| read(&text)).transpose().map_err(D::Error::custom)
    }
}

pub(super) mod by_format {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::*;
    use waypost_core::ForeignFields;

    pub(crate) fn serialize<S: Serializer>(fields: &ForeignFields, serializer: S) -> Result<S::Ok, S::Error> {
        let texts: BTreeMap<&str, &str> =
            fields.0.iter().map(|(format, json)| (format.as_str(), json.as_str())).collect();
        texts.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ForeignFields, D::Error> {
        let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
        let fields: Result<BTreeMap<String, Json>, &'static str> =
            texts.into_iter().map(|(format, text)| Ok((format, read(&text)?))).collect();
        fields.map(ForeignFields).map_err(D::Error::custom)
    }
}
