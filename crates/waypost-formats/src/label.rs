//! Labels of pictures: text inside XML. `waypost-text` makes texts safe and short.

use waypost_text::is_unsafe_char;

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
