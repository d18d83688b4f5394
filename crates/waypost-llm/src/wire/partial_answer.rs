//! An answer while it arrives: its text so far, its tokens so far, and how it ended.

use super::ServerError;
use crate::token_estimate::{estimate, estimate_ask};
use crate::{Answer, Ended, ModelRequest};

/// Bytes of an answer's text.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Why a response is not a valid answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// It ended early.
    BrokeOff,
    /// It has an unknown format.
    Garbled(String),
    /// The server reported an error.
    Server(ServerError),
    /// It has more than this many bytes.
    TooMuch(usize),
}

/// The tokens of a call that ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub tokens_in: u64,
    /// Tokens of the part of an answer that arrived.
    pub tokens_out: u64,
    /// Whether they are estimated, because the server had not reported them yet.
    pub estimated: bool,
}

impl Usage {
    /// The usage of a request of which only its text is known.
    pub fn of_question(ask: &ModelRequest) -> Self {
        Self { tokens_in: estimate_ask(ask), tokens_out: 0, estimated: true }
    }
}

#[derive(Debug, Default)]
pub(super) struct PartialAnswer {
    pub(super) text: String,
    /// The arguments of a tool call; preferred over the text.
    pub(super) tool: Option<String>,
    pub(super) refusal: String,
    pub(super) ended: Option<Ended>,
    pub(super) model: Option<String>,
    pub(super) tokens_in: Option<u64>,
    pub(super) tokens_out: Option<u64>,
    /// Whether the server has ended the answer.
    pub(super) over: bool,
}

impl PartialAnswer {
    pub(super) fn bytes(&self) -> usize {
        self.lengths().iter().sum()
    }

    /// The length of each text in bytes, for [`PartialAnswer::characters_since`].
    pub(super) fn lengths(&self) -> [usize; 3] {
        [self.text.len(), self.tool.as_ref().map_or(0, String::len), self.refusal.len()]
    }

    /// Returns the characters that arrived since the texts had these lengths.
    pub(super) fn characters_since(&self, before: [usize; 3]) -> u64 {
        let texts = [Some(&self.text), self.tool.as_ref(), Some(&self.refusal)];
        let new = texts.into_iter().zip(before).filter_map(|(text, before)| text?.get(before..));
        new.map(|text| text.chars().count() as u64).sum()
    }

    /// Returns the tokens so far. Servers report the tokens of an answer at its end, so they are estimated.
    pub(super) fn usage(&self, ask: &ModelRequest) -> Usage {
        let texts = [Some(&self.text), self.tool.as_ref(), Some(&self.refusal)];
        let heard: u64 = texts.into_iter().flatten().map(|text| estimate(text)).sum();
        Usage {
            tokens_in: self.tokens_in.unwrap_or_else(|| estimate_ask(ask)),
            tokens_out: self.tokens_out.unwrap_or_default().max(heard),
            estimated: true,
        }
    }

    /// Returns how the answer ended; an error if it has not.
    pub(super) fn end(&self) -> Result<Ended, WireError> {
        match self.ended {
            _ if !self.refusal.is_empty() => Ok(Ended::Refused),
            Some(ended) => Ok(ended),
            None if self.over => Ok(Ended::Whole),
            None => Err(WireError::BrokeOff),
        }
    }

    /// Returns the answer, if it has ended.
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
