//! The tasks that can start now, in one plan or in all, and claiming the first of them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use waypost_core::PlanId;
use waypost_service::{Caller, ClaimFilter, Claimable, Claimed, new_lease_seconds, waiting_text, whole_task};

use super::extract::{Body, Identity, Parameters, Writer, page_size};
use super::response::{Problem, Reply, Versioned};
use super::state::Api;
use super::tasks;

/// Listed tasks: default and maximum.
const TASKS_DEFAULT: usize = 20;
const TASKS_MAX: usize = 1_000;

/// Selects a plan or a queue.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfferQuery {
    plan: Option<String>,
    queue: Option<String>,
    limit: Option<usize>,
}

fn plan_id(api: &Api, text: Option<String>) -> Result<Option<PlanId>, Problem> {
    Ok(text.map(|text| api.service.resolve_plan(&text)).transpose()?)
}

/// `GET /next`: the most urgent first.
pub(crate) fn list(api: &Api, (identity, Parameters(listing)): (Identity, Parameters<OfferQuery>)) -> Reply {
    let limit = page_size(listing.limit, TASKS_DEFAULT, TASKS_MAX)?;
    let plan = plan_id(api, listing.plan)?;
    let now = api.plans().store().query(|read| Ok(read.now()))?;
    let mut rows = Vec::new();
    let filter = ClaimFilter { plan: plan.as_ref(), queue: listing.queue.as_deref() };
    let Claimable { tasks, warnings } = api.service.claimable(&Caller::new(identity.actor), filter, limit)?;
    for (plan, task) in tasks {
        let row = api.service.view(&plan, |plan, _| {
            let plan = plan.as_started();
            let mut row = tasks::row(&plan, plan.task(task.as_str())?);
            row["plan"] = json!(plan.id());
            let waits = plan.waiting(task.as_str(), now);
            if !waits.is_empty() {
                row["waits_for"] = waits.iter().map(waiting_text).collect();
            }
            Some(row)
        })?;
        rows.extend(row);
    }
    Ok(Versioned::of(json!({ "tasks": rows })).warned(&warnings))
}

/// Of which plan or queue, and for how long.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimBody {
    plan: Option<String>,
    queue: Option<String>,
    /// Seconds of the lease; 0 never expires.
    lease_seconds: Option<u32>,
}

/// `POST /next`: claims the most urgent of these tasks for the caller.
pub(crate) fn take(api: &Api, (Writer(by), Body(body)): (Writer, Body<ClaimBody>)) -> Reply {
    let plan = plan_id(api, body.plan)?;
    let filter = ClaimFilter { plan: plan.as_ref(), queue: body.queue.as_deref() };
    let (written, task) = match api.service.claim_next(&by, filter, body.lease_seconds)? {
        Claimed::Taken { written, task } => (written, task),
        Claimed::Nothing { reasons } => {
            return Ok(Versioned::of(json!({ "task": null, "reasons": reasons })));
        }
    };
    let whole = api
        .service
        .read(&written.plan, |plan| plan.task(task.as_str()).map(|found| whole_task(plan, found)))?;
    let before = api.service.earlier_attempt(&written, &task)?;
    Ok(Versioned::of(json!({
        "plan": written.plan,
        "version": written.version,
        "task": whole,
        "last_error": before.last_error,
        "released": before.released,
        "lease_seconds": new_lease_seconds(body.lease_seconds),
    })))
}
