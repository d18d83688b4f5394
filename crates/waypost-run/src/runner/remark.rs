//! What concerns a run itself and none of its tasks.

use waypost_exec::AttemptKey;

/// What whoever runs a worker should know, beside what happens to tasks.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RunWarning {
    /// The store does not answer.
    StoreAway {
        /// What it said.
        error: String,
    },
    /// It answers again.
    StoreBack {
        /// Seconds since it was last heard.
        seconds: u64,
    },
    /// An attempt has lost its lease: its task is somebody else's.
    LeaseLost {
        /// Which.
        key: AttemptKey,
    },
    /// A report came too late.
    ReportRefused {
        /// Why, in words.
        why: String,
    },
    /// Somebody has asked this worker to drain.
    DrainAsked,
}

impl RunWarning {
    /// One word for programs.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

impl std::fmt::Display for RunWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StoreAway { error } => {
                write!(
                    f,
                    "the store does not answer: {error}; what runs goes on, and its results are kept until it does"
                )
            }
            Self::StoreBack { seconds } => write!(f, "the store answers again after {seconds} s"),
            Self::LeaseLost { key } => write!(
                f,
                "the lease of {}/{} (attempt {}) is over, and its task went to others: what still runs of it is killed, and \
                 nothing of it is reported",
                key.plan, key.task, key.attempt
            ),
            Self::ReportRefused { why } => write!(f, "a report came too late and was refused: {why}"),
            Self::DrainAsked => write!(f, "somebody asked this worker to drain (`waypost workers drain`)"),
        }
    }
}
