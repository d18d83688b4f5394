//! Reads fields of an answer leniently where the meaning is clear, and records each repair.

use serde_json::{Map, Value};
use waypost_core::Complexity;

use crate::json_extract::{NoJson, extract};
use crate::prompting::{CUT, ended_badly};
use crate::repair::{Repair, Repairs};
use crate::{Answer, Ended};

/// The problems and repairs found while reading an answer.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) problems: Vec<String>,
    pub(crate) repairs: Repairs,
}

impl Reading {
    pub(crate) fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// A field by its name, or by a known alternative name.
    pub(crate) fn field<'a>(&mut self, map: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
        let (place, value) =
            names.iter().enumerate().find_map(|(place, name)| Some((place, map.get(*name)?)))?;
        if place > 0 {
            self.repairs.note(Repair::OtherName);
        }
        Some(value).filter(|value| !value.is_null())
    }

    /// A text, or a number as text.
    pub(crate) fn text(&mut self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => {
                self.repairs.note(Repair::NumberAsText);
                Some(number.to_string())
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Texts in a list, or a single text. Other values are reported as problems of `whose` field.
    pub(crate) fn texts(&mut self, value: Option<&Value>, whose: &str) -> Vec<String> {
        let list = match value {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(list)) => list.as_slice(),
            Some(single @ (Value::String(_) | Value::Number(_))) => {
                self.repairs.note(Repair::ValueAsList);
                std::slice::from_ref(single)
            }
            Some(other) => {
                self.problem(format!("{whose} must be a list of texts, not {}", kind_of(other)));
                return Vec::new();
            }
        };
        let mut texts = Vec::new();
        for item in list {
            match self.text(item) {
                Some(text) if text.is_empty() => {}
                Some(text) if texts.contains(&text) => {}
                Some(text) => texts.push(text),
                None => self.problem(format!("{whose} must hold texts only, not {}", kind_of(item))),
            }
        }
        texts
    }

    /// A boolean, also as text or number.
    pub(crate) fn boolean(&mut self, value: &Value) -> Option<bool> {
        let word = match value {
            Value::Bool(value) => return Some(*value),
            Value::String(text) => text.trim().to_ascii_lowercase(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        let read = match word.as_str() {
            "true" | "yes" | "1" => true,
            "false" | "no" | "0" => false,
            _ => return None,
        };
        self.repairs.note(Repair::TextAsBoolean);
        Some(read)
    }

    /// The model's reasoning.
    pub(crate) fn reasoning(&mut self, map: &Map<String, Value>) -> Option<String> {
        let value = self.field(map, &["reasoning", "reason", "rationale", "explanation"]);
        let text = value.and_then(|value| self.text(value)).filter(|text| !text.is_empty());
        if text.is_none() {
            self.repairs.note(Repair::MissingReasoning);
        }
        text
    }

    /// A complexity, by its common names.
    pub(crate) fn complexity(&mut self, map: &Map<String, Value>, whose: &str) -> Option<Complexity> {
        let value = self.field(map, &["complexity"])?;
        let word = value.as_str().unwrap_or_default().trim().to_ascii_lowercase();
        match word.as_str() {
            "" if value.is_string() => None,
            "low" | "simple" => Some(Complexity::Low),
            "medium" | "med" | "moderate" => Some(Complexity::Medium),
            "high" | "complex" => Some(Complexity::High),
            _ => {
                self.problem(format!("{whose}: complexity must be \"low\", \"medium\" or \"high\""));
                None
            }
        }
    }
}

/// The kind of a value, for problem messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The JSON of an answer, or the problems of the answer as a whole.
pub(crate) fn json_of(
    answer: &Answer,
    fits: &dyn Fn(&Value) -> bool,
) -> Result<(Value, Reading), Vec<String>> {
    let bad_end = ended_badly(answer);
    match extract(&answer.text, fits) {
        Ok(found) => Ok((found.value, Reading { problems: Vec::new(), repairs: Repairs(found.repairs) })),
        Err(no @ (NoJson::Empty | NoJson::TooLong(_) | NoJson::None)) => {
            Err(vec![bad_end.unwrap_or_else(|| no.to_string())])
        }
    }
}

impl Reading {
    /// The problem with a list that was cut off: the complete elements are known, the missing ones are not.
    pub(crate) fn broke_off(&self, answer: &Answer, found: usize, what: &str) -> Option<String> {
        let is_cut = answer.ended == Ended::Cut;
        let lacks_end = self.repairs.has(Repair::Unclosed) || self.repairs.has(Repair::TextPlan);
        if !(self.repairs.has(Repair::Truncated) || is_cut && lacks_end) {
            return None;
        }
        let how = if is_cut { CUT } else { "the answer broke off" };
        Some(format!("{how} after {found} whole {what}; answer with shorter descriptions or fewer {what}"))
    }
}

/// Whether a value is an object with one of these fields.
pub(crate) fn has_one_of(value: &Value, names: &[&str]) -> bool {
    value.as_object().is_some_and(|map| names.iter().any(|name| map.contains_key(*name)))
}
