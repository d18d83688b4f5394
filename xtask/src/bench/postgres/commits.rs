//! Durable commits of independent plans, next to the same commits without any order among them: the statements of a write as
//! scripts of `pgbench`, alternately on databases of one server, while another process numbers the versions. Each client has a
//! hundred plans of its own. Also a list of many plans, and what an idle worker costs.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use waypost_store::{Durability, PlanStore, Query};
use waypost_testkit::postgres::{PostgresDatabase, folder_of_programs};

use super::server::Server;
use super::workers::pause;
use crate::bench::measure::median;
use crate::bench::report::Report;
use crate::exec::cache_dir;

const CLIENTS: [usize; 3] = [1, 8, 32];
/// The share of the commits without an order that must remain with 32 clients.
const SHARE: f64 = 0.7;
/// The pause between two runs of the process that numbers versions.
const NUMBERING_INTERVAL: Duration = Duration::from_millis(10);
/// Plans of the list.
const LISTED: usize = 500;
const LISTS: usize = 50;

/// One variant of the same commit.
struct Variant {
    name: &'static str,
    script: &'static str,
    database: PostgresDatabase,
}

impl Variant {
    fn new(server: &Server, name: &'static str, script: &'static str) -> Result<Self> {
        let database = server.database();
        drop(waypost_store::open(database.url(), Durability::Full)?);
        fill(&database, 100 * 33);
        Ok(Self { name, script, database })
    }

    /// Returns the commits per second.
    fn run(&self, clients: usize, seconds: u64) -> Result<f64> {
        let folder = cache_dir().join("bench-postgres");
        std::fs::create_dir_all(&folder)?;
        let script = folder.join(format!("{}.sql", self.name));
        std::fs::write(&script, self.script)?;
        let mut pgbench = Command::new(folder_of_programs().context("no PostgreSQL")?.join("pgbench"));
        pgbench.args(["--no-vacuum", "--protocol=prepared", "--jobs=2"]);
        pgbench.arg(format!("--client={clients}")).arg(format!("--time={seconds}"));
        pgbench.arg("--file").arg(&script).arg(self.database.url());
        let output = pgbench.output().context("pgbench")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        rate.with_context(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Inserts rows of plans.
fn fill(database: &PostgresDatabase, plans: usize) {
    database.sql(&format!(
        "INSERT INTO waypost_plans (key, id, version, title, status, phase, owner, queue, created_at, updated_at, archived,
             awaits_approval, total, ready, blocked, running, done, failed, skipped, cancelled, urgency, replay_bytes)
         SELECT n, 'p' || n, 1, 'Plan ' || n, '', 'active', '', '', n, n, false, false, 10, 5, 5, 0, 0, 0, 0, 0, 0, 100
         FROM generate_series(1, {plans}) n"
    ));
}

pub(super) fn run(report: &mut Report, server: &Server, rounds: usize, seconds: u64) -> Result<()> {
    let variants = [
        Variant::new(server, "ordered", include_str!("commits_ordered.sql"))?,
        Variant::new(server, "plain", include_str!("commits_plain.sql"))?,
        Variant::new(server, "control_row", include_str!("commits_control_row.sql"))?,
    ];
    let sequencer = waypost_store::open(variants[0].database.url(), Durability::Full)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // Whoever asks for the end of the log numbers what was committed.
                let _next_time = sequencer.query(|read| read.store_state());
                pause(NUMBERING_INTERVAL);
            }
        });
        let measured = compare(report, &variants, rounds, seconds);
        is_over.store(true, Ordering::Relaxed);
        measured
    })?;
    list(report, server)
}

fn compare(report: &mut Report, variants: &[Variant; 3], rounds: usize, seconds: u64) -> Result<()> {
    for clients in CLIENTS {
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (variant, rates) in variants.iter().zip(&mut rates) {
                rates.push(variant.run(clients, seconds)?);
            }
        }
        let [ordered, plain, control_row] = rates.map(median);
        let what = format!(
            "durable commits of independent plans, {clients} clients: ordered, without order, one row for all"
        );
        report.note(&what, format!("{ordered:.0}/s, {plain:.0}/s, {control_row:.0}/s"));
        let what = format!("  ordered, relative to without order, {clients} clients");
        match clients {
            32 => report.at_least(&what, ordered / plain, SHARE, "×"),
            _ => report.note(&what, format!("{:.2} ×", ordered / plain)),
        }
    }
    Ok(())
}

/// Measures a list of many plans, on a server with default settings.
fn list(report: &mut Report, server: &Server) -> Result<()> {
    let database = server.database();
    let plans = PlanStore::new(waypost_store::open(database.url(), Durability::Full)?);
    fill(&database, LISTED);
    let mut times = Vec::new();
    for _ in 0..LISTS {
        let begin = Instant::now();
        plans.heads(&Query::default())?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    report.note(&format!("list with {LISTED} plans"), format!("{:.1} ms", median(times)));
    Ok(())
}
