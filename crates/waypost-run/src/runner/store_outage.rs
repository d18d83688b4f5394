//! A store that does not answer. A run on its own machine gives up soon: its disk will not come back. A worker of a store that
//! others serve goes on with what it has, and tries again until it is heard.

use std::time::{Duration, Instant};

use waypost_store::{Reach, StoreError};

use super::{RunError, Runner};
use waypost_exec::AttemptKey;

/// How often in a row the store may fail before a run gives up.
pub(super) const STORE_FAILURES_MAX: u32 = 10;
/// The wait after a failure of the store, for each failure in a row.
const STORE_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait after a failure of the store.
const STORE_PAUSE_MAX: Duration = Duration::from_secs(3);

/// What whoever runs a worker should know, beside what happens to tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
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

impl Remark {
    /// One word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::StoreAway { .. } => "store_away",
            Self::StoreBack { .. } => "store_back",
            Self::LeaseLost { .. } => "lease_lost",
            Self::ReportRefused { .. } => "report_refused",
            Self::DrainAsked => "drain_asked",
        }
    }
}

impl std::fmt::Display for Remark {
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

/// How long the store has been away.
#[derive(Debug, Default)]
pub(super) struct Outage {
    failures: u32,
    since: Option<Instant>,
}

impl Outage {
    /// Whether it is one that may last.
    pub(super) fn lasts(&self) -> bool {
        self.since.is_some()
    }
}

impl Runner {
    /// The store has done what it was asked.
    pub(super) fn store_answered(&mut self) {
        self.outage.failures = 0;
        if let Some(since) = self.outage.since.take() {
            self.remarks.push(Remark::StoreBack { seconds: since.elapsed().as_secs() });
        }
    }

    /// The store has failed: waits before anything more is asked of it, or gives up.
    pub(super) fn store_failed(&mut self, error: StoreError) -> Result<(), RunError> {
        waypost_store::meters().store_errors.with([error.word()], |errors| errors.add(1));
        self.outage.failures = self.outage.failures.saturating_add(1);
        let will_pass = match error {
            StoreError::Busy | StoreError::Database(_) | StoreError::Files { .. } => true,
            StoreError::Corrupt { .. }
            | StoreError::TooNew { .. }
            | StoreError::Pruned { .. }
            | StoreError::BadLocation(_) => false,
        };
        let patient = self.plans.store().reach() == Reach::Machines && will_pass;
        if patient && self.outage.since.is_none() {
            self.outage.since = Some(Instant::now());
            self.remarks.push(Remark::StoreAway { error: error.to_string() });
        }
        if !patient && self.outage.failures >= STORE_FAILURES_MAX {
            return Err(RunError::Store(error));
        }
        self.hold_until = Some(Instant::now() + self.store_pause());
        Ok(())
    }

    /// How long to leave the store alone.
    pub(super) fn store_pause(&self) -> Duration {
        (STORE_PAUSE * self.outage.failures).min(STORE_PAUSE_MAX)
    }
}
