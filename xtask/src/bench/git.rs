//! Shared plans in git: 1,000 plans of 100 tasks, and one plan of 100,000.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, bail};
use waypost_formats::{Dialect, Form};
use waypost_testkit::layered;

use super::measure::median;
use super::report::Report;
use crate::exec::{DISTRIBUTED, binary, cache_dir, output};

/// The size of the measurement.
pub(super) struct Workload {
    plans: usize,
    tasks: usize,
    large: usize,
}

impl Workload {
    pub(super) const WHOLE: Self = Self { plans: 1_000, tasks: 100, large: 100_000 };
    pub(super) const QUICK: Self = Self { plans: 50, tasks: 100, large: 5_000 };
}

/// Runs of each short command.
const RUNS: usize = 9;

struct Clone {
    folder: PathBuf,
    home: PathBuf,
}

impl Clone {
    fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", &self.home).args(words).stdin(Stdio::null());
        command.envs([("GIT_AUTHOR_NAME", "Bench"), ("GIT_AUTHOR_EMAIL", "bench@example.org")]);
        command.envs([("GIT_COMMITTER_NAME", "Bench"), ("GIT_COMMITTER_EMAIL", "bench@example.org")]);
        command
    }

    fn git(&self, words: &[&str]) -> Result<String> {
        output(&mut self.command(Path::new("git"), words))
    }

    fn waypost(&self, words: &[&str]) -> Result<f64> {
        let words = [&["--as", "person:bench"], words].concat();
        let begin = Instant::now();
        let status = self.command(&binary(DISTRIBUTED), &words).stdout(Stdio::null()).status()?;
        if !status.success() {
            bail!("waypost {words:?}: {status}");
        }
        Ok(begin.elapsed().as_secs_f64() * 1e3)
    }

    fn times(&self, words: &[&str]) -> Result<f64> {
        (0..RUNS).map(|_| self.waypost(words)).collect::<Result<Vec<_>>>().map(median)
    }

    fn status(&self) -> Result<f64> {
        let once = || {
            let begin = Instant::now();
            self.git(&["status", "--porcelain"])?;
            Ok(begin.elapsed().as_secs_f64() * 1e3)
        };
        (0..RUNS).map(|_| once()).collect::<Result<Vec<_>>>().map(median)
    }
}

pub(super) fn run(report: &mut Report, workload: &Workload) -> Result<()> {
    let scratch = cache_dir().join("bench-git");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    std::fs::create_dir_all(scratch.join("plans"))?;
    let clone = |name: &str| Clone { folder: scratch.join(name), home: scratch.clone() };
    let here = Clone { folder: scratch.clone(), home: scratch.clone() };
    here.git(&["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"])?;
    here.git(&["clone", "--quiet", "origin.git", "a"])?;
    let (a, b) = (clone("a"), clone("b"));
    std::fs::write(a.folder.join("code.rs"), "fn main() {}\n")?;
    a.git(&["checkout", "--quiet", "-b", "main"])?;
    a.git(&["add", "."])?;
    a.git(&["commit", "--quiet", "-m", "code"])?;
    a.git(&["push", "--quiet", "origin", "main"])?;
    here.git(&["clone", "--quiet", "origin.git", "b"])?;
    let write = |name: &str, tasks: usize, seed: u64| -> Result<()> {
        let text = waypost_formats::write(&layered(tasks, 2, 20, seed), Dialect::Native, Form::AsRead)?.text;
        Ok(std::fs::write(scratch.join("plans").join(format!("{name}.json")), text)?)
    };
    for number in 0..workload.plans {
        write(&format!("p{number}"), workload.tasks, number as u64)?;
    }
    report.note("git status without shared plans", format!("{:.1} ms", a.status()?));
    a.waypost(&["import", "../plans"])?;
    let all = format!("{} plans of {} tasks", workload.plans, workload.tasks);
    report.note(&format!("share --all, {all}"), format!("{:.0} ms", a.waypost(&["share", "--all"])?));
    report.note(&format!("sync, {all}: the first"), format!("{:.0} ms", a.waypost(&["sync"])?));
    report.note(&format!("sync, {all}: into an empty clone"), format!("{:.0} ms", b.waypost(&["sync"])?));
    report.note(&format!("sync, {all}: nothing new"), format!("{:.0} ms", a.times(&["sync"])?));
    report.note(
        &format!("sync --offline, {all}: nothing new"),
        format!("{:.0} ms", a.times(&["sync", "--offline"])?),
    );
    report.note(&format!("list, {all}"), format!("{:.1} ms", a.times(&["list"])?));
    report.note("git status with shared plans", format!("{:.1} ms", a.status()?));
    let listed: serde_json::Value = serde_json::from_str(&output(
        &mut a.command(&binary(DISTRIBUTED), &["list", "--json", "--limit", "1"]),
    )?)?;
    let id = listed["plans"][0]["id"].as_str().unwrap_or_default().to_owned();
    let mut samples = Vec::new();
    for number in 0..RUNS {
        a.waypost(&["add", &id, &format!("task {number}")])?;
        samples.push(a.waypost(&["sync"])?);
    }
    report.note(&format!("sync, {all}: one new task"), format!("{:.0} ms", median(samples)));
    report.note("  in the other clone", format!("{:.0} ms", b.waypost(&["sync"])?));

    write("large", workload.large, 7)?;
    a.waypost(&["import", "../plans/large.json", "--id", "large"])?;
    let large = format!("a plan of {} tasks", workload.large);
    report.note(&format!("share, {large}"), format!("{:.0} ms", a.waypost(&["share", "large"])?));
    report.note(&format!("sync, {large}"), format!("{:.0} ms", a.waypost(&["sync"])?));
    report.note(&format!("sync, {large}: into another clone"), format!("{:.0} ms", b.waypost(&["sync"])?));
    a.waypost(&["add", "large", "one more"])?;
    report.note(&format!("sync, {large}: one new task"), format!("{:.0} ms", a.waypost(&["sync"])?));
    report.note("  in the other clone", format!("{:.0} ms", b.waypost(&["sync"])?));
    Ok(())
}
