//! Merges the records of other clones into a plan: one version for all that arrived, together with the records.

use std::collections::BTreeSet;

use waypost_core::{Command, PlanId};
use waypost_git::TreeFile;
use waypost_operation::{
    Action, CloneTag, Inserted, OperationSet, ParsedRecord, RecordId, merge, merge_request,
};
use waypost_store::{Committed, PlanState, SharedRow, StoreError};

use super::branch::SharedBranch;
use super::claim_notice::notices;
use super::derive::{Derived, sync_actor};
use super::error::SharingError;
use super::reply::KeptAside;
use super::rows::{self, PlanShare};
use crate::error::ServiceError;
use crate::service::Service;

/// What the branch holds of a plan.
pub(super) struct Arrived {
    pub(super) plan: PlanId,
    pub(super) records: Vec<ParsedRecord>,
    /// Those of them that the trusted remote does not have.
    pub(super) strange: BTreeSet<RecordId>,
    /// Whether these are all that the branch holds of the plan, so that every other record is unpublished.
    pub(super) whole: bool,
}

impl Arrived {
    /// The branch holds no record of the plan.
    pub(super) fn nothing(plan: PlanId) -> Self {
        Self { plan, records: Vec::new(), strange: BTreeSet::new(), whole: true }
    }
}

/// What an import did.
#[derive(Debug, Default)]
pub(super) struct Imported {
    pub(super) new: usize,
    pub(super) from: BTreeSet<String>,
    pub(super) changed: bool,
    /// Why the plan is not imported.
    pub(super) aside: Option<String>,
    /// Whether another store writes under the tag of this one: it is a copy, or this one is a backup of it.
    pub(super) is_twin: bool,
    /// Records that are stored and do not count, with the reason; `None` if nothing was read.
    pub(super) refused: Option<Vec<String>>,
}

/// How the records of a plan stand here.
enum ImportTarget {
    /// They are merged into this plan, which may not exist yet.
    Merges(Box<Derived>, Option<u64>),
    Aside(&'static str),
}

impl Service {
    /// Imports what the branch holds of a plan. Doing it again changes nothing.
    pub(super) fn import_records(
        &self,
        arrived: &Arrived,
        tag: &CloneTag,
        shared: &SharedBranch,
    ) -> Result<Imported, SharingError> {
        self.settle(|| self.import_once(arrived, tag, shared))
    }

    fn import_target(
        &self,
        plan: &PlanId,
        tag: &CloneTag,
        shared: &SharedBranch,
    ) -> Result<ImportTarget, SharingError> {
        let (share, state) =
            self.plans().store().query(|read| Ok((rows::share_of(read, plan)?, read.plan_state(plan)?)))?;
        Ok(match (share, state) {
            (_, PlanState::Purged) => {
                ImportTarget::Aside("it was purged here, and an id is never used again")
            }
            (None, PlanState::Stored { .. }) => {
                ImportTarget::Aside("a plan of that name is here, and it is not shared")
            }
            (Some(share), _) if !share.shared => ImportTarget::Aside("it is not shared here any more"),
            (Some(share), _) if share.home != shared.home => ImportTarget::Aside(
                "this store shares it through another repository; `waypost share` moves it here",
            ),
            (Some(_), PlanState::Stored { .. }) => {
                let derived = self.derive_records(plan, tag)?;
                let version = Some(derived.version);
                ImportTarget::Merges(Box::new(derived), version)
            }
            (share, PlanState::Unused) => {
                let new = PlanShare { shared: true, home: shared.home.clone(), ..PlanShare::default() };
                let share = share.unwrap_or(new);
                let set = self.plans().store().query(|read| rows::records(read, plan))?;
                ImportTarget::Merges(Box::new(Derived { share, set, version: 0, made: 0 }), None)
            }
        })
    }

    /// Returns the plans of the branch that have no place here: they are purged, or others of that name are.
    pub fn left_out(&self, shared: &SharedBranch) -> Result<Vec<KeptAside>, SharingError> {
        let (Some(tag), Some(tip)) = (self.clone_tag()?, shared.branch().tip()?) else {
            return Ok(Vec::new());
        };
        let (files, _) = shared.repository.files(&tip.commit, "plans/")?;
        let plans: BTreeSet<PlanId> = files.iter().filter_map(TreeFile::plan).collect();
        let missing = self.plans().store().query(|read| {
            let mut is_here = |plan: &PlanId| {
                let is_purged = read.plan_state(plan)? == PlanState::Purged;
                Ok::<bool, StoreError>(!is_purged && rows::share_of(read, plan)?.is_some())
            };
            let mut missing = Vec::new();
            for plan in &plans {
                if !is_here(plan)? {
                    missing.push(plan.clone());
                }
            }
            Ok(missing)
        })?;
        let mut left = Vec::new();
        for plan in missing {
            if let ImportTarget::Aside(reason) = self.import_target(&plan, &tag, shared)? {
                left.push(KeptAside { plan, reason: reason.to_owned() });
            }
        }
        Ok(left)
    }

    fn import_once(
        &self,
        arrived: &Arrived,
        tag: &CloneTag,
        shared: &SharedBranch,
    ) -> Result<Option<Imported>, SharingError> {
        let Arrived { plan, records, strange, whole } = arrived;
        let (derived, version) = match self.import_target(plan, tag, shared)? {
            ImportTarget::Merges(derived, version) => (derived, version),
            ImportTarget::Aside(reason) => {
                return Ok(Some(Imported { aside: Some(reason.to_owned()), ..Imported::default() }));
            }
        };
        let Derived { mut share, mut set, .. } = *derived;
        let known: Vec<(RecordId, String)> = match whole {
            true => set.records().map(|record| (record.id(), record.to_line())).collect(),
            false => Vec::new(),
        };
        let mut imported = Imported::default();
        let (mut new_ids, mut new_tags, mut put) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut there = BTreeSet::new();
        for record in records {
            there.insert(record.id());
            match set.insert(record.clone()) {
                Inserted::New => {
                    new_ids.push(record.id());
                    if let ParsedRecord::Known(record) = record {
                        new_tags.insert(record.from().clone());
                    }
                    put.push(rows::foreign_row(record));
                }
                // It was made here, or came before; the branch holds it now.
                Inserted::Known => put.push(rows::unpublished_row(record.id(), None)),
                Inserted::OtherPlan | Inserted::TooMany => {}
            }
        }
        let missing = known.into_iter().filter(|(id, _)| !there.contains(id));
        put.extend(missing.map(|(id, line)| rows::unpublished_row(id, Some(line))));
        imported.new = new_ids.len();
        // After a lost database everything comes back, and nothing here was written under the tag.
        imported.is_twin = new_tags.contains(tag) && version.is_some();
        imported.from = new_tags.iter().map(ToString::to_string).collect();
        if put.is_empty() {
            return Ok(Some(imported));
        }
        let is_strange = new_ids.iter().any(|id| strange.contains(id));
        let mut command = match imported.new {
            0 => None,
            _ => merge_command(&set, &mut share, tag, &new_ids),
        };
        if let Some(Command::Merge(request)) = &mut command {
            request.untrusted = is_strange || !shared.trusted;
        }
        match shared.trusted {
            true if is_strange => put.push(rows::withheld_row(plan, "")),
            false if imported.new > 0 => put.push(rows::withheld_row(plan, &shared.address)),
            true | false => {}
        }
        let refused = set.refused().into_iter();
        let refused = refused.map(|(id, why)| format!("plan {plan}: record {id}: {why}"));
        imported.refused = Some(shared_twice(plan, &set).into_iter().chain(refused).collect());
        imported.aside.clone_from(&share.problem);
        let stored = self.store_import(plan, version, command, &share, &put)?;
        Ok(stored.map(|stored| Imported { changed: stored.changed, ..imported }))
    }

    /// Writes the version and the rows. A merge that the plan refuses leaves the plan as it is and keeps the records.
    pub(super) fn store_import(
        &self,
        plan: &PlanId,
        version: Option<u64>,
        command: Option<Command>,
        share: &PlanShare,
        put: &[SharedRow],
    ) -> Result<Option<Committed>, SharingError> {
        let rows_of = |share: PlanShare| {
            let (plan, put) = (plan.clone(), put.to_vec());
            move |version| {
                let share = PlanShare { derived_to: version, ..share.clone() };
                let mut rows = put.clone();
                rows.push(rows::share_row(&plan, &share));
                rows
            }
        };
        let commands: Vec<Command> = command.into_iter().collect();
        let written = self.write_shared(plan, sync_actor(), version, commands, rows_of(share.clone()));
        let refusal = match written {
            Err(SharingError::Service(error @ (ServiceError::Refused(_) | ServiceError::Invalid { .. }))) => {
                error.to_string()
            }
            written => return written,
        };
        let share = PlanShare { problem: Some(refusal), ..share.clone() };
        self.write_shared(plan, sync_actor(), version, Vec::new(), rows_of(share))
    }
}

/// Builds the command that turns the plan into the merged one. Returns `None` if there is nothing to merge yet.
pub(super) fn merge_command(
    set: &OperationSet,
    share: &mut PlanShare,
    tag: &CloneTag,
    new: &[RecordId],
) -> Option<Command> {
    (share.problem, share.newer) = (None, set.newer());
    if set.heads().is_empty() {
        // The records that they continue have not arrived.
        return None;
    }
    let merged = merge(set);
    (share.questions, share.records) = (merged.conflicts.len(), set.len());
    share.claims = notices(&merged, tag);
    Some(Command::Merge(Box::new(merge_request(set, &merged, new))))
}

/// Says that several clones shared a plan without knowing of each other, so that what both made is there twice.
fn shared_twice(plan: &PlanId, set: &OperationSet) -> Option<String> {
    let known = set.records().filter_map(ParsedRecord::known);
    let creates = known.filter(|record| record.actions().iter().any(|act| matches!(act, Action::Create(_))));
    let clones: BTreeSet<&CloneTag> = creates.map(waypost_operation::Record::from).collect();
    let named = clones.iter().map(ToString::to_string).collect::<Vec<String>>().join(" and ");
    let why = "shared it without knowing of each other: what both made is there twice, remove one of each";
    (clones.len() > 1).then(|| format!("plan {plan}: the clones {named} {why}"))
}
