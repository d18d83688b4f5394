//! The state of a plan's approval: who requested, rejected or voided it last. A plan itself knows only an approval that holds; the
//! rest stands in its history, of which each version is read once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use waypost_core::{Actor, Event, Phase, PlanId, Timestamp};
use waypost_store::{Entry, Plans, WriteError};

/// Versions that are searched when a plan is read for the first time.
const VERSIONS_SEARCHED_MAX: u64 = 500;
/// Versions that are read at once.
const VERSIONS_READ: usize = 500;
/// Plans whose summaries are cached.
const PLANS_MAX: usize = 1_000;

/// A request, a rejection or a loss of approval.
#[derive(Clone, Debug)]
struct ApprovalEvent {
    version: u64,
    at: Timestamp,
    by: Actor,
    text: String,
}

/// The last of each in a plan's history, up to a version.
#[derive(Clone, Debug, Default)]
struct ApprovalSummary {
    version: u64,
    requested: Option<ApprovalEvent>,
    rejected: Option<ApprovalEvent>,
    voided: Option<ApprovalEvent>,
}

impl ApprovalSummary {
    fn apply(&mut self, entry: &Entry) {
        let word = |by: &Actor, text: &str| {
            Some(ApprovalEvent {
                version: entry.version,
                at: entry.at,
                by: by.clone(),
                text: text.to_owned(),
            })
        };
        for event in &entry.events {
            match event {
                Event::ApprovalRequested { message } => self.requested = word(&entry.actor, message),
                Event::PlanRejected { by, reason } => self.rejected = word(by, reason),
                Event::ApprovalVoided {} => self.voided = word(&entry.actor, ""),
                _ => {}
            }
        }
        self.version = entry.version;
    }

    /// What of them still counts for a plan in this phase that has no approval.
    fn describe(&self, phase: Phase, value: &mut Value) {
        let version = |word: &Option<ApprovalEvent>| word.as_ref().map(|word| word.version);
        let waits = phase == Phase::AwaitingApproval;
        // Neither a request that no longer waits nor a rejection before a new request counts.
        let first = if waits { &self.requested } else { &self.rejected };
        match (first, &self.voided) {
            (_, Some(voided)) if Some(voided.version) > version(first) => {
                value["standing"] = json!("voided");
                value["at"] = json!(voided.at);
            }
            (Some(asked), _) if waits => {
                value["standing"] = json!("requested");
                value["requested_by"] = json!(asked.by);
                value["requested_at"] = json!(asked.at);
                value["message"] = json!(asked.text);
            }
            (Some(refused), _) => {
                value["standing"] = json!("rejected");
                value["by"] = json!(refused.by);
                value["at"] = json!(refused.at);
                value["reason"] = json!(refused.text);
            }
            (None, _) => {}
        }
    }
}

/// A cache of the summaries of plans that were read lately.
#[derive(Debug, Default)]
pub(super) struct ApprovalStates(Mutex<BTreeMap<PlanId, ApprovalSummary>>);

impl ApprovalStates {
    /// The state of a plan's approval.
    pub(super) fn describe(&self, plans: &Plans, id: &PlanId) -> Result<Value, WriteError> {
        let (required, held, phase, version) = plans.look(id, |plan| {
            let state = plan.state();
            (state.approval_required, state.approval.clone(), state.phase, plan.version())
        })?;
        let mut value = json!({ "required": required, "standing": "none" });
        let Some(held) = held else {
            self.summary(plans, id, version)?.describe(phase, &mut value);
            return Ok(value);
        };
        value["standing"] = json!("approved");
        value["approved"] = json!(held);
        value["by"] = json!(held.by);
        value["at"] = json!(held.at);
        value["version"] = json!(held.version);
        value["note"] = json!(held.note);
        Ok(value)
    }

    /// The summary of a plan at its newest version.
    fn summary(&self, plans: &Plans, id: &PlanId, version: u64) -> Result<ApprovalSummary, WriteError> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let begin = || ApprovalSummary {
            version: version.saturating_sub(VERSIONS_SEARCHED_MAX),
            ..ApprovalSummary::default()
        };
        let mut summary = cached.filter(|summary| summary.version <= version).unwrap_or_else(begin);
        if summary.version == version {
            return Ok(summary);
        }
        while summary.version < version {
            let entries = plans.history(id, summary.version, VERSIONS_READ)?;
            if entries.is_empty() {
                break;
            }
            entries.iter().for_each(|entry| summary.apply(entry));
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= PLANS_MAX {
            all.clear();
        }
        all.insert(id.clone(), summary.clone());
        Ok(summary)
    }
}
