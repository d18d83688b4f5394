//! `cargo xtask ci`: everything that must pass before a merge.

use std::collections::BTreeSet;

use anyhow::Result;
use waypost_testkit::postgres::POSTGRES;

use crate::exec::{cargo, must, output};

/// The rounds of a long storm; an ordinary one has two or three.
const STORM_ROUNDS: &str = "12";

/// Packages of the binary and of what builds it. More of them need a reason: everybody's first build waits for them.
pub(crate) const PACKAGES_MAX: usize = 348;

pub(crate) fn run() -> Result<()> {
    warn_about_growth()?;
    must("format", cargo().args(["fmt", "--all", "--check"]))?;
    must(
        "lints",
        cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]),
    )?;
    crate::test::run(&[])?;
    println!("all checks passed");
    Ok(())
}

/// Warns when the first build has grown. How long it takes is measured by `bench build`, on a machine with nothing else to do.
fn warn_about_growth() -> Result<()> {
    let tree = ["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let tree = output(cargo().args(tree).args(["--package", "waypost"]))?;
    // A name and a version; the path of our own follows, and a mark where the package was listed before.
    let packages: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split(" (").next()).filter(|name| !name.is_empty()).collect();
    match packages.len() {
        count @ ..=PACKAGES_MAX => println!("── the binary is built from {count} packages"),
        count => println!("── warning: the binary is built from {count} packages, more than {PACKAGES_MAX}"),
    }
    Ok(())
}

/// `cargo xtask test-full`: what is too long for every change, before a release.
pub(crate) fn full() -> Result<()> {
    run()?;
    crate::test::clients()?;
    let server = crate::postgres::server()?;
    let mut storms = cargo();
    storms.args(["test", "--package", "waypost", "--test", "faults", "--", "--include-ignored"]);
    storms.env(POSTGRES, server.url("postgres")).env("WAYPOST_STORM_ROUNDS", STORM_ROUNDS);
    must("long storms", &mut storms)?;
    crate::upgrade::run()?;
    crate::dist::test()?;
    crate::agent_hosts::run(&[])?;
    crate::llm::run(&[])
}
