//! Arguments as the plugin takes them: what is empty is missing, and what is wrong is named in its words.

use serde_json::Value;

use super::reply::error;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// A text; an empty one, or none at all, is nothing.
pub(super) fn text(call: &Call, name: &str) -> Result<Option<String>, ToolError> {
    match call.arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(error(format!("{name} must be a string"))),
    }
}

/// A text that must be there.
pub(super) fn needed(call: &Call, name: &str) -> Result<String, ToolError> {
    text(call, name)?.ok_or_else(|| error(format!("{name} is required")))
}

/// A list of texts.
pub(super) fn texts(call: &Call, name: &str) -> Result<Vec<String>, ToolError> {
    let list = match call.arguments.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(error(format!("{name} must be an array of strings"))),
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts: Option<Vec<String>> = list.iter().map(text).collect();
    texts.ok_or_else(|| error(format!("{name} must be an array of strings")))
}

/// A number of seconds, up to `max`.
pub(super) fn seconds(call: &Call, name: &str, default: f64, max: f64) -> Result<f64, ToolError> {
    match call.arguments.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => match value.as_f64() {
            Some(seconds) => Ok(seconds.clamp(0.0, max)),
            None => Err(error(format!("{name} must be a number of seconds"))),
        },
    }
}
