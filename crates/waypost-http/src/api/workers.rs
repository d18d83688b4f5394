//! Workers, agents, queues and executors.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use waypost_config::{Executor, Worker};
use waypost_core::{Actor, ActorKind, Phase};
use waypost_service::{has_worktree, work_of, worker_state};
use waypost_store::{Lease, LeaseFilter, Query, Sort, WORKERS_PAGE_MAX};
use waypost_text::excerpt;

use super::response::{Reply, Versioned};
use super::state::Api;
use super::tasks::{label, worktrees_of};

/// Maximum number of plans read for the list of agents, and for the counts of each queue.
const PLANS_READ_MAX: usize = 1_000;
/// Maximum number of listed tasks of a worker.
const RUNNING_MAX: usize = 100;
/// Maximum number of leases read for the list of agents.
const LEASES_MAX: usize = 10_000;
/// Maximum width of a title and of a report, in columns.
const LABEL_COLUMNS_MAX: usize = 80;
const PROGRESS_COLUMNS_MAX: usize = 200;

/// `GET /workers`
pub(crate) fn workers(api: &Api, (): ()) -> Reply {
    let (page, now) = api.plans().workers(None, WORKERS_PAGE_MAX)?;
    let mut workers = Vec::new();
    for worker in page.items {
        let (running, queued) = work_of(api.plans(), &worker.name, RUNNING_MAX)?;
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
            "running": running.iter().map(|lease| lease_json(api, lease)).collect::<Vec<_>>(),
            "queued": queued.iter().map(|lease| lease_json(api, lease)).collect::<Vec<_>>(),
        }));
    }
    Ok(Versioned::of(json!({ "workers": workers, "total": page.total })))
}

/// A task that somebody works on: since when, until when the lease holds, and what was reported last.
fn lease_json(api: &Api, lease: &Lease) -> Value {
    let words = api.plans().with_plan(&lease.plan, |plan| {
        let found = plan.task(lease.task.as_str());
        let title = excerpt(&plan.spec().title, LABEL_COLUMNS_MAX).into_owned();
        let since = found.and_then(|task| task.state.started_at);
        (title, found.map(|task| label(task, LABEL_COLUMNS_MAX)), since)
    });
    let (title, text, since) = words.unwrap_or_default();
    let mut value = json!({
        "plan": lease.plan,
        "plan_title": title,
        "task": lease.task,
        "label": text,
        "attempt": lease.attempt,
        "since": since.or(lease.since),
        "until": lease.until,
        "worktree": has_worktree(&worktrees_of(api), (&lease.plan, &lease.task, lease.attempt)),
    });
    if let Some(progress) = &lease.progress {
        value["progress"] = json!(excerpt(&progress.text, PROGRESS_COLUMNS_MAX));
        value["progress_at"] = json!(progress.at);
    }
    value
}

/// `GET /agents`: agents that own plans or work on a task, and people who work on one.
pub(crate) fn agents(api: &Api, (): ()) -> Reply {
    #[derive(Default)]
    struct Seen {
        plans: usize,
        running: Vec<Value>,
        last: Option<waypost_core::Timestamp>,
    }
    let query = Query { sort: Sort::Updated, limit: PLANS_READ_MAX, ..Query::default() };
    let mut agents: BTreeMap<(&'static str, String), Seen> = BTreeMap::new();
    for head in api.plans().heads(&query)?.items {
        let made_by = head.created_by.filter(|by| by.kind == ActorKind::Agent).map(|by| by.name);
        let owner = Some(head.owner).filter(|owner| !owner.is_empty()).or(made_by);
        let Some(owner) = owner else { continue };
        let seen = agents.entry(("agent", owner)).or_default();
        seen.plans += 1;
        seen.last = seen.last.max(head.updated_at);
    }
    let leases = api.plans().store().query(|read| read.leases(&LeaseFilter::All, LEASES_MAX))?;
    for lease in leases {
        let Some(who) = Actor::of_worker(&lease.worker) else { continue };
        agents.entry((who.kind.as_str(), who.name)).or_default().running.push(lease_json(api, &lease));
    }
    let agents: Vec<Value> = agents
        .into_iter()
        .map(|((kind, name), seen)| json!({ "name": name, "kind": kind, "plans": seen.plans, "running": seen.running, "last_seen_at": seen.last }))
        .collect();
    Ok(Versioned::of(json!({ "agents": agents })))
}

/// `GET /queues`
pub(crate) fn queues(api: &Api, (): ()) -> Reply {
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
}

/// `GET /executors`: names and kinds, without secrets, and what inputs the shapes take.
pub(crate) fn executors(api: &Api, (): ()) -> Reply {
    let config = api.service.config()?;
    let executors: Vec<Value> = config
        .executors
        .iter()
        .map(|(name, executor)| json!({ "name": name, "kind": kind(executor) }))
        .collect();
    let (shapes, checks): (Vec<_>, Vec<_>) = (config.shapes.keys().collect(), config.checks.keys().collect());
    let schemas: Map<String, Value> = config
        .shapes
        .iter()
        .map(|(name, shape)| {
            (name.clone(), json!({ "description": shape.description, "input_schema": shape.schema() }))
        })
        .collect();
    let found =
        json!({ "executors": executors, "shapes": shapes, "checks": checks, "shape_schemas": schemas });
    Ok(Versioned::of(found))
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
            Worker::Program(_) => "program",
        },
    }
}
