//! Parses the error responses of servers: every server has its own format.

use serde_json::Value;

/// Columns of a server's message that are kept.
pub const SAID_COLUMNS_MAX: usize = 300;

/// An error that a server reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// The server's name for the error; may be empty.
    pub kind: String,
    pub message: String,
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.message.is_empty(), self.kind.is_empty()) {
            (true, true) => f.write_str("it said nothing about it"),
            (true, false) => f.write_str(&self.kind),
            (false, true) => f.write_str(&self.message),
            (false, false) => write!(f, "{} ({})", self.message, self.kind),
        }
    }
}

impl ServerError {
    /// Parses the body of an error response.
    pub fn of(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(body) => Self::within(&body)
                .unwrap_or_else(|| Self { kind: String::new(), message: start_of(&body.to_string()) }),
            Err(_) => Self { kind: String::new(), message: start_of(body) },
        }
    }

    /// Returns the error in a value, if there is one. Known formats: OpenAI's and Anthropic's `error`, a text in its
    /// place (Ollama), vLLM's flat object, FastAPI's `detail`, and a list with one of these (Google).
    pub(super) fn within(body: &Value) -> Option<Self> {
        if let Some(first) = body.as_array().and_then(|list| list.first()) {
            return Self::within(first);
        }
        let text = |value: &Value, key: &str| match value.get(key) {
            Some(Value::String(text)) => start_of(text),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        match body.get("error") {
            Some(Value::String(message)) => {
                return Some(Self { kind: String::new(), message: start_of(message) });
            }
            Some(error @ Value::Object(_)) => {
                let kinds = ["type", "code", "status"].map(|key| text(error, key));
                let kind = kinds.into_iter().find(|kind| !kind.is_empty()).unwrap_or_default();
                let param = text(error, "param");
                let message = text(error, "message");
                let names = |message: &str| param.is_empty() || message.contains(&param);
                let message = if names(&message) { message } else { format!("{message} ({param})") };
                return Some(Self { kind, message });
            }
            Some(_) | None => {}
        }
        if let Some(detail) = body.get("detail").filter(|detail| !detail.is_null()) {
            let message = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
            return Some(Self { kind: String::new(), message: start_of(&message) });
        }
        if body.get("object").and_then(Value::as_str) == Some("error") {
            return Some(Self { kind: text(body, "type"), message: text(body, "message") });
        }
        None
    }
}

/// Returns the beginning of a text, on one line.
pub(super) fn start_of(text: &str) -> String {
    waypost_text::excerpt(text, SAID_COLUMNS_MAX).into_owned()
}
