//! `cargo xtask bench cluster`: what a cluster of workers on one stock PostgreSQL must hold, each as a ratio in the same run:
//! commits, tasks for each second of processor time next to four other queues, growth with workers, the cost of idling,
//! recovery from a machine that dies, and a thousand plans at once.

use anyhow::{Context, Result};

use super::commits;
use super::peer::{PACKAGES, Peer, TaskKind};
use super::server::Server;
use super::waypost::{IDLE_TRANSACTIONS_MAX, Waypost};
use super::workers::Cost;
use crate::bench::measure::median;
use crate::bench::report::Report;
use crate::npm::Packages;
use crate::python;

const GRAPHILE: &[(&str, &str)] = &[("graphile-worker", "0.18.0"), ("pg", "8.23.1")];
/// Workers of the comparison.
const WORKERS: usize = 4;
/// How many times as many tasks per second of processor time, relative to the best of the others.
const NOTHING_TIMES: f64 = 3.0;
const PROCESS_TIMES: f64 = 2.0;
/// The share of linear growth that must remain with more workers.
const GROWTH_SHARE: f64 = 0.7;
/// Seconds beyond the lease until the task of a dead machine runs elsewhere.
const RECOVERY_EXTRA_SECONDS: f64 = 2.0;
const MEGABYTES_MAX: f64 = 60.0;

/// How much is measured.
pub(in crate::bench) struct ClusterWorkload {
    rounds: usize,
    commit_seconds: u64,
    peer_tasks: usize,
    own_tasks: usize,
    programs: usize,
    /// Tasks that sleep, for each worker.
    sleeps: usize,
    /// Plans, their tasks and the workers on them.
    plans: (usize, usize, usize),
    /// Tasks of one large plan.
    large: usize,
}

impl ClusterWorkload {
    pub(in crate::bench) const WHOLE: Self = Self {
        rounds: 3,
        commit_seconds: 4,
        peer_tasks: 4_000,
        own_tasks: 20_000,
        programs: 2_000,
        sleeps: 800,
        plans: (1_000, 100, 16),
        large: 100_000,
    };
    pub(in crate::bench) const QUICK: Self = Self {
        rounds: 1,
        commit_seconds: 2,
        peer_tasks: 1_000,
        own_tasks: 4_000,
        programs: 400,
        sleeps: 160,
        plans: (100, 20, 4),
        large: 10_000,
    };
}

pub(in crate::bench) fn run(report: &mut Report, extent: &ClusterWorkload, parts: &[&str]) -> Result<()> {
    let server = Server::start()?;
    let wants = |part: &str| parts.is_empty() || parts.contains(&part);
    if wants("commits") {
        commits::run(report, &server, extent.rounds, extent.commit_seconds)?;
    }
    if wants("idle") {
        let idle = Waypost::new(&server)?.idle()?;
        let what = "idle worker: transactions per second";
        report.at_most(what, idle.transactions, IDLE_TRANSACTIONS_MAX, "");
        report.at_most("idle worker: connections", idle.connections, 1.0, "");
    }
    if wants("peers") {
        peers(report, &server, extent)?;
    }
    if wants("growth") {
        growth(report, &server, extent)?;
    }
    if wants("recovery") {
        let found = Waypost::new(&server)?.recovery()?;
        let what = format!("task of a dead machine runs elsewhere, lease of {} s", found.lease_seconds);
        report.at_most(&what, found.seconds, found.lease_seconds + RECOVERY_EXTRA_SECONDS, "s");
    }
    if wants("plans") {
        many_plans(report, &server, extent)?;
    }
    Ok(())
}

/// Compares tasks for each second of processor time with the best of four other queues, alternately.
fn peers(report: &mut Report, server: &Server, extent: &ClusterWorkload) -> Result<()> {
    let python = python::with_packages("python-postgres", PACKAGES)?;
    let node = Packages::install("graphile-worker", GRAPHILE)?;
    let peers = [
        Peer::dbos(&python)?,
        Peer::procrastinate(&python)?,
        Peer::pgqueuer(&python)?,
        Peer::graphile(&node)?,
    ];
    for (kind, what, times, own_tasks) in [
        (TaskKind::Nothing, "no work", NOTHING_TIMES, extent.own_tasks),
        (TaskKind::Process, "/bin/true", PROCESS_TIMES, extent.programs),
    ] {
        let (mut own, mut theirs): (Vec<Cost>, Vec<Vec<Cost>>) =
            (Vec::new(), peers.iter().map(|_| Vec::new()).collect());
        for _ in 0..extent.rounds {
            own.push(Waypost::new(server)?.run(WORKERS, &[own_tasks], kind.executor())?);
            for (peer, costs) in peers.iter().zip(&mut theirs) {
                costs.push(peer.run(server, WORKERS, extent.peer_tasks.min(own_tasks), kind)?);
            }
        }
        let per_core = |costs: &[Cost]| median(costs.iter().map(Cost::per_core).collect());
        let per_second = |costs: &[Cost]| median(costs.iter().map(Cost::per_second).collect());
        let mut note = |name: &str, costs: &[Cost]| {
            let words = format!("{:.0}/s, {:.0} per core", per_second(costs), per_core(costs));
            report.note(&format!("{name}, {WORKERS} workers, {what}: completions"), words);
        };
        note("waypost", &own);
        for (peer, costs) in peers.iter().zip(&theirs) {
            note(peer.name, costs);
        }
        let best = theirs.iter().map(|costs| per_core(costs)).fold(0.0, f64::max);
        let what = format!("  per core, relative to the best of the four, {what}");
        report.at_least(&what, per_core(&own) / best, times, "×");
    }
    Ok(())
}

/// Measures how the rate grows with workers whose tasks mostly wait.
fn growth(report: &mut Report, server: &Server, extent: &ClusterWorkload) -> Result<()> {
    let mut alone = None;
    for workers in [1, 4, 16] {
        let mut rates = Vec::new();
        for _ in 0..extent.rounds {
            let cost = Waypost::new(server)?.run(workers, &[workers * extent.sleeps], "sleep")?;
            rates.push(cost.per_second());
        }
        let rate = median(rates);
        let one = *alone.get_or_insert(rate);
        let what = format!("{workers} workers on tasks that sleep 50 ms: completions");
        report.note(&what, format!("{rate:.0}/s"));
        if workers > 1 {
            let what = format!("  share of linear growth, {workers} workers");
            report.at_least(&what, rate / (one * workers as f64), GROWTH_SHARE, "×");
        }
    }
    Ok(())
}

/// Measures the memory of workers that have many plans, or one large plan, before them.
fn many_plans(report: &mut Report, server: &Server, extent: &ClusterWorkload) -> Result<()> {
    let (plans, tasks, workers) = extent.plans;
    let found = Waypost::new(server)?.backlog(workers, &vec![tasks; plans])?;
    let what = format!("{plans} active plans × {tasks} tasks, {workers} workers: completions");
    report.note(&what, format!("{:.0}/s", (plans * tasks) as f64 / found.seconds));
    let largest = found.megabytes.iter().copied().max_by(f64::total_cmp).context("no worker")?;
    report.at_most("  peak memory of the largest worker", largest, MEGABYTES_MAX, "MB");
    let found = Waypost::new(server)?.backlog(8, &[extent.large])?;
    let largest = found.megabytes.iter().copied().max_by(f64::total_cmp).context("no worker")?;
    let what =
        format!("one plan of {} tasks, 8 workers: completions, peak memory of the largest", extent.large);
    report.note(&what, format!("{:.0}/s, {largest:.0} MB", extent.large as f64 / found.seconds));
    Ok(())
}
