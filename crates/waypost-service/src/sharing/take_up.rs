//! Takes a plan up again that the branch holds and this store does not share, if a version of it is what records of the
//! branch once said: its file of shared rows was lost, or two clones made the plan from the same text.

use waypost_core::{Actor, Command, Plan, PlanId};
use waypost_operation::{CloneTag, OperationSet, ParsedRecord, Record, merge, merge_request};
use waypost_store::{SharedRow, WriteError};

use super::branch::SharedBranch;
use super::derive::sync_actor;
use super::error::SharingError;
use super::rows::{self, PlanShare};
use crate::service::Service;

/// Number of versions, newest first, that are compared with the records.
const VERSIONS_BACK_MAX: usize = 64;
/// Number of records, newest first, without which the rest is compared.
const RECORDS_BACK_MAX: usize = 64;

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
        let mut versions = Vec::new();
        for version in (1..=newest).rev().take(VERSIONS_BACK_MAX) {
            match self.plans().at_version(plan, version) {
                Ok(state) => versions.push(state),
                // It is pruned, and so are those before it.
                Err(WriteError::NoSuchVersion { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let now = self.now()?;
        let records: Vec<&ParsedRecord> = all.records().collect();
        for count in (1..=records.len()).rev().take(RECORDS_BACK_MAX) {
            let mut known = OperationSet::new(plan.clone());
            for record in &records[..count] {
                known.insert((*record).clone());
            }
            if known.heads().is_empty() {
                continue;
            }
            let request = Command::Merge(Box::new(merge_request(&known, &merge(&known), &[])));
            let is_same = |state: &&Plan| {
                let decided = state.decide(&sync_actor(), now, &request);
                decided.is_ok_and(|events| events.is_empty())
            };
            if let Some(same) = versions.iter().find(is_same) {
                return Ok(Some((same.version(), known)));
            }
        }
        Ok(None)
    }
}
