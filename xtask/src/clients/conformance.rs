//! The official conformance suite, against a server over HTTP. `conformance-skips.yml` lists the scenarios that a real
//! server cannot support, with reasons. A scenario that neither passes nor is listed fails.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::server::Server;
use super::workspace::Workspace;
use crate::exec::output;
use crate::npm::Packages;

const SKIPS: &str = include_str!("conformance-skips.yml");
const BEARER: &str = include_str!("bearer.mjs");

pub(super) fn run(packages: &Packages, waypost: &Path) -> Result<()> {
    let known = scenarios(&output(packages.run("conformance").args(["list", "--server"]))?);
    let skips = skips()?;
    if let Some(gone) = skips.iter().find(|skip| !known.contains(skip)) {
        bail!("conformance-skips.yml lists {gone}, which the suite does not have: remove it");
    }
    let workspace = Workspace::empty("conformance")?;
    let server = Server::start(waypost, &workspace, &["native"], &["conformance"])?;
    let bearer = packages.home().join("bearer.mjs");
    std::fs::write(&bearer, BEARER)?;
    let listed = workspace.write("skips.yml", SKIPS)?;
    let mut suite = packages.node();
    suite.arg("--import").arg(&bearer).arg(packages.program("conformance"));
    workspace.enter(&mut suite);
    suite.args(["server", "--suite", "all", "--url", server.url(), "--expected-failures"]).arg(listed);
    suite.env("WAYPOST_TOKEN", &server.tokens()[0]);
    let begin = Instant::now();
    let output = suite.output().context("cannot start the conformance suite")?;
    if !output.status.success() {
        println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("the conformance suite failed; list scenarios that cannot apply in conformance-skips.yml");
    }
    let (applies, all) = (known.len() - skips.len(), known.len());
    let seconds = begin.elapsed().as_secs_f64();
    println!("── conformance suite: {applies} of {all} scenarios apply and pass, after {seconds:.1} s");
    Ok(())
}

/// Returns the names in the suite's list.
fn scenarios(list: &str) -> Vec<String> {
    let names = list.lines().filter_map(|line| line.trim().strip_prefix("- "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns the names of the skipped scenarios. Each must have a reason.
fn skips() -> Result<Vec<String>> {
    let entries = SKIPS.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let mut names = Vec::new();
    for entry in entries {
        match entry.split_once(" # ") {
            Some((name, reason)) if !reason.trim().is_empty() => names.push(name.trim().to_owned()),
            Some(_) | None => bail!("conformance-skips.yml: {entry} has no reason"),
        }
    }
    Ok(names)
}
