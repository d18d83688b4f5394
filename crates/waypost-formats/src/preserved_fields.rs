//! Preserved data of a foreign format for writing it back: its unknown fields, and Waypost's hints about how it was written.
//!
//! Knows where these are stored, not what they mean.

use serde_json::{Map, Value, json};
use waypost_core::{ForeignFields, Phase, Status, Timestamp};

use crate::Dialect;

/// The preserved data of a foreign format: its unknown fields, and Waypost's hints (under `$` names, never written out).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PreservedFields {
    map: Map<String, Value>,
}

impl PreservedFields {
    /// Returns the data of `dialect` in `foreign`.
    pub(crate) fn of(foreign: &ForeignFields, dialect: Dialect) -> Self {
        if foreign.is_empty() {
            return Self::default();
        }
        Self { map: foreign.of(dialect.name()) }
    }

    /// Stores everything under the format's name.
    pub(crate) fn keep_in(self, foreign: &mut ForeignFields, dialect: Dialect) {
        foreign.keep(dialect.name(), self.map);
    }

    /// Preserves unknown fields. A leading `$` in their names is doubled, so that it is never taken for a hint.
    pub(crate) fn keep_unknown(&mut self, fields: Map<String, Value>) {
        for (name, value) in fields {
            let name = if name.starts_with('$') { format!("${name}") } else { name };
            self.map.insert(name, value);
        }
    }

    /// Whether there are unknown fields, not only hints.
    pub(crate) fn has_unknown(&self) -> bool {
        self.has_unknown_but(&[])
    }

    /// Whether there are unknown fields besides these.
    pub(crate) fn has_unknown_but(&self, but: &[&str]) -> bool {
        self.map.keys().any(|name| written_name(name).is_some_and(|name| !but.contains(&name)))
    }

    pub(crate) fn unknown(&self, name: &str) -> Option<&Value> {
        self.map.get(name)
    }

    /// Adds the unknown fields to `target` where they do not collide. `except` names those that are written elsewhere.
    pub(crate) fn write_unknown(&self, target: &mut Map<String, Value>, except: &[&str]) {
        for (name, value) in &self.map {
            if let Some(name) = written_name(name)
                && !target.contains_key(name)
                && !except.contains(&name)
            {
                target.insert(name.to_owned(), value.clone());
            }
        }
    }

    pub(crate) fn set(&mut self, hint: &str, value: impl Into<Value>) {
        self.map.insert(format!("${hint}"), value.into());
    }

    pub(crate) fn get(&self, hint: &str) -> Option<&Value> {
        if self.map.is_empty() {
            return None;
        }
        self.map.get(&format!("${hint}"))
    }

    /// A hint that is text.
    pub(crate) fn text(&self, hint: &str) -> Option<&str> {
        self.get(hint).and_then(Value::as_str)
    }

    /// Stores the value that was read together with the derived one, if they differ.
    pub(crate) fn remember(&mut self, hint: &str, derived: impl Into<Value>, read: impl Into<Value>) {
        let (derived, read) = (derived.into(), read.into());
        if derived != read {
            self.set(hint, json!([derived, read]));
        }
    }

    /// Returns the value that was read as long as the derived one is unchanged; otherwise the derived one.
    pub(crate) fn recall(&self, hint: &str, derived: impl Into<Value>) -> Value {
        let derived = derived.into();
        match self.get(hint).and_then(Value::as_array).map(Vec::as_slice) {
            Some([then, read]) if *then == derived => read.clone(),
            _ => derived,
        }
    }

    /// Returns the foreign word for a task's status that Waypost's status does not express, as long as the status is unchanged.
    pub(crate) fn status_word(&self, ours: Status) -> Option<&str> {
        self.word_beside(ours.as_str())
    }

    /// Preserves the foreign word for a task's status.
    pub(crate) fn keep_status_word(&mut self, ours: Status, word: &str) {
        self.set("status", json!([ours.as_str(), word]));
    }

    /// Like [`Self::status_word`], for the phase of a plan.
    pub(crate) fn phase_word(&self, ours: Phase) -> Option<&str> {
        self.word_beside(ours.as_str())
    }

    /// Preserves the foreign word for a plan's phase.
    pub(crate) fn keep_phase_word(&mut self, ours: Phase, word: &str) {
        self.set("status", json!([ours.as_str(), word]));
    }

    fn word_beside(&self, ours: &str) -> Option<&str> {
        match self.get("status")?.as_array()?.as_slice() {
            [Value::String(then), Value::String(word)] if then == ours => Some(word),
            _ => None,
        }
    }

    /// Preserves the text of a timestamp if Waypost would write it differently.
    pub(crate) fn keep_time(&mut self, field: &str, at: Timestamp, text: &str) {
        if at.to_string() != text {
            self.set(field, text);
        }
    }

    /// Returns the text of a timestamp: as it was read if it is unchanged, otherwise as `written` formats it.
    pub(crate) fn time(&self, field: &str, at: Timestamp, written: fn(Timestamp) -> String) -> String {
        match self.text(field) {
            Some(text) if parse_timestamp(text) == Some(at) => text.to_owned(),
            _ => written(at),
        }
    }

    /// Like [`Self::time`], for a value that may have been read as a number.
    pub(crate) fn time_value(&self, field: &str, at: Timestamp, written: fn(Timestamp) -> String) -> Value {
        match self.get(field) {
            Some(Value::Number(number)) if number.as_f64().map(numeric_timestamp) == Some(at) => {
                Value::Number(number.clone())
            }
            Some(_) | None => self.time(field, at, written).into(),
        }
    }

    /// Stores which fields were absent.
    pub(crate) fn keep_absent(&mut self, absent: Vec<&str>) {
        if !absent.is_empty() {
            self.set("absent", absent);
        }
    }

    pub(crate) fn was_absent(&self, field: &str) -> bool {
        self.absent().any(|name| name == field)
    }

    /// The fields that were absent.
    pub(crate) fn absent(&self) -> impl Iterator<Item = &str> {
        self.get("absent").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }
}

/// Returns the name under which a preserved field is written; `None` for a hint.
fn written_name(name: &str) -> Option<&str> {
    match name.strip_prefix('$') {
        None => Some(name),
        Some(doubled) if doubled.starts_with('$') => Some(doubled),
        Some(_) => None,
    }
}

/// Whether the preserved data holds more than hints.
pub(crate) fn holds_unknown(foreign: &ForeignFields, dialect: &str) -> bool {
    foreign.of(dialect).keys().any(|name| written_name(name).is_some())
}

/// Returns the time that a number means: seconds since 1970, or milliseconds if it is too large for seconds of this era.
pub(crate) fn numeric_timestamp(count: f64) -> Timestamp {
    let micros = if count.abs() > 2e10 { count * 1e3 } else { count * 1e6 };
    Timestamp::from_micros(micros as i64)
}

/// Parses a timestamp as programs write it: any form of [`Timestamp::parse`], or seconds since 1970 as up to 11 digits.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    if !text.is_empty() && text.len() <= 11 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: i64 = text.parse().ok()?;
        return Some(Timestamp::from_micros(seconds.saturating_mul(1_000_000)));
    }
    Timestamp::parse(text).ok()
}
