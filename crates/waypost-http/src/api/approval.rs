//! What a person needs to know before approving a plan: what it would run, and what changed since the last approval.

use serde_json::{Value, json};
use waypost_core::{Difference, Event, PlanId, differences};
use waypost_service::{ApprovalPreview, approval_preview, is_to_be_run};

use super::extract::PlanPath;
use super::response::{Problem, Reply, Versioned};
use super::state::Api;

/// Maximum number of tasks whose commands are listed.
const RUNS_MAX: usize = 500;
/// Maximum number of differences since the last approval, and of problems, that are listed.
const DIFFERENCES_MAX: usize = 200;
/// Maximum number of versions searched for the last approval.
const VERSIONS_SEARCHED_MAX: u64 = 5_000;

/// `GET /plans/{plan}/approval`: what a person needs to know before deciding.
pub(crate) fn approval(api: &Api, PlanPath(id): PlanPath) -> Reply {
    let mut value = api.approvals.describe(api.plans(), &id)?;
    let (draft, version) = api.plans().with_plan(&id, |plan| (plan.to_draft(), plan.version()))?;
    let config = api.service.config()?;
    let runs = || draft.tasks.iter().filter(|task| is_to_be_run(task));
    let listed: Vec<Value> = runs()
        .take(RUNS_MAX)
        .map(|task| {
            let work = task.spec.work.as_ref();
            let ApprovalPreview { program, particulars } = approval_preview(&config, &task.spec);
            // The inputs have their own field, as JSON.
            let particulars = particulars.iter().filter(|(name, _)| *name != "inputs");
            let named = |(name, text): &(&str, String)| json!({ "name": name, "text": text });
            json!({
                "task": task.spec.id,
                "executor": work.map(|work| work.executor.clone()).unwrap_or_default(),
                "commands": [program],
                "inputs": work.map(|work| work.inputs.value()),
                "particulars": particulars.map(named).collect::<Vec<_>>(),
            })
        })
        .collect();
    value["runs"] = json!(listed);
    value["runs_total"] = json!(runs().count());
    let problems = api.service.problems(&draft)?;
    value["problems"] =
        problems.iter().take(DIFFERENCES_MAX).map(|problem| json!(problem.to_string())).collect();
    if let Some(approved) = last_approved(api, &id, version)? {
        let before = api.plans().at_version(&id, approved)?.to_draft();
        let mut found = differences(&before, &draft);
        found.retain(|difference| !is_progress(difference));
        let total = found.len();
        found.truncate(DIFFERENCES_MAX);
        value["since_approval"] =
            json!({ "version": approved, "differences": found, "differences_total": total });
    }
    Ok(Versioned::at(value, version))
}

/// Whether a difference is only execution state.
fn is_progress(difference: &Difference) -> bool {
    matches!(difference, Difference::Task { field: "state" | "status", .. })
}

/// Returns the version that a person approved last, if that is among the versions searched.
fn last_approved(api: &Api, id: &PlanId, version: u64) -> Result<Option<u64>, Problem> {
    let mut before = version;
    let stop = version.saturating_sub(VERSIONS_SEARCHED_MAX);
    while before > stop {
        let from = before.saturating_sub(500).max(stop);
        let entries = api.plans().history(id, from, usize::try_from(before - from).unwrap_or(500))?;
        for entry in entries.iter().rev().filter(|entry| entry.version <= before) {
            for event in &entry.events {
                if let Event::PlanApproved { version, .. } = event {
                    return Ok(Some(*version));
                }
            }
        }
        before = from;
    }
    Ok(None)
}
