//! The open questions of a merge, each with the digest of what it asks, and the ones that were computed last. Knows no store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use waypost_core::PlanId;
use waypost_core::canonical::CanonicalHasher;
use waypost_operation::{Conflict, OperationSet, merge};
use waypost_text::hex;

/// Number of plans whose open questions are kept in memory.
const PLANS_KNOWN_MAX: usize = 32;

/// An open question of a merge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergeQuestion {
    /// The digest of what is asked: an answer names it, because something else may be asked by the time it arrives.
    pub digest: String,
    /// What is asked.
    #[serde(flatten)]
    pub conflict: Conflict,
}

/// Returns the digest of what a question asks: what it is about, every version, and how it can be answered.
fn digest_of(plan: &PlanId, conflict: &Conflict) -> String {
    let Conflict { task, subject, text, versions, shown, answers, .. } = conflict;
    let mut hasher = CanonicalHasher::new("merge_question", 1);
    hasher.text(plan.as_str()).text(task.as_ref().map_or("", |task| task.as_str())).text(subject).text(text);
    hasher.list(versions.iter(), |hasher, version| {
        hasher.text(&version.record.to_string()).text(&version.value)
    });
    hasher.number(shown.map_or(0, |shown| shown as u64 + 1));
    hasher.list(answers.iter(), |hasher, kind| hasher.text(kind.as_str()));
    format!("sha256:{}", hex(&hasher.finish()))
}

/// Returns what is open between the records of a plan.
pub(crate) fn questions_of(plan: &PlanId, set: &OperationSet) -> Vec<MergeQuestion> {
    let conflicts = merge(set).conflicts.into_iter();
    conflicts.map(|conflict| MergeQuestion { digest: digest_of(plan, &conflict), conflict }).collect()
}

/// The open questions of the plans that were asked for last, each with the number of the records that leave them open.
#[derive(Debug, Default)]
pub(crate) struct AskedQuestions(Mutex<HashMap<PlanId, CountedQuestions>>);

type CountedQuestions = (usize, Arc<[MergeQuestion]>);

impl AskedQuestions {
    /// Returns the questions that so many records leave open, if they are kept.
    pub(crate) fn known(&self, plan: &PlanId, records: usize) -> Option<Arc<[MergeQuestion]>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(plan).filter(|(of, _)| records > 0 && *of == records).map(|(_, found)| Arc::clone(found))
    }

    /// Keeps the questions of a plan.
    pub(crate) fn put(&self, plan: &PlanId, records: usize, found: &Arc<[MergeQuestion]>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= PLANS_KNOWN_MAX && !known.contains_key(plan) {
            known.clear();
        }
        known.insert(plan.clone(), (records, Arc::clone(found)));
    }
}
