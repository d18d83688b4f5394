//! Labels of pictures: the sign of a status, and text inside XML. `waypost-text` makes texts safe and short.

use waypost_core::Status;
use waypost_text::{StatusSign, is_unsafe_char};

/// Returns the sign of a status, so that a status is never shown by colour alone. A picture does not know why a pending task waits.
pub(crate) fn sign(status: Status) -> &'static str {
    let sign = match status {
        Status::Pending => StatusSign::Ready,
        Status::Running => StatusSign::Running,
        Status::Done => StatusSign::Done,
        Status::Failed => StatusSign::Failed,
        Status::Skipped => StatusSign::Skipped,
        Status::Cancelled => StatusSign::Cancelled,
    };
    sign.glyph()
}

/// Escapes text for XML or HTML, in an attribute or between tags.
pub(crate) fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // White space that an attribute would otherwise turn into plain spaces.
            '\n' => safe.push_str("&#10;"),
            '\r' => safe.push_str("&#13;"),
            '\t' => safe.push_str("&#9;"),
            c if c.is_control() && c < '\u{20}' || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                safe.push('\u{fffd}')
            }
            // A parser reads the same character, and a terminal that shows the file does not obey it.
            c if is_unsafe_char(c) => safe.push_str(&format!("&#x{:x};", u32::from(c))),
            c => safe.push(c),
        }
    }
    safe
}
