//! OpenAI's `chat/completions`, for OpenAI and compatible servers.

use serde_json::{Map, Value, json};

use super::partial_answer::PartialAnswer;
use super::{Capabilities, ServerError, TokensKey, WireError};
use crate::{Ended, ModelRequest, Speaker};
use waypost_config::Structured;

pub(super) fn request(ask: &ModelRequest, model: &str, capabilities: &Capabilities) -> Value {
    let mut messages = Vec::with_capacity(ask.turns.len() + 1);
    if !ask.system.is_empty() {
        messages.push(json!({ "role": "system", "content": ask.system }));
    }
    for turn in &ask.turns {
        let role = match turn.by {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        };
        messages.push(json!({ "role": role, "content": turn.text }));
    }
    let mut body = Map::new();
    let mut say = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    say("model", model.into());
    say("messages", messages.into());
    let tokens_key = match capabilities.tokens_key {
        TokensKey::MaxTokens => "max_tokens",
        TokensKey::MaxCompletionTokens => "max_completion_tokens",
    };
    say(tokens_key, ask.tokens_max.into());
    if capabilities.temperature {
        say("temperature", (f64::from(ask.temperature) / 100.0).into());
    }
    if let Some(schema) = &ask.schema {
        match capabilities.structured {
            Structured::Schema => {
                let schema = json!({ "name": schema.name, "strict": true, "schema": schema.schema });
                say("response_format", json!({ "type": "json_schema", "json_schema": schema }));
            }
            Structured::Json => say("response_format", json!({ "type": "json_object" })),
            Structured::None => {}
        }
    }
    if capabilities.streams {
        say("stream", true.into());
        if capabilities.stream_usage {
            say("stream_options", json!({ "include_usage": true }));
        }
    }
    Value::Object(body)
}

pub(super) fn whole(body: &Value, parts: &mut PartialAnswer) -> Result<(), WireError> {
    if let Some(error) = ServerError::within(body) {
        return Err(WireError::Server(error));
    }
    let choice = body.get("choices").and_then(|choices| choices.get(0));
    let Some(message) = choice.and_then(|choice| choice.get("message")) else {
        return Err(WireError::Garbled("an object without choices[0].message".to_owned()));
    };
    about(body, parts);
    take_message(message, parts);
    parts.ended = choice.and_then(|choice| ended(choice.get("finish_reason")?));
    // The response came in one piece, so it is complete unless it reports otherwise.
    parts.over = true;
    Ok(())
}

pub(super) fn event(event: &Value, parts: &mut PartialAnswer) {
    about(event, parts);
    let Some(choice) = event.get("choices").and_then(|choices| choices.get(0)) else { return };
    if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
        take_message(delta, parts);
    }
    if let Some(ended) = choice.get("finish_reason").and_then(ended) {
        parts.ended = Some(ended);
    }
}

/// Reads the model and the token usage.
fn about(body: &Value, parts: &mut PartialAnswer) {
    if let Some(model) = body.get("model").and_then(Value::as_str) {
        parts.model = Some(model.to_owned());
    }
    let Some(usage) = body.get("usage").filter(|usage| usage.is_object()) else { return };
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    parts.tokens_in = number("prompt_tokens").or(parts.tokens_in);
    parts.tokens_out = number("completion_tokens").or(parts.tokens_out);
}

fn take_message(message: &Value, parts: &mut PartialAnswer) {
    match message.get("content") {
        Some(Value::String(text)) => parts.text.push_str(text),
        // Some servers send a list of parts.
        Some(Value::Array(pieces)) => {
            let texts = pieces.iter().filter_map(|piece| piece.get("text")?.as_str());
            texts.for_each(|text| parts.text.push_str(text));
        }
        Some(_) | None => {}
    }
    if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
        parts.refusal.push_str(refusal);
    }
}

fn ended(reason: &Value) -> Option<Ended> {
    match reason.as_str()? {
        "length" | "max_tokens" => Some(Ended::Cut),
        "content_filter" => Some(Ended::Refused),
        "" => None,
        // `stop`, `tool_calls` and the names of other servers.
        _ => Some(Ended::Whole),
    }
}
