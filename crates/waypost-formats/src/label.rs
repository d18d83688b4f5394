//! Labels of pictures: the sign of a status, and text inside XML. What makes a text safe and short is in `waypost-text`.

use waypost_core::Status;
use waypost_text::StatusSign;

/// The sign of a status, so that colour is never the only one. A picture does not know what a pending task waits for.
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

/// Text inside XML or HTML, in an attribute or between tags.
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
            c => safe.push(c),
        }
    }
    safe
}
