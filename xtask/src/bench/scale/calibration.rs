//! What calls of the store cost on a real PostgreSQL: measured by `cargo xtask bench scale calibrate`, kept in
//! `calibration.json`, and compared with what the model says about the same clients on the same machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};
use waypost_config::Config;
use waypost_core::{Actor, Command, Draft, Json, Outcome, Phase, PlanId, Task, TaskId, TaskSpec, Work};
use waypost_service::Service;
use waypost_store::{
    Durability, NewPlan, PlanStore, Query, Sort, Store, Worker, WorkerKind, WriteRequest, open,
};

use super::event::{Event, ServerEvent};
use super::plans::PLAN_TASKS;
use super::server::{Access, Costs, Machine, Server};
use crate::bench::postgres::server::Server as Postgres;
use crate::bench::postgres::workers::pause;
use crate::exec::root;

const CLIENTS: [usize; 3] = [1, 8, 32];
/// Plans of pages and loads: more than a process caches.
const PLANS: usize = 400;
/// Connections that listen while the cost of waking them is measured.
const LISTENERS: usize = 60;
/// Time between two writes meanwhile, so that each is notified on its own.
const NOTIFIED_EVERY: Duration = Duration::from_millis(20);

/// Figures of one machine.
#[derive(Clone, Debug)]
pub(super) struct Calibration {
    pub(super) costs: Costs,
    /// Processor time of the client for one version, in microseconds.
    pub(super) client_write: f64,
    /// Microseconds of a round trip.
    pub(super) round_trip: f64,
    /// Commits per second by number of clients.
    pub(super) commits: Vec<(usize, f64)>,
    pub(super) cores: usize,
    pub(super) machine: String,
}

fn path() -> PathBuf {
    root().join("xtask/src/bench/scale/calibration.json")
}

impl Calibration {
    /// Returns the figures that were measured last.
    pub(super) fn read() -> Result<Self> {
        let text = std::fs::read_to_string(path())
            .context("no calibration: run `cargo xtask bench scale calibrate`")?;
        let value: Value = serde_json::from_str(&text)?;
        let number = |name: &str| value[name].as_f64().with_context(|| format!("calibration.json: {name}"));
        let commits =
            value["commits_per_second"].as_object().context("calibration.json: commits_per_second")?;
        let commits = commits.iter().map(|(clients, rate)| {
            Ok((clients.parse()?, rate.as_f64().context("calibration.json: commits_per_second")?))
        });
        let mut commits: Vec<(usize, f64)> = commits.collect::<Result<_>>()?;
        commits.sort_by_key(|(clients, _)| *clients);
        Ok(Self {
            costs: Costs {
                write: number("write_micros")?,
                read: number("read_micros")?,
                page: number("page_micros")?,
                load: number("load_micros")?,
                heartbeat: number("heartbeat_micros")?,
                wake: number("wake_micros")?,
                flush: number("flush_micros")?,
            },
            client_write: number("client_write_micros")?,
            round_trip: number("round_trip_micros")?,
            commits,
            cores: number("cores")? as usize,
            machine: value["machine"].as_str().unwrap_or_default().to_owned(),
        })
    }

    pub(super) fn write(&self) -> Result<()> {
        let rounded = |micros: f64| (micros * 10.0).round() / 10.0;
        let commits: serde_json::Map<String, Value> =
            self.commits.iter().map(|(clients, rate)| (clients.to_string(), json!(rate.round()))).collect();
        let value = json!({
            "machine": self.machine,
            "cores": self.cores,
            "round_trip_micros": rounded(self.round_trip),
            "write_micros": rounded(self.costs.write),
            "client_write_micros": rounded(self.client_write),
            "flush_micros": rounded(self.costs.flush),
            "read_micros": rounded(self.costs.read),
            "page_micros": rounded(self.costs.page),
            "load_micros": rounded(self.costs.load),
            "heartbeat_micros": rounded(self.costs.heartbeat),
            "wake_micros": rounded(self.costs.wake),
            "commits_per_second": commits,
        });
        std::fs::write(path(), format!("{value:#}\n"))?;
        Ok(())
    }

    /// Returns what the model says about the commits per second of so many clients on the machine that was measured. The
    /// clients share its processors with the server.
    pub(super) fn modelled_commits(&self, clients: usize) -> f64 {
        const SECONDS: i64 = 5;
        let costs = Costs { write: self.costs.write + self.client_write, ..self.costs.clone() };
        let machine = Machine { cores: self.cores, connections: clients, round_trip: self.round_trip as i64 };
        let mut agenda = super::agenda::Agenda::starting_at(0);
        let mut server = Server::new(machine, &costs);
        for plan in 0..clients {
            server.send(&mut agenda, Access::Plan(plan), costs.write);
        }
        let mut plans: Vec<usize> = (0..clients).collect();
        let mut commits = 0;
        while agenda.now() < SECONDS * 1_000_000 {
            let Some(Event::Server(event)) = agenda.next() else { break };
            debug_assert!(!matches!(event, ServerEvent::Computed(None)));
            server.handle(&mut agenda, event);
            server.granted.clear();
            for call in std::mem::take(&mut server.ended) {
                commits += 1;
                server.release(call);
                let next = server.send(&mut agenda, Access::Plan(plans[call]), costs.write);
                // The id of the call that has ended is used again at once.
                if next != call {
                    plans.swap(next, call);
                }
            }
        }
        commits as f64 / SECONDS as f64
    }
}

/// Measures all figures on a private server.
pub(super) fn measure(seconds: f64) -> Result<Calibration> {
    let postgres = Postgres::start()?;
    let measure = Measure { postgres: &postgres, seconds };
    let mut commits = Vec::new();
    let (mut write, mut client_write, mut one_client) = (0.0, 0.0, 0.0);
    for clients in CLIENTS {
        let found = measure.commits(clients)?;
        println!(
            "{clients} clients: {:.0} commits/s, {:.0} µs of the server and {:.0} µs of the client each",
            found.per_second, found.server_micros, found.client_micros
        );
        commits.push((clients, found.per_second));
        if clients == 1 {
            one_client = 1e6 / found.per_second;
        } else if clients == 8 {
            (write, client_write) = (found.server_micros, found.client_micros);
        }
    }
    let database = postgres.database();
    let plans = Arc::new(PlanStore::new(open(database.url(), Durability::Full)?));
    for number in 0..PLANS {
        create(&plans, &format!("p{number}"), PLAN_TASKS)?;
    }
    database.sql("VACUUM ANALYZE");
    let latest = plans.latest()?;
    let (read, read_latency) = measure
        .calls(|_| plans.written_since(latest.saturating_sub(10), 1_000).map(drop).map_err(Into::into))?;
    let query = Query { phases: vec![Phase::Active], sort: Sort::Urgency, limit: 100, ..Query::default() };
    let (page, _) = measure.calls(|_| plans.heads(&query).map(drop).map_err(Into::into))?;
    let (load, _) = measure.calls(|number| {
        let id = PlanId::new(format!("p{}", number % PLANS))?;
        Ok(plans.with_plan(&id, |plan| plan.len()).map(drop)?)
    })?;
    let config = Arc::new(Config::load(&[], []).map_err(|error| anyhow::anyhow!("{error:?}"))?);
    let service = Service::new(Arc::clone(&plans), config);
    let mut row = Worker::new("bench", "host", WorkerKind::Worker, vec!["default".to_owned()]);
    let (heartbeat, _) =
        measure.calls(|_| service.heartbeat(&mut row, 15, &[], &[]).map(drop).map_err(Into::into))?;
    let wake = measure.wake(&plans)?;
    let round_trip = (read_latency - read).max(10.0);
    let cores = std::thread::available_parallelism()?.get();
    let flush = (one_client - write - client_write - 1.5 * round_trip).max(50.0);
    let costs = Costs { write, read, page, load, heartbeat, wake, flush };
    let version = postgres.database().sql("SHOW server_version").join("");
    let machine = format!("{} cores, PostgreSQL {}", cores, version.trim());
    Ok(Calibration { costs, client_write, round_trip, commits, cores, machine })
}

struct Measure<'a> {
    postgres: &'a Postgres,
    seconds: f64,
}

struct Commits {
    per_second: f64,
    server_micros: f64,
    client_micros: f64,
}

impl Measure<'_> {
    /// Measures durable commits of clients that write a plan of their own each: they reserve a task and end it.
    fn commits(&self, clients: usize) -> Result<Commits> {
        let database = self.postgres.database();
        let stores: Vec<Arc<dyn Store>> =
            (0..clients).map(|_| open(database.url(), Durability::Full)).collect::<Result<_, _>>()?;
        let (commits, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let threads: Vec<_> = stores
                .iter()
                .enumerate()
                .map(|(number, store)| {
                    let (store, commits, is_over) = (Arc::clone(store), &commits, &is_over);
                    scope.spawn(move || write_tasks(store, number, commits, is_over))
                })
                .collect();
            // The plans are there, and the connections open.
            while commits.load(Ordering::Relaxed) < 20 * clients as u64 {
                pause(Duration::from_millis(20));
            }
            let begin = (Instant::now(), commits.load(Ordering::Relaxed));
            let (server, client) = (self.postgres.used_seconds()?, own_seconds()?);
            pause(Duration::from_secs_f64(self.seconds));
            let count = (commits.load(Ordering::Relaxed) - begin.1) as f64;
            let found = Commits {
                per_second: count / begin.0.elapsed().as_secs_f64(),
                server_micros: (self.postgres.used_seconds()? - server) * 1e6 / count,
                client_micros: (own_seconds()? - client) * 1e6 / count,
            };
            is_over.store(true, Ordering::Relaxed);
            for thread in threads {
                thread.join().map_err(|_| anyhow::anyhow!("a client broke down"))??;
            }
            Ok(found)
        })
    }

    /// Returns the server's processor time and the time of a call that is repeated, in microseconds.
    fn calls(&self, mut call: impl FnMut(usize) -> Result<()>) -> Result<(f64, f64)> {
        for number in 0..20 {
            call(number)?;
        }
        let (begin, server) = (Instant::now(), self.postgres.used_seconds()?);
        let mut count = 0;
        while begin.elapsed().as_secs_f64() < self.seconds {
            call(20 + count)?;
            count += 1;
        }
        let micros = |seconds: f64| seconds * 1e6 / count as f64;
        Ok((micros(self.postgres.used_seconds()? - server), micros(begin.elapsed().as_secs_f64())))
    }

    /// Returns the server's processor time for waking one listening connection.
    fn wake(&self, plans: &PlanStore) -> Result<f64> {
        let database = self.postgres.database();
        let paced = |plans: &PlanStore| -> Result<f64> {
            let (begin, server) = (Instant::now(), self.postgres.used_seconds()?);
            let mut count = 0;
            while begin.elapsed().as_secs_f64() < self.seconds {
                let plan = PlanId::new("p0")?;
                let task = TaskSpec::new(TaskId::new(format!("n{}", plans.latest()?))?, "");
                let add = Command::AddTasks { tasks: vec![task], place: waypost_core::Position::Last };
                plans.write(request(plan, Actor::person("bench"), vec![add]))?;
                count += 1;
                pause(NOTIFIED_EVERY);
            }
            Ok((self.postgres.used_seconds()? - server) * 1e6 / f64::from(count))
        };
        let before = paced(plans)?;
        drop(database);
        let url = plans.store().location();
        let listening: Vec<Arc<dyn Store>> =
            (0..LISTENERS).map(|_| open(&url, Durability::Full)).collect::<Result<_, _>>()?;
        let _watches: Vec<_> = listening.iter().map(|store| store.watch()).collect::<Result<_, _>>()?;
        let after = paced(plans)?;
        Ok(((after - before) / LISTENERS as f64).max(1.0))
    }
}

/// Processor time of this process.
fn own_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn request(plan: PlanId, by: Actor, commands: Vec<Command>) -> WriteRequest {
    WriteRequest { plan, by, commands, known_version: None, lease_seconds: Some(15) }
}

/// Creates an active plan of independent tasks.
fn create(plans: &PlanStore, id: &str, tasks: usize) -> Result<PlanId> {
    let by = Actor::person("bench");
    let mut draft = Draft::new(id);
    let work = Work { executor: "run".to_owned(), inputs: Json::empty_object(), shape: None };
    for number in 0..tasks {
        let spec = TaskSpec::new(TaskId::new(format!("t{number}"))?, "");
        draft.tasks.push(Task::new(TaskSpec { work: Some(Box::new(work.clone())), ..spec }));
    }
    let new = NewPlan { id: Some(PlanId::new(id)?), by: by.clone(), draft, approval_required: Some(false) };
    let plan = plans.create(new)?.plan;
    plans.write(request(plan.clone(), by, vec![Command::Activate]))?;
    Ok(plan)
}

/// Reserves and ends one task after another of plans of its own.
fn write_tasks(
    store: Arc<dyn Store>,
    number: usize,
    commits: &AtomicU64,
    is_over: &AtomicBool,
) -> Result<()> {
    const TASKS: usize = 200;
    let plans = PlanStore::new(store);
    let worker = format!("bench-{number}");
    for round in 0.. {
        let plan = create(&plans, &format!("c{number}-{round}"), TASKS)?;
        for task in 0..TASKS {
            let id = TaskId::new(format!("t{task}"))?;
            let queue = Command::QueueTask { task: id.clone(), worker: worker.clone() };
            let outcome = Outcome::Done { result: None, output: None, evidence: None };
            let finish = Command::FinishTask { task: id, attempt: Some(1), outcome, retry: None };
            for command in [queue, finish] {
                plans.write(request(plan.clone(), Actor::worker(worker.clone()), vec![command]))?;
                commits.fetch_add(1, Ordering::Relaxed);
            }
            if is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
    Ok(())
}
