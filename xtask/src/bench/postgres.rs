//! The shared store: several workers durably complete tasks without work in one PostgreSQL, next to DBOS and
//! Procrastinate on the same server in the same run. Per core means per second of CPU time of all processes, including
//! the server's.
//!
//! Peers are measured when warm: from the moment when a fifth of their tasks is done until all are. Waypost is measured
//! from the write that activates a plan until the plan is completed. Polling the store for a figure counts for all of
//! them.

mod cluster;
mod commits;
mod counting_proxy;
mod cpu_time;
mod peer;
pub(super) mod server;
mod waypost;
pub(super) mod workers;

use anyhow::Result;

pub(super) use self::cluster::{ClusterWorkload, run as cluster};
use self::peer::{PACKAGES, Peer, TaskKind};
use self::server::Server;
use self::waypost::{IDLE_TRANSACTIONS_MAX, SLOTS_EACH, Waypost};
use self::workers::{Cost, Delays};
use super::measure::median;
use super::report::Report;
use crate::python;

/// Worker processes of each measurement.
const WORKERS: [usize; 3] = [1, 4, 16];
/// Workers while delays are measured.
const WORKERS_OF_DELAYS: usize = 4;
/// How many times as many tasks per second of CPU time Waypost must complete, relative to the better peer.
const TIMES_MORE: f64 = 5.0;
const ROUND_TRIPS_MAX: f64 = 3.0;

/// How much is measured.
pub(super) struct Workload {
    /// Tasks of a peer, for each number of workers.
    peer_tasks: [usize; 3],
    own_tasks: usize,
    /// Tasks with a process each, of all workers together.
    programs: usize,
    rounds: usize,
    /// How long delays are measured, in seconds.
    seconds: f64,
    /// How long one round of commits lasts, in seconds.
    commit_seconds: u64,
}

impl Workload {
    pub(super) const WHOLE: Self = Self {
        peer_tasks: [2_000, 4_000, 4_000],
        own_tasks: 20_000,
        programs: 2_000,
        rounds: 3,
        seconds: 5.0,
        commit_seconds: 4,
    };
    pub(super) const QUICK: Self = Self {
        peer_tasks: [1_000, 1_500, 2_000],
        own_tasks: 20_000,
        programs: 500,
        rounds: 1,
        seconds: 2.0,
        commit_seconds: 2,
    };
}

/// Measures only commits, which needs no peers.
pub(super) fn commits(report: &mut Report, workload: &Workload) -> Result<()> {
    commits::run(report, &Server::start()?, workload.rounds, workload.commit_seconds)
}

pub(super) fn run(report: &mut Report, workload: &Workload) -> Result<()> {
    let python = python::with_packages("python-postgres", PACKAGES)?;
    let server = Server::start()?;
    let peers = [Peer::dbos(&python)?, Peer::procrastinate(&python)?];
    commits::run(report, &server, workload.rounds, workload.commit_seconds)?;
    let idle = Waypost::new(&server)?.idle()?;
    report.at_most("idle worker: transactions per second", idle.transactions, IDLE_TRANSACTIONS_MAX, "");
    report.at_most("idle worker: connections", idle.connections, 1.0, "");
    let mut best = Best::default();
    for (place, workers) in WORKERS.into_iter().enumerate() {
        best = one_width(report, &server, &peers, workload, workers, workload.peer_tasks[place])?;
    }
    several_plans(report, &server, workload)?;
    wires(report, &server, &peers, workload)?;
    delays(report, &server, &peers, workload, &best)
}

/// Tasks per second with the largest number of workers.
#[derive(Default)]
struct Best {
    ours: f64,
    peers: [f64; 2],
}

/// Measures the same work with this number of workers each, alternately.
fn one_width(
    report: &mut Report,
    server: &Server,
    peers: &[Peer; 2],
    workload: &Workload,
    workers: usize,
    tasks: usize,
) -> Result<Best> {
    let (mut own, mut theirs) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..workload.rounds {
        own.push(Waypost::new(server)?.run(workers, &[workload.own_tasks], "noop")?);
        for (peer, costs) in peers.iter().zip(&mut theirs) {
            costs.push(peer.run(server, workers, tasks, TaskKind::Nothing)?);
        }
    }
    let words = |cost: &Cost| {
        let (rate, core) = (cost.per_second(), cost.per_core());
        format!("{rate:.0}/s, {core:.0} per core, {:.3} commits per task", cost.commits_each())
    };
    let middle = |costs: &[Cost]| {
        let core = median(costs.iter().map(Cost::per_core).collect());
        let rate = median(costs.iter().map(Cost::per_second).collect());
        (core, rate)
    };
    let at = |name: &str| format!("{name}, {workers} workers: completions");
    let mut better: f64 = 0.0;
    let mut best = Best::default();
    for ((peer, costs), rate) in peers.iter().zip(&theirs).zip(&mut best.peers) {
        let (core, per_second) = middle(costs);
        report.note(&at(peer.name), words(&costs[costs.len() / 2]));
        better = better.max(core);
        *rate = per_second;
    }
    let (core, per_second) = middle(&own);
    best.ours = per_second;
    report.note(&at("waypost"), words(&own[own.len() / 2]));
    let what = format!("  per core, relative to the better of the two, {workers} workers on one plan");
    report.at_least(&what, core / better, TIMES_MORE, "×");
    Ok(best)
}

/// Measures workers that share several plans.
fn several_plans(report: &mut Report, server: &Server, workload: &Workload) -> Result<()> {
    const PLANS: usize = 8;
    let cost = Waypost::new(server)?.run(16, &[workload.own_tasks / PLANS; PLANS], "noop")?;
    let words = format!("{:.0}/s, {:.0} per core", cost.per_second(), cost.per_core());
    report.note("waypost, 16 workers on 8 plans: completions", words);
    Ok(())
}

/// Counts the round trips and statements of a task, between the workers and the server.
fn wires(report: &mut Report, server: &Server, peers: &[Peer; 2], workload: &Workload) -> Result<()> {
    for (executor, tasks, what) in
        [("noop", workload.own_tasks, "no work"), ("true", workload.programs, "/bin/true")]
    {
        let counted = Waypost::new(server)?.counted(16, tasks, executor)?;
        let what = format!("waypost, one plan, 16 workers, {what}: round trips per task");
        report.at_most(&what, counted.trips_each(), ROUND_TRIPS_MAX, "");
        report.note("  statements per task", format!("{:.3}", counted.statements_each()));
    }
    let few = Waypost::new(server)?.with_slots(SLOTS_EACH).counted(16, workload.programs, "true")?;
    let words = format!("{:.2}, {:.1}", few.trips_each(), few.statements_each());
    report.note("  same with 4 slots shared by all 16: round trips, statements per task", words);
    for peer in peers {
        let counted = peer.counted(server, 16, workload.peer_tasks[0])?;
        let words = format!("{:.1}, {:.1}", counted.trips_each(), counted.statements_each());
        report.note(&format!("{}, 16 workers: round trips, statements per task", peer.name), words);
    }
    Ok(())
}

/// Measures the time from just before a task is submitted to its start on a worker.
fn delays(
    report: &mut Report,
    server: &Server,
    peers: &[Peer; 2],
    workload: &Workload,
    best: &Best,
) -> Result<()> {
    const IDLE_PER_SECOND: f64 = 20.0;
    for (load, rates) in [
        ("idle", [IDLE_PER_SECOND; 3]),
        ("at half load", [best.ours / 2.0, best.peers[0] / 2.0, best.peers[1] / 2.0]),
    ] {
        let [own, theirs @ ..] = rates;
        let found = Waypost::new(server)?.delays(WORKERS_OF_DELAYS, own, workload.seconds)?;
        report.note(&format!("waypost, 4 workers {load}: dispatch, median and p99"), found.describe());
        for (peer, rate) in peers.iter().zip(theirs) {
            let found: Delays = peer.delays(server, WORKERS_OF_DELAYS, rate, workload.seconds)?;
            report.note(
                &format!("{}, 4 workers {load}: dispatch, median and p99", peer.name),
                found.describe(),
            );
        }
    }
    Ok(())
}
