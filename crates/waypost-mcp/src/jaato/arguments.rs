//! Arguments by the plugin's rules: an empty argument counts as missing, and errors use the plugin's wording.

use serde_json::Value;

use super::reply::error;
use crate::reply_text;
use crate::tool_call::Call;
use crate::tool_error::ToolError;

/// Bytes of the name of an unknown argument that a reply repeats.
pub(super) const NAME_BYTES: usize = 80;
/// Maximum number of unknown names in an error.
const UNKNOWN_NAMED_MAX: usize = 10;

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

/// Returns both values, or one error that names what is wrong with each.
pub(super) fn both<A, B>(
    one: Result<A, ToolError>,
    other: Result<B, ToolError>,
) -> Result<(A, B), ToolError> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(one), Err(other)) => Err(error(format!("{}; {}", one.text(), other.text()))),
        (Err(wrong), Ok(_)) | (Ok(_), Err(wrong)) => Err(wrong),
    }
}

/// Names arguments that nothing takes, for the end of an error; empty for none.
pub(super) fn unknown_names(unknown: &[&str]) -> String {
    let named = unknown.iter().take(UNKNOWN_NAMED_MAX).map(|name| reply_text::cut(name, NAME_BYTES));
    let named: Vec<String> = named.collect();
    if named.is_empty() { String::new() } else { format!("; unknown: {}", named.join(", ")) }
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
