//! Checks a whole store: every plan must follow from its events, and the tables derived from it must agree.

use serde::Serialize;
use waypost_core::{Plan, PlanId};

use crate::error::Result;
use crate::maintenance::verify::{Replayed, replay, snapshot_versions};
use crate::plans::PlanStore;
use crate::plans::cache::load;
use crate::rows::{ArchiveFilter, IndexRows, Lease, LeaseFilter, PlanSummary, Query, Sort};
use crate::store::Read;

/// Number of versions on one page of a history.
pub const HISTORY_PAGE: usize = 50;
/// Number of plan summaries that a check reads at a time.
const PLANS_PER_PAGE: usize = 500;

/// A problem that the check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The id of the plan, or `None` for the store itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// The description of the problem. After a repair, further lines hold the versions that it left out.
    pub what: String,
    /// Whether the problem was repaired.
    pub repaired: bool,
    /// Whether a repair may help: not where a version does not follow from the one before it.
    #[serde(skip)]
    pub repairable: bool,
}

impl PlanStore {
    /// Checks the store and all its plans; with `repair`, rebuilds from the events whatever can be rebuilt.
    pub fn doctor(&self, repair: bool) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        if repair {
            let repaired = self.store().repair()?.into_iter();
            findings.extend(repaired.map(|(plan, what)| Finding {
                plan,
                what,
                repaired: true,
                repairable: true,
            }));
        }
        let below = self.store().check()?.into_iter();
        findings.extend(below.map(|what| Finding { plan: None, what, repaired: false, repairable: true }));
        for finding in self.check_subscriptions(repair)? {
            if !findings.iter().any(|found| found.what == finding.what) {
                findings.push(finding);
            }
        }
        for id in self.all_ids()? {
            let (wrong, right) = match self.store().query(|read| compare(read, &id)) {
                Ok(compared) => compared,
                Err(error) => {
                    let what = error.to_string();
                    // A damaged file of the store itself affects many plans, and is reported once.
                    if !findings.iter().any(|found| found.what.starts_with(&what)) {
                        findings.push(Finding { plan: Some(id), what, repaired: false, repairable: true });
                    }
                    continue;
                }
            };
            let repaired = repair && !wrong.is_empty() && right.is_some();
            if repaired {
                self.store().write(&mut |transaction| {
                    // Read again under the lock: another process may have written since.
                    let Some(head) = transaction.head(&id)? else { return Ok(()) };
                    let plan = load(transaction, &id, head.version)?;
                    let mut rows = IndexRows::of(&plan);
                    keep_leases(&mut rows, &transaction.leases(&LeaseFilter::Plan(&id), usize::MAX >> 1)?);
                    transaction.replace_index(&plan, &PlanSummary::of(&plan), &rows)
                })?;
            }
            let repairable = right.is_some();
            let found =
                wrong.into_iter().map(|what| Finding { plan: Some(id.clone()), what, repaired, repairable });
            findings.extend(found);
        }
        Ok(findings)
    }

    /// Returns the plans of which nothing can be read, with the damage to their files. No list has them.
    pub fn unreadable_plans(&self) -> Result<Vec<(PlanId, String)>> {
        let ids = self.store().query(|read| read.ids("", PLANS_PER_PAGE))?;
        let mut found = Vec::new();
        for id in ids {
            if let Some(damage) = self.store().damage(&id)?
                && self.store().intact(&id)?.is_none()
            {
                found.push((id, damage));
            }
        }
        Ok(found)
    }

    fn all_ids(&self) -> Result<Vec<PlanId>> {
        let mut query =
            Query { shelf: ArchiveFilter::All, sort: Sort::Id, limit: PLANS_PER_PAGE, ..Query::default() };
        let mut ids = Vec::new();
        loop {
            let page = self.heads(&query)?;
            ids.extend(page.items.into_iter().map(|head| head.id));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(ids),
            }
        }
    }
}

/// Returns how the rows of a plan differ from its events, and the plan. The plan is `None` when a version does not follow
/// from the one before it.
fn compare(read: &mut dyn Read, id: &PlanId) -> Result<(Vec<String>, Option<Plan>)> {
    let Some(head) = read.head(id)? else { return Ok((Vec::new(), None)) };
    let Replayed { plan, first_break, .. } = replay(read, &head)?;
    let mut wrong: Vec<String> = first_break.iter().map(ToString::to_string).collect();
    let Some(plan) = plan else { return Ok((wrong, None)) };
    for version in snapshot_versions(read, &head, 0)? {
        if read.snapshot(id, version)?.is_some_and(|(_, bytes)| Plan::from_snapshot(bytes).is_err()) {
            wrong.push(format!("the snapshot of version {version} cannot be read (it is not needed)"));
        }
    }
    if PlanSummary::of(&plan) != head {
        wrong.push("its line in the list differs from what the events say".to_owned());
    }
    let mut rows = IndexRows::of(&plan);
    let stored = read.index(id)?;
    keep_leases(&mut rows, &stored.leases);
    if rows != stored {
        wrong.push("the tables of leases, locks and waits differ from what the events say".to_owned());
    }
    Ok((wrong, Some(plan)))
}

/// Copies the columns that only the stored rows know: a lease's duration, start, end, progress and queue.
pub(crate) fn keep_leases(rows: &mut IndexRows, stored: &[Lease]) {
    for lease in &mut rows.leases {
        let same = stored.iter().find(|other| other.task == lease.task && other.attempt == lease.attempt);
        if let Some(same) = same {
            (lease.until, lease.seconds, lease.since) = (same.until, same.seconds, same.since);
            lease.progress.clone_from(&same.progress);
            lease.queue.clone_from(&same.queue);
        }
    }
}
