//! How models are spoken to: the bodies of requests, and what answers and streams of answers mean. Pure: bytes in, bytes out.
//! Who sends them, how often and to whom is the engine's business.

mod anthropic;
mod capabilities;
mod error_body;
mod openai;
mod sse;
mod stream;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::token_estimate::{estimate, estimate_ask};
use crate::{Answer, Ask, Ended};

use waypost_config::Api;

pub use capabilities::{Concession, Manner, TokensKey};
pub use error_body::{SAID_COLUMNS_MAX, Said};
pub use stream::Listener;

/// Bytes of an answer's text.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of everything that is sent for one answer: a stream wraps each word in some hundreds of them.
pub const STREAM_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The body of a question for the model that the server calls so.
pub fn request(api: Api, ask: &Ask, model: &str, manner: &Manner) -> Value {
    match api {
        Api::OpenAi => openai::request(ask, model, manner),
        Api::Anthropic => anthropic::request(ask, model, manner),
    }
}

/// The meaning of an answer that came in one piece.
pub fn whole(api: Api, ask: &Ask, model: &str, body: &str) -> Result<Answer, WireError> {
    if body.len() > ANSWER_BYTES_MAX {
        return Err(WireError::TooMuch(ANSWER_BYTES_MAX));
    }
    let garbled = |_| WireError::Garbled(format!("no JSON: {}", error_body::start_of(body)));
    let body: Value = serde_json::from_str(body).map_err(garbled)?;
    let mut parts = Parts::default();
    match api {
        Api::OpenAi => openai::whole(&body, &mut parts)?,
        Api::Anthropic => anthropic::whole(&body, &mut parts)?,
    }
    parts.answer(ask, model)
}

/// The names of the models that a server has, from its answer.
pub fn listed(body: &str) -> Option<Vec<String>> {
    let body: Value = serde_json::from_str(body).ok()?;
    // Both have `data`; Ollama's own list has `models`.
    let list = body.get("data").or_else(|| body.get("models"))?.as_array()?;
    let name = |one: &Value| {
        let name = one.get("id").or_else(|| one.get("name")).or_else(|| one.get("model"));
        name.and_then(Value::as_str).map(str::to_owned)
    };
    Some(list.iter().filter_map(name).collect())
}

/// Why what a server sent is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// It ended without its end.
    BrokeOff,
    /// It is something else.
    Garbled(String),
    /// The server says that something went wrong.
    Said(Said),
    /// It has more bytes than are read: so many.
    TooMuch(usize),
}

/// What a call has cost that did not end in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the question.
    pub tokens_in: u64,
    /// Tokens of what came of an answer.
    pub tokens_out: u64,
    /// Whether they are estimated, because the server had not said yet.
    pub estimated: bool,
}

impl Usage {
    /// Of a question of which nothing is known but that it was asked.
    pub fn of_question(ask: &Ask) -> Self {
        Self { tokens_in: estimate_ask(ask), tokens_out: 0, estimated: true }
    }
}

/// What is known of an answer while it comes.
#[derive(Debug, Default)]
struct Parts {
    text: String,
    /// What came as the arguments of a tool; it counts before the text.
    tool: Option<String>,
    refusal: String,
    ended: Option<Ended>,
    model: Option<String>,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    /// Whether the server has said that nothing more comes.
    over: bool,
}

impl Parts {
    fn bytes(&self) -> usize {
        self.lengths().iter().sum()
    }

    /// Bytes of each text, for [`Parts::characters_since`].
    fn lengths(&self) -> [usize; 3] {
        [self.text.len(), self.tool.as_ref().map_or(0, String::len), self.refusal.len()]
    }

    /// Characters that came since the texts were so long.
    fn characters_since(&self, before: [usize; 3]) -> u64 {
        let texts = [Some(&self.text), self.tool.as_ref(), Some(&self.refusal)];
        let new = texts.into_iter().zip(before).filter_map(|(text, before)| text?.get(before..));
        new.map(|text| text.chars().count() as u64).sum()
    }

    /// What it has cost so far. Servers count what they have said at the end, so what is there is estimated.
    fn usage(&self, ask: &Ask) -> Usage {
        let texts = [Some(&self.text), self.tool.as_ref(), Some(&self.refusal)];
        let heard: u64 = texts.into_iter().flatten().map(|text| estimate(text)).sum();
        Usage {
            tokens_in: self.tokens_in.unwrap_or_else(|| estimate_ask(ask)),
            tokens_out: self.tokens_out.unwrap_or_default().max(heard),
            estimated: true,
        }
    }

    /// How it has ended, if it has.
    fn end(&self) -> Result<Ended, WireError> {
        if self.bytes() > ANSWER_BYTES_MAX {
            return Err(WireError::TooMuch(ANSWER_BYTES_MAX));
        }
        match self.ended {
            _ if !self.refusal.is_empty() => Ok(Ended::Refused),
            Some(ended) => Ok(ended),
            None if self.over => Ok(Ended::Whole),
            None => Err(WireError::BrokeOff),
        }
    }

    /// The answer, if it has an end.
    fn answer(self, ask: &Ask, model: &str) -> Result<Answer, WireError> {
        let ended = self.end()?;
        let text = match (ended, self.tool) {
            (Ended::Refused, _) if !self.refusal.is_empty() => self.refusal,
            (_, Some(tool)) => tool,
            (_, None) => self.text,
        };
        let estimated = self.tokens_in.is_none() || self.tokens_out.is_none();
        Ok(Answer {
            tokens_in: self.tokens_in.unwrap_or_else(|| estimate_ask(ask)),
            tokens_out: self.tokens_out.unwrap_or_else(|| estimate(&text)),
            text,
            ended,
            model: self.model.filter(|name| !name.is_empty()).unwrap_or_else(|| model.to_owned()),
            estimated,
        })
    }
}
