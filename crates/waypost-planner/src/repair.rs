//! The repairs of answers. Each has a description for users.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// A deviation in an answer that was accepted all the same, with its description for users.
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
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    #[strum(to_string = "a byte order mark was left out")]
    ByteOrderMark,
    #[strum(to_string = "the model's reasoning before the answer was dropped")]
    Thinking,
    #[strum(to_string = "the JSON was taken out of a fence")]
    Fence,
    #[strum(to_string = "the JSON was taken out of a fence that was not closed")]
    UnclosedFence,
    #[strum(to_string = "words around the JSON were left out")]
    Prose,
    #[strum(to_string = "of several pieces of JSON the first that fits was taken")]
    SeveralCandidates,
    #[strum(to_string = "the answer was taken out of an object around it")]
    Wrapped,
    #[strum(to_string = "the answer was JSON inside a text")]
    Quoted,
    #[strum(to_string = "commas before a closing bracket were left out")]
    TrailingComma,
    #[strum(to_string = "missing commas were added")]
    MissingComma,
    #[strum(to_string = "comments were left out")]
    Comment,
    #[strum(to_string = "single quotes were read as double quotes")]
    SingleQuotes,
    #[strum(to_string = "typographic quotes were read as quotes")]
    SmartQuotes,
    #[strum(to_string = "True, False or None were read as JSON")]
    PythonWords,
    #[strum(to_string = "line breaks inside texts were kept")]
    RawControl,
    #[strum(to_string = "needless backslashes were left out")]
    BadEscape,
    #[strum(to_string = "the answer was cut off; only its complete part was read")]
    Truncated,
    #[strum(to_string = "closing brackets at the end were added")]
    Unclosed,
    #[strum(to_string = "a bare list was taken for the answer")]
    BareList,
    #[strum(to_string = "numbers were read as texts")]
    NumberAsText,
    #[strum(to_string = "a text was read as true or false")]
    TextAsBoolean,
    #[strum(to_string = "a single value was read as a list")]
    ValueAsList,
    #[strum(to_string = "texts were read as descriptions")]
    TextAsObject,
    #[strum(to_string = "a field was found under another name")]
    OtherName,
    #[strum(to_string = "tasks without an id were given one")]
    MissingId,
    #[strum(to_string = "no reason was given")]
    MissingReasoning,
    #[strum(to_string = "the answer was in words and not in JSON")]
    Words,
    #[strum(to_string = "there was no JSON: the steps of the text were taken")]
    TextPlan,
    #[strum(to_string = "no valid dependencies were given; the subtasks run in order")]
    InOrder,
}

impl Repair {
    pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    /// A description for users.
    pub fn describe(self) -> &'static str {
        self.into()
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
