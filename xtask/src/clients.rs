//! Programs that are not ours talk to the built binary: the MCP Inspector, the Python SDK, Schemathesis, and the official conformance
//! suite. Nothing here knows the inside of Waypost.

mod conformance;
mod inspector;
mod schemathesis;
mod sdk;
mod server;
mod workspace;

use std::path::Path;

use anyhow::Result;

use crate::npm::Packages;

/// The clients that come from npm.
const PACKAGES: &[(&str, &str)] =
    &[("@modelcontextprotocol/inspector", "2.12.0"), ("@modelcontextprotocol/conformance", "0.1.16")];

/// All of them.
pub(crate) fn run(waypost: &Path) -> Result<()> {
    let packages = Packages::install("node-clients", PACKAGES)?;
    inspector::run(&packages, waypost)?;
    sdk::run(waypost)?;
    schemathesis::run(waypost)?;
    conformance::run(&packages, waypost)
}
