//! How a plan differs from what was approved last, also after that approval became void.

use waypost_core::{
    ApprovedWork, Difference, Draft, Event, Plan, PlanId, PlanState, TaskState, differences_in_full,
};
use waypost_store::StoreError;
use waypost_text::reveal;

use crate::diff_text::{Texts, difference_lines};
use crate::error::ServiceError;
use crate::preview::{Preview, names_digest, preview_digest, since_approval};
use crate::service::Service;

/// Maximum number of versions searched for the last approval.
const VERSIONS_SEARCHED_MAX: u64 = 5_000;
/// Versions read at a time.
const VERSIONS_READ: u64 = 500;
/// Maximum number of versions whose digests are compared with one that a person names.
const VERSIONS_COMPARED_MAX: u64 = 50;
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

    /// Returns what authors changed since a version, and nothing that came of running the plan.
    pub fn written_since(&self, plan: &PlanId, version: u64) -> Result<Vec<Difference>, ServiceError> {
        let before = as_written(&self.plans().at_version(plan, version)?);
        let now = self.view(plan, |plan, _| as_written(plan))?;
        Ok(differences_in_full(&before, &now))
    }

    /// Returns what authors changed since a version, a line each. A version that cannot be read shows nothing.
    pub(crate) fn changes_since(&self, plan: &PlanId, version: u64) -> Vec<String> {
        let found = self.written_since(plan, version).unwrap_or_default();
        let lines = difference_lines(&found, Texts::ByLine, &|text| reveal(text).into_owned());
        let mut lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        if lines.len() > LINES_MAX {
            let more = lines.len() - LINES_MAX;
            lines.truncate(LINES_MAX);
            lines.push(format!("… {more} more lines"));
        }
        lines
    }

    /// Adds to a refusal what changed while a person was reading a preview with this digest.
    pub(crate) fn with_changes(&self, error: ServiceError, digest: &str) -> ServiceError {
        let ServiceError::ChangedSinceSeen { plan, seen, current, .. } = error else { return error };
        let mut changes = if seen == current { Vec::new() } else { self.changes_since(&plan, seen) };
        let mut definitions = self.definitions_since(&plan, digest).unwrap_or_default();
        // The lines about tasks and texts say more.
        definitions.retain(|line| changes.is_empty() || !line.starts_with("plan: "));
        changes.append(&mut definitions);
        ServiceError::ChangedSinceSeen { plan, seen, current, changes }
    }

    /// Returns what differs from what a person has seen, as far as this process has shown it or it was approved.
    fn definitions_since(&self, plan: &PlanId, digest: &str) -> Result<Vec<String>, ServiceError> {
        let shown = self.shown().with_digest(digest);
        let preview = self.preview(plan)?;
        if let Some(shown) = shown {
            return Ok(shown.changes(&preview));
        }
        let last = self.last_approval(plan)?.and_then(|last| last.work);
        let approved = last.filter(|work| names_digest(digest, &work.digest));
        Ok(since_approval(approved.as_deref(), &preview.definitions))
    }

    /// Returns the refusal of a digest that is not that of the preview, with what changed: since the version of which it is the
    /// digest, if that is among the latest, or since it was shown or approved.
    pub fn not_as_seen(&self, preview: &Preview, digest: &str) -> ServiceError {
        let (plan, current) = (preview.plan.clone(), preview.version);
        let seen = self.version_with(preview, digest).unwrap_or(current);
        self.with_changes(ServiceError::ChangedSinceSeen { plan, seen, current, changes: Vec::new() }, digest)
    }

    fn version_with(&self, preview: &Preview, digest: &str) -> Option<u64> {
        let sources = self.definitions_for(&preview.plan).ok()?;
        let oldest = preview.version.saturating_sub(VERSIONS_COMPARED_MAX).max(1);
        (oldest..preview.version).rev().find(|version| {
            let then = self.plans().at_version(&preview.plan, *version);
            let has_digest = |plan: &Plan| {
                sources.iter().any(|(_, one)| names_digest(digest, &preview_digest(one, plan).0))
            };
            then.is_ok_and(|plan| has_digest(&plan))
        })
    }
}

/// Returns what authors wrote, without what came of it.
fn as_written(plan: &Plan) -> Draft {
    let mut draft = plan.to_draft();
    draft.state = PlanState::default();
    draft.tasks.iter_mut().for_each(|task| task.state = TaskState::default());
    draft
}
