//! Waypost workers on plans in the same PostgreSQL, each with its own workspace, as if on separate machines.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use waypost_config::{Config, Layer, Origin};
use waypost_core::{
    Actor, Command as Order, Draft, Json, Phase, PlanId, Position, Task, TaskId, TaskSpec, Work,
};
use waypost_service::{Caller, Guard, Presence, Service};
use waypost_store::{Durability, NewPlan, PlanStore, WriteRequest};
use waypost_testkit::postgres::PostgresDatabase;

use super::counting_proxy::{Counted, CountingProxy};
use super::server::{Psql, Server};
use super::workers::{Cost, Delays, Mark, Stdout, WorkerProcesses, pause, until};
use crate::exec::{DISTRIBUTED, binary, cache_dir};

/// The profile of the measured program: that of this one. Only figures of optimised programs mean something.
const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { DISTRIBUTED };
/// Tasks that warm the workers up.
const WARM_TASKS: usize = 1_000;
/// Slots of the queue per worker: the default concurrency of a queue.
pub(super) const SLOTS_EACH: usize = 4;
/// Time between two polls for completed plans.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time between two writes of tasks that arrive continuously.
const BATCH_EVERY: Duration = Duration::from_millis(10);
/// Maximum time until the last tasks start.
const LAST_START: Duration = Duration::from_secs(30);

/// How long the task of a machine that dies takes to start elsewhere.
pub(super) struct Recovery {
    pub(super) seconds: f64,
    pub(super) lease_seconds: f64,
}

/// What workers did with a backlog of plans.
pub(super) struct Backlog {
    pub(super) seconds: f64,
    pub(super) megabytes: Vec<f64>,
}

/// Between two looks at a task.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Transactions per second of an idle worker.
pub(super) const IDLE_TRANSACTIONS_MAX: f64 = 0.2;

/// How long an idle worker is observed, in seconds.
const IDLE_SECONDS: u64 = 120;

/// What an idle worker costs.
pub(super) struct Idle {
    pub(super) transactions: f64,
    pub(super) connections: f64,
}

pub(super) struct Waypost<'a> {
    server: &'a Server,
    database: PostgresDatabase,
    plans: Arc<PlanStore>,
    /// The slots of the queue; by default [`SLOTS_EACH`] for each worker.
    slots: Option<usize>,
}

impl<'a> Waypost<'a> {
    /// Starts with an empty database.
    pub(super) fn new(server: &'a Server) -> Result<Self> {
        let database = server.database();
        let plans = Arc::new(PlanStore::new(waypost_store::open(database.url(), Durability::Full)?));
        Ok(Self { server, database, plans, slots: None })
    }

    /// Limits all workers together to this number of slots.
    pub(super) fn with_slots(self, slots: usize) -> Self {
        Self { slots: Some(slots), ..self }
    }

    fn workers(&self, url: &str, workers: usize, stdout: Stdout) -> Result<WorkerProcesses> {
        let slots = self.slots.unwrap_or(workers * SLOTS_EACH);
        let commands: Vec<Command> =
            (0..workers).map(|number| worker(number, url, stdout, slots)).collect::<Result<_>>()?;
        let workers = WorkerProcesses::start(commands.into_iter(), stdout)?;
        workers.settle()?;
        // Now they know each other, and their connections are open.
        self.complete(&[self.create(WARM_TASKS, "noop")?])?;
        workers.settle()?;
        Ok(workers)
    }

    /// Creates a plan of independent tasks. It is not active yet.
    fn create(&self, tasks: usize, executor: &str) -> Result<PlanId> {
        let mut draft = Draft::new(format!("{tasks} tasks"));
        let task = |number: usize| Ok(Task::new(spec(number, executor)?));
        draft.tasks = (0..tasks).map(task).collect::<Result<_>>()?;
        let new = NewPlan { id: None, by: author(), draft, approval_required: None };
        Ok(self.plans.create(new)?.plan)
    }

    fn write(&self, plan: &PlanId, order: Order) -> Result<()> {
        let (plan, commands) = (plan.clone(), vec![order]);
        self.plans.write(WriteRequest {
            plan,
            by: author(),
            commands,
            known_version: None,
            lease_seconds: None,
        })?;
        Ok(())
    }

    /// Starts a plan as its author does: workers run nothing without the record of it.
    fn start(&self, plan: &PlanId) -> Result<()> {
        let service = Service::new(Arc::clone(&self.plans), Arc::new(config(SLOTS_EACH)?));
        let caller = Caller::new(author()).present(Presence::new("terminal"));
        let started = service.start(&caller, plan, false, Guard::NONE);
        started.map(drop).map_err(|error| anyhow::anyhow!("plan {plan} cannot be started: {error:?}"))
    }

    /// Activates plans and waits until they are completed.
    fn complete(&self, ids: &[PlanId]) -> Result<()> {
        for id in ids {
            self.start(id)?;
        }
        self.wait_for(ids)
    }

    /// Waits until plans are completed.
    fn wait_for(&self, ids: &[PlanId]) -> Result<()> {
        let mut open = ids.to_vec();
        until(POLL_INTERVAL, || {
            let mut over = true;
            self.plans.store().read(&mut |read| {
                while let Some(id) = open.last() {
                    over = read.head(id)?.is_some_and(|head| head.phase == Phase::Completed);
                    if !over {
                        break;
                    }
                    open.pop();
                }
                Ok(())
            })?;
            Ok(over.then_some(()))
        })
    }

    /// Measures the cost of plans of these sizes with this number of workers.
    pub(super) fn run(&self, workers: usize, tasks: &[usize], executor: &str) -> Result<Cost> {
        let workers = self.workers(self.database.url(), workers, Stdout::Discarded)?;
        let ids: Vec<PlanId> =
            tasks.iter().map(|&tasks| self.create(tasks, executor)).collect::<Result<_>>()?;
        workers.settle()?;
        let mut psql = Psql::new(self.database.url())?;
        let begin = Mark::now(self.server, &workers, &mut psql)?;
        self.complete(&ids)?;
        Ok(begin.cost(tasks.iter().sum::<usize>() as f64, &Mark::now(self.server, &workers, &mut psql)?))
    }

    /// Measures what a worker costs that has nothing to do.
    pub(super) fn idle(&self) -> Result<Idle> {
        const CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND backend_type = 'client backend'";
        const TRANSACTIONS: &str =
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
        let mut psql = Psql::new(self.database.url())?;
        // The server itself runs transactions in every database, of autovacuum: as many as in one that nobody uses.
        let unused = Self::new(self.server)?;
        let mut unused_psql = Psql::new(unused.database.url())?;
        let others = psql.number(CONNECTIONS)?;
        let _workers = self.workers(self.database.url(), 1, Stdout::Discarded)?;
        // Connections that it has needed for its work are closed meanwhile.
        pause(Duration::from_secs(IDLE_SECONDS));
        let connections = psql.number(CONNECTIONS)?;
        // In both databases, one of the transactions is the first of the two queries.
        let (before, unused_before) = (psql.number(TRANSACTIONS)?, unused_psql.number(TRANSACTIONS)?);
        pause(Duration::from_secs(IDLE_SECONDS));
        let of_server = unused_psql.number(TRANSACTIONS)? - unused_before;
        let transactions = (psql.number(TRANSACTIONS)? - before - of_server).max(0.0);
        Ok(Idle { transactions: transactions / IDLE_SECONDS as f64, connections: connections - others })
    }

    /// Measures how long a task of a machine that dies takes to start on another one. Each worker has process ids of its own, so
    /// that neither can see whether the other is alive.
    pub(super) fn recovery(&self) -> Result<Recovery> {
        let apart = |number: usize| -> Result<Command> {
            let inner = worker(number, self.database.url(), Stdout::Discarded, 2)?;
            let mut command = Command::new("unshare");
            command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(inner.get_program());
            command.args(inner.get_args()).env_clear().stderr(std::process::Stdio::null());
            if let Some(folder) = inner.get_current_dir() {
                command.current_dir(folder);
            }
            Ok(command)
        };
        let plan = self.create(1, "long")?;
        self.start(&plan)?;
        let first = WorkerProcesses::start([apart(0)?].into_iter(), Stdout::Discarded)?;
        let attempt = || -> Result<Option<u32>> {
            let held = self
                .plans
                .with_plan(&plan, |plan| plan.in_progress().next().map(|task| task.state.attempt))?;
            Ok(held)
        };
        until(LOOK_INTERVAL, || Ok(attempt()?.filter(|attempt| *attempt == 1)))?;
        let second = WorkerProcesses::start([apart(1)?].into_iter(), Stdout::Discarded)?;
        // It has read the plan, and the first has renewed its lease since.
        pause(Duration::from_secs(8));
        // Each heartbeat renews the lease: it ends at most its length after the death.
        let begin = Instant::now();
        drop(first);
        until(LOOK_INTERVAL, || Ok(attempt()?.filter(|attempt| *attempt == 2)))?;
        let seconds = begin.elapsed().as_secs_f64();
        drop(second);
        let lease_seconds = f64::from(Config::default().lease_seconds);
        Ok(Recovery { seconds, lease_seconds })
    }

    /// Measures workers that start when all these plans are active.
    pub(super) fn backlog(&self, workers: usize, tasks: &[usize]) -> Result<Backlog> {
        let ids: Vec<PlanId> =
            tasks.iter().map(|&tasks| self.create(tasks, "noop")).collect::<Result<_>>()?;
        for id in &ids {
            self.start(id)?;
        }
        let commands = (0..workers)
            .map(|number| worker(number, self.database.url(), Stdout::Discarded, SLOTS_EACH * workers));
        let begin = Instant::now();
        let commands: Vec<Command> = commands.collect::<Result<_>>()?;
        let workers = WorkerProcesses::start(commands.into_iter(), Stdout::Discarded)?;
        self.wait_for(&ids)?;
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Backlog { seconds, megabytes: workers.peak_megabytes()? })
    }

    /// Counts the traffic between workers and server for a plan of this size.
    pub(super) fn counted(&self, workers: usize, tasks: usize, executor: &str) -> Result<Counted> {
        let proxy = CountingProxy::to(self.server.port())?;
        let workers = self.workers(&proxy.url(self.database.url()), workers, Stdout::Discarded)?;
        let plan = self.create(tasks, executor)?;
        workers.settle()?;
        let begin = proxy.count();
        self.complete(&[plan])?;
        Ok(proxy.count().since(begin, tasks as f64))
    }

    /// Measures how long tasks wait for their start at this rate per second, by the line that the worker prints. A task
    /// without work has then already ended, durably.
    pub(super) fn delays(&self, workers: usize, rate: f64, seconds: f64) -> Result<Delays> {
        let workers = self.workers(self.database.url(), workers, Stdout::Captured)?;
        while workers.next_line(Duration::ZERO).is_some() {}
        // A task for a person keeps the plan open.
        let plan = self.create(1, "human")?;
        self.start(&plan)?;
        let mut sent: HashMap<String, Instant> = HashMap::new();
        let begin = Instant::now();
        let batch_every = BATCH_EVERY.max(Duration::from_secs_f64(1.0 / rate));
        while begin.elapsed().as_secs_f64() < seconds {
            let due = (begin.elapsed().as_secs_f64() * rate) as usize + 1;
            let numbers = sent.len() + 1..=due;
            let now = Instant::now();
            sent.extend(numbers.clone().map(|number| (format!("t{number}"), now)));
            let tasks: Vec<TaskSpec> = numbers.map(|number| spec(number, "noop")).collect::<Result<_>>()?;
            if !tasks.is_empty() {
                self.write(&plan, Order::AddTasks { tasks, place: Position::Last })?;
            }
            pause(batch_every.saturating_sub(now.elapsed()));
        }
        let mut delays = Vec::new();
        while delays.len() < sent.len() {
            let output = workers.next_line(LAST_START).context("a task was not started")?;
            let line: serde_json::Value = serde_json::from_str(&output.line)?;
            if line["event"] == "task_ended"
                && let Some(at) = line["task"].as_str().and_then(|task| sent.get(task))
            {
                delays.push(output.at.saturating_duration_since(*at).as_secs_f64());
            }
        }
        Delays::new(delays)
    }
}

fn author() -> Actor {
    Actor::person("bench")
}

fn spec(number: usize, executor: &str) -> Result<TaskSpec> {
    let id = TaskId::new(format!("t{number}"))?;
    let work = Work { executor: executor.to_owned(), inputs: Json::empty_object(), shape: None };
    Ok(TaskSpec { work: Some(Box::new(work)), ..TaskSpec::new(id, "") })
}

/// The configuration of workers, as they read it.
fn config_text(slots: usize) -> String {
    format!(
        "[executors.true]\nkind = \"process\"\ncommand = [\"/bin/true\"]\n\n[executors.sleep]\nkind = \"process\"\ncommand = [\"/bin/sleep\", \"0.05\"]\n\n[executors.long]\nkind = \"process\"\ncommand = [\"/bin/sleep\", \"600\"]\n\n[queues.default]\nconcurrency = {slots}\n"
    )
}

fn config(slots: usize) -> Result<Config> {
    let layer = Layer { origin: Origin::User, name: "bench".to_owned(), text: config_text(slots) };
    Config::load(&[layer], []).map_err(|error| anyhow::anyhow!("{error:?}"))
}

/// A worker in a workspace of its own.
fn worker(number: usize, url: &str, stdout: Stdout, slots: usize) -> Result<Command> {
    let workspace = cache_dir().join("bench-postgres").join(format!("worker{number}"));
    std::fs::create_dir_all(&workspace)?;
    std::fs::write(workspace.join("worker.toml"), config_text(slots))?;
    let mut command = Command::new(binary(PROFILE));
    let log = std::fs::File::create(workspace.join("worker.log"))?;
    command
        .current_dir(&workspace)
        .env_clear()
        .args(["--store", url, "worker", "--config", "worker.toml"])
        .stderr(log);
    if stdout == Stdout::Captured {
        command.arg("--json");
    }
    Ok(command)
}
