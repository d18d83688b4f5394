//! Commands as whole processes, measured by CPU time.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use waypost_formats::{Dialect, Form};
use waypost_testkit::layered;

use super::measure::median;
use super::report::Report;
use crate::exec::{DISTRIBUTED, binary, cache_dir, output};

const RUNS: usize = 31;

pub(super) fn run(report: &mut Report) -> Result<()> {
    let scratch = cache_dir().join("bench-process");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    std::fs::create_dir_all(&scratch)?;
    let waypost = binary(DISTRIBUTED);
    let file = scratch.join("plan.json");
    let draft = layered(10_000, 3, 1_000, 7);
    std::fs::write(&file, waypost_formats::write(&draft, Dialect::Native, Form::AsRead)?.text)?;
    let store = format!("sqlite:{}", scratch.join("waypost.db").display());
    let call = |arguments: &[&str]| {
        let mut command = Command::new(&waypost);
        command.env_clear().args(["--store", &store, "--as", "person:bench"]).args(arguments);
        command
    };
    output(&mut call(&["import", "--id", "big", &file.display().to_string()]))?;

    let nothing = cpu(|| Command::new("/bin/true"), RUNS)?;
    report.note("baseline: /bin/true", format!("{nothing:.2} ms"));
    let figures: [(&str, Vec<String>); 4] = [
        ("list", vec!["list".into()]),
        ("show", vec!["show".into(), "big".into()]),
        ("next", vec!["next".into(), "big".into()]),
        ("task add", ["task", "add", "big", "one more"].map(String::from).to_vec()),
    ];
    for (name, arguments) in figures {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let found = cpu(|| call(&words), RUNS)?;
        report.at_most(&format!("waypost {name}, 10,000 tasks: processor time"), found, 8.0, "ms");
    }
    let mut samples = Vec::new();
    for _ in 0..RUNS {
        let ready = output(&mut call(&["next", "big", "--json", "--limit", "1"]))?;
        let answer: serde_json::Value = serde_json::from_str(&ready)?;
        let Some(task) = answer["tasks"][0]["id"].as_str() else { bail!("nothing is ready: {answer}") };
        samples.push(cpu(|| call(&["done", "big", task]), 1)?);
    }
    report.at_most("waypost done, 10,000 tasks: processor time", median(samples), 8.0, "ms");
    Ok(())
}

/// Returns the median CPU time of a command in milliseconds, user and system together.
fn cpu(mut command: impl FnMut() -> Command, runs: usize) -> Result<f64> {
    let mut samples = Vec::new();
    for _ in 0..runs {
        let before = children()?;
        let status = command().stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).status()?;
        if !status.success() {
            bail!("the measured command failed: {status}");
        }
        samples.push(children()? - before);
    }
    Ok(median(samples))
}

fn children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let milliseconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3;
    Ok(milliseconds(usage.user_time()) + milliseconds(usage.system_time()))
}
