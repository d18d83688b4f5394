//! Colours and styles: the sixteen colours of the terminal's palette, or none. No meaning is expressed by colour alone.

use ratatui::style::{Color, Modifier, Style};
use waypost_core::Phase;
use waypost_text::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// The terminal's colours.
    Colours,
    /// Only bold, dim, underlined and reversed, as `NO_COLOR` requires.
    Plain,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        match self {
            Self::Colours => Style::new().fg(colour),
            Self::Plain => Style::new(),
        }
    }

    /// Plain text.
    pub fn text(self) -> Style {
        Style::new()
    }

    /// Secondary text.
    pub fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Titles and column names.
    pub fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The program's name, keys, and the focused item.
    pub fn accent(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The row that is selected.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The border of the focused part.
    pub fn edge_active(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// The border of other parts.
    pub fn edge(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub fn warning(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    pub fn wrong(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub fn role(self, role: Role) -> Style {
        match role {
            Role::You => self.colour(Color::Magenta),
            Role::Failed => self.colour(Color::Red),
            Role::Running => self.colour(Color::Blue),
            Role::Checking => self.colour(Color::Cyan),
            Role::Ready => self.text(),
            Role::Blocked | Role::Stopped | Role::Skipped => self.quiet(),
            Role::Done => self.colour(Color::Green),
            Role::Risk => self.colour(Color::Yellow),
        }
    }

    pub fn phase(self, phase: Phase) -> Style {
        match phase {
            Phase::Draft => self.text(),
            Phase::AwaitingApproval => self.role(Role::You),
            Phase::Active => self.role(Role::Running),
            Phase::Paused | Phase::Cancelled => self.role(Role::Stopped),
            Phase::Completed => self.role(Role::Done),
            Phase::Failed => self.role(Role::Failed),
        }
    }
}

/// A word for the phase that fits into a column.
pub fn phase_word(phase: Phase) -> &'static str {
    if phase == Phase::AwaitingApproval { "approval?" } else { phase.as_str() }
}

/// A progress bar.
pub fn bar(done: u32, total: u32, columns: usize) -> String {
    let full = if total == 0 { 0 } else { columns * done as usize / total as usize };
    let full = full.min(columns);
    format!("{}{}", "▰".repeat(full), "▱".repeat(columns - full))
}
