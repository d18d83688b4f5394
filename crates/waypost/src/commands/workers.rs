//! `waypost workers`: lists the workers of this store on all machines, with their running tasks; `drain` lets one exit.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use waypost_core::Timestamp;
use waypost_service::{all_workers, work_of, worker_state};
use waypost_store::{Lease, PlanStore, WORKERS_PAGE_MAX, Worker, WorkerKind, WorkerState};

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};
use waypost_cli::options::within;
use waypost_cli::style::Look;
use waypost_cli::view::table::{self, Cell};
use waypost_cli::view::text;

/// Workers on a page by default.
const WORKERS_DEFAULT: usize = 50;
/// Maximum number of a worker's tasks named in the table.
const RUNNING_NAMED_MAX: usize = 3;
/// Maximum number of a worker's tasks in JSON.
const RUNNING_TOLD_MAX: usize = 100;
/// Maximum number of names listed for an ambiguous prefix.
const CANDIDATES_MAX: usize = 5;

const EXAMPLES: &str = "\
Lists every `worker`, and every `run` while it runs, with its leased tasks. States:
  alive     its heartbeat is on time
  draining  it starts no further tasks, and exits when its running tasks have ended
  silent    its heartbeat is overdue; its leases have not expired yet, or its process lives on this machine
  dead      its leases have expired and others take its tasks; removed from the list after a day
Times are by the store's clock, so clocks of machines may differ.

Examples:
  waypost workers
  waypost workers --queue nightly --json
  waypost workers drain mill:4711";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Workers {
    #[command(subcommand)]
    what: Option<What>,
    /// Only workers of this queue
    #[arg(long, value_name = "Q")]
    queue: Option<String>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = WORKERS_DEFAULT)]
    limit: usize,
    /// Continue after the cursor that the previous page printed
    #[arg(long, alias = "after", value_name = "CURSOR")]
    cursor: Option<String>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Drain a worker: let it finish its running tasks and exit (people only)
    Drain(Drain),
}

#[derive(Debug, Args)]
struct Drain {
    /// Worker name, or an unambiguous prefix
    name: String,
}

impl Workers {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        if let Some(What::Drain(drain)) = &self.what {
            return drain.run(context);
        }
        within("--limit", self.limit, 1..=WORKERS_PAGE_MAX)?;
        let plans = context.plans()?;
        let (page, now) = plans.workers(self.cursor.as_deref(), self.limit)?;
        let wanted = |worker: &&Worker| self.queue.as_ref().is_none_or(|queue| worker.queues.contains(queue));
        let mut shown = Vec::new();
        for worker in page.items.iter().filter(wanted) {
            let (running, queued) = work_of(&plans, &worker.name, RUNNING_TOLD_MAX)?;
            shown.push((worker, running, queued));
        }
        if context.out.json {
            let workers: Vec<Value> = shown
                .iter()
                .map(|(worker, running, queued)| worker_json(worker, running, queued, now))
                .collect();
            return context.out.value(&json!({ "workers": workers, "total": page.total, "next": page.next }));
        }
        if shown.is_empty() && page.next.is_none() {
            let of = self.queue.as_ref().map(|queue| format!(" of queue {queue}")).unwrap_or_default();
            context.out.say(format!("no workers{of} in this store: start one with `waypost worker`"));
            return Ok(());
        }
        let rows: Vec<Vec<Cell>> =
            shown.iter().map(|(worker, running, queued)| row(worker, running, queued.len(), now)).collect();
        let headings = ["WORKER", "STATE", "SEEN", "QUEUES", "AT MOST", "RUNS"];
        table::print(&mut context.out, &headings, &rows);
        if let Some(next) = page.next {
            let (shown, total) = (page.items.len(), page.total);
            context.out.say(format!("{shown} of {total} workers; for more, add --cursor '{next}'"));
        }
        Ok(())
    }
}

impl Drain {
    fn run(&self, context: &mut Context) -> Outcome {
        let (by, plans) = (context.caller()?, context.plans()?);
        let name = named(&plans, &self.name)?;
        if !context.service(&plans).drain_worker(&by, &name)? {
            return Err(no_such_worker(&self.name));
        }
        let running = work_of(&plans, &name, RUNNING_TOLD_MAX)?.0.len();
        if context.out.json {
            return context.out.value(&json!({ "worker": name, "draining": true, "running": running }));
        }
        let rest = match running {
            0 => "it exits now".to_owned(),
            1 => "it exits when its running task has ended".to_owned(),
            count => format!("it exits when its {count} running tasks have ended"),
        };
        context.out.line(format!("{name} is draining: {rest}"));
        Ok(())
    }
}

fn no_such_worker(name: &str) -> Failure {
    Failure::not_found(format!("no worker is called {name}"), "`waypost workers` lists them")
}

/// Resolves a worker's name or an unambiguous prefix.
fn named(plans: &PlanStore, name: &str) -> Outcome<String> {
    let names = all_workers(plans)?.0.into_iter().map(|worker| worker.name);
    let mut found: Vec<String> = names.filter(|own| own.starts_with(name)).collect();
    if found.iter().any(|own| own == name) {
        return Ok(name.to_owned());
    }
    match found.len() {
        0 => Err(no_such_worker(name)),
        1 => Ok(found.remove(0)),
        count => {
            found.truncate(CANDIDATES_MAX);
            let message = format!("{name} could be any of {count} workers: {}", found.join(", "));
            Err(Failure::not_found(message, "write more of the name"))
        }
    }
}

fn kind(worker: &Worker) -> &'static str {
    match worker.kind {
        WorkerKind::Worker => "worker",
        WorkerKind::Run => "run",
    }
}

/// A worker in JSON.
fn worker_json(worker: &Worker, running: &[Lease], queued: &[Lease], now: Timestamp) -> Value {
    let task = |lease: &Lease| {
        let since = lease.since.map(|since| now.since(since).as_secs_f64());
        json!({ "plan": lease.plan, "task": lease.task, "attempt": lease.attempt, "queue": lease.queue,
            "seconds": since, "lease_until": lease.until })
    };
    json!({
        "name": worker.name,
        "host": worker.host,
        "kind": kind(worker),
        "state": worker_state(worker, now).as_str(),
        "queues": worker.queues,
        "plans": worker.plans,
        "executors": worker.executors,
        "capacity": worker.capacity,
        "version": worker.version,
        "began": worker.began,
        "last_seen": worker.seen,
        "alive_until": worker.until,
        "waits_for": worker.waits_for,
        "running": running.iter().map(task).collect::<Vec<_>>(),
        "queued": queued.iter().map(task).collect::<Vec<_>>(),
    })
}

fn row(worker: &Worker, running: &[Lease], queued: usize, now: Timestamp) -> Vec<Cell> {
    let state = worker_state(worker, now);
    let look = match state {
        WorkerState::Alive => Look::Green,
        WorkerState::Draining | WorkerState::Silent => Look::Yellow,
        WorkerState::Dead => Look::Red,
    };
    let mut runs: Vec<String> =
        running.iter().take(RUNNING_NAMED_MAX).map(|lease| runs(lease, now)).collect();
    match running.len() {
        0 => runs.push("nothing".to_owned()),
        count if count > RUNNING_NAMED_MAX => runs.push(format!("and {} more", count - RUNNING_NAMED_MAX)),
        _ => {}
    }
    if queued > 0 {
        runs.push(format!("{queued} queued"));
    }
    let queues = match worker.kind {
        WorkerKind::Worker => worker.queues.join(","),
        WorkerKind::Run => format!("{} (run)", worker.queues.join(",")),
    };
    vec![
        Cell::plain(text::one_line(&worker.name)),
        Cell::looking(state.as_str(), look),
        Cell::plain(text::age(Some(worker.seen), now)),
        Cell::plain(text::one_line(&queues)),
        Cell::plain(worker.capacity.map_or_else(|| "–".to_owned(), |jobs| jobs.to_string())),
        Cell::plain(text::one_line(&runs.join(", "))),
    ]
}

fn runs(lease: &Lease, now: Timestamp) -> String {
    let attempt = if lease.attempt > 1 { format!(" (attempt {})", lease.attempt) } else { String::new() };
    let since = lease.since.map(|since| text::duration(now.since(since)));
    format!("{}/{}{attempt} {}", lease.plan, lease.task, since.unwrap_or_default()).trim_end().to_owned()
}
