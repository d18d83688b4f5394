//! Estimates how many tokens a text has, without the model's own tokenizer. The estimate tends to be too high.
//!
//! It is used before a call, when only an estimate is possible, and for the compression of digests, where both sides
//! are estimated by the same rule. A server's own count is always preferred. Compared with two tokenizers (cl100k and
//! o200k) on prose, code, JSON and other scripts, it returns between 0.9 and 2.2 times their counts.

use crate::ModelRequest;

/// Letters of a word that make up one token.
const LETTERS_PER_TOKEN: usize = 6;
/// Digits that make up one token.
const DIGITS_PER_TOKEN: usize = 3;
/// Fifths of a token for a letter outside ASCII, in scripts that separate words.
const FOREIGN_LETTER_FIFTHS: usize = 3;
/// Tokens that servers add for each turn of a conversation.
const TOKENS_PER_TURN: u64 = 4;

/// The kind of a run of characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Digits,
    Foreign,
    /// Scripts without spaces, punctuation and symbols: each character counts on its own.
    Single,
    Space,
}

fn kind_of(character: char) -> Kind {
    match character {
        'a'..='z' | 'A'..='Z' => Kind::Letters,
        '0'..='9' => Kind::Digits,
        ' ' | '\n' | '\r' | '\t' => Kind::Space,
        '\u{80}'..='\u{2E7F}' if character.is_alphabetic() => Kind::Foreign,
        _ => Kind::Single,
    }
}

/// Estimates the tokens of a text.
pub fn estimate(text: &str) -> u64 {
    let mut fifths = 0;
    let mut characters = text.chars().peekable();
    while let Some(first) = characters.next() {
        let kind = kind_of(first);
        let mut length: usize = 1;
        while kind != Kind::Single && characters.peek().is_some_and(|next| kind_of(*next) == kind) {
            characters.next();
            length += 1;
        }
        fifths += match kind {
            Kind::Letters => 5 * length.div_ceil(LETTERS_PER_TOKEN),
            Kind::Digits => 5 * length.div_ceil(DIGITS_PER_TOKEN),
            Kind::Foreign => (FOREIGN_LETTER_FIFTHS * length).max(5),
            Kind::Single if first.len_utf8() > 3 => 15,
            Kind::Single if first.len_utf8() > 2 => 6,
            Kind::Single => 5,
            // A single space belongs to the word after it; other white space, such as a line break with its
            // indentation, is one token.
            Kind::Space if length == 1 && first == ' ' => 0,
            Kind::Space => 5,
        } as u64;
    }
    fifths.div_ceil(5)
}

/// Estimates the tokens of a request.
pub fn estimate_ask(ask: &ModelRequest) -> u64 {
    let turns = ask.turns.iter().map(|turn| estimate(&turn.text) + TOKENS_PER_TURN).sum::<u64>();
    let schema = ask.schema.as_ref().map_or(0, |schema| estimate(&schema.schema.to_string()));
    estimate(&ask.system) + TOKENS_PER_TURN + turns + schema
}
