//! Checks that the branch and the store hold the same records, and that all of them can be read.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use waypost_core::{PlanId, Timestamp};
use waypost_git::{Damage, Oid, TreeFile};
use waypost_operation::Record;
use waypost_store::{PlanState, SharedScope};

use super::branch::SharedBranch;
use super::error::SharingError;
use super::rows::{self, SeenRemote};
use crate::service::Service;

/// Maximum number of records of a plan that a finding names.
const NAMED_MAX: usize = 3;

/// What waits to leave for the remote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SharingBacklog {
    /// Why it does not leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The number of records that wait.
    pub waiting: usize,
}

/// What a check of the shared plans found, one line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharingCheck {
    /// What is wrong here.
    pub findings: Vec<String>,
    /// What somebody wrote to the branch that does not count: nothing of this clone is lost by it.
    pub notes: Vec<String>,
}

impl Service {
    /// Checks the shared plans. Nothing is shared: nothing is wrong.
    pub fn check_sharing(&self, shared: &SharedBranch) -> Result<SharingCheck, SharingError> {
        let SharingCheck { mut findings, mut notes } = SharingCheck::default();
        if self.clone_tag()?.is_none() {
            return Ok(SharingCheck { findings, notes });
        }
        let seen = self.plans().store().query(rows::seen_branch)?;
        let tip = shared.repository.tip(shared.name.as_str())?.map(|tip| tip.commit);
        let in_branch = match &tip {
            Some(tip) => records_of_branch(shared, tip, &mut notes)?,
            None => BTreeMap::new(),
        };
        // What the branch got since is imported by the next sync.
        let is_seen = seen.map(|seen| seen.commit) == tip.as_ref().map(Oid::to_string);
        for (plan, share) in self.plans().store().query(rows::shares)? {
            let set = self.plans().store().query(|read| rows::records(read, &plan))?;
            for (id, refused) in set.refused() {
                notes.push(format!("plan {plan}: record {id} is not merged: {refused}"));
            }
            for (id, missing) in set.waiting() {
                let parents = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                notes
                    .push(format!("plan {plan}: record {id} continues records that are not here: {parents}"));
            }
            if let Some(problem) = &share.problem {
                findings.push(format!("plan {plan} is not merged: {problem}"));
            }
            let is_purged = self.plans().store().query(|read| read.plan_state(&plan))? == PlanState::Purged;
            if !is_seen || !share.shared || is_purged {
                continue;
            }
            let waiting = self.plans().store().query(|read| rows::unpublished(read, &plan))?;
            let waiting: BTreeSet<String> = waiting.into_iter().map(|(id, _)| id).collect();
            let mine: BTreeSet<String> = set.records().map(|record| record.id().to_string()).collect();
            let empty = BTreeSet::new();
            let there = in_branch.get(&plan).unwrap_or(&empty);
            let lost = mine.iter().filter(|id| !there.contains(*id) && !waiting.contains(*id));
            name(&mut findings, &plan, "the branch lacks", lost.collect());
            name(&mut findings, &plan, "the store lacks", there.difference(&mine).collect());
        }
        Ok(SharingCheck { findings, notes })
    }

    /// Compares the store with the whole branch again, and puts back what either lacks.
    pub fn repair_sharing(&self, shared: &SharedBranch) -> Result<(), SharingError> {
        if self.clone_tag()?.is_some() {
            self.plans().store().write(&mut |write| rows::put_seen_branch(write, None))?;
            self.publish_locally(shared)?;
        }
        Ok(())
    }

    /// Returns the number of records that wait to be published or pushed, and why the remote was not reached last.
    pub fn sharing_backlog(&self) -> Result<SharingBacklog, SharingError> {
        let mut found = SharingBacklog::default();
        self.plans().store().read(&mut |read| {
            let SeenRemote { problem, since, waiting, .. } = rows::seen_remote(read)?;
            found = SharingBacklog { problem, since, waiting };
            for (plan, _) in rows::shares(read)? {
                found.waiting += rows::count(read, SharedScope::Unpublished(&plan))?;
            }
            Ok(())
        })?;
        Ok(found)
    }
}

fn name(findings: &mut Vec<String>, plan: &PlanId, what: &str, ids: Vec<&String>) {
    if !ids.is_empty() {
        let named = ids.iter().take(NAMED_MAX).map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
        findings.push(format!("plan {plan}: {what} {} of its records: {named}", ids.len()));
    }
}

/// The ids of the records of each plan in the branch.
fn records_of_branch(
    shared: &SharedBranch,
    tip: &Oid,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<PlanId, BTreeSet<String>>, SharingError> {
    shared.branch().check_format(tip)?;
    let (files, damage) = shared.repository.files(tip, "plans/")?;
    let files: Vec<TreeFile> = files.into_iter().filter(|file| file.plan().is_some()).collect();
    let (mut found, mut wrong): (BTreeMap<PlanId, BTreeSet<String>>, Vec<String>) = Default::default();
    let unread = shared.repository.read_lines(tip, &files, |line| {
        let Some(plan) = line.file.plan() else { return };
        match Record::parse(line.text.as_bytes()) {
            Ok(record) if *record.plan() == plan => {
                found.entry(plan).or_default().insert(record.id().to_string());
            }
            Ok(record) => {
                let problem = format!("this is a record of plan {}", record.plan());
                wrong.push(line.damage(tip, problem).to_string());
            }
            Err(error) => wrong.push(line.damage(tip, error.to_string()).to_string()),
        }
    })?;
    let damage = damage.iter().chain(&unread).map(Damage::to_string);
    let branch = shared.name.short();
    notes.extend(damage.chain(wrong).map(|finding| format!("{branch}@{finding}")));
    Ok(found)
}
