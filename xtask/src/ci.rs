//! `cargo xtask ci`: everything that must pass before a merge.

use anyhow::Result;

use crate::exec::{cargo, must};

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
