//! The message of an approval or of a gate's outcome: the text that is sealed and signed. It is rebuilt from the record
//! and the plan, never read.

use std::fmt::Write as _;
use std::io;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use waypost_core::Timestamp;
use waypost_core::canonical::{Hash, sha256};
use waypost_text::hex;

/// Maximum bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// What is encoded besides bytes that are not ASCII. Without `%` two values could be written alike.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// What was approved, when and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    pub scope: Scope<'a>,
    pub plan: &'a str,
    pub digest: Hash,
    pub act: Act<'a>,
    /// Written to the second.
    pub at: Timestamp,
    /// Random, so that no two approvals are alike.
    pub nonce: [u8; 16],
    pub signer: Signer<'a>,
}

/// Where an approval counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// In one store, for a version that was seen. `history` is the chain hash of that version, and `place` names the location
    /// of a store in files, of which there may be copies.
    Store { id: &'a str, place: Option<&'a str>, version: u64, history: Hash },
    /// Wherever the plan has this digest.
    Portable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act<'a> {
    /// `gates` are the tasks for people in other plans that stood before the work, as text.
    Approval {
        note: Option<&'a str>,
        expires: Option<Timestamp>,
        gates: Option<&'a str>,
    },
    Gate {
        task: &'a str,
        attempt: u32,
        outcome: &'a str,
        answer: Option<&'a str>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer<'a> {
    /// A principal of the allowed signers, such as `ada@example.org`.
    Principal(&'a str),
    /// An account of a host: `1000@host`.
    Account(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message to sign has {0} bytes; the maximum is {MESSAGE_BYTES_MAX}")]
pub struct MessageTooLong(pub usize);

impl Message<'_> {
    /// Returns a nonce that was never used.
    pub fn random_nonce() -> io::Result<[u8; 16]> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(nonce)
    }

    /// Returns a time as a message has it: to the second.
    pub fn to_the_second(at: Timestamp) -> Timestamp {
        const SECOND: i64 = 1_000_000;
        Timestamp::from_micros(at.as_micros().div_euclid(SECOND) * SECOND)
    }

    /// Returns the text: one `key value` a line, in ASCII.
    pub fn encode(&self) -> Result<String, MessageTooLong> {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            // Writing to a string cannot fail.
            let _written = writeln!(text, "{key} {}", utf8_percent_encode(value, ENCODED));
        };
        let hashed = |value: Option<&str>| value.map_or("none".to_owned(), |v| named(&sha256(v.as_bytes())));
        match self.scope {
            Scope::Store { id, place, .. } => {
                line("store", id);
                place.into_iter().for_each(|place| line("place", place));
            }
            Scope::Portable => line("store", "any"),
        }
        line("plan", self.plan);
        let (version, history) = match &self.scope {
            Scope::Store { version, history, .. } => (version.to_string(), named(history)),
            Scope::Portable => ("any".to_owned(), "any".to_owned()),
        };
        line("version", &version);
        line("digest", &named(&self.digest));
        line("history", &history);
        match &self.act {
            Act::Approval { note, .. } => line("note", &hashed(*note)),
            Act::Gate { task, attempt, outcome, answer } => {
                line("task", task);
                line("attempt", &attempt.to_string());
                line("outcome", outcome);
                line("answer", &hashed(*answer));
            }
        }
        line("approved-at", &seconds(self.at));
        if let Act::Approval { expires, .. } = self.act {
            line("expires", &expires.map_or("never".to_owned(), seconds));
        }
        if let Act::Approval { gates: Some(gates), .. } = self.act {
            line("gates", &hashed(Some(gates)));
        }
        line("nonce", &hex(&self.nonce));
        match self.signer {
            Signer::Principal(name) => line("signer", name),
            Signer::Account(account) => line("account", account),
        }
        let has_place = matches!(self.scope, Scope::Store { place: Some(_), .. });
        let first = match self.act {
            Act::Approval { .. } if has_place => "waypost-approval/3\n",
            Act::Approval { gates: Some(_), .. } => "waypost-approval/2\n",
            Act::Approval { gates: None, .. } => "waypost-approval/1\n",
            Act::Gate { .. } if has_place => "waypost-gate/2\n",
            Act::Gate { .. } => "waypost-gate/1\n",
        };
        let text = format!("{first}{text}");
        if text.len() > MESSAGE_BYTES_MAX { Err(MessageTooLong(text.len())) } else { Ok(text) }
    }
}

/// A hash with the name of its algorithm.
fn named(hash: &Hash) -> String {
    format!("sha256:{}", hex(hash))
}

fn seconds(at: Timestamp) -> String {
    Message::to_the_second(at).to_string()
}
