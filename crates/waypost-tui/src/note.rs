//! Notes in the last row of the screen, and errors as they are shown there.

/// A line at the bottom of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    Good,
    Warning,
    Wrong,
}

/// What went wrong outside of the program, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// What failed, and on what.
    pub what: String,
    /// What to do next; may be empty.
    pub hint: String,
}

impl ErrorMessage {
    /// Both in one line.
    pub fn line(&self) -> String {
        if self.hint.is_empty() { self.what.clone() } else { format!("{}; {}", self.what, self.hint) }
    }

    pub fn note(&self) -> Note {
        Note { kind: NoteKind::Wrong, text: self.line() }
    }
}
