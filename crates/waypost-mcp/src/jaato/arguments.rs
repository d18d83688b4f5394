//! Arguments by the plugin's rules: an empty argument counts as missing, and errors use the plugin's wording.

use serde_json::Value;

use super::reply::error;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// A text. An empty or missing one is `None`.
pub(super) fn text(call: &Call, name: &str) -> Result<Option<String>, ToolError> {
    match call.arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(error(format!("{name} must be a string"))),
    }
}

/// A required text.
pub(super) fn needed(call: &Call, name: &str) -> Result<String, ToolError> {
    text(call, name)?.ok_or_else(|| error(format!("{name} is required")))
}

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

/// A number of seconds, clamped to 0 up to `max`.
pub(super) fn seconds(call: &Call, name: &str, default: f64, max: f64) -> Result<f64, ToolError> {
    match call.arguments.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => match value.as_f64() {
            Some(seconds) => Ok(seconds.clamp(0.0, max)),
            None => Err(error(format!("{name} must be a number of seconds"))),
        },
    }
}
