//! `cargo xtask bench`: checks the performance budgets. Each figure is measured next to a baseline in the same run, as
//! a ratio of medians.

#[cfg(feature = "bench")]
mod agents;
#[cfg(not(feature = "bench"))]
mod build;
#[cfg(feature = "bench")]
mod core;
#[cfg(feature = "bench")]
mod git;
#[cfg(feature = "bench")]
mod http;
#[cfg(feature = "bench")]
mod measure;
#[cfg(feature = "bench")]
mod peers;
#[cfg(feature = "bench")]
mod postgres;
#[cfg(feature = "bench")]
mod process;
mod report;
#[cfg(feature = "bench")]
mod run;
#[cfg(feature = "bench")]
mod scale;
#[cfg(feature = "bench")]
mod tui;

use anyhow::Result;

/// Builds the binary and this program as they are distributed, and runs the benchmarks.
#[cfg(not(feature = "bench"))]
pub(crate) fn run(groups: &[&str]) -> Result<()> {
    use crate::exec::{DISTRIBUTED, cargo, must};
    if groups == ["build"] {
        return build::run();
    }
    // The simulation runs no program.
    if groups.first() != Some(&"scale") {
        must(
            "build the binary",
            cargo().args(["build", "--profile", DISTRIBUTED, "--quiet", "--package", "waypost"]),
        )?;
    }
    let mut again = cargo();
    again.args([
        "run",
        "--profile",
        DISTRIBUTED,
        "--quiet",
        "--package",
        "xtask",
        "--features",
        "bench",
        "--",
        "bench",
    ]);
    must("measure", again.args(groups))
}

#[cfg(feature = "bench")]
pub(crate) fn run(groups: &[&str]) -> Result<()> {
    let mut report = report::Report::default();
    let wants = |group: &str| matches!(groups, [] | ["core" | "all"]) || groups.contains(&group);
    if let ["scale", words @ ..] = groups {
        return scale::run(words);
    }
    if let ["validate-file", path] = groups {
        return core::validate_file(path);
    }
    if let ["http-floor", store] = groups {
        return http::serve_floor(store);
    }
    if wants("library") {
        core::run(&mut report)?;
    }
    if groups.contains(&"commits") {
        core::commits(&mut report)?;
    }
    if wants("process") {
        process::run(&mut report)?;
    }
    if groups.contains(&"run") || groups.contains(&"all") {
        run::run(&mut report)?;
    }
    if groups.contains(&"agents") || groups.contains(&"all") {
        agents::run(&mut report)?;
    }
    if groups.contains(&"http") || groups.contains(&"all") {
        let workload = if groups.contains(&"quick") { http::Workload::QUICK } else { http::Workload::WHOLE };
        http::run(&mut report, &workload)?;
    }
    if groups.contains(&"git") || groups.contains(&"all") {
        let quick = groups.contains(&"quick");
        git::run(&mut report, if quick { &git::Workload::QUICK } else { &git::Workload::WHOLE })?;
    }
    if groups.contains(&"peers") || groups.contains(&"all") {
        peers::run(&mut report)?;
    }
    if groups.contains(&"postgres") || groups.contains(&"all") {
        let quick = groups.contains(&"quick");
        let workload = if quick { postgres::Workload::QUICK } else { postgres::Workload::WHOLE };
        postgres::run(&mut report, &workload)?;
    }
    if let ["cluster", parts @ ..] = groups {
        let extent = if parts.contains(&"quick") {
            postgres::ClusterWorkload::QUICK
        } else {
            postgres::ClusterWorkload::WHOLE
        };
        let parts: Vec<&str> = parts.iter().copied().filter(|part| *part != "quick").collect();
        postgres::cluster(&mut report, &extent, &parts)?;
    }
    if groups.contains(&"postgres-commits") {
        let quick = groups.contains(&"quick");
        postgres::commits(
            &mut report,
            if quick { &postgres::Workload::QUICK } else { &postgres::Workload::WHOLE },
        )?;
    }
    if groups.contains(&"tui") || groups.contains(&"all") {
        tui::run(&mut report)?;
    }
    report.print();
    Ok(())
}
