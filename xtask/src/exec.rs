//! Runs other programs and prints each step with its duration.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

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
    println!("── {what}");
    let begin = Instant::now();
    let status = command.status().with_context(|| format!("{what}: cannot start {command:?}"))?;
    println!(
        "── {what}: {} after {:.1} s",
        if status.success() { "ok" } else { "FAILED" },
        begin.elapsed().as_secs_f64()
    );
    if !status.success() {
        bail!("{what} failed: {status}");
    }
    Ok(())
}

/// Returns what a command prints. Fails if the command does.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the path of the binary that cargo builds with this profile.
pub(crate) fn binary(profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join(profile).join("waypost")
}
