//! Runs the test binaries of the workspace, several at once: most tests wait for programs that they started. The largest
//! binaries have the longest tests, and come first. Builds nothing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The variable that says how many tests of a binary run at once.
pub(crate) const THREADS: &str = "RUST_TEST_THREADS";

/// A test binary.
#[derive(Debug, PartialEq)]
pub(crate) struct TestBinary {
    program: PathBuf,
    /// The folder of its package, in which cargo runs it.
    folder: PathBuf,
    /// The target: `it`, `faults`, or the name of a crate for its unit tests.
    pub(crate) target: String,
}

impl TestBinary {
    /// The binaries that cargo has built, by its messages. The largest is the first.
    pub(crate) fn built(messages: &str) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for line in messages.lines() {
            let message: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let Some(program) = text(&message["executable"]) else { continue };
            if message["profile"]["test"] == true {
                let manifest = text(&message["manifest_path"]).context("an artifact without a manifest")?;
                let folder = Path::new(&manifest).parent().context("a manifest in no folder")?.to_owned();
                let target = text(&message["target"]["name"]).context("an artifact without a target")?;
                found.push(Self { program: program.into(), folder, target });
            }
        }
        let bytes = |one: &Self| std::fs::metadata(&one.program).map_or(0, |found| found.len());
        found.sort_by_cached_key(|one| std::cmp::Reverse(bytes(one)));
        Ok(found)
    }

    /// A run of its tests with these arguments.
    pub(crate) fn job(&self, kind: &str, arguments: &[&str], threads: usize) -> Job {
        let package = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .arg("--quiet")
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        if std::env::var_os(THREADS).is_none() {
            command.env(THREADS, threads.to_string());
        }
        Job { what: format!("{package} {} ({kind})", self.target), command }
    }
}

/// A run of a program, whose output is shown when it has ended.
pub(crate) struct Job {
    what: String,
    pub(crate) command: Command,
}

/// Runs all jobs, as many at once, in this order. One failure does not hide the others.
pub(crate) fn run(jobs: Vec<Job>, at_once: usize) -> Result<()> {
    let queue = Mutex::new(VecDeque::from(jobs));
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(job) = lock(&queue).pop_front() else { return };
            let what = job.what.clone();
            if let Err(error) = one(job) {
                println!("{error:#}");
                lock(&failed).push(what);
            }
        }
    };
    std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn one(Job { what, mut command }: Job) -> Result<()> {
    let begin = Instant::now();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{what}: cannot start"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let seconds = begin.elapsed().as_secs_f64();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("── {what}: FAILED after {seconds:.1} s ({})\n{text}{said}", output.status);
    }
    let result = text.lines().find_map(|line| line.strip_prefix("test result: ")).unwrap_or("no result");
    // Most binaries have no tests of one of the kinds.
    if !result.starts_with("ok. 0 passed; 0 failed; 0 ignored") {
        println!("── {what}: {result}");
    }
    Ok(())
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binaries_are_those_that_cargo_built_with_tests() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"name":"a"},"profile":{"test":false},"executable":"/t/a"}
{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"name":"a"},"profile":{"test":true},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/r/crates/a/Cargo.toml","target":{"name":"it"},"profile":{"test":true},"executable":"/t/deps/it-1"}
{"reason":"build-finished","success":true}"#;
        let it = TestBinary {
            program: "/t/deps/it-1".into(),
            folder: "/r/crates/a".into(),
            target: "it".to_owned(),
        };
        assert_eq!(TestBinary::built(messages).unwrap(), [it]);
    }

    #[test]
    fn every_job_runs_although_one_fails() {
        let folder = crate::exec::cache_dir().join("test-jobs");
        std::fs::create_dir_all(&folder).unwrap();
        let job = |what: &str, line: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", line]).current_dir(&folder);
            Job { what: what.to_owned(), command }
        };
        let jobs = vec![job("first", "exit 3"), job("second", "touch ran"), job("absent", "kill -9 $$")];
        let error = run(jobs, 2).unwrap_err().to_string();
        assert!(error.contains("first") && error.contains("absent") && !error.contains("second"), "{error}");
        assert!(folder.join("ran").exists());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
