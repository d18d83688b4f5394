//! Turns the versions of a shared plan into records, when they are needed. The same versions always give the same
//! records, so a step that was killed can simply be done again.

use std::sync::Arc;

use waypost_core::{Actor, Command, Plan, PlanId, Status, Task};
use waypost_operation::{
    CloneTag, Merged, OperationSet, ParsedRecord, Record, RecordId, Stamp, derive, merge, settle_request,
    share,
};
use waypost_store::{Committed, SYNC_ACTOR, SharedRow, SharedWrite, WriteError};

use super::claim_notice::notices;
use super::error::SharingError;
use super::rows::{self, PlanShare};
use crate::service::Service;

/// Number of versions that are read at a time.
const VERSIONS_READ_MAX: usize = 500;
/// Number of times that a plan is read again because others write it at the same moment.
const TRIES_MAX: usize = 50;

/// A shared plan whose versions are all in its records.
pub(super) struct Derived {
    pub(super) share: PlanShare,
    pub(super) set: OperationSet,
    /// The version of the plan.
    pub(super) version: u64,
    /// The number of records that were new.
    pub(super) made: usize,
}

/// The actor of versions that a sync makes.
pub(super) fn sync_actor() -> Actor {
    Actor::system(SYNC_ACTOR)
}

fn problem(plan: &PlanId, error: &impl std::fmt::Display) -> SharingError {
    SharingError::Records { plan: plan.clone(), problem: error.to_string() }
}

/// Whether a question of another clone waits to be asked here: it came while the task ran, and the attempt was taken back.
fn lacks_question(here: &Plan, merged: &Merged) -> bool {
    merged.draft.tasks.iter().any(|task| {
        let is_open = |here: &Task| here.state.status == Status::Pending && here.state.question().is_none();
        let wanted = &task.state;
        wanted.status == Status::Pending
            && wanted.question().is_some()
            && here.task(task.spec.id.as_str()).is_some_and(is_open)
    })
}

impl Service {
    /// Writes commands of a shared plan with the rows that go with them. Returns `None` if somebody else wrote the plan
    /// meanwhile.
    pub(super) fn write_shared(
        &self,
        plan: &PlanId,
        by: Actor,
        known_version: Option<u64>,
        commands: Vec<Command>,
        rows: impl Fn(u64) -> Vec<SharedRow> + Send + Sync + 'static,
    ) -> Result<Option<Committed>, SharingError> {
        let write = SharedWrite { plan: plan.clone(), by, known_version, commands, rows: Arc::new(rows) };
        match self.plans().write_shared(write) {
            Ok(committed) => Ok(Some(committed)),
            Err(WriteError::Conflict(_)) => Ok(None),
            Err(WriteError::IdUsed(_)) if known_version.is_none() => Ok(None),
            Err(WriteError::Refused(waypost_core::Refusal::AlreadyExists {})) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Does something with the newest version of a plan until nobody else wrote it meanwhile.
    pub(super) fn settle<T>(
        &self,
        mut attempt: impl FnMut() -> Result<Option<T>, SharingError>,
    ) -> Result<T, SharingError> {
        for _ in 0..TRIES_MAX {
            if let Some(done) = attempt()? {
                return Ok(done);
            }
        }
        Err(SharingError::Busy)
    }

    /// Whether a shared plan has versions that are not in its records.
    pub(super) fn has_new_versions(&self, plan: &PlanId, share: &PlanShare) -> Result<bool, SharingError> {
        let state = self.plans().store().query(|read| read.plan_state(plan))?;
        Ok(share.shared && state.version().is_some_and(|version| version > share.derived_to))
    }

    /// Brings the records of a shared plan up to its newest version.
    pub(super) fn derive_records(&self, plan: &PlanId, tag: &CloneTag) -> Result<Derived, SharingError> {
        self.settle(|| self.derive_once(plan, tag))
    }

    fn derive_once(&self, plan: &PlanId, tag: &CloneTag) -> Result<Option<Derived>, SharingError> {
        let (share, mut set, version) = self.plans().store().query(|read| {
            let version = read.plan_state(plan)?.version();
            Ok((rows::share_of(read, plan)?, rows::records(read, plan)?, version))
        })?;
        let Some(mut share) = share.filter(|share| share.shared) else {
            return Err(SharingError::NotShared(plan.clone()));
        };
        let version = version.unwrap_or(0);
        if share.derived_to >= version {
            return Ok(Some(Derived { share, set, version, made: 0 }));
        }
        let (made, here) = self.records_since(plan, tag, share.derived_to, &mut set)?;
        let merged = merge(&set);
        // What was set aside may hold after what was done here, and names that were taken may be free.
        let was_contested = share.questions > 0 || !merged.conflicts.is_empty() || !merged.renamed.is_empty();
        (share.questions, share.records) = (merged.conflicts.len(), set.len());
        share.claims = notices(&merged, tag);
        let ids: Vec<RecordId> = made.iter().map(Record::id).collect();
        let is_to_settle = was_contested || lacks_question(&here, &merged);
        let settled = is_to_settle.then(|| Command::Merge(Box::new(settle_request(&set, &merged, &ids))));
        let count = made.len();
        let new: Vec<SharedRow> = made.iter().flat_map(rows::own_rows).collect();
        let stored = self.store_import(plan, Some(version), settled, &share, &new)?;
        Ok(stored.map(|stored| {
            share.derived_to = stored.version;
            Derived { share, set, version: stored.version, made: count }
        }))
    }

    /// Derives the records of the versions after `known`, and adds them to the set. Returns them, and the plan after them.
    fn records_since(
        &self,
        plan: &PlanId,
        tag: &CloneTag,
        known: u64,
        set: &mut OperationSet,
    ) -> Result<(Vec<Record>, Plan), SharingError> {
        let mut before = match known {
            0 => Plan::blank(plan.clone()),
            known => self.plans().at_version(plan, known)?,
        };
        let (mut made, mut from) = (Vec::new(), known);
        loop {
            let page = self.plans().store().query(|read| read.versions(plan, from, VERSIONS_READ_MAX))?;
            let Some(last) = page.last() else { return Ok((made, before)) };
            from = last.version;
            for version in page {
                let mut after = before.clone();
                after.advance(&version.events, version.at);
                let stamp = Stamp { at: version.at, by: version.actor, from: tag.clone() };
                let records = derive(set, &before, &after, &version.events, &stamp)
                    .map_err(|error| problem(plan, &error))?;
                for record in records {
                    set.insert(ParsedRecord::Known(Box::new(record.clone())));
                    made.push(record);
                }
                before = after;
            }
        }
    }

    /// Turns a plan as it is into the first records of it.
    pub(super) fn first_records(
        &self,
        plan: &PlanId,
        tag: &CloneTag,
        by: &Actor,
        home: Option<&str>,
    ) -> Result<usize, SharingError> {
        self.settle(|| {
            let (found, at) = (self.read(plan, Plan::clone)?, self.now()?);
            let stamp = Stamp { at, by: by.clone(), from: tag.clone() };
            let records = share(&OperationSet::new(plan.clone()), &found, &stamp)
                .map_err(|error| problem(plan, &error))?;
            let count = records.len();
            let home = home.map(str::to_owned);
            let derived_to = found.version();
            let state = PlanShare { derived_to, shared: true, home, ..PlanShare::default() };
            let mut new: Vec<SharedRow> = records.iter().flat_map(rows::own_rows).collect();
            new.push(rows::share_row(plan, &state));
            let version = Some(found.version());
            let stored = self.write_shared(plan, by.clone(), version, Vec::new(), move |_| new.clone())?;
            Ok(stored.map(|_| count))
        })
    }
}
