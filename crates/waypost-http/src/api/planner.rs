//! Plans that a model writes, and what models have cost.

use axum::extract::Path;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::extract::{Body, Identity, PlanPath, parameter};
use super::response::{Problem, Reply, Versioned};
use super::state::Api;
use crate::models::{ModelFailure, PlanWish};
use crate::tokens::Role;

/// Maximum bytes of a goal, and maximum number of constraints.
const GOAL_BYTES_MAX: usize = 16 * 1024;
const CONSTRAINTS_MAX: usize = 50;

/// What the plan is for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanWishBody {
    goal: String,
    #[serde(default)]
    constraints: Vec<String>,
    /// Maximum number of tasks.
    tasks_max: Option<usize>,
}

impl From<ModelFailure> for Problem {
    fn from(failure: ModelFailure) -> Self {
        let mut message = failure.message;
        for detail in failure.details.iter().take(CONSTRAINTS_MAX) {
            message.push_str(&format!("\n{}", detail.trim()));
        }
        Self::new(StatusCode::CONFLICT, message, failure.hint)
    }
}

/// `GET /planner`: the model that would write a plan, and the latest jobs.
pub(crate) fn planner(api: &Api, Identity { role, .. }: Identity) -> Reply {
    let mut value = match api.models.as_ref().map(|models| models.planner()) {
        Some(Ok(model)) => json!({ "model": model }),
        Some(Err(failure)) => json!({ "model": null, "problem": failure }),
        None => json!({ "model": null }),
    };
    let jobs = if role == Role::Person { api.jobs.views() } else { Vec::new() };
    value["jobs"] = json!(jobs);
    Ok(Versioned::of(value))
}

/// `POST /planner/jobs`: has a model write a plan. It costs money, so only a person does it.
pub(crate) fn begin(
    api: &Api,
    (Identity { role, actor }, Body(wish)): (Identity, Body<PlanWishBody>),
) -> Result<Versioned<Value>, Problem> {
    only_people(role)?;
    let goal = wish.goal.trim().to_owned();
    if goal.is_empty() || goal.len() > GOAL_BYTES_MAX || wish.constraints.len() > CONSTRAINTS_MAX {
        let hint = format!("at most {GOAL_BYTES_MAX} bytes, and {CONSTRAINTS_MAX} constraints");
        return Err(Problem::bad("the goal is empty or too long", hint));
    }
    let models = api.models.as_ref().ok_or_else(no_models)?;
    models.planner()?;
    let wish = PlanWish { goal, constraints: wish.constraints, tasks_max: wish.tasks_max };
    let now = api.plans().store().query(|read| Ok(read.now()))?;
    let job = api.jobs.begin(models, wish, (actor.to_string(), now)).ok_or_else(|| {
        Problem::new(
            StatusCode::CONFLICT,
            "a model is writing a plan already",
            "wait until it is done, or stop it",
        )
    })?;
    let job =
        job.map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string(), "retry"))?;
    Ok(Versioned { status: StatusCode::CREATED, ..Versioned::of(json!(job.view())) })
}

/// `GET /planner/jobs/{job}`
pub(crate) fn job(
    api: &Api,
    (Identity { role, .. }, Path(path)): (Identity, Path<Vec<(String, String)>>),
) -> Reply {
    only_people(role)?;
    let found = number(&path).and_then(|number| api.jobs.find(number));
    Ok(Versioned::of(json!(found.ok_or_else(no_job)?.view())))
}

/// `POST /planner/jobs/{job}/stop`: ends it after the call in progress.
pub(crate) fn stop(
    api: &Api,
    (Identity { role, .. }, Path(path)): (Identity, Path<Vec<(String, String)>>),
) -> Reply {
    only_people(role)?;
    let found = number(&path).and_then(|number| api.jobs.stop(number));
    Ok(Versioned::of(json!(found.ok_or_else(no_job)?.view())))
}

/// `GET /spending`: what models have cost, by plan.
pub(crate) fn spending(api: &Api, (): ()) -> Reply {
    let models = api.models.as_ref().ok_or_else(no_models)?;
    Ok(Versioned::of(models.spent(None)?))
}

/// `GET /plans/{plan}/spending`: what models have cost for a plan, by purpose, model and task.
pub(crate) fn plan_spending(api: &Api, PlanPath(id): PlanPath) -> Reply {
    let (used, budget) =
        api.service.view(&id, |plan, _| (plan.state().tokens_used, plan.spec().token_budget))?;
    let mut value = match &api.models {
        Some(models) => models.spent(Some(&id))?,
        None => json!({}),
    };
    value["tokens_used"] = json!(used);
    value["token_budget"] = json!(budget);
    Ok(Versioned::of(value))
}

fn number(path: &[(String, String)]) -> Option<u64> {
    parameter(path, "job").parse().ok()
}

fn only_people(role: Role) -> Result<(), Problem> {
    match role {
        Role::Person => Ok(()),
        Role::Agent | Role::Worker | Role::Reader => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "only a person has a model write a plan",
            "use a person's token",
        )),
    }
}

fn no_models() -> Problem {
    Problem::new(StatusCode::CONFLICT, "this server has no models", "ask the operator of this server")
}

fn no_job() -> Problem {
    Problem::not_found("no such job", "GET /api/v1/planner lists the latest")
}
