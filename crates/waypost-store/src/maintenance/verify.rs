//! Verifies the history of a plan: every version must follow from the version before it by its hash, and every snapshot
//! from the events. The hashes show what was changed, removed or moved, but somebody who can write the store can recompute
//! all of them; only a hash that was kept elsewhere shows that ([`Anchor`]).

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use waypost_core::canonical::Hash;
use waypost_core::{Plan, PlanId, Timestamp};
use waypost_text::from_hex;

use crate::error::{Result, StoreError, day};
use crate::plans::PlanStore;
use crate::plans::cache::load;
use crate::rows::{LOST, PlanSummary, Pruned, ranges, version_words};
use crate::store::Read;
use crate::stored_version::{EarlierVersions, HASH_OF_NOTHING, StoredVersion};

/// Maximum number of versions that are read at a time.
const VERSIONS_READ_MAX: usize = 1_000;

/// The first place at which a history is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryBreak {
    what: String,
    /// When the last version before it was written, and by which actor.
    last_good: Option<(Timestamp, String)>,
}

impl fmt::Display for HistoryBreak {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        match &self.last_good {
            Some((at, actor)) => write!(formatter, "; last good: {} by {actor}", day(*at)),
            None => Ok(()),
        }
    }
}

impl Serialize for HistoryBreak {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The id of the plan.
    pub plan: PlanId,
    /// The version of the plan.
    pub version: u64,
    /// The hash of that version in hexadecimal; `None` if no version was written since hashes exist.
    pub hash: Option<String>,
    /// The first version whose hash covers it alone, if earlier versions have no hashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chained_from: Option<u64>,
    /// The first break; `None` for a sound history.
    #[serde(rename = "break", skip_serializing_if = "Option::is_none")]
    pub first_break: Option<HistoryBreak>,
}

/// The hash that a version of a plan had when it was noted outside the store: `PLAN VERSION HASH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The id of the plan.
    pub plan: PlanId,
    version: u64,
    hash: Hash,
}

/// A line that is not an anchor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an anchor: write PLAN VERSION HASH")]
pub struct BadAnchor(String);

impl FromStr for Anchor {
    type Err = BadAnchor;

    fn from_str(line: &str) -> std::result::Result<Self, BadAnchor> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let parsed = match words.as_slice() {
            [plan, version, hash] => PlanId::new(*plan).ok().zip(version.parse().ok()).zip(from_hex(hash)),
            _ => None,
        };
        let ((plan, version), hash) = parsed.ok_or_else(|| BadAnchor(line.to_owned()))?;
        Ok(Self { plan, version, hash })
    }
}

impl PlanStore {
    /// Verifies the history of a plan; returns `None` if there is no such plan.
    pub fn verify(&self, plan: &PlanId) -> Result<Option<Verified>> {
        let verified = self.store().query(|read| {
            let Some(head) = read.head(plan)? else { return Ok(None) };
            let Replayed { hash, chained_from, first_break, loss, .. } = replay(read, &head)?;
            let first_break = first_break.or(loss);
            let (version, hash) = (head.version, hash.map(|hash| waypost_text::hex(&hash)));
            Ok(Some(Verified { plan: plan.clone(), version, hash, chained_from, first_break }))
        });
        match verified {
            Err(error @ StoreError::Corrupt { .. }) => {
                let first_break = Some(HistoryBreak { what: error.to_string(), last_good: None });
                let (version, hash, chained_from) = (0, None, None);
                Ok(Some(Verified { plan: plan.clone(), version, hash, chained_from, first_break }))
            }
            verified => verified,
        }
    }

    /// Verifies the histories of all plans, in the order of their ids, and passes each result to `tell`.
    pub fn verify_all(&self, tell: &mut dyn FnMut(Verified)) -> Result<()> {
        for plan in self.store().query(|read| read.ids("", usize::MAX >> 1))? {
            // A plan that was purged meanwhile has no history.
            self.verify(&plan)?.into_iter().for_each(&mut *tell);
        }
        Ok(())
    }

    /// Returns how the store differs from an anchor; `None` if that version still has that hash.
    pub fn check_anchor(&self, anchor: &Anchor) -> Result<Option<String>> {
        let Anchor { plan, version, hash } = anchor;
        self.store().query(|read| {
            let Some(latest) = read.plan_state(plan)?.version() else {
                return Ok(Some("it is not in this store, or was purged".to_owned()));
            };
            if latest < *version {
                return Ok(Some(format!("its history ends with version {latest}, before version {version}")));
            }
            let found = read.stored_versions(plan, version.saturating_sub(1), 1)?;
            if found.first().is_some_and(|found| found.version == *version && found.command == LOST) {
                return Ok(Some(format!("version {version} of the anchor was lost")));
            }
            let same =
                found.first().is_some_and(|found| found.version == *version && found.hash == Some(*hash));
            Ok((!same).then(|| format!("version {version} is not the one of the anchor")))
        })
    }
}

/// A plan as its history yields it.
pub(crate) struct Replayed {
    /// The plan at its latest version; `None` if a version does not follow from the one before it.
    pub(crate) plan: Option<Plan>,
    /// The hash of the latest version that was reached.
    hash: Option<Hash>,
    chained_from: Option<u64>,
    pub(crate) first_break: Option<HistoryBreak>,
    /// The versions whose events were lost before a repair. What is left may be consistent, but it is not what was
    /// written.
    loss: Option<HistoryBreak>,
}

/// Replays all versions of a plan from the first one, so that no snapshot can hide a difference, and verifies them. For
/// pruned versions only their last hash and the kept state can be used.
pub(crate) fn replay(read: &mut dyn Read, head: &PlanSummary) -> Result<Replayed> {
    let id = &head.id;
    let pruned = read.pruned(id)?;
    let pruned_up_to = pruned.as_ref().map_or(0, |pruned| pruned.up_to);
    let plan = match pruned_up_to {
        0 => Plan::blank(id.clone()),
        up_to => load(read, id, up_to)?,
    };
    let snapshots = snapshot_versions(read, head, pruned_up_to)?;
    let mut chain = Chain::new(pruned_up_to);
    let mut replayed = Replayed { plan: None, hash: None, chained_from: None, first_break: None, loss: None };
    let outcome = replay_versions(read, head, plan, &snapshots, &mut chain)?;
    (replayed.hash, replayed.chained_from) = (chain.hash, chain.chained_from);
    replayed.loss = chain.loss(pruned.as_ref());
    match outcome {
        Ok((mut plan, snapshot_break)) => {
            plan.take_touched();
            let row_break = (read.plan_state(id)?.hash() != chain.hash).then(|| {
                chain.break_of(format!("the row of the plan has another hash than version {}", head.version))
            });
            (replayed.plan, replayed.first_break) = (Some(plan), snapshot_break.or(row_break));
        }
        Err(found) => replayed.first_break = Some(found),
    }
    Ok(replayed)
}

/// Returns the versions of which there are snapshots, the latest first.
pub(crate) fn snapshot_versions(read: &mut dyn Read, head: &PlanSummary, after: u64) -> Result<Vec<u64>> {
    let (mut versions, mut at_most) = (Vec::new(), head.version);
    while let Some((version, _)) = read.snapshot(&head.id, at_most)?.filter(|(version, _)| *version > after) {
        versions.push(version);
        at_most = version - 1;
    }
    Ok(versions)
}

/// Advances a plan version by version. Returns the first snapshot that is wrong, which nothing depends on, or the first
/// version that does not follow from the one before it.
fn replay_versions(
    read: &mut dyn Read,
    head: &PlanSummary,
    mut plan: Plan,
    snapshots: &[u64],
    chain: &mut Chain,
) -> Result<std::result::Result<(Plan, Option<HistoryBreak>), HistoryBreak>> {
    let (id, mut snapshot_break) = (&head.id, None);
    while chain.version < head.version {
        let page = match read.stored_versions(id, chain.version, VERSIONS_READ_MAX) {
            Err(error @ StoreError::Corrupt { .. }) => return Ok(Err(chain.break_of(error.to_string()))),
            page => page?,
        };
        if page.is_empty() {
            return Ok(Err(chain.missing()));
        }
        for version in &page {
            if let Err(found) = chain.add(version) {
                return Ok(Err(found));
            }
            if version.version <= plan.version() {
                continue;
            }
            match version.record() {
                Ok(record) => plan.advance(&record.events, record.at),
                Err(error) => return Ok(Err(chain.break_of(error.to_string()))),
            }
            if snapshots.contains(&version.version) && snapshot_break.is_none() {
                snapshot_break = wrong_snapshot(read, &plan)?.map(|what| chain.break_of(what));
            }
        }
    }
    // A line after the latest version that is not a version of the plan is damage as well.
    match read.stored_versions(id, chain.version, 1) {
        Err(error @ StoreError::Corrupt { .. }) => Ok(Err(chain.break_of(error.to_string()))),
        after => after.map(|_| Ok((plan, snapshot_break))),
    }
}

/// Returns how the snapshot of a plan's version differs from the plan.
fn wrong_snapshot(read: &mut dyn Read, plan: &Plan) -> Result<Option<String>> {
    let version = plan.version();
    let Some((_, bytes)) = read.snapshot(plan.id(), version)? else { return Ok(None) };
    // One that cannot be read, such as one of an earlier format, has no effect.
    let differs = Plan::from_snapshot(bytes).is_ok_and(|snapshot| snapshot.to_draft() != plan.to_draft());
    Ok(differs.then(|| format!("the snapshot of version {version} differs from what the events say")))
}

/// The versions that were verified so far.
struct Chain {
    version: u64,
    /// The hash of that version.
    hash: Option<Hash>,
    chained_from: Option<u64>,
    last_good: Option<(Timestamp, String)>,
    /// Up to this version, events may be gone.
    pruned_up_to: u64,
    /// All versions so far; `None` once they are no longer needed.
    earlier: Option<EarlierVersions>,
    /// The versions whose events were lost, and the last good one before them.
    lost: Vec<u64>,
    good_before_lost: Option<(Timestamp, String)>,
}

impl Chain {
    fn new(pruned_up_to: u64) -> Self {
        let (version, hash, earlier) = (0, Some(HASH_OF_NOTHING), Some(EarlierVersions::new()));
        let (lost, good_before_lost) = (Vec::new(), None);
        Self {
            version,
            hash,
            chained_from: None,
            last_good: None,
            pruned_up_to,
            earlier,
            lost,
            good_before_lost,
        }
    }

    fn break_of(&self, what: String) -> HistoryBreak {
        HistoryBreak { what, last_good: self.last_good.clone() }
    }

    /// Returns what was lost before a repair.
    fn loss(&self, pruned: Option<&Pruned>) -> Option<HistoryBreak> {
        let lost = ranges(self.lost.iter().copied());
        let mut what = format!("the events of {} were lost, and the plan was repaired", version_words(&lost));
        if let Some(Pruned { up_to, left_by: Some(version), .. }) = pruned {
            what.push_str(&format!("; version {up_to} is as version {version} left it"));
        }
        (!lost.is_empty()).then(|| HistoryBreak { what, last_good: self.good_before_lost.clone() })
    }

    fn missing(&self) -> HistoryBreak {
        self.break_of(format!("version {} is missing from the history", self.version + 1))
    }

    /// Verifies that a version follows from those so far, and adds it to them.
    fn add(&mut self, version: &StoredVersion) -> std::result::Result<(), HistoryBreak> {
        let number = version.version;
        if number != self.version + 1 {
            return Err(self.missing());
        }
        if !self.precedes(version) {
            return Err(self.break_of(match self.version {
                0 => "version 1 is not as it was written".to_owned(),
                before => format!("version {number} does not follow from version {before}"),
            }));
        }
        self.earlier = self.earlier.take().filter(|_| self.may_lack_hashes(version)).map(|mut earlier| {
            earlier.add(version);
            earlier
        });
        if version.command == LOST {
            if self.lost.is_empty() {
                self.good_before_lost = self.last_good.take();
            }
            self.lost.push(number);
        }
        (self.version, self.hash) = (number, version.hash);
        self.chained_from = version.chained_from.or(self.chained_from);
        self.last_good = Some((version.at, version.actor.clone()));
        Ok(())
    }

    /// Returns whether a later version may need the hash of all versions: before the first hash, and where a repair has
    /// replaced lost versions by some without hashes.
    fn may_lack_hashes(&self, version: &StoredVersion) -> bool {
        version.hash.is_none() || version.version <= self.pruned_up_to
    }

    fn precedes(&mut self, version: &StoredVersion) -> bool {
        let may_be_gone = version.version <= self.pruned_up_to;
        match (self.hash, version.hash) {
            // What a hash was computed from is gone.
            _ if may_be_gone && version.is_forgotten() => true,
            (None, Some(_)) if may_be_gone => true,
            (Some(before), Some(hash)) => {
                version.chained_from.is_none() && version.hash_after(&before) == hash
            }
            (None, Some(hash)) => {
                let earlier = self.earlier.take().map(EarlierVersions::finish);
                version.chained_from == Some(version.version)
                    && earlier.is_some_and(|earlier| version.hash_after(&earlier) == hash)
            }
            // Only versions before the first hash have none.
            (before, None) => before.is_none_or(|before| before == HASH_OF_NOTHING),
        }
    }
}
