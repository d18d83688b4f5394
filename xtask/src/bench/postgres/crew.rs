//! Worker processes of one measurement, and what they and the server cost.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::server::{Asker, Server};

/// Between two looks at a figure that somebody waits for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long anything may take before the measurement has failed.
const PATIENCE: Duration = Duration::from_secs(180);
/// Looks in a row at which nothing was used: then whoever starts has started.
const QUIET_LOOKS: usize = 6;

/// Processor time of a process.
pub(super) struct Used {
    pub(super) own: f64,
    /// Of its children that have ended and were waited for.
    pub(super) of_children: f64,
}

/// What a process has used so far.
pub(super) fn used_seconds(process: u32) -> Result<Used> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("stat")?;
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
    let [user, system, child_user, child_system] = ticks[..] else { bail!("stat: {stat}") };
    let seconds = |ticks: f64| ticks / TICKS_PER_SECOND;
    Ok(Used { own: seconds(user + system), of_children: seconds(child_user + child_system) })
}

/// A line that a worker has said, and when.
pub(super) struct Said {
    pub(super) at: Instant,
    pub(super) line: String,
}

/// Workers that end with this.
pub(super) struct Crew {
    workers: Vec<(Child, Option<ChildStdin>)>,
    said: Receiver<Said>,
}

/// Whether the lines of workers are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Voices {
    Heard,
    Ignored,
}

impl Crew {
    pub(super) fn start(commands: impl Iterator<Item = Command>, voices: Voices) -> Result<Self> {
        let (tell, said) = channel();
        let mut crew = Self { workers: Vec::new(), said };
        for mut command in commands {
            let stdout = if voices == Voices::Heard { Stdio::piped() } else { Stdio::null() };
            let mut child = command.stdin(Stdio::piped()).stdout(stdout).spawn().context("a worker")?;
            if let Some(stdout) = child.stdout.take() {
                listen(BufReader::new(stdout), tell.clone());
            }
            let stdin = child.stdin.take();
            crew.workers.push((child, stdin));
        }
        Ok(crew)
    }

    /// Seconds that all workers, and the programs that they ran, have used.
    pub(super) fn used_seconds(&self) -> Result<f64> {
        self.workers.iter().try_fold(0.0, |sum, (child, _)| {
            let used = used_seconds(child.id()).context("a worker has ended")?;
            Ok(sum + used.own + used.of_children)
        })
    }

    /// Waits until none of them uses the processor any more: they are up, and wait for work.
    pub(super) fn settle(&self) -> Result<()> {
        let begin = Instant::now();
        let (mut before, mut quiet) = (0.0, 0);
        while quiet < QUIET_LOOKS {
            if begin.elapsed() > PATIENCE {
                bail!("the workers never come to rest");
            }
            pause(LOOK_EVERY);
            let used = self.used_seconds()?;
            // Whoever looks around once a second uses a hundredth now and then.
            quiet =
                if used > 0.0 && used - before <= 0.011 * self.workers.len() as f64 { quiet + 1 } else { 0 };
            before = used;
        }
        Ok(())
    }

    /// The next thing that one of them says.
    pub(super) fn hear(&self, patience: Duration) -> Option<Said> {
        self.said.recv_timeout(patience).ok()
    }

    /// Lets them end by themselves once their standard input does, and returns what they still say.
    pub(super) fn dismiss(mut self) -> Result<Vec<String>> {
        for (_, stdin) in &mut self.workers {
            drop(stdin.take());
        }
        let begin = Instant::now();
        let mut lines = Vec::new();
        while let Some(said) = self.hear(PATIENCE.saturating_sub(begin.elapsed())) {
            lines.push(said.line);
        }
        Ok(lines)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for (child, _) in &mut self.workers {
            let _gone = child.kill();
            let _waited = child.wait();
        }
    }
}

fn listen(mut output: impl BufRead + Send + 'static, tell: Sender<Said>) {
    std::thread::spawn(move || {
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|length| length > 0) {
            let said = Said { at: Instant::now(), line: std::mem::take(&mut line) };
            if tell.send(said).is_err() {
                return;
            }
        }
    });
}

/// Waits for a while: a measurement looks at things that nobody tells of.
pub(super) fn pause(time: Duration) {
    let (_nobody, never) = channel::<()>();
    let _over = never.recv_timeout(time);
}

/// Looks now and then until something has come so far.
pub(super) fn until<R>(every: Duration, mut look: impl FnMut() -> Result<Option<R>>) -> Result<R> {
    let begin = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if begin.elapsed() > PATIENCE {
            bail!("nothing came of it within {} seconds", PATIENCE.as_secs());
        }
        pause(every);
    }
}

/// Looks now and then until a query gives at least so much.
pub(super) fn until_number(asker: &mut Asker, query: &str, least: f64) -> Result<f64> {
    until(LOOK_EVERY, || Ok(Some(asker.number(query)?).filter(|&number| number >= least)))
}

/// How things stand at a moment.
pub(super) struct Mark {
    at: Instant,
    used: f64,
    commits: f64,
}

impl Mark {
    pub(super) fn now(server: &Server, crew: &Crew, asker: &mut Asker) -> Result<Self> {
        let commits = asker.commits()?;
        Ok(Self { at: Instant::now(), used: server.used_seconds()? + crew.used_seconds()?, commits })
    }

    /// What so many tasks have cost since then.
    pub(super) fn cost(&self, tasks: f64, now: &Self) -> Cost {
        Cost {
            tasks,
            seconds: (now.at - self.at).as_secs_f64(),
            used: now.used - self.used,
            commits: now.commits - self.commits,
        }
    }
}

/// What tasks have cost.
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

    /// Tasks for each second of processor time, of all processes.
    pub(super) fn per_core(&self) -> f64 {
        self.tasks / self.used
    }

    pub(super) fn commits_each(&self) -> f64 {
        self.commits / self.tasks
    }
}

/// How long tasks waited for their start.
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

    pub(super) fn words(&self) -> String {
        format!("{:.1} ms, {:.1} ms", self.at(0.5), self.at(0.99))
    }
}
