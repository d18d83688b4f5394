//! The shared store: tasks without work that several workers end durably in one PostgreSQL, beside DBOS and Procrastinate on
//! the same server in the same run. Per core means per second of processor time of all processes, the server's included.
//!
//! Peers are measured from the moment when a fifth of their tasks is done, warm, until all are; ours from the write that makes
//! a plan active until the plan is completed. Who waits for a figure looks at the store now and then; that counts for all.

mod crew;
mod ours;
mod peer;
mod server;
mod wire;

use anyhow::Result;

use self::crew::{Cost, Delays};
use self::ours::{Ours, SLOTS_EACH};
use self::peer::Peer;
use self::server::Server;
use super::measure::{Report, median};
use crate::python;

const PACKAGES: &[&str] = &["dbos==3.3.0", "procrastinate==3.10.0", "psycopg[binary,pool]==3.3.8"];
/// Worker processes of each measurement.
const WORKERS: [usize; 3] = [1, 4, 16];
/// Workers while delays are measured.
const WORKERS_OF_DELAYS: usize = 4;
/// How much more than the better of the others ours are to do with a second of processor time.
const TIMES_MORE: f64 = 5.0;
const ROUND_TRIPS_MAX: f64 = 3.0;

/// How much is measured.
pub(super) struct Extent {
    /// Tasks of a peer for each of its workers' numbers.
    peer_tasks: [usize; 3],
    own_tasks: usize,
    /// Tasks with a process each, of all workers together.
    programs: usize,
    rounds: usize,
    /// Seconds for which delays are gathered.
    seconds: f64,
}

impl Extent {
    pub(super) const WHOLE: Self = Self {
        peer_tasks: [2_000, 4_000, 4_000],
        own_tasks: 20_000,
        programs: 2_000,
        rounds: 3,
        seconds: 5.0,
    };
    pub(super) const QUICK: Self =
        Self { peer_tasks: [1_000, 1_500, 2_000], own_tasks: 20_000, programs: 500, rounds: 1, seconds: 2.0 };
}

pub(super) fn run(report: &mut Report, extent: &Extent) -> Result<()> {
    let python = python::with_packages("python-postgres", PACKAGES)?;
    let server = Server::start()?;
    let peers = [Peer::dbos(&python)?, Peer::procrastinate(&python)?];
    let mut best = Best::default();
    for (place, workers) in WORKERS.into_iter().enumerate() {
        best = one_width(report, &server, &peers, extent, workers, extent.peer_tasks[place])?;
    }
    several_plans(report, &server, extent)?;
    wires(report, &server, &peers, extent)?;
    delays(report, &server, &peers, extent, &best)
}

/// Tasks a second with the largest number of workers.
#[derive(Default)]
struct Best {
    ours: f64,
    peers: [f64; 2],
}

/// The same work with so many workers each, turn by turn.
fn one_width(
    report: &mut Report,
    server: &Server,
    peers: &[Peer; 2],
    extent: &Extent,
    workers: usize,
    tasks: usize,
) -> Result<Best> {
    let (mut own, mut theirs) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..extent.rounds {
        own.push(Ours::new(server)?.run(workers, &[extent.own_tasks], "noop")?);
        for (peer, costs) in peers.iter().zip(&mut theirs) {
            costs.push(peer.run(server, workers, tasks)?);
        }
    }
    let words = |cost: &Cost| {
        let (rate, core) = (cost.per_second(), cost.per_core());
        format!("{rate:.0}/s, {core:.0} a core, {:.3} commits each", cost.commits_each())
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
    let what = format!("  a core over the better of them, {workers} workers on one plan");
    report.at_least(&what, core / better, TIMES_MORE, "×");
    Ok(best)
}

/// Workers that share several plans.
fn several_plans(report: &mut Report, server: &Server, extent: &Extent) -> Result<()> {
    const PLANS: usize = 8;
    let cost = Ours::new(server)?.run(16, &[extent.own_tasks / PLANS; PLANS], "noop")?;
    let words = format!("{:.0}/s, {:.0} a core", cost.per_second(), cost.per_core());
    report.note("waypost, 16 workers on 8 plans: completions", words);
    Ok(())
}

/// What a task costs on the wire, counted between the workers and the server.
fn wires(report: &mut Report, server: &Server, peers: &[Peer; 2], extent: &Extent) -> Result<()> {
    for (executor, tasks, what) in
        [("noop", extent.own_tasks, "no work"), ("true", extent.programs, "/bin/true")]
    {
        let counted = Ours::new(server)?.counted(16, tasks, executor)?;
        let what = format!("waypost, one plan, 16 workers, {what}: round trips a task");
        report.at_most(&what, counted.trips_each(), ROUND_TRIPS_MAX, "");
        report.note("  statements a task", format!("{:.3}", counted.statements_each()));
    }
    let few = Ours::new(server)?.with_slots(SLOTS_EACH).counted(16, extent.programs, "true")?;
    let words = format!("{:.2}, {:.1}", few.trips_each(), few.statements_each());
    report.note("  the same with 4 slots for all 16: round trips, statements a task", words);
    for peer in peers {
        let counted = peer.counted(server, 16, extent.peer_tasks[0])?;
        let words = format!("{:.1}, {:.1}", counted.trips_each(), counted.statements_each());
        report.note(&format!("{}, 16 workers: round trips, statements a task", peer.name), words);
    }
    Ok(())
}

/// From the moment before a task is submitted to its start on a worker.
fn delays(
    report: &mut Report,
    server: &Server,
    peers: &[Peer; 2],
    extent: &Extent,
    best: &Best,
) -> Result<()> {
    const IDLE_PER_SECOND: f64 = 20.0;
    for (load, rates) in [
        ("idle", [IDLE_PER_SECOND; 3]),
        ("at half load", [best.ours / 2.0, best.peers[0] / 2.0, best.peers[1] / 2.0]),
    ] {
        let [own, theirs @ ..] = rates;
        let found = Ours::new(server)?.delays(WORKERS_OF_DELAYS, own, extent.seconds)?;
        report.note(&format!("waypost, 4 workers {load}: dispatch, median and p99"), found.words());
        for (peer, rate) in peers.iter().zip(theirs) {
            let found: Delays = peer.delays(server, WORKERS_OF_DELAYS, rate, extent.seconds)?;
            report.note(&format!("{}, 4 workers {load}: dispatch, median and p99", peer.name), found.words());
        }
    }
    Ok(())
}
