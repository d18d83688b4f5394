//! Runs other programs and prints each step with its duration.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where the development commands keep what they install and build; never committed.
pub(crate) fn cache_dir() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("xtask")
}

/// A program to be run at the root.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command and says how long it took; an error when it fails.
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

/// What a command prints; an error when it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The program that cargo has built with this profile.
pub(crate) fn binary(profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join(profile).join("waypost")
}
