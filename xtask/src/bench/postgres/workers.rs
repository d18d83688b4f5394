//! Worker processes of one measurement, and the cost of them and of the server.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::cpu_time::used_seconds;
use super::server::{Psql, Server};
use crate::bench::measure::peak_megabytes;

/// Time between two polls of a figure.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time of any wait before the measurement fails.
const TIMEOUT: Duration = Duration::from_secs(180);
/// Consecutive polls without CPU time after which a worker counts as started.
const QUIET_POLLS: usize = 6;

/// A line that a worker printed, and when.
pub(super) struct OutputLine {
    pub(super) at: Instant,
    pub(super) line: String,
}

/// Worker processes, killed on drop.
pub(super) struct WorkerProcesses {
    workers: Vec<(Child, Option<ChildStdin>)>,
    lines: Receiver<OutputLine>,
}

/// What happens to the lines that workers print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stdout {
    Captured,
    Discarded,
}

impl WorkerProcesses {
    pub(super) fn start(commands: impl Iterator<Item = Command>, stdout: Stdout) -> Result<Self> {
        let (sender, lines) = channel();
        let mut started = Self { workers: Vec::new(), lines };
        for mut command in commands {
            let stdout = if stdout == Stdout::Captured { Stdio::piped() } else { Stdio::null() };
            let mut child =
                command.stdin(Stdio::piped()).stdout(stdout).spawn().context("cannot start a worker")?;
            if let Some(stdout) = child.stdout.take() {
                read_lines(BufReader::new(stdout), sender.clone());
            }
            let stdin = child.stdin.take();
            started.workers.push((child, stdin));
        }
        Ok(started)
    }

    /// Returns the CPU time of all workers and the programs that they ran, in seconds.
    pub(super) fn used_seconds(&self) -> Result<f64> {
        self.workers.iter().try_fold(0.0, |sum, (child, _)| {
            let used = used_seconds(child.id()).context("a worker exited early")?;
            Ok(sum + used.own + used.of_children)
        })
    }

    /// Returns the peak memory of each worker so far.
    pub(super) fn peak_megabytes(&self) -> Result<Vec<f64>> {
        self.workers.iter().map(|(child, _)| peak_megabytes(child.id())).collect()
    }

    /// Waits until the workers use no CPU time: they have started and wait for work.
    pub(super) fn settle(&self) -> Result<()> {
        let begin = Instant::now();
        let (mut before, mut quiet) = (0.0, 0);
        while quiet < QUIET_POLLS {
            if begin.elapsed() > TIMEOUT {
                bail!("the workers did not become idle within {} seconds", TIMEOUT.as_secs());
            }
            pause(POLL_INTERVAL);
            let used = self.used_seconds()?;
            // An idle worker that polls once a second uses a tick (10 ms) now and then.
            quiet =
                if used > 0.0 && used - before <= 0.011 * self.workers.len() as f64 { quiet + 1 } else { 0 };
            before = used;
        }
        Ok(())
    }

    /// Waits for the next line of any worker.
    pub(super) fn next_line(&self, timeout: Duration) -> Option<OutputLine> {
        self.lines.recv_timeout(timeout).ok()
    }

    /// Closes their standard input, which makes them exit, and returns the remaining lines.
    pub(super) fn dismiss(mut self) -> Result<Vec<String>> {
        for (_, stdin) in &mut self.workers {
            drop(stdin.take());
        }
        let begin = Instant::now();
        let mut lines = Vec::new();
        while let Some(output) = self.next_line(TIMEOUT.saturating_sub(begin.elapsed())) {
            lines.push(output.line);
        }
        Ok(lines)
    }
}

impl Drop for WorkerProcesses {
    fn drop(&mut self) {
        for (child, _) in &mut self.workers {
            let _gone = child.kill();
            let _waited = child.wait();
        }
    }
}

fn read_lines(mut output: impl BufRead + Send + 'static, sender: Sender<OutputLine>) {
    std::thread::spawn(move || {
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|length| length > 0) {
            let printed = OutputLine { at: Instant::now(), line: std::mem::take(&mut line) };
            if sender.send(printed).is_err() {
                return;
            }
        }
    });
}

/// Pauses: a measurement polls figures that send no notification.
pub(in crate::bench) fn pause(time: Duration) {
    let (_nobody, never) = channel::<()>();
    let _over = never.recv_timeout(time);
}

/// Polls until there is a result.
pub(super) fn until<R>(every: Duration, mut look: impl FnMut() -> Result<Option<R>>) -> Result<R> {
    let begin = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if begin.elapsed() > TIMEOUT {
            bail!("timed out after {} seconds", TIMEOUT.as_secs());
        }
        pause(every);
    }
}

/// Polls a query until its number reaches `least`.
pub(super) fn until_number(psql: &mut Psql, query: &str, least: f64) -> Result<f64> {
    until(POLL_INTERVAL, || Ok(Some(psql.number(query)?).filter(|&number| number >= least)))
}

/// The counters at one moment.
pub(super) struct Mark {
    at: Instant,
    used: f64,
    commits: f64,
}

impl Mark {
    pub(super) fn now(server: &Server, workers: &WorkerProcesses, psql: &mut Psql) -> Result<Self> {
        let commits = psql.commits()?;
        Ok(Self { at: Instant::now(), used: server.used_seconds()? + workers.used_seconds()?, commits })
    }

    /// Returns the cost of this number of tasks since the mark.
    pub(super) fn cost(&self, tasks: f64, now: &Self) -> Cost {
        Cost {
            tasks,
            seconds: (now.at - self.at).as_secs_f64(),
            used: now.used - self.used,
            commits: now.commits - self.commits,
        }
    }
}

/// The cost of tasks.
pub(super) struct Cost {
    tasks: f64,
    seconds: f64,
    used: f64,
    commits: f64,
}

impl Cost {
    pub(super) fn per_second(&self) -> f64 {
        self.tasks / self.seconds
    }

    /// Returns the tasks per second of CPU time, of all processes.
    pub(super) fn per_core(&self) -> f64 {
        self.tasks / self.used
    }

    pub(super) fn commits_each(&self) -> f64 {
        self.commits / self.tasks
    }
}

/// How long tasks waited for their start, in seconds.
pub(super) struct Delays(Vec<f64>);

impl Delays {
    pub(super) fn new(mut seconds: Vec<f64>) -> Result<Self> {
        if seconds.is_empty() {
            bail!("no task was started");
        }
        seconds.sort_by(f64::total_cmp);
        Ok(Self(seconds))
    }

    fn at(&self, share: f64) -> f64 {
        let place = (self.0.len() as f64 * share) as usize;
        self.0[place.min(self.0.len() - 1)] * 1e3
    }

    pub(super) fn describe(&self) -> String {
        format!("{:.1} ms, {:.1} ms", self.at(0.5), self.at(0.99))
    }
}
