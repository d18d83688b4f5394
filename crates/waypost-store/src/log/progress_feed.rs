//! The progress of tasks as it is reported. Reports are not part of the log and replace each other, so a feed delivers
//! the latest report of each attempt and not every report.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use waypost_core::{PlanId, TaskId, Timestamp};

use crate::error::Result;
use crate::plans::PlanStore;
use crate::rows::{Lease, LeaseFilter};

/// Maximum number of attempts whose progress is read at once.
const ATTEMPTS_MAX: usize = 10_000;

/// Minimum time between two reports of a task that a feed delivers.
const DELIVERY_INTERVAL: Duration = Duration::from_millis(250);

/// The last report of a task that was delivered.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    /// The attempt, and the store's time of its report.
    report: (u32, Timestamp),
    at: Instant,
}

/// The reports that one reader has already received.
#[derive(Debug, Default)]
pub struct ProgressFeed {
    delivered: HashMap<(PlanId, TaskId), Delivered>,
    /// When the first of the reports that were held back is to be delivered.
    due: Option<Instant>,
}

impl ProgressFeed {
    /// Returns the leases of attempts that reported progress since the last call; the first call returns all that have
    /// any. A report that comes too soon after another one of its task is held back until [`ProgressFeed::wait`] is over,
    /// and the latest one is delivered then.
    pub fn poll(&mut self, plans: &PlanStore, now: Instant) -> Result<Vec<Lease>> {
        let leases = plans.store().query(|read| read.leases(&LeaseFilter::All, ATTEMPTS_MAX))?;
        let before = std::mem::take(&mut self.delivered);
        self.due = None;
        let mut fresh = Vec::new();
        for lease in leases {
            let Some(progress) = &lease.progress else { continue };
            let (key, report) = ((lease.plan.clone(), lease.task.clone()), (lease.attempt, progress.at));
            let delivered = before.get(&key);
            let due = delivered.map(|delivered| delivered.at + DELIVERY_INTERVAL).filter(|due| *due > now);
            match delivered {
                Some(delivered) if delivered.report == report || due.is_some() => {
                    if delivered.report != report {
                        self.due = self.due.into_iter().chain(due).min();
                    }
                    self.delivered.insert(key, *delivered);
                }
                Some(_) | None => {
                    self.delivered.insert(key, Delivered { report, at: now });
                    fresh.push(lease);
                }
            }
        }
        Ok(fresh)
    }

    /// Returns how long a reader may wait before it polls again although nothing was written; `None` if no report is held
    /// back.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(now))
    }
}
