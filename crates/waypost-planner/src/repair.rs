//! The repairs of answers. Each has a description for users.

use serde::{Deserialize, Serialize};
use strum::{EnumMessage, VariantArray};

/// A deviation in an answer that was accepted all the same. The doc comment of each variant is its description for users.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumMessage,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// a byte order mark was left out
    ByteOrderMark,
    /// the model's reasoning before the answer was dropped
    Thinking,
    /// the JSON was taken out of a fence
    Fence,
    /// the JSON was taken out of a fence that was not closed
    UnclosedFence,
    /// words around the JSON were left out
    Prose,
    /// of several pieces of JSON the first that fits was taken
    SeveralCandidates,
    /// the answer was taken out of an object around it
    Wrapped,
    /// the answer was JSON inside a text
    Quoted,
    /// commas before a closing bracket were left out
    TrailingComma,
    /// missing commas were added
    MissingComma,
    /// comments were left out
    Comment,
    /// single quotes were read as double quotes
    SingleQuotes,
    /// typographic quotes were read as quotes
    SmartQuotes,
    /// True, False or None were read as JSON
    PythonWords,
    /// line breaks inside texts were kept
    RawControl,
    /// needless backslashes were left out
    BadEscape,
    /// the answer was cut off; only its complete part was read
    Truncated,
    /// closing brackets at the end were added
    Unclosed,
    /// a bare list was taken for the answer
    BareList,
    /// numbers were read as texts
    NumberAsText,
    /// a text was read as true or false
    TextAsBoolean,
    /// a single value was read as a list
    ValueAsList,
    /// texts were read as descriptions
    TextAsObject,
    /// a field was found under another name
    OtherName,
    /// tasks without an id were given one
    MissingId,
    /// no reason was given
    MissingReasoning,
    /// the answer was in words and not in JSON
    Words,
    /// there was no JSON: the steps of the text were taken
    TextPlan,
    /// no valid dependencies were given; the subtasks run in order
    InOrder,
}

impl Repair {
    pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    /// A description for users: the doc comment of the variant.
    pub fn describe(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }
}

/// Repairs in the order in which they were made, each once.
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
