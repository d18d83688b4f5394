//! Reads a streamed answer.

use serde_json::Value;

use super::sse::Events;
use waypost_config::Api;

use super::{
    ANSWER_BYTES_MAX, PartialAnswer, STREAM_BYTES_MAX, ServerError, Usage, WireError, anthropic, error_body,
    openai,
};
use crate::{Answer, ModelRequest};

/// The end of a stream of OpenAI's protocol.
const DONE: &str = "[DONE]";

/// Reads a streamed answer. How the bytes are split makes no difference.
#[derive(Debug)]
pub struct StreamReader {
    api: Api,
    events: Events,
    parts: PartialAnswer,
    bytes: usize,
    characters: u64,
}

impl StreamReader {
    pub fn new(api: Api) -> Self {
        Self { api, events: Events::default(), parts: PartialAnswer::default(), bytes: 0, characters: 0 }
    }

    /// Processes more bytes. After an error the reader must not be used further, except for [`StreamReader::so_far`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > STREAM_BYTES_MAX {
            return Err(WireError::TooMuch(STREAM_BYTES_MAX));
        }
        for event in self.events.push(bytes) {
            self.event(&event)?;
            if self.parts.over {
                break;
            }
        }
        Ok(())
    }

    /// Whether the server has ended the answer.
    pub fn is_over(&self) -> bool {
        self.parts.over
    }

    /// Characters of the answer so far.
    pub fn characters(&self) -> u64 {
        self.characters
    }

    /// Returns the usage so far; `None` if nothing has arrived.
    pub fn so_far(&self, ask: &ModelRequest) -> Option<Usage> {
        let has_begun = self.parts.tokens_in.is_some() || self.parts.bytes() > 0;
        has_begun.then(|| self.parts.usage(ask))
    }

    /// Returns the answer, after the stream has ended or was closed.
    pub fn end(&mut self, ask: &ModelRequest, model: &str) -> Result<Answer, WireError> {
        let events = std::mem::take(&mut self.events);
        if !self.parts.over
            && let Some(event) = events.end()
        {
            match self.event(&event) {
                // Half an event does not count: what matters is whether the answer had ended before.
                Ok(()) | Err(WireError::Garbled(_)) => {}
                Err(error @ (WireError::BrokeOff | WireError::Server(_) | WireError::TooMuch(_))) => {
                    return Err(error);
                }
            }
        }
        // A partial answer stays here, because the caller may need its usage.
        self.parts.end()?;
        std::mem::take(&mut self.parts).answer(ask, model)
    }

    fn event(&mut self, data: &str) -> Result<(), WireError> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == DONE {
            self.parts.over = true;
            return Ok(());
        }
        let garbled =
            |_| WireError::Garbled(format!("an event that is not JSON: {}", error_body::start_of(data)));
        let event: Value = serde_json::from_str(data).map_err(garbled)?;
        if let Some(said) = ServerError::within(&event) {
            return Err(WireError::Server(said));
        }
        let before = self.parts.lengths();
        match self.api {
            Api::OpenAi => openai::event(&event, &mut self.parts),
            Api::Anthropic => anthropic::event(&event, &mut self.parts),
        }
        self.characters += self.parts.characters_since(before);
        if self.parts.bytes() > ANSWER_BYTES_MAX {
            return Err(WireError::TooMuch(ANSWER_BYTES_MAX));
        }
        Ok(())
    }
}
