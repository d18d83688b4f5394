//! The progress of tasks as it is reported. Reports are not part of the log and replace each other, so a feed delivers
//! the latest report of each attempt and not every report.

use std::collections::HashMap;

use waypost_core::{PlanId, TaskId, Timestamp};

use crate::error::Result;
use crate::plans::PlanStore;
use crate::rows::{Lease, LeaseFilter};

/// Maximum number of attempts whose progress is read at once.
const ATTEMPTS_MAX: usize = 10_000;

/// The reports that one reader has already received.
#[derive(Debug, Default)]
pub struct ProgressFeed {
    seen: HashMap<(PlanId, TaskId), (u32, Timestamp)>,
}

impl ProgressFeed {
    /// Returns the leases of attempts that reported progress since the last call; the first call returns all that have
    /// any.
    pub fn poll(&mut self, plans: &PlanStore) -> Result<Vec<Lease>> {
        let leases = plans.store().query(|read| read.leases(&LeaseFilter::default(), ATTEMPTS_MAX))?;
        let mut seen = HashMap::new();
        let mut fresh = Vec::new();
        for lease in leases {
            let Some(progress) = &lease.progress else { continue };
            let (key, report) = ((lease.plan.clone(), lease.task.clone()), (lease.attempt, progress.at));
            let is_known = self.seen.get(&key) == Some(&report);
            seen.insert(key, report);
            if !is_known {
                fresh.push(lease);
            }
        }
        self.seen = seen;
        Ok(fresh)
    }
}
