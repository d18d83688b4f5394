//! How a server wants to be asked. Servers differ in small things, and say so only when they refuse: each refusal that is
//! understood takes one thing away.

use waypost_config::Structured;

use super::ServerError;

/// How the bound of an answer is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokensKey {
    /// As it was from the beginning.
    MaxTokens,
    /// As OpenAI's newer models want it.
    MaxCompletionTokens,
}

/// How a server wants to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What makes its answers well-formed.
    pub structured: Structured,
    /// How the bound of an answer is called.
    pub tokens_key: TokensKey,
    /// Whether it is told how freely to choose its words.
    pub temperature: bool,
    /// Whether it sends its answers piece by piece.
    pub streams: bool,
    /// Whether it can be asked for the tokens of a stream.
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

/// One thing less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downgrade {
    /// The capabilities without it.
    pub capabilities: Capabilities,
    /// What is asked for now, in a word.
    pub to: &'static str,
}

impl Capabilities {
    /// How to ask instead, after a server refused the question (400, 422) and said this; nothing where that would not help.
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
        // A server that does not say what it minds may mind this; what follows would be refused in any form.
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
