//! `cargo xtask generate`: rewrites the generated files. Tests fail when one is out of date.

use anyhow::Result;

use crate::exec::{cargo, must};

pub(crate) fn run() -> Result<()> {
    // The test that checks a generated file also writes it, so that there is only one way to generate it.
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--quiet"]).env("WAYPOST_UPDATE", "1");
    must("rewrite generated files (cargo test with WAYPOST_UPDATE=1)", &mut tests)
}
