//! Workers, agents, queues and executors.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use serde_json::{Value, json};
use waypost_config::{Executor, Worker};
use waypost_core::{ActorKind, Phase};
use waypost_service::worker_state;
use waypost_store::{LeaseFilter, Query, Sort, WORKERS_PAGE_MAX};

use super::response::{Problem, Versioned};
use super::state::{Api, run_blocking};

/// Maximum number of plans read for the list of agents, and for the counts of each queue.
const PLANS_READ_MAX: usize = 1_000;
/// Maximum number of listed tasks of a worker.
const RUNNING_MAX: usize = 100;
/// Maximum number of leases read for the list of agents.
const LEASES_MAX: usize = 10_000;

/// `GET /workers`
pub(crate) async fn workers(State(api): State<Arc<Api>>) -> Result<Versioned<Value>, Problem> {
    run_blocking(api, |api| {
        let (page, now) = api.plans().workers(None, WORKERS_PAGE_MAX)?;
        let mut workers = Vec::new();
        for worker in page.items {
            let running: Vec<Value> = api
                .plans()
                .leases_of(&worker.name, RUNNING_MAX)?
                .into_iter()
                .map(|lease| {
                    json!({ "plan": lease.plan, "task": lease.task, "attempt": lease.attempt, "since": lease.since })
                })
                .collect();
            workers.push(json!({
                "name": worker.name,
                "host": worker.host,
                "kind": worker.kind,
                "queues": worker.queues,
                "executors": worker.executors,
                "capacity": worker.capacity,
                "began_at": worker.began,
                "seen_at": worker.seen,
                "state": worker_state(&worker, now).as_str(),
                "running": running,
            }));
        }
        Ok(Versioned::of(json!({ "workers": workers, "total": page.total })))
    })
    .await
}

/// `GET /agents`: owners of plans, agents that created plans without an owner, and agents that hold tasks.
pub(crate) async fn agents(State(api): State<Arc<Api>>) -> Result<Versioned<Value>, Problem> {
    run_blocking(api, |api| {
        #[derive(Default)]
        struct Seen {
            plans: usize,
            running: Vec<Value>,
            last: Option<waypost_core::Timestamp>,
        }
        let query = Query { sort: Sort::Updated, limit: PLANS_READ_MAX, ..Query::default() };
        let mut agents: BTreeMap<String, Seen> = BTreeMap::new();
        for head in api.plans().heads(&query)?.items {
            let made_by = head.created_by.filter(|by| by.kind == ActorKind::Agent).map(|by| by.name);
            let owner = Some(head.owner).filter(|owner| !owner.is_empty()).or(made_by);
            let Some(owner) = owner else { continue };
            let seen = agents.entry(owner).or_default();
            seen.plans += 1;
            seen.last = seen.last.max(head.updated_at);
        }
        let mut leases = Vec::new();
        api.plans().store().read(&mut |read| {
            leases = read.leases(&LeaseFilter::default(), LEASES_MAX)?;
            Ok(())
        })?;
        for lease in leases {
            let Some(name) = lease.worker.strip_prefix("agent:") else { continue };
            let since = api.plans().with_plan(&lease.plan, |plan| plan.task(lease.task.as_str()).and_then(|task| task.state.started_at));
            let seen = agents.entry(name.to_owned()).or_default();
            seen.running.push(json!({ "plan": lease.plan, "task": lease.task, "since": since.unwrap_or_default() }));
        }
        let agents: Vec<Value> = agents
            .into_iter()
            .map(|(name, seen)| json!({ "name": name, "plans": seen.plans, "running": seen.running, "last_seen_at": seen.last }))
            .collect();
        Ok(Versioned::of(json!({ "agents": agents })))
    })
    .await
}

/// `GET /queues`
pub(crate) async fn queues(State(api): State<Arc<Api>>) -> Result<Versioned<Value>, Problem> {
    run_blocking(api, |api| {
        let mut queues = Vec::new();
        for (name, queue) in &api.service.config()?.queues {
            let query = Query {
                queue: Some(name.clone()),
                phases: vec![Phase::Active],
                limit: PLANS_READ_MAX,
                ..Query::default()
            };
            let heads = api.plans().heads(&query)?.items;
            let running: u64 = heads.iter().map(|head| u64::from(head.counts.running)).sum();
            let ready: u64 = heads.iter().map(|head| u64::from(head.counts.ready)).sum();
            queues.push(
                json!({ "name": name, "concurrency": queue.concurrency, "running": running, "ready": ready }),
            );
        }
        Ok(Versioned::of(json!({ "queues": queues })))
    })
    .await
}

/// `GET /executors`: names and kinds, without anything secret.
pub(crate) async fn executors(State(api): State<Arc<Api>>) -> Result<Versioned<Value>, Problem> {
    let config = api.service.config()?;
    let executors: Vec<Value> = config
        .executors
        .iter()
        .map(|(name, executor)| json!({ "name": name, "kind": kind(executor) }))
        .collect();
    let (shapes, checks): (Vec<_>, Vec<_>) = (config.shapes.keys().collect(), config.checks.keys().collect());
    Ok(Versioned::of(json!({ "executors": executors, "shapes": shapes, "checks": checks })))
}

fn kind(executor: &Executor) -> &'static str {
    match executor {
        Executor::Noop => "noop",
        Executor::Human => "human",
        Executor::Dispatch(_) => "dispatch",
        Executor::Worker(worker) => match worker {
            Worker::Process(_) => "process",
            Worker::Agent(_) => "agent",
            Worker::Http(_) => "http",
            Worker::Container(_) => "container",
            Worker::Kubernetes(_) => "kubernetes",
            Worker::Slurm(_) => "slurm",
        },
    }
}
