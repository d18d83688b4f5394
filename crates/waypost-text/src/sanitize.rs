//! The sanitizer: decides which characters of a text may reach a terminal, a log, a browser or a model. It does not
//! parse escape sequences: without its ESC, a sequence is plain characters.
//!
//! Unsafe are control characters (C0, DEL, C1), bidirectional controls, invisible characters (zero width space, soft
//! hyphen, byte order mark, fillers, tag characters and the other default-ignorable code points) and noncharacters. A
//! run of them is replaced by one `�` instead of being removed: the person who approves a command has to see that it
//! contains more.
//!
//! Two kinds of invisible characters are useful and are judged by the character before them:
//! - A joiner (ZWJ, ZWNJ, Mongolian vowel separator) stays after a visible non-ASCII character: in emoji sequences and
//!   in the scripts that need it.
//! - A variation selector stays after a visible non-ASCII character, and U+FE0E and U+FE0F stay in keycaps (`1️⃣`).
//!
//! Neither stays after another of its kind, so that no message can be hidden between two visible characters. Tag
//! characters never stay: the flags of England, Scotland and Wales lose their tags.

use std::borrow::Cow;

/// Replaces a run of unsafe characters.
pub const REPLACEMENT: char = '\u{fffd}';

/// Whether a character is never shown as it is. Line ends and tabs count as unsafe: each function decides whether to
/// keep them. Joiners and variation selectors do not: their safety depends on the character before them.
pub fn is_unsafe_char(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}'
            // Letters that render as nothing.
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
            // Zero width space, directional marks, embeddings, overrides and isolates, line and paragraph separators,
            // word joiner, invisible operators.
            | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            // Byte order mark, interlinear annotation, noncharacters.
            | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fdd0}'..='\u{fdef}'
            // Shorthand and musical notation controls.
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // Tag characters and the reserved code points around them.
            | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}')
        || u32::from(character) & 0xfffe == 0xfffe
}

fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}' | '\u{180e}')
}

fn is_variation_selector(character: char) -> bool {
    matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180d}' | '\u{180f}')
}

/// Line feed, vertical tab, form feed, carriage return, next line, line and paragraph separator.
fn is_line_end(character: char) -> bool {
    matches!(character, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Sanitizes multi-line text. Line feeds and tabs stay; every other kind of line end becomes a line feed.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    replace_unsafe(text, Lines::Many)
}

/// Sanitizes text to one line: each line end and each tab becomes a space; other spacing stays.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    replace_unsafe(text, Lines::One)
}

/// Sanitizes text to one line of words separated by single spaces.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let line = sanitize_line(text);
    let is_tidy = line.trim().len() == line.len()
        && !line.contains("  ")
        && !line.chars().any(|character| character != ' ' && character.is_whitespace());
    if is_tidy { line } else { Cow::Owned(line.split_whitespace().collect::<Vec<_>>().join(" ")) }
}

/// Shows text on one line with each unsafe character as `\u{…}`, for people who decide about exactly this text: nothing
/// is dropped, and nothing can hide. Joiners are shown too: they have no width.
pub fn reveal(text: &str) -> Cow<'_, str> {
    reveal_where(text, |before, character, _| {
        before == Before::Unsafe
            || is_joiner(character)
            || is_hiding(character)
            || is_line_end(character)
            || character == '\t'
    })
}

/// Whether a character can carry what nobody sees: one selector after each visible character spells a message. Those of emoji
/// are two, and say little.
fn is_hiding(character: char) -> bool {
    is_variation_selector(character) && !matches!(character, '\u{fe0e}' | '\u{fe0f}')
        || character == '\u{2800}'
}

/// Whether a text has characters that [`reveal`] shows, besides the ends of lines, tabs and joiners that have their place.
pub fn has_hidden(text: &str) -> bool {
    matches!(reveal_lines(text), Cow::Owned(_))
}

/// Shows multi-line text with each unsafe character as `\u{…}`. Line feeds, tabs and joiners that have their place stay.
pub fn reveal_lines(text: &str) -> Cow<'_, str> {
    reveal_where(text, |before, character, next| {
        let is_odd_end = is_line_end(character) && character != '\n' && next != Some('\n');
        before == Before::Unsafe || is_hiding(character) || is_odd_end
    })
}

/// Generates a TypeScript module for the dashboard, which has the class of unsafe characters as a regular expression. It knows
/// no context: joiners stay, and every selector but those of emoji is unsafe. Line feeds and tabs stay.
pub fn unsafe_typescript() -> String {
    let is_unsafe = |code: u32| {
        char::from_u32(code).is_some_and(|character| {
            !matches!(character, '\n' | '\t') && (is_unsafe_char(character) || is_hiding(character))
        })
    };
    let (mut class, mut code) = (String::new(), 0);
    while code <= u32::from(char::MAX) {
        let first = code;
        while is_unsafe(code) {
            code += 1;
        }
        match code - first {
            0 => code += 1,
            1 => class.push_str(&format!("\\u{{{first:x}}}")),
            _ => class.push_str(&format!("\\u{{{first:x}}}-\\u{{{:x}}}", code - 1)),
        }
    }
    format!(
        "// Characters that are never shown. Generated by `cargo xtask generate` from crates/waypost-text/src/sanitize.rs.\n\n\
         // eslint-disable-next-line no-control-regex\n\
         export const UNSAFE = /[{class}]+/gu;\n"
    )
}

fn reveal_where(text: &str, is_hidden: impl Fn(Before, char, Option<char>) -> bool) -> Cow<'_, str> {
    if is_printable_ascii(text) {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut before) = (String::with_capacity(text.len()), Before::Space);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        before = before.then(character);
        match is_hidden(before, character, characters.peek().copied()) {
            true => shown.push_str(&format!("\\u{{{:x}}}", u32::from(character))),
            false => shown.push(character),
        }
    }
    if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
}

/// Escapes the unsafe characters of JSON text. The JSON keeps its meaning for a parser and is inert in a terminal.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    if is_printable_ascii(json) {
        return Cow::Borrowed(json);
    }
    let mut escaped: Option<String> = None;
    let mut before = Before::Space;
    for (at, character) in json.char_indices() {
        before = before.then(character);
        // Outside its strings, JSON has no unsafe characters except layout white space.
        let is_layout = matches!(character, '\n' | '\r' | '\t');
        if !is_layout && (before == Before::Unsafe || is_line_end(character)) {
            let escaped = escaped.get_or_insert_with(|| json[..at].to_owned());
            for unit in character.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else if let Some(escaped) = &mut escaped {
            escaped.push(character);
        }
    }
    escaped.map_or(Cow::Borrowed(json), Cow::Owned)
}

fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    One,
    Many,
}

/// The class of the character before the current one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The start of the text, a space or a line end.
    Space,
    /// A run of unsafe characters, already replaced.
    Unsafe,
    /// A keycap base: a digit, `#` or `*`.
    KeycapBase,
    /// Any other visible ASCII character.
    Ascii,
    /// A visible non-ASCII character.
    Visible,
    Selector,
    Joiner,
}

impl Before {
    /// Classifies the next character; `Unsafe` means that it must be replaced.
    fn then(self, character: char) -> Self {
        match character {
            '\t' => Self::Space,
            '0'..='9' | '#' | '*' => Self::KeycapBase,
            ' '..='~' => {
                if character == ' ' {
                    Self::Space
                } else {
                    Self::Ascii
                }
            }
            _ if is_line_end(character) => Self::Space,
            _ if is_unsafe_char(character) => Self::Unsafe,
            _ if is_joiner(character) => match self {
                Self::Visible | Self::Selector => Self::Joiner,
                Self::Space | Self::Unsafe | Self::KeycapBase | Self::Ascii | Self::Joiner => Self::Unsafe,
            },
            _ if is_variation_selector(character) => match self {
                Self::Visible => Self::Selector,
                Self::KeycapBase if matches!(character, '\u{fe0e}' | '\u{fe0f}') => Self::Selector,
                Self::Space
                | Self::Unsafe
                | Self::KeycapBase
                | Self::Ascii
                | Self::Selector
                | Self::Joiner => Self::Unsafe,
            },
            _ if character.is_whitespace() => Self::Space,
            _ => Self::Visible,
        }
    }
}

fn replace_unsafe(text: &str, lines: Lines) -> Cow<'_, str> {
    if is_printable_ascii(text) {
        return Cow::Borrowed(text);
    }
    let mut replaced: Option<String> = None;
    let mut before = Before::Space;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let now = before.then(character);
        let ends_later = character == '\r' && characters.peek().is_some_and(|&(_, next)| next == '\n');
        let shown = match (now, lines) {
            (Before::Unsafe, _) => REPLACEMENT,
            (_, Lines::Many) if is_line_end(character) => '\n',
            (_, Lines::One) if is_line_end(character) || character == '\t' => ' ',
            (_, Lines::One | Lines::Many) => character,
        };
        let is_dropped = ends_later || now == Before::Unsafe && before == Before::Unsafe;
        before = now;
        if is_dropped || shown != character {
            replaced.get_or_insert_with(|| text[..at].to_owned());
        }
        if let Some(replaced) = replaced.as_mut().filter(|_| !is_dropped) {
            replaced.push(shown);
        }
    }
    replaced.map_or(Cow::Borrowed(text), Cow::Owned)
}
