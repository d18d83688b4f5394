//! A private PostgreSQL server for all measurements, the CPU time of its processes, and a connection to query it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use waypost_testkit::postgres::{PostgresDatabase, PostgresServer, folder_of_programs};

use super::cpu_time::used_seconds;
use crate::postgres;

/// A server with default settings: a commit is on disk when it returns.
pub(in crate::bench) struct Server {
    server: PostgresServer,
    main: u32,
}

impl Server {
    pub(in crate::bench) fn start() -> Result<Self> {
        let server = postgres::server()?;
        // The file belongs to another user, so it is read through a query.
        let pids = server.database().sql("SELECT pg_read_file('postmaster.pid')");
        let main = pids.first().context("no process id in postmaster.pid")?.trim().parse()?;
        Ok(Self { server, main })
    }

    pub(in crate::bench) fn database(&self) -> PostgresDatabase {
        self.server.database()
    }

    pub(in crate::bench) fn port(&self) -> u16 {
        self.server.port()
    }

    /// Returns the CPU time of all its processes in seconds, including exited ones.
    pub(in crate::bench) fn used_seconds(&self) -> Result<f64> {
        let main = self.main;
        let children = std::fs::read_to_string(format!("/proc/{main}/task/{main}/children"))?;
        // A child may exit just now; its time then counts for its parent.
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        let running: f64 = children.filter_map(|child| used_seconds(child).ok()).map(|used| used.own).sum();
        let main = used_seconds(main)?;
        Ok(running + main.own + main.of_children)
    }
}

/// One open connection that polls figures at little cost.
pub(super) struct Psql {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Psql {
    pub(super) fn new(url: &str) -> Result<Self> {
        let folder = folder_of_programs().context("no PostgreSQL")?;
        let mut psql = Command::new(folder.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-d", url]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = psql.spawn().context("psql")?;
        let stdin = child.stdin.take().context("psql")?;
        let stdout = BufReader::new(child.stdout.take().context("psql")?);
        Ok(Self { child, stdin, stdout })
    }

    /// Returns the single number that a query selects.
    pub(super) fn number(&mut self, query: &str) -> Result<f64> {
        writeln!(self.stdin, "{query};")?;
        self.stdin.flush()?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        line.trim().parse().with_context(|| format!("{query} returned {line:?}"))
    }

    /// Returns the number of commits in this database so far.
    pub(super) fn commits(&mut self) -> Result<f64> {
        self.number("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
    }
}

impl Drop for Psql {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}
