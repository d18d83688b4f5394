//! What is kept of a foreign format for the way back: its unknown fields, and hints of ours that tell how it was written.
//!
//! Knows where these are filed, not what they mean.

use serde_json::{Map, Value, json};
use waypost_core::{ForeignFields, Phase, Status, Timestamp};

use crate::Dialect;

/// What is kept of a foreign format: its unknown fields, and hints of ours (under `$` names, never written out).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PreservedFields {
    map: Map<String, Value>,
}

impl PreservedFields {
    /// What `foreign` holds of `dialect`.
    pub(crate) fn of(foreign: &ForeignFields, dialect: Dialect) -> Self {
        if foreign.is_empty() {
            return Self::default();
        }
        Self { map: foreign.of(dialect.name()) }
    }

    /// Files everything under the format's name.
    pub(crate) fn keep_in(self, foreign: &mut ForeignFields, dialect: Dialect) {
        foreign.keep(dialect.name(), self.map);
    }

    /// Keeps unknown fields. A `$` of theirs is doubled, so that it is never taken for a hint of ours.
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

    /// Whether there are unknown fields beside these.
    pub(crate) fn has_unknown_but(&self, but: &[&str]) -> bool {
        self.map.keys().any(|name| written_name(name).is_some_and(|name| !but.contains(&name)))
    }

    /// The unknown field of this name.
    pub(crate) fn unknown(&self, name: &str) -> Option<&Value> {
        self.map.get(name)
    }

    /// Adds the unknown fields to `target`, where they do not collide; `except` names those that go elsewhere.
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

    /// Sets a hint.
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

    /// Remembers what was read beside what would be derived from our model, where the two differ.
    pub(crate) fn remember(&mut self, hint: &str, derived: impl Into<Value>, read: impl Into<Value>) {
        let (derived, read) = (derived.into(), read.into());
        if derived != read {
            self.set(hint, json!([derived, read]));
        }
    }

    /// What was read, as long as what is derived has stayed the same; otherwise what is derived now.
    pub(crate) fn recall(&self, hint: &str, derived: impl Into<Value>) -> Value {
        let derived = derived.into();
        match self.get(hint).and_then(Value::as_array).map(Vec::as_slice) {
            Some([then, read]) if *then == derived => read.clone(),
            _ => derived,
        }
    }

    /// The foreign word of a task's status that ours cannot tell, as long as our status is still the same.
    pub(crate) fn status_word(&self, ours: Status) -> Option<&str> {
        self.word_beside(ours.as_str())
    }

    /// Keeps the foreign word of a task's status.
    pub(crate) fn keep_status_word(&mut self, ours: Status, word: &str) {
        self.set("status", json!([ours.as_str(), word]));
    }

    /// The same for the phase of a plan.
    pub(crate) fn phase_word(&self, ours: Phase) -> Option<&str> {
        self.word_beside(ours.as_str())
    }

    /// Keeps the foreign word of a plan's phase.
    pub(crate) fn keep_phase_word(&mut self, ours: Phase, word: &str) {
        self.set("status", json!([ours.as_str(), word]));
    }

    fn word_beside(&self, ours: &str) -> Option<&str> {
        match self.get("status")?.as_array()?.as_slice() {
            [Value::String(then), Value::String(word)] if then == ours => Some(word),
            _ => None,
        }
    }

    /// Keeps the text of a moment where ours would differ.
    pub(crate) fn keep_time(&mut self, field: &str, at: Timestamp, text: &str) {
        if at.to_string() != text {
            self.set(field, text);
        }
    }

    /// The text of a moment: as it was read if it is still the same moment, otherwise as `written`.
    pub(crate) fn time(&self, field: &str, at: Timestamp, written: fn(Timestamp) -> String) -> String {
        match self.text(field) {
            Some(text) if parse_timestamp(text) == Some(at) => text.to_owned(),
            _ => written(at),
        }
    }

    /// Remembers which of `fields` were not there.
    pub(crate) fn keep_absent(&mut self, absent: Vec<&str>) {
        if !absent.is_empty() {
            self.set("absent", absent);
        }
    }

    /// Whether the field was not there.
    pub(crate) fn was_absent(&self, field: &str) -> bool {
        self.get("absent")
            .and_then(Value::as_array)
            .is_some_and(|absent| absent.iter().any(|name| name == field))
    }
}

/// The name under which a kept field is written; `None` for a hint.
fn written_name(name: &str) -> Option<&str> {
    match name.strip_prefix('$') {
        None => Some(name),
        Some(doubled) if doubled.starts_with('$') => Some(doubled),
        Some(_) => None,
    }
}

/// Whether a kept map holds more than hints of ours.
pub(crate) fn holds_unknown(foreign: &ForeignFields, dialect: &str) -> bool {
    foreign.of(dialect).keys().any(|name| written_name(name).is_some())
}

/// A moment as programs write it: whatever [`Timestamp::parse`] reads, and seconds since 1970 as digits.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    if !text.is_empty() && text.len() <= 11 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: i64 = text.parse().ok()?;
        return Some(Timestamp::from_micros(seconds.saturating_mul(1_000_000)));
    }
    Timestamp::parse(text).ok()
}
