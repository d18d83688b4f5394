//! Reports on a task that ended in another clone while somebody worked on it here. The import took their attempt back; what
//! they bring is recorded beside the other outcome, which its author had not seen.

use waypost_core::{ARCHIVED_ELSEWHERE, Command, ENDED_ELSEWHERE, Event, Plan, PlanId, TaskId};
use waypost_operation::{ParsedRecord, Stamp, late_report};

use super::derive::sync_actor;
use super::error::SharingError;
use super::import::merge_command;
use super::rows;
use crate::caller::{Caller, Holder};
use crate::service::{Service, WriteReply};

/// Number of versions in which an attempt that was taken back is looked for.
const VERSIONS_LOOKED_AT_MAX: usize = 500;

impl Service {
    /// Records the end of an attempt that an import took back. Returns `None` if none of the caller's was, or the caller
    /// has reported on it already.
    pub(crate) fn report_late(
        &self,
        by: &Caller,
        plan: &PlanId,
        task: &TaskId,
        end: &Command,
    ) -> Result<Option<WriteReply>, SharingError> {
        let Some(tag) = self.clone_tag()?.filter(|_| self.is_shared(plan).unwrap_or(false)) else {
            return Ok(None);
        };
        let Some(before) = self.before_import(plan, task)? else { return Ok(None) };
        let state = |plan: &Plan| {
            plan.task(task.as_str()).map(|task| (task.state.attempt, task.state.worker.clone()))
        };
        let Some((attempt, Some(holder))) = state(&before) else { return Ok(None) };
        if by.relation_to(&holder) == Holder::Other {
            return Ok(None);
        }
        let at = self.now()?;
        // What it was not allowed then it is not allowed now.
        let Ok(events) = before.decide(&by.actor, at, end) else { return Ok(None) };
        let mut after = before.clone();
        after.advance(&events, at);
        let _lock = self.sharing_lock()?;
        self.settle(|| {
            let derived = self.derive_records(plan, &tag)?;
            let (mut set, mut share) = (derived.set, derived.share);
            if self.read(plan, |plan| state(plan).is_none_or(|(now, _)| now != attempt))? {
                return Ok(Some(None));
            }
            let stamp = Stamp { at, by: by.actor.clone(), from: tag.clone() };
            let actions = late_report(&set, &before, &after, &events, &stamp);
            if actions.is_empty() {
                return Ok(Some(None));
            }
            let problem = |error: waypost_operation::RecordError| SharingError::Records {
                plan: plan.clone(),
                problem: error.to_string(),
            };
            let record = set.record(at, by.actor.clone(), tag.clone(), actions).map_err(problem)?;
            set.insert(ParsedRecord::Known(Box::new(record.clone())));
            let open = share.questions;
            let commands = merge_command(&set, &mut share, &tag, &[record.id()]).into_iter().collect();
            let note = match share.questions > open {
                true => {
                    "it ended differently in another clone meanwhile: a person is asked which outcome holds"
                }
                false => "it was ended in another clone meanwhile, and this report is kept, too",
            };
            let (id, own_rows) = (plan.clone(), rows::own_rows(&record));
            let rows = move |version| {
                let share = rows::PlanShare { derived_to: version, ..share.clone() };
                own_rows.iter().cloned().chain([rows::share_row(&id, &share)]).collect()
            };
            let stored = self.write_shared(plan, by.actor.clone(), Some(derived.version), commands, rows)?;
            Ok(stored.map(|committed| {
                let mut reply = WriteReply::from(&committed);
                reply.changed = true;
                reply.warnings.push(format!("task {task}: {note}"));
                Some(reply)
            }))
        })
    }

    /// Returns the plan as it was before the import that took the latest attempt of a task back.
    fn before_import(&self, plan: &PlanId, task: &TaskId) -> Result<Option<Plan>, SharingError> {
        let version = self.read(plan, Plan::version)?;
        let from = version.saturating_sub(VERSIONS_LOOKED_AT_MAX as u64);
        let takes_back = |event: &Event| {
            let Event::TaskReleased { task: of, reason } = event else { return false };
            of == task && [ENDED_ELSEWHERE, ARCHIVED_ELSEWHERE].contains(&reason.as_str())
        };
        let mut latest = self.plans().history(plan, from, VERSIONS_LOOKED_AT_MAX)?.into_iter().rev();
        let found = latest.find(|entry| entry.actor == sync_actor() && entry.events.iter().any(takes_back));
        let Some(import) = found else { return Ok(None) };
        Ok(Some(self.plans().at_version(plan, import.version - 1)?))
    }
}
