//! How a plan differs from what was approved last, also after that approval became void.

use waypost_core::{ApprovedWork, Draft, Event, Plan, PlanId, PlanState, TaskState, differences_in_full};
use waypost_store::StoreError;
use waypost_text::reveal;

use crate::diff_text::{Texts, difference_lines};
use crate::error::ServiceError;
use crate::service::Service;

/// Maximum number of versions searched for the last approval.
const VERSIONS_SEARCHED_MAX: u64 = 5_000;
/// Versions read at a time.
const VERSIONS_READ: u64 = 500;
/// Maximum number of lines that say what changed. Everything is in the preview.
const LINES_MAX: usize = 400;

/// The approval that a plan had last.
#[derive(Clone, Debug)]
pub struct LastApproval {
    /// The version that was seen.
    pub version: u64,
    /// What was approved; records of early versions have none.
    pub(crate) work: Option<Box<ApprovedWork>>,
}

impl Service {
    /// Returns the approval that a plan had last, if that is among the versions searched.
    pub fn last_approval(&self, plan: &PlanId) -> Result<Option<LastApproval>, ServiceError> {
        let newest = self.view(plan, |plan, _| plan.version())?;
        let (mut before, stop) = (newest, newest.saturating_sub(VERSIONS_SEARCHED_MAX));
        while before > stop {
            let from = before.saturating_sub(VERSIONS_READ).max(stop);
            let limit = usize::try_from(before - from).unwrap_or(usize::MAX);
            let entries = match self.plans().history(plan, from, limit) {
                // The versions before the damage may still say it.
                Err(StoreError::Corrupt { .. }) => Vec::new(),
                entries => entries?,
            };
            for event in
                entries.iter().filter(|entry| entry.version <= before).rev().flat_map(|one| &one.events)
            {
                if let Event::PlanApproved { version, work, .. } = event {
                    return Ok(Some(LastApproval { version: *version, work: work.clone() }));
                }
            }
            before = from;
        }
        Ok(None)
    }

    /// Returns what authors changed since a version, a line each. A version that cannot be read shows nothing.
    pub(crate) fn changes_since(&self, plan: &PlanId, version: u64) -> Vec<String> {
        let before = self.plans().at_version(plan, version).map(|plan| as_written(&plan));
        let now = self.view(plan, |plan, _| as_written(plan));
        let (Ok(before), Ok(now)) = (before, now) else { return Vec::new() };
        let found = differences_in_full(&before, &now);
        let lines = difference_lines(&found, Texts::ByLine, &|text| reveal(text).into_owned());
        let mut lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        if lines.len() > LINES_MAX {
            let more = lines.len() - LINES_MAX;
            lines.truncate(LINES_MAX);
            lines.push(format!("… {more} more lines"));
        }
        lines
    }

    /// Adds to a refusal what changed while a person was reading.
    pub(crate) fn with_changes(&self, error: ServiceError) -> ServiceError {
        let ServiceError::ChangedSinceSeen { plan, seen, current, .. } = error else { return error };
        let changes = if seen == current { Vec::new() } else { self.changes_since(&plan, seen) };
        ServiceError::ChangedSinceSeen { plan, seen, current, changes }
    }
}

/// Returns what authors wrote, without what came of it.
fn as_written(plan: &Plan) -> Draft {
    let mut draft = plan.to_draft();
    draft.state = PlanState::default();
    draft.tasks.iter_mut().for_each(|task| task.state = TaskState::default());
    draft
}
