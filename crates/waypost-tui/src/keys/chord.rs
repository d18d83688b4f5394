//! A key with its modifiers: as pressed, as written in the configuration, and as displayed.

use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl Chord {
    /// The chord of a pressed key. Shift is dropped from characters, because a capital letter implies it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    pub fn of(key: KeyEvent) -> Self {
        let kept = KeyModifiers::CONTROL | KeyModifiers::ALT;
        let shift = match key.code {
            KeyCode::Char(_) | KeyCode::BackTab => KeyModifiers::NONE,
            _ => key.modifiers & KeyModifiers::SHIFT,
        };
        Self { code: key.code, modifiers: key.modifiers & kept | shift }.folded()
    }

    /// Normalizes case: with Ctrl, terminals do not distinguish capital letters.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn folded(self) -> Self {
        match self.code {
            KeyCode::Char(letter) if self.modifiers.contains(KeyModifiers::CONTROL) => {
                Self { code: KeyCode::Char(letter.to_ascii_lowercase()), ..self }
            }
            _ => self,
        }
    }

    /// A configured chord with Shift, as terminals report it. `None` if terminals do not report Shift for that key.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn shifted(code: KeyCode, modifiers: KeyModifiers) -> Option<Self> {
        let others = modifiers - KeyModifiers::SHIFT;
        match code {
            KeyCode::Char(letter) => {
                let is_distinct = letter.is_alphabetic() && !modifiers.contains(KeyModifiers::CONTROL);
                let mut capital = letter.to_uppercase();
                match (is_distinct, capital.next(), capital.next()) {
                    (true, Some(capital), None) => {
                        Some(Self { code: KeyCode::Char(capital), modifiers: others })
                    }
                    (_, _, _) => None,
                }
            }
            KeyCode::Tab | KeyCode::BackTab => Some(Self { code: KeyCode::BackTab, modifiers: others }),
            code => Some(Self { code, modifiers }),
        }
    }

    /// Whether it is a character in a text input.
    pub fn is_character(self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && self.modifiers.is_empty()
    }

    /// The event of pressing it.
    pub fn event(self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    /// Parses a name such as `ctrl+s`, `alt+up`, `f5`, `space`, `?`.
    pub fn parse(name: &str) -> Option<Self> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = name;
        while let Some((word, after)) =
            rest.split_once('+').filter(|(word, after)| !word.is_empty() && !after.is_empty())
        {
            modifiers |= match word.to_ascii_lowercase().as_str() {
                "ctrl" => KeyModifiers::CONTROL,
                "alt" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => return None,
            };
            rest = after;
        }
        let mut characters = rest.chars();
        let code = match (characters.next()?, characters.next()) {
            (only, None) => KeyCode::Char(only),
            _ => match rest.to_ascii_lowercase().as_str() {
                "enter" => KeyCode::Enter,
                "esc" => KeyCode::Esc,
                "space" => KeyCode::Char(' '),
                "tab" => KeyCode::Tab,
                "backtab" => KeyCode::BackTab,
                "backspace" => KeyCode::Backspace,
                "delete" => KeyCode::Delete,
                "insert" => KeyCode::Insert,
                "up" => KeyCode::Up,
                "down" => KeyCode::Down,
                "left" => KeyCode::Left,
                "right" => KeyCode::Right,
                "home" => KeyCode::Home,
                "end" => KeyCode::End,
                "pageup" => KeyCode::PageUp,
                "pagedown" => KeyCode::PageDown,
                other => KeyCode::F(
                    other.strip_prefix('f')?.parse().ok().filter(|number| (1..=12).contains(number))?,
                ),
            },
        };
        if modifiers.contains(KeyModifiers::SHIFT) {
            return Self::shifted(code, modifiers);
        }
        Some(Self { code, modifiers }.folded())
    }
}

impl fmt::Display for Chord {
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, word) in
            [(KeyModifiers::CONTROL, "Ctrl-"), (KeyModifiers::ALT, "Alt-"), (KeyModifiers::SHIFT, "Shift-")]
        {
            if self.modifiers.contains(modifier) {
                f.write_str(word)?;
            }
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("Space"),
            KeyCode::Char(character) => write!(f, "{character}"),
            KeyCode::F(number) => write!(f, "F{number}"),
            KeyCode::Up => f.write_str("↑"),
            KeyCode::Down => f.write_str("↓"),
            KeyCode::Left => f.write_str("←"),
            KeyCode::Right => f.write_str("→"),
            KeyCode::BackTab => f.write_str("Shift-Tab"),
            KeyCode::PageUp => f.write_str("PgUp"),
            KeyCode::PageDown => f.write_str("PgDn"),
            other => write!(f, "{other:?}"),
        }
    }
}
