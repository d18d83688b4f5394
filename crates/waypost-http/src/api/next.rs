//! What can be worked on now, in one plan or in all, and taking the first of it.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use waypost_core::PlanId;
use waypost_service::{Claim, Claimed, claim, on_offer, whole_task};

use super::response::{Problem, Versioned};
use super::extract::{Body, Parameters, Writer, page_size};
use super::{Api, LEASE_SECONDS, run_blocking, tasks};

/// Tasks that are listed, unless the caller says otherwise, and at the most.
const TASKS_DEFAULT: usize = 20;
const TASKS_MAX: usize = 1_000;

/// Of which plan or queue.
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
        // One that is not there is said so, rather than to have nothing to do.
        api.plans.look(id, |_| ())?;
    }
    Ok(id)
}

/// `GET /next`: the most urgent first.
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    Parameters(listing): Parameters<OfferQuery>,
) -> Result<Versioned<Value>, Problem> {
    let limit = page_size(listing.limit, TASKS_DEFAULT, TASKS_MAX)?;
    run_blocking(api, move |api| {
        let plan = plan_id(api, listing.plan)?;
        let mut rows = Vec::new();
        for (plan, task) in on_offer(&api.plans, plan.as_ref(), listing.queue.as_deref(), limit)? {
            let row = api.plans.look(&plan, |plan| {
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

/// Of which plan or queue, whoever works in whose name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimBody {
    plan: Option<String>,
    queue: Option<String>,
}

/// `POST /next`: takes the first of it, leased to the caller.
pub(crate) async fn take(
    State(api): State<Arc<Api>>,
    writer: Writer,
    Body(wish): Body<ClaimBody>,
) -> Result<Versioned<Value>, Problem> {
    run_blocking(api, move |api| {
        let plan = plan_id(api, wish.plan)?;
        let (by, worker) = (&writer.0, writer.0.to_string());
        let (plan, queue) = (plan.as_ref(), wish.queue.as_deref());
        let wanted = Claim { by, worker: &worker, plan, queue, lease_seconds: Some(LEASE_SECONDS) };
        let (committed, task) = match claim(&api.plans, &wanted)? {
            Claimed::Taken { committed, task } => (committed, task),
            Claimed::Nothing { reasons } => {
                return Ok(Versioned::of(json!({ "task": null, "reasons": reasons })));
            }
        };
        let whole = api
            .plans
            .look(&committed.plan, |plan| plan.task(task.as_str()).map(|found| whole_task(plan, found)))?;
        Ok(Versioned::of(json!({
            "plan": committed.plan,
            "version": committed.version,
            "task": whole,
            "lease_seconds": LEASE_SECONDS,
        })))
    })
    .await
}
