//! `cargo xtask ci`: everything that must pass before a merge.

use anyhow::Result;
use waypost_testkit::postgres::POSTGRES;

use crate::exec::{cargo, must};

/// The rounds of a long storm; an ordinary one has two or three.
const STORM_ROUNDS: &str = "12";

pub(crate) fn run() -> Result<()> {
    must("format", cargo().args(["fmt", "--all", "--check"]))?;
    must(
        "lints",
        cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]),
    )?;
    crate::test::run(&[])?;
    println!("all checks passed");
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
    crate::dist::test()?;
    crate::agent_hosts::run(&[])?;
    crate::llm::run(&[])
}
