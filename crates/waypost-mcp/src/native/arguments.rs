//! Parses the arguments of a call: the error for an unknown name or a wrong type names the argument, so that a model can fix it
//! at once. Does not know what the arguments mean.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use waypost_core::nearest;
use waypost_formats::{WrongValue, wrong_values};

use crate::reply_text;
use crate::tool_error::ToolError;

/// Bytes of an unknown name or value that the error message repeats.
const NAME_BYTES: usize = 80;
/// Maximum number of unknown names that the error message repeats.
const UNKNOWN_NAMED_MAX: usize = 10;

/// The fields of an object that a model wrote.
pub(super) struct Arguments<'a> {
    fields: &'a Map<String, Value>,
    /// Prefix for messages: empty, or e.g. `ops[2].`.
    within: String,
    /// Whether there are unknown fields, which the caller noted.
    has_unknown: bool,
}

/// The form of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentForm {
    Text,
    /// A text that must be there.
    Needed,
    /// One of several words, or what is checked when it is read.
    Word,
    Flag,
    Number,
    Texts,
}

impl<'a> Arguments<'a> {
    /// Wraps the arguments of a call. Unknown, missing and ill-formed ones are one error that names them all.
    pub(super) fn of(
        fields: &'a Map<String, Value>,
        known: &[(&'static str, ArgumentForm)],
    ) -> Result<Self, ToolError> {
        let mut wrong = Problems::default();
        let arguments = Self::noting_wrong(fields, known, &mut wrong);
        wrong.or(arguments)
    }

    /// Wraps the arguments of a call and notes unknown, missing and ill-formed ones, so that the other problems of the call are
    /// found as well.
    pub(super) fn noting_wrong(
        fields: &'a Map<String, Value>,
        known: &[(&'static str, ArgumentForm)],
        wrong: &mut Problems,
    ) -> Self {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let arguments = Self::noting_unknown(fields, &names, "", wrong);
        for (name, form) in known {
            let read = match form {
                ArgumentForm::Text => arguments.text(name).map(drop),
                ArgumentForm::Needed => arguments.needed(name).map(drop),
                ArgumentForm::Word => Ok(()),
                ArgumentForm::Flag => arguments.flag(name).map(drop),
                ArgumentForm::Number => arguments.number(name).map(drop),
                ArgumentForm::Texts => arguments.texts(name).map(drop),
            };
            wrong.take(read);
        }
        arguments
    }

    /// Wraps the fields and notes unknown ones, so that the other problems of the call are found as well.
    pub(super) fn noting_unknown(
        fields: &'a Map<String, Value>,
        known: &[&str],
        within: impl Into<String>,
        wrong: &mut Problems,
    ) -> Self {
        let within = within.into();
        let unknown: Vec<&String> = fields.keys().filter(|name| !known.contains(&name.as_str())).collect();
        let all_known = || format!("known arguments: {}", known.join(", "));
        match unknown.as_slice() {
            [] => {}
            [one] => {
                let near = nearest(one, known.iter().copied()).map(|near| format!("did you mean {near}?"));
                let unknown = reply_text::cut(one, NAME_BYTES);
                let message = format!("unknown argument {within}{unknown}");
                wrong.0.push(ToolError::new(message, near.unwrap_or_else(all_known)));
            }
            several => {
                let shown = several.iter().take(UNKNOWN_NAMED_MAX);
                let named: Vec<String> =
                    shown.map(|name| format!("{within}{}", reply_text::cut(name, NAME_BYTES))).collect();
                let message = format!("unknown arguments {}", named.join(", "));
                wrong.0.push(ToolError::new(message, all_known()));
            }
        }
        Self { fields, within, has_unknown: !unknown.is_empty() }
    }

    /// A value, if present and not `null`.
    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// Whether fields are unknown. What they meant may be what else is missing.
    pub(super) fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// Whether the field is present, even as `null`.
    pub(super) fn names(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, ToolError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(name, "text", value))
    }

    /// A name, such as an id. An empty one counts as missing, because models fill in fields that they mean to omit.
    pub(super) fn name(&self, name: &str) -> Result<Option<&'a str>, ToolError> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }

    /// A required text; an empty one counts as missing.
    pub(super) fn needed(&self, name: &str) -> Result<&'a str, ToolError> {
        self.name(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ToolError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| self.wrong(name, "a whole number from 0", value))
    }

    /// A whole number that fits in 32 bits.
    pub(super) fn small(&self, name: &str) -> Result<Option<u32>, ToolError> {
        let Some(number) = self.number(name)? else { return Ok(None) };
        let small = u32::try_from(number);
        small.map(Some).map_err(|_| self.bad(name, format!("{number} is too large a number")))
    }

    /// A boolean; a missing one is `false`.
    pub(super) fn flag(&self, name: &str) -> Result<bool, ToolError> {
        let Some(value) = self.value(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| self.wrong(name, "true or false", value))
    }

    pub(super) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, ToolError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_array().map(|list| Some(list.as_slice())).ok_or_else(|| self.wrong(name, "a list", value))
    }

    /// A list of texts; a single text need not be a list.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, ToolError> {
        if let Some(Value::String(one)) = self.value(name) {
            return Ok(vec![one.clone()]);
        }
        let list = self.list(name)?.unwrap_or_default();
        let texts = list.iter().enumerate().map(|(at, value)| {
            let text = value.as_str().map(str::to_owned);
            text.ok_or_else(|| self.wrong(&format!("{name}[{at}]"), "text", value))
        });
        texts.collect()
    }

    /// A value of a core type, in the native format.
    pub(super) fn native<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ToolError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        self.parse(name, value).map(Some)
    }

    /// Parses a value of a core type; the error names every place of it that does not fit.
    pub(super) fn parse<T: DeserializeOwned>(&self, name: &str, value: &Value) -> Result<T, ToolError> {
        serde_json::from_value(value.clone()).map_err(|error| {
            let found = wrong_values::<T>(value.clone()).into_iter();
            let named = found.map(|WrongValue { path, words }| {
                let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
                let place = format!("{name}{dot}{path}");
                words.map_or_else(|| self.missing(&place), |words| self.bad(&place, words))
            });
            let named: Vec<ToolError> = named.collect();
            match named.is_empty() {
                true => self.bad(name, waypost_text::plain_parse_error("", &error.to_string())),
                false => ToolError::joined(named),
            }
        })
    }

    /// Like [`Self::native`], but `null` is `Some(None)`: it clears the field.
    pub(super) fn native_or_none<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<Option<T>>, ToolError> {
        if self.names(name) { self.native(name).map(Some) } else { Ok(None) }
    }

    /// One of the given words.
    pub(super) fn one_of<T: Copy + Into<&'static str>>(
        &self,
        name: &str,
        all: impl IntoIterator<Item = T>,
    ) -> Result<Option<T>, ToolError> {
        let Some(said) = self.name(name)? else { return Ok(None) };
        let all: Vec<T> = all.into_iter().collect();
        let known: Vec<&str> = all.iter().map(|&one| one.into()).collect();
        if let Some(at) = known.iter().position(|word| *word == said) {
            return Ok(Some(all[at]));
        }
        let message = format!("{}{name} cannot be {:?}", self.within, reply_text::cut(said, NAME_BYTES));
        let near = nearest(said, known.iter().copied()).map(|near| format!("did you mean {near}? "));
        Err(ToolError::new(message, format!("{}use one of {}", near.unwrap_or_default(), known.join(", "))))
    }

    /// The error for a missing argument.
    pub(super) fn missing(&self, name: &str) -> ToolError {
        ToolError::new(format!("{}{name} is missing", self.within), format!("give {name}"))
    }

    /// The error for an invalid argument.
    pub(super) fn bad(&self, name: &str, why: impl std::fmt::Display) -> ToolError {
        ToolError::new(format!("{}{name}: {why}", self.within), "see the tool's schema, or the native format")
    }

    fn wrong(&self, name: &str, wanted: &str, found: &Value) -> ToolError {
        let found = match found {
            Value::Number(number) => number.to_string(),
            found
            @ (Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                kind(found).to_owned()
            }
        };
        self.bad(name, format!("must be {wanted}, not {found}"))
    }
}

/// The problems of a call so far. All of them are named at once.
#[derive(Default)]
pub(super) struct Problems(Vec<ToolError>);

impl Problems {
    pub(super) fn note(&mut self, error: ToolError) {
        self.0.push(error);
    }

    /// Notes the error, if it is one.
    pub(super) fn take<T>(&mut self, read: Result<T, ToolError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.push(error);
                None
            }
        }
    }

    /// Like [`Self::take`], with the default in the place of what cannot be read.
    pub(super) fn take_or_default<T: Default>(&mut self, read: Result<T, ToolError>) -> T {
        self.take(read).unwrap_or_default()
    }

    /// Returns `value`, or one error for all problems.
    pub(super) fn or<T>(self, value: T) -> Result<T, ToolError> {
        if self.0.is_empty() { Ok(value) } else { Err(ToolError::joined(self.0)) }
    }
}

/// Names the type of a value for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
