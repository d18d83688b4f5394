//! The same work in Prefect, which also stores its runs in SQLite, on one machine.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::measure::median;
use super::report::Report;
use super::run::{before, ours, workspace, write};
use crate::exec::cache_dir;
use crate::python;

/// Versions that work together.
const PACKAGES: &[&str] = &["prefect==3.8.8", "fastapi==0.139.0"];
const FLOW: &str = include_str!("prefect_flow.py");
/// Parallel tasks in a layer.
const WIDTH: usize = 10;
/// Layers of the smaller and of the larger graph. The difference between the two is the cost of the tasks.
const LAYERS: [usize; 2] = [5, 20];
const ROUNDS: usize = 3;

pub(super) fn run(report: &mut Report) -> Result<()> {
    let python = python::with_packages("prefect", PACKAGES)?;
    let home = cache_dir().join("prefect-home");
    std::fs::create_dir_all(&home)?;
    let flow = home.join("flow.py");
    std::fs::write(&flow, FLOW)?;
    let prefect = |layers: usize| -> Result<f64> {
        let mut command = Command::new(&python);
        command.arg(&flow).args([layers.to_string(), WIDTH.to_string()]).current_dir(&home);
        command.env("HOME", &home).env("PREFECT_HOME", &home).env("DO_NOT_TRACK", "1");
        command.env("PREFECT_SERVER_ANALYTICS_ENABLED", "false").env("PREFECT_LOGGING_LEVEL", "CRITICAL");
        let output = command.output().context("prefect")?;
        if !output.status.success() {
            bail!("the flow failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    };
    let scratch = workspace("bench-peers")?;
    let layered = |number: usize| (0..3).flat_map(|step| before(number, WIDTH + step)).collect();
    for layers in LAYERS {
        write(&scratch, &format!("layers-{layers}"), layers * WIDTH, "true", layered)?;
    }
    let tasks = ((LAYERS[1] - LAYERS[0]) * WIDTH) as f64;
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.push((prefect(LAYERS[1])? - prefect(LAYERS[0])?) / tasks);
        let [few, many] = LAYERS.map(|layers| ours(&scratch, &format!("layers-{layers}")));
        own.push((many? - few?) / tasks);
    }
    let (theirs, own) = (median(theirs), median(own));
    report.note("Prefect, one empty task in layers of 10", format!("{:.2} ms", theirs * 1e3));
    report.note("run, the same with a process per task", format!("{:.2} ms", own * 1e3));
    report.at_least("  faster than Prefect by", theirs / own, 20.0, "×");
    Ok(())
}
