//! The state of a plan's approval: who requested, rejected or voided it last. A plan itself records only a valid
//! approval; the rest is in its history, of which each version is read once while the summary is cached.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use waypost_core::{Approval, Event, Phase, Plan, PlanId, StartRefusal};
use waypost_service::{start_refusal_hint, start_refusal_text};
use waypost_store::{PlanStore, StoreError, VersionRecord, WriteError};

use super::response::hint_text;

/// Maximum number of versions searched when a plan is read for the first time.
const VERSIONS_SEARCHED_MAX: u64 = 500;
/// Versions read at a time.
const VERSIONS_READ: usize = 500;
/// Maximum number of cached summaries. A full cache is cleared.
const PLANS_MAX: usize = 1_000;

/// A version that requested, rejected or voided approval, and the fields that describe it.
type ApprovalEvent = (u64, Map<String, Value>);

/// The last event of each kind in a plan's history, up to a version.
#[derive(Clone, Debug, Default)]
struct ApprovalSummary {
    version: u64,
    requested: Option<ApprovalEvent>,
    rejected: Option<ApprovalEvent>,
    voided: Option<ApprovalEvent>,
}

impl ApprovalSummary {
    fn apply(&mut self, entry: &VersionRecord) {
        let VersionRecord { version, at, actor, .. } = entry;
        let event = |fields: Value| fields.as_object().map(|fields| (*version, fields.clone()));
        for one in &entry.events {
            if let Event::ApprovalRequested { message } = one {
                let fields = json!({ "standing": "requested", "requested_by": actor, "requested_at": at, "message": message });
                self.requested = event(fields);
            } else if let Event::PlanRejected { by, reason } = one {
                self.rejected =
                    event(json!({ "standing": "rejected", "by": by, "at": at, "reason": reason }));
            } else if let Event::ApprovalVoided {} = one {
                self.voided = event(json!({ "standing": "voided", "at": at }));
            }
        }
        self.version = *version;
    }

    /// Returns the fields that still apply to a plan in this phase without an approval. A request that is no longer
    /// pending does not apply, nor does a rejection before a new request.
    fn fields(self, phase: Phase) -> Map<String, Value> {
        let first = if phase == Phase::AwaitingApproval { self.requested } else { self.rejected };
        // At the same version the request or the rejection wins: it came after the approval was voided.
        let last = [self.voided, first].into_iter().flatten().max_by_key(|(version, _)| *version);
        last.map(|(_, fields)| fields).unwrap_or_default()
    }
}

/// A worker's refusal, in words too.
fn refusal_json(plan: &Plan, refusal: &StartRefusal) -> Value {
    let mut value = json!(refusal);
    value["message"] = json!(start_refusal_text(plan, refusal));
    value["hint"] = json!(hint_text(start_refusal_hint(plan.id(), refusal)));
    value
}

/// What a plan itself says about its approval.
#[derive(Debug)]
pub(super) struct ApprovalFacts {
    required: bool,
    held: Option<Approval>,
    refusals: Vec<Value>,
    phase: Phase,
    version: u64,
}

impl ApprovalFacts {
    pub(super) fn of(plan: &Plan) -> Self {
        let state = plan.state();
        Self {
            required: state.approval_required,
            held: state.approval.clone(),
            refusals: state.start_refusals.iter().map(|refusal| refusal_json(plan, refusal)).collect(),
            phase: state.phase,
            version: plan.version(),
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }
}

/// A cache of the summaries of recently read plans.
#[derive(Debug, Default)]
pub(super) struct ApprovalStates(Mutex<BTreeMap<PlanId, ApprovalSummary>>);

impl ApprovalStates {
    /// Returns the state of a plan's approval.
    pub(super) fn describe(
        &self,
        plans: &PlanStore,
        id: &PlanId,
        facts: ApprovalFacts,
    ) -> Result<Value, WriteError> {
        let ApprovalFacts { required, held, refusals, phase, version } = facts;
        let fields = match held {
            Some(held) => json!({
                "standing": "approved", "approved": held, "by": held.by, "at": held.at, "version": held.version,
                "note": held.note,
            }),
            None => Value::Object(self.summary(plans, id, version)?.fields(phase)),
        };
        let mut value = json!({ "required": required, "standing": "none" });
        if !refusals.is_empty() {
            value["start_refusals"] = json!(refusals);
        }
        if let (Value::Object(value), Value::Object(fields)) = (&mut value, fields) {
            value.extend(fields);
        }
        Ok(value)
    }

    /// Returns the summary of a plan at its newest version.
    fn summary(&self, plans: &PlanStore, id: &PlanId, version: u64) -> Result<ApprovalSummary, WriteError> {
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
            let entries = match plans.history(id, summary.version, VERSIONS_READ) {
                // Of a damaged history, what comes before the damage counts.
                Err(StoreError::Corrupt { .. }) => break,
                entries => entries?,
            };
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
