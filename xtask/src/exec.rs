//! Runs other programs and prints each step with its duration.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Returns the folder for everything that the development commands install and build; never committed.
pub(crate) fn cache_dir() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("xtask")
}

/// A program, run at the root.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// The cargo that runs this process.
pub(crate) fn cargo() -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command and prints how long it took. Fails if the command does.
pub(crate) fn must(what: &str, command: &mut Command) -> Result<()> {
    timed(what, || {
        let status = command.status().with_context(|| format!("{what}: cannot start {command:?}"))?;
        ensure!(status.success(), "{what} failed: {status}");
        Ok(())
    })
}

/// Like [`must`]; returns what the command prints to stdout.
pub(crate) fn must_say(what: &str, command: &mut Command) -> Result<String> {
    timed(what, || {
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("{what}: cannot start {command:?}"))?;
        ensure!(output.status.success(), "{what} failed: {}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    })
}

/// Does something and prints how long it took.
pub(crate) fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("── {what}");
    let begin = Instant::now();
    let result = work();
    println!(
        "── {what}: {} after {:.1} s",
        if result.is_ok() { "ok" } else { "FAILED" },
        begin.elapsed().as_secs_f64()
    );
    result
}

/// Returns what a command prints. Fails if the command does.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The profile of what is distributed, and measured.
pub(crate) const DISTRIBUTED: &str = "dist";

/// Returns the path of the binary that cargo builds with this profile.
pub(crate) fn binary(profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join(profile).join("waypost")
}
