//! What the store keeps about shared plans: the tag of this clone, how far each plan was turned into records, the records,
//! and which of them the branch does not hold yet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use waypost_core::{PlanId, Timestamp};
use waypost_operation::{CloneTag, OperationSet, ParsedRecord, Record, RecordId};
use waypost_store::{Read, SharedGroup, SharedKeys, SharedRow, SharedScope, StoreError, Transaction};

use super::claim_notice::ClaimNotice;

/// Number of rows that are read at a time.
const PAGE: usize = 500;
const TAG: &str = "tag";
const BRANCH: &str = "branch";
const REMOTE: &str = "remote";
const FINDINGS: &str = "findings";

/// What is known of a shared plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlanShare {
    /// The last version that is in the records.
    pub(super) derived_to: u64,
    /// Whether it still travels.
    pub(super) shared: bool,
    /// The number of its open questions.
    #[serde(default)]
    pub(super) questions: usize,
    /// The number of records that leave them open; 0 if it is not known.
    #[serde(default)]
    pub(super) records: usize,
    /// The number of records of a newer version of Waypost, which are passed on and do not count here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) newer: usize,
    /// Who works on its tasks in other clones, as far as records say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) claims: Vec<ClaimNotice>,
    /// Where it travels, if the store serves several repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) home: Option<String>,
    /// Why the records were not merged, although they are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    /// What later versions write.
    #[serde(flatten)]
    pub(super) unknown: Map<String, Value>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The tag that this clone drew, and where it was drawn: a copied store draws another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DrawnTag {
    pub(super) tag: CloneTag,
    pub(super) place: String,
}

/// The commit of the branch whose records are all in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenBranch {
    pub(super) name: String,
    pub(super) commit: String,
}

/// What the last sync found at the remote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenRemote {
    /// The commit that the remote has.
    #[serde(default)]
    pub(super) commit: Option<String>,
    /// Why it could not be reached.
    #[serde(default)]
    pub(super) problem: Option<String>,
    /// Since when shared plans do not leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<Timestamp>,
    /// The number of records that wait for it.
    #[serde(default)]
    pub(super) waiting: usize,
    /// The commits of the trusted remote that went into the local branch and may not be imported yet. Somebody can force
    /// the remote's branch back meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) joined: Vec<String>,
}

fn text<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Database(error.to_string()))
}

fn parse<T: for<'a> Deserialize<'a>>(what: &str, text: &str) -> Result<T, StoreError> {
    let corrupt =
        |error: serde_json::Error| StoreError::Corrupt { what: what.to_owned(), detail: error.to_string() };
    serde_json::from_str(text).map_err(corrupt)
}

fn one(read: &mut dyn Read, scope: SharedScope<'_>, key: &str) -> Result<Option<String>, StoreError> {
    Ok(read.shared(scope, SharedKeys::Only(key), 1)?.pop().map(|(_, value)| value))
}

fn own<T: for<'a> Deserialize<'a>>(read: &mut dyn Read, key: &str) -> Result<Option<T>, StoreError> {
    let found = one(read, SharedScope::Clone, key)?;
    found.map(|text| parse(&format!("the row `{key}` about this clone"), &text)).transpose()
}

pub(super) fn tag(read: &mut dyn Read) -> Result<Option<DrawnTag>, StoreError> {
    own(read, TAG)
}

pub(super) fn seen_branch(read: &mut dyn Read) -> Result<Option<SeenBranch>, StoreError> {
    own(read, BRANCH)
}

pub(super) fn seen_remote(read: &mut dyn Read) -> Result<SeenRemote, StoreError> {
    Ok(own(read, REMOTE)?.unwrap_or_default())
}

/// Returns what the last import could not read or did not believe, by file or plan.
pub(super) fn findings(read: &mut dyn Read) -> Result<BTreeMap<String, Vec<String>>, StoreError> {
    Ok(own(read, FINDINGS)?.unwrap_or_default())
}

pub(super) fn put_findings(
    write: &mut dyn Transaction,
    findings: &BTreeMap<String, Vec<String>>,
) -> Result<(), StoreError> {
    let found: BTreeMap<&String, &Vec<String>> =
        findings.iter().filter(|(_, found)| !found.is_empty()).collect();
    let value = if found.is_empty() { None } else { Some(text(&found)?) };
    write.put(waypost_store::Record::Shared(SharedScope::Clone, FINDINGS, value.as_deref()))
}

pub(super) fn put_tag(write: &mut dyn Transaction, tag: &DrawnTag) -> Result<(), StoreError> {
    write.put(waypost_store::Record::Shared(SharedScope::Clone, TAG, Some(&text(tag)?)))
}

pub(super) fn put_seen_branch(
    write: &mut dyn Transaction,
    seen: Option<&SeenBranch>,
) -> Result<(), StoreError> {
    let value = seen.map(text).transpose()?;
    write.put(waypost_store::Record::Shared(SharedScope::Clone, BRANCH, value.as_deref()))
}

pub(super) fn put_seen_remote(write: &mut dyn Transaction, seen: &SeenRemote) -> Result<(), StoreError> {
    write.put(waypost_store::Record::Shared(SharedScope::Clone, REMOTE, Some(&text(seen)?)))
}

/// Returns what is known of a plan; `None` if it was never shared.
pub(super) fn share_of(read: &mut dyn Read, plan: &PlanId) -> Result<Option<PlanShare>, StoreError> {
    let found = one(read, SharedScope::Plans, plan.as_str())?;
    found.map(|text| parse(&format!("the row about the shared plan {plan}"), &text)).transpose()
}

/// Calls `each` with all rows of a group.
fn each_row(
    read: &mut dyn Read,
    scope: SharedScope<'_>,
    mut each: impl FnMut(String, String) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut after = String::new();
    loop {
        let page = read.shared(scope, SharedKeys::After(&after), PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after.clone_from(last);
        for (key, value) in page {
            each(key, value)?;
        }
    }
}

/// Returns all plans that travel or did once.
pub(super) fn shares(read: &mut dyn Read) -> Result<Vec<(PlanId, PlanShare)>, StoreError> {
    let mut found = Vec::new();
    each_row(read, SharedScope::Plans, |key, value| {
        let share = parse(&format!("the row about the shared plan {key}"), &value)?;
        let bad =
            |error: waypost_core::BadId| StoreError::Corrupt { what: key.clone(), detail: error.to_string() };
        found.push((PlanId::new(key.as_str()).map_err(bad)?, share));
        Ok(())
    })?;
    Ok(found)
}

/// Returns the records of a plan.
pub(super) fn records(read: &mut dyn Read, plan: &PlanId) -> Result<OperationSet, StoreError> {
    let mut set = OperationSet::new(plan.clone());
    each_row(read, SharedScope::Records(plan), |key, line| {
        let record = Record::parse(line.as_bytes()).map_err(|error| StoreError::Corrupt {
            what: format!("record {key} of plan {plan}"),
            detail: error.to_string(),
        })?;
        set.insert(record);
        Ok(())
    })?;
    Ok(set)
}

/// Returns the records of a plan that the branch does not hold yet.
pub(super) fn unpublished(read: &mut dyn Read, plan: &PlanId) -> Result<Vec<(String, String)>, StoreError> {
    let mut found = Vec::new();
    each_row(read, SharedScope::Unpublished(plan), |key, line| {
        found.push((key, line));
        Ok(())
    })?;
    Ok(found)
}

/// Returns the plans that no agent is offered, with the address that they came from; empty if that is not known.
pub(super) fn withheld(read: &mut dyn Read) -> Result<Vec<(PlanId, String)>, StoreError> {
    let mut found = Vec::new();
    each_row(read, SharedScope::Withheld, |key, from| {
        found.extend(PlanId::new(key).ok().map(|plan| (plan, from)));
        Ok(())
    })?;
    Ok(found)
}

/// Whether no agent is offered a plan.
pub(super) fn is_withheld(read: &mut dyn Read, plan: &PlanId) -> Result<bool, StoreError> {
    Ok(one(read, SharedScope::Withheld, plan.as_str())?.is_some())
}

/// The row about a shared plan.
pub(super) fn share_row(plan: &PlanId, share: &PlanShare) -> SharedRow {
    let value = serde_json::to_string(share).ok();
    SharedRow { group: SharedGroup::Plans, key: plan.to_string(), value }
}

pub(super) fn record_row(id: RecordId, line: String) -> SharedRow {
    SharedRow { group: SharedGroup::Records, key: id.to_string(), value: Some(line) }
}

/// The row that marks a record as not published, or removes the mark.
pub(super) fn unpublished_row(id: RecordId, line: Option<String>) -> SharedRow {
    SharedRow { group: SharedGroup::Unpublished, key: id.to_string(), value: line }
}

/// The row of a line that is not published.
pub(super) fn unpublished_line(key: String, line: String) -> SharedRow {
    SharedRow { group: SharedGroup::Unpublished, key, value: Some(line) }
}

/// The row that keeps a plan from agents, with the address that it came from.
pub(super) fn withheld_row(plan: &PlanId, from: &str) -> SharedRow {
    SharedRow { group: SharedGroup::Withheld, key: plan.to_string(), value: Some(from.to_owned()) }
}

/// The rows of a record that this clone made.
pub(super) fn own_rows(record: &Record) -> [SharedRow; 2] {
    let line = record.to_line();
    [record_row(record.id(), line.clone()), unpublished_row(record.id(), Some(line))]
}

/// The rows of a record that the branch holds.
pub(super) fn foreign_row(record: &ParsedRecord) -> SharedRow {
    record_row(record.id(), record.to_line())
}

pub(super) fn put_share(
    write: &mut dyn Transaction,
    plan: &PlanId,
    share: &PlanShare,
) -> Result<(), StoreError> {
    write.put(waypost_store::Record::Shared(SharedScope::Plans, plan.as_str(), Some(&text(share)?)))
}

/// Removes the mark of a record that the branch holds now.
pub(super) fn put_published(write: &mut dyn Transaction, plan: &PlanId, id: &str) -> Result<(), StoreError> {
    write.put(waypost_store::Record::Shared(SharedScope::Unpublished(plan), id, None))
}

/// Offers a plan to agents again.
pub(super) fn release(write: &mut dyn Transaction, plan: &PlanId) -> Result<(), StoreError> {
    write.put(waypost_store::Record::Shared(SharedScope::Withheld, plan.as_str(), None))
}

/// Counts the rows of a group.
pub(super) fn count(read: &mut dyn Read, scope: SharedScope<'_>) -> Result<usize, StoreError> {
    let mut count = 0;
    each_row(read, scope, |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}
