//! Renders differences between two versions for people and programs. Does not compute them.

use serde_json::Value;
use waypost_core::Difference;
use waypost_service::{Sign, Texts, difference_lines};

use super::text;
use crate::style::Look;

/// Maximum columns of each value in a message.
const VALUE_COLUMNS: usize = 40;

/// A line and its look.
pub struct Line {
    pub text: String,
    pub look: Look,
}

/// Renders differences for a message, in one short line each.
pub fn short_lines(differences: &[Difference]) -> Vec<Line> {
    lines(differences, Texts::Whole, VALUE_COLUMNS)
}

/// Renders differences as lines, with a maximum width for each value.
pub fn lines(differences: &[Difference], texts: Texts, value_columns: usize) -> Vec<Line> {
    let look = |sign: Sign| match sign {
        Sign::New => Look::Green,
        Sign::Gone => Look::Red,
        Sign::Changed => Look::Yellow,
        Sign::Around => Look::Dim,
    };
    let lines =
        difference_lines(differences, texts, &|value| text::excerpt(value, value_columns).into_owned());
    lines.into_iter().map(|(sign, text)| Line { text, look: look(sign) }).collect()
}

/// One difference for programs, its values truncated to `bytes_max` bytes.
pub fn json(difference: &Difference, bytes_max: usize) -> Value {
    let mut value = serde_json::to_value(difference).unwrap_or_default();
    for name in ["before", "after", "description"] {
        if let Some(Value::String(text)) = value.get_mut(name) {
            *text = waypost_text::truncate_bytes(text, bytes_max).into_owned();
        }
    }
    value
}
