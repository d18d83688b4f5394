//! Differences between two versions, as they look to people and programs. Finds none itself.

use serde_json::Value;
use waypost_core::Difference;
use waypost_service::{Sign, Texts, difference_lines};

use super::text;
use crate::style::Look;

/// Columns for each value in a message.
const VALUE_COLUMNS: usize = 40;

/// A line, and how it looks.
pub(crate) struct Line {
    /// The text.
    pub(crate) text: String,
    /// Its look.
    pub(crate) look: Look,
}

/// The differences as lines for a message: one short line each.
pub(crate) fn short_lines(differences: &[Difference]) -> Vec<Line> {
    lines(differences, Texts::Whole, VALUE_COLUMNS)
}

/// The differences as lines, so many columns for each value.
pub(crate) fn lines(differences: &[Difference], texts: Texts, value_columns: usize) -> Vec<Line> {
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

/// One difference for programs, its values cut to so many bytes.
pub(crate) fn json(difference: &Difference, bytes_max: usize) -> Value {
    let mut value = serde_json::to_value(difference).unwrap_or_default();
    for name in ["before", "after", "description"] {
        if let Some(Value::String(text)) = value.get_mut(name) {
            *text = waypost_text::truncate_bytes(text, bytes_max).into_owned();
        }
    }
    value
}
