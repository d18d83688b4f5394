//! Anthropic's `v1/messages`. A schema is enforced by a tool that the model must call: the tool's arguments are the
//! answer.

use serde_json::{Map, Value, json};

use super::partial_answer::PartialAnswer;
use super::{Capabilities, ServerError, WireError};
use crate::{Ended, ModelRequest, Speaker};
use waypost_config::Structured;

/// The highest temperature that the server accepts, in hundredths.
const TEMPERATURE_MAX: u32 = 100;

pub(super) fn request(ask: &ModelRequest, model: &str, capabilities: &Capabilities) -> Value {
    let turns = ask.turns.iter().map(|turn| {
        let role = match turn.by {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        };
        json!({ "role": role, "content": turn.text })
    });
    let mut body = Map::new();
    let mut say = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    say("model", model.into());
    say("max_tokens", ask.tokens_max.into());
    if !ask.system.is_empty() {
        say("system", ask.system.as_str().into());
    }
    say("messages", turns.collect::<Vec<Value>>().into());
    if capabilities.temperature {
        say("temperature", (f64::from(ask.temperature.min(TEMPERATURE_MAX)) / 100.0).into());
    }
    match (&ask.schema, capabilities.structured) {
        (Some(schema), Structured::Schema) => {
            let description = "Gives the answer. Call it once, with the whole answer.";
            let tool =
                json!({ "name": schema.name, "description": description, "input_schema": schema.schema });
            say("tools", json!([tool]));
            say("tool_choice", json!({ "type": "tool", "name": schema.name }));
        }
        // The protocol has nothing between a schema and plain text.
        (Some(_), Structured::Json | Structured::None) | (None, _) => {}
    }
    if capabilities.streams {
        say("stream", true.into());
    }
    Value::Object(body)
}

pub(super) fn whole(body: &Value, parts: &mut PartialAnswer) -> Result<(), WireError> {
    if let Some(said) = ServerError::within(body) {
        return Err(WireError::Server(said));
    }
    let Some(blocks) = body.get("content").and_then(Value::as_array) else {
        return Err(WireError::Garbled("an object without content".to_owned()));
    };
    for block in blocks {
        begin(block, parts);
        if let (Some(input), Some("tool_use")) =
            (block.get("input"), block.get("type").and_then(Value::as_str))
        {
            parts.tool = Some(input.to_string());
        }
    }
    about(body, parts);
    parts.ended = body.get("stop_reason").and_then(ended);
    parts.over = true;
    Ok(())
}

pub(super) fn event(event: &Value, parts: &mut PartialAnswer) {
    match event.get("type").and_then(Value::as_str) {
        Some("message_start") => {
            if let Some(message) = event.get("message") {
                about(message, parts);
            }
        }
        Some("content_block_start") => {
            if let Some(block) = event.get("content_block") {
                begin(block, parts);
            }
        }
        Some("content_block_delta") => {
            let Some(delta) = event.get("delta") else { return };
            let text = |key: &str| delta.get(key).and_then(Value::as_str);
            match delta.get("type").and_then(Value::as_str) {
                Some("text_delta") => parts.text.push_str(text("text").unwrap_or("")),
                Some("input_json_delta") => {
                    parts.tool.get_or_insert_default().push_str(text("partial_json").unwrap_or(""));
                }
                // Reasoning and signatures are not part of the answer.
                Some(_) | None => {}
            }
        }
        Some("message_delta") => {
            about(event, parts);
            if let Some(ended) = event.get("delta").and_then(|delta| ended(delta.get("stop_reason")?)) {
                parts.ended = Some(ended);
            }
        }
        Some("message_stop") => parts.over = true,
        // Pings, ends of blocks and future events.
        Some(_) | None => {}
    }
}

/// Handles the start of a block, which may already contain text.
fn begin(block: &Value, parts: &mut PartialAnswer) {
    match block.get("type").and_then(Value::as_str) {
        Some("text") => parts.text.push_str(block.get("text").and_then(Value::as_str).unwrap_or("")),
        Some("tool_use") => drop(parts.tool.get_or_insert_default()),
        Some(_) | None => {}
    }
}

/// Reads the model and the token usage.
fn about(message: &Value, parts: &mut PartialAnswer) {
    if let Some(model) = message.get("model").and_then(Value::as_str) {
        parts.model = Some(model.to_owned());
    }
    let Some(usage) = message.get("usage").filter(|usage| usage.is_object()) else { return };
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    // Tokens read from or written to a cache are input tokens too.
    let cached =
        ["cache_creation_input_tokens", "cache_read_input_tokens"].map(|key| number(key).unwrap_or(0));
    if let Some(tokens) = number("input_tokens") {
        parts.tokens_in = Some(cached.iter().fold(tokens, |sum, more| sum.saturating_add(*more)));
    }
    parts.tokens_out = number("output_tokens").or(parts.tokens_out);
}

fn ended(reason: &Value) -> Option<Ended> {
    match reason.as_str()? {
        "max_tokens" | "model_context_window_exceeded" | "pause_turn" => Some(Ended::Cut),
        "refusal" => Some(Ended::Refused),
        // `end_turn`, `tool_use`, `stop_sequence` and future reasons.
        _ => Some(Ended::Whole),
    }
}
