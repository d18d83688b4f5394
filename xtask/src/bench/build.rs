//! The first build, as somebody with a fresh clone has it, and what it leaves: time, packages, sizes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::report::Report;
use crate::ci::PACKAGES_MAX;
use crate::exec::{cache_dir, cargo, root};

/// Minutes of the first build, on two cores.
const COLD_MINUTES_MAX: f64 = 6.0;
/// Minutes of processor time of the first build.
const COLD_PROCESSOR_MINUTES_MAX: f64 = 10.0;
/// Minutes until a changed line of an executor is in the binary.
const CHANGE_MINUTES_MAX: f64 = 2.0;
/// Megabytes of the binary that is distributed, as it is and compressed.
const DIST_MEGABYTES_MAX: f64 = 30.0;
const DIST_COMPRESSED_MEGABYTES_MAX: f64 = 10.0;
/// A file that is changed to see how long it takes.
const CHANGED: &str = "crates/waypost-exec/src/lib.rs";

/// Builds into an empty folder. Needs about ten minutes and three gigabytes.
pub(super) fn run() -> Result<()> {
    let target = cache_dir().join("bench-build");
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    let mut report = Report::default();
    let (packages, units) = build(&target, "release", &mut report, COLD_MINUTES_MAX, "first build")?;
    report.at_most("  packages", packages as f64, PACKAGES_MAX as f64, "");
    report.note("  units", units.to_string());
    report.note("  binary", megabytes(&target.join("release/waypost"))?);

    let changed = root().join(CHANGED);
    let text = fs::read_to_string(&changed)?;
    // Another line, as an edit makes one; a comment alone would leave the crate as it is.
    fs::write(&changed, format!("{text}\nconst _CHANGED: u8 = 1;\n"))?;
    let again = build(
        &target,
        "release",
        &mut report,
        CHANGE_MINUTES_MAX,
        "build after a changed line of an executor",
    );
    fs::write(&changed, text)?;
    again?;

    build(&target, "dist", &mut report, f64::INFINITY, "distributed build")?;
    let binary = target.join("dist/waypost");
    let bytes = fs::metadata(&binary)?.len() as f64;
    report.at_most("  binary", bytes / 1e6, DIST_MEGABYTES_MAX, "MB");
    let compressed = Command::new("xz").args(["--stdout", "-6"]).arg(&binary).output().context("xz")?;
    let compressed = compressed.stdout.len() as f64;
    report.at_most("  compressed (xz)", compressed / 1e6, DIST_COMPRESSED_MEGABYTES_MAX, "MB");
    fs::remove_dir_all(&target)?;
    report.print();
    Ok(())
}

/// Builds and reports the times. Returns the numbers of packages and of units that were compiled.
fn build(
    target: &Path,
    profile: &str,
    report: &mut Report,
    minutes_max: f64,
    what: &str,
) -> Result<(usize, usize)> {
    let (begin, used) = (Instant::now(), processor_seconds()?);
    let mut command = cargo();
    command.args(["build", "--package", "waypost", "--message-format", "json", "--profile", profile]);
    let output = command.env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("the build failed: {}", output.status);
    }
    let minutes = begin.elapsed().as_secs_f64() / 60.0;
    let processor = (processor_seconds()? - used) / 60.0;
    let mut packages: Vec<String> = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: Value = serde_json::from_str(line)?;
        if message["reason"] == "compiler-artifact" && message["fresh"] == false {
            packages.extend(message["package_id"].as_str().map(str::to_owned));
        }
    }
    let units = packages.len();
    packages.sort_unstable();
    packages.dedup();
    match minutes_max.is_finite() {
        true => report.at_most(what, minutes, minutes_max, "min"),
        false => report.note(what, format!("{minutes:.2} min")),
    }
    match minutes_max == COLD_MINUTES_MAX {
        true => report.at_most("  processor time", processor, COLD_PROCESSOR_MINUTES_MAX, "min"),
        false => report.note("  processor time", format!("{processor:.2} min")),
    }
    Ok((packages.len(), units))
}

/// Returns the processor time of the programs that this one has waited for.
fn processor_seconds() -> Result<f64> {
    /// Linux reports it in hundredths of a second.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").context("processor times are read on Linux only")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat")?;
    // The state is the third field; user and system time of children are fields 16 and 17.
    let times: Vec<f64> =
        fields.split_whitespace().skip(13).take(2).filter_map(|text| text.parse().ok()).collect();
    Ok(times.iter().sum::<f64>() / TICKS)
}

fn megabytes(file: &Path) -> Result<String> {
    Ok(format!("{:.1} MB", fs::metadata(file)?.len() as f64 / 1e6))
}
