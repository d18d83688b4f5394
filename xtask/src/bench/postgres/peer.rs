//! Another durable task queue in the same PostgreSQL, driven by a small script (`*_peer.py`) that describes its setup.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use waypost_testkit::postgres::PostgresDatabase;

use super::counting_proxy::{Counted, CountingProxy};
use super::server::{Psql, Server};
use super::workers::{Cost, Delays, Mark, Stdout, WorkerProcesses, until_number};
use crate::exec::{cache_dir, output};
use crate::npm::Packages;

const DBOS: &str = include_str!("dbos_peer.py");
const PROCRASTINATE: &str = include_str!("procrastinate_peer.py");
const PGQUEUER: &str = include_str!("pgqueuer_peer.py");
const GRAPHILE: &str = include_str!("graphile_peer.mjs");
/// The packages of the peers in Python.
pub(super) const PACKAGES: &[&str] = &[
    "asyncpg==0.32.0",
    "dbos==3.3.0",
    "pgqueuer==1.6.0",
    "procrastinate==3.10.0",
    "psycopg[binary,pool]==3.3.8",
];
/// The share of tasks after which a peer is warm.
const WARM: f64 = 0.2;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskKind {
    Nothing,
    /// Runs `/bin/true`.
    Process,
}

impl TaskKind {
    /// Returns the name that the scripts know.
    fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Process => "process",
        }
    }

    /// Returns the executor of Waypost's tasks.
    pub(super) fn executor(self) -> &'static str {
        match self {
            Self::Nothing => "noop",
            Self::Process => "true",
        }
    }
}

pub(super) struct Peer {
    pub(super) name: &'static str,
    interpreter: PathBuf,
    script: PathBuf,
    /// The query for the number of durably completed tasks.
    done: &'static str,
}

impl Peer {
    pub(super) fn dbos(python: &Path) -> Result<Self> {
        Self::new(
            "DBOS",
            "dbos_peer.py",
            DBOS,
            python,
            "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'",
        )
    }

    pub(super) fn procrastinate(python: &Path) -> Result<Self> {
        let done = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'";
        Self::new("Procrastinate", "procrastinate_peer.py", PROCRASTINATE, python, done)
    }

    pub(super) fn pgqueuer(python: &Path) -> Result<Self> {
        let done = "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'";
        Self::new("PGQueuer", "pgqueuer_peer.py", PGQUEUER, python, done)
    }

    /// Its jobs are gone when they are done.
    pub(super) fn graphile(packages: &Packages) -> Result<Self> {
        let script = packages.home().join("graphile_peer.mjs");
        std::fs::write(&script, GRAPHILE)?;
        let done = "SELECT (SELECT jobs FROM bench_submitted) - count(*) FROM graphile_worker._private_jobs";
        Ok(Self { name: "Graphile Worker", interpreter: packages.program("node"), script, done })
    }

    fn new(name: &'static str, file: &str, text: &str, python: &Path, done: &'static str) -> Result<Self> {
        let folder = cache_dir().join("bench-postgres");
        std::fs::create_dir_all(&folder)?;
        let script = folder.join(file);
        std::fs::write(&script, text)?;
        Ok(Self { name, interpreter: python.to_owned(), script, done })
    }

    fn command(&self, verb: &str, url: &str) -> Command {
        let mut command = Command::new(&self.interpreter);
        // All of their libraries accept this scheme.
        let url = url.replacen("postgres://", "postgresql://", 1);
        command.arg(&self.script).args([verb, &url]).env_clear().env("HOME", cache_dir());
        command
    }

    /// Creates a database with the peer's tables and this number of tasks.
    fn prepare(&self, server: &Server, tasks: usize, kind: TaskKind) -> Result<PostgresDatabase> {
        let database = server.database();
        output(&mut self.command("setup", database.url()))?;
        if tasks > 0 {
            output(self.command("submit", database.url()).args([&tasks.to_string(), kind.as_str()]))?;
        }
        // The server would analyse these tables within a minute; until then its query plans are poor.
        database.sql("VACUUM ANALYZE");
        Ok(database)
    }

    fn workers(&self, url: &str, workers: usize, stdout: Stdout) -> Result<WorkerProcesses> {
        let command = |number: usize| {
            let mut command = self.command("work", url);
            command.arg(format!("worker{number}"));
            command
        };
        WorkerProcesses::start((0..workers).map(command), stdout)
    }

    /// Measures the cost of tasks with this number of workers, once they are warm.
    pub(super) fn run(&self, server: &Server, workers: usize, tasks: usize, kind: TaskKind) -> Result<Cost> {
        let database = self.prepare(server, tasks, kind)?;
        let mut psql = Psql::new(database.url())?;
        let workers = self.workers(database.url(), workers, Stdout::Discarded)?;
        let before = until_number(&mut psql, self.done, tasks as f64 * WARM)?;
        let begin = Mark::now(server, &workers, &mut psql)?;
        let after = until_number(&mut psql, self.done, tasks as f64)?;
        Ok(begin.cost(after - before, &Mark::now(server, &workers, &mut psql)?))
    }

    /// Counts round trips and statements for this number of tasks.
    pub(super) fn counted(&self, server: &Server, workers: usize, tasks: usize) -> Result<Counted> {
        let database = self.prepare(server, tasks, TaskKind::Nothing)?;
        let proxy = CountingProxy::to(server.port())?;
        let mut psql = Psql::new(database.url())?;
        let workers = self.workers(&proxy.url(database.url()), workers, Stdout::Discarded)?;
        let before = until_number(&mut psql, self.done, tasks as f64 * WARM)?;
        let begin = proxy.count();
        let after = until_number(&mut psql, self.done, tasks as f64)?;
        let counted = proxy.count().since(begin, after - before);
        drop(workers);
        Ok(counted)
    }

    /// Measures how long tasks wait for their start at this rate per second.
    pub(super) fn delays(&self, server: &Server, workers: usize, rate: f64, seconds: f64) -> Result<Delays> {
        let database = self.prepare(server, 0, TaskKind::Nothing)?;
        let mut psql = Psql::new(database.url())?;
        let workers = self.workers(database.url(), workers, Stdout::Captured)?;
        workers.settle()?;
        let mut trickle = self.command("trickle", database.url());
        let sent = output(trickle.args([rate.to_string(), seconds.to_string()]))?;
        until_number(&mut psql, self.done, sent.trim().parse()?)?;
        let mut delays: Vec<f64> = Vec::new();
        for line in workers.dismiss()? {
            if line.starts_with('[') {
                delays.extend(serde_json::from_str::<Vec<f64>>(&line)?);
            }
        }
        Delays::new(delays)
    }
}
