//! `cargo xtask test-upgrade`: a rolling upgrade with two builds on one PostgreSQL, in the order of `docs/operations.md`. The
//! second build is this one with one more step of migration (`waypost-store/next-schema`).

use std::collections::BTreeMap;
use std::fs::{File, create_dir_all, read_to_string, remove_dir_all, write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::exec::{binary, cache_dir, cargo, must, program};

/// Tasks of the plan, each of [`TASK_SECONDS`].
const TASKS: usize = 120;
const TASK_SECONDS: &str = "0.2";
const WORKERS: usize = 2;
/// Tasks that are done before the migration.
const DONE_BEFORE: usize = 10;
const TIMEOUT: Duration = Duration::from_secs(120);
/// The exit code of a program whose store has a newer schema.
const TOO_NEW: i32 = 6;

pub(crate) fn run() -> Result<()> {
    let home = std::path::absolute(cache_dir())?.join("upgrade");
    if home.exists() {
        remove_dir_all(&home)?;
    }
    create_dir_all(&home)?;
    let builds = Builds {
        next: built(&home, "next", &["--features", "waypost-store/next-schema"])?,
        old: built(&home, "old", &[])?,
    };
    let server = crate::postgres::server()?;
    let database = server.database();
    let site = Site { home, url: database.url().to_owned() };
    upgrade(&builds, &site)?;
    println!("the rolling upgrade lost and repeated nothing");
    Ok(())
}

struct Builds {
    old: PathBuf,
    next: PathBuf,
}

/// Builds the program and returns a copy of it.
fn built(home: &Path, name: &str, features: &[&str]) -> Result<PathBuf> {
    must(
        &format!("build the {name} version"),
        cargo().args(["build", "--quiet", "--package", "waypost"]).args(features),
    )?;
    let copy = home.join(name);
    std::fs::copy(binary("debug"), &copy)?;
    Ok(copy)
}

/// A folder with the configuration of all workers, and the store that they share.
struct Site {
    home: PathBuf,
    url: String,
}

impl Site {
    fn command(&self, build: &Path, words: &[&str]) -> Command {
        let mut command = program(build);
        command.current_dir(&self.home).env_clear().env("HOME", &self.home).env("PATH", "/usr/bin:/bin");
        command.args(["--store", &self.url]).args(words);
        command
    }

    fn output(&self, build: &Path, words: &[&str]) -> Result<Output> {
        Ok(self.command(build, words).output()?)
    }

    fn success(&self, build: &Path, words: &[&str]) -> Result<String> {
        let output = self.output(build, words)?;
        let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        ensure!(output.status.success(), "{words:?}: {}\n{}", output.status, said.concat());
        Ok(said[0].clone())
    }

    fn worker(&self, build: &Path, number: usize) -> Result<Worker> {
        // Each build writes into a file of its own.
        let generation = build.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let out = self.home.join(format!("worker-{number}-{generation}.jsonl"));
        let mut command = self.command(build, &["worker", "--config", "worker.toml", "--json"]);
        command.stdout(File::create(&out)?).stderr(File::create(out.with_extension("log"))?);
        Ok(Worker { child: command.spawn()?, out })
    }

    /// Returns how often each task was started.
    fn starts(&self) -> BTreeMap<String, usize> {
        let mut starts = BTreeMap::new();
        for line in read_to_string(self.home.join("starts")).unwrap_or_default().lines() {
            *starts.entry(line.to_owned()).or_default() += 1;
        }
        starts
    }
}

/// A worker that is ended with the test.
struct Worker {
    child: Child,
    out: PathBuf,
}

impl Worker {
    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    fn output_text(&self) -> String {
        read_to_string(&self.out).unwrap_or_default()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !is_so()? {
        if begin.elapsed() > TIMEOUT {
            bail!("{what}: not within {} seconds", TIMEOUT.as_secs());
        }
        // What is waited for sends no notification.
        let (_nobody, never) = channel::<()>();
        let _over = never.recv_timeout(Duration::from_millis(50));
    }
    Ok(())
}

fn upgrade(builds: &Builds, site: &Site) -> Result<()> {
    let script = format!("echo \"$WAYPOST_TASK.$WAYPOST_ATTEMPT\" >> starts; sleep {TASK_SECONDS}");
    let config = format!(
        "[executors.run]\nkind = \"process\"\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n\n[lease]\nseconds = 9\nheartbeat_seconds = 1\n"
    );
    write(site.home.join("worker.toml"), config)?;
    let task = |number: usize| json!({ "id": format!("t{number}"), "work": { "executor": "run" } });
    let tasks: Vec<Value> = (0..TASKS).map(task).collect();
    let plan = json!({ "format": "waypost/1", "id": "p", "title": "an upgrade", "tasks": tasks });
    write(site.home.join("plan.json"), plan.to_string())?;
    site.success(&builds.old, &["submit", "plan.json", "--config", "worker.toml"])?;
    let mut workers: Vec<Worker> =
        (0..WORKERS).map(|number| site.worker(&builds.old, number)).collect::<Result<_>>()?;
    until("the first tasks", || Ok(site.starts().len() >= DONE_BEFORE))?;

    println!("── migrate");
    site.success(&builds.next, &["migrate"])?;
    // Commands of the old build read, and do not write.
    site.success(&builds.old, &["list"])?;
    let refused = site.output(&builds.old, &["status", "p", "halfway"])?;
    ensure!(refused.status.code() == Some(TOO_NEW), "an old command writes: {:?}", refused);

    println!("── the old workers finish, and new ones take their places");
    for (number, worker) in workers.iter_mut().enumerate() {
        let mut status = None;
        until("the end of an old worker", || {
            status = worker.ended()?;
            Ok(status.is_some())
        })?;
        let code = status.and_then(|status| status.code());
        ensure!(code == Some(TOO_NEW), "an old worker ends with {code:?}: {}", worker.output_text());
        ensure!(
            worker.output_text().contains("store_migrated"),
            "an old worker does not say why: {}",
            worker.output_text()
        );
        *worker = site.worker(&builds.next, number)?;
    }
    let before = site.starts().len();
    ensure!(before < TASKS, "the plan was over before the upgrade: {before} of {TASKS}");
    until("the end of the plan", || {
        let shown: Value = serde_json::from_str(&site.success(&builds.next, &["show", "p", "--json"])?)?;
        Ok(shown["phase"] == "completed")
    })?;
    let starts = site.starts();
    let repeated: Vec<_> =
        starts.iter().filter(|(start, count)| **count > 1 || !start.ends_with(".1")).collect();
    ensure!(starts.len() == TASKS && repeated.is_empty(), "{} starts, repeated: {repeated:?}", starts.len());
    site.success(&builds.next, &["doctor"]).context("the migrated store")?;
    Ok(())
}
