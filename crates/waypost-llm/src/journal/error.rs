//! Why a journal cannot be read or written.

/// Bytes of a journal that are read.
pub const JOURNAL_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Why a journal cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The disk, or the rights to it.
    #[error("{file}: {why}")]
    File {
        /// The journal.
        file: String,
        /// What happened.
        why: String,
    },
    /// Another process writes it.
    #[error("{file} is being written by {by}")]
    Held {
        /// The journal.
        file: String,
        /// Who.
        by: String,
    },
    /// A line in it is none of ours.
    #[error("{file}:{line}: {why}")]
    Corrupt {
        /// The journal.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It is larger than anything that was written here.
    #[error("{file} has more than {JOURNAL_BYTES_MAX} bytes")]
    TooLarge {
        /// The journal.
        file: String,
    },
}

impl JournalError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::File { .. } => {
                "see that the file can be read and written, and that the disk has room".to_owned()
            }
            Self::Held { .. } => "wait for it, or end it".to_owned(),
            Self::Corrupt { .. } => {
                "take the line out if it cannot be mended: its answer is then asked for again".to_owned()
            }
            Self::TooLarge { .. } => "move it away: its answers are then asked for again".to_owned(),
        }
    }
}
