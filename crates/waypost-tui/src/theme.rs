//! Colours and styles: the sixteen colours of the terminal's palette, or none. A colour never carries a meaning alone.

use ratatui::style::{Color, Modifier, Style};
use waypost_core::{EffectiveStatus, Phase};
use waypost_text::Role;

/// The look of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// With the terminal's colours.
    Colours,
    /// Bold, dim, underlined and reversed only, as `NO_COLOR` asks.
    Plain,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        match self {
            Self::Colours => Style::new().fg(colour),
            Self::Plain => Style::new(),
        }
    }

    /// Text that nothing is said about.
    pub fn text(self) -> Style {
        Style::new()
    }

    /// What can be read but need not be.
    pub fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Names of columns, names of fields.
    pub fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The program's own name, keys that can be pressed, what is in hand.
    pub fn accent(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The row that is selected.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The edge of a part that has the keys.
    pub fn edge_active(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// The edge of any other part.
    pub fn edge(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Something went well.
    pub fn good(self) -> Style {
        self.colour(Color::Green)
    }

    /// Something wants attention.
    pub fn warning(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Something is wrong.
    pub fn wrong(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What a status means.
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

    /// Where a task stands.
    pub fn task_status(self, standing: EffectiveStatus) -> Style {
        self.role(standing.sign().role())
    }

    /// Where a plan stands.
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

/// The sign of where a task stands.
pub fn sign(standing: EffectiveStatus) -> &'static str {
    standing.sign().glyph()
}

/// Where a plan stands, in a word that fits a column.
pub fn phase_word(phase: Phase) -> &'static str {
    if phase == Phase::AwaitingApproval { "approval?" } else { phase.as_str() }
}

/// How much of something is done, in so many columns.
pub fn bar(done: u32, total: u32, columns: usize) -> String {
    let full = if total == 0 { 0 } else { columns * done as usize / total as usize };
    let full = full.min(columns);
    format!("{}{}", "▰".repeat(full), "▱".repeat(columns - full))
}
