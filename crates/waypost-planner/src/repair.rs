//! What had to be put right in an answer before it could be used. Named, because people are told of it.

use serde::{Deserialize, Serialize};

/// Something in an answer that was not as asked for, and was read all the same.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// It began with a byte order mark.
    ByteOrderMark,
    /// The model thought aloud first, in `<think>`.
    Thinking,
    /// The JSON stood in a fence.
    Fence,
    /// The fence was never closed.
    UnclosedFence,
    /// There was prose around the JSON.
    Prose,
    /// There were several pieces of JSON, and the first that fits was taken.
    SeveralCandidates,
    /// The answer stood inside another object.
    Wrapped,
    /// The answer was a text that holds the JSON.
    Quoted,
    /// Commas before a closing bracket.
    TrailingComma,
    /// A comma between two elements was missing.
    MissingComma,
    /// Comments.
    Comment,
    /// Single quotes around texts.
    SingleQuotes,
    /// Typographic quotes around texts.
    SmartQuotes,
    /// `True`, `False` or `None`.
    PythonWords,
    /// Line breaks or other control characters inside texts.
    RawControl,
    /// A backslash before a character that needs none.
    BadEscape,
    /// The JSON broke off; what was whole of it was read.
    Truncated,
    /// Closing brackets were missing at its end, and nothing else.
    Unclosed,
    /// A bare list where an object was asked for.
    BareList,
    /// A number where a text was asked for.
    NumberAsText,
    /// A text where `true` or `false` was asked for.
    TextAsBoolean,
    /// A single value where a list was asked for.
    ValueAsList,
    /// A text where an object was asked for.
    TextAsObject,
    /// A field under another name.
    OtherName,
    /// A task without an id was given one.
    MissingId,
    /// No reason was given.
    MissingReasoning,
    /// The answer was in words, and the words were clear.
    Words,
    /// There was no JSON: the numbered lines were taken for tasks.
    TextPlan,
    /// No sound dependencies were given: the children follow one another.
    InOrder,
}

impl Repair {
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// What it is, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::ByteOrderMark => "a byte order mark was left out",
            Self::Thinking => "the model's reasoning before the answer was dropped",
            Self::Fence => "the JSON was taken out of a fence",
            Self::UnclosedFence => "the JSON was taken out of a fence that was not closed",
            Self::Prose => "words around the JSON were left out",
            Self::SeveralCandidates => "of several pieces of JSON the first that fits was taken",
            Self::Wrapped => "the answer was taken out of an object around it",
            Self::Quoted => "the answer was JSON inside a text",
            Self::TrailingComma => "commas before a closing bracket were left out",
            Self::MissingComma => "missing commas were added",
            Self::Comment => "comments were left out",
            Self::SingleQuotes => "single quotes were read as double quotes",
            Self::SmartQuotes => "typographic quotes were read as quotes",
            Self::PythonWords => "True, False or None were read as JSON",
            Self::RawControl => "line breaks inside texts were kept",
            Self::BadEscape => "needless backslashes were left out",
            Self::Truncated => "the answer was cut off; only its complete part was read",
            Self::Unclosed => "closing brackets at the end were added",
            Self::BareList => "a bare list was taken for the answer",
            Self::NumberAsText => "numbers were read as texts",
            Self::TextAsBoolean => "a text was read as true or false",
            Self::ValueAsList => "a single value was read as a list",
            Self::TextAsObject => "texts were read as descriptions",
            Self::OtherName => "a field was found under another name",
            Self::MissingId => "tasks without an id were given one",
            Self::MissingReasoning => "no reason was given",
            Self::Words => "the answer was in words and not in JSON",
            Self::TextPlan => "there was no JSON: the steps of the text were taken",
            Self::InOrder => "no valid dependencies were given; the subtasks run in order",
        }
    }
}

/// Repairs, each once, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repairs(pub(crate) Vec<Repair>);

impl Repairs {
    pub(crate) fn note(&mut self, repair: Repair) {
        if !self.0.contains(&repair) {
            self.0.push(repair);
        }
    }

    pub(crate) fn has(&self, repair: Repair) -> bool {
        self.0.contains(&repair)
    }
}
