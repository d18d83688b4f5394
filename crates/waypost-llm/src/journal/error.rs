//! Errors of reading or writing a journal.

/// Maximum bytes of a journal.
pub const JOURNAL_BYTES_MAX: u64 = 512 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// A file system error.
    #[error("{file}: {why}")]
    File { file: String, why: String },
    /// Another process writes the journal.
    #[error("{file} is being written by {by}")]
    Held { file: String, by: String },
    /// A line is not in the format of a journal.
    #[error("{file}:{line}: {why}")]
    Corrupt {
        file: String,
        /// From 1.
        line: usize,
        why: String,
    },
    /// The file is larger than can be read, or the next line would make it so.
    #[error("{file} would have more than {JOURNAL_BYTES_MAX} bytes")]
    TooLarge { file: String },
}

impl JournalError {
    pub fn hint(&self) -> String {
        match self {
            Self::File { .. } => {
                "see that the file can be read and written, and that the disk has room".to_owned()
            }
            Self::Held { .. } => "wait for it, or end it".to_owned(),
            Self::Corrupt { .. } => {
                "remove the line if it cannot be repaired; its request is then sent again".to_owned()
            }
            Self::TooLarge { .. } => "move it away; its requests are then sent again".to_owned(),
        }
    }
}
