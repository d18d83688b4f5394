//! An answer while it arrives: its text so far, its tokens so far, and how it ended.

use super::ServerError;
use crate::token_estimate::{estimate, estimate_ask};
use crate::{Answer, Ended, ModelRequest};

/// Bytes of an answer's text.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Why what a server sent is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// It ended without its end.
    BrokeOff,
    /// It is something else.
    Garbled(String),
    /// The server says that something went wrong.
    Server(ServerError),
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
    pub fn of_question(ask: &ModelRequest) -> Self {
        Self { tokens_in: estimate_ask(ask), tokens_out: 0, estimated: true }
    }
}

/// What is known of an answer while it comes.
#[derive(Debug, Default)]
pub(super) struct PartialAnswer {
    pub(super) text: String,
    /// What came as the arguments of a tool; it counts before the text.
    pub(super) tool: Option<String>,
    pub(super) refusal: String,
    pub(super) ended: Option<Ended>,
    pub(super) model: Option<String>,
    pub(super) tokens_in: Option<u64>,
    pub(super) tokens_out: Option<u64>,
    /// Whether the server has said that nothing more comes.
    pub(super) over: bool,
}

impl PartialAnswer {
    pub(super) fn bytes(&self) -> usize {
        self.lengths().iter().sum()
    }

    /// Bytes of each text, for [`PartialAnswer::characters_since`].
    pub(super) fn lengths(&self) -> [usize; 3] {
        [self.text.len(), self.tool.as_ref().map_or(0, String::len), self.refusal.len()]
    }

    /// Characters that came since the texts were so long.
    pub(super) fn characters_since(&self, before: [usize; 3]) -> u64 {
        let texts = [Some(&self.text), self.tool.as_ref(), Some(&self.refusal)];
        let new = texts.into_iter().zip(before).filter_map(|(text, before)| text?.get(before..));
        new.map(|text| text.chars().count() as u64).sum()
    }

    /// What it has cost so far. Servers count what they have said at the end, so what is there is estimated.
    pub(super) fn usage(&self, ask: &ModelRequest) -> Usage {
        let texts = [Some(&self.text), self.tool.as_ref(), Some(&self.refusal)];
        let heard: u64 = texts.into_iter().flatten().map(|text| estimate(text)).sum();
        Usage {
            tokens_in: self.tokens_in.unwrap_or_else(|| estimate_ask(ask)),
            tokens_out: self.tokens_out.unwrap_or_default().max(heard),
            estimated: true,
        }
    }

    /// How it has ended, if it has.
    pub(super) fn end(&self) -> Result<Ended, WireError> {
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
    pub(super) fn answer(self, ask: &ModelRequest, model: &str) -> Result<Answer, WireError> {
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
