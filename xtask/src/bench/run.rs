//! Running plans: processes against bare starts of the same process, and the completion rate of tasks without work.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::measure::{Bare, median, peak_megabytes, timed};
use super::report::Report;
use crate::exec::cache_dir;
use crate::exec::{DISTRIBUTED, binary};

/// Processes per measurement.
const PROCESSES: usize = 10_000;
/// Tasks without work per measurement.
const INSTANTS: usize = 100_000;
/// Tasks of a chain.
const CHAIN: usize = 1_000;
/// Number of rounds: enough for a stable median on a shared machine.
const ROUNDS: usize = 15;
/// Parallel processes.
const WIDTH: usize = 2;

/// The configuration of a workspace. Nobody has trusted it, so runs name it.
const CONFIG: &str = ".waypost/config.toml";

/// Creates an empty workspace with an executor that runs `/bin/true`.
pub(super) fn workspace(name: &str) -> Result<PathBuf> {
    let scratch = cache_dir().join(name);
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    std::fs::create_dir_all(scratch.join(".waypost"))?;
    let config = "[executors.true]\nkind = \"process\"\ncommand = [\"/bin/true\"]\n";
    std::fs::write(scratch.join(CONFIG), config)?;
    Ok(scratch)
}

pub(super) fn run(report: &mut Report) -> Result<()> {
    let scratch = workspace("bench-run")?;
    write(&scratch, "many", PROCESSES, "true", |_| Vec::new())?;
    write(&scratch, "chain", CHAIN, "true", |number| before(number, 1))?;
    write(&scratch, "instant", INSTANTS, "noop", |_| Vec::new())?;
    write(&scratch, "instant-chain", INSTANTS / 10, "noop", |number| before(number, 1))?;
    let layers = |number: usize| (0..3).flat_map(|step| before(number, 100 + step)).collect();
    write(&scratch, "layered", PROCESSES, "true", layers)?;

    let mut rounds = Measurements::default();
    for _ in 0..ROUNDS {
        rounds.turn(&scratch)?;
    }
    let Measurements { floors, talking, many, layered, alone, commits, chains, instants, instant_chains } =
        rounds;
    report.note("baseline: /bin/true, 2 in parallel", micros(median(floors)));
    report.note(
        "  with stdin written, stdout and stderr read: relative to the baseline",
        format!("{:.2} ×", median(talking)),
    );
    report.at_most(
        "run, 10,000 independent /bin/true, 2 in parallel: relative to the baseline",
        median(many),
        1.2,
        "×",
    );
    report.at_most(
        "run, 100 layers of 100, 3 dependencies each: relative to the baseline",
        median(layered),
        1.2,
        "×",
    );
    let (alone, commit, chain) = (median(alone), median(commits), median(chains));
    report.note("baseline: /bin/true, one at a time", micros(alone));
    report.note("baseline: SQLite commit of one row", micros(commit));
    report.note("run, a chain of 1,000 /bin/true, per task", micros(chain));
    report.at_most("  relative to one start and one commit", chain / (alone + commit), 1.3, "×");
    report.note(
        "  from one end to the next start, relative to a commit",
        format!("{:.1} ×", (chain - alone) / commit),
    );
    report.at_least("run, durable completions of tasks without work", median(instants), 20_000.0, "/s");
    let next = median(instant_chains);
    report.at_most(
        "run, tasks without work: from one end to the next start, relative to a commit",
        next / commit,
        1.5,
        "×",
    );
    let peak = peak(&scratch, "instant")?;
    report.at_most("run, 100,000 tasks without work: peak memory", peak, 300.0, "MB");
    Ok(())
}

fn micros(seconds: f64) -> String {
    format!("{:.0} µs", seconds * 1e6)
}

/// The measurements, taken alternately, so that other load on the machine affects all of them.
#[derive(Default)]
struct Measurements {
    /// Seconds per bare start, several in parallel.
    floors: Vec<f64>,
    /// Time of starts with the input and output of the worker contract but nothing recorded, relative to bare starts.
    talking: Vec<f64>,
    /// Time of a run relative to the bare starts before and after it.
    many: Vec<f64>,
    layered: Vec<f64>,
    /// Seconds per bare start, one at a time.
    alone: Vec<f64>,
    commits: Vec<f64>,
    chains: Vec<f64>,
    /// Completions per second.
    instants: Vec<f64>,
    /// Seconds from one start to the next.
    instant_chains: Vec<f64>,
}

impl Measurements {
    fn turn(&mut self, scratch: &Path) -> Result<()> {
        let one = floor(PROCESSES, WIDTH, bare_start)?;
        let many = ours(scratch, "many")?;
        let two = floor(PROCESSES, WIDTH, bare_start)?;
        let layered = ours(scratch, "layered")?;
        let three = floor(PROCESSES, WIDTH, bare_start)?;
        let talking = floor(PROCESSES, WIDTH, talking_start)?;
        self.talking.push(talking / three);
        self.many.push(many / ((one + two) / 2.0));
        self.layered.push(layered / ((two + three) / 2.0));
        self.floors.extend([one, two, three].map(|floor| floor / PROCESSES as f64));
        self.alone.push(floor(CHAIN, 1, bare_start)? / CHAIN as f64);
        let bare = Bare::open(scratch)?;
        let took = timed(|| (0..CHAIN).for_each(|_| bare.commit())).1;
        self.commits.push(took.as_secs_f64() / CHAIN as f64);
        self.chains.push(ours(scratch, "chain")? / CHAIN as f64);
        self.instants.push(INSTANTS as f64 / ours(scratch, "instant")?);
        self.instant_chains.push(ours(scratch, "instant-chain")? / (INSTANTS / 10) as f64);
        Ok(())
    }
}

pub(super) fn before(number: usize, distance: usize) -> Vec<String> {
    number.checked_sub(distance).map(|other| format!("t{other}")).into_iter().collect()
}

pub(super) fn write(
    scratch: &Path,
    name: &str,
    count: usize,
    executor: &str,
    depends_on: impl Fn(usize) -> Vec<String>,
) -> Result<()> {
    let task = |number: usize| {
        json!({
            "id": format!("t{number}"),
            "depends_on": depends_on(number),
            "work": { "executor": executor, "inputs": {} },
        })
    };
    let tasks: Vec<_> = (0..count).map(task).collect();
    let plan = json!({ "format": "waypost/1", "title": name, "tasks": tasks });
    std::fs::write(scratch.join(format!("{name}.json")), plan.to_string())?;
    Ok(())
}

/// Returns the duration of a run in seconds, from the start of the plan to its end, as the run reports it.
pub(super) fn ours(scratch: &Path, name: &str) -> Result<f64> {
    // Into a file: a reader would wake up for each line and take CPU time from the measurement.
    let said = scratch.join(format!("{name}.jsonl"));
    remove_store(scratch, name)?;
    let mut command = command(scratch, name);
    let status = command.stdout(std::fs::File::create(&said)?).status().context("waypost run")?;
    if !status.success() {
        bail!("waypost run {name}: {status}");
    }
    let text = std::fs::read_to_string(&said)?;
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
    last["seconds"].as_f64().context("seconds")
}

/// Removes the store of an earlier run: the same file is the same plan, and one that has ended does not run again.
fn remove_store(scratch: &Path, name: &str) -> Result<()> {
    for suffix in ["", "-shm", "-wal"] {
        match std::fs::remove_file(scratch.join(format!("{name}.db{suffix}"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Returns the peak memory of a run. It is sampled while the run prints its tasks, because it is gone after the exit.
fn peak(scratch: &Path, name: &str) -> Result<f64> {
    const LINES_BETWEEN: usize = 1_000;
    remove_store(scratch, name)?;
    let mut child = command(scratch, name).stdout(Stdio::piped()).spawn().context("waypost run")?;
    let stdout = child.stdout.take().context("the output of waypost run")?;
    let mut peak: f64 = 0.0;
    for (number, line) in BufReader::new(stdout).lines().enumerate() {
        line?;
        // The process may have exited while its last lines are read.
        if number % LINES_BETWEEN == 0
            && let Ok(found) = peak_megabytes(child.id())
        {
            peak = peak.max(found);
        }
    }
    let status = child.wait()?;
    if !status.success() || peak == 0.0 {
        bail!("waypost run {name}: {status}, peak {peak}");
    }
    Ok(peak)
}

fn command(scratch: &Path, name: &str) -> Command {
    let store = format!("sqlite:{}", scratch.join(format!("{name}.db")).display());
    let file = format!("{name}.json");
    let width = WIDTH.to_string();
    let mut command = Command::new(binary(DISTRIBUTED));
    command.current_dir(scratch).env_clear().stderr(Stdio::inherit());
    let words = ["--store", &store, "--json", "run", &file, "-j", &width, "--config", CONFIG];
    command.args(words);
    command
}

fn bare_start() -> std::io::Result<bool> {
    Ok(Command::new("/bin/true").env_clear().status()?.success())
}

/// Starts a process by the worker contract: its own process group, the job on stdin, stdout and stderr read to the end.
fn talking_start() -> std::io::Result<bool> {
    let mut command = Command::new("/bin/true");
    command.env_clear().process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // The process may exit before it has read anything.
        let _unread = stdin.write_all(br#"{"plan":"p","task":"t","attempt":1,"inputs":{},"outputs":{}}"#);
    }
    Ok(child.wait_with_output()?.status.success())
}

/// Returns the seconds that `count` starts take, `width` in parallel.
fn floor(count: usize, width: usize, start: fn() -> std::io::Result<bool>) -> Result<f64> {
    let (failed, took) = timed(|| {
        std::thread::scope(|scope| {
            let turns = (0..width)
                .map(|_| scope.spawn(move || (0..count / width).any(|_| !start().is_ok_and(|well| well))));
            let turns: Vec<_> = turns.collect();
            turns.into_iter().any(|turn| turn.join().unwrap_or(true))
        })
    });
    if failed {
        bail!("/bin/true failed");
    }
    Ok(took.as_secs_f64())
}
