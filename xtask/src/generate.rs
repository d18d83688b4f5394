//! `cargo xtask generate`: writes generated files anew. The tests fail when one of them is not fresh.

use anyhow::Result;

use crate::run::{cargo, must};

pub(crate) fn run() -> Result<()> {
    // Each generated file is made by the test that checks it, so that there is one way to make it.
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--quiet"]).env("WAYPOST_UPDATE", "1");
    must("tests that write what they check", &mut tests)
}
