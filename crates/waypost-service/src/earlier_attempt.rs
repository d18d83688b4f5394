//! What the attempt before a claim came to. The claim clears it from the task, and the next worker needs it all the same.

use waypost_core::{Event, Plan, TaskId};

use crate::error::ServiceError;
use crate::service::{Service, WriteReply};

/// Number of versions that are searched for the last error.
const EARLIER_VERSIONS_MAX: u64 = 1_000;

/// How the attempt before a claim ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierAttempt {
    /// The error of the last attempt that failed.
    pub last_error: Option<String>,
    /// Why the task was released.
    pub released: Option<String>,
}

impl Service {
    /// Returns how the attempt before this claim ended; nothing for a first attempt.
    pub fn earlier_attempt(&self, claim: &WriteReply, task: &TaskId) -> Result<EarlierAttempt, ServiceError> {
        let attempt = |plan: &Plan| plan.task(task.as_str()).map_or(0, |task| task.state.attempt);
        if !claim.changed || claim.version < 2 || self.read(&claim.plan, attempt)? < 2 {
            return Ok(EarlierAttempt::default());
        }
        // What was pruned is unknown; the task is claimed all the same.
        let before = self.plans().at_version(&claim.plan, claim.version - 1).ok();
        let before = before.as_ref().and_then(|plan| plan.task(task.as_str())).map(|task| &task.state);
        let Some(before) = before else { return Ok(EarlierAttempt::default()) };
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        // A retry by hand, or a claim that was released, has cleared the error.
        let last_error = filled(&before.error).or_else(|| self.last_failure(claim, task));
        Ok(EarlierAttempt { last_error, released: filled(&before.reason) })
    }

    /// Returns the error of the task's last attempt, if that failed and is among the latest versions.
    fn last_failure(&self, claim: &WriteReply, task: &TaskId) -> Option<String> {
        let after = (claim.version - 1).saturating_sub(EARLIER_VERSIONS_MAX);
        let versions = self.plans().history(&claim.plan, after, EARLIER_VERSIONS_MAX as usize).ok()?;
        for event in versions.iter().rev().flat_map(|version| version.events.iter().rev()) {
            if let Event::TaskFailed { task: failed, error, .. } = event
                && failed == task
            {
                return Some(error.clone());
            }
            if let Event::TaskDone { task: done, .. } = event
                && done == task
            {
                return None;
            }
        }
        None
    }
}
