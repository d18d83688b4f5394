//! The tasks that can start now, in one plan or in all, and claiming the first of them.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::PlanId;
use waypost_service::{ClaimFilter, Claimed, whole_task};

use super::actions::claim_options;
use super::extract::{Body, Parameters, Writer, page_size};
use super::response::{Problem, Versioned};
use super::state::{Api, run_blocking};
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
    let id = text.map(|text| PlanId::new(text).map_err(|error| Problem::bad(error.to_string(), "")));
    let id = id.transpose()?;
    if let Some(id) = &id {
        // A plan that does not exist is an error, not a plan without ready tasks.
        api.plans().with_plan(id, |_| ())?;
    }
    Ok(id)
}

/// `GET /next`: ready tasks, the most urgent first.
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    Parameters(listing): Parameters<OfferQuery>,
) -> Result<Versioned<Value>, Problem> {
    let limit = page_size(listing.limit, TASKS_DEFAULT, TASKS_MAX)?;
    run_blocking(api, move |api| {
        let plan = plan_id(api, listing.plan)?;
        let mut rows = Vec::new();
        let filter = ClaimFilter { plan: plan.as_ref(), queue: listing.queue.as_deref() };
        for (plan, task) in api.service.claimable(filter, limit)? {
            let row = api.plans().with_plan(&plan, |plan| {
                let mut row = tasks::row(plan, plan.task(task.as_str())?);
                row["plan"] = json!(plan.id());
                Some(row)
            })?;
            rows.extend(row);
        }
        Ok(Versioned::of(json!({ "tasks": rows })))
    })
    .await
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

/// `POST /next`: claims the first ready task for the caller.
pub(crate) async fn take(
    State(api): State<Arc<Api>>,
    Writer(by): Writer,
    Body(body): Body<ClaimBody>,
) -> Result<Versioned<Value>, Problem> {
    run_blocking(api, move |api| {
        let plan = plan_id(api, body.plan)?;
        let filter = ClaimFilter { plan: plan.as_ref(), queue: body.queue.as_deref() };
        let lease_seconds = claim_options(body.lease_seconds, false).lease_seconds;
        let (written, task) = match api.service.claim_next(&by, filter, lease_seconds)? {
            Claimed::Taken { written, task } => (written, task),
            Claimed::Nothing { reasons } => {
                return Ok(Versioned::of(json!({ "task": null, "reasons": reasons })));
            }
        };
        let whole = api
            .service
            .read(&written.plan, |plan| plan.task(task.as_str()).map(|found| whole_task(plan, found)))?;
        Ok(Versioned::of(json!({
            "plan": written.plan,
            "version": written.version,
            "task": whole,
            "lease_seconds": lease_seconds,
        })))
    })
    .await
}
