//! How approval of a plan stands: who said what last. A plan itself knows only an approval that holds; what was asked for,
//! refused or lost stands in its history, of which each version is read once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use waypost_core::{Actor, Event, Phase, PlanId, Timestamp};
use waypost_store::Entry;

use super::Api;
use super::response::Problem;

/// Versions that are looked through for the last word about approval, at the first time.
const VERSIONS_LOOKED_MAX: u64 = 500;
/// Versions that are read at once.
const VERSIONS_READ: usize = 500;
/// Plans whose last words are remembered.
const PLANS_MAX: usize = 1_000;

/// Something that was said of approval: when, in which version, by whom, and in which words.
#[derive(Clone, Debug)]
struct ApprovalEvent {
    version: u64,
    at: Timestamp,
    by: Actor,
    text: String,
}

/// The last words in a plan's history, up to a version.
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
            Some(ApprovalEvent { version: entry.version, at: entry.at, by: by.clone(), text: text.to_owned() })
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

    /// What holds of them for a plan in this phase that no approval holds for.
    fn describe(&self, phase: Phase, value: &mut Value) {
        let version = |word: &Option<ApprovalEvent>| word.as_ref().map(|word| word.version);
        let waits = phase == Phase::AwaitingApproval;
        // A request that is no longer waited for, and a refusal before a new request, say nothing any more.
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

/// The last words of the plans that were asked for lately.
#[derive(Debug, Default)]
pub(super) struct ApprovalStates(Mutex<BTreeMap<PlanId, ApprovalSummary>>);

impl ApprovalStates {
    /// The last words of a plan at its version of now.
    fn of(&self, api: &Api, id: &PlanId, version: u64) -> Result<ApprovalSummary, Problem> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let begin =
            || ApprovalSummary { version: version.saturating_sub(VERSIONS_LOOKED_MAX), ..ApprovalSummary::default() };
        let mut words = known.filter(|words| words.version <= version).unwrap_or_else(begin);
        if words.version == version {
            return Ok(words);
        }
        while words.version < version {
            let entries = api.plans.history(id, words.version, VERSIONS_READ)?;
            if entries.is_empty() {
                break;
            }
            entries.iter().for_each(|entry| words.apply(entry));
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= PLANS_MAX {
            all.clear();
        }
        all.insert(id.clone(), words.clone());
        Ok(words)
    }
}

/// How approval stands.
pub(super) fn approval(api: &Api, id: &PlanId) -> Result<Value, Problem> {
    let (required, held, phase, version) = api.plans.look(id, |plan| {
        let state = plan.state();
        (state.approval_required, state.approval.clone(), state.phase, plan.version())
    })?;
    let mut value = json!({ "required": required, "standing": "none" });
    let Some(held) = held else {
        api.approvals.of(api, id, version)?.describe(phase, &mut value);
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
