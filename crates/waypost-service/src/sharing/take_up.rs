//! Takes a plan up again that the branch holds and this store does not share, if a version of it is what records of the
//! branch once said: its file of shared rows was lost, or two clones made the plan from the same text.

use std::collections::BTreeSet;

use waypost_core::{Actor, Command, Draft, Plan, PlanId};
use waypost_operation::{CloneTag, OperationSet, ParsedRecord, Record, merge, merge_request};
use waypost_store::{SharedRow, WriteError};

use super::branch::SharedBranch;
use super::derive::sync_actor;
use super::error::SharingError;
use super::rows::{self, PlanShare};
use crate::service::Service;

/// Number of versions and of records, newest first, that are looked at, and the number of tasks in all of them: of large
/// plans only the last.
const BACK_MAX: usize = 1_000;
const TASKS_READ_MAX: usize = 1_000_000;

impl Service {
    /// Shares a plan that goes on from what the branch holds of it. Returns the number of new records; `None` if no
    /// version here is like what the branch says or said.
    pub(super) fn take_up(
        &self,
        plan: &PlanId,
        tag: &CloneTag,
        by: &Actor,
        shared: &SharedBranch,
    ) -> Result<Option<usize>, SharingError> {
        let all = self.records_of_branch(plan, shared)?;
        let found = self.settle(|| {
            let now = self.read(plan, Plan::version)?;
            let Some((version, known)) = self.common_state(plan, now, &all)? else {
                return Ok(Some(false));
            };
            let home = shared.home.clone();
            let state = PlanShare { derived_to: version, shared: true, home, ..PlanShare::default() };
            let mut new: Vec<SharedRow> = known.records().map(rows::foreign_row).collect();
            new.push(rows::share_row(plan, &state));
            let stored = self.write_shared(plan, by.clone(), Some(now), Vec::new(), move |_| new.clone())?;
            Ok(stored.map(|_| true))
        })?;
        if !found {
            return Ok(None);
        }
        // The rest of the branch is read with the next import.
        self.plans().store().write(&mut |write| rows::put_seen_branch(write, None))?;
        Ok(Some(self.derive_records(plan, tag)?.made))
    }

    /// Returns the records that the branch has of a plan, here and as the remote had it at last.
    fn records_of_branch(&self, plan: &PlanId, shared: &SharedBranch) -> Result<OperationSet, SharingError> {
        let mut set = OperationSet::new(plan.clone());
        let tracking = shared.remote.as_ref().map(|remote| shared.name.tracking(remote));
        for name in std::iter::once(shared.name.as_str()).chain(tracking.as_deref()) {
            let Some(tip) = shared.repository.tip(name)? else { continue };
            let (files, _) = shared.repository.files(&tip.commit, &format!("plans/{plan}/"))?;
            // What cannot be read is named by each sync.
            shared.repository.read_lines(&tip.commit, &files, |line| {
                if let Ok(record) = Record::parse(line.text.as_bytes()) {
                    set.insert(record);
                }
            })?;
        }
        Ok(set)
    }

    /// Returns the newest version of a plan that the first of these records lead to, with as many of them as do.
    fn common_state(
        &self,
        plan: &PlanId,
        newest: u64,
        all: &OperationSet,
    ) -> Result<Option<(u64, OperationSet)>, SharingError> {
        let tasks = self.read(plan, |plan| plan.tasks().count())?;
        let back_max = (TASKS_READ_MAX / tasks.max(1)).clamp(1, BACK_MAX);
        let mut versions = Vec::new();
        for version in (1..=newest).rev().take(back_max) {
            match self.plans().at_version(plan, version) {
                // An empty plan is like any other.
                Ok(state) if state.tasks().next().is_none() => {}
                Ok(state) => versions.push((texts(&state.to_draft()), state)),
                // It is pruned, and so are those before it.
                Err(WriteError::NoSuchVersion { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let now = self.now()?;
        let records: Vec<&ParsedRecord> = all.records().collect();
        for count in (1..=records.len()).rev().take(back_max) {
            let mut known = OperationSet::new(plan.clone());
            for record in &records[..count] {
                known.insert((*record).clone());
            }
            if known.heads().is_empty() {
                continue;
            }
            let merged = merge(&known);
            let merged_texts = texts(&merged.draft);
            let request = Command::Merge(Box::new(merge_request(&known, &merged, &[])));
            let is_same = |(texts, state): &&(BTreeSet<String>, Plan)| {
                *texts == merged_texts
                    && state.decide(&sync_actor(), now, &request).is_ok_and(|events| events.is_empty())
            };
            if let Some((_, same)) = versions.iter().find(is_same) {
                return Ok(Some((same.version(), known)));
            }
        }
        Ok(None)
    }
}

/// What a plan is recognized by, before it is compared in full.
fn texts(draft: &Draft) -> BTreeSet<String> {
    draft.tasks.iter().map(|task| format!("{} {}", task.spec.id, task.spec.description)).collect()
}
