//! Notes in the last row of the screen, and errors as shown there.

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

/// An error for the user.
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
