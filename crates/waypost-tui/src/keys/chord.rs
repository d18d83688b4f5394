//! A key with its modifiers: as it is pressed, as it is written in the configuration, as it is shown.

use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl Chord {
    /// Of a key that was pressed. Capital letters are themselves, with or without a word about Shift.
    pub fn of(key: KeyEvent) -> Self {
        let kept = KeyModifiers::CONTROL | KeyModifiers::ALT;
        let shift = match key.code {
            KeyCode::Char(_) | KeyCode::BackTab => KeyModifiers::NONE,
            _ => key.modifiers & KeyModifiers::SHIFT,
        };
        Self { code: key.code, modifiers: key.modifiers & kept | shift }
    }

    /// The key, pressed.
    pub fn event(self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    /// Reads a name such as `ctrl+s`, `alt+up`, `f5`, `space`, `?`.
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
        Some(Self { code, modifiers })
    }
}

impl fmt::Display for Chord {
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
