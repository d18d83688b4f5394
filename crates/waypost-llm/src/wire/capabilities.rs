//! The capabilities of a server. Servers differ in small things and show it only by refusing a request: each refusal
//! that is understood removes one capability.

use waypost_config::Structured;

use super::ServerError;

/// The name of the field that limits the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokensKey {
    /// `max_tokens`: the original name.
    MaxTokens,
    /// `max_completion_tokens`: required by OpenAI's newer models.
    MaxCompletionTokens,
}

/// The features that requests to a server may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How the server enforces well-formed answers.
    pub structured: Structured,
    /// The name of the field that limits the answer.
    pub tokens_key: TokensKey,
    /// Whether the server accepts a temperature.
    pub temperature: bool,
    /// Whether the server can stream its answers.
    pub streams: bool,
    /// Whether the server can report the tokens of a stream.
    pub stream_usage: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            structured: Structured::Schema,
            tokens_key: TokensKey::MaxTokens,
            temperature: true,
            streams: true,
            stream_usage: true,
        }
    }
}

/// A capability that was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downgrade {
    /// The remaining capabilities.
    pub capabilities: Capabilities,
    /// What is requested now, in short.
    pub to: &'static str,
}

impl Capabilities {
    /// Returns the capabilities to retry with after a server rejected a request with this error; `None` if that would
    /// not help.
    pub fn after(&self, said: &ServerError) -> Option<Downgrade> {
        let words = format!("{} {}", said.kind, said.message).to_ascii_lowercase();
        let has = |any: &[&str]| any.iter().any(|word| words.contains(word));
        let to = |capabilities: Capabilities, to: &'static str| Some(Downgrade { capabilities, to });
        if has(&["max_completion_tokens"]) && self.tokens_key == TokensKey::MaxTokens {
            return to(Self { tokens_key: TokensKey::MaxCompletionTokens, ..*self }, "max_completion_tokens");
        }
        if has(&["stream_options", "include_usage"]) && self.streams && self.stream_usage {
            return to(Self { stream_usage: false, ..*self }, "no usage in streams");
        }
        if has(&["temperature"]) && self.temperature {
            return to(Self { temperature: false, ..*self }, "no temperature");
        }
        let is_of_shape = has(&[
            "response_format",
            "json_schema",
            "json_object",
            "schema",
            "grammar",
            "guided",
            "structured",
            "tool",
            "strict",
        ]);
        if !is_of_shape && has(&["stream"]) && self.streams {
            return to(Self { streams: false, ..*self }, "no stream");
        }
        // A server that gives no reason may object to the structure of the answer. The reasons below would apply to any
        // request.
        let would_not_help = has(&[
            "context",
            "too long",
            "too many tokens",
            "maximum",
            "credit",
            "quota",
            "billing",
            "balance",
            "api key",
            "api_key",
            "no such model",
            "not found",
            "does not exist",
        ]);
        let lower = self.structured.lower().filter(|_| is_of_shape || !would_not_help)?;
        to(Self { structured: lower, ..*self }, lower.name())
    }
}
