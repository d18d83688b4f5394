//! A text input of one or several lines: a cursor between graphemes, keys as in a shell. Draws nothing.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use waypost_text::is_unsafe_char;

/// Maximum size of a typed text in bytes.
pub const TYPED_BYTES_MAX: usize = waypost_core::limits::TEXT_BYTES_MAX;

/// Text with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextInput {
    text: String,
    /// A byte offset, between two graphemes.
    cursor: usize,
    many_lines: bool,
}

impl TextInput {
    /// A single-line input with the cursor at the end.
    pub fn line(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cursor: text.len(), text, many_lines: false }
    }

    /// A multi-line input with the cursor at the end.
    pub fn lines(text: impl Into<String>) -> Self {
        Self { many_lines: true, ..Self::line(text) }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The byte offset of the cursor.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Whether it accepts line breaks.
    pub fn has_many_lines(&self) -> bool {
        self.many_lines
    }

    /// Inserts text at the cursor. Removes control and invisible characters; in a single line, replaces line breaks and tabs by
    /// spaces. Does nothing if the result would exceed [`TYPED_BYTES_MAX`].
    pub fn insert(&mut self, text: &str) {
        let kept: String = text
            .replace("\r\n", "\n")
            .chars()
            .map(|c| if matches!(c, '\r' | '\n' | '\t') && !self.many_lines { ' ' } else { c })
            .filter(|&c| !is_unsafe_char(c) || self.many_lines && matches!(c, '\n' | '\t'))
            .collect();
        if self.text.len() + kept.len() <= TYPED_BYTES_MAX {
            self.text.insert_str(self.cursor, &kept);
            self.cursor += kept.len();
            // The inserted text may have formed a grapheme with the text after it.
            self.cursor = self.text.len() - self.after().len();
            self.settle();
        }
    }

    /// Handles a key. Returns false if it is not a key for text.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let by_word = control || key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('a') if control => self.cursor = self.line_start(),
            KeyCode::Char('e') if control => self.cursor = self.line_end(),
            KeyCode::Char('u') if control => self.remove(self.line_start(), self.cursor),
            KeyCode::Char('k') if control => self.remove(self.cursor, self.line_end()),
            KeyCode::Char('w') if control => self.remove(self.word_before(), self.cursor),
            KeyCode::Char(_) if by_word => return false,
            KeyCode::Char(character) => self.insert(character.encode_utf8(&mut [0; 4])),
            KeyCode::Enter if self.many_lines => self.insert("\n"),
            KeyCode::Backspace if by_word => self.remove(self.word_before(), self.cursor),
            KeyCode::Backspace => self.remove(self.before(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.next()),
            KeyCode::Left if by_word => self.cursor = self.word_before(),
            KeyCode::Right if by_word => self.cursor = self.word_after(),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.next(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up if self.many_lines && self.line_start() > 0 => self.up(),
            KeyCode::Down if self.many_lines && self.line_end() < self.text.len() => self.down(),
            _ => return false,
        }
        true
    }

    fn after(&self) -> &str {
        &self.text[self.cursor..]
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        self.cursor + self.after().graphemes(true).next().map_or(0, str::len)
    }

    /// Moves the cursor to the next grapheme boundary.
    fn settle(&mut self) {
        let boundary = self.text.grapheme_indices(true).map(|(at, _)| at).find(|&at| at >= self.cursor);
        self.cursor = boundary.unwrap_or(self.text.len());
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.after().find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_before(&self) -> usize {
        let mut words = self.text[..self.cursor].unicode_word_indices();
        words.next_back().map_or(0, |(at, _)| at)
    }

    fn word_after(&self) -> usize {
        let word = self.after().unicode_word_indices().next();
        word.map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
        self.settle();
    }

    fn up(&mut self) {
        let start = self.line_start();
        let graphemes = self.text[start..self.cursor].graphemes(true).count();
        self.cursor = start - 1;
        let above = self.line_start();
        self.cursor = self.along(above, start - 1, graphemes);
    }

    fn down(&mut self) {
        let graphemes = self.text[self.line_start()..self.cursor].graphemes(true).count();
        let below = self.line_end() + 1;
        self.cursor = below;
        self.cursor = self.along(below, self.line_end(), graphemes);
    }

    fn along(&self, from: usize, to: usize, graphemes: usize) -> usize {
        let line = &self.text[from..to];
        from + line.grapheme_indices(true).nth(graphemes).map_or(line.len(), |(at, _)| at)
    }
}
