//! The protocols of model servers: bodies of requests, and the meaning of responses and streams. Pure: bytes in, bytes
//! out; [`crate::Client`] sends them.

mod anthropic;
mod capabilities;
mod error_body;
mod openai;
mod partial_answer;
mod sse;
mod stream;

use serde_json::Value;

use waypost_config::Api;

use self::partial_answer::PartialAnswer;
use crate::{Answer, ModelRequest};

pub use capabilities::{Capabilities, Downgrade, TokensKey};
pub use error_body::{SAID_COLUMNS_MAX, ServerError};
pub use partial_answer::{ANSWER_BYTES_MAX, Usage, WireError};
pub use stream::StreamReader;

/// Bytes of all data of one streamed answer: a stream wraps each word in some hundreds of bytes.
pub const STREAM_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Returns the body of a request. `model` is the server's name for the model.
pub fn request(api: Api, ask: &ModelRequest, model: &str, capabilities: &Capabilities) -> Value {
    match api {
        Api::OpenAi => openai::request(ask, model, capabilities),
        Api::Anthropic => anthropic::request(ask, model, capabilities),
    }
}

/// Parses an answer that came in one piece, of at most [`ANSWER_BYTES_MAX`] bytes.
pub fn whole(api: Api, ask: &ModelRequest, model: &str, body: &str) -> Result<Answer, WireError> {
    let garbled = |_| WireError::Garbled(format!("no JSON: {}", error_body::start_of(body)));
    let body: Value = serde_json::from_str(body).map_err(garbled)?;
    let mut parts = PartialAnswer::default();
    match api {
        Api::OpenAi => openai::whole(&body, &mut parts)?,
        Api::Anthropic => anthropic::whole(&body, &mut parts)?,
    }
    parts.answer(ask, model)
}

/// Parses a server's list of models and returns their names.
pub fn listed(body: &str) -> Option<Vec<String>> {
    let body: Value = serde_json::from_str(body).ok()?;
    // OpenAI and Anthropic use `data`; Ollama's own list uses `models`.
    let list = body.get("data").or_else(|| body.get("models"))?.as_array()?;
    let name = |one: &Value| {
        let name = one.get("id").or_else(|| one.get("name")).or_else(|| one.get("model"));
        name.and_then(Value::as_str).map(str::to_owned)
    };
    Some(list.iter().filter_map(name).collect())
}
