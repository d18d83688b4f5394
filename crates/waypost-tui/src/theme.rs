//! What things look like: the sixteen colours of the terminal's own palette, or none. Whatever a colour says, a word or a
//! sign says too.

use ratatui::style::{Color, Modifier, Style};
use waypost_core::{Phase, Standing};

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

    /// Where a task stands.
    pub fn task_status(self, standing: Standing) -> Style {
        match standing {
            Standing::Blocked => self.quiet(),
            Standing::Ready => self.text(),
            Standing::Reported | Standing::Asking => self.colour(Color::Magenta),
            Standing::Running => self.colour(Color::Blue),
            Standing::Done => self.colour(Color::Green),
            Standing::Failed => self.colour(Color::Red),
            Standing::Skipped | Standing::Cancelled => self.quiet(),
        }
    }

    /// Where a plan stands.
    pub fn phase(self, phase: Phase) -> Style {
        match phase {
            Phase::Draft => self.text(),
            Phase::AwaitingApproval => self.colour(Color::Yellow),
            Phase::Active => self.colour(Color::Blue),
            Phase::Paused => self.colour(Color::Magenta),
            Phase::Completed => self.colour(Color::Green),
            Phase::Failed => self.colour(Color::Red),
            Phase::Cancelled => self.quiet(),
        }
    }
}

/// The sign of where a task stands: one column wide in every font.
pub fn sign(standing: Standing) -> &'static str {
    match standing {
        Standing::Blocked => "◌",
        Standing::Ready => "○",
        Standing::Reported => "◍",
        Standing::Asking => "?",
        Standing::Running => "↻",
        Standing::Done => "✓",
        Standing::Failed => "✗",
        Standing::Skipped => "⊘",
        Standing::Cancelled => "■",
    }
}

/// Where a plan stands, in a word that fits a column.
pub fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Draft => "draft",
        Phase::AwaitingApproval => "approval?",
        Phase::Active => "active",
        Phase::Paused => "paused",
        Phase::Completed => "completed",
        Phase::Failed => "failed",
        Phase::Cancelled => "cancelled",
    }
}

/// How much of something is done, in so many columns.
pub fn bar(done: u32, total: u32, columns: usize) -> String {
    let full = if total == 0 { 0 } else { columns * done as usize / total as usize };
    let full = full.min(columns);
    format!("{}{}", "▰".repeat(full), "▱".repeat(columns - full))
}
